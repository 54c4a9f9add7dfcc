//! A comparison in sentences: whether anything is slower, what changed, and how sure.

use iolens_model::arm::Role;
use iolens_stats::analysis::{Quantity, Verdict};
use iolens_stats::compare::{ArmChange, BaselineMoved, CellChange, Change};

use super::{Compared, about, badge};
use crate::answers::{Kind, Sentence};
use crate::number::{count, list, percent, range, ratio};

/// Changes that have a sentence each; the table has all of them.
const SHOWN: usize = 6;

/// Every sentence, in the order in which it is read.
pub(super) fn all(compared: &Compared<'_>) -> Vec<Sentence> {
    let mut out: Vec<Sentence> = compared
        .comparison
        .warnings
        .iter()
        .map(|text| Sentence::plain(Kind::Alarm, format!("{text}.")))
        .collect();
    out.push(headline(compared));
    for verdict in [Verdict::Slower, Verdict::Faster] {
        out.extend(beyond(compared, verdict));
    }
    out.extend(compared.comparison.cells.iter().flat_map(|cell| moved(compared, cell)));
    out.push(reading(compared));
    out.push(noise_floor(compared));
    out.push(scope(compared));
    out.extend(compared.comparison.interleaved.then(relinked));
    out
}

/// Ratio changes of arms that are compared.
fn changes<'a>(
    compared: &Compared<'a>,
) -> impl Iterator<Item = (&'a CellChange, &'a ArmChange, &'a Change)> {
    let cells = compared.comparison.cells.iter();
    let arms = cells.flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    let compared = arms.filter(|(_, arm)| arm.arm.role == Role::Compared);
    compared.filter_map(|(cell, arm)| Some((cell, arm, arm.change.as_ref()?)))
}

/// Whether anything is slower, in one sentence.
fn headline(compared: &Compared<'_>) -> Sentence {
    let comparison = compared.comparison;
    let all: Vec<&Change> = changes(compared).map(|(_, _, change)| change).collect();
    let delta = percent(comparison.delta);
    let ranked: Vec<&&Change> = all.iter().filter(|c| c.verdict.is_ranked()).collect();
    let slower = ranked.iter().filter(|change| change.verdict == Verdict::Slower).count();
    let open = ranked.iter().filter(|change| may_be_slower(change, comparison.delta)).count();
    let total = count(u32::try_from(ranked.len()).unwrap_or(u32::MAX), "change");
    let baseline = &comparison.baseline;
    let claim = match (ranked.len(), slower, open) {
        (0, _, _) => format!("nothing can be compared: no change of {} is usable", all.len()),
        (_, 0, 0) => format!("nothing is slower beyond {delta} in B than in A, against {baseline}"),
        (_, 0, open) => format!(
            "nothing is shown to be slower beyond {delta} in B than in A, against {baseline}; {open} \
             of {total} may be"
        ),
        (_, slower, _) => format!(
            "{slower} of {total} {} slower beyond {delta} in B than in A, against {baseline}",
            if slower == 1 { "is" } else { "are" }
        ),
    };
    let tally = match tally(&all, comparison.indicative) {
        tally if tally.is_empty() => tally,
        tally => format!(" ({tally})"),
    };
    let by_themselves = match comparison.slower().saturating_sub(slower) {
        0 => String::new(),
        n => format!("; by themselves, {}, {n} are", badge(comparison)),
    };
    let claim = format!("{claim}{tally}{by_themselves}.");
    match comparison.indicative {
        true => about(comparison, Kind::Headline, &claim),
        false => Sentence::plain(Kind::Headline, capitalised(&claim)),
    }
}

/// Whether a change is not shown to be above the band's lower edge.
fn may_be_slower(change: &Change, delta: f64) -> bool {
    let edge = 1.0 / (1.0 + delta);
    change.verdict != Verdict::Equivalent
        && change.simultaneous.is_none_or(|interval| interval.low < edge)
}

/// `20 EQUIVALENT, 2 SLOWER and 1 INVALID`; the usable ones alone have no words where a run
/// was a first look.
fn tally(changes: &[&Change], indicative: bool) -> String {
    const ORDER: [Verdict; 7] = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::Equivalent,
        Verdict::Small,
        Verdict::Inconclusive,
        Verdict::Unranked,
        Verdict::Invalid,
    ];
    let shown = ORDER.into_iter().filter(|verdict| !indicative || !verdict.is_ranked());
    let parts = shown.filter_map(|verdict| {
        let found = changes.iter().filter(|change| change.verdict == verdict).count();
        (found > 0).then(|| format!("{found} {}", verdict.word()))
    });
    list(&parts.collect::<Vec<_>>())
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + letters.as_str()
}

/// The changes beyond δ to one side, the largest first, ratios before arms by themselves.
fn beyond(compared: &Compared<'_>, verdict: Verdict) -> Vec<Sentence> {
    let is = |change: &Change| change.verdict == verdict;
    let mut found: Vec<(bool, f64, String)> = Vec::new();
    for cell in &compared.comparison.cells {
        for arm in &cell.arms {
            let ratio = arm.change.as_ref().filter(|_| arm.arm.role == Role::Compared);
            if let Some(change) = ratio.filter(|change| is(change)) {
                found.push((
                    false,
                    far(change),
                    claim(compared, (cell, arm), change, &By::Baseline),
                ));
            }
            let own = arm.own.as_ref().and_then(|own| own.judged.as_ref());
            if let Some(change) = own.filter(|change| is(change)) {
                found.push((true, far(change), claim(compared, (cell, arm), change, &By::Itself)));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let more = found.len().saturating_sub(SHOWN);
    let claims = found.into_iter().take(SHOWN).map(|(_, _, claim)| claim);
    let more = (more > 0).then(|| match verdict {
        Verdict::Slower => format!("{more} more are slower: see the table."),
        _ => format!("{more} more are faster: see the table."),
    });
    let sentence = |claim: String| about(compared.comparison, Kind::Answer, &claim);
    claims.chain(more).map(sentence).collect()
}

/// How far a change is from none.
fn far(change: &Change) -> f64 {
    change.ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

/// What is said of a change of an arm; `by` is what it is measured by.
fn claim(
    compared: &Compared<'_>,
    (cell, arm): (&CellChange, &ArmChange),
    change: &Change,
    by: &By,
) -> String {
    let by_itself = if matches!(by, By::Itself) { " by itself" } else { "" };
    let subject = compared.subject(&cell.cell);
    let is = multiple(arm.quantity, change);
    let found = interval(compared, change);
    let head = format!("{subject}: {}{by_itself} is {is}", arm.arm.label);
    match by {
        By::Itself => {
            format!("{head} in B as in A{found}; {}.", badge(compared.comparison))
        }
        By::Baseline => {
            let [a, b] = [arm.ratio_a, arm.ratio_b].map(|of| of.map_or_else(String::new, ratio));
            let baseline = &compared.comparison.baseline;
            format!("{head} against {baseline} in B as in A{found}: {a} in A, {b} in B.")
        }
    }
}

/// What an arm's change is measured by.
enum By {
    /// Its ratio to the baseline of its own run.
    Baseline,
    Itself,
}

/// `0.83× as fast`.
fn multiple(quantity: Quantity, change: &Change) -> String {
    let ratio = ratio(change.ratio.unwrap_or(f64::NAN));
    match quantity {
        Quantity::Time => format!("{ratio}× as fast"),
        Quantity::ServerCpu | Quantity::Cpu => format!("{ratio}× as cheap in {}", quantity.word()),
    }
}

fn interval(compared: &Compared<'_>, change: &Change) -> String {
    let word = match compared.comparison.indicative {
        true => String::new(),
        false => format!(": {}", change.verdict.word()),
    };
    let of = change.simultaneous.map_or_else(String::new, range);
    format!(" (95 % interval {of}, n = {} and {}{word})", change.trials_a, change.trials_b)
}

/// Where it is likelier the baseline that changed.
fn moved(compared: &Compared<'_>, cell: &CellChange) -> Vec<Sentence> {
    let sentence = |moved: &BaselineMoved| {
        let baseline = &compared.comparison.baseline;
        let by = match moved.quantity {
            Quantity::Time => "as fast",
            Quantity::ServerCpu | Quantity::Cpu => "as cheap",
        };
        let (arms, own) = match moved.ratio < 1.0 {
            true => ("faster", "slower"),
            false => ("slower", "faster"),
        };
        let which = match moved.arms {
            1 => "the one arm".to_owned(),
            n => format!("all {n} arms"),
        };
        let text = format!(
            "{}: {which} became {arms} against {baseline}, and {baseline} by itself is {}× {by} in \
             B as in A ({}): likelier it is the baseline that became {own}. Ratios cannot judge \
             it; {}.",
            compared.subject(&cell.cell),
            ratio(moved.ratio),
            badge(compared.comparison),
            match compared.comparison.interleaved {
                true => "what each arm is by itself can, as both took turns",
                false => "`--absolute` judges each arm by itself",
            },
        );
        Sentence::plain(Kind::Caution, text)
    };
    cell.baseline_moved.iter().map(sentence).collect()
}

/// How the table is to be read.
fn reading(compared: &Compared<'_>) -> Sentence {
    let comparison = compared.comparison;
    let text = format!(
        "B / A: an arm's ratio to {} in B over that in A, each from the run's own trials; above 1 \
         it is faster (or cheaper) in B. Simultaneous 95 % intervals over all {} changes, the \
         copies' among them{}. By itself: the same of the arm alone, in runs {}.",
        comparison.baseline,
        comparison.contrasts,
        if comparison.indicative { "" } else { ", which the verdicts use" },
        match comparison.interleaved {
            true => "whose trials took turns (interleaved)",
            false => {
                "that took no turns (not interleaved): what the machine did between them is in it"
            }
        },
    );
    Sentence::plain(Kind::Scope, text)
}

/// How far the copies of the baseline strayed between the runs.
fn noise_floor(compared: &Compared<'_>) -> Sentence {
    let comparison = compared.comparison;
    let check = &comparison.self_check;
    let text = match (check.floor_median, check.floor_widest) {
        (Some(median), Some(widest)) => {
            let noisy = match median > comparison.delta {
                true => format!(
                    " That is too noisy to call a change none at δ = {}: longer runs are narrower.",
                    percent(comparison.delta)
                ),
                false => String::new(),
            };
            format!(
                "Noise floor: ±{} (median half-width of how the hidden second copy of {} changed, \
                 {}; widest ±{}).{noisy} In {} of them it seems to have changed itself; chance \
                 allows {}.",
                percent(median),
                comparison.baseline,
                count(check.checks, "cell"),
                percent(widest),
                check.excluding_one,
                check.bound,
            )
        }
        _ => "Noise floor: not known; the runs have no second copy of the baseline with an \
              interval in common."
            .to_owned(),
    };
    Sentence::plain(Kind::NoiseFloor, text)
}

fn scope(compared: &Compared<'_>) -> Sentence {
    let delta = percent(compared.comparison.delta);
    let text = match compared.comparison.interleaved {
        true => format!(
            "Scope: one run of each, whose trials took turns on one boot of one machine; δ = \
             {delta}. Another boot may lay memory out otherwise."
        ),
        false => format!(
            "Scope: one run of each; δ = {delta}. How much ratios vary from one run to the next, \
             beyond their trials, is not in the intervals: repeat both runs before a close call."
        ),
    };
    Sentence::plain(Kind::Scope, text)
}

/// What no number of trials takes away where two builds took turns.
fn relinked() -> Sentence {
    let text = "Linking one source anew can change its speed by some percent (4.6 % was seen), as \
                code then lies elsewhere: a small difference need not come from what was changed.";
    Sentence::plain(Kind::Scope, text.to_owned())
}
