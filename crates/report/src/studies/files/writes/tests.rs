//! A run that writes with known times, in every form that is shown.

use iolens_document::{Joined, Style};
use iolens_model::cell::Cell;
use iolens_model::file::{
    Destination, EngineFacts, FileCounts, FileFacts, Pattern, WriteAxes, WritingFacts,
};
use iolens_model::outcome::TrialOutcome;
use iolens_model::plan::Axes;
use iolens_model::run::RunHeader;
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::analysis::{Analysis, Verdict};

use super::*;
use crate::findings::{Finding, Outcome};
use crate::fixture::alone;
use crate::studies::files::tests::{header as header_of_reads, trial_of};
use crate::studies::tests::shown;
use crate::{findings, fixture, html, json};

const REGION: u64 = 64 << 20;

/// id, whether it is direct, whether it is durable, ns of a block, ns per byte.
const ENGINES: [(&str, bool, bool, f64, f64); 5] = [
    ("write", false, false, 400.0, 0.2),
    ("direct", true, false, 20_000.0, 0.7),
    ("write_fsync", false, true, 900_000.0, 0.9),
    ("write_fdatasync", false, true, 450_000.0, 0.9),
    ("write_dsync", false, true, 450_100.0, 0.9),
];

fn header() -> RunHeader {
    let axes = Axes::Write(WriteAxes {
        destination: Destination::ALL.to_vec(),
        pattern: vec![Pattern::Sequential],
        depth: vec![1],
        dir: Some("/scratch".to_owned()),
        file_bytes: None,
    });
    let reads = header_of_reads();
    let sizes = [512, 4096, 65536, 1 << 20];
    let mut header = alone::header(axes, ENGINES.map(|engine| engine.0), &sizes, &[1]);
    (header.calibration, header.host) = (reads.calibration, reads.host);
    let engine = |&(id, is_direct, is_durable, ..): &(&str, bool, bool, f64, f64)| EngineFacts {
        is_direct,
        is_durable,
        ..alone::engine(id)
    };
    header.engines = ENGINES.iter().map(engine).collect();
    header.file = Some(FileFacts {
        writing: Some(WritingFacts {
            region: Bytes(REGION),
            regions: 6,
            dirty_background: Some(Bytes(2 << 30)),
            flushes: [400, 450, 500].map(|us| Nanos(us * 1000)).to_vec(),
        }),
        ..alone::file(6 * REGION, "more than many slices write")
    });
    header
}

fn trial(like: &TrialOutcome, cell: &Cell, pass: u32) -> TrialOutcome {
    let is_new = cell.write().is_some_and(|write| write.destination == Destination::New);
    let blocks = REGION / 64 / cell.size.0;
    let arm =
        |(id, is_direct, is_durable, fixed, per_byte): (&'static str, bool, bool, f64, f64)| {
            let fixed = if is_new { fixed * 1.5 } else { fixed };
            let stray = 1.0 + 0.001 * f64::from(pass % 3);
            let resident = if is_new || is_direct { 0 } else { REGION };
            let found = FileCounts {
                resident_before_bytes: Some(resident),
                resident_after_bytes: Some(resident),
                dirty_before_bytes: Some(0),
                dirty_after_bytes: Some(if is_direct || is_durable { 0 } else { REGION / 64 }),
                size_error_bytes: Some(0),
                ..FileCounts::default()
            };
            (id, (fixed + per_byte * cell.size.0 as f64) * stray, found)
        };
    trial_of(like, cell, pass, blocks, &ENGINES.map(arm))
}

pub(crate) fn run() -> (Run, Analysis) {
    fixture::of_trials(header(), trial)
}

#[test]
fn what_was_put_in_comes_out() {
    let (run, analysis) = run();
    let ok = analysis.arms().all(|a| a.status == Status::Ok);
    assert!(ok, "{:?}", analysis.rejected.first());
    let first = &analysis.cells[0];
    assert_eq!(analysis.told.dirty_share(&first.cell, "write"), Some(1.0));
    assert_eq!(analysis.told.dirty_share(&first.cell, "write_fsync"), Some(0.0));
    let durable: Vec<&str> =
        durable(&run, first).iter().map(|arm| arm.arm.label.as_str()).collect();
    assert_eq!(durable, ["write_fsync", "write_fdatasync", "write_dsync"]);
    assert!(is_lazy(&run, first));
}

/// Four threads that take 80 µs each bring a block to the device every 20 µs.
#[test]
fn the_time_of_several_threads_is_of_all_together() {
    let title = |threads: &[u32]| {
        let mut header = header();
        header.plan.threads = threads.to_vec();
        let (run, analysis) = fixture::of_trials(header, trial);
        let screen = crate::text::first(&run, &analysis, None, &Style::plain(100));
        screen.lines().find(|line| line.starts_with("µs per block")).expect("a title").to_owned()
    };
    assert!(title(&[4]).starts_with("µs per block, of all threads together (write's × ratio)"));
    assert!(title(&[1]).starts_with("µs per block (write's × ratio)"));
}

#[test]
fn one_call_over_another_is_of_what_they_were_measured_in_together() {
    let (run, mut analysis) = run();
    let ratio = |cell: &CellAnalysis| {
        let fsync = cell.arms.iter().find(|arm| arm.arm.label == "write_fsync");
        let (other, over) = over_next(&run, cell, fsync.expect("the arm"))?;
        assert_eq!(other, "write_fdatasync");
        Some((100.0 * over.value).round())
    };
    let cell = &mut analysis.cells[0];
    assert_eq!(ratio(cell), Some(200.0));
    let arm = cell.arms.iter_mut().find(|arm| arm.arm.label == "write_fsync").expect("the arm");
    arm.figures.as_mut().expect("figures").ns_per_message.value *= 10.0;
    assert_eq!(ratio(cell), Some(200.0));
    cell.pairs.clear();
    assert_eq!(ratio(cell), None, "they never met");
}

/// Neither its ratio nor what follows from that stands beside those of others.
#[test]
fn an_engine_without_a_verdict_has_no_ratio() {
    let (run, mut analysis) = run();
    let told = |analysis: &Analysis| {
        let cell = &analysis.cells[0];
        let arm = arms::labelled(cell, "write_fsync").expect("the arm");
        let counts = [durable(&run, cell).len(), findings::stalls(analysis).len()];
        (entry(&run, arm), with_stalls(arm).len(), counts)
    };
    let arms = analysis.cells[0].arms.iter_mut();
    let fsync = arms.filter(|arm| arm.arm.label == "write_fsync");
    let mut contrasts = fsync.filter_map(|arm| arm.contrast.as_mut());
    let contrast = contrasts.next().expect("compared");
    contrast.tail = true;
    let (first, stalls, counts) = told(&analysis);
    assert_eq!((first.len(), stalls, counts), (2, 2, [3, 1]), "{first:?}");
    for (verdict, word) in [(Verdict::Unranked, "not ranked"), (Verdict::Invalid, "invalid")] {
        let arm = analysis.cells[0].arms.iter_mut().find(|arm| arm.arm.label == "write_fsync");
        arm.and_then(|arm| arm.contrast.as_mut()).expect("compared").verdict = verdict;
        assert_eq!(told(&analysis), (vec![word.to_owned()], 0, [2, 0]));
    }
}

/// Durable engines have an answer of their own, so one that may be ahead leaves nothing open.
#[test]
fn findings_rank_what_the_screen_and_the_page_rank() {
    let (mut run, mut analysis) = run();
    let fsync = analysis.cells[0].arms.iter_mut().find(|arm| arm.arm.label == "write_fsync");
    let contrast = fsync.and_then(|arm| arm.contrast.as_mut()).expect("compared");
    (contrast.ratio, contrast.verdict) = (1.05, Verdict::Inconclusive);
    contrast.simultaneous = Some(Interval { low: 0.8, high: 1.3 });
    let outcome = findings::all(&run, &analysis).into_iter().find_map(|found| match found {
        Finding::Ranking(ranking) => Some(ranking.outcome),
        _ => None,
    });
    let method = "write".to_owned();
    assert_eq!(outcome, Some(Outcome::Fastest { method, against: None }));

    let arms = |analysis: &Analysis| analysis.cells[0].arms.len();
    let all = arms(&analysis);
    assert_eq!(arms(&findings::ranked(&run, &analysis)), all - 3);
    run.header.plan.baseline = "write_fsync".to_owned();
    assert_eq!(arms(&findings::ranked(&run, &analysis)), all, "the baseline is one of them");
    run.header.plan.baseline = "write".to_owned();
    for cell in &mut analysis.cells {
        cell.arms.retain(|arm| !["write_fdatasync", "write_dsync"].contains(&&*arm.arm.label));
    }
    assert_eq!(arms(&findings::ranked(&run, &analysis)), all - 2, "the only one");
}

#[test]
fn a_flush_that_cannot_be_one_is_said_to_be_none() {
    let (mut run, analysis) = run();
    let said = |run: &Run| -> String {
        let text = shown(run, &analysis, 100);
        text.split_whitespace().joined(" ")
    };
    assert!(said(&run).contains("a device can be that fast"));
    let found = findings::flush(&run).expect("it writes");
    assert_eq!((found.is_guest, found.is_plausible), (true, Some(true)));
    let file = run.header.file.as_mut().expect("a file");
    file.writing.as_mut().expect("it writes").flushes = vec![Nanos(3000); 3];
    let text = said(&run);
    assert!(text.contains("median of 3") && text.contains("no device programs"), "{text}");
    assert!(text.contains("acknowledged and not made"), "{text}");
    assert!(text.contains("not preconditioned"), "{text}");
    run.header.file.as_mut().expect("a file").file_system = "tmpfs".to_owned();
    let text = said(&run);
    assert!(text.contains("tmpfs has no device") && !text.contains("preconditioned"), "{text}");
}

#[test]
fn a_cell_has_its_rate_and_its_destination() {
    let (run, analysis) = run();
    let whole: serde_json::Value =
        serde_json::from_str(&json::run(&run, &analysis)).expect("our own JSON parses");
    let cell = &whole["cells"][0];
    assert!(cell["write_bytes_per_s"].is_number() && cell["destination"] == "existing", "{cell}");
}

#[test]
fn page_and_text_are_of_writes() {
    let (run, analysis) = run();
    let (page, text) = (html::page(&run, &analysis), shown(&run, &analysis, 100));
    assert!(page.contains("<h1>write wins in all 8 settings</h1>") && page.contains("left dirty"));
    assert!(!page.contains("From device") && !page.contains("warm"));
    assert!(!text.contains("from device") && !text.contains("warm"), "{text}");
}
