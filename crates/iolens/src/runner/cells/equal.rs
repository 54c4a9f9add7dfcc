//! How much work the slices of an arm are, so that those of all arms last equally long: found
//! by probes before the first pass, read back where a run goes on, and corrected where slices
//! have drifted apart.
//!
//! A slice holds time that is not its messages' (a receipt, somebody who is woken), and weighs
//! more in a short one: where slices differ, ratios hold the difference. So an arm is held
//! against the baseline within rounds, where the machine's mood is the same for both, and over
//! several trials, since a bad state of an arm can last for a whole one.
//!
//! Where trials disagree, an arm keeps the baseline's work as far as they leave room for that.
//! On a crowded machine a slice takes as long as the scheduler's turns, whatever is in it: less
//! work in the same time would be a difference that is none of the arm's. So slices that nobody
//! came between have to say the same as those of the middle.

use iolens_engine::work;
use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::outcome::{SliceOutcome, Status, TrialOutcome};
use iolens_model::plan::Plan;
use iolens_model::units::Nanos;

use super::super::servers;
use super::{CellState, Group, GroupArm};

/// Probes before the first pass.
const PROBES: usize = 3;

/// Latest trials that decide how long a message takes, probes to begin with.
const TRIALS: usize = 6;

/// From so many trials on, what they differ by says enough.
const MANY: usize = 5;

/// Slices have drifted apart where one lasts for more than so many times the other. Less is
/// what trials differ by, and would be followed in vain.
const APART: f64 = 1.15;

/// Quantiles of Student's t for 95 % intervals of two trials, of three, and so on.
const STUDENT_T: [f64; TRIALS - 1] = [12.706, 4.303, 3.182, 2.776, 2.571];

/// Of few trials, what single rounds differ by, in their standard deviations, is no reason for
/// other work: a state may last for all rounds of some trials, and turns of the scheduler come
/// out even.
const DEVIATIONS: f64 = 2.0;

/// A slice lasts for no more than so many times the baseline's, as far as is known.
const LONGEST: f64 = 4.0;

impl Group {
    fn baseline(&self) -> Option<&GroupArm> {
        self.arms.iter().find(|arm| arm.arm.role == Role::Baseline)
    }

    /// Of an arm of a trial, beside the baseline in each round where that is in the trial too,
    /// and else beside `baseline_ns`.
    fn ratios(trial: &TrialOutcome, arm: &Arm, baseline_ns: f64) -> Option<MessageRatios> {
        let index = place(trial, arm)?;
        let baseline = trial.arms.iter().position(|found| found.arm.role == Role::Baseline);
        let Some(baseline) = baseline else {
            let ln = (work::measured_message_ns(trial, index)? / baseline_ns).ln();
            return Some(MessageRatios { rounds: vec![ln], middle: ln, undisturbed: ln });
        };
        let rounds = work::measured_ln_ratios(trial, index, baseline);
        let middle = work::median(rounds.clone())?;
        let undisturbed = work::undisturbed_ln_ratio(trial, index, baseline)?;
        Some(MessageRatios { rounds, middle, undisturbed })
    }
}

/// How many times as long a message of an arm takes as one of the baseline in a trial, ln.
#[derive(Debug, Clone)]
pub(super) struct MessageRatios {
    rounds: Vec<f64>,
    middle: f64,
    undisturbed: f64,
}

/// The place of an arm in a trial in which nothing came between.
fn place(trial: &TrialOutcome, arm: &Arm) -> Option<usize> {
    trial.arms.iter().position(|found| found.arm == *arm && found.status == Status::Ok)
}

impl CellState {
    /// Probes of whole slices that the work of a group is taken from: they are fresh processes
    /// each. Where slices are no fixed work, one says enough of how long they take.
    pub(crate) fn probes(plan: &Plan) -> usize {
        if plan.schedule.is_sliced() { PROBES } else { 1 }
    }

    /// Takes from probes of a group what a message of each arm takes.
    pub(crate) fn learn(&mut self, group: usize, probes: &[TrialOutcome]) {
        self.target = probes.iter().map(least_slice).fold(self.target, Nanos::max);
        // A rate is taken from what requests take, and slices by a schedule are equal anyway.
        let is_exact = self.open_loop().is_some();
        let state = &mut self.groups[group];
        let own_ns = |arm: &Arm| {
            let of_probe = |probe| work::measured_message_ns(probe, place(probe, arm)?);
            work::median(probes.iter().filter_map(of_probe).collect())
        };
        let baseline = state.arms.iter_mut().find(|arm| arm.arm.role == Role::Baseline);
        let Some(baseline) = baseline else { return };
        if let Some(message_ns) = own_ns(&baseline.arm).filter(|_| !baseline.is_recalled) {
            (baseline.message_ns, baseline.is_probed) = (message_ns, true);
        }
        let baseline_ns = baseline.message_ns;
        for arm in state.arms.iter_mut().filter(|arm| arm.arm.role != Role::Baseline) {
            let ratios = probes.iter().filter_map(|p| Group::ratios(p, &arm.arm, baseline_ns));
            arm.latest = ratios.collect();
            if let Some(range) = Range::of_few(&arm.latest).filter(|_| !arm.is_recalled) {
                let ln = if is_exact { range.mean } else { range.nearest() };
                (arm.message_ns, arm.is_probed) = (baseline_ns * ln.exp(), true);
            }
        }
        self.learn_rate(group);
    }

    /// Finds what is offered to the models of a group's kind in an open loop.
    pub(super) fn learn_rate(&mut self, group: usize) {
        let Some(setting) = self.open_loop().cloned() else { return };
        let kind_of = |group: &Group| servers::kind(group.arms.iter().map(|arm| &arm.arm));
        let kind = kind_of(&self.groups[group]);
        let same = self.groups.iter().filter(|group| kind_of(group) == kind);
        let request_ns = same.flat_map(|group| &group.arms).map(|arm| arm.message_ns);
        self.rates.learn(kind, &setting, request_ns);
    }

    /// Takes from a trial of a pass how long messages took, and corrects the work of the arms
    /// whose slices have drifted apart from the baseline's: from the next pass on they are as
    /// long as those.
    pub(crate) fn follow(&mut self, plan: &Plan, group: usize, trial: &TrialOutcome) {
        let is_work = plan.schedule.is_sliced() && self.open_loop().is_none();
        if !is_work || trial.isolated != plan.measures_alone(&self.cell) {
            return;
        }
        let state = &mut self.groups[group];
        let Some(baseline) = state.baseline() else { return };
        let (of_slices_ns, label) = (baseline.message_ns, baseline.arm.clone());
        let now = place(trial, &label).and_then(|index| work::measured_message_ns(trial, index));
        state.baseline_ns = now.or(state.baseline_ns);
        let beside_ns = state.baseline_ns.unwrap_or(of_slices_ns);
        for arm in state.arms.iter_mut().filter(|arm| arm.arm.role != Role::Baseline) {
            let Some(ratios) = Group::ratios(trial, &arm.arm, beside_ns) else { continue };
            arm.latest.push(ratios);
            let old = arm.latest.len().saturating_sub(TRIALS);
            arm.latest.drain(..old);
            arm.keep_equal(of_slices_ns);
        }
    }

    /// Takes over what a stored trial of this cell decided: the work of its
    /// slices, or who failed.
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
                        _ => self.recall_work(plan, group, outcome, index),
                    }
                }
                self.follow(plan, group, outcome);
            }
            Status::Invalid | Status::Interrupted => {}
        }
    }

    /// Takes over the work of an arm's slices in a stored trial.
    fn recall_work(&mut self, plan: &Plan, group: usize, outcome: &TrialOutcome, index: usize) {
        let is_it = |arm: &GroupArm| arm.arm.label == outcome.arms[index].arm.label;
        let Some(at) = self.groups[group].arms.iter().position(is_it) else { return };
        let counts = |slice: &&SliceOutcome| slice.arm == index && slice.tx.messages > 0;
        let Some(slice) = outcome.slices.iter().find(counts) else { return };
        let messages = slice.tx.messages;
        let measured_ns = work::measured_message_ns(outcome, index);
        let measured_ns = measured_ns.unwrap_or(slice.tx.time_ns as f64 / messages as f64);
        let mut arm = self.groups[group].arms[at].clone();
        (arm.message_ns, arm.is_recalled, arm.copies) = (measured_ns, true, None);
        // Where no time would give just as many, as where they are the fewest that may be, the
        // time is what it was.
        if plan.schedule.is_sliced() && self.messages(&arm, self.target) != messages {
            // The half keeps rounding down from losing a message.
            arm.message_ns = self.target.0 as f64 / (messages as f64 + 0.5);
            if self.cell.copy().is_some() {
                (arm.message_ns, arm.copies) = (measured_ns, Some(messages));
            }
        }
        self.groups[group].arms[at] = arm;
    }
}

impl GroupArm {
    /// Makes its slices as long as the baseline's, a message of which counts as so long, if
    /// the latest trials leave no doubt that they have drifted apart: a few that differ by
    /// much, or more that differ by less.
    fn keep_equal(&mut self, baseline_ns: f64) {
        let few = self.latest.len().checked_sub(PROBES).map(|from| &self.latest[from..]);
        let many = Some(&self.latest[..]).filter(|latest| latest.len() >= MANY);
        let ln = (self.message_ns / baseline_ns).ln();
        let few = few.and_then(Range::of_few).map(|range| (range, range.nearest()));
        let many = many.and_then(Range::of_many).map(|range| (range, range.mean));
        let apart = [few, many].into_iter().flatten().find(|(range, _)| !range.has_room_for(ln));
        if let Some((_, right_ln)) = apart {
            (self.message_ns, self.copies) = (baseline_ns * right_ln.exp(), None);
        }
    }
}

/// Where trials put an arm's time per message over the baseline's, ln.
#[derive(Debug, Clone, Copy)]
struct Range {
    mean: f64,
    half_width: f64,
}

impl Range {
    /// Of few trials: a 95 % interval, or what rounds differ by where that is more. One trial
    /// alone decides no more than where others look: where a slice lasts for as long whatever
    /// is in it, they would find it confirmed.
    fn of_few(trials: &[MessageRatios]) -> Option<Range> {
        let middle = Range::of_trials(trials, |trial| trial.middle)?;
        let rounds: Vec<f64> = trials.iter().flat_map(|trial| trial.rounds.clone()).collect();
        let (_, deviation) = moments(&rounds)?;
        let half_width = middle.half_width.max(DEVIATIONS * deviation);
        Some(Range { half_width, ..middle })
    }

    /// Of at least [`MANY`] trials: what holds the 95 % intervals of both.
    fn of_many(trials: &[MessageRatios]) -> Option<Range> {
        let middle = Range::of_trials(trials, |trial| trial.middle)?;
        Some(middle.hull(Range::of_trials(trials, |trial| trial.undisturbed)?))
    }

    fn of_trials(trials: &[MessageRatios], value: fn(&MessageRatios) -> f64) -> Option<Range> {
        let values: Vec<f64> = trials.iter().map(value).collect();
        let (mean, deviation) = moments(&values)?;
        let half_width = match values.len() {
            1 => LONGEST.ln(),
            n => STUDENT_T[n.min(TRIALS) - 2] * deviation / (n as f64).sqrt(),
        };
        Some(Range { mean, half_width })
    }

    /// The least that holds both.
    fn hull(self, other: Range) -> Range {
        let low = (self.mean - self.half_width).min(other.mean - other.half_width);
        let high = (self.mean + self.half_width).max(other.mean + other.half_width);
        Range { mean: f64::midpoint(low, high), half_width: (high - low) / 2.0 }
    }

    /// The value in it that is nearest to the baseline's.
    fn nearest(&self) -> f64 {
        let width = self.half_width.min(LONGEST.ln());
        0.0_f64.clamp(self.mean - width, self.mean + width)
    }

    fn has_room_for(&self, ln: f64) -> bool {
        (ln - self.mean).abs() <= self.half_width + APART.ln()
    }
}

/// Mean and standard deviation, which is 0 of one value.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (!values.is_empty()).then(|| (mean, (square / (n - 1.0).max(1.0)).sqrt()))
}

/// How long a slice of this trial's cell has to be: it ends with a word from the other end,
/// which is to be a fiftieth of it at most. On one machine that is so by far.
fn least_slice(probe: &TrialOutcome) -> Nanos {
    const ROUND_TRIPS: u64 = 50;
    let seen = [&probe.tx, &probe.rx].into_iter().flatten().filter_map(|end| end.min_round_trip_ns);
    Nanos(seen.min().unwrap_or(0).saturating_mul(ROUND_TRIPS))
}

#[cfg(test)]
mod tests;
