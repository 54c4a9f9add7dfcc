//! From which size zero-copy pays, against both copying ways.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{Outcome, one_copy};

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    one_copy::overtaking(run, analysis, &["send_staged", "sendmsg_iov"], "sendmsg_zerocopy")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn the_answer_says_that_the_kernel_copied() {
        let (run, analysis) = findings();
        let Outcome::Answered { sentences, .. } = outcome(&run, &analysis) else {
            panic!("decidable")
        };
        assert!(sentences.iter().all(|s| s.contains("copied late by the kernel, 100 % of")));
        assert!(sentences[0].contains("nowhere in 64 B to 256 KiB"), "{}", sentences[0]);
    }

    #[test]
    fn an_arm_that_could_not_run_says_why() {
        let (run, mut analysis) = findings();
        analysis.crossovers.clear();
        for arm in analysis.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
            if arm.arm.primitive == "sendmsg_zerocopy" {
                arm.figures = None;
                arm.reason = Some("message needs 1048576 bytes of locked memory".into());
            }
        }
        let Outcome::NotDecidable { why, .. } = outcome(&run, &analysis) else {
            panic!("not decidable")
        };
        assert!(why.contains("locked memory"), "{why}");
    }
}
