//! How long slices are, and how many operations of each program.

use iolens_model::ab::{AbQuantity, whole_ln_ratio};
use iolens_model::outcome::SliceOutcome;
use iolens_programs::Reading;

use super::median;
use crate::setup::{AbLayout, AbProgramLayout, AbSetup};
use crate::trial::AbTrial;

/// Time of the slices of a trial, of each arm, at least and at most.
const ROUNDS_NS: (u64, u64) = (30_000_000, 150_000_000);

/// How many rounds a trial needs.
pub(crate) const ROUNDS_MIN: u32 = 5;

/// How many there are at most.
const ROUNDS_MAX: u32 = 120;

/// How many there are where they fit into that time.
const ROUNDS_WANTED: u64 = 10;

/// What a slice of one program is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OwnSlice {
    pub(super) operations: u64,
    pub(super) operation_ns: f64,
}

impl OwnSlice {
    pub(super) fn slice_ns(&self) -> u64 {
        at_least_one(self.operations as f64 * self.operation_ns)
    }
}

/// What the slices of all programs are.
#[derive(Debug)]
pub(super) struct Slices {
    /// How many a program needs to warm up.
    pub(super) warm: u32,
    /// One of each program after it; all take as long.
    pub(super) own: Vec<OwnSlice>,
    /// How long one may be for the sake of another program.
    pub(super) longest_ns: u64,
    /// What starting a program takes, of the one that takes longest.
    pub(super) start_ns: u64,
}

impl Slices {
    /// Twice as long, and half as many to warm up.
    pub(super) fn double(&mut self) {
        self.warm = self.warm.div_ceil(2);
        self.own.iter_mut().for_each(|own| own.operations = own.operations.saturating_mul(2));
    }

    /// Operations of one of any program, to warm up.
    pub(super) fn operations(&self) -> u64 {
        for_all(&self.own, self.longest_ns)
    }

    pub(super) fn slowest_ns(&self) -> u64 {
        self.own.iter().map(OwnSlice::slice_ns).max().unwrap_or(0)
    }

    /// Has operations of each program take so long, and all slices as long as the longest was.
    pub(super) fn now_take(&mut self, operation_ns: &[Option<f64>]) {
        let slice_ns = self.slowest_ns().min(self.longest_ns) as f64;
        for (own, ns) in self.own.iter_mut().zip(operation_ns) {
            own.operation_ns = ns.unwrap_or(own.operation_ns);
            own.operations = at_least_one(slice_ns / own.operation_ns);
        }
    }

    /// Rounds of a trial. Most of the noise is theirs, not the trial's, so they take as long as
    /// what comes before them, and are not few.
    pub(super) fn rounds(&self) -> u32 {
        let slice_ns = self.slowest_ns().max(1);
        let before_ns = self.start_ns.saturating_add(slice_ns.saturating_mul(self.warm.into()));
        let wanted_ns = before_ns.max(slice_ns.saturating_mul(ROUNDS_WANTED));
        let rounds = wanted_ns.clamp(ROUNDS_NS.0, ROUNDS_NS.1) / slice_ns;
        u32::try_from(rounds).unwrap_or(ROUNDS_MAX).clamp(ROUNDS_MIN, ROUNDS_MAX)
    }
}

/// How many operations each program does in a slice to warm up: as many as the fastest wants, or a
/// slice of it would be pipes and switches; no more than make a slice of the slowest long.
pub(super) fn for_all(own: &[OwnSlice], longest_ns: u64) -> u64 {
    let wanted = own.iter().map(|own| own.operations).max().unwrap_or(1);
    let slowest_ns = own.iter().map(|own| own.operation_ns).fold(1.0, f64::max);
    wanted.min(at_least_one(longest_ns as f64 / slowest_ns)).max(1)
}

impl AbLayout {
    /// Has later trials be of fewer rounds, where one took longer than it may, as beside other
    /// programs, where each turn waits for a processor. `rounds_ns` of it were rounds; what came
    /// before and after them stays, and rounds take half as long at least, or there would be little
    /// to be learned from it. There are never fewer than a trial needs, nor more than before.
    pub fn shorten(&mut self, took_ns: u64, rounds_ns: u64, at_most_ns: u64) {
        let rest_ns = took_ns.saturating_sub(rounds_ns);
        let wanted_ns = at_most_ns.saturating_sub(rest_ns).max(rest_ns / 2);
        let fit = u64::from(self.rounds).saturating_mul(wanted_ns) / rounds_ns.max(1);
        let fit = u32::try_from(fit).unwrap_or(u32::MAX).max(ROUNDS_MIN);
        self.rounds = self.rounds.min(fit);
    }

    /// Has slices of later trials take as long as each other, by how long an operation of each
    /// program took in this trial: the middle of all until now, and of what was found before them,
    /// so that a bad moment is of no weight.
    pub fn learn(&mut self, setup: &AbSetup, trial: &AbTrial) {
        let costs = setup.programs.iter().map(|program| OpCost::in_trial(trial, &program.name));
        let op_ns = OpCost::alike(&costs.collect::<Vec<_>>());
        let Some((&Some(baseline_ns), others)) = op_ns.split_first() else { return };
        let (baseline, fixed) = (self.programs[0].operations, fixed_share(&self.programs[0]));
        for (own, op_ns) in self.programs.iter_mut().skip(1).zip(others) {
            let Some(op_ns) = op_ns.filter(|_| !own.times_baseline.is_empty()) else { continue };
            let alike = baseline as f64 / own.operations as f64;
            let fixed = f64::midpoint(fixed, fixed_share(own));
            let ln = whole_ln_ratio((op_ns / baseline_ns).ln(), alike.ln(), fixed);
            own.times_baseline.push(ln.exp());
            if let Some(times) = median(own.times_baseline.clone()) {
                own.operations = at_least_one(baseline as f64 / times);
            }
        }
    }
}

/// The part of a slice of a program that does not grow with its operations, as far as is known.
fn fixed_share(own: &AbProgramLayout) -> f64 {
    f64::from(own.fixed_ppm.unwrap_or(0)) / 1e6
}

/// What an operation of a program takes, ns, in the middle of its slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OpCost {
    whole_ns: f64,
    /// CPU time; `None` where it is not known.
    cpu_ns: Option<f64>,
}

impl OpCost {
    /// From slices: time, CPU time and operations of each. `None` of none.
    pub(super) fn of(slices: impl Iterator<Item = (u64, Option<u64>, u64)>) -> Option<OpCost> {
        let (mut times, mut cpus) = (Vec::new(), Vec::new());
        for (whole_ns, cpu_ns, operations) in slices.filter(|(.., operations)| *operations > 0) {
            times.push(whole_ns as f64 / operations as f64);
            cpus.extend(cpu_ns.map(|ns| ns as f64 / operations as f64));
        }
        let is_known = cpus.len() == times.len();
        let whole_ns = median(times).filter(|ns| *ns > 0.0)?;
        Some(OpCost { whole_ns, cpu_ns: median(cpus).filter(|_| is_known) })
    }

    /// Of a program in a trial.
    fn in_trial(trial: &AbTrial, name: &str) -> Option<OpCost> {
        let own = |slice: &&SliceOutcome| trial.arms[slice.arm].arm.primitive == name;
        let counts = trial.slices.iter().filter(own).map(|slice| &slice.tx);
        OpCost::of(counts.filter_map(|own| {
            Some((own.judged(AbQuantity::Time)?, own.judged(AbQuantity::Cpu), own.messages))
        }))
    }

    /// What operations of programs take beside each other, ns: CPU time, which others on the
    /// machine disturb less, where that is most of the time of each program.
    pub(super) fn alike(costs: &[Option<OpCost>]) -> Vec<Option<f64>> {
        let works = |cost: &OpCost| cost.cpu_ns.is_some_and(|ns| ns > 0.5 * cost.whole_ns);
        let all_work = costs.iter().flatten().all(works);
        let of = |cost: OpCost| cost.cpu_ns.filter(|_| all_work).unwrap_or(cost.whole_ns);
        costs.iter().map(|cost| cost.map(of)).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
pub(super) fn at_least_one(operations: f64) -> u64 {
    (operations.round() as u64).clamp(1, i64::MAX.unsigned_abs())
}

// How long programs warm up.

/// How much less CPU time a block of slices takes than any before while a program warms up.
const STILL_FALLS: f64 = 0.98;

/// Slices of such a block.
const BLOCK: usize = 5;

/// Blocks that do not fall, one after another: one alone may be noise.
const PLATEAU: u32 = 2;

/// How long a program may warm up.
const LONGEST_NS: u64 = 2_000_000_000;

/// The warming up of one program.
#[derive(Debug)]
pub(super) struct WarmUp {
    /// Slices until now.
    pub(super) slices: u32,
    spent_ns: u64,
    stated_ns: Option<u64>,
    block: Vec<f64>,
    least_ns: f64,
    plateau: u32,
}

impl WarmUp {
    /// One that has yet to begin: for so long, or until slices do not become cheaper.
    pub(super) fn of(stated_ns: Option<u64>) -> WarmUp {
        let (block, least_ns) = (Vec::with_capacity(BLOCK), f64::INFINITY);
        WarmUp { slices: 0, spent_ns: 0, stated_ns, block, least_ns, plateau: 0 }
    }

    /// A slice of each of its processes.
    pub(super) fn add(&mut self, readings: &[Reading]) {
        let cost_ns = |reading: &Reading| reading.cpu_ns.unwrap_or(reading.took_ns);
        let took_ns = readings.iter().map(|reading| reading.took_ns).max().unwrap_or(0);
        self.note(took_ns, readings.iter().map(cost_ns).sum());
    }

    fn note(&mut self, took_ns: u64, cost_ns: u64) {
        self.slices += 1;
        self.spent_ns += took_ns;
        self.block.push(cost_ns as f64);
        if self.block.len() == BLOCK {
            let now_ns = median(std::mem::take(&mut self.block)).unwrap_or(self.least_ns);
            self.plateau = if now_ns < self.least_ns * STILL_FALLS { 0 } else { self.plateau + 1 };
            self.least_ns = self.least_ns.min(now_ns);
        }
    }

    /// Whether it has had its time, or slices do not become cheaper any more.
    pub(super) fn is_over(&self) -> bool {
        let is_level = self.plateau >= PLATEAU && self.block.is_empty();
        let is_done = is_level || self.spent_ns > LONGEST_NS;
        self.stated_ns.map_or(is_done, |ns| self.spent_ns >= ns)
    }
}

#[cfg(test)]
mod tests {
    use iolens_programs::Around;

    use super::super::SLOWEST_NS;
    use super::*;
    use crate::setup::{AbCopies, AbPlacement};

    #[test]
    fn a_trial_that_took_too_long_leaves_fewer_rounds_to_the_next() {
        let rounds = |took_ns, rounds_ns, at_most_ns| {
            let mut layout = AbLayout {
                operations: 1000,
                rounds: 60,
                warm_slices: 10,
                copies: AbCopies::OfAll,
                placement: AbPlacement::OneCpu,
                around: Around::Process,
                programs: Vec::new(),
                true_ns: None,
            };
            layout.shorten(took_ns, rounds_ns, at_most_ns);
            layout.rounds
        };
        assert_eq!(rounds(300, 200, 400), 60);
        assert_eq!(rounds(3000, 3000, 500), 10);
        assert_eq!(rounds(400, 240, 300), 35);
        // Half as long as the rest.
        assert_eq!(rounds(400, 200, 100), 30);
        assert_eq!(rounds(3000, 3000, 1), 5);
        assert_eq!(rounds(0, 0, 0), 5);
        assert_eq!(rounds(1, 1, u64::MAX), 60);
    }

    #[test]
    fn rounds_take_as_long_as_what_comes_before_them_and_are_not_few() {
        let of = |slice_us: u64, start_ms: u64| {
            let slices = Slices {
                warm: 10,
                own: vec![OwnSlice { operations: 1000, operation_ns: slice_us as f64 }],
                longest_ns: SLOWEST_NS,
                start_ns: start_ms * 1_000_000,
            };
            slices.rounds()
        };
        assert_eq!(of(500, 10), 60);
        assert_eq!(of(500, 40), 90);
        assert_eq!(of(500, 2000), 120);
        assert_eq!(of(2500, 10), 14);
        assert_eq!(of(5000, 10), 12);
        assert_eq!(of(15_000, 10), 10);
        assert_eq!(of(1_000_000, 2000), 5);
    }

    #[test]
    fn slices_are_as_long_as_the_longest_unless_that_is_very_long() {
        let of = |longest_ns: u64, before: [(u64, f64); 2], now: [f64; 2]| {
            let own = |&(operations, operation_ns)| OwnSlice { operations, operation_ns };
            let own = before.iter().map(own).collect();
            let mut slices = Slices { warm: 1, own, longest_ns, start_ns: 0 };
            slices.now_take(&now.map(Some));
            slices.own.iter().map(|own| own.operations).collect::<Vec<_>>()
        };
        let alike = [(500, 1000.0); 2];
        assert_eq!(of(SLOWEST_NS, alike, [1000.0, 1030.0]), [500, 485]);
        assert_eq!(of(SLOWEST_NS, alike, [3000.0, 2500.0]), [167, 200]);
        assert_eq!(of(SLOWEST_NS, [(500, 1000.0), (1000, 1000.0)], [1000.0, 1000.0]), [1000, 1000]);
        let slow = [(500, 1000.0), (1, 1e9)];
        assert_eq!(of(SLOWEST_NS, slow, [1000.0, 1e9]), [20_000, 1]);
        assert_eq!(of(50_000_000, slow, [1000.0, 1e9]), [50_000, 1]);
    }

    #[test]
    fn the_fastest_has_a_whole_slice_unless_the_slowest_would_take_too_long() {
        let of = |all: &[(u64, f64)]| {
            let own = |&(operations, operation_ns)| OwnSlice { operations, operation_ns };
            for_all(&all.iter().map(own).collect::<Vec<_>>(), SLOWEST_NS)
        };
        assert_eq!(of(&[(500, 1000.0)]), 500);
        assert_eq!(of(&[(500, 1000.0), (5000, 100.0)]), 5000);
        // 20 ms of the slowest.
        assert_eq!(of(&[(500_000, 1.0), (5, 100_000.0)]), 200);
        assert_eq!(of(&[(500_000, 1.0), (1, 1e9)]), 1);
    }

    /// How many slices that cost so much it takes.
    fn slices(cost_ns: impl Fn(u32) -> u64) -> u32 {
        let mut warm_up = WarmUp::of(None);
        while !warm_up.is_over() {
            let ns = cost_ns(warm_up.slices);
            warm_up.note(ns, ns);
        }
        warm_up.slices
    }

    #[test]
    fn a_program_is_warm_when_its_slices_do_not_become_cheaper() {
        assert_eq!(slices(|_| 1000), 15);
        // As a compiler at run time does it.
        assert_eq!(slices(|nth| if nth < 22 { 9000 } else { 1000 }), 15);
        assert_eq!(slices(|nth| if nth < 12 { 9000 } else { 1000 }), 25);
        assert_eq!(slices(|nth| 1000 * u64::from(40 - nth.min(30))), 45);
        // One that is slower for a moment has not got faster after it.
        assert_eq!(slices(|nth| if (5..10).contains(&nth) { 1500 } else { 1000 }), 15);
        // It has had its time.
        assert_eq!(slices(|nth| 500_000_000 - 20_000_000 * u64::from(nth.min(20))), 5);
    }

    #[test]
    fn a_stated_time_is_kept() {
        for (ns, slices) in [(0, 0), (1, 1), (30, 3), (31, 4)] {
            let mut warm_up = WarmUp::of(Some(ns));
            while !warm_up.is_over() {
                warm_up.note(10, 10);
            }
            assert_eq!(warm_up.slices, slices, "{ns} ns");
        }
    }
}
