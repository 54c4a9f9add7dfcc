//! The arms of one cell of both runs.

use iolens_model::arm::{Arm, Role};
use iolens_model::outcome::Status;

use super::{Absolute, ArmChange, Change, Own};
use crate::analysis::{ArmAnalysis, CellAnalysis, Contrast, EndMetric};
use crate::estimate::{Estimate, Interval, Verdict};
use crate::quantity::Quantity;
use crate::remark::{Unusable, VerdictReason};
use crate::roster::has_contrast;
use crate::student::{self, StudentTable, quantile};
use crate::verdict::{self, Context};
use crate::verdict::{Claim, Known};

/// What holds for every change of a comparison.
pub(super) struct Rules {
    pub(super) delta: f64,
    /// Changes that the simultaneous intervals cover together (J).
    pub(super) contrasts: u32,
    /// By how much the trials of each run resemble their neighbours (F).
    pub(super) inflation: [f64; 2],
    /// Whether both sides are one run, whose trials differ by nothing.
    pub(super) same_trials: bool,
}

/// One quantity of an arm in both runs, before it is judged.
pub(super) struct Draft<'a> {
    arm: &'a Arm,
    quantity: Quantity,
    /// In the first run, then in the second.
    sides: [Standing<'a>; 2],
    absolute: Absolute,
}

/// One quantity of an arm in one run.
struct Standing<'a> {
    contrast: Option<&'a Contrast>,
    own: Option<Estimate>,
    /// Why its numbers cannot be used.
    invalid: Option<VerdictReason>,
    /// Why there is no verdict on it.
    unranked: Option<VerdictReason>,
}

impl Draft<'_> {
    /// Claims that are made of it, whatever its numbers say: their number is fixed before
    /// the data.
    pub(super) fn claims(&self) -> usize {
        usize::from(has_contrast(self.arm)) + usize::from(self.own_is_judged())
    }

    fn own_is_judged(&self) -> bool {
        let counts = matches!(self.arm.role, Role::Baseline | Role::Compared);
        counts && self.absolute == Absolute::Judged
    }
}

/// The arms that both runs have in a cell, by quantity.
pub(super) fn drafts<'a>(
    a: &'a CellAnalysis,
    b: &'a CellAnalysis,
    absolute: Absolute,
) -> Vec<Draft<'a>> {
    let both: Vec<(&ArmAnalysis, &ArmAnalysis)> =
        a.arms.iter().filter_map(|arm| Some((arm, b.arm(&arm.arm.label)?))).collect();
    let draft = |quantity: Quantity| {
        let of = move |cell: &'a CellAnalysis, arm| Standing::of(cell, arm, quantity);
        both.iter().map(move |&(arm_a, arm_b)| Draft {
            arm: &arm_a.arm,
            quantity,
            sides: [of(a, arm_a), of(b, arm_b)],
            absolute,
        })
    };
    Quantity::between_runs(&a.cell).flat_map(draft).collect()
}

impl<'a> Standing<'a> {
    fn of(cell: &'a CellAnalysis, arm: &'a ArmAnalysis, quantity: Quantity) -> Standing<'a> {
        let contrast = match quantity == cell.compared {
            true => arm.contrast.as_ref(),
            false => arm.cpu_contrast.as_ref(),
        };
        let unranked = match contrast {
            Some(contrast) => {
                (contrast.verdict == Verdict::Unranked).then(|| contrast.reason.clone())
            }
            None => {
                let limited = arm.server.as_ref().and_then(|s| s.limits.against(quantity));
                limited.map(|limited| VerdictReason::Limited { limited, of_baseline: false })
            }
        };
        Standing {
            contrast,
            own: own(arm, quantity).filter(|own| own.value > 0.0),
            invalid: invalid(cell, arm, contrast),
            unranked,
        }
    }

    /// Its ratio on the logarithm.
    fn known_ratio(&self, inflation: f64) -> Option<Known> {
        let contrast = self.contrast?;
        Some(known(contrast.n, contrast.ratio.ln(), contrast.pointwise, inflation))
    }

    /// Messages for each of what it takes by itself, on the logarithm: more is better.
    fn known_own(&self, inflation: f64) -> Option<Known> {
        let own = self.own?;
        Some(known(own.n, -own.value.ln(), own.interval, inflation))
    }
}

/// A logarithm with its standard error from its 95 % interval over so many trials, so that
/// whatever widened that one is in it. Its own t is taken out, and comes back as that of both.
fn known(n: u32, mean: f64, interval: Option<Interval>, inflation: f64) -> Known {
    let freedom = student::freedom(f64::from(n), inflation);
    let t = quantile(freedom, 0.975);
    let error = interval.zip(t).map(|(interval, t)| interval.half_width().ln_1p() / t);
    Known { n, mean, error, freedom }
}

/// What an arm takes of a quantity for each message, ns.
fn own(arm: &ArmAnalysis, quantity: Quantity) -> Option<Estimate> {
    match quantity {
        Quantity::Time => Some(arm.figures.as_ref()?.ns_per_message),
        Quantity::ServerCpu => arm.server.as_ref()?.server.value(EndMetric::TaskClock),
        Quantity::Cpu => arm.figures.as_ref()?.cpu_ns_per_message,
    }
}

/// Why an arm's numbers cannot be used, or those of the baseline that it stands against.
/// A copy of the baseline that differs from it is no reason: how that changed is the noise.
fn invalid(
    cell: &CellAnalysis,
    arm: &ArmAnalysis,
    contrast: Option<&Contrast>,
) -> Option<VerdictReason> {
    let unusable = |arm: &ArmAnalysis| Unusable {
        status: arm.status,
        check: arm.check,
        reason: arm.reason.clone().unwrap_or_else(|| "no reason was stored".to_owned()),
    };
    if arm.status != Status::Ok {
        return Some(VerdictReason::Unusable(unusable(arm)));
    }
    if !has_contrast(&arm.arm) {
        return None;
    }
    match contrast {
        Some(contrast) => {
            let is_noise = matches!(contrast.reason, VerdictReason::CopyDiffers { .. });
            let is_refused = contrast.verdict == Verdict::Invalid && !is_noise;
            is_refused.then(|| contrast.reason.clone())
        }
        None => {
            let baseline = cell.baseline().filter(|arm| arm.status != Status::Ok).map(unusable);
            Some(baseline.map_or(VerdictReason::NeverTogether, VerdictReason::BaselineUnusable))
        }
    }
}

/// Judges the arms of a cell, each beside the copy of the baseline by the same quantity.
pub(super) fn judge(
    drafts: &[Draft<'_>],
    rules: &Rules,
    table: &mut StudentTable,
) -> Vec<ArmChange> {
    let judge = |draft: &Draft<'_>| {
        let is_floor =
            |d: &&Draft<'_>| d.arm.role == Role::SelfCheck && d.quantity == draft.quantity;
        let floor = drafts.iter().find(is_floor).and_then(|draft| ratio_claim(draft, rules));
        arm_change(draft, floor.as_ref(), rules, table)
    };
    drafts.iter().map(judge).collect()
}

fn ratio_claim(draft: &Draft<'_>, rules: &Rules) -> Option<Claim> {
    claim(draft, rules, Standing::known_ratio)
}

fn own_claim(draft: &Draft<'_>, rules: &Rules) -> Option<Claim> {
    claim(draft, rules, Standing::known_own)
}

fn claim<'a>(
    draft: &Draft<'a>,
    rules: &Rules,
    of: impl Fn(&Standing<'a>, f64) -> Option<Known>,
) -> Option<Claim> {
    let ([a, b], [of_a, of_b]) = (&draft.sides, rules.inflation);
    let (a, b) = (of(a, of_a), of(b, of_b));
    let exact = |known: Known| Known { error: known.error.map(|_| 0.0), ..known };
    match rules.same_trials {
        true => Some(Claim::between(&exact(a?), &exact(b?), rules.contrasts)),
        false => Some(Claim::between(&a?, &b?, rules.contrasts)),
    }
}

fn arm_change(
    draft: &Draft<'_>,
    floor: Option<&Claim>,
    rules: &Rules,
    table: &mut StudentTable,
) -> ArmChange {
    let [a, b] = &draft.sides;
    let invalid = in_either(draft, |side| side.invalid.as_ref());
    let unranked = in_either(draft, |side| side.unranked.as_ref());
    let context = Context {
        role: draft.arm.role,
        delta: rules.delta,
        floor,
        invalid: invalid.as_ref(),
        unranked: unranked.as_ref(),
    };
    let ratio = |side: &Standing<'_>| side.contrast.map(|contrast| contrast.ratio);
    let trials = |side: &Standing<'_>| side.contrast.map_or(0, |contrast| contrast.n);
    let change = has_contrast(draft.arm)
        .then(|| change(ratio_claim(draft, rules), [trials(a), trials(b)], &context, table));
    // Its copy says how well ratios are known, and nothing of what it takes by itself.
    let alone = Context { floor: None, ..context };
    let own = a.own.zip(b.own).map(|(own_a, own_b)| Own {
        ns_a: own_a.value,
        ns_b: own_b.value,
        ratio: own_a.value / own_b.value,
        judged: draft
            .own_is_judged()
            .then(|| self::change(own_claim(draft, rules), [own_a.n, own_b.n], &alone, table)),
    });
    ArmChange {
        arm: draft.arm.clone(),
        quantity: draft.quantity,
        ratio_a: ratio(a),
        ratio_b: ratio(b),
        change,
        own,
    }
}

/// A reason with the run that it is of.
fn in_either<'a>(
    draft: &'a Draft<'_>,
    reason: impl Fn(&'a Standing<'_>) -> Option<&'a VerdictReason>,
) -> Option<VerdictReason> {
    let [a, b] = draft.sides.each_ref().map(|side| reason(side).cloned().map(Box::new));
    (a.is_some() || b.is_some()).then_some(VerdictReason::InRuns { a, b })
}

fn change(
    claim: Option<Claim>,
    [trials_a, trials_b]: [u32; 2],
    context: &Context<'_>,
    table: &mut StudentTable,
) -> Change {
    let Some(claim) = claim else {
        let reason = context.invalid.cloned().unwrap_or(VerdictReason::NoRatio);
        return Change {
            ratio: None,
            trials_a,
            trials_b,
            pointwise: None,
            pointwise90: None,
            simultaneous: None,
            verdict: Verdict::Invalid,
            reason,
            trials_needed: None,
        };
    };
    let conclusion = verdict::conclude(&claim, context, table);
    Change {
        ratio: Some(claim.moments.mean.exp()),
        trials_a,
        trials_b,
        pointwise: claim.pointwise,
        pointwise90: claim.pointwise90,
        simultaneous: claim.simultaneous,
        verdict: conclusion.verdict,
        reason: conclusion.reason,
        trials_needed: conclusion.trials_needed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Moments;
    use crate::student::Neighbours;

    /// 20 trials of which each three are as good as one: errors are √(3 · 19 / 17) times as large,
    /// and t has 2 · (20/3 − 1) = 11.33 degrees of freedom, at 1 − 0.025/300 5.50 (with 2 · 19 it
    /// would be 4.2).
    #[test]
    fn trials_that_resemble_their_neighbours_leave_less_freedom() {
        let matters = true;
        let found = Neighbours { lag1: 0.5, inflation: 3.0, passes: 20, contrasts: 300, matters };
        let table = &mut StudentTable::of_neighbours(300, Some(&found));
        let moments = Moments { n: 20, mean: 0.1, sd: Some(0.02) };
        let interval = moments.interval(table, |t| t.pointwise);
        let side = known(20, moments.mean, interval, student::inflation(Some(&found)));
        let error = 0.02 / 20f64.sqrt() * (3.0f64 * 19.0 / 17.0).sqrt();
        assert!((side.error.unwrap() / error - 1.0).abs() < 1e-9, "{side:?}");
        let both = Claim::between(&side, &side, 300).simultaneous.unwrap();
        let t = both.half_of_ratio() / (error * 2f64.sqrt());
        assert!((t - 5.50).abs() < 0.005, "{t}");
    }
}
