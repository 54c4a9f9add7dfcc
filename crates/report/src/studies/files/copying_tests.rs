//! A run that copies with known times, in every form that is shown.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::copy::{CopyAxes, CopySync, ProgramStart};
use iolens_model::file::{CacheState, DestinationFacts, EngineFacts, FileCounts, FileFacts};
use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::plan::Axes;
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::Bytes;
use iolens_stats::analysis::Analysis;

use crate::fixture;
use crate::fixture::alone;
use crate::studies::tests::cells_as_json;

/// id, whether it is a program, ns of a start, ns per byte.
const ARMS: [(&str, bool, f64, f64); 4] = [
    ("dd", true, 900_000.0, 0.40),
    ("copy_file_range", false, 4_000.0, 0.30),
    ("cp", true, 1_000_000.0, 0.3),
    ("reflink", false, 20_000.0, 0.0),
];

fn header() -> RunHeader {
    let axes = Axes::Copy(CopyAxes {
        block: vec![Bytes(4096)],
        cache: vec![CacheState::Warm],
        sync: vec![CopySync::None],
        file: None,
        dir: Some("/scratch".to_owned()),
        evict: false,
        external: Vec::new(),
    });
    let sizes = [1 << 20, 10 << 20, 100 << 20];
    let mut header = alone::header(axes, ARMS.map(|arm| arm.0), &sizes, &[1]);
    header.calibration.as_mut().unwrap().empty_call_ns = 90.0;
    header.calibration.as_mut().unwrap().receipt_round_trip_ns = None;
    let facts = |&(id, is_program, ..): &(&str, bool, f64, f64)| EngineFacts {
        program: is_program.then(|| vec![id.to_owned(), "{src}".to_owned(), "a b".to_owned()]),
        ..alone::engine(id)
    };
    header.engines = ARMS.iter().map(facts).collect();
    header.file = Some(FileFacts {
        destination: Some(DestinationFacts {
            place: "/scratch".to_owned(),
            file_system: "ext4".to_owned(),
        }),
        ..alone::file(111 << 20, "one file of each size of the plan")
    });
    header
}

fn trial(like: &TrialOutcome, cell: &Cell, pass: u32) -> TrialOutcome {
    let roles = [Role::Baseline, Role::Compared, Role::Compared, Role::Control];
    let arm = |((id, is_program, start, per_byte), role): ((&str, bool, f64, f64), Role)| {
        let copy_ns = start + per_byte * cell.size.0 as f64;
        let time_ns = alone::whole(2.0 * copy_ns * (1.0 + 0.001 * f64::from(pass % 3)));
        let calls = match role {
            _ if is_program => None,
            Role::Control => Some(2),
            _ => Some(cell.size.0 / 4096),
        };
        let bytes = if role == Role::Control { 0 } else { 2 * cell.size.0 };
        let tx = Counts {
            calls,
            migrations: (!is_program).then_some(0),
            file: Some(FileCounts {
                resident_before_bytes: Some(cell.size.0),
                resident_after_bytes: Some(cell.size.0),
                device_bytes: Some(0),
                ..FileCounts::default()
            }),
            ..alone::counts(2, bytes, time_ns)
        };
        (alone::arm(id, role), tx)
    };
    let all = ARMS.into_iter().zip(roles).chain([(ARMS[0], Role::SelfCheck)]);
    let mut trial = alone::measured(like, cell, pass, all.map(arm));
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
fn calls_of_programs_are_null_and_their_starts_are_told() {
    let (run, analysis) = run();
    let rows = cells_as_json(&run, &analysis);
    let of = |id: &str| rows.iter().find(|row| row["primitive"] == id).expect("a row");
    assert!(of("dd")["system_calls_per_copy"].is_null(), "{}", of("dd"));
    assert!(of("copy_file_range")["system_calls_per_copy"].is_number());
    assert_eq!(of("cp")["start_min_ns"], 800_000);
    assert!(of("copy_file_range")["start_min_ns"].is_null());
    assert_eq!(of("dd")["file_bytes"], 1 << 20);
}
