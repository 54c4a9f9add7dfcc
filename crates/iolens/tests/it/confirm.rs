//! `confirm`: which runs can be, and how a run that confirms another is told from it. What it
//! measures takes a while, and is a line of the acceptance.

use iolens_engine::host::{Root, read};
use iolens_model::run::RunHeader;
use iolens_store::Store;

use crate::harness::Place;
use crate::sample;

/// A run, and one that confirms it.
fn two_runs() -> Place {
    let place = Place::new();
    let mut store = Store::open(&place.path("data/iolens/iolens.db")).unwrap();
    let own = |id| RunHeader { host: read(&Root::real()), ..sample::header(id) };
    store.begin_run(&own("aa000001")).unwrap();
    let confirms = Some("aa000001".to_owned());
    store.begin_run(&RunHeader { confirms, ..own("bb000002") }).unwrap();
    for id in ["aa000001", "bb000002"] {
        store.append_trial(id, &sample::trial(1, 0)).unwrap();
        store.end_run(id, &sample::end()).unwrap();
    }
    place
}

#[test]
fn what_cannot_be_confirmed_is_refused_with_the_reason() {
    let place = two_runs();
    for (run, expect) in [
        ("aa000001", "in run aa000001 no way to send is ahead of another at one end"),
        ("bb000002", "run bb000002 itself looks at the crossovers of run aa000001 anew"),
        ("cc000003", "no run `cc000003`"),
    ] {
        let done = place.run(&format!("confirm {run}"));
        assert_eq!(done.code, Some(2), "{run}: {}", done.stderr);
        assert!(done.stderr.contains(expect), "{run}: {}", done.stderr);
    }
    assert_eq!(place.json("runs --json").as_array().unwrap().len(), 2);
}

#[test]
fn a_run_that_confirms_another_is_told_from_it() {
    let place = two_runs();
    assert_eq!(place.json("show last --json")["run"]["id"], "aa000001");
    let listed = place.run("runs").stdout;
    assert!(listed.contains("confirms aa000001"), "{listed}");
    let shown = place.run("show bb000002").stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("confirms the crossovers of run aa000001: iolens show aa000001 has"),
        "{shown}"
    );
}
