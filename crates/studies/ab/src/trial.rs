//! What came of a trial, as plain data.

use std::collections::BTreeSet;

use iolens_harness::environment::Before;
use iolens_model::ab::AbArm;
use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::cell::Cell;
use iolens_model::outcome::{ArmFact, Counts, EndFacts, Environment, SliceOutcome, TrialOutcome};
use iolens_model::reading::NotMeasured;
use iolens_model::reading::Status;
use iolens_model::trial::SliceKind;
use iolens_model::units::Nanos;
use iolens_programs::{Beside, ProgramFault, Reading, Seed};
use iolens_sys::launch::StackPlace;
use iolens_sys::proc::Root;
use iolens_sys::{affinity, clock};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::setup::{AbCopies, AbLayout, AbPlacement, AbSetup};

/// Why the CPU time of a program is not known that did nothing of the kind before the trials.
const NEW_CHILDREN: &str =
    "started or ended child processes in slices, whose CPU time is not known";

/// What came of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct AbTrial {
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// From the start of the first process to the end of the last.
    pub duration_ns: u64,
    /// What its rounds took of that; 0 of commands.
    pub rounds_ns: u64,
    /// In the order of [`AbSetup::arms`].
    pub arms: Vec<AbArmTrial>,
    /// In the order in which they ran.
    pub slices: Vec<SliceOutcome>,
    /// The machine around it.
    pub environment: Environment,
    /// The processors that its arms could run on.
    pub cpus: Vec<u32>,
    /// What is not known of an arm, and why.
    pub not_measured: Vec<NotMeasured>,
    /// What a reader of an arm's numbers should know.
    pub arm_facts: Vec<ArmFact>,
}

/// What came of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbArmTrial {
    /// Which arm.
    pub arm: Arm,
    /// What ended it; `None` where nothing did.
    pub fault: Option<ProgramFault>,
    /// What is known of it besides counts.
    pub ab: AbArm,
}

/// What tells a trial from the others of its setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbTurn {
    /// Pass, from 1.
    pub pass: u32,
    /// What is random follows from it.
    pub seed: u64,
    /// From when on there are no more rounds than a trial needs, ns of the monotonic clock.
    pub deadline_ns: u64,
}

impl AbTurn {
    /// In the first pass, with all the time there is.
    pub fn of(seed: u64) -> AbTurn {
        AbTurn { pass: 1, seed, deadline_ns: u64::MAX }
    }

    /// Whether there is another round, of so many, after those that were enough.
    pub(crate) fn has_round(&self, round: u32, rounds: u32, enough: u32) -> bool {
        round < rounds && (round < enough || clock::monotonic_ns() < self.deadline_ns)
    }
}

/// Where a trial stands in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbPosition {
    /// Pass, from 1.
    pub pass: u32,
    /// Position in the pass, from 0.
    pub position: u32,
    /// The setting of the axes.
    pub cell: Cell,
    /// Build of iolens.
    pub build: String,
}

impl AbTrial {
    /// How the trial ended, and why: it is good where the baseline has something to be compared
    /// with.
    pub fn status(&self) -> (Status, Option<String>) {
        let faults = || self.arms.iter().filter_map(|one| one.fault.as_ref().map(|f| (one, f)));
        let why = faults().next().map(|(one, fault)| format!("`{}` {fault}", one.arm.label));
        if faults().any(|(_, fault)| *fault == ProgramFault::Interrupted) {
            return (Status::Interrupted, why);
        }
        let is_good = |name: &str| {
            let mut own = self.arms.iter().filter(|one| one.arm.primitive == name);
            own.all(|one| one.fault.is_none())
        };
        let names: Vec<&str> = self.arms.iter().map(|one| &*one.arm.primitive).collect();
        let baseline = names.first().copied().unwrap_or_default();
        let others = names.iter().any(|name| *name != baseline && is_good(name));
        match is_good(baseline) && others {
            true => (Status::Ok, None),
            false => (Status::Failed, why),
        }
    }

    /// The same as other studies have it.
    pub fn outcome(self, at: AbPosition) -> TrialOutcome {
        let (status, reason) = self.status();
        let of_arm = |one: AbArmTrial| {
            let status = one.fault.as_ref().map_or(Status::Ok, ProgramFault::status);
            let reason = one.fault.as_ref().map(ProgramFault::to_string);
            ArmOutcome { ab: Some(Box::new(one.ab)), ..ArmOutcome::of(one.arm, status, reason) }
        };
        let arms = self.arms.into_iter().map(of_arm).collect();
        // Its threads are in programs of others.
        let facts = EndFacts {
            build: at.build,
            threads: 1,
            thread_cpus: vec![self.cpus],
            arm_facts: self.arm_facts,
            not_measured: self.not_measured,
            ..EndFacts::default()
        };
        TrialOutcome {
            pass: at.pass,
            position: at.position,
            isolated: false,
            cell: at.cell,
            started_unix_ns: self.started_unix_ns,
            duration_ns: self.duration_ns,
            status,
            reason,
            arms,
            slices: self.slices,
            environment: self.environment,
            far_environment: None,
            tx: Some(facts),
            rx: None,
        }
    }
}

/// The counts of a slice, or of a run of a command, in the model's words.
pub(crate) fn slice_outcome(
    (seq, round, arm): (usize, u32, usize),
    operations: u64,
    reading: &Reading,
    cpu_ns: Option<u64>,
) -> SliceOutcome {
    SliceOutcome {
        seq: u32::try_from(seq).unwrap_or(u32::MAX),
        round,
        kind: SliceKind::Measured,
        arm,
        all_active_ns: reading.took_ns,
        tx: Counts::of_process(
            operations,
            Nanos(reading.took_ns),
            cpu_ns.map(Nanos),
            reading.charged.switches,
            reading.charged.faults,
        ),
        rx: None,
    }
}

/// What is drawn in a trial.
#[derive(Debug)]
pub(crate) struct Draws(Pcg64Mcg);

impl Draws {
    /// From the trial's seed.
    pub(crate) fn of(seed: u64) -> Draws {
        Draws(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A process's own seed.
    pub(crate) fn seed(&mut self) -> Seed {
        Seed::of(self.0.random())
    }

    /// Where the stacks of all processes of a trial begin.
    pub(crate) fn stack(&mut self) -> StackPlace {
        StackPlace::of(self.0.random())
    }

    /// One of these, of which there is one at least.
    fn one_of(&mut self, cpus: &[u32]) -> Option<u32> {
        let last = cpus.len().checked_sub(1)?;
        cpus.get(self.0.random_range(0..=last)).copied()
    }

    /// Puts numbers into random order.
    pub(crate) fn shuffle(&mut self, order: &mut [usize]) {
        order.shuffle(&mut self.0);
    }
}

/// Has the calling thread, and what it starts, run on some processors for as long as this lives.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: Vec<u32>,
    cpus: Vec<u32>,
}

impl Pinned {
    /// On one of the setup's processors, or on all of them.
    ///
    /// Errors: what was tried and what the system said.
    pub(crate) fn as_placed(
        setup: &AbSetup,
        placement: AbPlacement,
        draws: &mut Draws,
    ) -> Result<Pinned, ProgramFault> {
        let cannot = |what: &str, errno| {
            ProgramFault::System(format!(
                "cannot {what}: {errno}; --cpus names those it may run on"
            ))
        };
        let before = affinity::thread_cpus()
            .map_err(|errno| cannot("ask on which CPUs iolens may run", errno))?;
        let cpus = match placement {
            AbPlacement::OneCpu => draws.one_of(&setup.cpus).into_iter().collect(),
            AbPlacement::AllCpus => setup.cpus.clone(),
        };
        affinity::restrict_thread(&cpus)
            .map_err(|errno| cannot(&format!("bind the arms to CPUs {cpus:?}"), errno))?;
        Ok(Pinned { before, cpus })
    }

    /// Where that is.
    pub(crate) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Where the programs are, as seen from here.
    pub(crate) fn beside(&self) -> Beside {
        if self.cpus.len() == 1 { Beside::SameCpu } else { Beside::OtherCpus }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It could run there before.
        let _ = affinity::restrict_thread(&self.before);
    }
}

/// What the arms of a trial came to, before it is put together.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) arms: Vec<AbArmTrial>,
    pub(crate) slices: Vec<SliceOutcome>,
    pub(crate) arm_facts: Vec<ArmFact>,
    /// What rounds took.
    pub(crate) rounds_ns: u64,
    /// Programs of which children came or went in slices.
    pub(crate) with_new_children: BTreeSet<usize>,
}

impl Course {
    /// Nothing has happened yet.
    pub(crate) fn none(setup: &AbSetup, copies: AbCopies) -> Course {
        let begun = |(arm, _)| AbArmTrial { arm, fault: None, ab: AbArm::default() };
        let arms = setup.arms(copies).into_iter().map(begun).collect();
        let with_new_children = BTreeSet::new();
        let (slices, arm_facts) = (Vec::new(), Vec::new());
        Course { arms, slices, arm_facts, rounds_ns: 0, with_new_children }
    }

    /// Ends an arm, unless something else has before.
    pub(crate) fn end(&mut self, arm: usize, fault: ProgramFault) {
        self.arms[arm].fault.get_or_insert(fault);
    }

    /// Arms that nothing has ended.
    pub(crate) fn going(&self) -> Vec<usize> {
        (0..self.arms.len()).filter(|&arm| self.arms[arm].fault.is_none()).collect()
    }

    /// Whether the user has ended it.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.arms.iter().any(|one| one.fault == Some(ProgramFault::Interrupted))
    }
}

/// Runs something with the readings of the machine around it, on the processors of a layout.
pub(crate) fn within(
    setup: &AbSetup,
    layout: &AbLayout,
    seed: u64,
    run: impl FnOnce(&Pinned, &mut Draws, &mut Course),
) -> AbTrial {
    let (root, started_unix_ns) = (Root::real(), clock::unix_ns());
    let (mut draws, mut course) = (Draws::of(seed), Course::none(setup, layout.copies));
    let before = Before::read(&root);
    let begin_ns = clock::monotonic_ns();
    let pinned = Pinned::as_placed(setup, layout.placement, &mut draws);
    match &pinned {
        Ok(pinned) => run(pinned, &mut draws, &mut course),
        Err(fault) => {
            (0..course.arms.len()).for_each(|arm| course.end(arm, fault.clone()));
        }
    }
    let duration_ns = clock::monotonic_ns() - begin_ns;
    let cpus = pinned.as_ref().map(|pinned| pinned.cpus().to_vec()).unwrap_or_default();
    drop(pinned);
    let not_measured = setup.programs.iter().enumerate().filter_map(|(nth, program)| {
        let before = layout.programs.get(nth).and_then(|own| own.cpu_unknown.as_deref());
        let here = course.with_new_children.contains(&nth).then_some(NEW_CHILDREN);
        let why = format!("`{}` {}", program.name, before.or(here)?);
        Some(NotMeasured { metric: "task_clock".to_owned(), why })
    });
    let not_measured = not_measured.collect();
    AbTrial {
        started_unix_ns,
        duration_ns,
        rounds_ns: course.rounds_ns,
        arms: course.arms,
        slices: course.slices,
        environment: before.after(&root),
        cpus,
        not_measured,
        arm_facts: course.arm_facts,
    }
}
