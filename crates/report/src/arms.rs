//! Arms over several cells: their names with what became of their copies, their times against each
//! other, and what they found when they were opened.

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::data_path::DataPath;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Interval, PairContrast, Told};
use serde_json::{Map, Value};

use crate::groups::{distinct, grouped};
use crate::number::{self, percent};

/// The three ways that textbooks compare, most copies first.
pub(crate) const CLASSIC: [&str; 3] = ["send_staged", "sendmsg_iov", "sendmsg_zerocopy"];

/// Whether an arm is a method: the baseline, or what is compared with it.
pub(crate) fn is_method(arm: &Arm) -> bool {
    matches!(arm.role, Role::Baseline | Role::Compared)
}

/// The methods of a cell.
pub(crate) fn methods(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    cell.arms.iter().filter(|arm| is_method(&arm.arm))
}

/// Every arm of every cell, with its cell.
pub(crate) fn in_cells(analysis: &Analysis) -> impl Iterator<Item = (&CellAnalysis, &ArmAnalysis)> {
    analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)))
}

/// An arm's name; that of the hidden copy is told by what it is for.
pub(crate) fn name(arm: &ArmAnalysis) -> String {
    match arm.arm.role {
        Role::SelfCheck => "self-check".to_owned(),
        _ => arm.shown_label(),
    }
}

/// The arm of a primitive in a cell; never the self-check.
pub(crate) fn of<'a>(cell: &'a CellAnalysis, primitive: &str) -> Option<&'a ArmAnalysis> {
    let of = |arm: &&ArmAnalysis| arm.arm.primitive == primitive && arm.arm.role != Role::SelfCheck;
    cell.arms.iter().find(of)
}

/// The primitive of a label.
pub(crate) fn primitive<'a>(analysis: &'a Analysis, label: &'a str) -> &'a str {
    let mut arms = analysis.arms();
    arms.find(|arm| arm.arm.label == label).map_or(label, |arm| &arm.arm.primitive)
}

/// The declared path of a primitive's bytes to a receiver, where the run has
/// it; as to `recv` where nobody receives.
pub(crate) fn path(run: &Run, primitive: &str, receiver: &str) -> Option<DataPath> {
    let facts = run.header.primitives.iter().find(|facts| facts.id == primitive)?;
    let known = run.header.receivers.iter().find(|facts| facts.id == receiver);
    Some(known.map_or_else(
        || facts.data_path.clone(),
        |receiver| facts.data_path.received_by(&receiver.hops),
    ))
}

/// The receiver that stands for a run where one has to: the plan's first.
pub(crate) fn receiver(run: &Run) -> &str {
    run.header.plan.receivers().first().map_or("recv", String::as_str)
}

/// The cells of one receiver.
pub(crate) fn received_with<'a>(
    analysis: &'a Analysis,
    receiver: &'a str,
) -> impl Iterator<Item = &'a CellAnalysis> + Clone + 'a {
    analysis.cells.iter().filter(move |cell| cell.cell.receiver().is_none_or(|own| own == receiver))
}

/// What the kernel decided while it ran, each lowest and highest over some
/// cells; `None` where it was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Shares {
    /// Of zero-copy sends, those that were copied late.
    pub(crate) late: Option<(f64, f64)>,
    /// Of the bytes received, those that were mapped.
    pub(crate) mapped: Option<(f64, f64)>,
}

impl Shares {
    /// Of an arm in these cells.
    pub(crate) fn of<'a>(
        cells: impl Iterator<Item = &'a CellAnalysis> + Clone,
        label: &str,
    ) -> Shares {
        let mapped = usable(cells.clone(), label).filter_map(|arm| arm.mapped_share);
        Shares { late: copied(cells, label), mapped: span(mapped) }
    }

    /// Of all arms that a receiver received.
    pub(crate) fn received<'a>(cells: impl Iterator<Item = &'a CellAnalysis>) -> Shares {
        let arms = cells.flat_map(|cell| &cell.arms).filter(|arm| arm.status == Status::Ok);
        Shares { late: None, mapped: span(arms.filter_map(|arm| arm.mapped_share)) }
    }

    /// Lowest and highest number of copies that a path makes, at the sender and
    /// end to end; `None` where what decides it was not measured.
    pub(crate) fn copies(&self, path: &DataPath) -> Option<[(f64, f64); 2]> {
        let none = Some((0.0, 0.0));
        let late = if path.may_copy_late() { self.late } else { none }?;
        let mapped = if path.may_map() { self.mapped } else { none }?;
        Some([
            (path.copies_sender(late.0), path.copies_sender(late.1)),
            (path.copies_end_to_end(late.0, mapped.1), path.copies_end_to_end(late.1, mapped.0)),
        ])
    }
}

/// A number of copies, or two where it depends: `1 to 2`.
pub(crate) fn copies_range((low, high): (f64, f64)) -> String {
    let [low, high] = [low, high].map(|copies| number::copies(Some(copies)));
    number::extent(low, high)
}

/// Lowest and highest of some values; `None` where there is none.
pub(crate) fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |span, value| {
        let (low, high) = span.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// Lowest and highest share of zero-copy sends of an arm that the kernel
/// reported as copied; `None` where no cell has one.
pub(crate) fn copied<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
    label: &str,
) -> Option<(f64, f64)> {
    span(usable(cells, label).filter_map(|arm| arm.zerocopy?.copied_share))
}

/// A share or a range of shares: `100 %`, `0 % to 12 %`.
pub(crate) fn share((low, high): (f64, f64)) -> String {
    number::extent(percent(low), percent(high))
}

/// An arm of a cell.
pub(crate) fn labelled<'a>(cell: &'a CellAnalysis, label: &str) -> Option<&'a ArmAnalysis> {
    cell.arms.iter().find(|arm| arm.arm.label == label)
}

/// An arm in these cells, where its numbers are usable.
fn usable<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
    label: &str,
) -> impl Iterator<Item = &'a ArmAnalysis> {
    let arms = cells.into_iter().filter_map(move |cell| labelled(cell, label));
    arms.filter(|arm| arm.status == Status::Ok)
}

/// Every arm of these cells.
pub(crate) fn of_cells<'a>(cells: &[&'a CellAnalysis]) -> impl Iterator<Item = &'a ArmAnalysis> {
    cells.iter().flat_map(|cell| &cell.arms)
}

/// The curves of a run, in the order of its cells, each with its cells.
pub(crate) fn curves(analysis: &Analysis) -> Vec<(Cell, Vec<&CellAnalysis>)> {
    grouped(analysis.cells.iter().map(|cell| (cell.cell.curve(), cell)))
}

/// The cells of one curve.
pub(crate) fn on_curve<'a>(
    analysis: &'a Analysis,
    curve: &iolens_model::cell::Cell,
) -> Vec<&'a CellAnalysis> {
    analysis.cells.iter().filter(|cell| cell.cell.curve() == curve.curve()).collect()
}

/// How long one arm takes as a multiple of another, from the same trials, with the simultaneous
/// 95% interval.
pub(crate) type Multiple = (f64, Interval);

/// The time per message of `a` over that of `b`, both labels of this cell;
/// `None` where the analysis does not compare them, or one of them is not ranked.
pub(crate) fn multiple(cell: &CellAnalysis, a: &str, b: &str) -> Option<Multiple> {
    let baseline = cell.arms.iter().find(|arm| arm.arm.role == Role::Baseline)?;
    let [of_a, of_b] = [a, b].map(|label| labelled(cell, label).filter(|arm| arm.is_ranked()));
    let contrast = |arm: &ArmAnalysis| {
        let contrast = arm.contrast.as_ref()?;
        Some((contrast.ratio, contrast.simultaneous?))
    };
    let (of_a, of_b) = of_a.zip(of_b)?;
    if baseline.arm.label == a {
        return contrast(of_b);
    }
    if baseline.arm.label == b {
        return contrast(of_a).map(inverse);
    }
    let (pair, is_turned) = pair(cell, a, b)?;
    let found = (pair.ratio, pair.simultaneous?);
    Some(if is_turned { found } else { inverse(found) })
}

/// The contrast of two arms, and whether the second of the pair is the first of these.
pub(crate) fn pair<'a>(
    cell: &'a CellAnalysis,
    a: &str,
    b: &str,
) -> Option<(&'a PairContrast, bool)> {
    let found = cell
        .pairs
        .iter()
        .find(|pair| [(a, b), (b, a)].contains(&(pair.first.as_str(), pair.second.as_str())))?;
    Some((found, found.second == a))
}

fn inverse((ratio, interval): Multiple) -> Multiple {
    (1.0 / ratio, interval.inverse())
}

// One way alone: a run that compares nothing.

/// Whether nothing is compared in any of these cells.
pub(crate) fn is_alone<'a>(cells: impl IntoIterator<Item = &'a CellAnalysis>) -> bool {
    let compares = |cell: &CellAnalysis| cell.arms.iter().any(|a| a.arm.role == Role::Compared);
    !cells.into_iter().any(compares)
}

/// The arm of a cell that compares nothing, if it has usable numbers.
pub(crate) fn only(cell: &CellAnalysis) -> Option<&ArmAnalysis> {
    let own = |arm: &&ArmAnalysis| arm.arm.role == Role::Baseline && arm.status == Status::Ok;
    is_alone([cell]).then(|| cell.arms.iter().find(own))?.filter(|arm| arm.figures.is_some())
}

// What arms found or arranged when they were opened, such as the size of a
// pipe: the same in most trials, and told where it is not.

/// A fact of arms with every value that it had, the same ones of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact<'a> {
    /// Labels of the arms.
    pub(crate) arms: Vec<&'a str>,
    /// What it is, with its unit.
    pub(crate) name: &'a str,
    /// Its values, each once, in the order in which they came.
    pub(crate) values: Vec<&'a str>,
}

/// The facts of all trials, or of those of one cell.
pub(crate) fn facts<'a>(told: &'a Told, cell: Option<&Cell>) -> Vec<Fact<'a>> {
    let wanted = told.arm_facts.iter().filter(|fact| cell.is_none_or(|cell| fact.cell == *cell));
    let named = wanted.map(|fact| ((&*fact.arm, &*fact.name), fact.value.as_str()));
    let alike = grouped(named).into_iter().map(|((arm, name), all)| ((name, distinct(all)), arm));
    let fact = |((name, values), arms)| Fact { arms, name, values };
    grouped(alike).into_iter().map(fact).collect()
}

/// The facts of one arm in one trial, by name; `None` where it has none.
pub(crate) fn facts_of_trial(trial: &TrialOutcome, arm: usize) -> Value {
    let facts = trial.arm_facts().filter(|fact| fact.arm == arm);
    let facts: Map<String, Value> =
        facts.map(|fact| (fact.name.clone(), Value::from(fact.value.as_str()))).collect();
    if facts.is_empty() { Value::Null } else { Value::Object(facts) }
}

#[cfg(test)]
mod tests {
    use iolens_model::outcome::ArmFact;

    use super::*;
    use crate::fixture;
    use crate::fixture_findings::findings;

    #[test]
    fn multiples_are_each_others_inverse_whoever_is_the_baseline() {
        let (_, analysis) = findings();
        let cell = &analysis.cells[0];
        for (a, b) in [("send_staged", "sendmsg_iov"), ("sendmsg_iov", "sendmsg_zerocopy")] {
            let there = multiple(cell, a, b).expect("compared");
            let back = multiple(cell, b, a).expect("compared");
            assert!((there.0 * back.0 - 1.0).abs() < 1e-9);
            assert!((there.1.low * back.1.high - 1.0).abs() < 1e-9);
        }
        assert!(multiple(cell, "sendmsg_iov", "memcpy").is_none());
    }

    #[test]
    fn values_that_differ_between_trials_all_stand() {
        let (mut run, analysis) = fixture::run();
        assert_eq!(facts(&analysis.told, None), []);
        for (index, value) in ["65536", "1048576", "65536"].into_iter().enumerate() {
            let name = "pipe_bytes".to_owned();
            let end = run.trials[index].tx.as_mut().expect("the end answered");
            for arm in [1, 2] {
                end.arm_facts.push(ArmFact { arm, name: name.clone(), value: value.to_owned() });
            }
        }
        let arms = run.trials[0].arms[1..3].iter().map(|arm| &*arm.arm.label).collect();
        let values = vec!["65536", "1048576"];
        let told = Told::of(&run.trials);
        assert_eq!(facts(&told, None), [Fact { arms, name: "pipe_bytes", values }]);
        assert_eq!(facts(&told, Some(&run.trials[0].cell)).len(), 1);
        assert_eq!(facts_of_trial(&run.trials[1], 1)["pipe_bytes"], "1048576");
        assert!(facts_of_trial(&run.trials[1], 0).is_null());
    }
}
