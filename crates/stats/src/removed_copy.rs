//! What the copy costs that an iovec removes: `send_staged` less
//! `sendmsg_iov`, beside the copy alone.

use std::collections::BTreeMap;

use iolens_model::arm::Role;
use iolens_model::outcome::Status;

use crate::analysis::{ArmAnalysis, CellAnalysis, RemovedCopy};
use crate::estimate::{Estimate, Interval};
use crate::interval::Moments;
use crate::student::{Multipliers, StudentTable};
use crate::tracks::{Track, grouped};

/// The removed copy of every cell that has all three arms. In isolated plans
/// a pass pairs two arms, else a trial.
pub(crate) fn of(
    tracks: &[Track],
    cells: &[CellAnalysis],
    isolate: bool,
    table: &mut StudentTable,
) -> Vec<RemovedCopy> {
    let in_cell = |(cell, tracks): (_, Vec<&Track>)| {
        let arm = |id: &str| {
            let is_it = |t: &&&Track| t.arm.primitive == id && t.arm.role != Role::SelfCheck;
            tracks.iter().find(is_it).copied()
        };
        let (staged, iov) = (arm("send_staged")?, arm("sendmsg_iov")?);
        let analysed = &cells.iter().find(|known| known.cell == cell)?.arms;
        // What is saved is a small part of either: slices of unequal length alone make as much.
        let is_ranked = |track: &Track| {
            analysed.iter().any(|arm| arm.arm.label == track.arm.label && arm.is_ranked())
        };
        let memcpy =
            analysed.iter().find(is_memcpy).filter(|_| is_ranked(staged) && is_ranked(iov))?;
        let less_iov = differences(&by_partner(staged, isolate), &by_partner(iov, isolate));
        let beyond = arm("memcpy").and_then(|memcpy| {
            let beyond = differences(&less_iov, &by_partner(memcpy, isolate));
            mean(&beyond, table, |t| t.simultaneous)?.interval
        });
        Some(RemovedCopy {
            cell,
            staged_less_iov_ns_per_byte: mean(&less_iov, table, |t| t.pointwise)?,
            memcpy_ns_per_byte: memcpy.figures.as_ref()?.ns_per_byte?,
            beyond_memcpy_ns_per_byte: beyond,
        })
    };
    grouped(tracks, |track| track.cell.clone()).into_iter().filter_map(in_cell).collect()
}

fn is_memcpy(arm: &&ArmAnalysis) -> bool {
    arm.arm.primitive == "memcpy" && arm.status == Status::Ok
}

/// ns per byte by what pairs it: pass and position, or the pass alone.
fn by_partner(track: &Track, isolate: bool) -> ByPartner {
    let position = |position: u32| if isolate { 0 } else { position };
    let points = track.points.iter().filter(|point| point.bytes > 0.0);
    points.map(|p| ((p.pass, position(p.position)), p.time.over / p.bytes)).collect()
}

/// ns per byte by pass and position.
type ByPartner = BTreeMap<(u32, u32), f64>;

fn differences(a: &ByPartner, b: &ByPartner) -> ByPartner {
    a.iter().filter_map(|(partner, value)| Some((*partner, value - b.get(partner)?))).collect()
}

/// The arithmetic mean with its t interval: a difference of costs may be
/// negative and has no logarithm.
fn mean(
    values: &ByPartner,
    table: &mut StudentTable,
    choose: fn(&Multipliers) -> f64,
) -> Option<Estimate> {
    let moments = Moments::of(&values.values().copied().collect::<Vec<f64>>())?;
    let half = table.multipliers(moments.n).and_then(|t| moments.half_width(choose(&t)));
    let interval =
        half.map(|half| Interval { low: moments.mean - half, high: moments.mean + half });
    Some(Estimate { value: moments.mean, interval, n: moments.n })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixture::{self, ArmTime};
    use iolens_model::run::Run;

    /// Trials of 1 KiB whose arms take these ns per message.
    fn run(arms: &[(&'static str, Role)], passes: &[&[f64]]) -> Run {
        let labels: Vec<&str> = arms.iter().map(|(label, _)| *label).collect();
        let mut plan = fixture::plan(&labels);
        plan.baseline = arms[0].0.to_owned();
        let mut run = fixture::run(plan);
        let cell = run.header.plan.cells().remove(0);
        for (pass, times) in (1..).zip(passes) {
            let arm = |(&(label, role), &ns): (&(&'static str, Role), &f64)| {
                ArmTime::new(label, role, &[ns; 4])
            };
            let arms: Vec<ArmTime> = arms.iter().zip(*times).map(arm).collect();
            run.trials.push(fixture::trial(pass, &cell, &arms));
        }
        run
    }

    const THREE: [(&str, Role); 3] = [
        ("send_staged", Role::Baseline),
        ("sendmsg_iov", Role::Compared),
        ("memcpy", Role::Control),
    ];

    /// Differences of 102.4, 204.8 and 307.2 ns per 1 KiB: 0.1, 0.2 and 0.3
    /// ns per byte, although the machine's own speed changes by far more.
    #[test]
    fn the_difference_is_paired_by_trial() {
        let passes: [&[f64]; 3] =
            [&[1102.4, 1000.0, 102.4], &[2204.8, 2000.0, 102.4], &[907.2, 600.0, 102.4]];
        let found = analyse(&run(&THREE, &passes)).removed_copies;
        let [removed] = &found[..] else { panic!("{found:?}") };
        let difference = removed.staged_less_iov_ns_per_byte;
        assert!((difference.value - 0.2).abs() < 1e-9);
        // sd 0.1, n = 3, t₂ = 4.302653.
        let half = 4.302_653 * 0.1 / 3f64.sqrt();
        let interval = difference.interval.expect("an interval");
        assert!((interval.high - 0.2 - half).abs() < 1e-6, "{interval:?}");
        assert!((0.2 - interval.low - half).abs() < 1e-6, "{interval:?}");
        assert!((removed.memcpy_ns_per_byte.value - 0.1).abs() < 1e-9);
        // Beyond the memcpy of 0.1 ns per byte: 0.0, 0.1 and 0.2; two contrasts
        // at most are made, so the half-width is no smaller than pointwise.
        let beyond = removed.beyond_memcpy_ns_per_byte.expect("an interval");
        assert!((f64::midpoint(beyond.low, beyond.high) - 0.1).abs() < 1e-9, "{beyond:?}");
        assert!(beyond.high - 0.1 > half - 1e-6, "{beyond:?}");
    }

    #[test]
    fn isolated_trials_are_paired_by_pass() {
        let mut run = run(&THREE, &[&[1102.4, 1000.0, 102.4], &[1102.4, 1000.0, 102.4]]);
        run.header.plan.isolate = true;
        let whole = std::mem::take(&mut run.trials);
        for trial in &whole {
            for (position, index) in (0u32..).zip(0..3) {
                let mut alone = trial.clone();
                (alone.isolated, alone.position) = (true, position);
                alone.arms = vec![trial.arms[index].clone()];
                alone.slices.retain(|slice| slice.arm == index);
                alone.slices.iter_mut().for_each(|slice| slice.arm = 0);
                run.trials.push(alone);
            }
        }
        let found = analyse(&run).removed_copies;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].staged_less_iov_ns_per_byte.n, 2);
    }

    #[test]
    fn without_one_of_the_three_there_is_no_answer() {
        let two = [THREE[0], THREE[1]];
        assert_eq!(analyse(&run(&two, &[&[500.0, 400.0], &[500.0, 400.0]])).removed_copies, []);
        let mut spoilt = run(&THREE, &[&[500.0, 400.0, 102.4]]);
        for slice in spoilt.trials[0].slices.iter_mut().filter(|slice| slice.arm == 1) {
            slice.tx.bytes -= 1;
        }
        assert_eq!(analyse(&spoilt).removed_copies, []);
    }
}
