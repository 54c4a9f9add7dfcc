//! What is compared: of every arm so much for each message, less being better. One
//! place says what that is in a cell; ratios, the noise floor, stopping, drift and
//! verdicts follow.

use iolens_model::cell::{Cell, Setting};
use iolens_model::outcome::{Counts, SliceOutcome};
use serde::Serialize;

use crate::interval::Parts;
use crate::sums::{Sums, arrived};

iolens_model::words! {
    /// A quantity of which an arm takes so much for each message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Quantity {
        /// Time, ns.
        Time = "time",
        /// CPU time of a server's threads and children, user and kernel, ns.
        ServerCpu = "server CPU time",
        /// CPU time of the threads of both ends of a connection, user and kernel, ns; of the
        /// sending end where there is no other.
        Cpu = "CPU time of both ends",
    }
}

impl Quantity {
    /// At most so many are compared in a cell.
    pub(crate) const MOST: usize = 2;

    /// What decides in a cell.
    ///
    /// Time, but where requests come by a schedule: there the time from one to the next
    /// is the schedule's, the same for every server, and says nothing about any.
    pub fn of(cell: &Cell) -> Quantity {
        match cell.server() {
            Some(setting) if setting.is_open_loop() => Quantity::ServerCpu,
            _ => Quantity::Time,
        }
    }

    /// Everything that is compared in a cell.
    pub(crate) fn all(cell: &Cell) -> &'static [Quantity] {
        match &cell.setting {
            Setting::Server(setting) if setting.is_open_loop() => &[Quantity::ServerCpu],
            Setting::Server(_) => &[Quantity::Time, Quantity::ServerCpu],
            Setting::Net(_) => &[Quantity::Time, Quantity::Cpu],
            _ => &[Quantity::Time],
        }
    }

    /// The CPU time that is compared in a cell; `None` where none is.
    pub fn cpu_of(cell: &Cell) -> Option<Quantity> {
        Quantity::all(cell).iter().copied().find(|&quantity| quantity != Quantity::Time)
    }

    /// By how many quantities a run says who is ahead in a cell: of messages by the time alone,
    /// unless somebody asks for both.
    pub(crate) fn claimed(cell: &Cell) -> usize {
        Quantity::between_runs(cell).count()
    }

    /// What one run is held against another by: of messages the time, which decides.
    pub(crate) fn between_runs(cell: &Cell) -> impl Iterator<Item = Quantity> {
        Quantity::all(cell).iter().copied().filter(|&quantity| quantity != Quantity::Cpu)
    }

    /// So much over so many messages, of a trial; `None` where either is zero or was not
    /// counted.
    pub(crate) fn of_trial(self, sums: &Sums) -> Option<Parts> {
        // An end that was counted in some slices only has no CPU time to add.
        let is_whole = sums.rx_slices == 0 || sums.received().is_some();
        let parts = self.parts(&sums.tx, sums.received());
        parts.filter(|_| is_whole || self != Quantity::Cpu)
    }

    /// The same of a slice.
    pub(crate) fn of_slice(self, slice: &SliceOutcome) -> Option<Parts> {
        self.parts(&slice.tx, slice.rx.as_ref())
    }

    fn parts(self, tx: &Counts, rx: Option<&Counts>) -> Option<Parts> {
        let (over, under) = match self {
            Quantity::Time => (tx.time_ns as f64, arrived(tx, rx)),
            Quantity::ServerCpu => (tx.task_clock_ns? as f64, tx.messages as f64),
            Quantity::Cpu => {
                let received_ns = rx.map_or(Some(0), |rx| rx.task_clock_ns)?;
                (tx.task_clock_ns?.saturating_add(received_ns) as f64, arrived(tx, rx))
            }
        };
        (over > 0.0 && under > 0.0).then_some(Parts { over, under })
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::run::Run;

    use crate::analysis::ArmAnalysis;
    use crate::estimate::Verdict;
    use crate::{analyse, fixture};

    /// The compared arm of a run in which it takes 1 / 1.25 of the baseline's time, and its
    /// receiver is changed.
    fn arm(change: impl Fn(&mut iolens_model::outcome::Counts)) -> ArmAnalysis {
        let mut run: Run = fixture::passes(&[1.25; 12]);
        for trial in &mut run.trials {
            let own = trial.arms.iter().position(|arm| arm.arm.label == "arm");
            let own = trial.slices.iter_mut().filter(|slice| Some(slice.arm) == own);
            own.filter_map(|slice| slice.rx.as_mut()).for_each(&change);
        }
        analyse(&run).cells[0].by_cpu().arm("arm").expect("the arm").clone()
    }

    /// Both ends work for 0.9 of the time, the arm's receiver for half of that: 1.8 over
    /// (0.9 + 0.45) / 1.25.
    #[test]
    fn cpu_time_is_that_of_both_ends() {
        let half = arm(|rx| rx.task_clock_ns = rx.task_clock_ns.map(|ns| ns / 2));
        let contrast = half.contrast.as_ref().expect("a contrast");
        assert!((contrast.ratio / (1.8 * 1.25 / 1.35) - 1.0).abs() < 1e-6, "{}", contrast.ratio);
        assert_eq!((contrast.n, contrast.verdict), (12, Verdict::Faster));
        let per_message = half.figures.expect("figures").cpu_ns_per_message.expect("counted");
        assert!((per_message.value / half_of_nine() - 1.0).abs() < 1e-6, "{}", per_message.value);
        let whole = arm(|_| {}).contrast.expect("a contrast");
        assert!((whole.ratio / 1.25 - 1.0).abs() < 1e-6);
    }

    /// 500 ns a message of the baseline: see the fixture.
    fn half_of_nine() -> f64 {
        500.0 / 1.25 * (0.9 + 0.45)
    }

    #[test]
    fn what_one_end_did_not_count_is_not_compared() {
        assert_eq!(arm(|rx| rx.task_clock_ns = None).contrast, None);
    }
}
