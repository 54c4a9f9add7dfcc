//! `confirm`: which runs can be, and how a run that confirms another is told from it. What it
//! measures takes a while, and is a line of the acceptance.

use iolens_harness::host::{Root, read};
use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::outcome::{Counts, EndFacts, SliceOutcome, TrialOutcome};
use iolens_model::reading::Reading;
use iolens_model::run::RunHeader;
use iolens_model::units::Bytes;
use iolens_store::Store;
use serde_json::Value;

use crate::harness::{Place, list};
use crate::sample;

/// A run, and one that confirms it.
fn two_runs() -> Place {
    let place = Place::new();
    let own = |id| RunHeader { host: read(&Root::real()).unwrap(), ..sample::header(id) };
    let confirms = Some("aa000001".to_owned());
    place.with_runs(&[own("aa000001"), RunHeader { confirms, ..own("bb000002") }]);
    place
}

#[test]
fn what_cannot_be_confirmed_is_refused_with_the_reason() {
    let place = two_runs();
    place.fail_each(
        2,
        [
            ("confirm aa000001", "run aa000001 shows no crossover"),
            ("confirm bb000002", "run bb000002 already confirms the crossovers of run aa000001"),
            ("confirm cc000003", "no run `cc000003`"),
        ],
    );
    assert_eq!(place.runs(), 2);
}

#[test]
fn a_run_that_confirms_another_is_told_from_it() {
    let place = two_runs();
    assert_eq!(place.json("show last --json")["run"]["id"], "aa000001");
    place.run("runs").prints("confirms aa000001");
    let shown = place.run("show bb000002").flat();
    assert!(
        shown.contains("confirms the crossovers of run aa000001: iolens show aa000001 has"),
        "{shown}"
    );
}

/// Stores a run of 12 passes in which the second of two arms is faster by a tenth for each
/// doubling above 2 KiB, and slower by as much below it.
fn measured(place: &Place, file: &str, sizes: &[u64], header: &RunHeader) {
    let mut header = header.clone();
    header.plan.sizes = sizes.iter().copied().map(Bytes).collect();
    let mut store = Store::open(&place.path(file)).unwrap();
    store.begin_run(&header).unwrap();
    for pass in 1..=12 {
        for (cell, position) in header.plan.cells().into_iter().zip(0..) {
            let stray = 1.0 + 0.001 * f64::from(pass % 3);
            let faster =
                1.1_f64.powf((f64::from(u32::try_from(cell.size.0).unwrap()) / 2048.0).log2());
            let trial = trial(&cell, [5000.0, 5000.0 / faster * stray, 5000.0 * stray]);
            let trial = TrialOutcome { pass, position, ..trial };
            store.append_trial(&header.id, &trial).unwrap();
        }
    }
    store.end_run(&header.id, &sample::end()).unwrap();
}

/// A trial of two arms and a self-check, which take these times a message, ns.
fn trial(cell: &Cell, message_ns: [f64; 3]) -> TrialOutcome {
    let whole = sample::trial(1, 0);
    let arms = [
        ("send_staged", Role::Baseline),
        ("sendmsg_iov", Role::Compared),
        ("send_staged (A/A)", Role::SelfCheck),
    ];
    let arms = arms.map(|(label, role)| {
        let primitive = label.trim_end_matches(" (A/A)").to_owned();
        let arm = Arm { label: label.to_owned(), primitive, role };
        ArmOutcome { arm, ..whole.arms[0].clone() }
    });
    let slice = |seq: u32| {
        let arm = seq as usize % 3;
        let messages = 10_000;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let time_ns = (message_ns[arm] * 10_000.0) as u64;
        let bytes = messages * cell.size.0;
        let tx = Counts { messages, bytes, calls: Some(messages), time_ns, ..Counts::default() };
        let (round, all_active_ns) = (seq / 3, time_ns / 100 * 95);
        SliceOutcome { seq, round, arm, tx, rx: Some(tx), all_active_ns, ..whole.slices[0].clone() }
    };
    let slices = (0..12).map(slice).collect();
    let end = EndFacts {
        build: "iolens 0.1.0".to_owned(),
        message_bytes: cell.size.0,
        threads: cell.threads,
        thread_cpus: vec![vec![0]],
        congestion: Some("reno".to_owned()),
        send_buffer_bytes: Some(8 << 20),
        receive_buffer_bytes: Some(8 << 20),
        nodelay: Some(true),
        ..EndFacts::default()
    };
    let (tx, rx) = (Some(end.clone()), Some(end));
    let (cell, arms, duration_ns) = (cell.clone(), arms.to_vec(), 1_000_000_000);
    TrialOutcome { cell, arms, slices, duration_ns, tx, rx, ..whole }
}

/// Whoever made the file that is imported chose what its run confirms.
#[test]
fn only_a_run_of_the_same_machine_adds_a_point() {
    let (ends, inside) = ([1024, 8192], [1024, 1500, 3000, 8192]);
    let own = RunHeader { host: read(&Root::real()).unwrap(), ..sample::header("aa000001") };
    let confirms = |id: &str, host: HostFacts| RunHeader {
        confirms: Some("aa000001".to_owned()),
        host,
        ..sample::header(id)
    };
    let place = Place::new();
    let database = "data/iolens/iolens.db";
    measured(&place, database, &ends, &own);
    measured(&place, "theirs.db", &inside, &confirms("bb000002", own.host.clone()));
    let points = || {
        let shown = place.run("show aa000001 --json").ended(0);
        let of = |crossing: &Value| crossing["run"].as_str().unwrap().to_owned();
        let runs: Vec<String> = list(&shown.json()["crossings"]).iter().map(of).collect();
        (runs, shown.stderr)
    };
    place.run("import --host other PLACE/theirs.db").ended(0);
    let (runs, said) = points();
    let why = "run bb000002, which confirms run aa000001, is left out: it was measured on other, \
               and that run here";
    assert!(runs.is_empty() && said.contains(why), "{runs:?} {said}");

    let larger = HostFacts { memory: Reading::Exact(Bytes(1 << 60)), ..own.host.clone() };
    measured(&place, database, &inside, &confirms("cc000003", larger));
    let (runs, said) = points();
    let why = "run cc000003, which confirms run aa000001, is left out: it is of another machine \
               (memory: ";
    assert!(runs.is_empty() && said.contains(why), "{runs:?} {said}");

    measured(&place, database, &inside, &confirms("dd000004", own.host.clone()));
    assert_eq!(points().0, ["dd000004"]);
}
