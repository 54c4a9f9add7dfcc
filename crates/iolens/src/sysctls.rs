//! Consent to change sysctls of the whole machine (`--allow-sysctl`): nothing
//! is touched without it, nothing that no cell needs, and everything is put
//! back when the measuring ends, however it does.

use iolens_harness::host::Root;
use iolens_harness::journal::Journal;
use iolens_harness::sysctl::{self, Changed};
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::plan::Plan;
use iolens_net::receivers;

use crate::failure::Failure;
use crate::output;

/// Refuses a plan that asks for what may not be changed here. Changes nothing.
pub(crate) fn check(plan: &Plan) -> Result<(), Failure> {
    if !plan.allow_sysctl() {
        return Ok(());
    }
    sysctl::check(&Root::real(), &receivers::needed_sysctls(&plan.cells()))
        .map_err(Failure::unusable)
}

/// Puts back what a run that was killed has left, and says so.
pub(crate) fn sweep() {
    output::notes(sysctl::sweep(&Journal::here()));
}

/// Sysctls that are changed for as long as this lives; none without consent.
pub(crate) struct Sysctls(Option<Changed>);

impl Sysctls {
    /// Changes what the plan consents to and its cells need.
    pub(crate) fn of_plan(plan: &Plan) -> Result<Sysctls, Failure> {
        if !plan.allow_sysctl() {
            return Ok(Sysctls(None));
        }
        Sysctls::of_cells(&plan.cells())
    }

    /// Changes what these cells need.
    pub(crate) fn of_cells(cells: &[Cell]) -> Result<Sysctls, Failure> {
        let needed = receivers::needed_sysctls(cells);
        if needed.is_empty() {
            output::note("note: nothing needs a sysctl changed here, and none is");
            return Ok(Sysctls(None));
        }
        let (changed, notes) =
            sysctl::change(Journal::here(), &needed).map_err(Failure::unusable)?;
        output::notes(notes);
        for change in changed.iter().flat_map(Changed::changes) {
            output::note(&format!(
                "note: {change} on the whole machine until this run ends; it was {}",
                change.before
            ));
        }
        Ok(Sysctls(changed))
    }

    /// The machine as it is now, if anything was changed.
    pub(crate) fn seen_in(&self, host: HostFacts) -> HostFacts {
        match &self.0 {
            None => host,
            Some(changed) => HostFacts {
                changed: changed.changes().to_vec(),
                ..iolens_harness::host::read(&Root::real()).unwrap_or(host)
            },
        }
    }
}

impl Drop for Sysctls {
    fn drop(&mut self) {
        output::notes(self.0.take().map(Changed::undo).unwrap_or_default());
    }
}
