//! Going on with a stored run: the same plan, the same work in every slice,
//! the same arms left out, from the pass after the last complete one. A pass
//! that was cut short is done again whole; what it has stored stays, and the
//! analysis takes the later trial of two.

use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_stats::Fold;

use super::{Course, Means, own};
use crate::failure::Failure;

/// Goes on with `run` for at most `budget` and returns it as it is stored.
pub(crate) fn resume(run: Run, budget: Nanos, means: Means<'_>) -> Result<Run, Failure> {
    let Run { mut header, trials, searches, .. } = run;
    let fold = Fold::of(&header, &trials);
    let reached = iolens_stats::reached(&header, fold.values());
    header.end = None;
    let mut course = Course::new(header, budget, means)?;
    for trial in &trials {
        let plan = &course.builds[0].header.plan;
        if let Some(state) = course.cells.iter_mut().find(|state| state.cell == trial.cell) {
            state.recall(plan, trial);
        }
    }
    course.builds[0].fold = fold;
    course.searches = searches;
    course.builds[0].history = reached.history;
    course.run_from(reached.pass + 1).map(own)
}
