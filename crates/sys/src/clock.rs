//! The clocks: one place in which time is read.

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC` in nanoseconds. Through the vDSO where the clock source
/// allows it; see clock_gettime(2).
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Wall time, nanoseconds since 1970 (UTC). For labels only.
pub fn unix_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

/// CPU time of the calling thread, user and kernel, in nanoseconds: the
/// scheduler's own sum. Includes softirq work done in the thread's context; on
/// a guest with CONFIG_PARAVIRT_TIME_ACCOUNTING leaves out what the hypervisor
/// stole, which the `task-clock` event of perf includes.
///
/// Source: clock_gettime(2), `CLOCK_THREAD_CPUTIME_ID`.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// Sleeps until `CLOCK_MONOTONIC` has come so far, or a handled signal arrives:
/// for services whose work is to take time. A thread's timer slack (50 µs
/// unless it was changed) comes on top.
pub fn sleep_until_ns(deadline_ns: u64) {
    let request = rustix::time::Timespec {
        tv_sec: (deadline_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (deadline_ns % 1_000_000_000).cast_signed(),
    };
    // Who was woken early looks at the clock.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request);
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    // None of these clocks is ever negative.
    t.tv_sec.cast_unsigned() * 1_000_000_000 + t.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward() {
        let (mono, cpu) = (monotonic_ns(), thread_cpu_ns());
        let mut sum = 0u64;
        for i in 0..10_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        assert!(monotonic_ns() > mono);
        assert!(thread_cpu_ns() > cpu);
        assert!(unix_ns() > 1_700_000_000_000_000_000);
    }
}
