//! What a trial says, extracted once: sums over its measured slices, the
//! median ratio over its rounds of each quantity, and what the gates think of each arm.
//!
//! An analysis needs nothing else of a trial, so a run that is analysed after
//! every pass keeps these and reads each slice once.

mod packed;

use std::collections::BTreeMap;
use std::sync::Arc;

use iolens_model::arm::{ArmOutcome, Role};
use iolens_model::cell::{Cell, SyscallSetting};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::RunHeader;

use crate::gates::{self, Case, Flag};
use crate::interval::{Parts, median};
use crate::offered::Offered;
use crate::quantity::Quantity;
use crate::remark::Check;
pub use crate::sums::softirq_of;
use crate::sums::{SharedCpus, Sums, add_up, measured, slice_ns, softirq_of_ends};

pub(crate) use self::packed::Known;
pub(crate) use self::packed::Packed;

/// The values of one trial. A run may have very many, so what is long and the same in most
/// of them is shared.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialValues {
    pub(crate) pass: u32,
    pub(crate) position: u32,
    pub(crate) isolated: bool,
    pub(crate) cell: Arc<Cell>,
    /// Start, nanoseconds since 1970 (UTC).
    pub(crate) started_unix_ns: u64,
    pub(crate) status: Status,
    /// Why nothing of the trial can be used.
    pub(crate) refusal: Option<Box<Refusal>>,
    /// Time in each slice that is not its messages', at most, ns; `None` where that is not known.
    pub(crate) slice_overhead_ns: Option<f64>,
    pub(crate) arms: Box<[ArmValues]>,
}

/// The values of one arm in a trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArmValues {
    pub(crate) outcome: Arc<ArmOutcome>,
    pub(crate) packed: Packed,
    pub(crate) brief: Brief,
    /// What was offered to it, where it is a server.
    pub(crate) offered: Option<Box<Offered>>,
    /// Ticks in softirq on the CPUs of both ends, each CPU once; `None` where
    /// they are not known.
    pub(crate) softirq: Option<u32>,
    /// What is compared, as far as it was counted, in the order of [`Quantity::all`].
    quantities: [Option<Quantity>; Quantity::MOST],
    compared: [Compared; Quantity::MOST],
    /// Why this arm's numbers cannot be used.
    pub(crate) refusal: Option<Box<Refusal>>,
    /// What gates remark without refusing.
    pub(crate) flags: Arc<[Flag]>,
}

impl ArmValues {
    /// Sums over the measured slices. They are unpacked each time.
    pub(crate) fn sums(&self) -> Sums {
        self.packed.sums()
    }

    /// The trial's value for a contrast of this quantity.
    pub(crate) fn typical(&self, quantity: Quantity) -> Option<f64> {
        self.of(quantity)?.typical()
    }

    /// So much over so many messages; `None` where either is zero or was not counted.
    pub(crate) fn parts(&self, quantity: Quantity) -> Option<Parts> {
        Some(self.of(quantity)?.parts)
    }

    fn of(&self, quantity: Quantity) -> Option<&Compared> {
        let own = self.quantities.iter().position(|own| *own == Some(quantity))?;
        self.compared.get(own)
    }
}

/// Of the sums of an arm what fits and regressions need: to unpack all of them takes longer than
/// everything else that is done with one trial there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Brief {
    /// Payload bytes sent.
    pub(crate) bytes: u64,
    /// Context switches of both ends.
    pub(crate) switches: Option<u32>,
    /// Measured slices.
    pub(crate) slices: u32,
    /// Median time of one, ns; 0 without any.
    pub(crate) slice_ns: u64,
}

impl Brief {
    fn of(sums: &Sums, slice_ns: u64) -> Brief {
        let switches = sums.switches().map(narrow);
        Brief { bytes: sums.tx.bytes, switches, slices: sums.slices, slice_ns }
    }
}

/// A count that fits: a trial has no four thousand million switches, nor ticks.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A quantity of an arm in a trial. A run may have a million of these.
#[derive(Debug, Clone, Copy)]
struct Compared {
    /// Of the trial, over its messages.
    parts: Parts,
    /// The median over measured rounds of ln(the baseline's per message / the arm's); not a
    /// number for the baseline, and without one in the trial.
    typical_ln: f64,
}

impl Compared {
    /// In the place of what was not counted.
    const NOTHING: Compared =
        Compared { parts: Parts { over: 0.0, under: 0.0 }, typical_ln: f64::NAN };

    fn typical(&self) -> Option<f64> {
        Some(self.typical_ln).filter(|ln| !ln.is_nan())
    }
}

impl PartialEq for Compared {
    fn eq(&self, other: &Compared) -> bool {
        let parts = |compared: &Compared| (compared.parts, compared.typical());
        parts(self) == parts(other)
    }
}

/// Why numbers are kept and not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) reason: String,
    /// What refuses it; `None` where the engine did, or the kernel.
    pub(crate) check: Option<Check>,
}

impl TrialValues {
    /// The values of a trial of the run with this header.
    pub fn of(header: &RunHeader, trial: &TrialOutcome) -> TrialValues {
        TrialValues::sharing(header, trial, &mut Known::default())
    }

    /// The same, which shares what trials before it had too.
    pub(crate) fn sharing(
        header: &RunHeader,
        trial: &TrialOutcome,
        known: &mut Known,
    ) -> TrialValues {
        let mut sums = std::mem::take(&mut known.sums);
        add_up(trial, &mut sums);
        let is_sliced = header.plan.schedule.is_sliced();
        let typical = Quantity::all(&trial.cell)
            .iter()
            .map(|&quantity| (quantity, typical_ratios(trial, &sums, quantity, is_sliced)));
        let typical: Vec<(Quantity, Vec<Option<f64>>)> = typical.collect();
        let baseline = baseline_index(trial);
        let of_arm = |arm: usize, sums: &Sums| {
            let of = |&(quantity, ref lns): &(Quantity, Vec<Option<f64>>)| {
                let typical_ln = lns[arm].filter(|_| Some(arm) != baseline).unwrap_or(f64::NAN);
                let parts = quantity.of_trial(sums)?;
                Some((quantity, Compared { parts, typical_ln }))
            };
            let mut of_each = typical.iter().map(of);
            let found: [_; Quantity::MOST] = std::array::from_fn(|_| of_each.next().flatten());
            let quantities = found.map(|found| found.map(|(quantity, _)| quantity));
            (quantities, found.map(|found| found.map_or(Compared::NOTHING, |(_, own)| own)))
        };
        let shared = SharedCpus::of(trial);
        let arms = trial.arms.iter().zip(&sums).enumerate();
        let arms: Box<[ArmValues]> = arms
            .map(|(index, (outcome, sums))| {
                let case = Case { header, trial, outcome, sums };
                let findings = gates::examine(&case);
                let (quantities, compared) = of_arm(index, sums);
                ArmValues {
                    outcome: known.outcome(outcome),
                    offered: Offered::of(trial, outcome).map(Box::new),
                    softirq: softirq_of_ends(shared, sums).map(narrow),
                    packed: known.packed(sums),
                    brief: Brief::of(sums, slice_ns(trial, index)),
                    quantities,
                    compared,
                    refusal: arm_refusal(outcome, sums, findings.invalid).map(Box::new),
                    flags: known.flags(&outcome.arm.label, findings.flags),
                }
            })
            .collect();
        known.sums = sums;
        let refusal = trial_refusal(trial).or_else(|| baseline_refusal(&arms));
        TrialValues {
            pass: trial.pass,
            position: trial.position,
            isolated: trial.isolated,
            cell: known.cell(&trial.cell),
            started_unix_ns: trial.started_unix_ns,
            status: trial.status,
            refusal: refusal.map(Box::new),
            slice_overhead_ns: slice_overhead_ns(header, trial),
            arms,
        }
    }

    /// The arm with this label, where its numbers can be used.
    pub(crate) fn usable(&self, label: &str) -> Option<&ArmValues> {
        if self.refusal.is_some() {
            return None;
        }
        self.arms.iter().find(|arm| arm.outcome.arm.label == label && arm.refusal.is_none())
    }

    /// The baseline of this trial.
    pub(crate) fn baseline(&self) -> Option<&ArmValues> {
        self.arms.iter().find(|arm| arm.outcome.arm.role == Role::Baseline)
    }
}

/// Time in each slice of a trial that is not its messages', at most, ns: the receipt there and
/// back where there is one, the harness's own else. A few calls in a row are measured with it.
fn slice_overhead_ns(header: &RunHeader, trial: &TrialOutcome) -> Option<f64> {
    let is_row = |syscall: SyscallSetting| syscall.in_a_row.is_some();
    match trial.cell.topology() {
        _ if trial.cell.syscall().is_some_and(is_row) => None,
        Some(topology) if topology.is_apart() => {
            let ends = [&trial.tx, &trial.rx].into_iter().flatten();
            Some(ends.filter_map(|end| end.min_round_trip_ns).min()? as f64)
        }
        Some(topology) if trial.cell.net().is_some() && topology.has_receiver() => {
            header.calibration.as_ref()?.receipt_round_trip_ns
        }
        _ => Some(header.calibration.as_ref()?.harness_slice_ns),
    }
}

fn baseline_index(trial: &TrialOutcome) -> Option<usize> {
    trial.arms.iter().position(|arm| arm.arm.role == Role::Baseline)
}

/// Per arm, the median over rounds of ln(baseline / arm). Arms that run one
/// after another share no round; there the totals are compared.
fn typical_ratios(
    trial: &TrialOutcome,
    sums: &[Sums],
    quantity: Quantity,
    is_sliced: bool,
) -> Vec<Option<f64>> {
    let Some(baseline) = baseline_index(trial) else {
        return vec![None; sums.len()];
    };
    if !is_sliced {
        let of = |index: usize| quantity.of_trial(&sums[index]).map(Parts::ratio);
        return (0..sums.len()).map(|arm| Some((of(baseline)? / of(arm)?).ln())).collect();
    }
    let mut rounds: BTreeMap<u32, Vec<Option<Parts>>> = BTreeMap::new();
    for slice in measured(trial) {
        let round = rounds.entry(slice.round).or_insert_with(|| vec![None; sums.len()]);
        if let (Some(sum), Some(parts)) = (round.get_mut(slice.arm), quantity.of_slice(slice)) {
            *sum.get_or_insert_default() += parts;
        }
    }
    let ratio = |round: &Vec<Option<Parts>>, arm: usize| {
        let ln = (round[baseline]?.ratio() / round[arm]?.ratio()).ln();
        ln.is_finite().then_some(ln)
    };
    let typical = |arm| {
        let mut ratios: Vec<f64> = rounds.values().filter_map(|round| ratio(round, arm)).collect();
        median(&mut ratios)
    };
    (0..sums.len()).map(typical).collect()
}

/// Whether nothing of a trial can be used, whatever its arms counted.
pub(crate) fn is_refused(trial: &TrialOutcome) -> bool {
    trial_refusal(trial).is_some()
}

/// Why the trial as a whole cannot be used. A trial marked invalid that names
/// arms loses only these.
fn trial_refusal(trial: &TrialOutcome) -> Option<Refusal> {
    let arms_named = trial.arms.iter().any(|arm| arm.status != Status::Ok);
    match trial.status {
        Status::Ok => None,
        Status::Invalid if arms_named => None,
        status => {
            let reason = reason_of(trial.reason.as_deref());
            Some(Refusal { status, reason, check: None })
        }
    }
}

fn baseline_refusal(arms: &[ArmValues]) -> Option<Refusal> {
    let baseline = arms.iter().find(|arm| arm.outcome.arm.role == Role::Baseline)?;
    let refusal = baseline.refusal.as_ref()?;
    let reason = format!("baseline {}: {}", baseline.outcome.arm.label, refusal.reason);
    Some(Refusal { reason, ..Refusal::clone(refusal) })
}

fn arm_refusal(
    outcome: &ArmOutcome,
    sums: &Sums,
    gate: Option<(Check, String)>,
) -> Option<Refusal> {
    let check = gate.as_ref().map(|(check, _)| *check);
    if outcome.status != Status::Ok {
        let reason = reason_of(outcome.reason.as_deref());
        // The runner stores what a gate said when the trial ended.
        let check = check.filter(|_| outcome.status == Status::Invalid);
        return Some(Refusal { status: outcome.status, reason, check });
    }
    if Quantity::Time.of_trial(sums).is_none() {
        return Some(Refusal {
            status: Status::Invalid,
            reason: sums.words(),
            check: Some(Check::NoData),
        });
    }
    gate.map(|(_, reason)| Refusal { status: Status::Invalid, reason, check })
}

fn reason_of(reason: Option<&str>) -> String {
    reason.unwrap_or("no reason was stored").to_owned()
}
