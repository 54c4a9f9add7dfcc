//! From which size one copy at the sender beats two.

use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, Crossover};

use super::Outcome;
use crate::answers::crossing::{self, Brief};
use crate::words;

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    overtaking(run, analysis, &["send_staged"], "sendmsg_iov")
}

/// Curves up to which each has a sentence of its own.
const CURVES: usize = 4;

/// The crossovers between each of `firsts` and `second`, all curves.
pub(super) fn overtaking(run: &Run, analysis: &Analysis, firsts: &[&str], second: &str) -> Outcome {
    // The data decide which of a pair is the first.
    let wanted = |c: &&Crossover| {
        let (a, b) = (c.first.as_str(), c.second.as_str());
        (firsts.contains(&a) && b == second) || (a == second && firsts.contains(&b))
    };
    let found: Vec<&Crossover> = analysis.crossovers.iter().filter(wanted).collect();
    if found.is_empty() {
        return Outcome::not_decidable(why(run, analysis, firsts, second));
    }
    let sentence = |c: &&Crossover| {
        format!("{}: {}", words::curve(&run.header, &c.curve), crossing::claim(run, analysis, c))
    };
    let sentences = match found.len() > firsts.len() * CURVES {
        true => together(run, analysis, &found),
        false => found.iter().map(sentence).collect(),
    };
    Outcome::Answered {
        sentences,
        evidence: found.iter().flat_map(|c| crossing::evidence(run, c)).collect(),
    }
}

/// What is found, each thing once with the curves of which it is said; ratios
/// and intervals stand with the evidence.
fn together(run: &Run, analysis: &Analysis, found: &[&Crossover]) -> Vec<String> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for crossover in found {
        let Brief { curve, first, second, said: what, .. } =
            crossing::brief(run, analysis, crossover);
        let text = format!("{second} ahead of {first}: {what}");
        match said.iter_mut().find(|(known, _)| *known == text) {
            Some((_, curves)) => curves.push(curve),
            None => said.push((text, vec![curve])),
        }
    }
    said.into_iter().map(|(text, curves)| format!("{text} ({}).", curves.join("; "))).collect()
}

fn why(run: &Run, analysis: &Analysis, firsts: &[&str], second: &str) -> String {
    let plan = &run.header.plan;
    let missing: Vec<String> = firsts
        .iter()
        .chain([&second])
        .filter(|id| !plan.primitives.iter().any(|primitive| primitive == *id))
        .map(|id| (*id).to_owned())
        .collect();
    let skipped = analysis.cells.iter().find_map(|cell| {
        let arm = crate::arms::of(cell, second)?;
        arm.figures.is_none().then(|| arm.reason.clone()).flatten()
    });
    match (missing.as_slice(), plan.sizes.len(), skipped) {
        ([_, ..], _, _) => format!(
            "The run did not measure {}; name it with --methods.",
            crate::number::list(&missing)
        ),
        (_, ..=1, _) => "The run has one message size; a crossover needs at least two.".to_owned(),
        (_, _, Some(reason)) => format!("{second} has no numbers to compare: {reason}."),
        _ => "No two sizes have usable numbers of both with an interval; that takes at least two \
              trials per size."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn a_crossover_answers_it_per_curve() {
        let (run, analysis) = findings();
        let Outcome::Answered { sentences, evidence } = outcome(&run, &analysis) else {
            panic!("decidable")
        };
        assert!(sentences[0].starts_with("1 thread, loopback, stream: sendmsg_iov (1 copy"));
        assert!(sentences[0].contains("overtakes send_staged (2 copies at the sender) between"));
        assert!(evidence[0].contains("× as fast as send_staged (0.88–0.91)"), "{}", evidence[0]);
    }

    #[test]
    fn a_missing_arm_or_size_is_named() {
        let (mut run, mut analysis) = findings();
        analysis.crossovers.clear();
        let why = |run: &Run, analysis: &Analysis| match outcome(run, analysis) {
            Outcome::NotDecidable { why, .. } => why,
            Outcome::Answered { .. } => panic!("not decidable"),
        };
        assert!(why(&run, &analysis).contains("at least two trials"));
        run.header.plan.sizes.truncate(1);
        assert!(why(&run, &analysis).contains("one message size"));
        run.header.plan.primitives.retain(|id| id != "sendmsg_iov");
        assert!(why(&run, &analysis).contains("did not measure sendmsg_iov"));
    }
}
