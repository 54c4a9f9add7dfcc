//! Which arm of a cell is cheapest, and how surely: decided once, for the
//! sentences, the decision table and the headline.
//!
//! A message of several fields lies scattered, so the arms that can send such
//! a message are ranked; those that need it contiguous, or in a file, stand
//! beside them with that condition ([`conditional`]).
//!
//! The analysis judges every arm against the baseline, and every two arms
//! against each other, with intervals that hold together. An arm that was
//! measured and got no verdict leaves the question open where it may be ahead.

use iolens_model::arm::Role;
use iolens_model::family::Condition;
use iolens_model::outcome::Status;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};
use iolens_stats::remark::Limited;
use iolens_stats::remark::VerdictReason;

use crate::groups::first_of_each;
use crate::{arms, remarks};

/// An arm that can be cheapest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate<'a> {
    /// Its label.
    pub(crate) label: &'a str,
    /// Its primitive, for the colour.
    pub(crate) primitive: &'a str,
    /// What it needs of a message; `None` where it can send any.
    pub(crate) condition: Option<Condition>,
    /// Against the baseline; `None` for the baseline.
    pub(crate) contrast: Option<&'a Contrast>,
}

/// What can be said of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Standing<'a> {
    /// Ahead of every other arm.
    Cheapest {
        /// The arm.
        best: Candidate<'a>,
        /// The next one.
        nearest: Candidate<'a>,
    },
    /// Within δ of the best and of each other, and nothing is ahead of them.
    Tie {
        /// Lowest time in this run.
        best: Candidate<'a>,
        /// Those within δ of it.
        others: Vec<Candidate<'a>>,
    },
    /// Not ahead of these.
    Unseparated {
        /// Lowest time in this run.
        best: Candidate<'a>,
        /// Those that may be as cheap.
        others: Vec<Candidate<'a>>,
    },
    /// One trial: an order, which this one leads, and no interval.
    NoInterval(Candidate<'a>),
    /// The only arm, which is compared with nothing.
    Alone(Candidate<'a>),
    /// Nothing to compare, and why.
    Nothing(String),
}

impl<'a> Standing<'a> {
    /// The arm with the lowest time.
    pub(crate) fn best(&self) -> Option<Candidate<'a>> {
        match self {
            Standing::Cheapest { best, .. }
            | Standing::Tie { best, .. }
            | Standing::Unseparated { best, .. }
            | Standing::NoInterval(best)
            | Standing::Alone(best) => Some(*best),
            Standing::Nothing(_) => None,
        }
    }

    /// The same beside arms without a verdict any of which may be ahead.
    fn left_open_by(self, unranked: Vec<Candidate<'a>>) -> Standing<'a> {
        if unranked.is_empty() {
            return self;
        }
        let open = |best, others: Vec<_>| Standing::Unseparated {
            best,
            others: [others, unranked].concat(),
        };
        match self {
            Standing::Cheapest { best, .. } => open(best, Vec::new()),
            Standing::Tie { best, others } | Standing::Unseparated { best, others } => {
                open(best, others)
            }
            found => found,
        }
    }
}

impl Candidate<'_> {
    fn ratio(&self) -> f64 {
        self.contrast.map_or(1.0, |contrast| contrast.ratio)
    }

    fn interval(&self) -> Option<Interval> {
        match self.contrast {
            Some(contrast) => contrast.simultaneous,
            None => Some(Interval { low: 1.0, high: 1.0 }),
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        self.contrast.map(|contrast| contrast.verdict)
    }

    /// Whether more trials can tell it from others.
    pub(crate) fn is_ranked(&self) -> bool {
        self.verdict().is_none_or(Verdict::is_ranked)
    }
}

/// The standing of a cell at δ, among the arms that can send fields which lie
/// scattered; among all where the baseline is none of these, or no other arm
/// is left to compare with. A quick look has no verdicts, so nothing is a tie there.
pub(crate) fn standing(cell: &CellAnalysis, delta: f64, quick: bool) -> Standing<'_> {
    if let Some(only) = arms::only(cell).and_then(candidate) {
        return Standing::Alone(only);
    }
    let all = match candidates(cell) {
        Ok(all) => all,
        Err(why) => return Standing::Nothing(why),
    };
    let [compared, mut unranked] = scattered([all, unranked(cell)]);
    let found = match (compared.as_slice(), unranked.first()) {
        (&[best], Some(&nearest)) => Standing::Cheapest { best, nearest },
        (compared, _) => match among(cell, compared, delta) {
            Standing::Tie { best, others } if quick => Standing::Unseparated { best, others },
            found => found,
        },
    };
    unranked.retain(|arm| arm.contrast.is_some_and(|of| may_be_ahead(of, &compared[0])));
    found.left_open_by(unranked)
}

/// Which of these arms is ahead of all others of them; `None` where that is open, or one has no
/// numbers that can be compared.
pub(crate) fn standing_among<'a>(cell: &'a CellAnalysis, labels: &[&str]) -> Option<&'a str> {
    let mut own = candidates(cell).ok()?;
    own.retain(|candidate| labels.contains(&candidate.label));
    let (best, rest) = own.split_first()?;
    let is_ahead = rest.iter().all(|other| ahead(cell, best, other));
    (own.len() == labels.len() && is_ahead).then_some(best.label)
}

/// The arms that are left out of the standing because not every message is
/// like what they need ([`Condition`]), the fastest first; those that have
/// numbers.
pub(crate) fn conditional(cell: &CellAnalysis) -> Vec<Candidate<'_>> {
    let Ok(all) = candidates(cell) else { return Vec::new() };
    let [kept, _] = scattered([all.clone(), unranked(cell)]);
    let left_out = |c: &Candidate| kept.iter().all(|kept| kept.label != c.label);
    all.into_iter().filter(left_out).collect()
}

/// The same of several cells, each arm once.
pub(crate) fn conditional_in<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
) -> Vec<Candidate<'a>> {
    first_of_each(cells.into_iter().flat_map(conditional).map(|arm| (arm.label, arm)))
}

/// Those of the ranked and of the unranked that send any message, where these are the baseline and
/// another one at least; else all.
fn scattered<'a>(all: [Vec<Candidate<'a>>; 2]) -> [Vec<Candidate<'a>>; 2] {
    let fits = |arm: &Candidate| arm.condition.is_none();
    let has_baseline = all[0].iter().any(|arm| fits(arm) && arm.contrast.is_none());
    let fitting = all.iter().flatten().filter(|arm| fits(arm)).count();
    match has_baseline && fitting > 1 {
        true => all.map(|own| own.into_iter().filter(fits).collect()),
        false => all,
    }
}

/// The standing among these, at least two, the highest ratio first.
fn among<'a>(cell: &CellAnalysis, candidates: &[Candidate<'a>], delta: f64) -> Standing<'a> {
    let (best, rest) = (candidates[0], &candidates[1..]);
    if candidates.iter().any(|candidate| candidate.interval().is_none()) {
        return Standing::NoInterval(best);
    }
    // Whoever is surely behind any arm is not the cheapest, also where the
    // best one's own interval is too wide to say so.
    let behind = |i: usize| candidates[..=i].iter().any(|before| ahead(cell, before, &rest[i]));
    let rivals: Vec<Candidate> = (0..rest.len()).filter(|&i| !behind(i)).map(|i| rest[i]).collect();
    if rivals.is_empty() {
        Standing::Cheapest { best, nearest: rest[0] }
    } else if all_equivalent(cell, &[&[best], rivals.as_slice()].concat(), delta) {
        Standing::Tie { best, others: rivals }
    } else {
        Standing::Unseparated { best, others: rivals }
    }
}

/// Baseline and compared arms that can be ranked, the highest ratio first, where there is anything
/// that the baseline can be compared with.
fn candidates(cell: &CellAnalysis) -> Result<Vec<Candidate<'_>>, String> {
    let baseline = cell.arms.iter().find(|arm| arm.arm.role == Role::Baseline);
    match baseline {
        Some(arm) if arm.status != Status::Ok => {
            let why = arm.reason.as_deref().unwrap_or("no reason was stored");
            return Err(format!("the baseline {} is {}: {why}", arm.arm.label, arm.status.word()));
        }
        Some(arm) => {
            let limits = arm.server.as_ref().map(|server| server.limits);
            if let Some(limit) = limits.and_then(|limits| limits.against(cell.compared)) {
                let why = remarks::limited(&limit);
                return Err(format!("the baseline {} is not ranked: {why}", arm.arm.label));
            }
        }
        None => return Err("the setting has no baseline".to_owned()),
    }
    let mut found: Vec<Candidate> = cell.arms.iter().filter_map(candidate).collect();
    found.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    if found.len() + unranked(cell).len() < 2 {
        return Err("no arm but the baseline has usable numbers".to_owned());
    }
    Ok(found)
}

/// The baseline, or a compared arm with numbers that can be ranked.
fn candidate(arm: &ArmAnalysis) -> Option<Candidate<'_>> {
    measured(arm).filter(Candidate::is_ranked)
}

/// Compared arms that were measured and got no verdict.
fn unranked(cell: &CellAnalysis) -> Vec<Candidate<'_>> {
    let is_unranked =
        |arm: &Candidate| arm.contrast.is_some_and(|of| of.verdict == Verdict::Unranked);
    cell.arms.iter().filter_map(measured).filter(is_unranked).collect()
}

/// Whether an arm without a verdict may be ahead: its ratio is off by no more than its slices
/// explain; where the client was busy it is a floor.
fn may_be_ahead(contrast: &Contrast, best: &Candidate) -> bool {
    match &contrast.reason {
        VerdictReason::UnequalSlices { slices, .. } => {
            let ends = contrast.simultaneous.zip(best.interval());
            ends.is_none_or(|(own, best)| own.high * (1.0 + slices.bias) >= best.low)
        }
        VerdictReason::Limited { limited, of_baseline } => {
            matches!(limited, Limited::ClientBusy { .. }) && !of_baseline
        }
        _ => false,
    }
}

/// The baseline, or a compared arm with numbers.
fn measured(arm: &ArmAnalysis) -> Option<Candidate<'_>> {
    let contrast = match arm.arm.role {
        Role::Baseline => None,
        Role::Compared if arm.status == Status::Ok => Some(arm.contrast.as_ref()?),
        _ => return None,
    };
    Some(Candidate {
        label: &arm.arm.label,
        primitive: &arm.arm.primitive,
        condition: arm.condition,
        contrast,
    })
}

/// Whether `a` is surely ahead of `b`, which has the lower ratio.
fn ahead(cell: &CellAnalysis, a: &Candidate, b: &Candidate) -> bool {
    match (a.verdict(), b.verdict()) {
        (Some(verdict), None) => matches!(verdict, Verdict::Faster | Verdict::Small),
        (None, Some(verdict)) => matches!(verdict, Verdict::Slower | Verdict::Small),
        _ => between(cell, a, b).is_some_and(|interval| interval.low > 1.0),
    }
}

fn equivalent(cell: &CellAnalysis, a: &Candidate, b: &Candidate, delta: f64) -> bool {
    match (a.contrast, b.contrast) {
        (Some(contrast), None) | (None, Some(contrast)) => contrast.verdict == Verdict::Equivalent,
        _ => {
            between(cell, a, b).is_some_and(|i| i.low > 1.0 / (1.0 + delta) && i.high < 1.0 + delta)
        }
    }
}

/// Whether every two of these differ by less than δ: that is what is said of a tie.
fn all_equivalent(cell: &CellAnalysis, named: &[Candidate], delta: f64) -> bool {
    let with_later =
        |(i, a): (usize, &Candidate)| named[i + 1..].iter().all(|b| equivalent(cell, a, b, delta));
    named.iter().enumerate().all(with_later)
}

/// Simultaneous interval of `a` against `b`, two arms that are not the
/// baseline.
fn between(cell: &CellAnalysis, a: &Candidate, b: &Candidate) -> Option<Interval> {
    arms::pair(cell, a.label, b.label)?.0.interval_of(a.label)
}

#[cfg(test)]
mod tests {
    use iolens_stats::remark::UnequalSlices;

    use super::*;
    use crate::fixture;

    fn cell() -> CellAnalysis {
        fixture::run().1.cells.swap_remove(0)
    }

    /// Sets arm `index` to a ratio with a simultaneous half-width.
    fn set(cell: &mut CellAnalysis, index: usize, ratio: f64, half: f64, verdict: Verdict) {
        let contrast = cell.arms[index].contrast.as_mut().expect("a compared arm");
        contrast.ratio = ratio;
        contrast.simultaneous = Some(Interval { low: ratio - half, high: ratio + half });
        contrast.verdict = verdict;
    }

    /// The arm that is ahead of every other, if any.
    fn cheapest(cell: &CellAnalysis, quick: bool) -> Option<&str> {
        match standing(cell, 0.03, quick) {
            Standing::Cheapest { best, .. } => Some(best.label),
            _ => None,
        }
    }

    /// The standing among all arms, contiguous or not.
    fn of_all(cell: &CellAnalysis) -> Standing<'_> {
        among(cell, &candidates(cell).expect("numbers"), 0.03)
    }

    /// Who may be ahead, the best first.
    fn open<'a>(found: &Standing<'a>) -> Vec<&'a str> {
        let Standing::Unseparated { best, others } = found else { panic!("{found:?}") };
        std::iter::once(best).chain(others).map(|one| one.label).collect()
    }

    /// Sets what `send` and `sendmsg_iov` are against each other.
    fn set_pair(cell: &mut CellAnalysis, ratio: f64, half: f64) {
        let pair = cell.pairs.iter_mut().find(|p| p.first == "send" && p.second == "sendmsg_iov");
        pair.expect("a pair").simultaneous =
            Some(Interval { low: ratio - half, high: ratio + half });
    }

    #[test]
    fn an_arm_is_cheapest_only_when_separated_from_all_others() {
        let mut cell = cell();
        set(&mut cell, 1, 1.30, 0.02, Verdict::Faster);
        set(&mut cell, 2, 0.50, 0.02, Verdict::Slower);
        set(&mut cell, 3, 1.40, 0.02, Verdict::Faster);
        set_pair(&mut cell, 0.93, 0.01);
        let found = of_all(&cell);
        assert!(matches!(found, Standing::Cheapest { best, .. } if best.label == "sendmsg_iov"));
        set_pair(&mut cell, 0.97, 0.04);
        assert!(matches!(of_all(&cell), Standing::Unseparated { .. }));
        set_pair(&mut cell, 1.0, 0.01);
        assert!(matches!(of_all(&cell), Standing::Tie { .. }));
    }

    /// Each within δ of the best, and the baseline not shown to be within δ of the third: that all
    /// differ by less than δ would be untrue.
    #[test]
    fn a_tie_is_one_between_all_that_are_named() {
        let mut cell = cell();
        set(&mut cell, 1, 1.02, 0.03, Verdict::Inconclusive);
        set(&mut cell, 2, 0.50, 0.02, Verdict::Slower);
        set(&mut cell, 3, 1.03, 0.02, Verdict::Equivalent);
        set_pair(&mut cell, 0.99, 0.01);
        assert_eq!(open(&of_all(&cell)).len(), 3);
        set(&mut cell, 1, 1.02, 0.03, Verdict::Equivalent);
        assert!(matches!(of_all(&cell), Standing::Tie { .. }));
    }

    #[test]
    fn a_quick_look_has_no_tie() {
        let mut cell = cell();
        set(&mut cell, 2, 0.50, 0.02, Verdict::Slower);
        set(&mut cell, 3, 1.00, 0.01, Verdict::Equivalent);
        let [careful, quick] = [false, true].map(|quick| standing(&cell, 0.03, quick));
        assert!(matches!(careful, Standing::Tie { .. }), "{careful:?}");
        assert!(matches!(quick, Standing::Unseparated { .. }), "{quick:?}");
    }

    #[test]
    fn an_open_contrast_with_the_baseline_leaves_both_in_the_race() {
        let mut cell = cell();
        set(&mut cell, 1, 1.05, 0.2, Verdict::Inconclusive);
        set(&mut cell, 2, 0.50, 0.02, Verdict::Slower);
        set(&mut cell, 3, 0.90, 0.02, Verdict::Slower);
        assert_eq!(open(&of_all(&cell)), ["send", "send_staged"]);
    }

    #[test]
    fn an_arm_that_is_surely_behind_a_worse_one_is_not_in_the_race() {
        let mut cell = cell();
        // The best is wide against all; `send_staged` is surely ahead of the
        // others, which no pair with the best can tell.
        set(&mut cell, 1, 1.05, 0.2, Verdict::Inconclusive);
        set(&mut cell, 2, 0.90, 0.02, Verdict::Slower);
        set(&mut cell, 3, 0.85, 0.02, Verdict::Slower);
        cell.pairs.iter_mut().for_each(|pair| pair.simultaneous = None);
        assert_eq!(open(&of_all(&cell))[1..], ["send_staged"]);
    }

    /// Its ratio may be off by a fifth.
    fn unequal(cell: &mut CellAnalysis, index: usize, ratio: f64) {
        set(cell, index, ratio, 0.02, Verdict::Unranked);
        let slices = UnequalSlices { arm_ns: 4e5, baseline_ns: 5e5, overhead_ns: 4e5, bias: 0.2 };
        cell.arms[index].contrast.as_mut().expect("a compared arm").reason =
            VerdictReason::UnequalSlices { slices, delta: 0.03 };
    }

    #[test]
    fn an_arm_whose_slices_explain_less_than_the_difference_is_no_rival() {
        let mut cell = cell();
        set(&mut cell, 2, 0.50, 0.02, Verdict::Slower);
        unequal(&mut cell, 3, 0.85);
        let found = standing(&cell, 0.03, true);
        assert_eq!(open(&found), ["send_staged", "sendmsg_iov"]);
        let unranked = |others: &[Candidate]| !others[0].is_ranked();
        assert!(matches!(found, Standing::Unseparated { others, .. } if unranked(&others)));
        unequal(&mut cell, 3, 0.80);
        assert_eq!(cheapest(&cell, true), Some("send_staged"));
    }

    /// Beside the baseline only what needs a certain message can be ranked.
    #[test]
    fn what_needs_a_certain_message_wins_nothing_from_arms_that_cannot_be_ranked() {
        let mut cell = cell();
        set(&mut cell, 1, 1.50, 0.02, Verdict::Faster);
        cell.arms[2].status = Status::Failed;
        unequal(&mut cell, 3, 0.95);
        assert_eq!(open(&standing(&cell, 0.03, false)), ["send_staged", "sendmsg_iov"]);
        unequal(&mut cell, 3, 0.5);
        assert_eq!(cheapest(&cell, false), Some("send_staged"));
    }

    /// Nothing can be ranked beside the baseline, nor sends any message.
    #[test]
    fn the_baseline_beside_an_unranked_arm_alone() {
        let mut cell = cell();
        cell.arms[2].status = Status::Failed;
        cell.arms[3].status = Status::Failed;
        unequal(&mut cell, 1, 0.95);
        assert_eq!(open(&standing(&cell, 0.03, true)).len(), 2);
        assert_eq!(conditional(&cell), []);
    }

    #[test]
    fn an_arm_that_needs_a_certain_message_is_no_rival_of_those_that_do_not() {
        let mut cell = cell();
        unequal(&mut cell, 1, 2.0);
        set(&mut cell, 2, 0.50, 0.02, Verdict::Slower);
        set(&mut cell, 3, 0.90, 0.02, Verdict::Slower);
        assert_eq!(cheapest(&cell, false), Some("send_staged"));
    }

    #[test]
    fn what_was_measured_of_a_busy_client_is_a_floor() {
        let mut cell = cell();
        set(&mut cell, 2, 0.50, 0.02, Verdict::Unranked);
        set(&mut cell, 3, 0.90, 0.02, Verdict::Slower);
        cell.arms[2].condition = None;
        let limited = Limited::ClientBusy { busy_share: 0.99, trials: 12, of: 12 };
        let mut open = |of_baseline| {
            let contrast = cell.arms[2].contrast.as_mut().expect("a compared arm");
            contrast.reason = VerdictReason::Limited { limited, of_baseline };
            matches!(standing(&cell, 0.03, false), Standing::Unseparated { .. })
        };
        assert_eq!([false, true].map(&mut open), [true, false]);
    }

    #[test]
    fn what_needs_a_certain_message_stands_beside_the_ranking() {
        let mut cell = cell();
        set(&mut cell, 1, 2.0, 0.02, Verdict::Faster);
        fn labels(cell: &CellAnalysis) -> Vec<String> {
            conditional(cell).iter().map(|c| c.label.to_owned()).collect()
        }
        assert_eq!(labels(&cell), ["send"]);
        let found = standing(&cell, 0.03, false);
        assert!(found.best().is_some_and(|best| best.label != "send"), "{found:?}");
        cell.arms[2].condition = Some(Condition::Unchanged);
        let second = cell.arms[2].arm.label.clone();
        assert_eq!(labels(&cell), ["send".to_owned(), second], "the fastest first");
        assert_eq!(conditional_in([&cell, &cell]).len(), 2, "each once");
        cell.arms[0].condition = Some(Condition::Contiguous);
        assert_eq!(conditional(&cell), []);
    }

    #[test]
    fn controls_and_the_self_check_are_never_cheapest() {
        let cell = cell();
        let found = candidates(&cell).expect("numbers");
        assert!(found.iter().all(|c| c.label != "memcpy" && !c.label.contains("A/A")));
    }

    #[test]
    fn without_a_baseline_there_is_nothing_to_say_but_why() {
        let mut cell = cell();
        cell.arms[0].status = Status::Failed;
        cell.arms[0].reason = Some("ECONNREFUSED".into());
        assert!(
            matches!(standing(&cell, 0.03, false), Standing::Nothing(why) if why.contains("ECONNREFUSED"))
        );
    }
}
