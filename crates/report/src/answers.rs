//! The answers in sentences: effect, interval and scope, and never more than
//! the data say. Text, JSON and the page share them.

use iolens_model::arm::Role;
use iolens_model::axes::Study;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Interval, Verdict};
use iolens_stats::reason::VerdictReason;
use serde::Serialize;

use self::headline::headlines;
use crate::alone;
use crate::number::{self, list, percent, range, ratio};
use crate::standing::{Candidate, Standing, standing};
use crate::words;

pub(crate) mod asked;
pub(crate) mod cautions;
mod conditional;
mod counted;
pub(crate) mod crossing;
mod headline;

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
    /// What is said of the subject, for a page that sets it apart; the text where it has none.
    #[serde(skip)]
    pub claim: String,
    /// The clauses of the claim, where it has several that stand alone.
    #[serde(skip)]
    pub points: Vec<Point>,
}

/// A clause of a claim: what matters of it, and what stands behind a comma.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// `mmap is cheapest at 64 KiB`.
    pub lead: String,
    /// `2.0× read`; may be empty.
    pub detail: String,
}

impl Point {
    fn words(&self) -> String {
        match self.detail.as_str() {
            "" => self.lead.clone(),
            detail => format!("{}, {detail}", self.lead),
        }
    }
}

impl Sentence {
    pub(crate) fn plain(kind: Kind, text: impl Into<String>) -> Sentence {
        let text = text.into();
        let claim = text.clone();
        Sentence { text, indicative: false, kind, subject: None, claim, points: Vec::new() }
    }

    pub(crate) fn about(run: &Run, kind: Kind, subject: String, claim: &str) -> Sentence {
        let indicative = run.header.plan.quick;
        let lead = if indicative { "Indicative: " } else { "" };
        let text = format!("{lead}{subject}: {claim}");
        let (claim, subject) = (claim.to_owned(), Some(subject));
        Sentence { text, indicative, kind, subject, claim, points: Vec::new() }
    }

    /// A sentence of several clauses.
    pub(crate) fn of_points(
        run: &Run,
        kind: Kind,
        subject: String,
        points: Vec<Point>,
    ) -> Sentence {
        let clauses: Vec<String> = points.iter().map(Point::words).collect();
        let claim = format!("{}.", clauses.join("; "));
        Sentence { points, ..Sentence::about(run, kind, subject, &claim) }
    }
}

/// Every sentence, in the order in which it is read: what spoils the run
/// first, then the curves, the cells, the noise, the cautions, the scope.
#[must_use]
pub fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let analysis = &analysis.shown();
    let mut out: Vec<Sentence> = cautions::untrustworthy(analysis).into_iter().collect();
    match run.header.plan.study() {
        Study::File => {
            out.splice(0..0, crate::files::alarms(run));
            out.extend(headlines(run, analysis));
            out.extend(crate::files::sentences(run, analysis));
            out.extend(answers(run, analysis));
        }
        Study::Write => {
            out.splice(0..0, crate::files::alarms(run));
            out.extend(headlines(run, analysis));
            out.extend(crate::writes::sentences(run, analysis));
            out.extend(answers(run, analysis));
        }
        Study::Copy => {
            out.splice(0..0, crate::files::alarms(run));
            out.extend(headlines(run, analysis));
            out.extend(crate::copying::sentences(run, analysis));
            out.extend(answers(run, analysis));
        }
        Study::Net => {
            out.extend(headlines(run, analysis));
            out.extend(crossing::sentences(run, analysis));
            out.extend(answers(run, analysis));
            out.extend(cautions::without_receiver(run));
        }
        Study::Syscall => out.extend(crate::calls::sentences(run, analysis)),
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
    out.extend(analysis.warnings.iter().map(cautions::warning));
    out.push(cautions::harness(run));
    out.push(cautions::scope(run, analysis));
    out.splice(0..0, cautions::nothing_usable(analysis));
    out
}

/// One sentence per cell; of an arm that is alone the headline of the curve has its sizes.
fn answers(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let curves = crate::results::curves(analysis);
    let is_told = |cell: &&CellAnalysis| {
        let own = curves.iter().find(|(curve, _)| *curve == cell.cell.curve());
        own.and_then(|(curve, cells)| alone::over_sizes(run, analysis, curve, cells)).is_none()
    };
    analysis.cells.iter().filter(is_told).map(|cell| answer(run, analysis, cell)).collect()
}

fn names(candidates: &[Candidate]) -> String {
    list(&candidates.iter().map(Candidate::shown).collect::<Vec<_>>())
}

fn answer(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Sentence {
    if let Some(claim) = alone::at_once(run, cell) {
        let subject = words::subject(&run.header, &cell.cell);
        return Sentence::about(run, Kind::Answer, subject, &format!("{claim}."));
    }
    let baseline = run.header.plan.baseline.as_str();
    let arm = words::arm_of(&run.header.plan);
    let quick = run.header.plan.quick;
    let speaker = Speaker { quick, delta: analysis.delta, baseline, arm, than: "as fast as" };
    let mut claim = speaker.claim(&standing(cell, analysis.delta));
    claim.push_str(&conditional::beside(cell));
    claim.push_str(&without(cell));
    if run.header.plan.quick {
        claim.push_str(&words::trials(cell));
    }
    claim.push('.');
    Sentence::about(run, Kind::Answer, words::subject(&run.header, &cell.cell), &claim)
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
    let is_unequal = matches!(contrast.reason, VerdictReason::UnequalSlices { .. });
    (is_unequal && arm.status == Status::Ok && arm.arm.role == Role::Compared).then_some(arm)
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
    use iolens_stats::remark::UnequalSlices;

    use super::*;
    use crate::fixture;
    use iolens_model::axes::Topology;

    fn texts((run, analysis): (Run, Analysis)) -> String {
        sentences(&run, &analysis).iter().map(|s| s.text.clone() + "\n").collect()
    }

    #[test]
    fn a_full_run_is_answered_with_verdicts() {
        insta::assert_snapshot!(texts(fixture::run()), @"
        1 thread: send_staged is cheapest at 64 B; sendmsg_iov is cheapest from 4 KiB to 256 KiB, 1.07× to 1.45× send_staged; send, only for a message that is contiguous already, 1.06× to 1.43× send_staged.
        4 threads: send_staged is cheapest at 64 B; sendmsg_iov is lowest at 4 KiB, 1.06× send_staged, not separated from send_staged; sendmsg_iov is cheapest at 256 KiB, 1.45× send_staged; send, only for a message that is contiguous already, 1.08× to 1.41× send_staged.
        64 B, 1 thread: send_staged is cheapest; nearest is sendmsg_iov, 0.89× as fast as send_staged (95 % interval 0.89–0.90, n = 12: SLOWER); send, only for a message that is contiguous already: 1.06×, 1.05–1.07.
        4 KiB, 1 thread: sendmsg_iov is cheapest, 1.07× as fast as send_staged (95 % interval 1.06–1.09, n = 12: FASTER); send, only for a message that is contiguous already: 1.20×, 1.19–1.21.
        256 KiB, 1 thread: sendmsg_iov is cheapest, 1.45× as fast as send_staged (95 % interval 1.43–1.46, n = 12: FASTER); send, only for a message that is contiguous already: 1.43×, 1.41–1.44.
        64 B, 4 threads: send_staged is cheapest; nearest is sendmsg_iov, 0.89× as fast as send_staged (95 % interval 0.86–0.92, n = 12: SLOWER); send, only for a message that is contiguous already: 1.08×, 1.04–1.11.
        4 KiB, 4 threads: lowest in this run: sendmsg_iov, 1.06× as fast as send_staged (95 % interval 0.97–1.16, n = 12: INCONCLUSIVE); not separated from send_staged; about 49 more trials would decide it; send, only for a message that is contiguous already: 1.20×, 1.18–1.22.
        256 KiB, 4 threads: sendmsg_iov is cheapest, 1.45× as fast as send_staged (95 % interval 1.41–1.49, n = 12: FASTER); send, only for a message that is contiguous already: 1.41×, 1.36–1.47; not compared: send_per_field (failed).
        With 4 threads at each end there are more threads than CPUs: the threads of an end share 1 CPU and take turns. Such a cell compares the arms under more connections and more switching between threads, not on more CPUs. Ratios between the arms of a cell stand; differences between thread counts are of that kind.
        Noise floor: ±1.9 % (median half-width of send_staged against its hidden second copy, 6 cells; widest ±2.7 %). In 6 comparisons that copy was judged FASTER or SLOWER in 0, and its pointwise interval excludes 1 in 0; chance allows 2.
        256 KiB, 4 threads: sharing a process matters: sendmsg_iov is 1.45× as fast as send_staged where arms alternate in one process, 1.31× where each has its own, and the intervals do not overlap.
        The run ended because its time budget was spent, with one precision target unmet: 4 KiB × 4 threads, sendmsg_iov: ±9.1 % > 3 %.
        12 complete passes of at least 20 planned: intervals over few trials cover less often than they say.
        Harness: 2.10 ns per message and 840 ns per slice by the null arm, and a slice of 5.00 ms holds one receipt (22.0 µs there and back); the same for every arm, not subtracted.
        Scope: one machine, one boot, one kernel (Linux 6.12.43), 12 trials per cell and arm; the variance between boots and hosts is not in the intervals. What is said of a size is said of that size, not of those between.
        ");
    }

    #[test]
    fn a_run_into_a_sink_says_what_it_leaves_out() {
        let (mut run, analysis) = fixture::run();
        let receipt = "holds one receipt";
        assert!(texts((run.clone(), analysis.clone())).contains(receipt));
        run.header.plan.net_mut().unwrap().topologies = vec![Topology::Sink];
        let text = texts((run, analysis));
        assert!(text.contains("drops everything: no receiver, no driver, no DMA."), "{text}");
        assert!(!text.contains(receipt), "{text}");
    }

    #[test]
    fn a_quick_run_is_indicative_and_has_no_verdict_words() {
        let text = texts(fixture::quick());
        let verdicts = ["FASTER", "SLOWER", "EQUIVALENT", "SMALL", "INCONCLUSIVE"];
        assert!(verdicts.iter().all(|verdict| !text.contains(verdict)));
        insta::assert_snapshot!(text, @"
        Indicative: 1 thread: send_staged is cheapest at 64 B; sendmsg_iov is cheapest from 4 KiB to 256 KiB, 1.05× to 1.45× send_staged; send, only for a message that is contiguous already, 1.07× to 1.42× send_staged.
        Indicative: 4 threads: send_staged is cheapest at 64 B; sendmsg_iov is lowest at 4 KiB, 1.10× send_staged, not separated from send_staged; sendmsg_iov is cheapest at 256 KiB, 1.43× send_staged; send, only for a message that is contiguous already, 1.08× to 1.44× send_staged.
        Indicative: 64 B, 1 thread: send_staged is cheapest in this run; nearest is sendmsg_iov, 0.90× as fast as send_staged (95 % interval 0.89–0.91); send, only for a message that is contiguous already: 1.07×, 1.05–1.09; n = 5.
        Indicative: 4 KiB, 1 thread: sendmsg_iov is cheapest in this run, 1.05× as fast as send_staged (95 % interval 1.05–1.06); send, only for a message that is contiguous already: 1.18×, 1.17–1.20; n = 5.
        Indicative: 256 KiB, 1 thread: sendmsg_iov is cheapest in this run, 1.45× as fast as send_staged (95 % interval 1.43–1.47); send, only for a message that is contiguous already: 1.42×, 1.40–1.44; n = 5.
        Indicative: 64 B, 4 threads: send_staged is cheapest in this run; nearest is sendmsg_iov, 0.89× as fast as send_staged (95 % interval 0.84–0.94); send, only for a message that is contiguous already: 1.08×, 1.02–1.14; n = 5.
        Indicative: 4 KiB, 4 threads: lowest in this run: sendmsg_iov, 1.10× as fast as send_staged (95 % interval 0.87–1.38); not separated from send_staged; about 56 more trials would decide it; send, only for a message that is contiguous already: 1.23×, 1.18–1.29; n = 5.
        Indicative: 256 KiB, 4 threads: sendmsg_iov is cheapest in this run, 1.43× as fast as send_staged (95 % interval 1.35–1.52); send, only for a message that is contiguous already: 1.44×, 1.37–1.51; not compared: send_per_field (failed); n = 5.
        With 4 threads at each end there are more threads than CPUs: the threads of an end share 1 CPU and take turns. Such a cell compares the arms under more connections and more switching between threads, not on more CPUs. Ratios between the arms of a cell stand; differences between thread counts are of that kind.
        Noise floor: ±2.7 % (median half-width of send_staged against its hidden second copy, 6 cells; widest ±5.7 %). In 6 comparisons that copy was told apart from it in 0, and its pointwise interval excludes 1 in 2; chance allows 2.
        Indicative: 256 KiB, 4 threads: sharing a process matters: sendmsg_iov is 1.43× as fast as send_staged where arms alternate in one process, 1.31× where each has its own, and the intervals do not overlap.
        The run ended because its time budget was spent, with one precision target unmet: 4 KiB × 4 threads, sendmsg_iov: ±9.1 % > 3 %.
        5 complete passes of at least 20 planned: intervals over few trials cover less often than they say.
        Harness: 2.10 ns per message and 840 ns per slice by the null arm, and a slice of 5.00 ms holds one receipt (22.0 µs there and back); the same for every arm, not subtracted.
        Scope: one machine, one boot, one kernel (Linux 6.12.43), 5 trials per cell and arm; the variance between boots and hosts is not in the intervals. What is said of a size is said of that size, not of those between.
        ");
    }

    #[test]
    fn one_trial_has_no_interval_and_says_what_that_costs() {
        insta::assert_snapshot!(texts(fixture::classic()), @"
        1 thread: send_staged is lowest (no interval) at 64 B; sendmsg_iov is lowest (no interval) from 4 KiB to 256 KiB, 1.07× to 1.46× send_staged; send, only for a message that is contiguous already, 1.06× to 1.40× send_staged.
        4 threads: send_staged is lowest (no interval) at 64 B; sendmsg_iov is lowest (no interval) from 4 KiB to 256 KiB, 1.04× to 1.40× send_staged; send, only for a message that is contiguous already, 1.08× to 1.36× send_staged.
        64 B, 1 thread: lowest in this run: send_staged; nearest is sendmsg_iov, 0.89× as fast as send_staged (n = 1: no interval, so no conclusion); send, only for a message that is contiguous already: 1.06×.
        4 KiB, 1 thread: lowest in this run: sendmsg_iov, 1.07× as fast as send_staged (n = 1: no interval, so no conclusion); send, only for a message that is contiguous already: 1.23×.
        256 KiB, 1 thread: lowest in this run: sendmsg_iov, 1.46× as fast as send_staged (n = 1: no interval, so no conclusion); send, only for a message that is contiguous already: 1.40×.
        64 B, 4 threads: lowest in this run: send_staged; nearest is sendmsg_iov, 0.87× as fast as send_staged (n = 1: no interval, so no conclusion); send, only for a message that is contiguous already: 1.08×.
        4 KiB, 4 threads: lowest in this run: sendmsg_iov, 1.04× as fast as send_staged (n = 1: no interval, so no conclusion); send, only for a message that is contiguous already: 1.24×.
        256 KiB, 4 threads: lowest in this run: sendmsg_iov, 1.40× as fast as send_staged (n = 1: no interval, so no conclusion); send, only for a message that is contiguous already: 1.36×; not compared: send_per_field (failed).
        With 4 threads at each end there are more threads than CPUs: the threads of an end share 1 CPU and take turns. Such a cell compares the arms under more connections and more switching between threads, not on more CPUs. Ratios between the arms of a cell stand; differences between thread counts are of that kind.
        Noise floor: not known; no A/A copy of send_staged has an interval in this run.
        Arms ran one after another, not in alternating slices: whatever the machine did between one arm and the next is in the ratios. On a two-CPU virtual machine, ten repetitions of this kind gave half-widths of 4 to 46 %, alternating slices ±2.5 % (median) in less time.
        The run ended because its time budget was spent, with one precision target unmet: 4 KiB × 4 threads, sendmsg_iov: ±9.1 % > 3 %.
        1 complete pass of at least 20 planned: intervals over few trials cover less often than they say.
        Harness: 2.10 ns per message and 840 ns per slice by the null arm, and a slice holds one receipt (22.0 µs there and back); the same for every arm, not subtracted.
        Scope: one machine, one boot, one kernel (Linux 6.12.43), 1 trial per cell and arm; the variance between boots and hosts is not in the intervals. What is said of a size is said of that size, not of those between.
        ");
    }

    /// The sentence of the first cell with its contrasts replaced.
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
        answer(&run, &analysis, &analysis.cells[0]).text
    }

    #[test]
    fn ties_and_open_questions_are_said_as_such() {
        let slower = (2, 0.5, 0.01, Verdict::Slower);
        let tie = answer_with([
            (1, 1.30, 0.005, Verdict::Faster),
            slower,
            (3, 1.301, 0.005, Verdict::Faster),
        ]);
        insta::assert_snapshot!(tie, @"64 B, 1 thread: sendmsg_iov and send differ by less than δ = 3 %, and no other arm is cheaper: sendmsg_iov, 1.30× as fast as send_staged (95 % interval 1.30–1.31, n = 12: FASTER) and send, 1.30× as fast as send_staged (95 % interval 1.30–1.30, n = 12: FASTER).");
        let even = answer_with([
            (1, 1.01, 0.01, Verdict::Equivalent),
            slower,
            (3, 0.9, 0.01, Verdict::Slower),
        ]);
        insta::assert_snapshot!(even, @"64 B, 1 thread: send and send_staged differ by less than δ = 3 %, and no other arm is cheaper: send, 1.01× as fast as send_staged (95 % interval 1.00–1.02, n = 12: EQUIVALENT).");
        let open = answer_with([
            (1, 1.05, 0.2, Verdict::Inconclusive),
            slower,
            (3, 0.7, 0.01, Verdict::Slower),
        ]);
        insta::assert_snapshot!(open, @"64 B, 1 thread: lowest in this run: send, 1.05× as fast as send_staged (95 % interval 0.85–1.25, n = 12: INCONCLUSIVE); not separated from send_staged; about 49 more trials would decide it.");
        let baseline =
            answer_with([(1, 0.9, 0.01, Verdict::Slower), slower, (3, 0.7, 0.01, Verdict::Slower)]);
        insta::assert_snapshot!(baseline, @"64 B, 1 thread: send_staged is cheapest; nearest is send, 0.90× as fast as send_staged (95 % interval 0.89–0.91, n = 12: SLOWER).");
    }

    /// The one with the best ratio of a cell, which has short slices.
    #[test]
    fn an_arm_that_is_not_ranked_is_said_to_be_left_out() {
        let (run, mut analysis) = fixture::run();
        let slices =
            UnequalSlices { arm_ns: 5.2e5, baseline_ns: 5.02e6, overhead_ns: 2e4, bias: 0.0345 };
        let arm = analysis.cells[2].arms.iter_mut().find(|a| a.arm.label == "sendmsg_iov").unwrap();
        arm.unequal = Some(slices);
        let contrast = arm.contrast.as_mut().unwrap();
        contrast.verdict = Verdict::Unranked;
        contrast.reason = VerdictReason::UnequalSlices { slices, delta: 0.03 };
        let reason = crate::remarks::reason(&contrast.reason);
        let text = texts((run.clone(), analysis.clone()));
        for expect in [
            "256 KiB, 1 thread: send_per_field is cheapest, ",
            "; not compared: sendmsg_iov (not ranked: slices of unequal length).",
            "; not ranked: sendmsg_iov at 256 KiB (slices of unequal length).",
        ] {
            assert!(text.contains(expect), "{expect}: {text}");
        }
        let asked = asked::sentences(&run, &analysis, &analysis.cells[2], &asked::Source::Measured);
        assert!(asked[0].text.contains("sendmsg_iov (not ranked: slices"), "{:?}", asked[0]);
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

    #[test]
    fn the_claim_is_the_text_without_its_subject() {
        let (run, analysis) = fixture::quick();
        let first = &sentences(&run, &analysis)[0];
        assert_eq!(first.text, format!("Indicative: 1 thread: {}", first.claim));
        let clauses: Vec<String> = first.points.iter().map(Point::words).collect();
        assert_eq!(first.claim, format!("{}.", clauses.join("; ")));
    }
}
