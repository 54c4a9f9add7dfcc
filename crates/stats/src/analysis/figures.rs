//! Figures of one arm, and the times of its requests.

use iolens_model::latency::Histogram;
use serde::Serialize;

use super::Estimate;

/// Single-arm figures: totals over totals, with t intervals over trials.
/// Null where a part of the figure was not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Received payload bits per second; null for arms without a receiver.
    pub goodput_bits_per_s: Option<Estimate>,
    /// Bytes of the file read per second; null in other studies than `file`, here and
    /// below.
    pub read_bytes_per_s: Option<Estimate>,
    /// Bytes that storage delivered over bytes read: 0 from the page cache, 1 from the
    /// device, more with what was read ahead.
    pub device_share: Option<Estimate>,
    /// Nanoseconds per message: 1 / message rate, not a latency.
    pub ns_per_message: Estimate,
    /// Nanoseconds per payload byte; null for calls that move none.
    pub ns_per_byte: Option<Estimate>,
    /// CPU time of the sending threads per message, or per call, ns.
    pub tx_cpu_ns_per_message: Option<Estimate>,
    /// CPU time of the threads of both ends per message, ns; of the one end where there is
    /// no other.
    pub cpu_ns_per_message: Option<Estimate>,
    /// CPU cycles of both ends per message, or per call, user and kernel.
    pub cycles_per_message: Option<Estimate>,
    /// Instructions of both ends per message, or per call, user and kernel.
    pub instructions_per_message: Option<Estimate>,
    /// CPU time of the sending threads per payload byte, ns.
    pub tx_cpu_ns_per_byte: Option<Estimate>,
    /// CPU time of the receiving threads per payload byte, ns.
    pub rx_cpu_ns_per_byte: Option<Estimate>,
    /// System calls of the sender per message; null where nobody counts them.
    pub tx_calls_per_message: Option<Estimate>,
    /// Messages of the sender per system call; null where it makes none.
    pub tx_messages_per_call: Option<Estimate>,
    /// Segments that the sender's kernel sent per message, those that only
    /// acknowledge among them.
    pub tx_segments_per_message: Option<Estimate>,
    /// Context switches of both ends per message.
    pub context_switches_per_message: Option<Estimate>,
    /// CPU cycles of both ends per payload byte, user and kernel.
    pub cycles_per_byte: Option<Estimate>,
    /// CPU cycles of the sending end per payload byte, user and kernel.
    pub tx_cycles_per_byte: Option<Estimate>,
    /// CPU cycles of the receiving end per payload byte, user and kernel.
    pub rx_cycles_per_byte: Option<Estimate>,
    /// First-level data cache misses of both ends per KiB of payload.
    pub l1d_misses_per_kib: Option<Estimate>,
    /// Last-level cache misses of both ends per KiB of payload.
    pub llc_misses_per_kib: Option<Estimate>,
    /// Last-level cache references of both ends per KiB of payload.
    pub llc_references_per_kib: Option<Estimate>,
    /// Mispredicted branches of both ends per KiB of payload.
    pub branch_misses_per_kib: Option<Estimate>,
    /// First-level data TLB misses of both ends per KiB of payload.
    pub dtlb_misses_per_kib: Option<Estimate>,
    /// Cycles in which the front end issued nothing, over all cycles.
    pub stalled_frontend_per_cycle: Option<Estimate>,
    /// Cycles in which the back end took nothing, over all cycles.
    pub stalled_backend_per_cycle: Option<Estimate>,
    /// Time for which threads of both ends were ready to run and waited for a
    /// CPU, per message, ns.
    pub run_delay_ns_per_message: Option<Estimate>,
    /// Time in softirq on the CPUs of both ends per payload byte, ns, whoever
    /// caused it, from timer ticks: its error is one tick in the sum.
    pub softirq_ns_per_byte: Option<Estimate>,
    /// The value of each used trial, for the strip behind the number:
    /// goodput in bit/s, or ns per message where there is no receiver.
    pub trial_values: Vec<f64>,
}

/// Round-trip times of an arm in a cell. A percentile is null where there are
/// fewer than 3.7 / (1 − q) times; its interval is null where one trial has
/// fewer than that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// Times recorded.
    pub samples: u64,
    /// Mean, ns.
    pub mean_ns: Estimate,
    /// Median, ns.
    pub p50_ns: Option<Estimate>,
    /// 99th percentile, ns.
    pub p99_ns: Option<Estimate>,
    /// 99.9th percentile, ns.
    pub p999_ns: Option<Estimate>,
    /// All times, pooled by adding counts.
    pub histogram: Histogram,
}

impl LatencyFigures {
    /// Whether so many times are enough to show the quantile `q` (0 to 1):
    /// 3.7 / (1 − q), which is 370 for p99. One set in forty of that size has
    /// no time beyond its true quantile.
    #[must_use]
    pub fn enough(samples: u64, q: f64) -> bool {
        // 1 − 0.99 is not quite 0.01, and 370 times are meant to do.
        const ROUNDING: f64 = 1e-9;
        samples as f64 * (1.0 - q) >= 3.7 * (1.0 - ROUNDING)
    }
}
