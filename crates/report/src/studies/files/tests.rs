//! A run of a file with known times, in every form that is shown.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::file::{
    AfterDrop, CacheState, Consumer, DropMode, EngineFacts, FileAxes, FileCounts, FileFacts,
    Pattern,
};
use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::plan::Axes;
use iolens_model::reading::Reading;
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::analysis::{Analysis, Verdict};

use super::facts::{bandwidth, best_cold};
use crate::findings::{self, Caching};
use crate::fixture::alone;
use crate::studies::tests::{cells_as_json, near, shown};
use crate::{fixture, html, json, text};
use iolens_document::Style;

const FILE_BYTES: u64 = 1 << 30;

/// id, whether it is direct, ns of a crossing, ns per byte out of the page cache.
const ENGINES: [(&str, bool, f64, f64); 3] =
    [("read", false, 300.0, 0.100), ("mmap", false, 150.0, 0.105), ("direct", true, 9000.0, 0.5)];

pub(crate) fn header() -> RunHeader {
    let axes = Axes::File(FileAxes {
        cache: vec![CacheState::Warm, CacheState::Cold],
        pattern: vec![Pattern::Sequential],
        consumer: vec![Consumer::Scan],
        depth: vec![1],
        file: None,
        dir: Some("/scratch".to_owned()),
        file_bytes: None,
        evict: false,
        drop_caches: Vec::new(),
        external: Vec::new(),
    });
    let sizes = [512, 4096, 65536, 1 << 20, 4 << 20];
    let mut header = alone::header(axes, ENGINES.map(|engine| engine.0), &sizes, &[1, 2]);
    header.calibration.as_mut().unwrap().empty_call_ns = 90.0;
    header.calibration.as_mut().unwrap().threads = 2;
    header.calibration.as_mut().unwrap().receipt_round_trip_ns = None;
    header.host.facts.push(iolens_model::host::Fact {
        group: "cpu".to_owned(),
        name: "virtualization".to_owned(),
        value: Reading::Exact("KVM".to_owned()),
    });
    let engine = |&(id, is_direct, ..): &(&str, bool, f64, f64)| EngineFacts {
        is_direct,
        ..alone::engine(id)
    };
    header.engines = ENGINES.iter().map(engine).collect();
    header.file = Some(FileFacts {
        first_pass: Some(Nanos(1_000_000_000)),
        ..alone::file(FILE_BYTES, "four times the last-level cache")
    });
    header
}

/// Times as they are: two threads read twice as much, storage takes 0.5 ns per byte
/// more, and each pass strays a little.
fn time_ns(cell: &Cell, (_, is_direct, fixed, per_byte): (&str, bool, f64, f64), pass: u32) -> f64 {
    let is_cold = cell.file().is_some_and(|file| file.cache == CacheState::Cold);
    let device = if is_cold && !is_direct { 0.5 } else { 0.0 };
    let one = fixed + (per_byte + device) * cell.size.0 as f64;
    one / f64::from(cell.threads) * (1.0 + 0.001 * f64::from(pass % 3))
}

/// What a slice finds of the file.
fn found(cell: &Cell, is_direct: bool, bytes: u64) -> FileCounts {
    let is_cold = cell.file().is_some_and(|file| file.cache == CacheState::Cold);
    let resident = if is_cold { 0 } else { FILE_BYTES };
    FileCounts {
        resident_before_bytes: Some(resident),
        resident_after_bytes: Some(if is_direct { resident } else { resident.max(bytes) }),
        device_bytes: Some(if is_cold || is_direct { bytes } else { 0 }),
        ..FileCounts::default()
    }
}

fn trial(like: &TrialOutcome, cell: &Cell, pass: u32) -> TrialOutcome {
    let blocks = FILE_BYTES / 4 / cell.size.0;
    let arm = |engine: (&'static str, bool, f64, f64)| {
        (engine.0, time_ns(cell, engine, pass), found(cell, engine.1, FILE_BYTES / 4))
    };
    trial_of(like, cell, pass, blocks, &ENGINES.map(arm))
}

/// A trial of arms with these times of a block and what was found around each slice;
/// the first is the baseline, and has its double.
pub(crate) fn trial_of(
    like: &TrialOutcome,
    cell: &Cell,
    pass: u32,
    blocks: u64,
    engines: &[(&str, f64, FileCounts)],
) -> TrialOutcome {
    let roles = [Role::Baseline].into_iter().chain(std::iter::repeat(Role::Compared));
    let arm = |((id, ns, found), role): (&(&str, f64, FileCounts), Role)| {
        let time_ns = alone::whole(blocks as f64 * ns);
        let tx = Counts {
            calls: Some(blocks),
            task_clock_ns: Some(time_ns * u64::from(cell.threads)),
            file: Some(*found),
            ..alone::counts(blocks, blocks * cell.size.0, time_ns)
        };
        (alone::arm(id, role), tx)
    };
    let all = engines.iter().zip(roles).chain([(&engines[0], Role::SelfCheck)]);
    alone::measured(like, cell, pass, all.map(arm))
}

pub(crate) fn run() -> (Run, Analysis) {
    fixture::of_trials(header(), trial)
}

#[test]
fn what_is_not_ranked_is_no_limit() {
    let (run, mut analysis) = run();
    let of_ranked = findings::limits(&run, &analysis);
    let first = of_ranked.into_iter().find(|limit| limit.method != "read").expect("mmap");
    for cell in &mut analysis.cells {
        for arm in cell.arms.iter_mut().filter(|arm| arm.arm.label == first.method) {
            arm.contrast.as_mut().expect("it is compared").verdict = Verdict::Unranked;
        }
    }
    let left = findings::limits(&run, &analysis);
    assert!(!left.is_empty() && left.iter().all(|limit| limit.method != first.method));
}

#[test]
fn what_was_put_in_comes_out() {
    let (run, analysis) = run();
    let ok = analysis.arms().all(|a| a.status == Status::Ok);
    assert!(ok, "{:?}", analysis.rejected.first());
    let model = analysis.cost_models.iter().find(|m| m.label == "read").expect("a fit");
    near(model.fixed_ns.value, 300.0);
    near(bandwidth(model).expect("bytes cost time").value, 1e10);
    near(model.half_size_bytes.value, 3000.0);
    let caching = findings::caching(&run, &analysis);
    assert!(caching.iter().all(|one| one.method != "direct"), "it reads around the page cache");
    let largest = |one: &&Caching| one.method == "read" && one.setting.size == Bytes(4 << 20);
    near(caching.iter().find(largest).expect("both states").warm_over_cold.value, 6.0);
    let plateau = analysis.read_plateaus.iter().find(|p| p.label == "read").expect("one");
    assert_eq!(plateau.from.size, Bytes(1 << 20));
    let (cell, arm, _) = best_cold(&analysis).expect("cold cells");
    assert_eq!((arm.arm.label.as_str(), cell.cell.threads), ("direct", 2));
}

#[test]
fn the_page_has_the_facts_of_the_file() {
    let (run, analysis) = run();
    let page = html::page(&run, &analysis);
    for text in ["made for this run", "four times the last-level cache", "First pass"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("guest-cold") && !page.contains("href=\"#words\""));
}

#[test]
fn a_machine_without_a_hypervisor_has_cold_cells() {
    let (mut run, _) = run();
    let fact = run.header.host.facts.last_mut().expect("virtualization");
    fact.value = Reading::Exact("no hypervisor".to_owned());
    let analysis = iolens_stats::analyse(&run);
    let shown = text::run(&run, &analysis, &Style::plain(100));
    assert!(shown.contains("1 thread, cold") && !shown.contains("guest-cold"), "{shown}");
}

#[test]
fn what_is_wrong_with_a_file_comes_first() {
    let (mut run, analysis) = run();
    let file = run.header.file.as_mut().expect("a file");
    file.warnings = vec!["it has holes.".to_owned()];
    let screen = crate::studies::screen(&run, &analysis, None);
    assert_eq!(screen.problems[0].words(), "✗ the file: it has holes.");
}

#[test]
fn programs_get_what_was_found_of_the_file() {
    let (run, analysis) = run();
    let cells = cells_as_json(&run, &analysis);
    insta::assert_snapshot!("a_cell_as_json", format!("{:#}", cells[0]));
    let whole: serde_json::Value =
        serde_json::from_str(&json::run(&run, &analysis)).expect("our own JSON");
    assert!(whole["read_plateaus"].as_array().is_some_and(|all| !all.is_empty()));
}

#[test]
fn what_dropping_caches_is_worth_is_said_with_intervals() {
    let (mut run, analysis) = run();
    let file = run.header.file.as_mut().expect("a file");
    for round in 0..6_u64 {
        for (mode, times) in [(None, 1), (Some(DropMode::Pages), 40), (Some(DropMode::Both), 50)] {
            let time = |ns: u64| Nanos((ns + round) * times);
            file.dropped.push(AfterDrop {
                mode,
                page: time(2000),
                mib: time(100_000),
                names: time(9_000_000),
                resident_bytes: Some(if mode.is_some() { 0 } else { 1 << 20 }),
                cached_permille: Some(990),
                unused_dentries_permille: Some(1000),
            });
        }
    }
    let text = shown(&run, &analysis, 80);
    let tables = text.split("What is dropping caches worth?").nth(1).expect("its tables");
    let page = tables.split("First read of a page of the file").nth(1).expect("a table");
    let row = |mode: &str| page.lines().find(|line| line.starts_with(mode)).expect("a row");
    assert!(row("nothing").contains("2.00 µs [2.00–2.00]"), "{page}");
    assert!(row("1 (pages)").contains("40.0× [40.0–40.0]"), "{page}");
    assert!(row("3 (both)").contains("50.0× [50.0–50.0]"), "{page}");
    assert!(tables.contains("open, fstat and close of 10,000 files"));
    assert_eq!(tables.lines().filter(|line| line.contains("1 (pages)")).count(), 3, "{tables}");
    assert!(html::page(&run, &analysis).contains("What is dropping caches worth?"));
}

#[test]
fn points_that_are_on_no_line_have_the_nearest_one() {
    let (run, mut analysis) = run();
    analysis.cost_models[0].worst_residual = 0.2;
    let text = shown(&run, &analysis, 100);
    assert!(text.contains("¹ not a line: +20% off at"), "{text}");
    assert!(text.contains("this is the nearest one"), "{text}");
}
