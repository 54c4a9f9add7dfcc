//! A run of calls with known times, in every form that is shown.

use std::slice::from_ref;

use iolens_model::arm::{ArmOutcome, Role};
use iolens_model::call::{CallFacts, CallKind};
use iolens_model::cell::Cell;
use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::plan::{Axes, SyscallAxes};
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, ArmAnalysis, Verdict};

use super::calls::{filled, rows, series, time_of};
use crate::export::Rows;
use crate::findings::{Finding, Outcome, Ranking};
use crate::fixture::alone;
use crate::groups::distinct;
use crate::studies::tests::near;
use crate::{csv, fixture, html, studies, text};
use iolens_document::Style;

const CALLS: u64 = 10_000;

/// id, kind, system calls, bytes, time in ns.
const ARMS: [(&str, CallKind, u32, u32, f64); 4] = [
    ("getppid", CallKind::Floors, 1, 0, 100.0),
    ("read_zero", CallKind::Bytes, 1, 1, 200.0),
    ("fsync", CallKind::Files, 2, 1, 20_000.0),
    ("function", CallKind::Floors, 0, 0, 1.5),
];

fn header() -> RunHeader {
    let axes = Axes::Syscall(SyscallAxes {
        in_a_row: vec![None, Some(1), Some(100)],
        file: None,
        external: Vec::new(),
    });
    let mut header = alone::header(axes, ARMS.map(|arm| arm.0), &[], &[1, 2]);
    header.calibration.as_mut().unwrap().empty_call_ns = 90.0;
    header.calls = ARMS
        .iter()
        .map(|&(id, kind, calls, bytes, _)| CallFacts {
            id: id.to_owned(),
            kind,
            summary: format!("what {id} does"),
            calls,
            bytes,
            most: (id == "fsync").then_some(10),
        })
        .collect();
    header
}

/// Times as they are: the first call of a row costs 80 ns more, two threads make
/// twice the calls, and each pass strays a little.
fn time_ns(cell: &Cell, ns: f64, moved_ns: f64, pass: u32) -> f64 {
    let first = cell.syscall().and_then(|s| s.in_a_row).map_or(0.0, |calls| 80.0 / calls as f64);
    (ns + first + moved_ns) / f64::from(cell.threads) * (1.0 + 0.001 * f64::from(pass % 3))
}

fn trial(like: &TrialOutcome, cell: &Cell, pass: u32, calls: usize) -> TrialOutcome {
    let roles = [Role::Baseline, Role::Compared, Role::Compared, Role::Control];
    let arm = |((id, _, calls, bytes, ns), role): ((&str, CallKind, u32, u32, f64), Role)| {
        let refused = id == "fsync" && cell.syscall().is_some_and(|s| s.in_a_row == Some(100));
        let (status, reason) = match refused {
            true => (Status::Skipped, Some("a slice of `fsync` has 10 calls at most".to_owned())),
            false => (Status::Ok, None),
        };
        let moved = u64::from(bytes) * cell.size.0.max(1);
        // A byte takes 0.05 ns, and the first of a block none.
        let moved_ns = 0.05 * moved.saturating_sub(1) as f64;
        let time_ns = alone::whole(CALLS as f64 * time_ns(cell, ns, moved_ns, pass));
        let tx = Counts {
            calls: Some(CALLS * u64::from(calls)),
            task_clock_ns: Some(time_ns * u64::from(cell.threads)),
            ..alone::counts(CALLS, CALLS * moved, time_ns)
        };
        (ArmOutcome { status, reason, ..alone::arm(id, role) }, tx)
    };
    let all = ARMS.into_iter().zip(roles).take(calls).chain([(ARMS[0], Role::SelfCheck)]);
    alone::measured(like, cell, pass, all.map(arm))
}

pub(crate) fn run() -> (Run, Analysis) {
    fixture::of_trials(header(), |like, cell, pass| trial(like, cell, pass, ARMS.len()))
}

/// The same calls with blocks of three sizes.
pub(crate) fn sized() -> (Run, Analysis) {
    let mut header = header();
    header.plan.axes =
        Axes::Syscall(SyscallAxes { in_a_row: vec![None], file: None, external: Vec::new() });
    header.plan.primitives = ["getppid", "read_zero", "fsync"].map(str::to_owned).to_vec();
    header.plan.sizes = [1, 4096, 65_536].map(Bytes).to_vec();
    header.plan.threads = vec![1];
    header.calls.retain(|call| call.id != "function");
    // All but the control.
    fixture::of_trials(header, |like, cell, pass| trial(like, cell, pass, 3))
}

#[test]
fn blocks_of_several_sizes_stand_side_by_side() {
    let (run, analysis) = sized();
    let cells: Vec<String> = analysis.cells.iter().map(|cell| cell.cell.to_string()).collect();
    assert_eq!(cells, ["1 B × 1 thread", "4 KiB × 1 thread", "64 KiB × 1 thread"]);
    let largest = filled(&analysis)[2];
    let rows = rows(&run, largest);
    let read = rows.iter().find(|row| row.arm.arm.label == "read_zero").expect("it is measured");
    let ns = 200.0 + 0.05 * 65_535.0;
    near(read.ns.value, ns);
    near(read.bytes_per_s().expect("it moves bytes"), 65_536e9 / ns);
    assert!(rows[0].arm.arm.label == "getppid" && rows[0].bytes_per_s().is_none());
    let style = Style::plain(100);
    let whole = text::whole(&run, &analysis, &style);
    assert!(whole.contains("Time per call by block size, 1 thread"), "{whole}");
    let arms = csv::all(Rows::Arms(from_ref(&run)));
    let at = arms.lines().next().expect("a header").split(',').position(|c| c == "block_bytes");
    let at = at.expect("a column of sizes");
    let sizes = arms.lines().skip(1).filter_map(|line| line.split(',').nth(at));
    assert_eq!(distinct(sizes), ["1", "4096", "65536"]);
    let figures = studies::figures(&run, &analysis);
    let stems: Vec<&str> = figures.iter().map(|figure| figure.file_stem.as_str()).collect();
    let expected = [
        "syscall-ns-per-call-1b-1-threads",
        "syscall-ns-per-call-4kib-1-threads",
        "syscall-ns-per-call-64kib-1-threads",
        "syscall-time-by-size-1-threads",
    ];
    assert_eq!(stems, expected);
    assert!(html::page(&run, &analysis).contains("Time of a call against its block"));
}

#[test]
fn a_call_that_was_refused_has_no_time_on_any_screen() {
    for (run, mut analysis) in [run(), sized()] {
        for cell in &mut analysis.cells {
            cell.arms.iter_mut().filter(|arm| arm.arm.label == "read_zero").for_each(|arm| {
                arm.status = Status::Invalid;
                arm.reason = Some("its bytes are wrong".to_owned());
            });
        }
        let cell = filled(&analysis)[0];
        assert!(rows(&run, cell).iter().all(|row| row.arm.arm.label != "read_zero"));
        assert_eq!(time_of(cell, "read_zero").map(|ns| ns.value), None);
        let screen = text::first(&run, &analysis, None, &Style::plain(100));
        // The name and its word, in the table: a caution has a reason.
        let rows = screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let is_row = |words: Vec<&str>| words.windows(2).any(|two| two == ["read_zero", "invalid"]);
        assert!(rows.into_iter().any(is_row), "{screen}");
    }
}

#[test]
fn cells_of_calls_in_a_row_are_of_one_thread() {
    let (_, analysis) = run();
    let cells: Vec<String> = analysis.cells.iter().map(|cell| cell.cell.to_string()).collect();
    let expected =
        ["1 thread", "2 threads", "1 thread, 1 call in a row", "1 thread, 100 calls in a row"];
    assert_eq!(cells, expected);
}

#[test]
fn what_was_put_in_comes_out() {
    let (run, analysis) = run();
    let cell = filled(&analysis)[0];
    let rows = rows(&run, cell);
    let order: Vec<&str> = rows.iter().map(|row| row.arm.arm.label.as_str()).collect();
    assert_eq!(order, ["function", "getppid", "read_zero", "fsync"]);
    near(rows[2].ns.value, 200.0);
    near(rows[2].times().expect("it is compared").0, 2.0);
    // A byte each 200 ns.
    near(rows[2].bytes_per_s().expect("it moves bytes"), 1e9 / 200.0);
    assert!(rows[1].bytes_per_s().is_none(), "getppid moves nothing");
    near(time_of(filled(&analysis)[1], "getppid").expect("two threads").value, 50.0);
    let [(1, one), (100, _)] = series(&analysis)[..] else { panic!("two cells of rows") };
    near(time_of(one, "getppid").expect("measured").value, 180.0);
}

#[test]
fn what_stands_below_the_first_screen() {
    let (run, analysis) = run();
    let style = Style::plain(100);
    let whole = text::whole(&run, &analysis, &style);
    for heading in
        ["Calls by several threads at once", "Time per call by calls in a row", "without figures"]
    {
        assert!(whole.contains(heading), "{heading}: {whole}");
    }
    assert!(text::show(&run, &analysis, &analysis.cells[0], &style).contains("ns/call"));
}

/// Two threads make a call of 100 ns every 50 ns: neither a call nor a crossing takes that.
#[test]
fn the_time_of_several_threads_is_no_calls() {
    let mut header = header();
    header.plan.threads = vec![2];
    let (run, analysis) =
        fixture::of_trials(header, |like, cell, pass| trial(like, cell, pass, ARMS.len()));
    near(time_of(filled(&analysis)[0], "getppid").expect("two threads").value, 50.0);
    let screen = text::first(&run, &analysis, None, &Style::plain(100));
    assert!(screen.contains("ns per call in a tight loop, of all threads together"), "{screen}");
    let claims = ["into the kernel and back", "a lone getppid"];
    assert!(claims.iter().all(|claim| !screen.contains(claim)), "{screen}");
    let page = html::page(&run, &analysis);
    assert!(page.contains("<h1>What does a system call cost?</h1>"));
    assert!(page.contains("ns per call of all"));
}

#[test]
fn exports_have_verdicts() {
    let (run, analysis) = run();
    let cells = csv::all(Rows::Cells(from_ref(&run), from_ref(&analysis)));
    let row = cells.lines().find(|line| line.contains(",read_zero,")).expect("a row");
    assert!(row.contains(",FASTER,") || row.contains(",SLOWER,"), "{row}");
}

#[test]
fn the_page_asks_what_a_call_costs() {
    let (run, analysis) = run();
    let page = html::page(&run, &analysis);
    assert!(page.contains("<h1>A call of getppid takes 100 ns</h1>"));
}

/// `read_zero` is the lowest of those that enter the kernel, and its interval cannot say so: the
/// same ranking as everywhere decides, and multiples are ratios of ratios.
#[test]
fn the_cheapest_call_is_ranked_like_every_arm() {
    let (run, mut analysis) = run();
    let at = analysis.cells.iter().position(|cell| cell.cell == filled(&analysis)[0].cell);
    let arms = &mut analysis.cells[at.expect("a cell")].arms;
    let of = |arms: &mut Vec<ArmAnalysis>, label: &str, ratio: f64, verdict: Verdict| {
        let arm = arms.iter_mut().find(|arm| arm.arm.label == label).expect("a call");
        let contrast = arm.contrast.as_mut().expect("compared");
        (contrast.ratio, contrast.verdict) = (ratio, verdict);
    };
    of(arms, "read_zero", 1.01, Verdict::Inconclusive);
    of(arms, "fsync", 0.005, Verdict::Slower);
    let of_cell = |finding: &Finding| {
        matches!(finding,
        Finding::Ranking(ranking) if ranking.setting == filled(&analysis)[0].cell)
    };
    let found = crate::findings::all(&run, &analysis.shown()).into_iter().find(of_cell);
    let Some(Finding::Ranking(Ranking { outcome: Outcome::Undecided { methods, .. }, .. })) = found
    else {
        panic!("{found:?}")
    };
    assert_eq!(methods, ["read_zero", "getppid"]);
}
