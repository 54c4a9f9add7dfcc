//! A cell while a run goes on: its arms, the work of their slices, and who
//! has dropped out.

mod dropouts;
mod known;

use iolens_engine::layout::{self, Placement};
use iolens_engine::locked_memory::Limits;
use iolens_engine::{calls, work};
use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::axes::{Direction, Topology};
use iolens_model::cell::Cell;
use iolens_model::file::FileFacts;
use iolens_model::host::HostFacts;
use iolens_model::outcome::{SliceOutcome, Status, TrialOutcome};
use iolens_model::plan::{Plan, Schedule};
use iolens_model::run::FarFacts;
use iolens_model::server::ServerSetting;
use iolens_model::trial::{Trial, TrialHosts};
use iolens_model::units::{Bytes, Nanos};
use rand::Rng;

use super::arms::{allowed, guess_ns};
use super::copies::{around_a_copy, rounds_of_copies, rounds_of_probes};
use super::servers::Rates;
use super::{is_compared, servers, writes};

/// Failed trials after which an arm is left out of its cell.
const FAILURES_MAX: u32 = 2;

/// How many times as long slices of several threads are where one end is alone.
const SEVERAL_THREADS: u64 = 4;

/// What starting, connecting and ending a trial's workers takes, about.
pub(super) const TRIAL_OVERHEAD: Nanos = Nanos(60_000_000);

/// A blocking call may wait for this and so many slices.
pub(super) const STALL_MIN: Nanos = Nanos(5_000_000_000);
const SLICES_OF_PATIENCE: u64 = 20;

/// A trial may take this and ten times what is expected of it.
pub(super) const TRIAL_MIN: Nanos = Nanos(30_000_000_000);

/// The untimed burst before a single long slice is cut from this much work.
const CLASSIC_TARGET: Nanos = Nanos(100_000_000);

/// Arms that are measured together.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) arms: Vec<GroupArm>,
    /// Arms that this machine's limits do not allow in this cell, and why.
    refused: Vec<(Arm, String)>,
    /// Failed trials that nobody could be blamed for.
    failures_of_nobody: u32,
}

/// One arm of a group.
#[derive(Debug, Clone)]
pub(crate) struct GroupArm {
    pub(crate) arm: Arm,
    /// Time of a message: guessed, then probed, then fixed.
    message_ns: f64,
    /// Whether a probe has found it.
    is_probed: bool,
    /// Whether the work of its slices is fixed already, by an earlier session
    /// of the run.
    is_fixed: bool,
    /// Files that a slice copies, fixed likewise; null in other studies.
    copies: Option<u64>,
    /// Failed trials.
    failures: u32,
}

impl Group {
    fn has_baseline(&self) -> bool {
        self.arms.iter().any(|arm| arm.arm.role == Role::Baseline)
    }

    /// Whether anything is measured in it besides the baseline and its double, if only a control.
    fn has_others(&self) -> bool {
        let is_baselines = |role| matches!(role, Role::Baseline | Role::SelfCheck);
        self.arms.iter().any(|arm| !is_baselines(arm.arm.role))
    }

    /// From now on the arm takes part in no trial.
    fn leave_out(&mut self, refused: &ArmOutcome) {
        let before = self.arms.len();
        self.arms.retain(|arm| arm.arm != refused.arm);
        if self.arms.len() < before {
            self.refused.push((refused.arm.clone(), refused.reason.clone().unwrap_or_default()));
        }
    }

    /// Every arm with the reason why it cannot be measured: its own, or that
    /// the baseline cannot.
    fn all_refused(self) -> Vec<(Arm, String)> {
        let why = self.refused.iter().find(|(arm, _)| arm.role == Role::Baseline);
        let why = why.map_or_else(String::new, |(_, why)| why.clone());
        let others = self.arms.into_iter().map(|arm| (arm.arm, format!("the baseline: {why}")));
        let mut refused = self.refused.clone();
        refused.extend(others);
        refused
    }
}

/// The groups that say something, and those of which only the baseline is left, where others
/// have that too; one group at least says something.
fn without_needless(groups: Vec<Group>) -> (Vec<Group>, Vec<Group>) {
    let (mut kept, mut needless): (Vec<Group>, Vec<Group>) =
        groups.into_iter().partition(Group::has_others);
    if kept.is_empty() && !needless.is_empty() {
        kept.push(needless.remove(0));
    }
    (kept, needless)
}

impl GroupArm {
    fn new(arm: Arm, message_ns: f64) -> GroupArm {
        GroupArm { arm, message_ns, is_probed: false, is_fixed: false, copies: None, failures: 0 }
    }
}

/// One cell of the plan.
#[derive(Debug, Clone)]
pub(crate) struct CellState {
    pub(crate) cell: Cell,
    pub(crate) groups: Vec<Group>,
    /// Groups whose baseline this machine does not allow, or all that it was to be compared with.
    impossible: Vec<Vec<(Arm, String)>>,
    /// How long a slice is meant to last.
    pub(crate) target: Nanos,
    placement: Placement,
    ring_messages: u32,
    /// The file that is read or written; null in other studies, and where there is no
    /// file yet.
    file: Option<FileFacts>,
    /// Where its ends are; null where both are on this machine.
    hosts: Option<TrialHosts>,
    /// What is offered in an open loop.
    rates: Rates,
}

/// Where a trial stands in the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) pass: u32,
    pub(crate) position: u32,
}

impl CellState {
    pub(crate) fn new(plan: &Plan, cell: Cell, host: &HostFacts) -> CellState {
        let cpus = plan.cpus.as_ref().unwrap_or(&host.cpus);
        let slice = match plan.schedule {
            Schedule::Slices { slice, .. } => slice,
            Schedule::Window { .. } | Schedule::Messages { .. } => CLASSIC_TARGET,
        };
        // What threads do not end together is the same in a long slice, and for most of it
        // they must be at work together.
        let several = cell.is_alone() && cell.threads > 1;
        let slice = if several { Nanos(slice.0.saturating_mul(SEVERAL_THREADS)) } else { slice };
        let limits = Limits::here();
        let group = |arms: Vec<Arm>| {
            let mut group = Group { arms: Vec::new(), refused: Vec::new(), failures_of_nobody: 0 };
            for arm in arms {
                match allowed(&arm, &cell, plan, &limits) {
                    Ok(()) => {
                        let message_ns = guess_ns(&arm, &cell);
                        group.arms.push(GroupArm::new(arm, message_ns));
                    }
                    Err(why) => group.refused.push((arm, why)),
                }
            }
            group
        };
        let (groups, impossible): (Vec<Group>, Vec<Group>) =
            layout::arm_groups(plan, &cell).into_iter().map(group).partition(Group::has_baseline);
        let (groups, needless) = without_needless(groups);
        let impossible = impossible.into_iter().map(Group::all_refused);
        CellState {
            groups,
            impossible: impossible.chain(needless.into_iter().map(|g| g.refused)).collect(),
            placement: servers::placement(plan, layout::placement(cpus, cell.is_alone())),
            ring_messages: layout::ring_messages(&cell, host),
            file: None,
            hosts: None,
            rates: Rates::default(),
            target: layout::slice_target(slice, cell.workers(), cpus.len()),
            cell,
        }
    }

    /// Memory that one trial takes: rings and staging buffers of all arms,
    /// and the receivers' buffers.
    pub(crate) fn memory(&self) -> Bytes {
        let arms = self.groups.iter().map(|group| group.arms.len()).max().unwrap_or(0) as u64;
        let rings = layout::ring_memory(&self.cell, self.ring_messages).0.saturating_mul(arms);
        let buffers = self.cell.receive_size().0 * u64::from(self.cell.threads);
        Bytes(rings.saturating_add(buffers))
    }

    /// The same as a sum in words.
    pub(crate) fn memory_words(&self) -> String {
        let arms = self.groups.iter().map(|group| group.arms.len()).max().unwrap_or(0);
        let Cell { threads, size, .. } = &self.cell;
        let fields = self.cell.net().map_or(1, |net| net.fields);
        format!(
            "{arms} arms × {threads} threads × a ring of {} messages of {size} in \
             {fields} fields, with one more to stage them in, and {threads} buffers of {} to \
             receive into",
            self.ring_messages,
            self.cell.receive_size()
        )
    }

    /// The same with the file of its trials.
    pub(crate) fn reading(self, file: Option<&FileFacts>) -> CellState {
        CellState { file: file.cloned(), ..self }
    }

    /// The same with the other machine, if the cell has an end there.
    pub(crate) fn towards(self, far: Option<&FarFacts>) -> CellState {
        let apart = self.cell.topology().is_some_and(Topology::is_apart);
        let Some(far) = far.filter(|_| apart) else { return self };
        let (near_cpus, far_cpus) = (self.placement.all(), far.host.cpus.clone());
        let (tx_cpus, rx_cpus, tx, rx) = match far.direction {
            Direction::Tx => (near_cpus, far_cpus, far.near_address, far.address),
            Direction::Rx => (far_cpus, near_cpus, far.address, far.near_address),
        };
        let mut groups = self.groups;
        for arm in groups.iter_mut().flat_map(|group| &mut group.arms) {
            arm.message_ns = work::guessed_ns_over_a_link(&self.cell);
        }
        CellState {
            groups,
            placement: Placement { tx_cpus, rx_cpus },
            hosts: Some(TrialHosts { direction: far.direction, tx, rx }),
            ..self
        }
    }

    /// Whether the cell has an end on another machine.
    pub(crate) fn is_apart(&self) -> bool {
        self.hosts.is_some()
    }

    /// Whether anything of the cell is still to be measured.
    pub(crate) fn is_alive(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The group and place in it of an arm that is still in the cell.
    pub(super) fn find(&self, label: &str) -> Option<(usize, usize)> {
        (0..self.groups.len()).find_map(|group| Some((group, self.place_of(label, group)?)))
    }

    /// The place in a group of an arm that is still in it.
    pub(crate) fn place_of(&self, label: &str, group: usize) -> Option<usize> {
        self.groups.get(group)?.arms.iter().position(|arm| arm.arm.label == label)
    }

    /// Keeps these arms only.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&Arm) -> bool) {
        for group in &mut self.groups {
            group.arms.retain(|arm| wanted(&arm.arm));
        }
        self.groups.retain(|group| !group.arms.is_empty());
    }

    /// Messages, or calls, per slice of an arm over all its threads.
    fn messages(&self, arm: &GroupArm, target: Nanos) -> u64 {
        if self.cell.copy().is_some() {
            let wanted = || work::copies(target, arm.message_ns, &self.cell);
            return arm.copies.unwrap_or_else(wanted);
        }
        if let Some(found) = &self.file {
            let file = &found.bytes;
            if let Some(writing) = &found.writing {
                return writes::blocks(target, &arm.arm, arm.message_ns, &self.cell, writing);
            }
            return work::blocks(target, arm.message_ns, &self.cell, *file);
        }
        let Some(setting) = self.cell.syscall() else {
            return work::messages(target, arm.message_ns, &self.cell);
        };
        let threads = u64::from(self.cell.threads);
        let most = calls::find(&arm.arm.primitive).and_then(|entry| entry.most);
        match setting.in_a_row {
            Some(calls) => calls.saturating_mul(threads),
            None => work::messages(target, arm.message_ns, &self.cell)
                .min(most.map_or(u64::MAX, |most| u64::from(most) * threads)),
        }
    }

    /// How long a slice of an arm takes, about: a slice has at least some
    /// messages, which may take longer than it is meant to.
    fn slice_ns(&self, plan: &Plan, arm: &GroupArm) -> u64 {
        let work_ns = match plan.schedule {
            Schedule::Slices { .. } => self.work_ns(arm, self.target),
            Schedule::Window { window } => return window.0 + layout::lead(window).0,
            Schedule::Messages { messages } => messages as f64 * arm.message_ns,
        };
        if let Some((axes, _)) = plan.server().zip(self.open_loop()) {
            return axes.phase.0;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let ns = work_ns as u64;
        ns
    }

    /// How long a slice takes that is meant to last for `target`, about.
    fn work_ns(&self, arm: &GroupArm, target: Nanos) -> f64 {
        self.messages(arm, target) as f64 * arm.message_ns
    }

    /// How long one visit of the cell takes, about.
    pub(crate) fn visit(&self, plan: &Plan) -> Nanos {
        let group = |group: &Group| {
            let alone = plan.measures_alone(&self.cell);
            let trials = if alone { group.arms.len() as u64 } else { 1 };
            let schedule = self.schedule(plan, group);
            let arms = group.arms.iter().map(|arm| self.rounds_ns(plan, arm, &schedule));
            arms.fold(trials * TRIAL_OVERHEAD.0, u64::saturating_add)
        };
        Nanos(self.groups.iter().map(group).fold(0, u64::saturating_add))
    }

    /// How long measuring each arm of the cell by itself takes, about.
    pub(crate) fn visit_isolated(&self, plan: &Plan) -> Nanos {
        let of_group = |group: &Group| {
            let schedule = self.schedule(plan, group);
            let takes_part = group.arms.iter().filter(|arm| is_compared(arm.arm.role));
            let trial = |arm| self.rounds_ns(plan, arm, &schedule).saturating_add(TRIAL_OVERHEAD.0);
            takes_part.map(trial).fold(0, u64::saturating_add)
        };
        Nanos(self.groups.iter().map(of_group).fold(0, u64::saturating_add))
    }

    fn rounds_ns(&self, plan: &Plan, arm: &GroupArm, schedule: &Schedule) -> u64 {
        let rounds = match *schedule {
            Schedule::Slices { discarded_rounds, rounds, .. } => discarded_rounds + rounds,
            Schedule::Window { .. } | Schedule::Messages { .. } => 1,
        };
        let slice_ns = self.slice_ns(plan, arm);
        let settling_ns = || writes::settling_ns(self.messages(arm, self.target), &self.cell);
        let around_ns = self.cell.write().map_or(0, |_| settling_ns());
        let slice_ns = slice_ns.saturating_add(around_ns);
        let slice_ns = if self.cell.copy().is_some() { around_a_copy(slice_ns) } else { slice_ns };
        slice_ns.saturating_mul(u64::from(rounds))
    }

    /// The plan's schedule, with as many rounds as a trial of this group has time for: a
    /// copy of a large file is longer than any slice is meant to be.
    fn schedule(&self, plan: &Plan, group: &Group) -> Schedule {
        let Schedule::Slices { slice, discarded_rounds, rounds } = plan.schedule else {
            return plan.schedule;
        };
        if let Some((axes, setting)) = plan.server().zip(self.cell.server()) {
            return servers::schedule(axes, setting, plan.schedule);
        }
        if self.cell.copy().is_none() {
            return plan.schedule;
        }
        let round = group.arms.iter().map(|arm| around_a_copy(self.slice_ns(plan, arm)));
        let [discarded_rounds, rounds] =
            rounds_of_copies(round.fold(0, u64::saturating_add), [discarded_rounds, rounds]);
        Schedule::Slices { slice, discarded_rounds, rounds }
    }

    /// A trial of a group, or of one arm of it, in a fresh random order.
    pub(crate) fn trial(
        &self,
        plan: &Plan,
        place: Place,
        group: usize,
        only: Option<usize>,
        rng: &mut impl Rng,
    ) -> Trial {
        let arms = self.arms(group, only);
        let longest = arms.iter().map(|arm| self.slice_ns(plan, arm)).max().unwrap_or(0);
        let schedule = self.schedule(plan, &self.groups[group]);
        let visit = arms.iter().map(|arm| self.rounds_ns(plan, arm, &schedule));
        let visit = visit.fold(0, u64::saturating_add);
        let layout = Layout { schedule, target: self.target, longest, visit };
        let isolated = only.is_some();
        let mut trial = Trial { isolated, ..self.laid_out(plan, place, &arms, &layout, rng) };
        let phase = plan.server().zip(self.open_loop()).map(|(axes, _)| axes.phase);
        if let Some(phase) = phase {
            let kind = servers::kind(self.groups[group].arms.iter().map(|arm| &arm.arm));
            servers::at_a_rate(&mut trial, self.rates, kind, phase);
        }
        trial
    }

    /// The arms of a group, or one of them.
    fn arms(&self, group: usize, only: Option<usize>) -> Vec<&GroupArm> {
        let arms = self.groups[group].arms.iter().enumerate();
        arms.filter(|(arm, _)| only.is_none_or(|only| only == *arm)).map(|(_, arm)| arm).collect()
    }

    /// The setting of a cell whose requests are due by a schedule.
    fn open_loop(&self) -> Option<&ServerSetting> {
        self.cell.server().filter(|setting| setting.is_open_loop())
    }

    /// A short trial that finds how long a message of each arm takes, or of one of them.
    pub(crate) fn probe(
        &self,
        plan: &Plan,
        (group, only): (usize, Option<usize>),
        target: Nanos,
        rng: &mut impl Rng,
    ) -> Trial {
        const ROUNDS: u32 = 9;
        let arms = self.arms(group, only);
        let longest_of =
            |ns: &dyn Fn(&GroupArm) -> f64| arms.iter().map(|arm| ns(arm)).fold(0.0, f64::max);
        let least = match (self.cell.copy(), self.cell.server()) {
            (Some(_), _) => longest_of(&|arm| arm.message_ns),
            (_, Some(_)) => longest_of(&|arm| self.work_ns(arm, target)),
            _ if self.is_apart() => longest_of(&|arm| self.work_ns(arm, target)),
            _ => 4.0 * f64::from(self.cell.threads) * work::guessed_message_ns(&self.cell),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let longest = target.0.max(least as u64);
        let rounds = match (self.cell.copy(), self.cell.server()) {
            (Some(_), _) => rounds_of_probes(longest.saturating_mul(arms.len() as u64), ROUNDS),
            (_, Some(_)) => servers::PROBE_ROUNDS,
            _ if self.is_apart() => {
                rounds_of_probes(longest.saturating_mul(arms.len() as u64), ROUNDS)
            }
            _ => ROUNDS,
        };
        let layout = Layout {
            schedule: Schedule::Slices { slice: target, discarded_rounds: 1, rounds },
            target,
            longest,
            visit: longest.saturating_mul(u64::from(ROUNDS) * arms.len() as u64),
        };
        self.laid_out(plan, Place { pass: 0, position: 0 }, &arms, &layout, rng)
    }

    fn laid_out(
        &self,
        plan: &Plan,
        place: Place,
        arms: &[&GroupArm],
        layout: &Layout,
        rng: &mut impl Rng,
    ) -> Trial {
        let work: Vec<u64> = arms.iter().map(|arm| self.messages(arm, layout.target)).collect();
        let round = Nanos(layout.longest.saturating_mul(arms.len() as u64));
        let net = plan.net().zip(self.cell.net());
        let servers = plan.server().zip(self.cell.server());
        let (seed, slice) = (rng.next_u64(), (place.pass > 0).then_some(layout.target));
        let slices = layout::slices(&layout.schedule, &self.cell, &work, round, rng);
        let own = arms.iter().map(|arm| &arm.arm);
        let [once, all] = servers::patience(&self.cell, slices.len(), own);
        let times =
            if servers.is_some() { servers::SLICES_OF_PATIENCE } else { SLICES_OF_PATIENCE };
        let slices_of_patience = layout.longest.saturating_mul(times);
        Trial {
            pass: place.pass,
            position: place.position,
            isolated: false,
            cell: self.cell.clone(),
            arms: arms.iter().map(|arm| arm.arm.clone()).collect(),
            slices,
            socket: net.map(|(axes, net)| axes.socket_options(&net.tuning)).unwrap_or_default(),
            network: net.map(|(_, net)| net.tuning.network()).unwrap_or_default(),
            hosts: self.hosts,
            probes: plan.probes,
            tx_cpus: self.placement.tx_cpus.clone(),
            rx_cpus: self.placement.rx_cpus.clone(),
            ring_messages: self.ring_messages,
            file: None,
            copies: None,
            servers: servers.map(|(axes, setting)| {
                servers::of_trial(axes, setting, &self.placement, slice, seed)
            }),
            sampling: None,
            stall_limit: Nanos((STALL_MIN.0 + once).saturating_add(slices_of_patience)),
            trial_limit: Nanos((TRIAL_MIN.0 + all).saturating_add(layout.visit.saturating_mul(10))),
        }
    }

    /// Takes from a probe what a message of each arm takes. The hidden double
    /// gets what the baseline got: the two must do the same work.
    pub(crate) fn learn(&mut self, group: usize, probe: &TrialOutcome) {
        self.target = self.target.max(least_slice(probe));
        let arms = &mut self.groups[group].arms;
        for (index, found) in probe.arms.iter().enumerate() {
            let Some(arm) = arms.iter_mut().find(|arm| arm.arm == found.arm) else { continue };
            if let Some(message_ns) = work::measured_message_ns(probe, index)
                && !arm.is_fixed
            {
                (arm.message_ns, arm.is_probed) = (message_ns, true);
            }
        }
        self.learn_rate(group);
        let arms = &mut self.groups[group].arms;
        let baseline = arms.iter().find(|arm| arm.arm.role == Role::Baseline);
        let Some(message_ns) = baseline.map(|arm| arm.message_ns) else { return };
        for double in arms.iter_mut().filter(|arm| arm.arm.role == Role::SelfCheck) {
            double.message_ns = message_ns;
        }
    }

    /// Finds what is offered to the models of a group's kind in an open loop.
    fn learn_rate(&mut self, group: usize) {
        let Some(setting) = self.open_loop().cloned() else { return };
        let kind_of = |group: &Group| servers::kind(group.arms.iter().map(|arm| &arm.arm));
        let kind = kind_of(&self.groups[group]);
        let same = self.groups.iter().filter(|group| kind_of(group) == kind);
        let request_ns = same.flat_map(|group| &group.arms).map(|arm| arm.message_ns);
        self.rates.learn(kind, &setting, request_ns);
    }

    /// Takes over what a stored trial of this cell decided: the work of its
    /// slices, which stays as it was, or who failed.
    pub(crate) fn recall(&mut self, plan: &Plan, outcome: &TrialOutcome) {
        let knows = |group: &Group, found: &ArmOutcome| {
            let own = group.arms.iter().map(|arm| &arm.arm);
            own.chain(group.refused.iter().map(|(arm, _)| arm)).any(|arm| *arm == found.arm)
        };
        let whole = |group: &Group| outcome.arms.iter().all(|arm| knows(group, arm));
        let Some(group) = self.groups.iter().position(whole) else { return };
        match outcome.status {
            Status::Failed | Status::Skipped => self.note_failure(group, outcome),
            // The probes of pass 0 are stored only when they fail.
            Status::Ok => {
                let rate = outcome.arms.iter().find_map(|arm| arm.server.as_ref()?.rate);
                let kind = servers::kind(outcome.arms.iter().map(|arm| &arm.arm));
                rate.into_iter().for_each(|rate| self.rates.set(kind, rate));
                for (index, arm) in outcome.arms.iter().enumerate() {
                    match arm.status {
                        // What was refused stays out, whatever is allowed now.
                        Status::Skipped => self.groups[group].leave_out(arm),
                        _ => self.fix_work(plan, group, &arm.arm.label, outcome, index),
                    }
                }
            }
            Status::Invalid | Status::Interrupted => {}
        }
    }

    fn fix_work(
        &mut self,
        plan: &Plan,
        group: usize,
        label: &str,
        outcome: &TrialOutcome,
        index: usize,
    ) {
        let target = self.target;
        let is_it = |arm: &&mut GroupArm| arm.arm.label == label;
        let Some(arm) = self.groups[group].arms.iter_mut().find(is_it) else { return };
        let of_arm = |slice: &&SliceOutcome| slice.arm == index && slice.tx.messages > 0;
        let Some(slice) = outcome.slices.iter().find(of_arm) else { return };
        if self.cell.copy().is_some() {
            arm.copies = Some(slice.tx.messages);
        }
        arm.message_ns = if plan.schedule.is_sliced() && arm.copies.is_none() {
            // The half keeps rounding down from losing a message.
            target.0 as f64 / (slice.tx.messages as f64 + 0.5)
        } else {
            slice.tx.time_ns as f64 / slice.tx.messages as f64
        };
        arm.is_fixed = true;
    }
}

/// How long a slice of this trial's cell has to be: it ends with a word from the other end,
/// which is to be a fiftieth of it at most. On one machine that is so by far.
fn least_slice(probe: &TrialOutcome) -> Nanos {
    const ROUND_TRIPS: u64 = 50;
    let seen = [&probe.tx, &probe.rx].into_iter().flatten().filter_map(|end| end.min_round_trip_ns);
    Nanos(seen.min().unwrap_or(0).saturating_mul(ROUND_TRIPS))
}

/// How the slices of a trial are to be, and how long they take, about, in ns.
struct Layout {
    schedule: Schedule,
    target: Nanos,
    longest: u64,
    visit: u64,
}
