//! Which stored run answers a question about one cell, and why the others do not. Nothing
//! is answered from a run that is only nearly like it: not from another size, and not from
//! another machine.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::outcome::Status;
use iolens_model::run::{Part, RunHeader, StoppedBy};

use crate::analysis::{Analysis, ArmAnalysis, CellAnalysis};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The cell that is asked about.
    pub cell: Cell,
    /// Arms that a run must have, the baseline among them.
    pub primitives: Vec<String>,
    /// The arm that the others are compared with.
    pub baseline: String,
}

iolens_model::words! {
    /// Why a stored run does not answer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Unfit {
        /// It was imported.
        Imported = "that came from another file, of whatever machine",
        /// It is of another CPU model, kernel or set of CPUs.
        Machine = "on another CPU model, kernel or set of CPUs",
        /// It did not measure the cell.
        Cell = "without this message, threads and topology",
        /// It compared other arms, or with another baseline.
        Arms = "with other primitives, or another baseline",
        /// Its arms did not alternate in slices.
        Classic = "whose arms did not alternate",
        /// It goes on, was killed, or measured nothing.
        Unfinished = "that did not come to an end",
    }
}

impl Asked {
    /// Whether a run can answer on this machine, as far as its header tells.
    ///
    /// Errors: the first reason why not, the nearest to an answer last.
    pub fn fits(&self, header: &RunHeader, host: &HostFacts) -> Result<(), Unfit> {
        // However alike that machine is: nobody has seen that it is this one.
        if header.origin.is_some() {
            return Err(Unfit::Imported);
        }
        // Another boot or build is no other machine, and is said beside the answer.
        let moved = |part| matches!(part, Part::Kernel | Part::CpuModel | Part::Cpus);
        if header.changes(&header.build, host).iter().any(|change| moved(change.part)) {
            return Err(Unfit::Machine);
        }
        let plan = &header.plan;
        if !plan.cells().contains(&self.cell) {
            return Err(Unfit::Cell);
        }
        let has = |id: &String| plan.primitives.contains(id);
        if plan.baseline != self.baseline || !self.primitives.iter().all(has) {
            return Err(Unfit::Arms);
        }
        if !plan.schedule.is_sliced() || plan.isolate {
            return Err(Unfit::Classic);
        }
        match header.end.as_ref().map(|end| end.stopped_by) {
            None | Some(StoppedBy::NothingUsable) => Err(Unfit::Unfinished),
            Some(_) => Ok(()),
        }
    }
}

/// Runs that fit, in the order in which they are asked: those with verdicts before first
/// looks, and of these the later ones first. `headers` are oldest first.
pub fn by_preference(mut headers: Vec<RunHeader>) -> Vec<RunHeader> {
    headers.reverse();
    // Stable: what is later stays before what is earlier.
    headers.sort_by_key(|header| header.plan.quick);
    headers
}

/// A cell of an analysis.
pub fn find<'a>(analysis: &'a Analysis, cell: &Cell) -> Option<&'a CellAnalysis> {
    analysis.cells.iter().find(|known| known.cell == *cell)
}

/// Whether an analysis can be believed about a cell: its self-checks hold, and beside the
/// baseline at least one arm has numbers.
pub fn is_usable(analysis: &Analysis, cell: &Cell) -> bool {
    let check = &analysis.self_check;
    let arms = find(analysis, cell).map_or(&[][..], |cell| &cell.arms);
    let ok = |role: Role| {
        let ranked = |arm: &ArmAnalysis| {
            role == Role::Baseline || arm.verdict().is_some_and(|verdict| verdict.is_ranked())
        };
        arms.iter().any(|arm| arm.arm.role == role && arm.status == Status::Ok && ranked(arm))
    };
    check.failed().is_none() && ok(Role::Baseline) && ok(Role::Compared)
}

#[cfg(test)]
mod tests {
    use iolens_model::origin::Origin;
    use iolens_model::plan::Schedule;
    use iolens_model::run::RunEnd;
    use iolens_model::units::{Bytes, Nanos};

    use super::*;
    use crate::{analyse, fixture};

    fn header(quick: bool) -> RunHeader {
        let mut header = fixture::run(fixture::plan(&["base", "arm"])).header;
        header.plan.quick = quick;
        let end = RunEnd {
            finished_unix_ns: 1,
            stopped_by: StoppedBy::Passes,
            unmet: Vec::new(),
            paused_ns: 0,
        };
        header.end = Some(end);
        header
    }

    fn asked() -> Asked {
        Asked {
            cell: header(false).plan.cells().remove(0),
            primitives: vec!["base".to_owned(), "arm".to_owned()],
            baseline: "base".to_owned(),
        }
    }

    fn check(change: impl Fn(&mut RunHeader), expect: Result<(), Unfit>) {
        let mut changed = header(false);
        change(&mut changed);
        assert_eq!(asked().fits(&changed, &header(false).host), expect);
    }

    #[test]
    fn only_the_very_cell_on_this_machine_answers() {
        check(|_| {}, Ok(()));
        check(|header| header.build = "older".to_owned(), Ok(()));
        check(|header| header.plan.sizes = vec![Bytes(512), Bytes(1024)], Ok(()));
        check(|header| header.plan.sizes = vec![Bytes(1025)], Err(Unfit::Cell));
        check(|header| header.plan.threads = vec![2], Err(Unfit::Cell));
        check(|header| header.plan.primitives.truncate(1), Err(Unfit::Arms));
        check(|header| header.plan.baseline = "arm".to_owned(), Err(Unfit::Arms));
        check(|header| header.host.cpus.push(2), Err(Unfit::Machine));
        check(|header| header.end = None, Err(Unfit::Unfinished));
        let origin = Origin { host: "a".into(), path: "a.db".into(), imported_unix_ns: 1 };
        check(|header| header.origin = Some(origin.clone()), Err(Unfit::Imported));
        // What is of another machine is not looked at further.
        let elsewhere = |header: &mut RunHeader| {
            header.plan.sizes = vec![Bytes(1025)];
            header.host.cpus.push(2);
        };
        check(elsewhere, Err(Unfit::Machine));
        check(
            |header| {
                elsewhere(header);
                header.origin = Some(origin.clone());
            },
            Err(Unfit::Imported),
        );
        let messages = Schedule::Messages { messages: 1 };
        check(|header| header.plan.schedule = messages, Err(Unfit::Classic));
        let window = Schedule::Window { window: Nanos(1) };
        check(|header| header.plan.schedule = window, Err(Unfit::Classic));
        let more = Asked { primitives: vec!["third".to_owned()], ..asked() };
        assert_eq!(more.fits(&header(false), &header(false).host), Err(Unfit::Arms));
    }

    #[test]
    fn verdicts_go_before_first_looks_and_later_runs_before_earlier_ones() {
        let named = |id: &str, quick| RunHeader { id: id.to_owned(), ..header(quick) };
        let all = vec![named("a", false), named("b", true), named("c", false), named("d", true)];
        let ids: Vec<String> = by_preference(all).into_iter().map(|header| header.id).collect();
        assert_eq!(ids, ["c", "a", "d", "b"]);
    }

    #[test]
    fn what_cannot_be_believed_does_not_answer() {
        let run = fixture::passes(&[1.1, 1.2, 1.1, 1.2, 1.15]);
        let cell = run.header.plan.cells().remove(0);
        let analysis = analyse(&run);
        assert!(is_usable(&analysis, &cell));
        assert!(!is_usable(&analysis, &Cell { size: Bytes(7), ..cell.clone() }));
        let mut broken = analysis.clone();
        broken.self_check.judged = 1;
        assert!(!is_usable(&broken, &cell));
        let mut broken = analysis.clone();
        broken.cells[0].arms[0].status = Status::Failed;
        assert!(!is_usable(&broken, &cell));
        let mut broken = analysis;
        broken.cells[0].arms.iter_mut().for_each(|arm| arm.contrast = None);
        assert!(!is_usable(&broken, &cell));
    }
}
