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
    /// Where it is null.
    pub null_when: NullWhen,
}

/// Why a metric that is asked for may be null though its arm was measured. What every metric
/// is null for (an arm that failed or was skipped) is not said again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullWhen {
    /// It never is, or what it counts says so.
    Never,
    /// Without `--software-events`, or the right to count.
    SoftwareEvents,
    /// Without `--tracepoints`, tracefs, or the right to count.
    Tracepoints,
    /// Where whole CPUs may not be counted.
    WholeCpus,
    /// Without a PMU that has it and may be used, or where it did not count throughout.
    Pmu,
    /// Where messages do not go over TCP.
    NotTcp,
    /// Where one of its parts is.
    Parts,
    /// Outside mode rr; a percentile also where too few requests were timed for it (METHOD,
    /// Intervals).
    NoRequests,
    /// For receivers that map nothing.
    MapsNothing,
    /// For calls that move no bytes.
    NoBytes,
    /// For receivers that make no multishot requests.
    NoMultishot,
    /// Where it is not known how the kernel decided.
    Undecided,
    /// Where the kernel does not tell it.
    NotTold,
    /// For arms that make no zero-copy send.
    NoZeroCopy,
    /// For arms without a receiving end.
    NoReceiver,
}

impl NullWhen {
    /// In words; nothing where it never is.
    pub fn words(self) -> Option<&'static str> {
        Some(match self {
            NullWhen::Never => return None,
            NullWhen::SoftwareEvents => "without `--software-events`, or the right to count",
            NullWhen::Tracepoints => "without `--tracepoints`, tracefs, or the right to count",
            NullWhen::WholeCpus => "where whole CPUs may not be counted",
            NullWhen::Pmu => {
                "without a PMU that has it and may be used, or where it did not count throughout"
            }
            NullWhen::NotTcp => "where messages do not go over TCP",
            NullWhen::Parts => "where one of its parts is",
            NullWhen::NoRequests => {
                "outside mode rr; a percentile also where too few requests were timed for it (METHOD, Intervals)"
            }
            NullWhen::MapsNothing => "for receivers that map nothing",
            NullWhen::NoBytes => "for calls that move no bytes",
            NullWhen::NoMultishot => "for receivers that make no multishot requests",
            NullWhen::Undecided => "where it is not known how the kernel decided",
            NullWhen::NotTold => "where the kernel does not report it",
            NullWhen::NoZeroCopy => "for arms that make no zero-copy send",
            NullWhen::NoReceiver => "for arms without a receiving end",
        })
    }
}

/// Declares the table without repeating field names.
macro_rules! metrics {
    ($($name:literal, $unit:literal, $what:literal, $source:literal, $null_when:ident;)+) => {
        /// Every metric, of `net` unless it says otherwise.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            unit: $unit,
            what: $what,
            source: $source,
            null_when: NullWhen::$null_when,
        }),+];
    };
}

metrics! {
    "time_ns", "ns", "from the first call to the last receipt, summed over slices", "CLOCK_MONOTONIC at the sending end", Never;
    "messages", "messages", "messages sent by all threads", "count of the sending loop", Never;
    "tx_bytes", "bytes", "payload bytes the kernel accepted", "return values of the sending calls", Never;
    "rx_bytes", "bytes", "payload bytes delivered to the receiver", "return values of the receiving calls", NoReceiver;
    "tx_calls", "calls", "system calls of the sending end that moved payload", "count of the sending loop", Never;
    "rx_calls", "calls", "system calls of the receiving end that moved payload", "count of the receiving loop", NoReceiver;
    "goodput_bits_per_s", "bit/s", "received payload bits over time", "rx_bytes × 8 / time_ns", NoReceiver;
    "ns_per_message", "ns", "time over messages: 1 / message rate, not a latency; tables of compared arms show the baseline's times the ratio instead", "time_ns / messages", Never;
    "tx_cpu_ns", "ns", "CPU time of the sending threads, user and kernel, with the softirq work done in their context", "CLOCK_THREAD_CPUTIME_ID", Never;
    "rx_cpu_ns", "ns", "CPU time of the receiving threads, user and kernel", "CLOCK_THREAD_CPUTIME_ID", NoReceiver;
    "voluntary_switches", "switches", "times a thread of either end waited", "getrusage(RUSAGE_THREAD) ru_nvcsw", NotTold;
    "involuntary_switches", "switches", "times the scheduler took the CPU from a thread of either end", "getrusage(RUSAGE_THREAD) ru_nivcsw", NotTold;
    "context_switches", "switches", "voluntary and involuntary switches of both ends", "sum of the two above", Parts;
    "migrations", "migrations", "moves of a thread of either end to another CPU", "/proc/thread-self/sched se.nr_migrations", NotTold;
    "minor_faults", "faults", "page faults of either end served without I/O", "getrusage(RUSAGE_THREAD) ru_minflt", NotTold;
    "major_faults", "faults", "page faults of either end that waited for I/O", "getrusage(RUSAGE_THREAD) ru_majflt", NotTold;
    "retransmits", "segments", "segments sent again on the arm's connections", "TCP_INFO tcpi_total_retrans", NotTcp;
    "segments_out", "segments", "segments that the sender's kernel sent, including pure acknowledgements and retransmissions; a segment that a device cuts counts as its pieces", "TCP_INFO tcpi_segs_out at the sending end", NotTcp;
    "softirq_ticks", "ticks", "timer ticks in softirq on the CPUs of both ends, whatever caused them", "/proc/stat cpuN softirq", NotTold;
    "cycles_user", "cycles", "CPU cycles of the threads of both ends in user mode", "perf_event_open(2) cycles:u", Pmu;
    "cycles_kernel", "cycles", "CPU cycles of the threads of both ends in the kernel, with the interrupts and softirq work that ran in their context", "perf_event_open(2) cycles:k", Pmu;
    "cycles", "cycles", "CPU cycles of the threads of both ends, user and kernel; null unless both are known", "cycles_user + cycles_kernel", Parts;
    "instructions_user", "instructions", "instructions retired by the threads of both ends in user mode", "perf_event_open(2) instructions:u", Pmu;
    "instructions_kernel", "instructions", "instructions retired by the threads of both ends in the kernel", "perf_event_open(2) instructions:k", Pmu;
    "l1d_loads", "loads", "loads of the threads of both ends that looked into the first-level data cache, user and kernel", "perf_event_open(2) L1-dcache-loads", Pmu;
    "l1d_misses", "misses", "those of them that did not find their data there", "perf_event_open(2) L1-dcache-load-misses", Pmu;
    "llc_references", "references", "references of the threads of both ends to the last-level cache, user and kernel", "perf_event_open(2) cache-references on Intel's processors, LLC-loads on others", Pmu;
    "llc_misses", "misses", "those of them that missed", "perf_event_open(2) cache-misses on Intel's processors, LLC-load-misses on others", Pmu;
    "branches", "branches", "branches retired by the threads of both ends, user and kernel", "perf_event_open(2) branches", Pmu;
    "branch_misses", "misses", "those of them that were mispredicted", "perf_event_open(2) branch-misses", Pmu;
    "dtlb_loads", "loads", "loads of the threads of both ends that looked into the first-level data TLB, user and kernel", "perf_event_open(2) dTLB-loads", Pmu;
    "dtlb_misses", "misses", "those of them that missed", "perf_event_open(2) dTLB-load-misses", Pmu;
    "stalled_cycles_frontend", "cycles", "cycles of the threads of both ends in which the front end issued nothing, user and kernel", "perf_event_open(2) stalled-cycles-frontend", Pmu;
    "stalled_cycles_backend", "cycles", "cycles of the threads of both ends in which the back end took nothing, user and kernel", "perf_event_open(2) stalled-cycles-backend", Pmu;
    "run_delay_ns", "ns", "time that threads of both ends were ready to run but waited for a CPU", "/proc/thread-self/schedstat, second number", NotTold;
    "perf_task_clock_ns", "ns", "CPU time of the threads of both ends as perf counts it, including time that a hypervisor stole", "with --software-events, perf_event_open(2) task-clock; counts user and kernel time in any mode", SoftwareEvents;
    "perf_context_switches", "switches", "context switches of the threads of both ends: a cross-check of getrusage", "with --software-events, perf_event_open(2) context-switches", SoftwareEvents;
    "perf_migrations", "migrations", "moves of the threads of both ends to another CPU: a cross-check", "with --software-events, perf_event_open(2) cpu-migrations", SoftwareEvents;
    "perf_minor_faults", "faults", "page faults of the threads of both ends served without I/O: a cross-check", "with --software-events, perf_event_open(2) minor-faults", SoftwareEvents;
    "perf_major_faults", "faults", "page faults of the threads of both ends that waited for I/O: a cross-check", "with --software-events, perf_event_open(2) major-faults", SoftwareEvents;
    "sys_enter", "calls", "system calls of the threads of both ends, including those of the harness at the edges of a slice", "with --tracepoints, raw_syscalls:sys_enter", Tracepoints;
    "skb_copy_datagram_iovec", "copies", "copies of packet data to a receiver by the threads of both ends", "with --tracepoints, skb:skb_copy_datagram_iovec", Tracepoints;
    "tcp_retransmit_skb", "segments", "segments sent again in the context of the threads of both ends", "with --tracepoints, tcp:tcp_retransmit_skb", Tracepoints;
    "sched_switch", "switches", "times a thread of either end was switched away from", "with --tracepoints, sched:sched_switch", Tracepoints;
    "cpu_clock_ns", "ns", "time over which the CPUs of an end were counted as a whole, all of them together", "perf_event_open(2) cpu-clock of a CPU", WholeCpus;
    "cpu_context_switches", "switches", "context switches on the CPUs of an end, of any thread", "perf_event_open(2) context-switches of a CPU", WholeCpus;
    "cycles_per_byte", "cycles/byte", "CPU cycles of both ends over payload bytes delivered", "(cycles_user + cycles_kernel) / rx_bytes", Parts;
    "latency_mean_ns", "ns", "mean time from a request's byte to the end of its response, in mode rr", "sum over count of the arm's histogram", NoRequests;
    "latency_p50_ns", "ns", "time that half of all requests do not exceed, in mode rr", "the arm's histogram, counts of all trials added", NoRequests;
    "latency_p99_ns", "ns", "time that 99% of all requests do not exceed, in mode rr", "the arm's histogram, counts of all trials added", NoRequests;
    "latency_p999_ns", "ns", "time that 99.9% of all requests do not exceed, in mode rr", "the arm's histogram, counts of all trials added", NoRequests;
    "tx_messages_per_call", "messages/call", "messages over system calls of the sending end that moved payload", "messages / tx_calls", Never;
    "tx_segments_per_message", "segments/message", "segments that the sender's kernel sent, over messages", "segments_out / messages", NotTcp;
    "rx_mapped_bytes", "bytes", "payload bytes that the kernel mapped into the receiver's address space instead of copying them; null for receivers that map none", "TCP_ZEROCOPY_RECEIVE, length of each call", MapsNothing;
    "rx_mapped_share", "share", "bytes mapped over bytes received, 0 to 1", "rx_mapped_bytes / rx_bytes", MapsNothing;
    "rx_rearms", "requests", "multishot receives submitted again because the previous request had ended; null for receivers that make none", "completions without IORING_CQE_F_MORE", NoMultishot;
    "rx_ring_enobufs", "requests", "those of them whose request ended because every provided buffer was full", "completions with ENOBUFS", NoMultishot;
    "zerocopy_sends", "calls", "successful calls with MSG_ZEROCOPY, or sends through io_uring that announced a notification", "count of the sending loop; IORING_CQE_F_MORE", NoZeroCopy;
    "zerocopy_completions", "ids", "zero-copy sends whose completion was read", "id ranges from the error queue, MSG_ERRQUEUE; notifications, IORING_CQE_F_NOTIF", NoZeroCopy;
    "zerocopy_notifications_per_send", "notifications/send", "notifications that the kernel delivered, over zero-copy sends: one of the error queue may cover many", "messages of MSG_ERRQUEUE, or CQEs with IORING_CQE_F_NOTIF, over zerocopy_sends", NoZeroCopy;
    "zerocopy_copied_share", "share", "completed zero-copy sends that the kernel reported as copied after all, 0 to 1; exact only at 0 and 1", "SO_EE_CODE_ZEROCOPY_COPIED or IORING_NOTIF_USAGE_ZC_COPIED over zerocopy_completions", NoZeroCopy;
    "enobufs", "calls", "zero-copy sends that were refused for lack of locked memory and made again", "ENOBUFS of the sending calls, ENOMEM of io_uring", NoZeroCopy;
    "calls", "calls", "of syscall: units done by all threads; the entry says what one unit is", "count of the loop", Never;
    "system_calls", "calls", "of syscall: system calls of those units", "calls × the entry's system calls", Never;
    "bytes", "bytes", "of syscall: bytes that those units moved", "calls × the block, or the entry's bytes", Never;
    "ns_per_call", "ns", "of syscall: time over calls; with several threads, the time in which each made one", "time_ns / calls", Never;
    "calls_per_s", "calls/s", "of syscall: calls of all threads per second", "calls / time_ns", Never;
    "mib_per_s", "MiB/s", "of syscall: bytes moved by calls that move any, per second", "bytes / time_ns", NoBytes;
    "cpu_ns_per_call", "ns", "of syscall: CPU time of the threads over calls", "CLOCK_THREAD_CPUTIME_ID / calls", Never;
    "cycles_per_call", "cycles/call", "of syscall: CPU cycles over calls, user and kernel", "(cycles_user + cycles_kernel) / calls", Parts;
    "instructions_per_call", "instructions/call", "of syscall: instructions retired over calls, user and kernel", "(instructions_user + instructions_kernel) / calls", Parts;
    "copies_sender", "copies", "CPU copies of each payload byte at the sender", "the primitive's declared data path", Undecided;
    "copies_end_to_end", "copies", "CPU copies of each payload byte from the sender's fields to the receiver's buffer", "the declared data paths of the primitive and the receiver, with the shares copied late and mapped", Undecided;
}

#[cfg(test)]
mod tests {
    use super::METRICS;
    use crate::outcome::{KernelCounts, PmuCounts};

    #[test]
    fn every_counter_is_a_metric() {
        for name in PmuCounts::NAMES.into_iter().chain(KernelCounts::NAMES) {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name} is no metric");
        }
    }

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
