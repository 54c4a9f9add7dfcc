//! `confirm`: which runs can be, and how a run that confirms another is told from it. What it
//! measures takes a while, and is a line of the acceptance.

use iolens_harness::host::{Root, read};
use iolens_model::run::RunHeader;

use crate::harness::Place;
use crate::sample;

/// A run, and one that confirms it.
fn two_runs() -> Place {
    let place = Place::new();
    let own = |id| RunHeader { host: read(&Root::real()), ..sample::header(id) };
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
            (
                "confirm bb000002",
                "run bb000002 itself looks at the crossovers of run aa000001 anew",
            ),
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
