//! Arms that are measured alone, and their baseline too.

use iolens_model::outcome::Status;

use super::tests::{isolate, spoil};
use crate::analyse;
use crate::estimate::Verdict;
use crate::fixture::{self, arm};
use crate::remark::VerdictReason;

/// What refuses it refuses shared trials; the passes in which it happened to be usable would be
/// a selection here too.
#[test]
fn a_baseline_refused_in_most_isolated_passes_leaves_nothing_to_compare_with() {
    let found = |isolate_all: bool, passes: &[u32]| {
        let mut run = match isolate_all {
            true => fixture::run(fixture::plan(&["base", "arm"])),
            false => fixture::passes(&[1.25; 5]),
        };
        run.header.plan.isolate = isolate_all;
        isolate(&mut run, 5);
        let bases = run.trials.iter_mut().filter(|t| t.isolated && t.arms[0].arm.label == "base");
        bases.filter(|trial| passes.contains(&trial.pass)).for_each(|trial| spoil(trial, "base"));
        let analysis = analyse(&run);
        let found = arm(&analysis, "arm");
        assert_eq!(found.status, Status::Ok, "its own numbers can be used");
        let contrast = if isolate_all { &found.contrast } else { &found.isolated };
        contrast.clone().expect("a contrast")
    };
    for isolate_all in [true, false] {
        let contrast = found(isolate_all, &[1, 2, 3]);
        assert_eq!((contrast.n, contrast.verdict), (2, Verdict::Invalid), "{isolate_all}");
        let VerdictReason::BaselineUnusable(why) = contrast.reason else {
            panic!("{:?}", contrast.reason)
        };
        assert!(why.reason.starts_with("3 of 5 passes cannot be used: received bytes"), "{why:?}");
        let some = found(isolate_all, &[1, 2]);
        assert_eq!((some.n, some.verdict), (3, Verdict::Faster), "{isolate_all}");
    }
}
