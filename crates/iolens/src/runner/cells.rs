//! A cell while a run goes on: its arms, the work of their slices, and who
//! has dropped out.

mod dropouts;
mod equal;
mod known;

use iolens_engine::layout::{self, Placement};
use iolens_engine::work;
use iolens_harness::locked_memory::Limits;
use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::axes::{Direction, Topology};
use iolens_model::cell::Cell;
use iolens_model::file::FileFacts;
use iolens_model::host::HostFacts;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::run::FarFacts;
use iolens_model::server::ServerSetting;
use iolens_model::trial::{Slice, SliceKind, Trial, TrialHosts};
use iolens_model::units::{Bytes, Nanos};
use iolens_syscall::Asked;
use rand::Rng;

use super::arms::{
    COPYING_TRIAL, PROBE_ROUNDS, SENDING_TRIAL, allowed, around_a_copy, guess_ns, rounds_of_probes,
    rounds_within, settling_ns, written_blocks,
};
use super::servers::Rates;
use super::{is_compared, servers};

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

/// How long slices last at least where an arm is a program of the user's. One that runs once starts
/// in each of its own: outside of the clock, but that takes some milliseconds. One that loops is
/// asked in each of its own, which takes 20 to 50 µs within the clock.
fn slice_of_programs(plan: &Plan) -> Nanos {
    match (plan.programs(), plan.programs_loop()) {
        ([], _) => Nanos(0),
        (_, false) => Nanos(50_000_000),
        (_, true) => Nanos(5_000_000),
    }
}

/// The untimed burst before a single long slice is cut from this much work.
const CLASSIC_TARGET: Nanos = Nanos(100_000_000);

/// Arms that are measured together.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// Which one of its cell it is, for as long as the run lasts.
    pub(crate) id: usize,
    pub(crate) arms: Vec<GroupArm>,
    /// Arms that this machine's limits do not allow in this cell, and why.
    refused: Vec<(Arm, String)>,
    /// Failed trials that nobody could be blamed for.
    failures_of_nobody: u32,
    /// Time of a message of the baseline in its latest trial of a pass, ns.
    baseline_ns: Option<f64>,
}

/// One arm of a group.
#[derive(Debug, Clone)]
pub(crate) struct GroupArm {
    pub(crate) arm: Arm,
    /// Time of a message: guessed, then probed, then kept until slices have drifted apart.
    message_ns: f64,
    /// Whether a probe has found it.
    is_probed: bool,
    /// Whether an earlier session of the run has found it.
    is_recalled: bool,
    /// Of the latest trials; empty for the baseline.
    latest: Vec<equal::MessageRatios>,
    /// Files that a slice copies, recalled likewise; null in other studies.
    copies: Option<u64>,
    /// Failed trials.
    failures: u32,
}

impl Group {
    fn new(id: usize) -> Group {
        let (arms, refused) = (Vec::new(), Vec::new());
        Group { id, arms, refused, failures_of_nobody: 0, baseline_ns: None }
    }

    /// Labels of its arms with these roles.
    pub(super) fn labels(&self, takes_part: impl Fn(Role) -> bool) -> Vec<String> {
        let arms = self.arms.iter().map(|arm| &arm.arm);
        arms.filter(|arm| takes_part(arm.role)).map(|arm| arm.label.clone()).collect()
    }

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
        GroupArm {
            arm,
            message_ns,
            is_probed: false,
            is_recalled: false,
            latest: Vec::new(),
            copies: None,
            failures: 0,
        }
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
        let cores = match &plan.cpus {
            // In the order in which the user names them.
            Some(cpus) => cpus.iter().map(|&cpu| vec![cpu]).collect(),
            None => host.cores_of(&host.cpus),
        };
        let has_one_end = cell.is_alone() || cell.topology().is_some_and(Topology::is_apart);
        let slice = match plan.schedule {
            Schedule::Slices { slice, .. } => slice,
            Schedule::Window { .. } | Schedule::Messages { .. } => CLASSIC_TARGET,
        };
        // What threads do not end together is the same in a long slice, and for most of it
        // they must be at work together.
        let several = cell.is_alone() && cell.threads > 1;
        let slice = if several { Nanos(slice.0.saturating_mul(SEVERAL_THREADS)) } else { slice };
        let slice = slice.max(slice_of_programs(plan));
        let limits = Limits::here();
        let group = |(id, arms): (usize, Vec<Arm>)| {
            let mut group = Group::new(id);
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
        let groups = layout::arm_groups(plan, &cell).into_iter();
        let (groups, impossible): (Vec<Group>, Vec<Group>) =
            groups.enumerate().map(group).partition(Group::has_baseline);
        let (groups, needless) = without_needless(groups);
        let impossible = impossible.into_iter().map(Group::all_refused);
        CellState {
            groups,
            impossible: impossible.chain(needless.into_iter().map(|g| g.refused)).collect(),
            placement: servers::placement(plan, layout::placement(&cores, has_one_end)),
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
        let each = match self.cell.syscall() {
            Some(_) => self.cell.size.0.saturating_mul(arms),
            None => self.cell.receive_size().0,
        };
        let buffers = each.saturating_mul(u64::from(self.cell.threads));
        Bytes(rings.saturating_add(buffers))
    }

    /// The same as a sum in words.
    pub(crate) fn memory_words(&self) -> String {
        let arms = self.groups.iter().map(|group| group.arms.len()).max().unwrap_or(0);
        let Cell { threads, size, .. } = &self.cell;
        if self.cell.syscall().is_some() {
            return format!("{arms} calls × {threads} threads × a block of {size}");
        }
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
        let cores = far.host.cores_of(&far.host.cpus);
        let far_cpus = layout::placement(&cores, true).tx_cpus;
        let near_cpus = self.placement.tx_cpus;
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

    /// Where a group stands among those that are still in the cell.
    pub(crate) fn place_of_group(&self, id: usize) -> Option<usize> {
        self.groups.iter().position(|group| group.id == id)
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
        if let Some(setting) = self.cell.syscall() {
            let threads = u64::from(self.cell.threads);
            let asked = Asked::by(&self.cell, self.file.as_ref().map(|file| file.bytes));
            let entry = iolens_syscall::find(&arm.arm.primitive);
            let most = entry.and_then(|entry| entry.most_of(asked)).map(u64::from);
            return match setting.in_a_row {
                Some(calls) => calls.saturating_mul(threads),
                None => work::messages(target, arm.message_ns, &self.cell)
                    .min(most.map_or(u64::MAX, |most| most.max(1) * threads)),
            };
        }
        let Some(found) = &self.file else {
            return work::messages(target, arm.message_ns, &self.cell);
        };
        match &found.writing {
            Some(writing) => written_blocks(target, &arm.arm, arm.message_ns, &self.cell, writing),
            None => work::blocks(target, arm.message_ns, &self.cell, found.bytes),
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
            Schedule::Slices { discarded_rounds, rounds, .. } => {
                discarded_rounds.saturating_add(rounds)
            }
            Schedule::Window { .. } | Schedule::Messages { .. } => 1,
        };
        let slice_ns = self.slice_ns(plan, arm);
        let settling = || settling_ns(self.messages(arm, self.target), &self.cell);
        let around_ns = self.cell.write().map_or(0, |_| settling());
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
        let of_copies = self.cell.copy().is_some();
        if !of_copies && plan.whole_programs().is_empty() {
            return plan.schedule;
        }
        let round = group.arms.iter().map(|arm| self.slice_ns(plan, arm));
        let round = round.fold(0, u64::saturating_add);
        let wanted = [discarded_rounds, rounds];
        let [discarded_rounds, rounds] = match of_copies {
            true => rounds_within(COPYING_TRIAL, around_a_copy(round), wanted),
            false => rounds_within(SENDING_TRIAL, round, wanted),
        };
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

    /// A short trial that finds how long a message of each arm takes, or of one of them: with
    /// slices of this share of what they are meant to be, the first ones to learn where to look.
    pub(crate) fn probe(
        &self,
        plan: &Plan,
        (group, only): (usize, Option<usize>),
        share: u64,
        rng: &mut impl Rng,
    ) -> Trial {
        let target = Nanos(self.target.0 / share);
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
        let round = longest.saturating_mul(arms.len() as u64);
        let [discarded_rounds, rounds] = match (self.cell.copy(), self.cell.server()) {
            (_, Some(_)) => servers::probe_rounds(share),
            (Some(_), _) => rounds_of_probes(round),
            _ if self.is_apart() || !plan.whole_programs().is_empty() => rounds_of_probes(round),
            _ => PROBE_ROUNDS,
        };
        let layout = Layout {
            schedule: Schedule::Slices { slice: target, discarded_rounds, rounds },
            target,
            longest,
            visit: round.saturating_mul(u64::from(discarded_rounds.saturating_add(rounds))),
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
        let mut slices = layout::slices(&layout.schedule, &self.cell, &work, round, rng);
        // A program makes its connections anew, so none of them idles.
        let connects_anew = |slice: &Slice| {
            !plan.programs_loop() && plan.is_program(&arms[slice.arm].arm.primitive)
        };
        slices.retain(|slice| slice.kind != SliceKind::Warm || !connects_anew(slice));
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
            programs: plan.programs().to_vec(),
            programs_loop: plan.programs_loop(),
            servers: servers.map(|(axes, setting)| {
                servers::of_trial(axes, setting, &self.placement, slice, seed)
            }),
            sampling: None,
            stall_limit: Nanos((STALL_MIN.0 + once).saturating_add(slices_of_patience)),
            trial_limit: Nanos((TRIAL_MIN.0 + all).saturating_add(layout.visit.saturating_mul(10))),
        }
    }
}

/// How the slices of a trial are to be, and how long they take, about, in ns.
struct Layout {
    schedule: Schedule,
    target: Nanos,
    longest: u64,
    visit: u64,
}
