//! Figures by hand, and what makes them null.

use iolens_model::axes::Topology;
use iolens_model::outcome::{PmuCounts, SliceOutcome, ZerocopyCounts};

use crate::analyse;
use crate::analysis::ArmAnalysis;
use crate::estimate::Estimate;
use crate::fixture::{MESSAGES, one_arm_trial};

/// The only arm of a run whose slices were changed: 10 000 messages of 1 KiB
/// in each of four slices.
fn arm(change: impl Fn(&mut SliceOutcome)) -> ArmAnalysis {
    analyse(&one_arm_trial(change)).cells.remove(0).arms.remove(0)
}

fn value(estimate: Option<Estimate>) -> Option<f64> {
    estimate.map(|estimate| estimate.value)
}

/// 4.6 GHz for 90 % of 512 ns: 2120 cycles a message at each end.
fn counted(slice: &mut SliceOutcome) {
    let pmu = PmuCounts {
        cycles_user: Some(MESSAGES * 120),
        cycles_kernel: Some(MESSAGES * 1000),
        instructions_user: Some(MESSAGES * 200),
        instructions_kernel: Some(MESSAGES * 1500),
        l1d_loads: Some(MESSAGES * 400),
        l1d_misses: Some(MESSAGES * 16),
        llc_references: Some(MESSAGES * 3),
        llc_misses: Some(0),
        branches: Some(MESSAGES * 300),
        branch_misses: Some(MESSAGES * 2),
        dtlb_loads: Some(MESSAGES * 400),
        dtlb_misses: Some(MESSAGES),
        stalled_cycles_frontend: Some(MESSAGES * 102),
        stalled_cycles_backend: Some(MESSAGES * 204),
    };
    slice.tx.run_delay_ns = Some(MESSAGES * 5);
    slice.tx.segments_out = Some(MESSAGES * 3);
    slice.rx.as_mut().unwrap().run_delay_ns = Some(MESSAGES * 2);
    slice.tx.pmu = pmu;
    slice.rx.as_mut().unwrap().pmu = PmuCounts { cycles_kernel: Some(MESSAGES * 800), ..pmu };
}

#[test]
fn waits_and_preemptions_are_those_of_both_ends_each() {
    let figures = arm(|slice| {
        slice.tx.voluntary_switches = Some(MESSAGES * 2);
        slice.tx.involuntary_switches = Some(0);
        let rx = slice.rx.as_mut().unwrap();
        (rx.voluntary_switches, rx.involuntary_switches) = (Some(MESSAGES), Some(MESSAGES / 4));
    });
    let figures = figures.figures.unwrap();
    assert_eq!(value(figures.voluntary_switches_per_message), Some(3.0));
    assert_eq!(value(figures.involuntary_switches_per_message), Some(0.25));
    assert_eq!(value(figures.context_switches_per_message), Some(3.25));
    let unknown = arm(|slice| slice.tx.involuntary_switches = None).figures.unwrap();
    assert!(unknown.voluntary_switches_per_message.is_some());
    assert_eq!(unknown.involuntary_switches_per_message, None);
}

#[test]
fn cycles_and_misses_are_those_of_both_ends() {
    let figures = arm(counted).figures.unwrap();
    assert_eq!(value(figures.tx_cycles_per_byte), Some(1120.0 / 1024.0));
    assert_eq!(value(figures.rx_cycles_per_byte), Some(920.0 / 1024.0));
    assert_eq!(value(figures.cycles_per_byte), Some(2040.0 / 1024.0));
    assert_eq!(value(figures.l1d_misses_per_kib), Some(32.0));
    assert_eq!(value(figures.llc_references_per_kib), Some(6.0));
    assert_eq!(value(figures.llc_misses_per_kib), Some(0.0));
    assert_eq!(value(figures.branch_misses_per_kib), Some(4.0));
    assert_eq!(value(figures.dtlb_misses_per_kib), Some(2.0));
    // Of 1120 cycles at one end and 920 at the other.
    assert_eq!(value(figures.stalled_frontend_per_cycle), Some(0.1));
    assert_eq!(value(figures.stalled_backend_per_cycle), Some(0.2));
    assert_eq!(value(figures.run_delay_ns_per_message), Some(7.0));
    assert_eq!(value(figures.tx_segments_per_message), Some(3.0));
    assert_eq!(value(figures.tx_messages_per_call), Some(1.0));
}

#[test]
fn a_counter_that_stood_still_or_missed_a_slice_gives_no_figure() {
    let zero = arm(|slice| {
        counted(slice);
        slice.tx.pmu.cycles_kernel = Some(0);
        let rx = &mut slice.rx.as_mut().unwrap().pmu;
        (rx.l1d_loads, rx.branches, rx.dtlb_loads) = (Some(0), Some(0), Some(0));
    });
    let figures = zero.figures.unwrap();
    assert_eq!((figures.cycles_per_byte, figures.tx_cycles_per_byte), (None, None));
    assert!(figures.rx_cycles_per_byte.is_some());
    assert_eq!(figures.l1d_misses_per_kib, None);
    assert_eq!((figures.branch_misses_per_kib, figures.dtlb_misses_per_kib), (None, None));
    assert_eq!(figures.stalled_frontend_per_cycle, None, "there are no cycles");
    let once = arm(|slice| {
        counted(slice);
        slice.tx.pmu.llc_misses = slice.tx.pmu.llc_misses.filter(|_| slice.round > 0);
    });
    assert_eq!(once.figures.unwrap().llc_misses_per_kib, None);
    assert_eq!(arm(|_| {}).figures.unwrap().cycles_per_byte, None);
}

/// One tick of 10 ms in each of four slices of 10 000 messages of 1 KiB.
#[test]
fn softirq_time_counts_each_processor_once() {
    let ticks = |slice: &mut SliceOutcome| {
        slice.tx.softirq_ticks = Some(1);
        slice.rx.as_mut().unwrap().softirq_ticks = Some(1);
    };
    let softirq_over = |topology, cpus: [Vec<Vec<u32>>; 2]| {
        let mut run = one_arm_trial(ticks);
        run.header.plan.net_mut().unwrap().topologies = vec![topology];
        run.trials[0].cell.net_mut().unwrap().topology = topology;
        let [tx, rx] = cpus;
        run.trials[0].tx.as_mut().unwrap().thread_cpus = tx;
        run.trials[0].rx.as_mut().unwrap().thread_cpus = rx;
        let arm = analyse(&run).cells.remove(0).arms.remove(0);
        value(arm.figures.unwrap().softirq_ns_per_byte)
    };
    let softirq = |cpus| softirq_over(Topology::Loopback, cpus);
    let one_end = 1e7 / (MESSAGES as f64 * 1024.0);
    let apart = softirq_over(Topology::Host, [vec![vec![0]], vec![vec![0]]]);
    assert_eq!(apart, Some(2.0 * one_end), "of two machines these are two CPUs");
    assert_eq!(softirq([vec![vec![0]], vec![vec![0]]]), Some(one_end));
    assert_eq!(softirq([vec![vec![0]], vec![vec![1]]]), Some(2.0 * one_end));
    assert_eq!(softirq([vec![vec![0, 1]], vec![vec![1]]]), Some(one_end));
    assert_eq!(softirq([vec![vec![0, 1]], vec![vec![1, 2]]]), None);
    assert_eq!(softirq([vec![], vec![vec![1]]]), None);
}

#[test]
fn zero_copy_sends_are_summed_and_label_the_row() {
    let sends = |copied: Option<u64>| {
        arm(|slice| {
            let counts = ZerocopyCounts {
                sends: 100,
                completions: 100,
                notifications: 25,
                copied,
                enobufs: 2,
            };
            slice.tx.zerocopy = Some(counts);
        })
    };
    let some = sends(Some(4));
    let zerocopy = some.zerocopy.unwrap();
    assert_eq!((zerocopy.sends, zerocopy.completions, zerocopy.enobufs), (400, 400, 8));
    assert_eq!((zerocopy.copied_share, some.shown_label().as_str()), (Some(0.04), "base"));
    assert_eq!(sends(Some(6)).shown_label(), "base (copied)");
    assert_eq!(zerocopy.notifications_per_send, Some(0.25));
    let unknown = sends(None);
    assert_eq!(unknown.zerocopy.unwrap().copied_share, None, "unknown is not zero");
    assert_eq!(unknown.shown_label(), "base");
    assert_eq!(arm(|_| {}).zerocopy, None);
}

#[test]
fn copies_are_the_mean_over_trials() {
    let mut run = crate::fixture::passes(&[1.0; 4]);
    for (trial, late) in run.trials.iter_mut().zip([0.0, 1.0, 1.0, 1.0]) {
        trial.arms[1].copies_sender = Some(late);
        trial.arms[2].copies_sender = Some(late).filter(|&late| late > 0.0);
    }
    let arms = &analyse(&run).cells[0].arms;
    assert_eq!((arms[1].copies_sender, arms[1].copies_end_to_end), (Some(0.75), Some(2.0)));
    assert_eq!(arms[2].copies_sender, None);
}
