//! What an arm did in one trial: sums over its measured slices.

use iolens_model::outcome::{
    Counts, KernelCounts, MultishotCounts, PmuCounts, SliceOutcome, TrialOutcome, ZerocopyCounts,
};
use iolens_model::trial::SliceKind;

/// Sums over measured slices and both ends. A sum is null as soon as one of
/// its parts is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Slices summed.
    pub(crate) slices: usize,
    /// Slice clocks.
    pub(crate) time_ns: u64,
    /// Messages sent.
    pub(crate) messages: u64,
    /// Payload bytes the kernel accepted.
    pub(crate) tx_bytes: u64,
    /// Payload bytes delivered; null without a receiver.
    pub(crate) rx_bytes: Option<u64>,
    /// Calls of the sender.
    pub(crate) tx_calls: Option<u64>,
    /// Calls of the receiver.
    pub(crate) rx_calls: Option<u64>,
    /// CPU time of the sender.
    pub(crate) tx_cpu_ns: Option<u64>,
    /// CPU time of the receiver.
    pub(crate) rx_cpu_ns: Option<u64>,
    /// Voluntary switches, both ends.
    pub(crate) voluntary_switches: Option<u64>,
    /// Involuntary switches, both ends.
    pub(crate) involuntary_switches: Option<u64>,
    /// Migrations, both ends.
    pub(crate) migrations: Option<u64>,
    /// Minor faults, both ends.
    pub(crate) minor_faults: Option<u64>,
    /// Major faults, both ends.
    pub(crate) major_faults: Option<u64>,
    /// Retransmits of the sender's connections.
    pub(crate) retransmits: Option<u64>,
    /// Segments that the sender's kernel sent.
    pub(crate) segments_out: Option<u64>,
    /// Softirq ticks, of each CPU once.
    pub(crate) softirq_ticks: Option<u64>,
    /// Time ready to run without a CPU, both ends.
    pub(crate) run_delay_ns: Option<u64>,
    /// Bytes mapped for the receiver; null for receivers that map none.
    pub(crate) rx_mapped_bytes: Option<u64>,
    /// Multishot receives; null for receivers that make none.
    pub(crate) multishot: Option<MultishotCounts>,
    /// Zero-copy sends of the sender; null for arms that make none.
    pub(crate) zerocopy: Option<ZerocopyCounts>,
    /// What the PMU counted, both ends together: each count is null unless
    /// every end that the arm has knows it.
    pub(crate) pmu: PmuCounts,
    /// What the kernel counted by itself, in the same way.
    pub(crate) kernel: KernelCounts,
}

/// The sums of one arm; null if none of its slices counts.
pub(crate) fn totals(trial: &TrialOutcome, arm: usize) -> Option<Totals> {
    let counts = |slice: &&SliceOutcome| slice.arm == arm && slice.kind == SliceKind::Measured;
    let slices: Vec<&SliceOutcome> = trial.slices.iter().filter(counts).collect();
    if slices.is_empty() {
        return None;
    }
    let tx = |f: fn(&Counts) -> u64| slices.iter().map(|s| f(&s.tx)).sum();
    let rx = |f: fn(&Counts) -> u64| slices.iter().map(|s| s.rx.as_ref().map(f)).sum();
    let rx_part =
        |f: fn(&Counts) -> Option<u64>| slices.iter().map(|s| s.rx.as_ref().and_then(f)).sum();
    // An arm without a receiver has one end, whose count is the whole.
    let both = |f: fn(&Counts) -> Option<u64>| {
        let slice = |s: &&SliceOutcome| match &s.rx {
            Some(rx) => f(&s.tx).zip(f(rx)).map(|(a, b)| a + b),
            None => f(&s.tx),
        };
        slices.iter().map(slice).sum()
    };
    Some(Totals {
        slices: slices.len(),
        time_ns: tx(|c| c.time_ns),
        messages: tx(|c| c.messages),
        tx_bytes: tx(|c| c.bytes),
        rx_bytes: rx(|c| c.bytes),
        tx_calls: slices.iter().map(|s| s.tx.calls).sum(),
        rx_calls: rx_part(|c| c.calls),
        tx_cpu_ns: slices.iter().map(|s| s.tx.task_clock_ns).sum(),
        rx_cpu_ns: rx_part(|c| c.task_clock_ns),
        voluntary_switches: both(|c| c.voluntary_switches),
        involuntary_switches: both(|c| c.involuntary_switches),
        migrations: both(|c| c.migrations),
        minor_faults: both(|c| c.minor_faults),
        major_faults: both(|c| c.major_faults),
        retransmits: slices.iter().map(|s| s.tx.retransmits).sum(),
        segments_out: slices.iter().map(|s| s.tx.segments_out).sum(),
        softirq_ticks: iolens_stats::values::softirq_of(trial, arm),
        run_delay_ns: both(|c| c.run_delay_ns),
        rx_mapped_bytes: rx_part(|c| c.mapped_bytes),
        multishot: multishot(&slices),
        zerocopy: zerocopy(&slices),
        pmu: events(&slices, |c| c.pmu, PmuCounts::plus),
        kernel: events(&slices, |c| c.kernel, KernelCounts::plus),
    })
}

fn multishot(slices: &[&SliceOutcome]) -> Option<MultishotCounts> {
    let each = slices.iter().map(|slice| slice.rx.as_ref()?.multishot);
    each.collect::<Option<Vec<_>>>()?.into_iter().reduce(|sum, next| sum.plus(&next))
}

fn zerocopy(slices: &[&SliceOutcome]) -> Option<ZerocopyCounts> {
    let each = slices.iter().map(|slice| slice.tx.zerocopy);
    each.reduce(|sum, next| Some(sum?.plus(&next?))).flatten()
}

/// One set of events over all slices and both ends.
fn events<T: Default>(slices: &[&SliceOutcome], of: fn(&Counts) -> T, plus: fn(&T, &T) -> T) -> T {
    let each = slices.iter().map(|slice| match &slice.rx {
        Some(rx) => plus(&of(&slice.tx), &of(rx)),
        None => of(&slice.tx),
    });
    each.reduce(|sum, next| plus(&sum, &next)).unwrap_or_default()
}

impl Totals {
    /// Voluntary and involuntary switches of both ends.
    pub(crate) fn context_switches(&self) -> Option<u64> {
        Some(self.voluntary_switches? + self.involuntary_switches?)
    }

    /// Received payload bits per second.
    pub(crate) fn goodput_bits_per_s(&self) -> Option<f64> {
        let bytes = self.rx_bytes.filter(|_| self.time_ns > 0)?;
        Some(bytes as f64 * 8e9 / self.time_ns as f64)
    }

    /// Cycles of both ends, user and kernel, over payload bytes received; sent
    /// where there is no receiver.
    pub(crate) fn cycles_per_byte(&self) -> Option<f64> {
        let cycles = self.pmu.cycles_user? + self.pmu.cycles_kernel?;
        let bytes = self.rx_bytes.unwrap_or(self.tx_bytes);
        (bytes > 0).then(|| cycles as f64 / bytes as f64)
    }

    /// Time over the messages that arrived, ns: a datagram may be lost.
    pub(crate) fn ns_per_message(&self) -> Option<f64> {
        let lost = self.rx_bytes.filter(|received| *received < self.tx_bytes);
        let share = lost.map_or(1.0, |received| received as f64 / self.tx_bytes as f64);
        let arrived = self.messages as f64 * share;
        (arrived > 0.0).then(|| self.time_ns as f64 / arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn discarded_slices_are_left_out_and_one_null_makes_a_null() {
        let (mut run, _) = fixture::run();
        let trial = &mut run.trials[0];
        let before = totals(trial, 0).expect("the baseline ran");
        assert_eq!((before.slices, before.messages), (2, 2000));
        assert_eq!(before.context_switches(), Some(16));
        assert_eq!(before.softirq_ticks, None);
        let measured = trial.slices.iter_mut().find(|s| s.kind == SliceKind::Measured);
        measured.expect("there is one").tx.voluntary_switches = None;
        assert_eq!(totals(trial, 0).and_then(|t| t.context_switches()), None);
    }

    #[test]
    fn softirq_of_a_cpu_that_both_ends_use_counts_once() {
        let (mut run, _) = fixture::run();
        let trial = &mut run.trials[0];
        for slice in &mut trial.slices {
            slice.tx.softirq_ticks = Some(3);
            slice.rx.iter_mut().for_each(|rx| rx.softirq_ticks = Some(3));
        }
        let mut ticks = |tx: Vec<u32>, rx: Vec<u32>| {
            trial.tx.as_mut().expect("a sender").thread_cpus = vec![tx];
            trial.rx.as_mut().expect("a receiver").thread_cpus = vec![rx];
            totals(trial, 0).and_then(|totals| totals.softirq_ticks)
        };
        // Two slices count.
        assert_eq!(ticks(vec![0], vec![1]), Some(12));
        assert_eq!(ticks(vec![0], vec![0]), Some(6));
        assert_eq!(ticks(vec![0, 1], vec![1, 2]), None);
    }

    #[test]
    fn time_is_that_of_the_messages_that_arrived() {
        let (mut run, _) = fixture::run();
        let trial = &mut run.trials[0];
        let whole = totals(trial, 0).and_then(|totals| totals.ns_per_message()).expect("a time");
        for slice in trial.slices.iter_mut().filter(|slice| slice.arm == 0) {
            slice.rx.as_mut().expect("a receiver").bytes = slice.tx.bytes / 2;
        }
        let lossy = totals(trial, 0).and_then(|totals| totals.ns_per_message()).expect("a time");
        assert!((lossy / whole - 2.0).abs() < 1e-9, "{lossy} {whole}");
    }

    #[test]
    fn a_control_has_no_receiver() {
        let (run, _) = fixture::run();
        let control = totals(&run.trials[0], 5).expect("the control ran");
        assert_eq!((control.rx_bytes, control.goodput_bits_per_s()), (None, None));
        assert!(control.context_switches().is_some());
    }

    #[test]
    fn pmu_counts_are_sums_over_both_ends_or_null() {
        let (mut run, _) = fixture::whole();
        let trial = &mut run.trials[0];
        let slice = |trial: &TrialOutcome| {
            let measured = |s: &&SliceOutcome| s.arm == 0 && s.kind == SliceKind::Measured;
            trial.slices.iter().position(|s| measured(&s)).expect("there is one")
        };
        let first = &trial.slices[slice(trial)];
        let (tx, rx) = (first.tx.pmu, first.rx.expect("a receiver").pmu);
        let sum = tx.cycles_user.zip(rx.cycles_user).map(|(tx, rx)| 2 * (tx + rx));
        let before = totals(trial, 0).expect("the baseline ran");
        assert_eq!(before.pmu.cycles_user, sum);
        assert!(before.cycles_per_byte().is_some_and(|cycles| cycles > 1.0));
        let at = slice(trial);
        trial.slices[at].rx.as_mut().expect("a receiver").pmu.cycles_user = None;
        let after = totals(trial, 0).expect("the baseline ran");
        assert_eq!((after.pmu.cycles_user, after.cycles_per_byte()), (None, None));
        assert!(after.pmu.cycles_kernel.is_some());
    }

    #[test]
    fn zero_copy_sends_are_summed_for_the_arm_that_makes_them() {
        let (run, _) = fixture::whole();
        let of = |arm| totals(&run.trials[0], arm).and_then(|totals| totals.zerocopy);
        let zerocopy = of(4).expect("a zero-copy arm");
        assert_eq!((zerocopy.sends, zerocopy.completions), (2000, 2000));
        assert_eq!(zerocopy.copied_share(), Some(1.0));
        assert_eq!(of(0), None);
    }
}
