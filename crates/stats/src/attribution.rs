//! Where the CPU time of an arm went, from the stacks of sampled trials: the
//! share of each class of work, with an interval over trials, and what an arm
//! spends per message that another one does not.

mod classes;

use std::collections::BTreeMap;

use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::profile::{ProfileEnd, ProfileTrial};
use serde::Serialize;

pub use self::classes::Class;
use crate::analysis::ZerocopyFigures;
use crate::estimate::{Estimate, Interval};
use crate::interval::{Moments, around, count};
use crate::student::quantile;

/// Where the CPU time of a cell's arms went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attribution {
    /// The cell.
    pub cell: Cell,
    /// Sampled trials that ended well.
    pub trials: u32,
    /// Trials that did not, with their reasons.
    pub failed: Vec<String>,
    /// Whether samples reach into the kernel: without it the shares are those
    /// of user time.
    pub kernel: bool,
    /// CPU time from one sample to the next.
    pub period_ns: u64,
    /// Arms, in the order of the trial.
    pub arms: Vec<ArmAttribution>,
    /// What sampling cost; `None` where no arm ran unsampled beside its double.
    pub sampling_cost: Option<SamplingCost>,
    /// What could not be sampled, and why.
    pub missing: Vec<String>,
    /// Trials of arms that are in no number here, and why.
    pub left_out: Vec<String>,
}

/// What sampling cost an arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplingCost {
    /// Its label.
    pub arm: String,
    /// Its time per message sampled over the same unsampled, in slices that
    /// took turns.
    pub ratio: Estimate,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmAttribution {
    /// Its label.
    pub arm: String,
    /// Its primitive.
    pub primitive: String,
    /// Share of its zero-copy sends that the kernel reported as copied, 0 to
    /// 1; `None` for arms that make none.
    pub copied_share: Option<f64>,
    /// Both ends together.
    pub both: ScopeAttribution,
    /// The sending end.
    pub sender: Option<ScopeAttribution>,
    /// The receiving end; `None` for arms without one.
    pub receiver: Option<ScopeAttribution>,
}

impl ArmAttribution {
    /// Its label, with `(copied)` behind one that asked for zero-copy and did
    /// not get it.
    pub fn shown(&self) -> String {
        match self.copied_share {
            Some(share) if share > ZerocopyFigures::COPIED_SHARE_MAX => {
                format!("{} (copied)", self.arm)
            }
            _ => self.arm.clone(),
        }
    }

    /// The CPU time of a scope; `None` where the arm has none.
    pub fn scope(&self, scope: Scope) -> Option<&ScopeAttribution> {
        match scope {
            Scope::Both => Some(&self.both),
            Scope::Sender => self.sender.as_ref(),
            Scope::Receiver => self.receiver.as_ref(),
        }
    }
}

/// Whose CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Of both ends.
    Both,
    /// Of the sending end's threads.
    Sender,
    /// Of the receiving end's threads.
    Receiver,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 3] = [Scope::Both, Scope::Sender, Scope::Receiver];

    fn takes(self, end: &ProfileEnd) -> bool {
        match self {
            Scope::Both => true,
            Scope::Sender => end.sends,
            Scope::Receiver => !end.sends,
        }
    }
}

/// The CPU time of one end, or of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScopeAttribution {
    /// Samples over all trials.
    pub samples: u64,
    /// Samples that were taken and lost.
    pub lost: u64,
    /// CPU time per message, from the kernel's accounts, in ns; where the
    /// kernel was not sampled, the user time that the samples stand for.
    pub cpu_ns_per_message: Estimate,
    /// Share of the threads' time that they were on a CPU, 0 to 1. `None` where threads of
    /// several ends are meant.
    pub busy_share: Option<f64>,
    /// Share of it that they were ready to run and had no CPU; what is left beside both, they
    /// were idle. Null likewise, and where the kernel counts nothing.
    pub waiting_share: Option<f64>,
    /// CPU time that the samples stand for over that of the sampled threads'
    /// accounts; 1 where the timer kept up. In user-only samples below it by the kernel's share.
    pub coverage: f64,
    /// Classes with any CPU time, in the order of [`Class::ALL`].
    pub classes: Vec<ClassShare>,
    /// Functions in which the CPU was most often, by share of CPU time.
    pub functions: Vec<FunctionShare>,
}

impl ScopeAttribution {
    /// The share of a class.
    pub fn class(&self, class: Class) -> Option<&ClassShare> {
        self.classes.iter().find(|share| share.class == class)
    }
}

/// One class of work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassShare {
    /// The class.
    pub class: Class,
    /// Samples in it; none in [`Class::Unsampled`].
    pub samples: u64,
    /// Its share of the CPU time, 0 to 1.
    pub share: Estimate,
    /// The same as CPU time per message, in ns.
    pub ns_per_message: Estimate,
}

/// One function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionShare {
    /// Its name.
    pub symbol: String,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// Its class where it was seen most.
    pub class: Class,
    /// Its share of the CPU time, 0 to 1.
    pub share: f64,
}

/// What one arm spends on a class beyond another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassDifference {
    /// The class.
    pub class: Class,
    /// CPU time per message of the arm less that of the other, in ns; its
    /// interval holds with those of all classes and arms together.
    pub ns_per_message: Estimate,
    /// The arm's share less the other's, likewise.
    pub share: Estimate,
}

/// A cell explained: where the time of each arm went, and what each spends
/// that the baseline does not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Shares of each arm.
    pub attribution: Attribution,
    /// Each arm but one against that one.
    pub against: Vec<Against>,
}

/// One arm against another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// Label of the arm.
    pub arm: String,
    /// Label of the other one.
    pub other: String,
    /// CPU time per message of the arm less that of the other, both ends, ns;
    /// its interval holds with those of all arms together.
    pub cpu_ns_per_message: Estimate,
    /// By class, of both ends, largest difference first.
    pub classes: Vec<ClassDifference>,
    /// What the arm does and the other one hardly ever; `None` where there is
    /// no such class.
    pub only: Option<Only>,
}

/// Classes that one arm has and the other has not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Only {
    /// Which.
    pub classes: Vec<Class>,
    /// Their part in the arm's CPU time, both ends, 0 to 1.
    pub share: Estimate,
}

/// Explains every cell that has sampled trials, in the order in which they
/// were sampled. The arms are set against `baseline`, or where that was not
/// sampled against the first one that was.
pub fn explain(trials: &[ProfileTrial], baseline: &str) -> Vec<Explanation> {
    let mut cells: Vec<&Cell> = Vec::new();
    for trial in trials {
        if !cells.contains(&&trial.cell) {
            cells.push(&trial.cell);
        }
    }
    let explanation = |cell: &Cell| {
        let of_cell: Vec<ProfileTrial> =
            trials.iter().filter(|trial| trial.cell == *cell).cloned().collect();
        let attribution = attribute(&of_cell)?;
        let labels = || attribution.arms.iter().map(|arm| arm.arm.as_str());
        let other = labels().find(|label| *label == baseline).or_else(|| labels().next());
        let arms: Vec<&str> = labels().filter(|label| Some(*label) != other).collect();
        let of_arm = |arm: &&str| against(&of_cell, arm, other?, arms.len());
        let against = arms.iter().filter_map(of_arm).collect();
        Some(Explanation { attribution, against })
    };
    cells.into_iter().filter_map(explanation).collect()
}

/// A class that an arm has with at least this share, and another one with at
/// most the second, is its own.
const OWN_SHARE_MIN: f64 = 0.01;
const OTHER_SHARE_MAX: f64 = 0.002;

/// Functions that are listed.
const FUNCTIONS_MAX: usize = 12;

/// Analyses the sampled trials of one cell, which need not be in order; `None`
/// without any.
pub fn attribute(trials: &[ProfileTrial]) -> Option<Attribution> {
    let first = trials.first()?;
    let good: Vec<&ProfileTrial> = trials.iter().filter(|t| t.status == Status::Ok).collect();
    let mut arms: Vec<(&str, &str)> = Vec::new();
    for end in good.iter().flat_map(|trial| &trial.ends) {
        if !arms.iter().any(|(arm, _)| *arm == end.arm) {
            arms.push((&end.arm, &end.primitive));
        }
    }
    let left_out = arms.iter().filter_map(|(arm, _)| left_out(&good, arm)).collect();
    let arms = arms.into_iter().filter_map(|(arm, primitive)| {
        let scope = |scope| of_scope(&good, arm, scope);
        Some(ArmAttribution {
            arm: arm.to_owned(),
            primitive: primitive.to_owned(),
            copied_share: copied_share(&good, arm),
            both: scope(Scope::Both)?,
            sender: scope(Scope::Sender),
            receiver: scope(Scope::Receiver),
        })
    });
    let mut missing: Vec<String> = Vec::new();
    for entry in trials.iter().flat_map(|trial| &trial.not_measured) {
        if !missing.contains(&entry.why) {
            missing.push(entry.why.clone());
        }
    }
    Some(Attribution {
        cell: first.cell.clone(),
        trials: count(good.len()),
        failed: trials
            .iter()
            .filter(|trial| trial.status != Status::Ok)
            .map(|trial| trial.reason.clone().unwrap_or_default())
            .collect(),
        kernel: good.iter().flat_map(|t| &t.ends).all(|end| end.kernel) && !good.is_empty(),
        period_ns: first.sampling.period.0,
        arms: arms.collect(),
        sampling_cost: of(&good),
        missing,
        left_out,
    })
}

/// Says of how many trials of an arm the CPU time is not known.
fn left_out(trials: &[&ProfileTrial], arm: &str) -> Option<String> {
    let of_arm = |trial: &ProfileTrial| trial.ends.iter().any(|end| end.arm == arm);
    let all = trials.iter().filter(|trial| of_arm(trial)).count();
    let lacks = |end: &ProfileEnd| end.arm == arm && cpu_times(end).is_none();
    let lacking = trials.iter().filter(|trial| trial.ends.iter().any(lacks)).count();
    (lacking > 0).then(|| {
        format!(
            "{lacking} of {all} sampled trials of {arm}: the CPU time of what worked for it is \
             not known"
        )
    })
}

/// CPU time of all that worked for an arm at an end, and of the sampled threads alone.
fn cpu_times(end: &ProfileEnd) -> Option<(u64, u64)> {
    end.counts.task_clock_ns.zip(end.samples.cpu_ns)
}

fn copied_share(trials: &[&ProfileTrial], arm: &str) -> Option<f64> {
    let ends = trials.iter().flat_map(|trial| &trial.ends).filter(|end| end.arm == arm);
    let counts = ends.filter_map(|end| end.counts.zerocopy);
    counts.reduce(|a, b| a.plus(&b))?.copied_share()
}

/// One trial's counts of a scope of an arm.
#[derive(Debug, Clone, Default)]
struct Tally {
    samples: u64,
    lost: u64,
    by_class: BTreeMap<Class, u64>,
    /// What the samples are shares of: the CPU time of the kernel's accounts
    /// of the sampled threads, or where the kernel was not sampled the user
    /// time that they stand for.
    sampled_ns: f64,
    /// CPU time of what worked for the arm and was not sampled. Where the
    /// kernel was not, none: its threads have no user time.
    unsampled_ns: f64,
    /// CPU time of the kernel's accounts of the sampled threads.
    accounted_ns: f64,
    /// Time ready to run without a CPU; `None` where the kernel counts nothing.
    waited_ns: Option<f64>,
    /// Thread time of the slices; the ends' threads are as many.
    time_ns: f64,
    messages: f64,
}

impl Tally {
    /// `None` where a part of the CPU time is not known, and where there is
    /// nothing to share out.
    fn of(trial: &ProfileTrial, arm: &str, scope: Scope) -> Option<Tally> {
        let ends = trial.ends.iter().filter(|end| end.arm == arm && scope.takes(end));
        let mut tally = Tally { waited_ns: Some(0.0), ..Tally::default() };
        for end in ends {
            let (all_ns, own_ns) = cpu_times(end)?;
            tally.lost += end.samples.lost;
            for stack in &end.samples.stacks {
                tally.samples += stack.samples;
                *tally.by_class.entry(Class::of(stack)).or_default() += stack.samples;
            }
            tally.accounted_ns += own_ns as f64;
            let waited = tally.waited_ns.zip(end.counts.run_delay_ns);
            tally.waited_ns = waited.map(|(sum, waited_ns)| sum + waited_ns as f64);
            let (sampled_ns, unsampled_ns) = match end.kernel {
                true => (own_ns, all_ns.saturating_sub(own_ns)),
                false => (end.samples.total() * trial.sampling.period.0, 0),
            };
            tally.sampled_ns += sampled_ns as f64;
            tally.unsampled_ns += unsampled_ns as f64;
            tally.time_ns += end.counts.time_ns as f64 * f64::from(trial.cell.threads);
            // Both ends count the same messages.
            tally.messages = tally.messages.max(end.counts.messages as f64);
        }
        (tally.samples > 0 && tally.messages > 0.0).then_some(tally)
    }

    fn cpu_ns(&self) -> f64 {
        self.sampled_ns + self.unsampled_ns
    }

    fn class_ns(&self, class: Class) -> f64 {
        if class == Class::Unsampled {
            return self.unsampled_ns;
        }
        let of_class = self.by_class.get(&class).copied().unwrap_or(0) as f64;
        self.sampled_ns * of_class / self.samples as f64
    }
}

fn of_scope(trials: &[&ProfileTrial], arm: &str, scope: Scope) -> Option<ScopeAttribution> {
    let usable = trials.iter().filter_map(|&trial| Some((trial, Tally::of(trial, arm, scope)?)));
    let (trials, tallies): (Vec<&ProfileTrial>, Vec<Tally>) = usable.unzip();
    let period_ns = trials.first()?.sampling.period.0 as f64;
    let sum = |of: fn(&Tally) -> f64| tallies.iter().map(of).sum::<f64>();
    let accounted_ns = sum(|t| t.accounted_ns);
    let waited_ns: Option<f64> = match scope {
        Scope::Both => None,
        Scope::Sender | Scope::Receiver => tallies.iter().map(|t| t.waited_ns).sum(),
    };
    let samples: u64 = tallies.iter().map(|t| t.samples).sum();
    let class = |class: Class| {
        let has = tallies.iter().any(|t| t.class_ns(class) > 0.0);
        has.then(|| ClassShare {
            class,
            samples: tallies.iter().filter_map(|t| t.by_class.get(&class)).sum(),
            share: share_of(&tallies, class),
            ns_per_message: ratio(&tallies, |t| (t.class_ns(class), t.messages)),
        })
    };
    let of_sample = sum(|t| t.sampled_ns) / sum(Tally::cpu_ns) / samples as f64;
    Some(ScopeAttribution {
        samples,
        lost: tallies.iter().map(|t| t.lost).sum(),
        cpu_ns_per_message: ratio(&tallies, |t| (t.cpu_ns(), t.messages)),
        busy_share: (scope != Scope::Both).then(|| accounted_ns / sum(|t| t.time_ns)),
        waiting_share: waited_ns.map(|waited_ns| waited_ns / sum(|t| t.time_ns)),
        coverage: samples as f64 * period_ns / accounted_ns,
        classes: Class::ALL.iter().copied().filter_map(class).collect(),
        functions: functions(&trials, arm, scope, of_sample),
    })
}

fn share_of(tallies: &[Tally], class: Class) -> Estimate {
    let mut estimate = ratio(tallies, |t| (t.class_ns(class), t.cpu_ns()));
    // A share is one: the t interval knows nothing of its bounds.
    if let Some(interval) = &mut estimate.interval {
        *interval = Interval { low: interval.low.max(0.0), high: interval.high.min(1.0) };
    }
    estimate
}

/// Total over total, with how far each trial pulls at it.
fn pulls(tallies: &[Tally], parts: impl Fn(&Tally) -> (f64, f64)) -> (f64, Vec<f64>) {
    let all: Vec<(f64, f64)> = tallies.iter().map(&parts).collect();
    let (over, under) = all.iter().fold((0.0, 0.0), |(x, y), (a, b)| (x + a, y + b));
    let value = over / under;
    let n = all.len() as f64;
    // First-order term of the ratio estimator (Cochran 1977, section 6.3), not
    // on the logarithm: a share may be zero.
    (value, all.iter().map(|(a, b)| n * (a - value * b) / under).collect())
}

/// A ratio of totals with its pointwise 95 % interval over trials.
fn ratio(tallies: &[Tally], parts: impl Fn(&Tally) -> (f64, f64)) -> Estimate {
    let (value, pulls) = pulls(tallies, parts);
    estimate(value, &pulls, 1)
}

/// With an interval that is one of `of`, all of which hold with 95 % (Bonferroni).
fn estimate(value: f64, pulls: &[f64], of: usize) -> Estimate {
    let n = count(pulls.len());
    let p = 1.0 - 0.025 / of as f64;
    let half = Moments::of(pulls)
        .and_then(|moments| moments.half_width(quantile(moments.n.saturating_sub(1), p)?));
    let interval = half.map(|half| Interval::about(value, half));
    Estimate { value, interval, n }
}

/// What `arm`, one of `arms`, spends beyond `other`; `None` where they share no trial.
fn against(trials: &[ProfileTrial], arm: &str, other: &str, arms: usize) -> Option<Against> {
    // Paired: both arms took turns in the same trials.
    let good = trials.iter().filter(|trial| trial.status == Status::Ok);
    let of = |trial, label| Tally::of(trial, label, Scope::Both);
    let pairs = good.filter_map(|trial| of(trial, arm).zip(of(trial, other)));
    let (of_arm, of_other): (Vec<Tally>, Vec<Tally>) = pairs.unzip();
    if of_arm.is_empty() {
        return None;
    }
    let less = |of: usize, parts: &dyn Fn(&Tally) -> (f64, f64)| {
        let ((a, a_pulls), (b, b_pulls)) = (pulls(&of_arm, parts), pulls(&of_other, parts));
        let pulls: Vec<f64> = a_pulls.iter().zip(&b_pulls).map(|(a, b)| a - b).collect();
        estimate(a - b, &pulls, of)
    };
    let is_seen = |class: &Class| of_arm.iter().chain(&of_other).any(|t| t.class_ns(*class) > 0.0);
    let seen: Vec<Class> = Class::ALL.iter().copied().filter(is_seen).collect();
    let all = seen.len() * arms;
    let difference = |&class: &Class| ClassDifference {
        class,
        ns_per_message: less(all, &|t| (t.class_ns(class), t.messages)),
        share: less(all, &|t| (t.class_ns(class), t.cpu_ns())),
    };
    let mut classes: Vec<ClassDifference> = seen.iter().map(difference).collect();
    classes.sort_by(|a, b| b.ns_per_message.value.abs().total_cmp(&a.ns_per_message.value.abs()));
    let is_own = |class: &Class| {
        let share = |tallies: &[Tally]| share_of(tallies, *class);
        let has = share(&of_arm).interval.is_some_and(|interval| interval.low > 0.0);
        let enough = has && share(&of_arm).value >= OWN_SHARE_MIN;
        // Unattributed says nothing, and user code is never its own.
        enough && *class != Class::Unattributed && share(&of_other).value <= OTHER_SHARE_MAX
    };
    let own: Vec<Class> = Class::ALL.iter().copied().filter(is_own).collect();
    let together = |t: &Tally| own.iter().map(|&class| t.class_ns(class)).sum::<f64>();
    let only = (!own.is_empty()).then(|| Only {
        share: ratio(&of_arm, |t| (together(t), t.cpu_ns())),
        classes: own.clone(),
    });
    Some(Against {
        only,
        arm: arm.to_owned(),
        other: other.to_owned(),
        cpu_ns_per_message: less(arms, &|t| (t.cpu_ns(), t.messages)),
        classes,
    })
}

/// The functions in which the CPU was, most frequent first. A sample is
/// `of_sample` of the CPU time.
fn functions(
    trials: &[&ProfileTrial],
    arm: &str,
    scope: Scope,
    of_sample: f64,
) -> Vec<FunctionShare> {
    let mut seen: BTreeMap<(&str, bool), BTreeMap<Class, u64>> = BTreeMap::new();
    let ends = trials.iter().flat_map(|trial| &trial.ends);
    for end in ends.filter(|end| end.arm == arm && scope.takes(end)) {
        for stack in &end.samples.stacks {
            let Some(frame) = stack.frames().next_back() else { continue };
            let classes = seen.entry((frame.symbol, frame.kernel)).or_default();
            *classes.entry(Class::of(stack)).or_default() += stack.samples;
        }
    }
    let mut all: Vec<FunctionShare> = seen
        .into_iter()
        .filter_map(|((symbol, kernel), classes)| {
            let total: u64 = classes.values().sum();
            let (class, _) = classes.into_iter().max_by_key(|(_, samples)| *samples)?;
            let share = total as f64 * of_sample;
            Some(FunctionShare { symbol: symbol.to_owned(), kernel, class, share })
        })
        .collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.symbol.cmp(&b.symbol)));
    all.truncate(FUNCTIONS_MAX);
    all
}

#[cfg(test)]
mod tests;

// What sampling cost: the sampled baseline against its unsampled double.

/// Of trials that ended well, on the logarithm, as contrasts of timed trials;
/// `None` where no trial has both.
fn of(trials: &[&ProfileTrial]) -> Option<SamplingCost> {
    let arm = &trials.iter().find_map(|trial| trial.unsampled.as_ref())?.arm;
    let logs: Vec<f64> = trials.iter().filter_map(|trial| log_ratio(trial, arm)).collect();
    let moments = Moments::of(&logs)?;
    let half = moments.half_width(quantile(moments.n.saturating_sub(1), 0.975)?);
    let interval = half.map(|half| around(moments.mean, half));
    let ratio = Estimate { value: moments.mean.exp(), interval, n: moments.n };
    Some(SamplingCost { arm: arm.clone(), ratio })
}

fn log_ratio(trial: &ProfileTrial, arm: &str) -> Option<f64> {
    let unsampled = trial.unsampled.as_ref().filter(|unsampled| unsampled.arm == arm)?;
    let sampled = &trial.ends.iter().find(|end| end.sends && end.arm == arm)?.counts;
    let log = |time_ns: u64, messages: u64| {
        (time_ns > 0 && messages > 0).then(|| (time_ns as f64 / messages as f64).ln())
    };
    Some(log(sampled.time_ns, sampled.messages)? - log(unsampled.time_ns, unsampled.messages)?)
}
