//! What was counted in the slices of an arm, by the names that columns have.

use iolens_model::outcome::{Counts, SliceOutcome, TrialOutcome};
use iolens_model::trial::SliceKind;

type Row = [Option<u64>; Counts::COUNT];

/// Counts of one slice, or of several together. A sum is `None` as soon as one of its parts is.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) slices: usize,
    tx: Row,
    rx: Option<Row>,
    /// Of an arm without a receiver the count of its one end.
    both: Row,
    /// Of each CPU once, where a whole arm is summed.
    softirq_ticks: Option<u64>,
}

/// The sums of one arm over its measured slices; `None` without any.
pub(crate) fn totals(trial: &TrialOutcome, arm: usize) -> Option<Counted> {
    let own = |slice: &&SliceOutcome| slice.arm == arm && slice.kind == SliceKind::Measured;
    let slices = trial.slices.iter().filter(own).map(Counted::of);
    let softirq_ticks = iolens_stats::values::softirq_of(trial, arm);
    slices.reduce(Counted::plus).map(|sum| Counted { softirq_ticks, ..sum })
}

fn added(a: &Row, b: &Row) -> Row {
    std::array::from_fn(|i| Some(a[i]? + b[i]?))
}

/// What the sender alone counts, so that columns need not say so.
const OF_SENDER: [&str; 4] = ["time_ns", "messages", "retransmits", "segments_out"];

/// Where the value of a column that is counted stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count {
    end: End,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Tx,
    Rx,
    Both,
}

#[derive(Debug, Clone, Copy)]
enum Of {
    One(usize),
    Sum([usize; 2]),
    /// Ticks of both ends, whose CPUs may be the same.
    Softirq,
}

impl Count {
    /// That of a column; `None` where it is no count.
    pub(crate) fn named(column: &str) -> Option<Count> {
        let is_of_sender = OF_SENDER.contains(&column) || column.starts_with("zerocopy_");
        let (end, name) = match (column.strip_prefix("tx_"), column.strip_prefix("rx_")) {
            (Some(name), _) => (End::Tx, name),
            (_, Some(name)) => (End::Rx, name),
            _ if is_of_sender => (End::Tx, column),
            _ => (End::Both, column),
        };
        let at = |name: &str| Counts::NAMES.iter().position(|known| *known == name);
        let of = match name {
            "context_switches" => Of::Sum([at("voluntary_switches")?, at("involuntary_switches")?]),
            "cycles" => {
                let of = |mode| at(&format!("{name}_{mode}"));
                Of::Sum([of("user")?, of("kernel")?])
            }
            "softirq_ticks" if end == End::Both => Of::Softirq,
            "cpu_ns" => Of::One(at("task_clock_ns")?),
            "zerocopy_enobufs" => Of::One(at("enobufs")?),
            name => Of::One(at(name)?),
        };
        Some(Count { end, of })
    }
}

impl Counted {
    /// Of one slice.
    pub(crate) fn of(slice: &SliceOutcome) -> Counted {
        let (tx, rx) = (slice.tx.values(), slice.rx.map(|rx| rx.values()));
        let both = rx.map_or(tx, |rx| added(&tx, &rx));
        let softirq_ticks = if rx.is_none() { slice.tx.softirq_ticks } else { None };
        Counted { slices: 1, tx, rx, both, softirq_ticks }
    }

    fn plus(self, other: Counted) -> Counted {
        Counted {
            slices: self.slices + other.slices,
            tx: added(&self.tx, &other.tx),
            rx: self.rx.zip(other.rx).map(|(a, b)| added(&a, &b)),
            both: added(&self.both, &other.both),
            softirq_ticks: None,
        }
    }

    /// By the name of a column: with `tx_` or `rx_` of that end, else of both.
    pub(crate) fn get(&self, column: &str) -> Option<u64> {
        let count = Count::named(column);
        debug_assert!(count.is_some(), "{column} is counted nowhere");
        self.value(count?)
    }

    /// The value of a column.
    pub(crate) fn value(&self, Count { end, of }: Count) -> Option<u64> {
        let row = match end {
            End::Tx => &self.tx,
            End::Rx => self.rx.as_ref()?,
            End::Both => &self.both,
        };
        match of {
            Of::One(at) => row[at],
            Of::Sum([a, b]) => Some(row[a]? + row[b]?),
            Of::Softirq => self.softirq_ticks,
        }
    }

    /// One count over another; `None` where that is none.
    pub(crate) fn share(&self, part: &str, whole: &str) -> Option<f64> {
        let whole = self.get(whole).filter(|whole| *whole > 0)?;
        Some(self.get(part)? as f64 / whole as f64)
    }

    /// Received payload bits per second.
    pub(crate) fn goodput_bits_per_s(&self) -> Option<f64> {
        let time_ns = self.get("time_ns").filter(|time_ns| *time_ns > 0)?;
        Some(self.get("rx_bytes")? as f64 * 8e9 / time_ns as f64)
    }

    /// Cycles of both ends, user and kernel, over payload bytes received; sent
    /// where there is no receiver.
    pub(crate) fn cycles_per_byte(&self) -> Option<f64> {
        let cycles = self.get("cycles")?;
        let bytes = self.get("rx_bytes").or(self.get("tx_bytes")).filter(|bytes| *bytes > 0)?;
        Some(cycles as f64 / bytes as f64)
    }

    /// Time over the messages that arrived, ns: a datagram may be lost.
    pub(crate) fn ns_per_message(&self) -> Option<f64> {
        let sent = self.get("tx_bytes")?;
        let lost = self.get("rx_bytes").filter(|received| *received < sent);
        let share = lost.map_or(1.0, |received| received as f64 / sent as f64);
        let arrived = self.get("messages")? as f64 * share;
        (arrived > 0.0).then_some(self.get("time_ns")? as f64 / arrived)
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
        assert_eq!((before.slices, before.get("messages")), (2, Some(2000)));
        assert_eq!(before.get("context_switches"), Some(16));
        assert_eq!(before.get("softirq_ticks"), None);
        let measured = trial.slices.iter_mut().find(|s| s.kind == SliceKind::Measured);
        measured.expect("there is one").tx.voluntary_switches = None;
        assert_eq!(totals(trial, 0).and_then(|t| t.get("context_switches")), None);
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
            totals(trial, 0).and_then(|totals| totals.get("softirq_ticks"))
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
        assert_eq!((control.get("rx_bytes"), control.goodput_bits_per_s()), (None, None));
        assert!(control.get("context_switches").is_some());
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
        assert_eq!(before.get("cycles_user"), sum);
        assert!(before.cycles_per_byte().is_some_and(|cycles| cycles > 1.0));
        let at = slice(trial);
        trial.slices[at].rx.as_mut().expect("a receiver").pmu.cycles_user = None;
        let after = totals(trial, 0).expect("the baseline ran");
        assert_eq!((after.get("cycles_user"), after.cycles_per_byte()), (None, None));
        assert!(after.get("cycles_kernel").is_some());
    }

    #[test]
    fn zero_copy_sends_are_summed_for_the_arm_that_makes_them() {
        let (run, _) = fixture::whole();
        let of = |arm| totals(&run.trials[0], arm).expect("it ran");
        let zerocopy = of(4);
        let counts = ["zerocopy_sends", "zerocopy_completions"].map(|name| zerocopy.get(name));
        assert_eq!(counts, [Some(2000); 2]);
        assert_eq!(zerocopy.share("zerocopy_copied", "zerocopy_completions"), Some(1.0));
        assert_eq!(of(0).get("zerocopy_sends"), None);
    }
}
