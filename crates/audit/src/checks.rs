//! The gates as they apply to one row of somebody else's table. The physics is
//! that of [`iolens_stats::physics`]; here stands which columns it takes, and
//! what is made of a breach where nobody knows how the numbers came about.

mod cpu;
mod sums;
mod transfer;

use iolens_stats::physics::{self, Breach, Rounded};

use crate::bounds::Bounds;
use crate::finding::{Checked, Found, Severity};
use crate::quantity::Quantity as Q;
use crate::table::{Row, Value};

/// A row and the machine it may come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) row: &'a Row,
    pub(crate) bounds: &'a Bounds,
}

/// One line of the table.
pub(crate) struct Check {
    /// Number in METHOD.md.
    pub(crate) gate: u8,
    pub(crate) name: &'static str,
    pub(crate) check: fn(&Case<'_>) -> Checked,
}

const fn check(gate: u8, name: &'static str, check: fn(&Case<'_>) -> Checked) -> Check {
    Check { gate, name, check }
}

/// The one check that needs no second number.
pub(crate) const NEGATIVE: &str = "nothing is negative";

/// Every check of a row.
pub(crate) const CHECKS: &[Check] = &[
    check(1, "clock", cpu::clock),
    check(1, "instructions per cycle", cpu::instructions),
    check(2, "copy bandwidth", transfer::copy_bandwidth),
    check(2, "cycles per byte", cpu::cycles_per_byte),
    check(3, "cost of a call", transfer::call_cost),
    check(3, "link", transfer::link),
    check(4, "latency", transfer::latency),
    check(5, "received bytes", transfer::received),
    check(6, "rate × time = bytes", sums::rate_and_time),
    check(6, "messages × size = bytes", sums::messages_and_size),
    check(6, "message rate", sums::message_rate),
    check(6, "IPC = instructions / cycles", sums::ipc),
    check(6, "cycles per byte = cycles / bytes", sums::cycles_per_byte),
    check(6, "user + kernel = total", sums::user_and_kernel),
    check(6, "CPU time ≤ wall × threads", cpu::cpu_time),
    check(6, "latency × rate = connections", transfer::little),
    check(6, "min ≤ p50 ≤ p99 ≤ max", sums::order),
    check(6, "parts ≤ whole", sums::parts),
    check(6, "switches", sums::switches),
    check(6, "one quantity twice", sums::twice),
    check(6, NEGATIVE, sums::negative),
    check(8, "bytes done = bytes asked", transfer::whole_file),
    check(8, "cold bytes come from the device", transfer::cold),
    check(9, "counters cover the work", cpu::window),
    check(10, "counters that ran", cpu::ran),
    check(12, "zero-copy completions", sums::zerocopy),
    check(15, "load generator", transfer::offered),
    check(16, "retransmits and major faults", sums::events),
];

/// Disagreement by more than this factor is no rounding and no overlap of
/// windows: the numbers contradict each other.
const CONTRADICTION: f64 = 1.5;
/// What two measurements of one thing may differ by: one window is a little
/// longer than the other, averages were taken in another order.
const APART: f64 = 0.05;

/// What is found where two ways to one number should agree.
fn agree(found: (Rounded, &str), expected: (Rounded, &str), hints: &[Hint]) -> Vec<Found> {
    let Some(breach) = physics::agreement(found.0, expected.0, APART) else { return Vec::new() };
    let contradicts = physics::agreement(found.0, expected.0, CONTRADICTION - 1.0).is_some();
    let severity = if contradicts { Severity::Impossible } else { Severity::Suspicious };
    let hint = hint(breach.value, hints).map(|hint| format!(": {hint}?")).unwrap_or_default();
    let text =
        format!("{} against {}: {} times as much{hint}", found.1, expected.1, short(breach.value));
    vec![Found::new(severity, text).with(breach)]
}

/// A factor that has a known cause.
#[derive(Debug, Clone, Copy)]
struct Hint {
    factor: f64,
    cause: &'static str,
}

const fn because(factor: f64, cause: &'static str) -> Hint {
    Hint { factor, cause }
}

/// Units mixed up, by the factor that comes of it.
const UNIT_HINTS: &[Hint] = &[
    because(8.0, "bits taken for bytes"),
    because(0.125, "bytes taken for bits"),
    because(1.073_741_824, "GiB called GB"),
    because(1.0 / 1.073_741_824, "GB called GiB"),
    because(1e3, "off by a thousand"),
    because(1e-3, "off by a thousand"),
    because(1e6, "off by a million"),
    because(1e-6, "off by a million"),
];

/// The cause of a factor, if it is within 3 % of a known one.
fn hint(factor: f64, more: &[Hint]) -> Option<&'static str> {
    let fits = |hint: &&Hint| hint.factor != 1.0 && (factor / hint.factor - 1.0).abs() < 0.03;
    more.iter().chain(UNIT_HINTS).find(fits).map(|hint| hint.cause)
}

/// A breach that no rounding makes up for: it is one at the end of the range, too, that is nearest
/// to what is possible. What is breached rises with the number.
fn however_rounded(number: Rounded, breach: impl Fn(f64) -> Option<Breach>) -> Option<Breach> {
    let found = breach(number.value)?;
    let kindest = if found.value > found.high { number.low } else { number.high };
    breach(kindest).map(|_| found)
}

/// A breach, as impossible.
fn impossible(breach: Option<Breach>, text: impl Fn(Breach) -> String) -> Vec<Found> {
    breach.map(|breach| Found::impossible(text(breach)).with(breach)).into_iter().collect()
}

/// Four significant digits, or in powers of ten where it is far from 1.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (1e15..).contains(&size) || size < 1e-4 => format!("{value:.3e}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        size if size >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

impl Case<'_> {
    fn value(&self, quantity: Q) -> Option<&Value> {
        self.row.get(quantity)
    }

    fn number(&self, quantity: Q) -> Option<Rounded> {
        self.row.number(quantity)
    }

    fn above_zero(&self, quantity: Q) -> Option<Rounded> {
        self.number(quantity).filter(|number| number.value > 0.0)
    }

    /// The same as printed.
    fn positive(&self, quantity: Q) -> Option<f64> {
        self.above_zero(quantity).map(|number| number.value)
    }

    /// A quantity as it stands in the file.
    fn shown(&self, quantity: Q) -> String {
        let shown: Vec<&str> = self.row.every(quantity).map(|v| v.shown.as_str()).collect();
        match self.value(quantity).and_then(|value| value.pmu.as_ref()) {
            Some(_) => shown.join(" + "),
            None => shown.first().copied().unwrap_or_default().to_owned(),
        }
    }

    fn shown_all(&self, quantities: &[Q]) -> String {
        let shown: Vec<String> = quantities.iter().map(|q| self.shown(*q)).collect();
        shown.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Threads at one end, 1 at least; `None` where the table does not say.
    fn threads(&self) -> Option<f64> {
        self.positive(Q::Threads)
    }

    /// CPUs that can have worked for the row: as many as it is said that there
    /// are, else one for the thread at either end.
    fn cpus_most(&self) -> Option<f64> {
        let said = self.bounds.cpus.map(f64::from).or_else(|| self.positive(Q::Cpus));
        said.or_else(|| self.threads().map(|threads| threads * 2.0))
    }

    /// Whether the number of CPUs is known and not taken from the threads.
    fn knows_cpus(&self) -> bool {
        self.bounds.cpus.is_some() || self.positive(Q::Cpus).is_some()
    }

    /// The bytes that were moved, and what they are called: those received
    /// where they are known.
    fn bytes(&self) -> Option<(Q, Rounded)> {
        [Q::ReceivedBytes, Q::Bytes, Q::SentBytes]
            .into_iter()
            .find_map(|quantity| Some((quantity, self.number(quantity)?)))
            .filter(|(_, bytes)| bytes.value > 0.0)
    }

    /// Bytes a second, and the columns it comes from.
    fn byte_rate(&self) -> Option<(Rounded, Vec<Q>)> {
        if let Some(rate) = self.above_zero(Q::Throughput) {
            return Some((rate, vec![Q::Throughput]));
        }
        let (name, bytes) = self.bytes()?;
        let ns = self.above_zero(Q::Elapsed)?;
        Some((bytes.over(ns).scaled(1e9), vec![name, Q::Elapsed]))
    }

    /// Bytes of a message or of a block.
    fn unit_bytes(&self) -> Option<(Q, Rounded)> {
        [Q::MessageBytes, Q::BlockBytes]
            .into_iter()
            .find_map(|quantity| Some((quantity, self.number(quantity)?)))
            .filter(|(_, bytes)| bytes.value > 0.0)
    }

    /// Messages a second, and the columns it comes from.
    pub(crate) fn messages_per_s(&self) -> Option<(Rounded, Vec<Q>)> {
        if let Some(rate) = self.above_zero(Q::MessageRate) {
            return Some((rate, vec![Q::MessageRate]));
        }
        let counted = self.above_zero(Q::Messages).zip(self.above_zero(Q::Elapsed));
        if let Some((messages, ns)) = counted {
            return Some((messages.over(ns).scaled(1e9), vec![Q::Messages, Q::Elapsed]));
        }
        let (rate, mut columns) = self.byte_rate()?;
        let (name, size) = self.unit_bytes()?;
        columns.push(name);
        Some((rate.over(size), columns))
    }

    /// CPU time in ns, from whatever says it.
    fn cpu_ns(&self) -> Option<(Rounded, Vec<Q>)> {
        if let Some(ns) = self.above_zero(Q::CpuTime) {
            return Some((ns, vec![Q::CpuTime]));
        }
        let parts = (self.number(Q::UserTime), self.number(Q::SystemTime));
        if let (Some(user), Some(system)) = parts {
            let ns = user.plus(system);
            return (ns.value > 0.0).then(|| (ns, vec![Q::UserTime, Q::SystemTime]));
        }
        let ns = self.above_zero(Q::CpuUse)?.times(self.above_zero(Q::Elapsed)?);
        Some((ns, vec![Q::CpuUse, Q::Elapsed]))
    }

    /// Whether it says of itself that no CPU copies its bytes, or that its
    /// receiver throws them away.
    fn moves_without_copy(&self) -> bool {
        self.row.says(&["splice", "tee", "null", "sendfile", "copy_file_range", "reflink", "trunc"])
    }

    /// Whether it is about calls that are not the kernel's: an empty function, or the vDSO.
    fn enters_no_kernel(&self) -> bool {
        self.row.labels.iter().any(|(_, label)| label == "function" || label.ends_with("_vdso"))
    }

    /// Whether it says of itself that a call moves more than one message.
    fn batches(&self) -> bool {
        let batches = ["sendmmsg", "recvmmsg", "uring", "batch", "mmap", "memcpy", "stdio"];
        self.row.says(&batches)
    }
}
