//! A run that copies with known times, in every form that is shown.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::copy::{CopyAxes, CopySync};
use iolens_model::file::{CacheState, DestinationFacts, EngineFacts, FileCounts, FileFacts};
use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::plan::Axes;
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::Bytes;
use iolens_stats::analysis::Analysis;

use super::*;
use crate::export::Rows;
use crate::files::tests::{
    counts, engine, has_none_of, has_sections, page_and_figures_have_none_of, shown, trial_of,
};
use crate::{columns_tests, figure, fixture, json};

/// id, whether it is a program, ns of a start, ns per byte.
const ARMS: [(&str, bool, f64, f64); 4] = [
    ("dd", true, 900_000.0, 0.40),
    ("copy_file_range", false, 4_000.0, 0.30),
    ("cp", true, 1_000_000.0, 0.3),
    ("reflink", false, 20_000.0, 0.0),
];

fn header() -> RunHeader {
    let mut header = fixture::run().0.header;
    header.name = None;
    header.plan.axes = Axes::Copy(CopyAxes {
        block: vec![Bytes(4096)],
        cache: vec![CacheState::Warm],
        sync: vec![CopySync::None],
        file: None,
        dir: Some("/scratch".to_owned()),
        evict: false,
        external: Vec::new(),
    });
    header.plan.primitives = ARMS.iter().map(|arm| arm.0.to_owned()).collect();
    header.plan.baseline = "dd".to_owned();
    header.plan.sizes = [1 << 20, 10 << 20, 100 << 20].map(Bytes).to_vec();
    header.plan.threads = vec![1];
    header.primitives = Vec::new();
    header.calibration.empty_call_ns = 90.0;
    header.calibration.receipt_round_trip_ns = None;
    header.end.as_mut().expect("it ended").unmet = Vec::new();
    let facts = |&(id, is_program, ..): &(&str, bool, f64, f64)| EngineFacts {
        program: is_program.then(|| vec![id.to_owned(), "{src}".to_owned(), "a b".to_owned()]),
        ..engine(id)
    };
    header.engines = ARMS.iter().map(facts).collect();
    header.file = Some(FileFacts {
        place: "/scratch".to_owned(),
        is_ours: true,
        bytes: Bytes(111 << 20),
        size_reason: "one file of each size of the plan".to_owned(),
        file_system: "ext4".to_owned(),
        first_pass: None,
        warnings: Vec::new(),
        destination: Some(DestinationFacts {
            place: "/scratch".to_owned(),
            file_system: "ext4".to_owned(),
        }),
        writing: None,
        dropped: Vec::new(),
    });
    header
}

fn trial(like: &TrialOutcome, cell: &Cell, pass: u32) -> TrialOutcome {
    let roles = [Role::Baseline, Role::Compared, Role::Compared, Role::Control];
    let found = FileCounts {
        resident_before_bytes: Some(cell.size.0),
        resident_after_bytes: Some(cell.size.0),
        device_bytes: Some(0),
        ..FileCounts::default()
    };
    let arm = |((id, is_program, start, per_byte), role): ((_, bool, f64, f64), Role)| {
        let copy_ns = start + per_byte * cell.size.0 as f64;
        let own = counts(cell, 2, copy_ns * (1.0 + 0.001 * f64::from(pass % 3)), found);
        let is_control = role == Role::Control;
        let calls = if is_control { 2 } else { cell.size.0 / 4096 };
        let own = Counts {
            bytes: if is_control { 0 } else { own.bytes },
            calls: (!is_program).then_some(calls),
            migrations: (!is_program).then_some(0),
            ..own
        };
        (id, role, own)
    };
    let arms: Vec<_> = ARMS.into_iter().zip(roles).map(arm).collect();
    let mut trial = trial_of(like, cell, pass, &arms);
    let start = |arm| ProgramStart {
        arm,
        runs: 21,
        median_ns: 880_000 + u64::from(pass) * 1000,
        min_ns: 800_000,
        max_ns: 2_000_000,
    };
    trial.tx.as_mut().expect("its end answered").starts = [0, 2, 4].map(start).to_vec();
    trial
}

pub(crate) fn run() -> (Run, Analysis) {
    fixture::of_trials(header(), trial)
}

#[test]
fn every_arm_is_usable_and_what_shares_blocks_is_judged_by_nobody() {
    let (_, analysis) = run();
    for arm in analysis.arms() {
        assert_eq!(arm.status, Status::Ok, "{:?}", arm.reason);
        let is_compared = arm.arm.role == Role::Compared;
        assert_eq!(arm.verdict().is_some() && is_compared, is_compared, "{}", arm.arm.label);
        assert!(arm.arm.role != Role::Control || arm.verdict().is_none());
    }
}

#[test]
fn what_show_prints() {
    let (run, analysis) = run();
    let text = shown(&run, &analysis, 100);
    has_none_of(&FOREIGN, &text);
    shown(&run, &analysis, 80);
    insta::assert_snapshot!(text);
    let page = crate::html::page(&run, &analysis);
    has_sections(&page, &["answer", "why", "figures", "numbers", "trust", "machine"]);
}

/// Words of messages and of blocks that are read have no place where files are copied.
const FOREIGN: [&str; 7] =
    ["message", "goodput", "per block", "gbit/s", "receiver", "thread pairs", "copys"];

#[test]
fn no_page_and_no_figure_has_words_of_other_studies() {
    let (run, analysis) = run();
    page_and_figures_have_none_of(&FOREIGN, &run, &analysis);
    let figures = figure::all(&run, &analysis);
    let stems: Vec<&str> = figures.iter().map(|figure| &*figure.file_stem).collect();
    insta::assert_snapshot!("figures_by_name", stems.join("\n"));
}

#[test]
fn calls_of_programs_are_null_and_their_starts_are_told() {
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
    let rows = cells["cells"].as_array().expect("rows");
    let of = |id: &str| rows.iter().find(|row| row["primitive"] == id).expect("a row");
    assert!(of("dd")["system_calls_per_copy"].is_null(), "{}", of("dd"));
    assert!(of("copy_file_range")["system_calls_per_copy"].is_number());
    assert_eq!(of("cp")["start_min_ns"], 800_000);
    assert!(of("copy_file_range")["start_min_ns"].is_null());
    assert_eq!(of("dd")["file_bytes"], 1 << 20);
}
