//! The questions that a systems course asks of such a run, answered from its
//! data: each with evidence and interval, or with why the run cannot tell. One
//! file per question, each a function from the run to an [`Outcome`].

use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, Estimate};
use serde::Serialize;

mod caches;
mod copies;
mod one_copy;
mod threads;
mod unexpected;
mod zero_copy;
mod zero_copy_cost;

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// A word for links.
    pub id: &'static str,
    /// The question.
    pub question: &'static str,
    /// What the run says.
    pub outcome: Outcome,
}

/// What a run says to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An answer.
    Answered {
        /// The answer, sentence by sentence.
        sentences: Vec<String>,
        /// The numbers behind it, one line each.
        evidence: Vec<String>,
    },
    /// No answer from this run.
    NotDecidable {
        /// Why, and what would decide it; whole sentences.
        why: String,
        /// What the run can say nevertheless, one sentence each.
        known: Vec<String>,
    },
}

impl Outcome {
    fn not_decidable(why: impl Into<String>) -> Outcome {
        Outcome::NotDecidable { why: why.into(), known: Vec::new() }
    }
}

type Question = (&'static str, &'static str, fn(&Run, &Analysis) -> Outcome);

const QUESTIONS: [Question; 7] = [
    (
        "q-copies",
        "Where do the copies happen, how many are there, and who makes them?",
        copies::outcome,
    ),
    (
        "q-one-copy",
        "From which message size does one copy at the sender (sendmsg_iov) beat two \
         (send_staged)?",
        one_copy::outcome,
    ),
    (
        "q-zero-copy",
        "From which message size does zero-copy (sendmsg_zerocopy) pay?",
        zero_copy::outcome,
    ),
    ("q-zero-copy-cost", "Why is zero-copy not always best?", zero_copy_cost::outcome),
    ("q-caches", "Which cache level gains most from fewer copies?", caches::outcome),
    ("q-threads", "How do threads and cache contention interact?", threads::outcome),
    ("q-unexpected", "Which result is unexpected?", unexpected::outcome),
];

/// Every question in the order in which a page asks them. Sentences of a quick
/// run begin with `Indicative: `.
#[must_use]
pub fn answers(run: &Run, analysis: &Analysis) -> Vec<Answer> {
    let analysis = &analysis.shown();
    let answer = |(id, question, ask): &Question| {
        let mut outcome = ask(run, analysis);
        if let (true, Outcome::Answered { sentences, .. }) = (run.header.plan.quick, &mut outcome) {
            sentences.iter_mut().for_each(|sentence| sentence.insert_str(0, "Indicative: "));
        }
        Answer { id, question, outcome }
    };
    QUESTIONS.iter().map(answer).collect()
}

/// `0.0620 ns per byte (95 % interval 0.058 to 0.066, n = 12)`.
fn measured(estimate: &Estimate, unit: &str) -> String {
    let blank = if unit.is_empty() { "" } else { " " };
    let value = format!("{}{blank}{unit}", three_digits(estimate.value));
    match estimate.interval {
        Some(i) if !i.is_usable() => {
            format!("{value} ({})", crate::number::interval(i, estimate.n, |_| String::new()))
        }
        Some(i) => format!(
            "{value} (95 % interval {} to {}, n = {})",
            three_digits(i.low),
            three_digits(i.high),
            estimate.n
        ),
        None => format!("{value} (n = {}: no interval)", estimate.n),
    }
}

/// Whether the intervals of two estimates leave no doubt about their order.
fn apart(a: &Estimate, b: &Estimate) -> bool {
    a.interval.zip(b.interval).is_some_and(|(a, b)| a.high < b.low || b.high < a.low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture_findings::findings;

    #[test]
    fn every_question_is_answered_or_says_why_not() {
        for (run, analysis) in [findings(), fixture::run(), fixture::quick(), fixture::classic()] {
            for answer in answers(&run, &analysis) {
                let sentences = match answer.outcome {
                    Outcome::Answered { sentences, .. } => sentences,
                    Outcome::NotDecidable { why, .. } => vec![why],
                };
                assert!(!sentences.is_empty(), "{}", answer.id);
                assert!(sentences.iter().all(|s| s.ends_with('.')), "{}: {sentences:?}", answer.id);
            }
        }
    }

    #[test]
    fn answers_of_a_quick_run_are_indicative_and_without_verdicts() {
        let (mut run, analysis) = findings();
        run.header.plan.quick = true;
        for answer in answers(&run, &analysis) {
            if let Outcome::Answered { sentences, .. } = answer.outcome {
                assert!(sentences.iter().all(|s| s.starts_with("Indicative: ")));
                let verdicts = ["FASTER", "SLOWER", "EQUIVALENT", "INCONCLUSIVE"];
                assert!(sentences.iter().all(|s| verdicts.iter().all(|v| !s.contains(v))));
            }
        }
    }
}
