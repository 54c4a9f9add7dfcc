//! What a trial is told: the programs, and how they are run.

use iolens_model::ab::{AbMode, whole_ln_ratio};
use iolens_model::arm::{Arm, Role};
use iolens_programs::{Around, ProgramLimits, ProgramPlace, UserProgram};

use crate::calibrate::median;
use crate::trial::AbTrial;

/// Which programs have a hidden second copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbCopies {
    /// All.
    OfAll,
    /// The first.
    OfBaseline,
}

/// Whether programs may exit with a status that is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbExit {
    /// They may not.
    MustBeZero,
    /// They may.
    Ignored,
}

/// One cell's programs and how they are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbSetup {
    /// How they are measured.
    pub mode: AbMode,
    /// The baseline first; at least one.
    pub programs: Vec<UserProgram>,
    /// What they run from.
    pub place: ProgramPlace,
    /// What becomes of a status.
    pub exit: AbExit,
    /// Path of the standard input of whole commands; `None` for an empty one.
    pub input: Option<String>,
    /// A command that runs before each run of a command; its file is found each time.
    pub prepare: Option<Vec<String>>,
    /// The processors that may be drawn; at least one.
    pub cpus: Vec<u32>,
    /// How long a slice is to take, ns.
    pub slice_ns: u64,
    /// How long each process warms up before the rounds of a loop, ns; `None` for as long as the
    /// programs were found to get faster.
    pub warm_up_ns: Option<u64>,
    /// How long things may take.
    pub limits: ProgramLimits,
}

/// How long a slice of the loop protocol is to take.
pub const AB_SLICE_NS: u64 = 500_000;

/// The same where an arm uses several processors: a wake-up is a tenth of half a millisecond.
pub const AB_SLICE_ALL_CPUS_NS: u64 = 5_000_000;

impl AbSetup {
    /// The arms of a trial, each with the number of its program; a copy follows its original.
    #[must_use]
    pub fn arms(&self, copies: AbCopies) -> Vec<(Arm, usize)> {
        let mut arms = Vec::with_capacity(2 * self.programs.len());
        for (index, program) in self.programs.iter().enumerate() {
            let name = &program.name;
            let arm = |label: String, role| (Arm { label, primitive: name.clone(), role }, index);
            arms.push(arm(name.clone(), Role::against(index == 0, false)));
            if index == 0 || copies == AbCopies::OfAll {
                arms.push(arm(format!("{name} (A/A)"), Role::SelfCheck));
            }
        }
        arms
    }
}

/// Where the arms of a trial run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbPlacement {
    /// All on one processor, with the coordinator; another one each trial.
    OneCpu,
    /// On all of the setup's: an arm uses more than one.
    AllCpus,
}

/// What was found out of a program before the trials of a cell, and in those that have run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AbProgramLayout {
    /// Operations of a slice: as many as take as long as the slices of the others. 1 of commands.
    pub operations: u64,
    /// How many times as long as one of the baseline an operation takes: as found out before the
    /// trials, and in each that has run. Empty of commands.
    pub times_baseline: Vec<f64>,
    /// What a slice takes, ns.
    pub expected_ns: u64,
    /// What asking for a slice takes, ns; `None` where operations are too long to tell.
    pub asking_ns: Option<u64>,
    /// What twice the operations take less than twice as long, in turns with all others, in
    /// millionths. `None` where slices are long.
    pub hidden_ppm: Option<u32>,
    /// Why its CPU time is not known; `None` where it is.
    pub cpu_unknown: Option<String>,
}

impl AbProgramLayout {
    /// The part of a slice that does not grow with its operations, as far as that is known.
    fn fixed_share(&self) -> f64 {
        f64::from(self.hidden_ppm.unwrap_or(0)) / 1e6
    }
}

/// What was found out before the trials of a cell, and in those that have run.
#[derive(Debug, Clone, PartialEq)]
pub struct AbLayout {
    /// Operations of a slice of each program as it warms up, when all do the same; 1 of commands.
    pub operations: u64,
    /// Rounds of a trial, in each of which every arm runs once.
    pub rounds: u32,
    /// Slices of each arm before the rounds, where no time is stated.
    pub warm_slices: u32,
    /// Which programs have a hidden copy: all whose processes fit into memory side by side.
    pub copies: AbCopies,
    /// Where the arms run.
    pub placement: AbPlacement,
    /// What is read around slices, of all programs: with children where one has such that work.
    pub around: Around,
    /// What was found out of each program.
    pub programs: Vec<AbProgramLayout>,
    /// What starting `true` takes, ns; `None` in loops.
    pub true_ns: Option<u64>,
}

impl AbLayout {
    /// Has slices of later trials take as long as each other, by how long an operation of each
    /// program took in this trial: the middle of all until now, and of what was found before them,
    /// so that a bad moment is of no weight.
    pub fn learn(&mut self, setup: &AbSetup, trial: &AbTrial) {
        let costs = setup.programs.iter().map(|program| trial.cost(&program.name));
        let op_ns = OpCost::alike(&costs.collect::<Vec<_>>());
        let Some((&Some(baseline_ns), others)) = op_ns.split_first() else { return };
        let (baseline, fixed) = (self.programs[0].operations, self.programs[0].fixed_share());
        for (own, op_ns) in self.programs.iter_mut().skip(1).zip(others) {
            let Some(op_ns) = op_ns.filter(|_| !own.times_baseline.is_empty()) else { continue };
            let alike = baseline as f64 / own.operations as f64;
            let fixed = f64::midpoint(fixed, own.fixed_share());
            let ln = whole_ln_ratio((op_ns / baseline_ns).ln(), alike.ln(), fixed);
            own.times_baseline.push(ln.exp());
            if let Some(times) = median(own.times_baseline.clone()) {
                own.operations = at_least_one(baseline as f64 / times);
            }
        }
    }
}

/// What an operation of a program takes, ns, in the middle of its slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OpCost {
    whole_ns: f64,
    /// CPU time; `None` where it is not known.
    cpu_ns: Option<f64>,
}

impl OpCost {
    /// From slices: time, CPU time and operations of each. `None` of none.
    pub(crate) fn of(slices: impl Iterator<Item = (u64, Option<u64>, u64)>) -> Option<OpCost> {
        let (mut times, mut cpus) = (Vec::new(), Vec::new());
        for (whole_ns, cpu_ns, operations) in slices.filter(|(.., operations)| *operations > 0) {
            times.push(whole_ns as f64 / operations as f64);
            cpus.extend(cpu_ns.map(|ns| ns as f64 / operations as f64));
        }
        let is_known = cpus.len() == times.len();
        let whole_ns = median(times).filter(|ns| *ns > 0.0)?;
        Some(OpCost { whole_ns, cpu_ns: median(cpus).filter(|_| is_known) })
    }

    /// What operations of programs take beside each other, ns: CPU time, which others on the
    /// machine disturb less, where that is most of the time of each program.
    pub(crate) fn alike(costs: &[Option<OpCost>]) -> Vec<Option<f64>> {
        let works = |cost: &OpCost| cost.cpu_ns.is_some_and(|ns| ns > 0.5 * cost.whole_ns);
        let all_work = costs.iter().flatten().all(works);
        let of = |cost: OpCost| cost.cpu_ns.filter(|_| all_work).unwrap_or(cost.whole_ns);
        costs.iter().map(|cost| cost.map(of)).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
pub(crate) fn at_least_one(operations: f64) -> u64 {
    (operations.round() as u64).clamp(1, i64::MAX.unsigned_abs())
}
