//! What a trial is told: the programs, and how they are run.

use iolens_model::ab::AbMode;
use iolens_model::arm::{Arm, Role};
use iolens_programs::{Around, ProgramLimits, ProgramPlace, UserProgram};

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
    /// How long it may be found out anew what slices take, where the work became cheaper meanwhile,
    /// ns; it is found out once however long that takes.
    pub anew_ns: u64,
    /// How long things may take.
    pub limits: ProgramLimits,
}

/// How long a slice of the loop protocol is to take.
pub const AB_SLICE_NS: u64 = 500_000;

/// The same where an arm uses several processors: a wake-up is a tenth of half a millisecond.
pub const AB_SLICE_ALL_CPUS_NS: u64 = 5_000_000;

impl AbSetup {
    /// The arms of a trial, each with the number of its program; a copy follows its original.
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
    pub fixed_ppm: Option<u32>,
    /// Why its CPU time is not known; `None` where it is.
    pub cpu_unknown: Option<String>,
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
