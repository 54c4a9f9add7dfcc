//! A run of a file with known times, in every form that is shown.

use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::file::{
    AfterDrop, Consumer, DropMode, EngineFacts, FileAxes, FileCounts, FileFacts, Pattern,
};
use iolens_model::outcome::{Counts, SliceOutcome, TrialOutcome};
use iolens_model::plan::Axes;
use iolens_model::reading::Reading;
use iolens_model::run::RunHeader;
use iolens_model::units::{Bytes, Nanos};

use super::*;
use crate::export::Rows;
use crate::findings::{self, Caching};
use crate::fixture::alone;
use crate::{columns_tests, figure, fixture, html, json, text};
use iolens_document::Style;

const FILE_BYTES: u64 = 1 << 30;

/// id, whether it is direct, ns of a crossing, ns per byte out of the page cache.
const ENGINES: [(&str, bool, f64, f64); 3] =
    [("read", false, 300.0, 0.100), ("mmap", false, 150.0, 0.105), ("direct", true, 9000.0, 0.5)];

pub(crate) fn header() -> RunHeader {
    let mut header = fixture::run().0.header;
    header.name = None;
    header.plan.axes = Axes::File(FileAxes {
        cache: vec![CacheState::Warm, CacheState::Cold],
        pattern: vec![Pattern::Sequential],
        consumer: vec![Consumer::Scan],
        depth: vec![1],
        file: None,
        dir: Some("/scratch".to_owned()),
        file_bytes: None,
        evict: false,
        drop_caches: Vec::new(),
    });
    header.plan.primitives = ENGINES.iter().map(|engine| engine.0.to_owned()).collect();
    header.plan.baseline = "read".to_owned();
    header.plan.sizes = [512, 4096, 65536, 1 << 20, 4 << 20].map(Bytes).to_vec();
    header.plan.threads = vec![1, 2];
    header.primitives = Vec::new();
    header.calibration.empty_call_ns = 90.0;
    header.calibration.threads = 2;
    header.calibration.receipt_round_trip_ns = None;
    header.end.as_mut().expect("it ended").unmet = Vec::new();
    header.host.facts.push(iolens_model::host::Fact {
        group: "cpu".to_owned(),
        name: "virtualization".to_owned(),
        value: Reading::Exact("KVM".to_owned()),
    });
    let facts =
        |&(id, is_direct, ..): &(&str, bool, f64, f64)| EngineFacts { is_direct, ..engine(id) };
    header.engines = ENGINES.iter().map(facts).collect();
    header.file = Some(FileFacts {
        place: "/scratch".to_owned(),
        is_ours: true,
        bytes: Bytes(FILE_BYTES),
        size_reason: "four times the last-level cache".to_owned(),
        file_system: "ext4".to_owned(),
        first_pass: Some(Nanos(1_000_000_000)),
        warnings: Vec::new(),
        writing: None,
        dropped: Vec::new(),
        destination: None,
    });
    header
}

/// What a run says of an engine.
pub(crate) fn engine(id: &str) -> EngineFacts {
    EngineFacts {
        id: id.to_owned(),
        summary: format!("what {id} does"),
        path: String::new(),
        is_direct: false,
        has_depth: false,
        is_durable: false,
        program: None,
    }
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
        let found = found(cell, engine.1, FILE_BYTES / 4);
        (engine.0, counts(cell, blocks, time_ns(cell, engine, pass), found))
    };
    trial_of(like, cell, pass, &with_roles(ENGINES.map(arm)))
}

/// What so many blocks of this time count, and what was found around them.
pub(crate) fn counts(cell: &Cell, blocks: u64, block_ns: f64, found: FileCounts) -> Counts {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
    let time_ns = (blocks as f64 * block_ns) as u64;
    Counts {
        messages: blocks,
        bytes: blocks * cell.size.0,
        calls: Some(blocks),
        time_ns,
        task_clock_ns: Some(time_ns * u64::from(cell.threads)),
        voluntary_switches: Some(0),
        involuntary_switches: Some(0),
        migrations: Some(0),
        minor_faults: Some(0),
        major_faults: Some(0),
        file: Some(found),
        ..Counts::default()
    }
}

/// An arm of a trial, and what each of its slices counts.
pub(crate) type ArmCounts = (&'static str, Role, Counts);

/// The first is the baseline, and compared with the others.
pub(crate) fn with_roles<const N: usize>(arms: [(&'static str, Counts); N]) -> Vec<ArmCounts> {
    let role = |place| if place == 0 { Role::Baseline } else { Role::Compared };
    let arms = arms.into_iter().enumerate();
    arms.map(|(place, (id, counts))| (id, role(place), counts)).collect()
}

/// A trial of two slices of each arm; the first has its double.
pub(crate) fn trial_of(
    like: &TrialOutcome,
    cell: &Cell,
    pass: u32,
    shown: &[ArmCounts],
) -> TrialOutcome {
    let (mut arms, mut slices): (Vec<ArmOutcome>, Vec<SliceOutcome>) = Default::default();
    let double = (shown[0].0, Role::SelfCheck, shown[0].2);
    for &(id, role, tx) in shown.iter().chain([&double]) {
        let label = if role == Role::SelfCheck { format!("{id} (A/A)") } else { id.to_owned() };
        arms.push(ArmOutcome {
            arm: Arm { label, primitive: id.to_owned(), role },
            status: Status::Ok,
            reason: None,
            copies_sender: None,
            copies_end_to_end: None,
            latency: None,
            server: None,
        });
        for round in 0..2 {
            slices.push(alone::slice(&slices, round, arms.len() - 1, tx));
        }
    }
    alone::trial(like, cell, pass, arms, slices)
}

pub(crate) fn run() -> (Run, Analysis) {
    fixture::of_trials(header(), trial)
}

fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.01, "{value} is not {expected}");
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

/// What `iolens show` prints of a run, and one setting of it.
pub(crate) fn shown(run: &Run, analysis: &Analysis, width: usize) -> String {
    let style = Style { colour: false, width };
    let whole = text::run(run, analysis, &style);
    foreign(&text::show(run, analysis, &analysis.cells[0], &style));
    for line in whole.lines() {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
    }
    whole
}

/// Each section once, with an entry in the contents.
pub(crate) fn has_sections(page: &str, ids: &[&str]) {
    let headings = page.split("<h2 id=\"").skip(1).filter_map(|part| part.split('"').next());
    assert_eq!(headings.collect::<Vec<_>>(), ids);
    for id in ids {
        assert_eq!(page.matches(&format!("href=\"#{id}\"")).count(), 1, "{id}");
    }
}

#[test]
fn what_show_prints() {
    let (run, analysis) = run();
    let text = shown(&run, &analysis, 100);
    foreign(&text);
    shown(&run, &analysis, 80);
    insta::assert_snapshot!(text);
}

/// Words of messages have no place where a file is read or written.
const FOREIGN: [&str; 7] =
    ["message", "goodput", "copies", "received by nobody", "gbit/s", "receiver", "thread pairs"];

/// No word of [`FOREIGN`].
pub(crate) fn foreign(text: &str) {
    has_none_of(&FOREIGN, text);
}

/// None of these words, which are in small letters.
pub(crate) fn has_none_of(words: &[&str], text: &str) {
    let lower = text.to_lowercase();
    for word in words {
        let at = lower.find(word);
        let near = at.map(|at| lower[..at].chars().rev().take(80).collect::<String>());
        let near = near.map(|near| near.chars().rev().collect::<String>());
        assert!(at.is_none(), "{word} after: {near:?}");
    }
}

/// The same of a page, but for the plan as it is stored, and of every figure and its
/// table, which has rows.
pub(crate) fn page_and_figures_have_none_of(words: &[&str], run: &Run, analysis: &Analysis) {
    let page = html::page(run, analysis);
    let end = page.find("The plan as stored").expect("how to reproduce");
    let start = page.find("<body").expect("a body");
    has_none_of(words, &page[start..end]);
    for figure in figure::all(run, analysis) {
        has_none_of(words, &figure.svg);
        has_none_of(words, &figure.table.text(200));
        assert!(!figure.table.rows.is_empty(), "{}", figure.file_stem);
    }
}

#[test]
fn no_page_and_no_figure_has_words_of_messages() {
    let (run, analysis) = run();
    page_and_figures_have_none_of(&FOREIGN, &run, &analysis);
}

#[test]
fn the_page_has_its_sections_and_the_facts_of_the_file() {
    let (run, analysis) = run();
    let page = html::page(&run, &analysis);
    has_sections(&page, &["answer", "why", "figures", "numbers", "trust", "machine"]);
    for text in ["made for this run", "four times the last-level cache", "First pass"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("guest-cold") && !page.contains("href=\"#words\""));
}

#[test]
fn figures_by_name() {
    let (run, analysis) = run();
    let stems: Vec<String> =
        figure::all(&run, &analysis).into_iter().map(|figure| figure.file_stem).collect();
    insta::assert_snapshot!(stems.join("\n"));
}

#[test]
fn a_machine_without_a_hypervisor_has_cold_cells() {
    let (mut run, _) = run();
    let fact = run.header.host.facts.last_mut().expect("virtualization");
    fact.value = Reading::Exact("no hypervisor".to_owned());
    let analysis = iolens_stats::analyse(&run);
    let shown = text::run(&run, &analysis, &Style { colour: false, width: 100 });
    assert!(shown.contains("1 thread, cold") && !shown.contains("guest-cold"), "{shown}");
}

#[test]
fn what_is_wrong_with_a_file_comes_first() {
    let (mut run, analysis) = run();
    let file = run.header.file.as_mut().expect("a file");
    file.warnings = vec!["it has holes.".to_owned()];
    let screen = crate::screen::screen(&run, &analysis, None);
    assert_eq!(screen.problems[0].words(), "✗ the file: it has holes.");
}

#[test]
fn exports_have_blocks_and_what_was_found_of_the_file() {
    let (run, analysis) = run();
    let foreign = ["message", "topology", "rx_", "zerocopy", "mtu", "receiver", "goodput"];
    for (name, header) in columns_tests::without(&foreign, &run, &analysis) {
        insta::assert_snapshot!(format!("columns_of_{name}"), header);
    }
    let cells: serde_json::Value = serde_json::from_str(&json::all(Rows::Cells(
        std::slice::from_ref(&run),
        std::slice::from_ref(&analysis),
    )))
    .expect("our own JSON");
    insta::assert_snapshot!("a_cell_as_json", format!("{:#}", cells["cells"][0]));
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
