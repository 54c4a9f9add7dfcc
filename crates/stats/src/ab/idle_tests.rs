//! Programs that work between their turns.

use iolens_model::ab::{AbArm, AbMode, AbQuantity};
use iolens_model::arm::Role;

use super::compare::tests::run;
use super::{AbReason, AbVerdict, analyse};
use crate::fixture::{self, ArmTime, rounds};

/// Of every arm a quarter of the CPU time is spent where no slice counts it. Two readings of 96
/// failed, which says nothing of the others.
#[test]
fn a_reading_that_failed_does_not_hide_work_between_turns() {
    let mut run = run("aaaaaaaa", AbMode::Loop, "1");
    let cell = run.header.plan.cells().remove(0);
    for pass in 1..=24 {
        let arms = [
            ArmTime { role: Role::Baseline, ..rounds("main", &[500.0; 3]) },
            rounds("main (A/A)", &[500.0; 3]),
            rounds("pr", &[500.0; 3]),
            rounds("pr (A/A)", &[500.0; 3]),
        ];
        let mut trial = fixture::trial(pass, &cell, &arms);
        trial.duration_ns = 1000;
        for (nth, arm) in trial.arms.iter_mut().enumerate() {
            let own = trial.slices.iter().filter(|slice| slice.arm == nth);
            let cpu_ns: u64 = own.filter_map(|slice| slice.tx.judged(AbQuantity::Cpu)).sum();
            let idle_cpu_ns = Some(cpu_ns / 3);
            arm.ab = Some(Box::new(AbArm { idle_cpu_ns, ..AbArm::default() }));
        }
        run.trials.push(trial);
    }
    run.trials[7].slices[0].tx.task_clock_ns = None;
    run.trials[9].arms[2].ab.as_mut().unwrap().idle_cpu_ns = None;
    let cell = analyse(&run).unwrap().cells.remove(0);
    for arm in &cell.arms {
        let share = arm.idle_share.unwrap();
        assert!((share - 1.0 / 3.0).abs() < 1e-6, "{}: {share}", arm.name);
    }
    let contrast = &cell.judgement.contrasts[0];
    assert_eq!(contrast.verdict, AbVerdict::Invalid, "{:?}", contrast.reason);
    assert!(matches!(contrast.reason, AbReason::WorksBetween { of: 0, .. }));
}
