//! A run with more arms than one figure can show, as parts: one for each
//! family or kind of model, or several where one has more arms than that. Each is an
//! analysis of its own, with the baseline and its A/A copy in it, so that
//! whatever shows an analysis shows a part of it.

use iolens_model::arm::{Arm, Role};
use iolens_model::family::Family;
use iolens_stats::analysis::{Analysis, ArmAnalysis};

use crate::groups::{distinct, grouped};

use iolens_stats::analysis::Kind;

/// Lines that a reader can tell apart in one figure: the arms that are
/// compared, the baseline and its A/A copy.
pub(crate) const LINES_MAX: usize = 7;

/// Compared arms of a part besides the baseline and its A/A copy.
const ARMS_MAX: usize = LINES_MAX - 2;

/// Some arms of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The word for what they have in common in file names and attributes.
    pub(crate) id: &'static str,
    /// What it is called in headings.
    group: &'static str,
    /// Which of how many parts of these this is.
    pub(crate) number: (usize, usize),
    /// Labels of the arms, without the baseline.
    labels: Vec<String>,
}

/// Whether the run has more arms than one figure can show.
pub(crate) fn is_grouped(analysis: &Analysis) -> bool {
    compared(analysis).len() > ARMS_MAX
}

/// The parts of a run, in the order of families; none where one figure can
/// show all its arms.
pub(crate) fn parts(analysis: &Analysis) -> Vec<Part> {
    if !is_grouped(analysis) {
        return Vec::new();
    }
    let of = |(family, arms)| divided(id(family), name(family), arms);
    by_family(analysis).into_iter().flat_map(of).collect()
}

/// The families of a run that have figures of their own, in their order: the
/// word and the name of each.
pub(crate) fn families(analysis: &Analysis) -> Vec<(&'static str, &'static str)> {
    let parts = parts(analysis).into_iter();
    let mut families: Vec<_> = parts.map(|part| (part.id, part.group())).collect();
    families.dedup();
    families
}

/// The word of models that make something for each connection.
pub(crate) const ALONE: &str = "alone";

/// The parts of a run of servers: the models that make a process or a thread for each
/// connection and the others; none where one figure can show all, and they were offered no
/// rates of their own.
pub(crate) fn of_models(analysis: &Analysis, makes: impl Fn(&Arm) -> bool) -> Vec<Part> {
    let (alone, shared): (Vec<_>, Vec<_>) =
        compared(analysis).into_iter().partition(|arm| makes(&arm.arm));
    let are_apart = !analysis.kinds.of_kind.is_empty();
    if (!are_apart || alone.is_empty() || shared.is_empty()) && !is_grouped(analysis) {
        return Vec::new();
    }
    let mut parts = divided("shared", Kind::Shared.word(), shared);
    parts.extend(divided(ALONE, Kind::Alone.word(), alone));
    parts
}

/// The textbook servers: one after the other, a process or a thread for each connection, and
/// one thread that waits for all.
const TEXTBOOK: [&str; 4] = ["iterative", "fork", "thread_per_connection", "select"];

/// Those of them that a run compares; `None` where they are fewer than two.
pub(crate) fn textbook(analysis: &Analysis) -> Option<Part> {
    let arms = compared(analysis).into_iter().map(|arm| &arm.arm);
    let own = arms.filter(|arm| TEXTBOOK.contains(&arm.primitive.as_str()));
    let labels: Vec<String> = own.map(|arm| arm.label.clone()).collect();
    let group = "the textbook servers";
    (labels.len() > 1).then_some(Part { id: "textbook", group, number: (1, 1), labels })
}

/// Arms that have something in common, as many as a figure can show together.
fn divided(id: &'static str, group: &'static str, arms: Vec<&ArmAnalysis>) -> Vec<Part> {
    let of = arms.len().div_ceil(ARMS_MAX);
    // As even as can be: no part of one arm beside a full one.
    let size = arms.len().div_ceil(of.max(1)).max(1);
    let part = |(i, some): (usize, &[&ArmAnalysis])| {
        let labels = some.iter().map(|arm| arm.arm.label.clone()).collect();
        Part { id, group, number: (i + 1, of), labels }
    };
    arms.chunks(size).enumerate().map(part).collect()
}

/// The compared arms of a run by their families, in the order of these.
fn by_family(analysis: &Analysis) -> Vec<(Option<Family>, Vec<&ArmAnalysis>)> {
    let mut families = grouped(compared(analysis).into_iter().map(|arm| (arm.family, arm)));
    families.sort_by_key(|(family, _)| order(*family));
    families
}

/// Arms without a family come last.
pub(crate) fn order(family: Option<Family>) -> (bool, Option<Family>) {
    (family.is_none(), family)
}

/// What a family is called in headings.
pub(crate) fn name(family: Option<Family>) -> &'static str {
    family.map_or("other arms", Family::name)
}

/// Its word in file names and attributes.
pub(crate) fn id(family: Option<Family>) -> &'static str {
    family.map_or("other", Family::word)
}

/// Every compared arm, each once.
fn compared(analysis: &Analysis) -> Vec<&ArmAnalysis> {
    let arms = analysis.arms().filter(|arm| arm.arm.role == Role::Compared);
    let by_label = grouped(arms.map(|arm| (&arm.arm.label, arm)));
    by_label.into_iter().map(|(_, arms)| arms[0]).collect()
}

impl Part {
    /// `io_uring`, or `io_uring, 1 of 2`.
    pub(crate) fn name(&self) -> String {
        match self.number {
            (_, 1) => self.group.to_owned(),
            (i, of) => format!("{}, {i} of {of}", self.group),
        }
    }

    /// What tells its files from those of other parts: `-io-uring-1`.
    pub(crate) fn stem(&self) -> String {
        let family = self.id.replace('_', "-");
        match self.number {
            (_, 1) => format!("-{family}"),
            (i, _) => format!("-{family}-{i}"),
        }
    }

    /// The family or kind alone.
    pub(crate) fn group(&self) -> &'static str {
        self.group
    }

    /// Whether it shows an arm.
    pub(crate) fn has(&self, arm: &Arm) -> bool {
        let own = matches!(arm.role, Role::Baseline | Role::SelfCheck);
        own || self.labels.contains(&arm.label)
    }

    /// What the analysis says of these arms.
    pub(crate) fn of(&self, analysis: &Analysis) -> Analysis {
        let baselines = analysis.arms().filter(|arm| arm.arm.role == Role::Baseline);
        let baselines = distinct(baselines.map(|arm| &arm.arm.label));
        let has = |label: &String| self.labels.contains(label) || baselines.contains(&label);
        let mut own = analysis.clone();
        for cell in &mut own.cells {
            cell.arms.retain(|arm| self.has(&arm.arm));
            cell.pairs.retain(|pair| has(&pair.first) && has(&pair.second));
        }
        own.crossovers.retain(|found| has(&found.first) && has(&found.second));
        own.crossings.retain(|found| has(&found.first) && has(&found.second));
        own.cost_models.retain(|model| has(&model.label));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_run_that_one_figure_shows_has_no_parts() {
        for (_, analysis) in [fixture::run(), fixture::whole()] {
            assert!(!is_grouped(&analysis) && parts(&analysis).is_empty());
        }
    }

    #[test]
    fn every_arm_is_in_one_part_and_no_part_has_too_many() {
        let (_, analysis) = fixture::families();
        let parts = parts(&analysis);
        let mut labels: Vec<&String> = parts.iter().flat_map(|part| &part.labels).collect();
        assert!(parts.iter().all(|part| (1..=ARMS_MAX).contains(&part.labels.len())));
        assert_eq!(labels.len(), compared(&analysis).len());
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), compared(&analysis).len());
        let names: Vec<String> = parts.iter().map(Part::name).collect();
        assert_eq!(
            names,
            ["the classic three", "plain", "page moving", "io_uring, 1 of 2", "io_uring, 2 of 2"]
        );
        for part in &parts {
            let own = part.of(&analysis);
            let lines = own.cells.iter().map(|cell| cell.arms.len()).max();
            assert!(lines <= Some(LINES_MAX), "{lines:?}");
            assert!(own.cells.iter().all(|cell| cell.arms[0].arm.role == Role::Baseline));
        }
    }
}
