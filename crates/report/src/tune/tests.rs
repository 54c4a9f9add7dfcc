//! A record by hand, and what is told of it.

use iolens_model::file::Consumer;
use iolens_model::tune::{
    Candidate, Configuration, Extent, LimitKind, Proof, SCHEMA, Stage, Stop, Task, Trial, Way,
    Wishes,
};
use iolens_model::units::Nanos;
use iolens_stats::tune::verdict;

use super::*;
use crate::two_trials_tests;

pub(super) fn engine(id: &str, block_bytes: u64) -> Work {
    let engine = id.to_owned();
    Work::Engine(Configuration { engine, block_bytes, threads: 1, depth: 1 })
}

/// Twelve rounds in which a GiB takes these milliseconds, give or take a little.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some ms")]
fn trials(arms: &[(Work, f64)]) -> Vec<Trial> {
    let mut all = Vec::new();
    for round in 0..12 {
        let wobble = 1.0 + 0.004 * f64::from(round % 4);
        for (nth, (work, ms)) in (0..).zip(arms) {
            let own = 1.0 + 0.002 * f64::from((round + nth) % 3);
            all.push(Trial {
                work: work.clone(),
                stage: Stage::Final,
                round: 30 + round,
                extent: Extent { offset: 0, bytes: 1 << 30 },
                time_ns: Some((ms * wobble * own * 1e6) as u64),
                cpu_ns: Some((ms * 1e6) as u64),
                calls: matches!(work, Work::Engine(_)).then_some(8192),
                resident_before_share: Some(1.0),
                resident_after_share: Some(1.0),
                device_bytes: Some(0),
                failure: None,
            });
        }
    }
    all
}

fn facts() -> Facts {
    Facts {
        file: "/data/big file.bin".to_owned(),
        file_bytes: 1 << 30,
        changed_ns: Some(1),
        file_system: "ext4".to_owned(),
        device: "8:1".to_owned(),
        direct_alignment_bytes: Some(512),
        resident_share: Some(1.0),
        huge_mapped_share: Some(0.0),
        kernel: "6.18.0".to_owned(),
        cpu: "a processor".to_owned(),
        cpus: 4,
        memory_bytes: Some(16 << 30),
        hypervisor: Some("KVM".to_owned()),
        crossing_ns: 100.0,
        ..Facts::default()
    }
}

pub(super) fn record(arms: &[(Work, f64)]) -> Record {
    let candidate = |id: &str, way, calls: &str| Candidate {
        engine: id.to_owned(),
        way,
        has_depth: false,
        is_shared: true,
        calls: calls.to_owned(),
        locked_bytes_max: None,
    };
    Record {
        schema: SCHEMA,
        build: "0.1.0".to_owned(),
        began_ns: 0,
        wishes: Wishes {
            task: Task::Read,
            cache: CacheWish::AsIs,
            consumer: Consumer::Scan,
            threads_max: 4,
            budget: Nanos(20_000_000_000),
            seed: 1,
            bytes_max: None,
        },
        facts: facts(),
        candidates: vec![
            candidate("read", Way::Called, "read(2), each call from where the last one ended"),
            candidate("mmap", Way::Mapped, "mmap(2), pages mapped by faults as they are touched"),
        ],
        pruned: vec![Pruned { what: "uring".to_owned(), why: "io_uring is switched off".into() }],
        programs: vec![(
            "dd".to_owned(),
            ["dd", "if=/data/big file.bin", "of=/dev/null", "bs=128K"].map(str::to_owned).to_vec(),
        )],
        trials: trials(arms),
        device_bytes_per_s: None,
        stop: Stop::Precision,
        proof: Some(Proof { winner: "00ff".to_owned(), plain: "00ff".to_owned(), bytes: 1 << 30 }),
        cure: None,
        duration: Nanos(12_000_000_000),
        stolen: Some(Nanos(0)),
        was_throttled: false,
        notes: Vec::new(),
    }
}

pub(super) fn arms(mmap_ms: f64) -> Vec<(Work, f64)> {
    vec![
        (engine("mmap", 1 << 20), mmap_ms),
        (engine("read", 128 << 10), 120.0),
        (Work::Program("dd".to_owned()), 110.0),
        (Work::Limit { kind: LimitKind::Scan, threads: 1 }, 57.0),
    ]
}

fn told(record: &Record, width: usize, is_verbose: bool) -> String {
    let verdict = verdict(record).expect("a verdict");
    text(record, &verdict, &Style::plain(width), is_verbose)
}

#[test]
fn a_win_is_told_with_its_limit() {
    insta::assert_snapshot!(told(&record(&arms(60.0)), 100, false));
}

#[test]
fn all_that_was_noticed_is_told_when_asked_for() {
    insta::assert_snapshot!(told(&record(&arms(60.0)), 100, true));
}

#[test]
fn a_screen_fits_a_narrow_terminal() {
    let record = record(&arms(119.9));
    for width in [40, 60, 80, 100] {
        let text = told(&record, width, true);
        // A command and a file's name are not broken.
        let long = |line: &&str| line.chars().count() > width && !line.contains("big file.bin");
        assert_eq!(text.lines().find(long), None, "{width}: {text}");
    }
}

#[test]
fn what_is_no_faster_is_no_win() {
    let record = record(&arms(119.9));
    let verdict = verdict(&record).expect("a verdict");
    assert_eq!(verdict.winner.engine, "read", "the simplest of those that are alike");
    assert_eq!(verdict.tied[0].engine, "mmap");
    insta::assert_snapshot!(told(&record, 100, false));
}

#[test]
fn the_binding_limit_comes_first() {
    let mut record = record(&arms(60.0));
    let limit = |record: &Record| {
        let verdict = verdict(record).expect("a verdict");
        (verdict.limits[0].kind, verdict.is_bound)
    };
    assert_eq!(limit(&record), (LimitKind::Scan, false));
    // 8192 calls of 7 µs are 57 ms.
    record.facts.crossing_ns = 7_200.0;
    assert_eq!(limit(&record), (LimitKind::Crossing, true));
    record.facts.crossing_ns = 100.0;
    record.device_bytes_per_s = Some(18e9);
    assert_eq!(limit(&record).0, LimitKind::Scan, "nothing came from the device");
    record.trials.iter_mut().for_each(|trial| trial.device_bytes = Some(1 << 30));
    assert_eq!(limit(&record), (LimitKind::Device, true));
    record.device_bytes_per_s = None;
    (record.was_throttled, record.facts.cgroup_cpus) = (true, Some(1.0));
    assert_eq!(limit(&record), (LimitKind::Cgroup, true));
}

/// Where direct reads had less under way than the winner, the most that they got bounds nothing,
/// whatever its share of that is.
#[test]
fn a_limit_that_is_passed_is_none() {
    let mut record = record(&arms(60.0));
    record.trials.iter_mut().for_each(|trial| trial.device_bytes = Some(1 << 30));
    // Half of the rate.
    record.device_bytes_per_s = Some(9e9);
    let found = verdict(&record).expect("a verdict");
    let kinds: Vec<LimitKind> = found.limits.iter().map(|share| share.kind).collect();
    assert_eq!(kinds, [LimitKind::Scan, LimitKind::Crossing, LimitKind::Device]);
    assert_eq!(json(&record, &found)["verdict"]["is_bound"], false);
    let told = told(&record, 100, false);
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let of = "device: above the most that direct reads got from the device";
    assert!(words.contains(&format!("{of}, which is therefore no bound")), "{told}");
}

#[test]
fn a_record_is_read_back_and_others_are_not() {
    let record = record(&arms(60.0));
    let whole = json(&record, &verdict(&record).expect("a verdict"));
    assert_eq!(record_of(&whole.to_string()).as_ref(), Ok(&record));
    assert_eq!(
        whole["command"],
        "iolens file read '/data/big file.bin' --engine mmap --block-size 1MiB --scan"
    );
    for (other, expect) in [
        ("no", "it is not JSON"),
        ("{}", "it is not a result of `iolens tune`"),
        (r#"{"kind": "tune"}"#, "its record cannot be read"),
        (&whole.to_string().replace(r#""schema":1"#, r#""schema":2"#), "version 2"),
    ] {
        let why = record_of(other).unwrap_err();
        assert!(why.contains(expect), "{why}");
    }
}

#[test]
fn what_has_changed_since_is_named() {
    let then = facts();
    assert_eq!(drift(&then, &then), [""; 0]);
    let now = Facts {
        kernel: "6.19.0".to_owned(),
        file_bytes: 2 << 30,
        changed_ns: Some(2),
        cpus: 8,
        hypervisor: None,
        ..facts()
    };
    insta::assert_snapshot!(drift(&then, &now).join("\n"), @"
    the file's size was 1 GiB and is 2 GiB
    the kernel was 6.18.0 and is 6.19.0
    the number of processors was 4 and is 8
    the hypervisor was KVM and is none
    ");
    let touched = Facts { changed_ns: Some(2), ..facts() };
    assert_eq!(drift(&then, &touched), ["the file has been written to since"]);
}

#[test]
fn no_end_of_an_interval_that_says_nothing_is_printed() {
    let mut record = record(&arms(60.0));
    record.trials.retain(|trial| trial.round < 32);
    // Arms take turns in being two thousand times slower.
    for (nth, trial) in record.trials.iter_mut().enumerate() {
        let is_slow = (nth as u64 + u64::from(trial.round)).is_multiple_of(2);
        trial.time_ns = trial.time_ns.map(|ns| if is_slow { ns * 2000 } else { ns });
    }
    let told = told(&record, 100, true);
    assert!(told.contains("[no interval]"), "{told}");
    assert!(two_trials_tests::absurd(&told).is_empty(), "{told}");
}

#[test]
fn sizes_are_as_the_command_line_takes_them() {
    assert_eq!([4096, 8 << 20, 100].map(super::size_argument), ["4KiB", "8MiB", "100"]);
}
