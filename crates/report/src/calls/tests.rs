//! A run of calls with known times, in every form that is shown.

use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::call::CallKind;
use iolens_model::cell::Cell;
use iolens_model::outcome::{Counts, SliceOutcome, Status, TrialOutcome};
use iolens_model::plan::{Axes, SyscallAxes};
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::Bytes;

use iolens_stats::analysis::Verdict;

use super::*;
use crate::export::Rows;
use crate::findings::{Finding, Outcome, Ranking};
use crate::fixture::alone;
use crate::groups::distinct;
use crate::{csv, figure, fixture, html, screen, text};
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
    let mut header = fixture::run().0.header;
    header.name = None;
    header.plan.axes =
        Axes::Syscall(SyscallAxes { in_a_row: vec![None, Some(1), Some(100)], file: None });
    header.plan.primitives = ARMS.iter().map(|arm| arm.0.to_owned()).collect();
    header.plan.baseline = "getppid".to_owned();
    header.plan.sizes = Vec::new();
    header.plan.threads = vec![1, 2];
    header.primitives = Vec::new();
    header.calibration.empty_call_ns = 90.0;
    header.end.as_mut().expect("it ended").unmet = Vec::new();
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

fn trial(like: &TrialOutcome, cell: &Cell, pass: u32) -> TrialOutcome {
    let roles = [Role::Baseline, Role::Compared, Role::Compared, Role::Control];
    let mut arms: Vec<ArmOutcome> = Vec::new();
    let mut slices: Vec<SliceOutcome> = Vec::new();
    let copy = (ARMS[0], Role::SelfCheck);
    for ((id, _, calls, bytes, ns), role) in ARMS.into_iter().zip(roles).chain([copy]) {
        let label = if role == Role::SelfCheck { format!("{id} (A/A)") } else { id.to_owned() };
        let refused = id == "fsync" && cell.syscall().is_some_and(|s| s.in_a_row == Some(100));
        let (status, reason) = match refused {
            true => (Status::Skipped, Some("a slice of `fsync` has 10 calls at most".to_owned())),
            false => (Status::Ok, None),
        };
        arms.push(ArmOutcome {
            arm: Arm { label, primitive: id.to_owned(), role },
            status,
            reason,
            copies_sender: None,
            copies_end_to_end: None,
            latency: None,
            server: None,
        });
        let moved = u64::from(bytes) * cell.size.0.max(1);
        // A byte takes 0.05 ns, and the first of a block none.
        let moved_ns = 0.05 * moved.saturating_sub(1) as f64;
        for round in 0..if refused { 0 } else { 2 } {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            let time_ns = (CALLS as f64 * time_ns(cell, ns, moved_ns, pass)) as u64;
            let tx = Counts {
                messages: CALLS,
                bytes: CALLS * moved,
                calls: Some(CALLS * u64::from(calls)),
                time_ns,
                task_clock_ns: Some(time_ns * u64::from(cell.threads)),
                voluntary_switches: Some(0),
                involuntary_switches: Some(0),
                migrations: Some(0),
                minor_faults: Some(0),
                major_faults: Some(0),
                ..Counts::default()
            };
            slices.push(alone::slice(&slices, round, arms.len() - 1, tx));
        }
    }
    alone::trial(like, cell, pass, arms, slices)
}

pub(crate) fn run() -> (Run, Analysis) {
    fixture::of_trials(header(), trial)
}

/// The same calls with blocks of three sizes.
pub(crate) fn sized() -> (Run, Analysis) {
    let mut header = header();
    header.plan.axes = Axes::Syscall(SyscallAxes { in_a_row: vec![None], file: None });
    header.plan.primitives = ["getppid", "read_zero", "fsync"].map(str::to_owned).to_vec();
    header.plan.sizes = [1, 4096, 65_536].map(Bytes).to_vec();
    header.plan.threads = vec![1];
    header.calls.retain(|call| call.id != "function");
    let without = |like: &TrialOutcome, cell: &Cell, pass| {
        let mut trial = trial(like, cell, pass);
        let at = trial.arms.iter().position(|arm| arm.arm.primitive == "function");
        let at = at.expect("the control");
        trial.arms.remove(at);
        trial.slices.retain(|slice| slice.arm != at);
        for slice in trial.slices.iter_mut().filter(|slice| slice.arm > at) {
            slice.arm -= 1;
        }
        trial
    };
    fixture::of_trials(header, without)
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
    assert!((read.ns.value / ns - 1.0).abs() < 0.01, "{}", read.ns.value);
    let rate = read.bytes_per_s().expect("it moves bytes");
    assert!((rate / (65_536e9 / ns) - 1.0).abs() < 0.01, "{rate}");
    assert!(rows[0].arm.arm.label == "getppid" && rows[0].bytes_per_s().is_none());
    let style = Style { colour: false, width: 100 };
    let whole = text::whole(&run, &analysis, &style);
    assert!(whole.contains("Time per call by block size, 1 thread"), "{whole}");
    let arms = csv::all(Rows::Arms(std::slice::from_ref(&run)));
    let at = arms.lines().next().expect("a header").split(',').position(|c| c == "block_bytes");
    let at = at.expect("a column of sizes");
    let sizes = arms.lines().skip(1).filter_map(|line| line.split(',').nth(at));
    assert_eq!(distinct(sizes), ["1", "4096", "65536"]);
    let figures = figure::all(&run, &analysis);
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
    let near = |value: f64, expected: f64| {
        assert!((value / expected - 1.0).abs() < 0.01, "{value} is not {expected}");
    };
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
fn the_answer_in_words() {
    let (run, analysis) = run();
    let style = Style { colour: false, width: 100 };
    let shown = text::run(&run, &analysis, &style);
    insta::assert_snapshot!(shown);
    assert!(!shown.contains(" 0 B") && !shown.contains("message"), "{shown}");
    let whole = text::whole(&run, &analysis, &style);
    for heading in
        ["Calls by several threads at once", "Time per call by calls in a row", "without figures"]
    {
        assert!(whole.contains(heading), "{heading}: {whole}");
    }
    let cell = text::show(&run, &analysis, &analysis.cells[0], &style);
    assert!(cell.contains("ns/call") && !cell.contains("message"), "{cell}");
}

#[test]
fn exports_have_calls_and_no_message() {
    let (run, analysis) = run();
    for rows in [
        csv::all(Rows::Arms(std::slice::from_ref(&run))),
        csv::all(Rows::Slices(std::slice::from_ref(&run))),
        csv::all(Rows::Cells(std::slice::from_ref(&run), std::slice::from_ref(&analysis))),
    ] {
        let header = rows.lines().next().expect("a header");
        let columns: Vec<&str> = header.split(',').collect();
        assert!(columns.contains(&"calls_in_a_row") && columns.contains(&"primitive"), "{header}");
        let foreign = ["message", "topology", "rx_", "zerocopy", "mtu", "receiver"];
        assert!(foreign.iter().all(|word| !header.contains(word)), "{header}");
        assert!(rows.lines().all(|line| line.split(',').count() >= columns.len()));
    }
    let cells = csv::all(Rows::Cells(std::slice::from_ref(&run), std::slice::from_ref(&analysis)));
    let row = cells.lines().find(|line| line.contains(",read_zero,")).expect("a row");
    assert!(row.contains(",FASTER,") || row.contains(",SLOWER,"), "{row}");
}

#[test]
fn the_page_has_its_sections_and_figures() {
    let (run, analysis) = run();
    let page = html::page(&run, &analysis);
    for id in ["answer", "figures", "numbers", "trust", "machine"] {
        assert!(page.contains(&format!("<h2 id=\"{id}\"")), "{id}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
    }
    assert!(page.contains("<h1>A call of getppid takes 100 ns</h1>"));
    assert!(!page.contains("message"), "a run of calls has none");
    let figures = figure::all(&run, &analysis);
    let stems: Vec<&str> = figures.iter().map(|figure| figure.file_stem.as_str()).collect();
    let expected =
        ["syscall-ns-per-call-1-threads", "syscall-ns-per-call-2-threads", "syscall-time-by-calls"];
    assert_eq!(stems, expected);
    assert!(figures.iter().all(|figure| !figure.table.rows.is_empty()));
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
    let found = screen::facts(&run, &analysis).into_iter().find(of_cell);
    let Some(Finding::Ranking(Ranking { outcome: Outcome::Undecided { methods, .. }, .. })) = found
    else {
        panic!("{found:?}")
    };
    assert_eq!(methods, ["read_zero", "getppid"]);
}
