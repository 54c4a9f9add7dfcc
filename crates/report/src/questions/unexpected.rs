//! Which result is unexpected: the one farthest from its neighbours along the
//! sizes, or from its cost model.

use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, CostModel, Unexpected};

use super::{Outcome, measured};
use crate::number::{percent, ratio};
use crate::words;

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    let Some(found) = &analysis.unexpected else {
        return Outcome::not_decidable(
            "No expectation can be formed: that takes an arm with numbers at four or more sizes \
             of one curve.",
        );
    };
    let mut sentences = vec![sentence(run, analysis, found)];
    if !run.header.plan.quick && found.beyond_interval {
        sentences.push(
            "The run does not say why; a step at a page, a segment or a cache size is the usual \
             cause, and the figures mark those."
                .to_owned(),
        );
    }
    let evidence = analysis.cost_models.iter().map(|model| line(run, model)).collect();
    Outcome::Answered { sentences, evidence }
}

fn sentence(run: &Run, analysis: &Analysis, found: &Unexpected) -> String {
    let place = words::subject(&run.header.plan, &found.cell);
    let facts = format!(
        "{} at {place} takes {} where its neighbours along the sizes let expect {}, {}× that",
        found.label,
        measured(&found.measured_ns, "ns per message"),
        three_digits(found.expected_ns),
        ratio(found.ratio)
    );
    let delta = percent(analysis.delta);
    match found.beyond_interval {
        true => {
            format!("{facts}; the interval leaves the expected value out by more than δ = {delta}.")
        }
        false => format!(
            "None. The farthest from expectation is no farther than its interval and δ = {delta} \
             allow: {facts}."
        ),
    }
}

/// `1 thread: send_staged takes about 1100 ns + 0.200 ns per byte …`.
fn line(run: &Run, model: &CostModel) -> String {
    let curve = words::curve(&run.header.plan, &model.curve);
    let worst =
        format!("largest deviation {} at {}", percent(model.worst_residual.abs()), model.worst_at);
    if !model.is_affine() {
        return format!(
            "{curve}: {} does not follow a fixed part plus a part per byte ({worst})",
            model.label
        );
    }
    let bound = if model.fixed_is_upper_bound { "at most " } else { "" };
    format!(
        "{curve}: {} takes {bound}{} plus {} ({worst})",
        model.label,
        measured(&model.fixed_ns, "ns per message"),
        measured(&model.per_byte_ns, "ns per byte")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    fn first(run: &Run, analysis: &Analysis) -> String {
        match outcome(run, analysis) {
            Outcome::Answered { mut sentences, .. } => sentences.remove(0),
            Outcome::NotDecidable { why, .. } => why,
        }
    }

    #[test]
    fn the_farthest_is_named_or_nothing_is() {
        let (run, mut analysis) = findings();
        assert!(first(&run, &analysis).contains("1.24× that; the interval leaves"));
        if let Some(found) = &mut analysis.unexpected {
            found.beyond_interval = false;
        }
        assert!(first(&run, &analysis).starts_with("None. The farthest"));
    }

    #[test]
    fn short_curves_let_nothing_be_expected() {
        let (run, mut analysis) = findings();
        analysis.unexpected = None;
        assert!(first(&run, &analysis).contains("four or more sizes"));
    }
}
