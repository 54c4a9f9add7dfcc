//! What a column can hold: our word for it, what it is measured in, and how
//! others call it.

use crate::unit::Dimension;

/// Declares the table without repeating the names.
macro_rules! quantities {
    ($($(#[$doc:meta])* $id:ident $name:literal $dimension:ident $others:literal;)+) => {
        /// What a column can hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Quantity {
            $($(#[$doc])* $id),+
        }

        /// Every quantity: our name, its dimension, and names that others use,
        /// as words in lower case, with commas between them.
        const TABLE: &[(Quantity, &str, Dimension, &str)] =
            &[$((Quantity::$id, $name, Dimension::$dimension, $others)),+];
    };
}

quantities! {
    /// Bytes of one message.
    MessageBytes "message_bytes" Bytes "message size, msg size, msgsize, msg bytes, packet size, payload, payload size, payload bytes, size, buffer size, buf size, request size, datagram size, message length, msg len, write size, chunk size, message";
    /// Bytes of one read or write of a file.
    BlockBytes "block_bytes" Bytes "block, block size, blocksize, bs, io size, record size, block length";
    /// Bytes of a file.
    FileBytes "file_bytes" Bytes "file size, filesize, file, file length";
    /// Threads at each end.
    Threads "threads" Count "thread, nthreads, thread pairs, threads per end, workers, jobs, numjobs";
    /// Connections, or clients with one request each.
    Connections "connections" Count "connection, conns, clients, client, users, concurrency, concurrent connections, concurrent clients, concurrent, sockets, flows";
    /// CPUs that the work could use.
    Cpus "cpus" Count "ncpus, nproc, cores";
    /// Bytes a second, of all threads.
    Throughput "throughput" ByteRate "bandwidth, goodput, rate, speed, transfer rate, data rate, bw, tput, thrpt, thruput, read rate, write rate, read bandwidth, write bandwidth, read speed, write speed, read throughput, write throughput, average throughput, avg throughput, mean throughput, copy rate, copy speed";
    /// Messages, requests or operations a second.
    MessageRate "message_rate" Rate "messages per second, messages per sec, messages per s, msg rate, msgs per sec, requests per second, requests per sec, request rate, operations per second, ops per sec, transactions per second, packets per second, rps, qps, tps, iops, pps, achieved rate, achieved, achieved rps";
    /// Requests a second that a load generator meant to make.
    OfferedRate "offered_rate" Rate "offered, offered load, offered rps, target rate, target rps";
    /// Mean latency.
    LatencyMean "latency_mean" Time "latency, mean latency, avg latency, average latency, latency avg, latency average, lat, avg lat, lat avg, mean lat, message latency, response time, mean response time, avg response time, average response time, round trip, round trip time, rtt, mean rtt, avg rtt";
    /// Least latency.
    LatencyMin "latency_min" Time "min latency, minimum latency, latency minimum, lat min, min lat";
    /// Median latency.
    LatencyP50 "latency_p50" Time "p50, p50 latency, median, median latency, latency median, lat p50, p50 lat";
    /// Latency that 90 % do not exceed.
    LatencyP90 "latency_p90" Time "p90, p90 latency, lat p90";
    /// Latency that 95 % do not exceed.
    LatencyP95 "latency_p95" Time "p95, p95 latency, lat p95";
    /// Latency that 99 % do not exceed.
    LatencyP99 "latency_p99" Time "p99, p99 latency, lat p99";
    /// Latency that 99.9 % do not exceed.
    LatencyP999 "latency_p999" Time "p999, p99 9, p999 latency, p99 9 latency, latency p99 9, lat p999";
    /// Greatest latency.
    LatencyMax "latency_max" Time "max latency, maximum latency, latency maximum, lat max, max lat";
    /// Time over messages, which is no latency.
    TimePerMessage "time_per_message" Time "per message, time per msg, per msg, time per op, per op, time per operation, time per request";
    /// Payload bytes moved.
    Bytes "bytes" Bytes "bytes transferred, data transferred, transferred, data, volume, payload transferred";
    /// Bytes that the sender's calls accepted.
    SentBytes "tx_bytes" Bytes "bytes sent, sent bytes, sent, bytes tx";
    /// Bytes that the receiver got.
    ReceivedBytes "rx_bytes" Bytes "bytes received, received bytes, received, recv bytes, bytes recv, bytes rx";
    /// Bytes that came from a device.
    DeviceBytes "device_bytes" Bytes "device read bytes, disk bytes, bytes from device, read bytes from device";
    /// Messages, requests or operations.
    Messages "messages" Count "msgs, requests, operations, packets, transactions, iterations, messages sent";
    /// System calls that moved payload.
    Calls "calls" Count "syscalls, system calls, tx calls, send calls, read calls, write calls";
    /// Wall time.
    Elapsed "elapsed" Time "elapsed time, time elapsed, time, duration, wall, wall time, wall clock, wall clock time, real, real time, runtime, run time, test time, time taken, test duration";
    /// CPU time, user and kernel.
    CpuTime "cpu_time" Time "cpu, task clock, cpu clock, cpu user sys, user sys";
    /// CPU time in user mode.
    UserTime "user_time" Time "user, utime, user cpu, cpu user, user cpu time";
    /// CPU time in the kernel.
    SystemTime "system_time" Time "sys, system, stime, sys time, system cpu, cpu system, cpu sys, system cpu time, kernel time";
    /// CPU time over wall time; 1 is one CPU.
    CpuUse "cpu_use" Share "cpu utilization, cpu utilisation, cpu usage, cpu util, cpu load, cpus utilized";
    /// CPU cycles.
    Cycles "cycles" Count "cpu cycles, cycle";
    /// CPU cycles in user mode.
    CyclesUser "cycles_user" Count "user cycles, cycles u, cpu cycles user";
    /// CPU cycles in the kernel.
    CyclesKernel "cycles_kernel" Count "kernel cycles, cycles k, cpu cycles kernel";
    /// Instructions retired.
    Instructions "instructions" Count "instr, insn, instructions retired, retired instructions";
    /// Instructions in user mode.
    InstructionsUser "instructions_user" Count "user instructions, instructions u";
    /// Instructions in the kernel.
    InstructionsKernel "instructions_kernel" Count "kernel instructions, instructions k";
    /// Instructions over cycles.
    Ipc "ipc" Count "instructions per cycle, insn per cycle, insns per cycle, instr per cycle";
    /// Cycles over CPU time.
    Clock "clock" Frequency "frequency, freq, cpu frequency, cpu freq, clock speed, cpu speed, clock rate";
    /// Cycles over bytes.
    CyclesPerByte "cycles_per_byte" CyclesPerByte "cpb, cycles byte, cpu cycles per byte";
    /// Lookups in a cache.
    CacheReferences "cache_references" Count "cache refs, cache ref";
    /// Lookups in a cache that failed.
    CacheMisses "cache_misses" Count "cache miss";
    /// Misses over references.
    CacheMissShare "cache_miss_rate" Share "cache miss ratio, miss rate, miss ratio, cache misses percent";
    /// Loads that looked into the first-level data cache.
    L1dLoads "l1d_loads" Count "l1 dcache loads, l1 loads, l1d cache loads, l1d accesses";
    /// Those that missed there.
    L1dMisses "l1d_misses" Count "l1 dcache load misses, l1d load misses, l1 misses, l1d cache misses, l1 cache misses, l1 dcache misses";
    /// References to the last-level cache.
    LlcReferences "llc_references" Count "llc loads, llc refs, l3 loads, llc accesses";
    /// Those that missed there.
    LlcMisses "llc_misses" Count "llc load misses, l3 misses, l3 cache misses, llc cache misses";
    /// Branches.
    Branches "branches" Count "branch instructions";
    /// Branches predicted wrongly.
    BranchMisses "branch_misses" Count "branch mispredicts, branch mispredictions, mispredicted branches";
    /// Context switches.
    Switches "context_switches" Count "ctx switches, context switch, ctxt switches, ctxsw, csw, cs, switches";
    /// Context switches because a thread waited.
    VoluntarySwitches "voluntary_switches" Count "voluntary context switches, nvcsw, voluntary ctx switches";
    /// Context switches because the scheduler took the CPU.
    InvoluntarySwitches "involuntary_switches" Count "involuntary context switches, nivcsw, involuntary ctx switches, nonvoluntary switches";
    /// Context switches a second.
    SwitchRate "switch_rate" Rate "context switch rate, switches per second, context switches per second";
    /// Page faults.
    PageFaults "page_faults" Count "faults, pagefaults";
    /// Page faults without I/O.
    MinorFaults "minor_faults" Count "minor page faults, minflt";
    /// Page faults that waited for I/O.
    MajorFaults "major_faults" Count "major page faults, majflt";
    /// Segments sent again.
    Retransmits "retransmits" Count "retransmissions, retrans, retr, tcp retransmits, retransmitted segments, retransmit";
    /// Successful zero-copy sends.
    ZerocopySends "zerocopy_sends" Count "zero copy sends, zc sends";
    /// Zero-copy sends that completed.
    ZerocopyCompletions "zerocopy_completions" Count "zero copy completions, zc completions, completions";
    /// Zero-copy sends that the kernel copied.
    ZerocopyCopied "zerocopy_copied" Count "zero copy copied, zc copied, copied";
}

impl Quantity {
    /// Our word.
    pub(crate) fn name(self) -> &'static str {
        self.entry().1
    }

    /// What it is measured in.
    pub(crate) fn dimension(self) -> Dimension {
        self.entry().2
    }

    fn entry(self) -> &'static (Quantity, &'static str, Dimension, &'static str) {
        // The table is in the order of the enum, by construction.
        &TABLE[self as usize]
    }

    /// Every quantity.
    pub(crate) fn all() -> impl Iterator<Item = Quantity> {
        TABLE.iter().map(|entry| entry.0)
    }

    /// The quantity with our word for it.
    pub(crate) fn by_name(name: &str) -> Option<Quantity> {
        Quantity::all().find(|quantity| quantity.name() == name)
    }

    /// The quantity that is called so, in words of lower case, and which of its names that is.
    pub(crate) fn called(words: &str) -> Option<(Quantity, &'static str)> {
        TABLE.iter().find_map(|(quantity, ours, _, others)| {
            let is_ours = ours.split('_').eq(words.split(' '));
            let other = || others.split(", ").find(|other| *other == words);
            is_ours.then_some(*ours).or_else(other).map(|name| (*quantity, name))
        })
    }

    /// The unit of a column that names none: only where nearly everybody
    /// means the same.
    pub(crate) fn has_usual_unit(self) -> bool {
        use Dimension::{ByteRate, Bytes, Count, CyclesPerByte, Frequency, Rate, Share, Time};
        match self.dimension() {
            Count | Bytes | Rate | CyclesPerByte => true,
            Time | ByteRate | Share | Frequency => false,
        }
    }

    /// The quantity that a column of this name and another dimension holds:
    /// `context switches/s` is no number of switches.
    pub(crate) fn measured_in(self, dimension: Dimension) -> Option<Quantity> {
        use Quantity as Q;
        if self.dimension() == dimension {
            return Some(self);
        }
        match (self, dimension) {
            (Q::Switches, Dimension::Rate) => Some(Q::SwitchRate),
            (Q::Messages | Q::Throughput, Dimension::Rate) => Some(Q::MessageRate),
            (Q::Bytes | Q::MessageRate, Dimension::ByteRate) => Some(Q::Throughput),
            (Q::CpuTime, Dimension::Share) => Some(Q::CpuUse),
            (Q::CacheMisses, Dimension::Share) => Some(Q::CacheMissShare),
            (Q::Messages, Dimension::Time) => Some(Q::TimePerMessage),
            _ => None,
        }
    }

    /// The quantity of a column that is called by its unit alone.
    pub(crate) fn of_dimension(dimension: Dimension) -> Option<Quantity> {
        match dimension {
            Dimension::ByteRate => Some(Quantity::Throughput),
            Dimension::Rate => Some(Quantity::MessageRate),
            Dimension::Bytes => Some(Quantity::Bytes),
            Dimension::Frequency => Some(Quantity::Clock),
            Dimension::CyclesPerByte => Some(Quantity::CyclesPerByte),
            Dimension::Count | Dimension::Time | Dimension::Share => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_order() {
        let mut names: Vec<String> = Vec::new();
        for (index, (quantity, name, _, others)) in TABLE.iter().enumerate() {
            assert_eq!(*quantity as usize, index);
            assert_eq!(Quantity::by_name(name), Some(*quantity));
            names.push(name.replace('_', " "));
            names.extend(others.split(", ").filter(|other| !other.is_empty()).map(str::to_owned));
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| *name == name.to_lowercase()));
    }
}
