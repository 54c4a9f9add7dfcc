//! What the measured slices of a trial counted, added up by arm.

use iolens_model::outcome::{Counts, EndFacts, SliceOutcome, TrialOutcome};
use iolens_model::trial::SliceKind;

/// Sums over the measured slices of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    /// Measured slices.
    pub(crate) slices: u32,
    /// Of these, slices that the receiving end counted too.
    pub(crate) rx_slices: u32,
    /// Sum of [`SliceOutcome::all_active_ns`].
    pub(crate) all_active_ns: u64,
    /// Sending end. A counter is `None` where one slice lacks it.
    pub(crate) tx: Counts,
    /// Receiving end.
    pub(crate) rx: Counts,
}

impl Sums {
    /// What there is, where it is too little to be used.
    pub(crate) fn words(&self) -> String {
        let Sums { slices, tx: Counts { messages, time_ns, .. }, .. } = self;
        format!("{messages} messages in {time_ns} ns of {slices} measured slices")
    }

    /// Voluntary and involuntary context switches of both ends; of the one
    /// end where the arm has no receiver.
    pub(crate) fn switches(&self) -> Option<u64> {
        let of = |counts: &Counts| {
            Some(counts.voluntary_switches?.saturating_add(counts.involuntary_switches?))
        };
        self.both_ends(of)
    }

    /// A count of both ends together; of the one end where the arm has no
    /// receiver; `None` where a part is.
    pub(crate) fn both_ends(&self, of: impl Fn(&Counts) -> Option<u64>) -> Option<u64> {
        let received = if self.rx_slices == 0 { 0 } else { of(self.received()?)? };
        Some(of(&self.tx)?.saturating_add(received))
    }

    /// The receiving end, where it counted every measured slice.
    pub(crate) fn received(&self) -> Option<&Counts> {
        (self.slices > 0 && self.rx_slices == self.slices).then_some(&self.rx)
    }

    fn add(&mut self, slice: &SliceOutcome) {
        let first = self.slices == 0;
        self.slices += 1;
        self.all_active_ns = self.all_active_ns.saturating_add(slice.all_active_ns);
        self.tx = if first { slice.tx } else { self.tx.plus(&slice.tx) };
        if let Some(rx) = &slice.rx {
            self.rx = if self.rx_slices == 0 { *rx } else { self.rx.plus(rx) };
            self.rx_slices += 1;
        }
    }
}

/// Messages that arrived: those that were sent, less the share of the bytes that
/// was lost on the way, which only some transports may do. Without a receiver, all.
pub(crate) fn arrived(tx: &Counts, rx: Option<&Counts>) -> f64 {
    let share = rx.filter(|rx| rx.bytes < tx.bytes).map_or(1.0, |rx| {
        // Smaller than what was sent, so that is not zero.
        rx.bytes as f64 / tx.bytes as f64
    });
    tx.messages as f64 * share
}

/// Measured sums per arm of a trial, in the order of its arms.
pub(crate) fn sums(trial: &TrialOutcome) -> Vec<Sums> {
    let mut sums = Vec::new();
    add_up(trial, &mut sums);
    sums
}

/// The same in place of those of another trial: they are large, and a run may have very many.
pub(crate) fn add_up(trial: &TrialOutcome, sums: &mut Vec<Sums>) {
    sums.clear();
    sums.resize(trial.arms.len(), Sums::default());
    for slice in measured(trial) {
        if let Some(sums) = sums.get_mut(slice.arm) {
            sums.add(slice);
        }
    }
}

/// The slices that count.
pub(crate) fn measured(trial: &TrialOutcome) -> impl Iterator<Item = &SliceOutcome> {
    trial.slices.iter().filter(|slice| slice.kind == SliceKind::Measured)
}

/// Median time of an arm's measured slices, ns; 0 without any.
pub(crate) fn slice_ns(trial: &TrialOutcome, arm: usize) -> u64 {
    let of_arm = measured(trial).filter(|slice| slice.arm == arm);
    let mut times: Vec<u64> = of_arm.map(|slice| slice.tx.time_ns).collect();
    let middle = times.len() / 2;
    if times.is_empty() { 0 } else { *times.select_nth_unstable(middle).1 }
}

/// Which CPUs the two ends of a trial may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedCpus {
    /// None that both may, or there is one end.
    None,
    /// Those of the receiver are some of the sender's.
    OfTx,
    /// Those of the sender are some of the receiver's.
    OfRx,
    /// Some of each, or they are not known.
    Unknown,
}

impl SharedCpus {
    pub(crate) fn of(trial: &TrialOutcome) -> SharedCpus {
        let cpus = |end: &Option<EndFacts>| -> Vec<u32> {
            end.iter().flat_map(|end| end.thread_cpus.iter().flatten().copied()).collect()
        };
        let (tx, rx) = (cpus(&trial.tx), cpus(&trial.rx));
        if trial.cell.net().is_some_and(|net| net.topology.is_apart()) {
            // Two machines have none in common, whatever the numbers of theirs.
            SharedCpus::None
        } else if tx.is_empty() || rx.is_empty() {
            SharedCpus::Unknown
        } else if tx.iter().all(|cpu| !rx.contains(cpu)) {
            SharedCpus::None
        } else if rx.iter().all(|cpu| tx.contains(cpu)) {
            SharedCpus::OfTx
        } else if tx.iter().all(|cpu| rx.contains(cpu)) {
            SharedCpus::OfRx
        } else {
            SharedCpus::Unknown
        }
    }
}

/// Softirq ticks of both ends. An end counts those of its CPUs, so where both
/// may use the same ones, the larger set has them all; sets that overlap in
/// part have no sum.
pub(crate) fn softirq_of_ends(shared: SharedCpus, sums: &Sums) -> Option<u64> {
    let (sent, received) = (sums.tx.softirq_ticks?, sums.received().map(|rx| rx.softirq_ticks));
    let Some(received) = received else {
        return (sums.rx_slices == 0).then_some(sent);
    };
    let received = received?;
    match shared {
        SharedCpus::None => Some(sent.saturating_add(received)),
        SharedCpus::OfTx => Some(sent),
        SharedCpus::OfRx => Some(received),
        SharedCpus::Unknown => None,
    }
}

/// Ticks in softirq on the CPUs of both ends while an arm ran, each CPU once; `None` where they
/// are not known.
pub fn softirq_of(trial: &TrialOutcome, arm: usize) -> Option<u64> {
    softirq_of_ends(SharedCpus::of(trial), sums(trial).get(arm)?)
}
