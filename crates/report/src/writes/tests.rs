//! A run that writes with known times, in every form that is shown.

use iolens_model::cell::Cell;
use iolens_model::file::{
    Destination, EngineFacts, FileCounts, FileFacts, Pattern, WriteAxes, WritingFacts,
};
use iolens_model::outcome::TrialOutcome;
use iolens_model::plan::Axes;
use iolens_model::run::RunHeader;
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::analysis::Analysis;

use super::*;
use crate::export::Rows;
use crate::files::tests::{
    counts, engine, foreign, has_sections, header as header_of_reads, shown, trial_of, with_roles,
};
use crate::{csv, figure, findings, fixture, html, json};

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
    let mut header = header_of_reads();
    header.plan.axes = Axes::Write(WriteAxes {
        destination: Destination::ALL.to_vec(),
        pattern: vec![Pattern::Sequential],
        depth: vec![1],
        dir: Some("/scratch".to_owned()),
        file_bytes: None,
    });
    header.plan.primitives = ENGINES.iter().map(|engine| engine.0.to_owned()).collect();
    header.plan.baseline = "write".to_owned();
    header.plan.sizes = [512, 4096, 65536, 1 << 20].map(Bytes).to_vec();
    header.plan.threads = vec![1];
    let facts = |&(id, is_direct, is_durable, ..): &(&str, bool, bool, f64, f64)| EngineFacts {
        is_direct,
        is_durable,
        ..engine(id)
    };
    header.engines = ENGINES.iter().map(facts).collect();
    header.file = Some(FileFacts {
        bytes: Bytes(6 * REGION),
        size_reason: "more than is written in many slices".to_owned(),
        first_pass: None,
        writing: Some(WritingFacts {
            region: Bytes(REGION),
            regions: 6,
            dirty_background: Some(Bytes(2 << 30)),
            flushes: [400, 450, 500].map(|us| Nanos(us * 1000)).to_vec(),
        }),
        ..header.file.expect("a file")
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
            let block_ns = (fixed + per_byte * cell.size.0 as f64) * stray;
            (id, counts(cell, blocks, block_ns, found))
        };
    trial_of(like, cell, pass, &with_roles(ENGINES.map(arm)))
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

#[test]
fn what_show_prints() {
    let (run, analysis) = run();
    let text = shown(&run, &analysis, 100);
    foreign(&text);
    assert!(!text.contains("from device") && !text.contains("warm"), "{text}");
    shown(&run, &analysis, 80);
    insta::assert_snapshot!(text);
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

#[test]
fn a_flush_that_cannot_be_one_is_said_to_be_none() {
    let (mut run, analysis) = run();
    let said = |run: &Run| -> String {
        let text = shown(run, &analysis, 100);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
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
fn rows_and_columns_are_of_writes() {
    let (run, analysis) = run();
    let whole: serde_json::Value =
        serde_json::from_str(&json::run(&run, &analysis)).expect("our own JSON parses");
    let cell = &whole["cells"][0];
    assert!(cell["write_bytes_per_s"].is_number() && cell["destination"] == "existing", "{cell}");
    let columns = |text: String| text.lines().next().unwrap_or_default().replace(',', "\n");
    insta::assert_snapshot!(
        "columns_of_arms",
        columns(csv::all(Rows::Arms(std::slice::from_ref(&run))))
    );
    insta::assert_snapshot!(
        "columns_of_slices",
        columns(csv::all(Rows::Slices(std::slice::from_ref(&run))))
    );
}

#[test]
fn figures_and_page_are_of_writes() {
    let (run, analysis) = run();
    let names: Vec<String> =
        figure::all(&run, &analysis).into_iter().map(|figure| figure.file_stem).collect();
    insta::assert_snapshot!("figures_by_name", names.join("\n"));
    let page = html::page(&run, &analysis);
    has_sections(&page, &["answer", "why", "figures", "numbers", "trust", "machine"]);
    assert!(page.contains("<h1>write wins in all 8 settings</h1>") && page.contains("left dirty"));
    assert!(!page.contains("From device") && !page.contains("warm"));
}
