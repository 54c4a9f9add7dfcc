//! The answers in sentences: effect, interval and scope, and never more than
//! the data say. Text, JSON and the page share them.

use iolens_model::arm::Role;
use iolens_model::axes::Study;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};
use serde::Serialize;

use crate::number::{self, range};

pub(crate) mod cautions;
mod counted;

/// What a sentence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The run's ratios must not be used.
    Alarm,
    /// A curve at one glance.
    Headline,
    /// Where one arm overtakes another along the sizes.
    Crossover,
    /// One cell.
    Answer,
    /// The highest rate at which servers keep what is asked.
    Search,
    /// How far a second copy of the baseline strays.
    NoiseFloor,
    /// What thread counts mean where threads share CPUs.
    Turns,
    /// What a reader must know before using the numbers.
    Caution,
    /// What iolens itself costs.
    Harness,
    /// What the numbers hold for.
    Scope,
}

/// One sentence of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// The whole sentence.
    pub text: String,
    /// Whether it comes from a quick run and is no verdict.
    pub indicative: bool,
    /// What it is about.
    pub kind: Kind,
    /// The cell or curve the text speaks of, which it begins with, after
    /// `Indicative: ` where there is that.
    pub subject: Option<String>,
}

impl Sentence {
    pub(crate) fn plain(kind: Kind, text: impl Into<String>) -> Sentence {
        Sentence { text: text.into(), indicative: false, kind, subject: None }
    }

    pub(crate) fn about(run: &Run, kind: Kind, subject: String, claim: &str) -> Sentence {
        let indicative = run.header.plan.quick;
        let lead = if indicative { "Indicative: " } else { "" };
        let text = format!("{lead}{subject}: {claim}");
        Sentence { text, indicative, kind, subject: Some(subject) }
    }

    /// The text without its subject and `Indicative: `, for a page that sets
    /// these apart.
    #[must_use]
    pub fn claim(&self) -> &str {
        let text = self.text.strip_prefix("Indicative: ").unwrap_or(&self.text);
        let rest = self.subject.as_deref().and_then(|subject| text.strip_prefix(subject));
        rest.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(text)
    }
}

/// Every sentence, in the order in which it is read: what spoils the run
/// first, then the curves, the cells, the noise, the cautions, the scope.
#[must_use]
pub fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let analysis = &analysis.shown();
    let mut out: Vec<Sentence> = cautions::untrustworthy(analysis).into_iter().collect();
    match run.header.plan.study() {
        Study::Net | Study::File | Study::Write | Study::Copy | Study::Syscall => {}
        Study::Server => out.extend(crate::servers::sentences(run, analysis)),
    }
    out.extend(cautions::confirms(run));
    out.extend(cautions::one_cpu(run));
    out.extend(cautions::turns(run));
    out.extend(counted::not_counted(run, analysis));
    out.push(cautions::noise_floor(run, analysis));
    out.extend(cautions::classic(run));
    out.extend(cautions::tails(run, analysis));
    out.extend(cautions::isolated(run, analysis));
    out.extend(cautions::drift(run, analysis));
    out.extend(cautions::ending(run));
    out.extend(analysis.warnings.iter().map(|text| cautions::warning(text)));
    out.push(cautions::harness(run));
    out.push(cautions::scope(run, analysis));
    out.splice(0..0, cautions::nothing_usable(analysis));
    out
}

/// Why an arm is not ranked whose ratio is as much its slices' as its own, in short.
pub(crate) const UNEQUAL: &str = "slices of unequal length";

/// The arm, if that is why it has no verdict.
pub(crate) fn unequal(arm: &ArmAnalysis) -> Option<&ArmAnalysis> {
    let contrast = arm.contrast.as_ref().filter(|c| c.verdict == Verdict::Unranked)?;
    let said = arm.unequal.as_ref().filter(|said| contrast.reason.starts_with(said.as_str()));
    said.filter(|_| arm.status == Status::Ok && arm.arm.role == Role::Compared).map(|_| arm)
}

/// Those of a cell, each with its reason.
pub(crate) fn not_ranked(cell: &CellAnalysis) -> Vec<String> {
    let arms = cell.arms.iter().filter_map(unequal);
    arms.map(|arm| format!("{} ({UNEQUAL})", arm.arm.label)).collect()
}

/// `95 % interval 1.29–1.39`, and the simultaneous one where that is what keeps the arm from being
/// separated from the baseline.
pub(crate) fn shown(pointwise: Interval, contrast: &Contrast) -> String {
    let joint = contrast.simultaneous.filter(|joint| joint.contains(1.0));
    match joint.filter(|_| !pointwise.contains(1.0)) {
        Some(joint) => format!(
            "95 % interval {} by itself, {} together with all others",
            range(pointwise),
            range(joint)
        ),
        None => number::interval(pointwise, contrast.n, |i| format!("95 % interval {}", range(i))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// The one with the best ratio of a cell, which has short slices.
    #[test]
    fn an_arm_that_is_not_ranked_is_said_to_be_left_out() {
        let (run, mut analysis) = fixture::run();
        let said = "slices are not equal in time, 0.52 ms beside the baseline's 5.02 ms";
        let arm = analysis.cells[2].arms.iter_mut().find(|a| a.arm.label == "sendmsg_iov").unwrap();
        arm.unequal = Some(said.to_owned());
        let contrast = arm.contrast.as_mut().unwrap();
        contrast.verdict = Verdict::Unranked;
        contrast.reason = format!("{said}, more than half of δ = 3 %");
        let reason = contrast.reason.clone();
        let shown = crate::results::results(&run.header.plan, &[&analysis.cells[2]], 200).text(200);
        assert!(shown.contains(&format!("UNRANKED: {reason}")), "{shown}");
    }

    #[test]
    fn an_untrustworthy_run_says_so_first() {
        let (run, mut analysis) = fixture::run();
        analysis.self_check.excluding_one = 4;
        assert!(
            sentences(&run, &analysis)[0].text.starts_with("This run is not trustworthy: 4 of 6")
        );
    }
}
