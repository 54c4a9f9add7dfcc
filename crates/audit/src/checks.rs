//! The gates as they apply to one row of somebody else's table. The physics is
//! that of [`iolens_stats::physics`]; here stands which columns it takes, and
//! what is made of a breach where nobody knows how the numbers came about.

mod cpu;
mod sums;
mod transfer;

use iolens_stats::physics::{self, Breach, Rounded};

use crate::bounds::Bounds;
use crate::finding::{Checked, Found, Gate, Severity};
use crate::quantity::Quantity as Q;
use crate::table::Row;

/// A row and the machine it may come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) row: &'a Row,
    pub(crate) bounds: &'a Bounds,
}

/// The one check that needs no second number.
pub(crate) const NEGATIVE: &str = "nothing is negative";

type Check = fn(&Case<'_>) -> Checked;

/// Every check of a row, with the gate in METHOD.md that it is part of.
pub(crate) const CHECKS: &[(Gate, Check)] = &[
    ((1, "clock"), cpu::clock),
    ((1, "instructions per cycle"), cpu::instructions),
    ((2, "copy bandwidth"), transfer::copy_bandwidth),
    ((2, "cycles per byte"), cpu::cycles_per_byte),
    ((3, "cost of a call"), transfer::call_cost),
    ((3, "link"), transfer::link),
    ((4, "latency"), transfer::latency),
    ((5, "received bytes"), transfer::received),
    ((6, "rate × time = bytes"), sums::rate_and_time),
    ((6, "messages × size = bytes"), sums::messages_and_size),
    ((6, "message rate"), sums::message_rate),
    ((6, "IPC = instructions / cycles"), sums::ipc),
    ((6, "cycles per byte = cycles / bytes"), sums::cycles_per_byte),
    ((6, "user + kernel = total"), sums::user_and_kernel),
    ((6, "CPU time ≤ wall × threads"), cpu::cpu_time),
    ((6, "latency × rate = connections"), transfer::little),
    ((6, "min ≤ p50 ≤ p99 ≤ max"), sums::order),
    ((6, "parts ≤ whole"), sums::parts),
    ((6, "switches"), sums::switches),
    ((6, "one quantity twice"), sums::twice),
    ((6, NEGATIVE), sums::negative),
    ((8, "bytes done = bytes asked"), transfer::whole_file),
    ((8, "cold bytes come from the device"), transfer::cold),
    ((9, "counters cover the work"), cpu::window),
    ((10, "counters that ran"), cpu::ran),
    ((12, "zero-copy completions"), sums::zerocopy),
    ((15, "load generator"), transfer::offered),
    ((16, "retransmits and major faults"), sums::events),
];

/// Disagreement by more than this factor is no rounding and no overlap of
/// windows: the numbers contradict each other.
const CONTRADICTION: f64 = 1.5;
/// What two measurements of one thing may differ by: one window is a little
/// longer than the other, averages were taken in another order.
const APART: f64 = 0.05;

/// A number, and what the file says that it comes from.
type Said = (Rounded, String);

/// What is found where two ways to one number should agree.
fn agree(found: Said, expected: Said, hints: &[Hint]) -> Option<Found> {
    let breach = physics::agreement(found.0, expected.0, APART)?;
    let contradicts = physics::agreement(found.0, expected.0, CONTRADICTION - 1.0).is_some();
    let hint = hint(breach.value, hints).map(|hint| format!(": {hint}?")).unwrap_or_default();
    Severity::impossible_if(contradicts).of(Some(breach), |breach| {
        format!("{} against {}: {} times as much{hint}", found.1, expected.1, short(breach.value))
    })
}

/// A factor and its known cause.
type Hint = (f64, &'static str);

/// Units mixed up, by the factor that comes of it.
const UNIT_HINTS: &[Hint] = &[
    (8.0, "bits taken for bytes"),
    (0.125, "bytes taken for bits"),
    (1.073_741_824, "GiB called GB"),
    (1.0 / 1.073_741_824, "GB called GiB"),
    (1e3, "off by a thousand"),
    (1e-3, "off by a thousand"),
    (1e6, "off by a million"),
    (1e-6, "off by a million"),
];

/// The cause of a factor, if it is within 3 % of a known one.
fn hint(factor: f64, more: &[Hint]) -> Option<&'static str> {
    let fits = |(known, _): &&Hint| *known != 1.0 && (factor / known - 1.0).abs() < 0.03;
    more.iter().chain(UNIT_HINTS).find(fits).map(|(_, cause)| *cause)
}

/// A breach that no rounding makes up for: it is one at the end of the range, too, that is nearest
/// to what is possible. What is breached rises with the number.
fn however_rounded(number: Rounded, breach: impl Fn(f64) -> Option<Breach>) -> Option<Breach> {
    let found = breach(number.value)?;
    let kindest = if found.value > found.high { number.low } else { number.high };
    breach(kindest).map(|_| found)
}

/// A breach, as impossible.
pub(crate) fn impossible(
    breach: Option<Breach>,
    text: impl FnOnce(Breach) -> String,
) -> Option<Found> {
    Severity::Impossible.of(breach, text)
}

/// A breach, as suspicious.
pub(crate) fn suspicious(
    breach: Option<Breach>,
    text: impl FnOnce(Breach) -> String,
) -> Option<Found> {
    Severity::Suspicious.of(breach, text)
}

/// Instructions that the cycles cannot have retired.
pub(crate) fn too_many(text: &str, instructions: f64, cycles: f64) -> Option<Found> {
    impossible(physics::instructions_per_cycle(instructions, cycles), |breach| {
        format!(
            "{text}: {} instructions per cycle, possible: {} to {}",
            short(breach.value),
            breach.low,
            breach.high
        )
    })
}

/// What a check says that had its numbers and can find one thing.
fn one(found: Option<Found>) -> Checked {
    Some(found.into_iter().collect())
}

/// What the parts of a check say, those that had their numbers.
fn together(parts: impl IntoIterator<Item = Checked>) -> Checked {
    parts.into_iter().flatten().reduce(|all, more| [all, more].concat())
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
    fn number(&self, quantity: Q) -> Option<Rounded> {
        self.row.number(quantity)
    }

    fn above_zero(&self, quantity: Q) -> Option<Rounded> {
        self.row.above_zero(quantity)
    }

    /// The same as printed.
    fn positive(&self, quantity: Q) -> Option<f64> {
        self.row.positive(quantity)
    }

    /// A quantity as it stands in the file.
    fn shown(&self, quantity: Q) -> String {
        let shown: Vec<&str> = self.row.every(quantity).map(|v| v.shown.as_str()).collect();
        match self.row.get(quantity).and_then(|value| value.pmu.as_ref()) {
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

    /// The first of these that has a number above zero.
    fn first(&self, quantities: &[Q]) -> Option<(Q, Rounded)> {
        quantities.iter().find_map(|q| Some((*q, self.above_zero(*q)?)))
    }

    /// The bytes that were moved, and what they are called: those received
    /// where they are known.
    fn bytes(&self) -> Option<(Q, Rounded)> {
        self.first(&[Q::ReceivedBytes, Q::Bytes, Q::SentBytes])
    }

    /// The same as it stands in the file.
    fn moved(&self) -> Option<Said> {
        self.bytes().map(|(name, bytes)| (bytes, self.shown(name)))
    }

    /// What a rate comes to over the elapsed time.
    fn over_time(&self, rate: Q) -> Option<Said> {
        let product = self.number(rate)?.times(self.number(Q::Elapsed)?).scaled(1e-9);
        Some((product, self.shown_all(&[rate, Q::Elapsed])))
    }

    /// Bytes by the throughput.
    fn bytes_by_rate(&self) -> Option<Said> {
        let (bytes, shown) = self.over_time(Q::Throughput)?;
        Some((bytes, format!("{shown} (rate × time)")))
    }

    /// How often the CPU time goes into the elapsed time; 1 where that is not known.
    fn elapsed_per_cpu_time(&self) -> f64 {
        let share = || Some(self.number(Q::Elapsed)?.value / self.positive(Q::CpuTime)?);
        share().unwrap_or(1.0)
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
        self.first(&[Q::MessageBytes, Q::BlockBytes])
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
