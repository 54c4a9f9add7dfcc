//! The table of metrics: one name per thing, with its unit in the name. `list
//! metrics`, the columns of exports and the docs are made from it.

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name, ending in its unit where it has one.
    pub name: &'static str,
    /// Unit in words.
    pub unit: &'static str,
    /// What it counts and over which scope.
    pub what: &'static str,
    /// Where it is read, or how it is derived.
    pub source: &'static str,
}

/// Declares the table without repeating field names.
macro_rules! metrics {
    ($($name:literal, $unit:literal, $what:literal, $source:literal;)+) => {
        /// Every metric of the `net` study.
        pub const METRICS: &[Metric] =
            &[$(Metric { name: $name, unit: $unit, what: $what, source: $source }),+];
    };
}

metrics! {
    "time_ns", "ns", "from the first call to the last receipt, summed over slices", "CLOCK_MONOTONIC at the sending end";
    "messages", "messages", "messages sent by all threads", "count of the sending loop";
    "tx_bytes", "bytes", "payload bytes the kernel accepted", "return values of the sending calls";
    "rx_bytes", "bytes", "payload bytes delivered to the receiver", "return values of the receiving calls";
    "tx_calls", "calls", "system calls of the sending end that moved payload", "count of the sending loop";
    "rx_calls", "calls", "system calls of the receiving end that moved payload", "count of the receiving loop";
    "goodput_bits_per_s", "bit/s", "received payload bits over time", "rx_bytes × 8 / time_ns";
    "ns_per_message", "ns", "time over messages: 1 / message rate, not a latency", "time_ns / messages";
    "tx_cpu_ns", "ns", "CPU time of the sending threads, user and kernel, with the softirq work done in their context", "CLOCK_THREAD_CPUTIME_ID";
    "rx_cpu_ns", "ns", "CPU time of the receiving threads, user and kernel", "CLOCK_THREAD_CPUTIME_ID";
    "voluntary_switches", "switches", "times a thread of either end waited", "getrusage(RUSAGE_THREAD) ru_nvcsw";
    "involuntary_switches", "switches", "times the scheduler took the CPU from a thread of either end", "getrusage(RUSAGE_THREAD) ru_nivcsw";
    "context_switches", "switches", "voluntary and involuntary switches of both ends", "sum of the two above";
    "migrations", "migrations", "moves of a thread of either end to another CPU", "/proc/thread-self/sched se.nr_migrations";
    "minor_faults", "faults", "page faults of either end served without I/O", "getrusage(RUSAGE_THREAD) ru_minflt";
    "major_faults", "faults", "page faults of either end that waited for I/O", "getrusage(RUSAGE_THREAD) ru_majflt";
    "retransmits", "segments", "segments sent again on the arm's connections", "TCP_INFO tcpi_total_retrans";
    "softirq_ticks", "ticks", "timer ticks in softirq on the CPUs of both ends, whoever caused them", "/proc/stat cpuN softirq";
    "copies_sender", "copies", "CPU copies of each payload byte at the sender", "the primitive's declared data path";
    "copies_end_to_end", "copies", "CPU copies of each payload byte from the sender's fields to the receiver's buffer", "the primitive's declared data path";
}

#[cfg(test)]
mod tests {
    use super::METRICS;

    #[test]
    fn names_are_unique_and_plain() {
        for (i, metric) in METRICS.iter().enumerate() {
            assert!(METRICS[..i].iter().all(|other| other.name != metric.name), "{}", metric.name);
            assert!(
                metric
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
            );
        }
    }
}
