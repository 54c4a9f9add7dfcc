//! What is refused or has no verdict answers nothing.

use iolens_model::units::Bytes;
use iolens_stats::analysis::Verdict;

use super::*;
use crate::fixture_findings::findings;

fn arm<'a>(cell: &'a mut CellAnalysis, label: &str) -> &'a mut ArmAnalysis {
    cell.arms.iter_mut().find(|arm| arm.arm.label == label).expect("the arm")
}

fn unranked(cell: &mut CellAnalysis, label: &str) {
    arm(cell, label).contrast.as_mut().expect("compared").verdict = Verdict::Unranked;
}

/// Nine settings, each of 24,000 sends that the kernel copied.
#[test]
fn zero_copy_costs_what_ranked_arms_show_and_copies_what_was_sent() {
    let (run, mut analysis) = findings();
    let told = |analysis: &Analysis| {
        let (claim, evidence) = zero_copy_cost(&run, analysis).expect("both methods");
        let against = evidence.iter().filter(|line| line.contains("against sendmsg_iov: "));
        (claim, against.count())
    };
    let claim = |sends: &str| {
        format!("The copy was postponed, not avoided: the kernel copied 100% of {sends} after all.")
    };
    assert_eq!(told(&analysis), (claim("216000 sends"), 9));
    unranked(&mut analysis.cells[0], ZERO);
    assert_eq!(told(&analysis), (claim("216000 sends"), 8), "what was sent is known");
    let failed = arm(&mut analysis.cells[1], ZERO);
    failed.status = Status::Failed;
    failed.zerocopy.as_mut().expect("it sends so").copied_share = Some(0.0);
    assert_eq!(told(&analysis), (claim("192000 sends"), 7));
    for cell in &mut analysis.cells {
        unranked(cell, IOV);
    }
    assert_eq!(zero_copy_cost(&run, &analysis), None);
}

#[test]
fn memory_outside_the_caches_costs_what_ranked_arms_show() {
    let (run, mut analysis) = findings();
    let mut outside = analysis.cells[0].clone();
    outside.cell = outside.cell.with_net(|net| net.working_set = WorkingSet::Cold);
    for arm in &mut outside.arms {
        let per_byte = arm.figures.as_mut().and_then(|figures| figures.ns_per_byte.as_mut());
        per_byte.expect("measured").value *= 2.0;
    }
    analysis.cells.push(outside);
    let told = |analysis: &Analysis| cold(&run, analysis).expect("a cold setting").0;
    assert!(told(&analysis).contains("sendmsg_iov +100%"), "{}", told(&analysis));
    unranked(&mut analysis.cells[0], IOV);
    let ranked = told(&analysis);
    assert!(ranked.contains("send_staged +100%") && !ranked.contains(IOV), "{ranked}");
}

#[test]
fn threads_are_compared_where_arms_are_ranked() {
    let (_, mut analysis) = findings();
    let has = |analysis: &Analysis| {
        let rows = by_threads(analysis);
        let of =
            |label: &str| rows.iter().any(|row| row.label == label && row.cell.size == Bytes(64));
        ["send", "sendmsg_iov"].map(of)
    };
    assert_eq!(has(&analysis), [true, true]);
    let four = |cell: &&mut CellAnalysis| cell.cell.threads == 4 && cell.cell.size == Bytes(64);
    unranked(analysis.cells.iter_mut().find(four).expect("the setting"), "send");
    assert_eq!(has(&analysis), [false, true]);
}
