//! The answers in sentences: effect, interval and scope, and never more than
//! the data say. Text, JSON and the page share them.

use iolens_model::arm::Role;
use iolens_model::axes::Study;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};
use serde::Serialize;

use crate::number::{self, list, percent, range, ratio};
use crate::standing::{Candidate, Standing};

pub(crate) mod cautions;
mod conditional;
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

fn names(candidates: &[Candidate]) -> String {
    list(&candidates.iter().map(Candidate::shown).collect::<Vec<_>>())
}

/// Which compared arms are not in the comparison, and why.
fn without(cell: &CellAnalysis) -> String {
    let compared = cell.arms.iter().filter(|arm| arm.arm.role == Role::Compared);
    let why = |arm: &ArmAnalysis| match arm.status {
        Status::Ok => Some(format!("{} (not ranked: {UNEQUAL})", unequal(arm)?.arm.label)),
        status => Some(format!("{} ({})", arm.arm.label, status.word())),
    };
    let missing: Vec<String> = compared.filter_map(why).collect();
    match missing.as_slice() {
        [] => String::new(),
        missing => format!("; not compared: {}", list(missing)),
    }
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

/// What the wording of a claim depends on besides its data.
struct Speaker<'a> {
    quick: bool,
    delta: f64,
    baseline: &'a str,
    /// What an arm is in the study.
    arm: &'a str,
    /// `as fast as`.
    than: &'a str,
}

impl Speaker<'_> {
    fn claim(&self, standing: &Standing) -> String {
        let here = if self.quick { " in this run" } else { "" };
        match standing {
            Standing::Cheapest { best, nearest } => match best.contrast {
                Some(contrast) => {
                    format!("{} is cheapest{here}, {}", best.shown(), self.effect(contrast))
                }
                None => format!(
                    "{} is cheapest{here}; nearest is {}",
                    best.shown(),
                    self.named_effect(nearest)
                ),
            },
            Standing::Tie { best, others } => self.tie(best, others),
            Standing::Unseparated { best, others } => self.unseparated(best, others),
            Standing::NoInterval { best, nearest } => {
                let effect = match best.contrast {
                    Some(_) => self.named_effect(best),
                    None => format!("{}; nearest is {}", best.shown(), self.named_effect(nearest)),
                };
                format!("lowest in this run: {effect}")
            }
            Standing::Alone(only) => format!("{} alone, compared with nothing", only.shown()),
            Standing::Nothing(why) => format!("no answer: {why}"),
        }
    }

    fn tie(&self, best: &Candidate, others: &[Candidate]) -> String {
        let all: Vec<Candidate> = std::iter::once(*best).chain(others.iter().copied()).collect();
        let delta = percent(self.delta);
        let effects: Vec<String> =
            all.iter().filter(|c| c.contrast.is_some()).map(|c| self.named_effect(c)).collect();
        let verb = if self.quick {
            format!("are within δ = {delta} of each other in this run")
        } else {
            format!("differ by less than δ = {delta}")
        };
        let arm = self.arm;
        format!("{} {verb}, and no other {arm} is cheaper: {}", names(&all), list(&effects))
    }

    fn unseparated(&self, best: &Candidate, others: &[Candidate]) -> String {
        let rival = |other: &Candidate| match other.contrast {
            Some(contrast) => {
                format!("{} ({})", other.shown(), against(contrast, self.baseline))
            }
            None => other.shown(),
        };
        let rivals: Vec<String> = others.iter().map(rival).collect();
        let mut text = format!(
            "lowest in this run: {}; not separated from {}",
            self.named_effect(best),
            list(&rivals)
        );
        let open = std::iter::once(best).chain(others).filter_map(|c| c.contrast);
        let needed = open.filter_map(|c| Some(c.trials_needed?.saturating_sub(c.n).max(1))).max();
        if let Some(more) = needed {
            text.push_str(&format!("; about {} would decide it", count_more(more)));
        }
        text
    }

    fn named_effect(&self, candidate: &Candidate) -> String {
        match candidate.contrast {
            Some(contrast) => format!("{}, {}", candidate.shown(), self.effect(contrast)),
            None => candidate.shown(),
        }
    }

    /// `1.34× as fast as send_staged (95 % interval 1.29–1.39, n = 12: FASTER)`.
    fn effect(&self, contrast: &Contrast) -> String {
        // Of typical slices; where totals say something else, they are said too.
        let totals = match contrast.tail {
            true => {
                format!(" in the typical slice, {}× by totals", ratio(contrast.total_ratio.value))
            }
            false => String::new(),
        };
        let effect = format!("{}× {} {}{totals}", ratio(contrast.ratio), self.than, self.baseline);
        match contrast.pointwise {
            Some(interval) if self.quick => format!("{effect} ({})", shown(interval, contrast)),
            Some(interval) => {
                let small = match contrast.verdict {
                    Verdict::Small => format!(", may be below δ = {}", percent(self.delta)),
                    _ => String::new(),
                };
                format!(
                    "{effect} ({}, n = {}: {}{small})",
                    shown(interval, contrast),
                    contrast.n,
                    contrast.verdict.word()
                )
            }
            None => format!("{effect} (n = {}: no interval, so no conclusion)", contrast.n),
        }
    }
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

/// `0.67× send_staged, pointwise 0.49–0.90`: what separates two arms is their own ratio, with
/// its simultaneous interval.
fn against(contrast: &Contrast, baseline: &str) -> String {
    let times = format!("{}× {baseline}", ratio(contrast.ratio));
    match contrast.pointwise {
        Some(interval) => {
            let pointwise = |i| format!("pointwise {}", range(i));
            format!("{times}, {}", number::interval(interval, contrast.n, pointwise))
        }
        None => times,
    }
}

/// `1.03×, 1.00–1.06`.
fn ratio_range(contrast: &Contrast) -> String {
    let words = |interval| format!(", {}", number::interval(interval, contrast.n, range));
    format!("{}×{}", ratio(contrast.ratio), contrast.pointwise.map(words).unwrap_or_default())
}

fn count_more(n: u32) -> String {
    if n == 1 { "1 more trial".to_owned() } else { format!("{n} more trials") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::standing::standing;

    /// The claim of the first cell with its contrasts replaced.
    fn answer_with(changes: [(usize, f64, f64, Verdict); 3]) -> String {
        let (run, mut analysis) = fixture::run();
        // As if it sent scattered fields, so that three arms are ranked.
        analysis.cells[0].arms[1].condition = None;
        for (index, ratio, half, verdict) in changes {
            let contrast = analysis.cells[0].arms[index].contrast.as_mut().expect("compared");
            let interval = Interval { low: ratio - half, high: ratio + half };
            contrast.ratio = ratio;
            (contrast.pointwise, contrast.simultaneous) = (Some(interval), Some(interval));
            contrast.verdict = verdict;
            contrast.trials_needed = (verdict == Verdict::Inconclusive).then_some(61);
        }
        // What follows for `send` against `sendmsg_iov` where both are exact.
        let ratio = changes[0].1 / changes[2].1;
        for pair in &mut analysis.cells[0].pairs {
            pair.simultaneous = Some(Interval { low: ratio - 0.01, high: ratio + 0.01 });
        }
        let (baseline, delta) = (run.header.plan.baseline.as_str(), analysis.delta);
        let speaker = Speaker { quick: false, delta, baseline, arm: "arm", than: "as fast as" };
        speaker.claim(&standing(&analysis.cells[0], delta))
    }

    #[test]
    fn ties_and_open_questions_are_said_as_such() {
        let slower = (2, 0.5, 0.01, Verdict::Slower);
        let tie = answer_with([
            (1, 1.30, 0.005, Verdict::Faster),
            slower,
            (3, 1.301, 0.005, Verdict::Faster),
        ]);
        insta::assert_snapshot!(tie, @"sendmsg_iov and send differ by less than δ = 3 %, and no other arm is cheaper: sendmsg_iov, 1.30× as fast as send_staged (95 % interval 1.30–1.31, n = 12: FASTER) and send, 1.30× as fast as send_staged (95 % interval 1.30–1.30, n = 12: FASTER)");
        let even = answer_with([
            (1, 1.01, 0.01, Verdict::Equivalent),
            slower,
            (3, 0.9, 0.01, Verdict::Slower),
        ]);
        insta::assert_snapshot!(even, @"send and send_staged differ by less than δ = 3 %, and no other arm is cheaper: send, 1.01× as fast as send_staged (95 % interval 1.00–1.02, n = 12: EQUIVALENT)");
        let open = answer_with([
            (1, 1.05, 0.2, Verdict::Inconclusive),
            slower,
            (3, 0.7, 0.01, Verdict::Slower),
        ]);
        insta::assert_snapshot!(open, @"lowest in this run: send, 1.05× as fast as send_staged (95 % interval 0.85–1.25, n = 12: INCONCLUSIVE); not separated from send_staged; about 49 more trials would decide it");
        let baseline =
            answer_with([(1, 0.9, 0.01, Verdict::Slower), slower, (3, 0.7, 0.01, Verdict::Slower)]);
        insta::assert_snapshot!(baseline, @"send_staged is cheapest; nearest is send, 0.90× as fast as send_staged (95 % interval 0.89–0.91, n = 12: SLOWER)");
    }

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
