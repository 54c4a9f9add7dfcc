//! A whole run of `ab`: each cell judged, with what its arms took.

use iolens_model::ab::{AbArm, AbAxes, AbCalls, AbCallsBy, AbQuantity, AbSetting};
use iolens_model::arm::{ArmOutcome, Role};
use iolens_model::outcome::{Counts, Status, TrialOutcome};
use iolens_model::run::{Run, StoppedBy};
use iolens_model::trial::SliceKind;
use serde::Serialize;

use super::{
    AbContrast, AbInput, AbJudgement, AbLook, AbThrottled, AbTrial, AbTrials, AbUnit, AbVerdict,
    judge, layout_allowance,
};
use crate::interval::{count, median};

/// What is concluded of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbAnalysis {
    /// What counts as one independent value.
    pub unit: AbUnit,
    /// By setting, in the order of the plan.
    pub cells: Vec<AbCell>,
    /// How cgroups held the programs back, where they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<AbThrottled>,
}

/// What is concluded of a setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbCell {
    /// The values of parameters.
    pub setting: AbSetting,
    /// The arms, the baseline first.
    pub arms: Vec<AbArmFigures>,
    /// Whether times are what the programs timed themselves.
    pub is_own_time: bool,
    /// Verdicts.
    pub judgement: AbJudgement,
}

impl AbCell {
    /// What an operation of an arm takes, ns, as it is shown beside the others: of the baseline the
    /// median, of another arm that and its change, which is found between slices of the same
    /// moments. Medians of each arm alone may be further apart, or less.
    pub fn op_ns(&self, arm: usize, quantity: AbQuantity) -> Option<f64> {
        let median = |arm: usize| {
            let figures = self.arms.get(arm)?;
            match quantity {
                AbQuantity::Time => figures.op_time_ns,
                AbQuantity::Cpu => figures.op_cpu_ns,
            }
        };
        match self.judgement.contrast(arm, quantity).and_then(|contrast| contrast.change) {
            Some(change) => Some(median(0)? * (1.0 + change)),
            None => median(arm),
        }
    }
}

/// What an arm took. Medians are over units, of a trial the median of its rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbArmFigures {
    /// The program's name.
    pub name: String,
    /// Trials that count.
    pub trials: u32,
    /// Trials in which it failed, and why it did last.
    pub failed: u32,
    /// The last of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Files that it ran: its links, or 1.
    pub links: u32,
    /// Operations of a slice, the mean of trials; 1 of a command.
    pub operations: f64,
    /// Time per operation, ns.
    pub op_time_ns: Option<f64>,
    /// CPU time per operation, ns.
    pub op_cpu_ns: Option<f64>,
    /// Part of the CPU time that is user time, by the kernel's ticks; `None` of too few.
    pub user_share: Option<f64>,
    /// Page faults per operation, those that waited for a device too.
    pub op_faults: Option<f64>,
    /// System calls by name.
    pub calls: Vec<AbCallRate>,
    /// By what they were counted, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_by: Option<AbCallsBy>,
    /// Why they are not counted.
    pub calls_missing: Option<String>,
    /// What it told in an answer that looks like a time, and is passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<String>,
    /// Lines that it printed besides its answers, per slice.
    pub stray_lines: f64,
    /// Bytes that it wrote to its standard error, per slice.
    pub stderr_bytes: f64,
    /// What asking it for a slice takes, ns, which is in the time of the slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asking_ns: Option<u64>,
    /// The part of a slice that does not grow with its operations: asking for it, and caches that
    /// the turns of others leave cold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_share: Option<f64>,
    /// CPU time between its slices, as a part of that within them.
    pub idle_share: Option<f64>,
}

impl AbArmFigures {
    /// How long a slice of it is, ns.
    pub fn slice_ns(&self) -> Option<f64> {
        Some(self.op_time_ns? * self.operations)
    }

    /// The part of a slice that asking for it takes.
    pub fn asking_share(&self) -> Option<f64> {
        let slice_ns = self.slice_ns().filter(|&ns| ns > 0.0)?;
        Some(self.asking_ns? as f64 / slice_ns)
    }
}

/// System calls of one name per operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbCallRate {
    /// The call.
    pub name: String,
    /// Calls per operation.
    pub per_operation: f64,
    /// Whether all trials that counted them agree to four digits.
    pub is_exact: bool,
    /// Bytes that they move; `None` where they move none.
    pub bytes: Option<AbByteRate>,
}

/// Bytes that system calls of one name move per operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AbByteRate {
    /// Bytes per operation.
    pub per_operation: f64,
    /// As that of calls: calls may be as many in all trials and move other bytes.
    pub is_exact: bool,
}

/// Judges a stored run, as at the end that it had.
pub fn analyse(run: &Run) -> Option<AbAnalysis> {
    let stopped_by = run.header.end.as_ref().map(|end| end.stopped_by);
    let look = match stopped_by {
        Some(StoppedBy::Precision) => AbLook::Early,
        _ => AbLook::Last,
    };
    at(run, look, run.header.took_ns())
}

/// Judges a run at a look, when it has taken so long, ns.
pub fn at(run: &Run, look: AbLook, took_ns: Option<u64>) -> Option<AbAnalysis> {
    let axes = run.header.plan.ab()?;
    let unit = AbUnit::of(axes.mode);
    let cells = run.header.plan.cells();
    let cells = cells.iter().filter_map(|cell| {
        let trials: Vec<&TrialOutcome> =
            run.trials.iter().filter(|trial| trial.cell == *cell).collect();
        Some((cell.ab()?.clone(), trials))
    });
    let cells: Vec<_> = cells.collect();
    let claims =
        count(axes.programs.len().saturating_sub(1) * axes.judged.len() * cells.len()).max(1);
    let judged = cells
        .into_iter()
        .map(|(setting, trials)| cell(run, axes, (setting, &trials), claims, look, took_ns));
    let throttled = AbThrottled::of(&run.trials);
    Some(AbAnalysis { unit, cells: judged.collect(), throttled })
}

fn of_ab(outcome: &ArmOutcome) -> Option<&AbArm> {
    outcome.ab.as_deref()
}

fn cell(
    run: &Run,
    axes: &AbAxes,
    (setting, outcomes): (AbSetting, &[&TrialOutcome]),
    claims: u32,
    look: AbLook,
    took_ns: Option<u64>,
) -> AbCell {
    let names: Vec<&str> = axes.programs.iter().map(|program| program.name.as_str()).collect();
    let AbTrials { trials, is_own_time } = AbTrials::of(outcomes.iter().copied(), &names, of_ab);
    let arms: Vec<AbArmFigures> =
        names.iter().map(|name| figures(name, outcomes, is_own_time)).collect();
    let file = |arm: usize| run.header.ab_program(&setting, arm);
    let are_different = |arm| {
        file(0).zip(file(arm)).is_some_and(|(a, b)| a.is_elf && b.is_elf && a.sha256 != b.sha256)
    };
    let allowance = |arm: usize| layout_allowance(are_different(arm), arms[arm].user_share);
    let allowances: Vec<Option<f64>> = (0..arms.len()).map(allowance).collect();
    let idle: Vec<f64> = arms.iter().map(|arm| arm.idle_share.unwrap_or(0.0)).collect();
    let unit = AbUnit::of(axes.mode);
    let own_ns = passes_ns(&run.trials);
    let share = took_ns.and_then(|ns| passes_in_budget(own_ns, ns, run.header.plan.budget.0));
    let budget_units = share.map(|share| scaled(units(unit, &trials), share));
    let input = AbInput {
        unit,
        by_link: axes.links,
        trials: &trials,
        allowances: &allowances,
        idle: &idle,
        judged: &axes.judged,
        delta: run.header.plan.delta,
        claims,
        budget_units,
    };
    AbCell { setting, judgement: judge(&input, look), arms, is_own_time }
}

/// Time of the trials of passes, ns: calls are counted in others.
pub fn passes_ns(trials: &[TrialOutcome]) -> u64 {
    trials.iter().filter(|trial| trial.pass > 0).map(|trial| trial.duration_ns).sum()
}

/// How many times the passes of a run, which took so much of the whole, fit into what its budget
/// has for them: the search for the work of a slice and the counting of calls come once.
fn passes_in_budget(own_ns: u64, whole_ns: u64, budget_ns: u64) -> Option<f64> {
    let once_ns = whole_ns.saturating_sub(own_ns);
    (own_ns > 0).then(|| budget_ns.saturating_sub(once_ns) as f64 / own_ns as f64)
}

/// Units of some trials.
fn units(unit: AbUnit, trials: &[AbTrial]) -> usize {
    let rounds = |trial: &AbTrial| {
        let copies = trial.arms.first().into_iter().flat_map(|arm| &arm.copies);
        copies.map(Vec::len).max().unwrap_or(0)
    };
    match unit {
        AbUnit::Trial => trials.len(),
        AbUnit::Round => trials.iter().map(rounds).sum(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn scaled(units: usize, share: f64) -> u32 {
    (units as f64 * share.max(1.0)) as u32
}

/// An arm and its hidden copy in a trial, and the place of each.
fn own<'a>(
    name: &'a str,
    outcomes: &'a [&TrialOutcome],
) -> impl Iterator<Item = (&'a TrialOutcome, usize, &'a ArmOutcome)> {
    let all = outcomes.iter().flat_map(|trial| {
        trial.arms.iter().enumerate().map(move |(place, outcome)| (*trial, place, outcome))
    });
    all.filter(move |(_, _, outcome)| outcome.arm.primitive == name)
}

/// Ticks of CPU time by which it is told what part was outside the kernel: of so few the part is
/// right to within a fifth, 95 times in 100.
const TICKS_MIN: f64 = 25.0;

fn figures(name: &str, outcomes: &[&TrialOutcome], is_own_time: bool) -> AbArmFigures {
    let timed: Vec<_> = own(name, outcomes).filter(|(trial, ..)| trial.pass > 0).collect();
    let is_first = |outcome: &ArmOutcome| outcome.arm.role != Role::SelfCheck;
    let used = timed.iter().filter(|(_, _, outcome)| outcome.status == Status::Ok);
    let used: Vec<Spent> = used
        .map(|(trial, place, outcome)| Spent::of(trial, *place, outcome, is_own_time))
        .collect();
    let mut failed = timed.iter().filter(|(_, _, o)| is_first(o) && o.status == Status::Failed);
    let trials = timed.iter().filter(|(_, _, o)| is_first(o) && o.status == Status::Ok).count();
    let middle = |of: fn(&Spent) -> Option<f64>| {
        let mut values: Vec<f64> = used.iter().filter_map(of).collect();
        median(&mut values)
    };
    let total = |of: fn(&Spent) -> Option<f64>| -> Option<f64> { used.iter().map(of).sum() };
    let share = |part: Option<f64>, whole: Option<f64>| {
        part.zip(whole).filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| part / whole)
    };
    // By what trials that count them have found: those of no pass.
    let calls = rates_of(&counting(name, outcomes).collect::<Vec<_>>());
    AbArmFigures {
        name: name.to_owned(),
        trials: count(trials),
        failed: count(failed.clone().count()),
        failure: failed
            .next_back()
            .and_then(|(trial, _, o)| o.reason.as_ref().or(trial.reason.as_ref()))
            .cloned(),
        links: {
            let mut links: Vec<_> = used.iter().map(|spent| spent.link).collect();
            links.sort_unstable();
            links.dedup();
            count(links.len())
        },
        operations: share(total(|s| Some(s.all_operations)), total(|s| Some(s.slices)))
            .unwrap_or(0.0),
        op_time_ns: middle(|spent| spent.op_time_ns),
        op_cpu_ns: middle(|spent| spent.op_cpu_ns),
        user_share: share(
            total(|s| s.user_ticks),
            total(|s| s.ticks).filter(|ticks| *ticks >= TICKS_MIN),
        ),
        op_faults: share(total(|s| s.faults), total(|s| Some(s.all_operations))),
        calls_by: counting(name, outcomes).find_map(|facts| facts.calls_by),
        calls_missing: own(name, outcomes)
            .filter(|(trial, ..)| trial.pass == 0 && calls.is_empty())
            .find_map(|(.., outcome)| outcome.reason.clone()),
        calls,
        passed_over: used.iter().find_map(|spent| spent.passed_over.clone()),
        stray_lines: share(total(|s| Some(s.stray_lines)), total(|s| Some(s.slices)))
            .unwrap_or(0.0),
        stderr_bytes: share(total(|s| Some(s.stderr_bytes)), total(|s| Some(s.slices)))
            .unwrap_or(0.0),
        asking_ns: used.iter().find_map(|spent| spent.asking_ns),
        fixed_share: used.iter().find_map(|spent| spent.fixed_ppm).map(|ppm| f64::from(ppm) / 1e6),
        idle_share: idle_share(&used),
    }
}

/// CPU time between slices, as a part of that within them, of the trials that have both: one
/// reading that failed must not take the others from the check that they are for.
fn idle_share(used: &[Spent]) -> Option<f64> {
    let both = used.iter().filter_map(|spent| spent.idle_cpu_ns.zip(spent.cpu_ns));
    let (idle, within) = both.fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    (within > 0.0).then(|| idle / within)
}

/// What one process spent in a trial.
struct Spent {
    link: Option<u32>,
    slices: f64,
    all_operations: f64,
    op_time_ns: Option<f64>,
    op_cpu_ns: Option<f64>,
    cpu_ns: Option<f64>,
    idle_cpu_ns: Option<f64>,
    user_ticks: Option<f64>,
    ticks: Option<f64>,
    faults: Option<f64>,
    passed_over: Option<String>,
    stray_lines: f64,
    stderr_bytes: f64,
    asking_ns: Option<u64>,
    fixed_ppm: Option<u32>,
}

impl Spent {
    fn of(trial: &TrialOutcome, place: usize, outcome: &ArmOutcome, is_own_time: bool) -> Spent {
        let slices = trial.slices.iter().filter(|slice| slice.arm == place);
        let slices: Vec<_> = slices.filter(|slice| slice.kind == SliceKind::Measured).collect();
        let facts = outcome.ab.as_deref().cloned().unwrap_or_default();
        let AbArm { link, own_ns, ticks, idle_cpu_ns, passed_over, stray_lines, .. } = facts;
        let (asking_ns, fixed_ppm) = (facts.asking_ns, facts.fixed_ppm);
        let stderr_bytes = facts.stderr_bytes as f64;
        let own_ns = |seq| own_ns.iter().find(|(of, _)| *of == seq).map(|(_, ns)| *ns);
        let per_operation = |of: &dyn Fn(usize) -> Option<u64>| {
            let each = slices.iter().enumerate().filter(|(_, slice)| slice.tx.messages > 0);
            let each = each.filter_map(|(at, s)| Some(of(at)? as f64 / s.tx.messages as f64));
            median(&mut each.collect::<Vec<_>>())
        };
        let sum = |of: fn(&Counts) -> Option<u64>| -> Option<f64> {
            slices.iter().map(|slice| of(&slice.tx).map(|n| n as f64)).sum()
        };
        let operations = slices.iter().map(|slice| slice.tx.messages);
        Spent {
            link,
            slices: slices.len() as f64,
            all_operations: operations.map(|n| n as f64).sum(),
            op_time_ns: per_operation(&|at| match is_own_time {
                true => own_ns(slices[at].seq),
                false => slices[at].tx.judged(AbQuantity::Time),
            }),
            op_cpu_ns: per_operation(&|at| slices[at].tx.judged(AbQuantity::Cpu)),
            cpu_ns: sum(|counts| counts.judged(AbQuantity::Cpu)),
            idle_cpu_ns: idle_cpu_ns.map(|ns| ns as f64),
            user_ticks: ticks.map(|[user, _]| user as f64),
            ticks: ticks.map(|[user, kernel]| user as f64 + kernel as f64),
            faults: sum(Counts::faults),
            passed_over,
            stray_lines: stray_lines as f64,
            stderr_bytes,
            asking_ns,
            fixed_ppm,
        }
    }
}

/// What such trials have found.
fn counting<'a>(
    name: &'a str,
    outcomes: &'a [&'a TrialOutcome],
) -> impl Iterator<Item = &'a AbArm> {
    own(name, outcomes)
        .filter(|(trial, _, outcome)| trial.pass == 0 && outcome.status == Status::Ok)
        .filter_map(|(.., outcome)| outcome.ab.as_deref())
        .filter(|facts| !facts.calls.is_empty())
}

/// The same of some such trials.
fn rates_of(counted: &[&AbArm]) -> Vec<AbCallRate> {
    let mut names: Vec<&str> =
        counted.iter().flat_map(|facts| &facts.calls).map(|calls| calls.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let rate = |name: &&str| {
        let of = |of: fn(&AbCalls) -> f64| {
            let own = |facts: &&AbArm| facts.calls.iter().find(|calls| calls.name == *name).map(of);
            agreed(counted.iter().map(|facts| own(facts).unwrap_or(0.0)).collect())
        };
        let (per_operation, agree) = of(AbCalls::per_operation)?;
        let is_exact = agree && (is_whole(per_operation) || are_many(name, counted));
        let bytes = of(AbCalls::bytes_per_operation).filter(|bytes| is_something(*bytes)).map(
            |(per_operation, agree)| {
                let is_exact = agree && (is_exact || is_whole(per_operation));
                AbByteRate { per_operation, is_exact }
            },
        );
        let is_there = is_something((per_operation, is_exact)) || bytes.is_some();
        let name = (*name).to_owned();
        is_there.then_some(AbCallRate { name, per_operation, is_exact, bytes })
    };
    names.iter().filter_map(rate).collect()
}

/// What counts may differ by and be the same: half of the fourth digit behind the point.
const SAME: f64 = 5e-5;

/// Calls on which a rate must rest that is not whole: a few may be a runtime's, in every trial.
const FRACTION_CALLS_MIN: u64 = 100;

fn is_whole(rate: f64) -> bool {
    (rate - rate.round()).abs() < SAME
}

/// Whether each trial has counted many calls of a name.
fn are_many(name: &str, counted: &[&AbArm]) -> bool {
    counted.iter().all(|facts| {
        let own = facts.calls.iter().find(|calls| calls.name == name);
        own.is_some_and(|own| own.calls[1].saturating_sub(own.calls[0]) >= FRACTION_CALLS_MIN)
    })
}

/// The median of some trials' rates, and whether they agree on it.
fn agreed(mut rates: Vec<f64>) -> Option<(f64, bool)> {
    let is_exact = rates.iter().all(|rate| (rate - rates[0]).abs() < SAME);
    Some((median(&mut rates)?, is_exact))
}

/// Whether a rate is one, and not an exact nothing.
fn is_something((per_operation, is_exact): (f64, bool)) -> bool {
    per_operation.abs() >= SAME || !is_exact
}

impl AbAnalysis {
    /// All contrasts, of every setting.
    pub fn contrasts(&self) -> impl Iterator<Item = &AbContrast> {
        self.cells.iter().flat_map(|cell| &cell.judgement.contrasts)
    }

    /// Whether every contrast of every setting is decided.
    pub fn decided(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.judgement.decided())
    }

    /// Whether more trials tell no more of what is not decided.
    pub fn is_exhausted(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.judgement.is_exhausted())
    }

    /// Whether an arm is slower beyond δ and beyond what layout may explain.
    pub fn has_slower(&self) -> bool {
        self.contrasts().any(|contrast| contrast.verdict == AbVerdict::Slower)
    }

    /// Whether nothing can be said: there is no contrast, or each is invalid.
    pub fn is_useless(&self) -> bool {
        self.contrasts().all(|contrast| contrast.verdict == AbVerdict::Invalid)
    }

    /// Whether some setting is left without an answer.
    pub fn is_undecided(&self) -> bool {
        let open = |verdict| matches!(verdict, AbVerdict::Inconclusive | AbVerdict::Invalid);
        self.contrasts().any(|contrast| open(contrast.verdict))
            || self.cells.iter().any(|cell| !cell.judgement.missing.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::ab::AbCalls;

    use super::*;

    type Counted<'a> = (&'a str, [u64; 2], Option<[u64; 2]>);

    /// What trials of 10 and of 110 operations tell of calls.
    fn rates(trials: &[&[Counted<'_>]]) -> Vec<AbCallRate> {
        let of = |&(name, calls, bytes): &Counted<'_>| AbCalls {
            name: name.to_owned(),
            calls,
            operations: [10, 110],
            bytes,
        };
        let trial = |calls: &&[Counted<'_>]| AbArm {
            calls: calls.iter().map(of).collect(),
            ..AbArm::default()
        };
        let trials: Vec<AbArm> = trials.iter().map(trial).collect();
        rates_of(&trials.iter().collect::<Vec<_>>())
    }

    fn rate(name: &str, calls: (f64, bool), bytes: Option<(f64, bool)>) -> AbCallRate {
        AbCallRate {
            name: name.to_owned(),
            per_operation: calls.0,
            is_exact: calls.1,
            bytes: bytes.map(|(per_operation, is_exact)| AbByteRate { per_operation, is_exact }),
        }
    }

    #[test]
    fn calls_and_bytes_are_exact_where_all_trials_agree() {
        let known: [Counted<'_>; 4] = [
            ("brk", [2, 2], None),
            ("futex", [3, 103], None),
            ("pread64", [200, 2200], Some([40_960, 450_560])),
            // Once in each slice, and as much as there are operations.
            ("read", [1, 1], Some([80, 880])),
        ];
        let expect = [
            rate("futex", (1.0, true), None),
            rate("pread64", (20.0, true), Some((4096.0, true))),
            rate("read", (0.0, true), Some((8.0, true))),
        ];
        assert_eq!(rates(&[&known, &known]), expect);
        assert_eq!(rates(&[&known]), expect);
        assert_eq!(rates(&[&[]]), []);
    }

    #[test]
    fn what_comes_once_is_not_multiplied() {
        // 2 of 6 s were no passes: 8 of 10 are left for them.
        assert_eq!(passes_in_budget(4, 6, 10), Some(2.0));
        assert_eq!(passes_in_budget(4, 40, 10), Some(0.0));
        assert_eq!(passes_in_budget(0, 6, 10), None);
    }

    #[test]
    fn a_rate_that_is_not_whole_rests_on_many_calls() {
        let trial = |calls| [("mmap", [0, calls], Some([0, calls]))];
        let of = |calls| rates(&[&trial(calls), &trial(calls)]);
        assert_eq!(of(10), [rate("mmap", (0.1, false), Some((0.1, false)))]);
        assert_eq!(of(150), [rate("mmap", (1.5, true), Some((1.5, true)))]);
    }

    #[test]
    fn where_trials_differ_nothing_is_exact_and_each_count_is_by_itself() {
        let trial = |calls, bytes| [("read", [0, calls], Some([0, bytes]))];
        let of = |others: [u64; 2]| rates(&[&trial(200, 6400), &trial(others[0], others[1])]);
        assert_eq!(of([200, 6400]), [rate("read", (2.0, true), Some((64.0, true)))]);
        assert_eq!(of([200, 6600]), [rate("read", (2.0, true), Some((65.0, false)))]);
        assert_eq!(of([210, 6400]), [rate("read", (2.05, false), Some((64.0, true)))]);
        // A name that a trial does not have was not called in it.
        let once: [Counted<'_>; 1] = [("write", [0, 100], Some([0, 100]))];
        let other: [Counted<'_>; 1] = [("futex", [0, 100], None)];
        let varies = rate("write", (0.5, false), Some((0.5, false)));
        assert!(rates(&[&once, &other]).contains(&varies));
    }
}
