//! What the scheduler and the memory manager charged to a thread, or to the process.
//!
//! # Safety
//! The struct lives on the stack of the caller for the whole call.

#![expect(unsafe_code, reason = "see the safety note above")]

use crate::errno::Errno;

/// Counters of the calling thread since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadUsage {
    /// Context switches because the thread waited.
    pub voluntary_switches: u64,
    /// Context switches because the scheduler took the CPU.
    pub involuntary_switches: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
}

/// Reads the calling thread's counters.
///
/// Errors: none on Linux since 2.6.26; passed on if there is one.
/// Source: getrusage(2), `RUSAGE_THREAD`.
pub fn thread_usage() -> Result<ThreadUsage, Errno> {
    usage(libc::RUSAGE_THREAD).map(|usage| ThreadUsage::of(&usage))
}

impl ThreadUsage {
    fn of(usage: &libc::rusage) -> ThreadUsage {
        // The kernel's counters are unsigned; the C struct's `long` is history.
        ThreadUsage {
            voluntary_switches: usage.ru_nvcsw.cast_unsigned(),
            involuntary_switches: usage.ru_nivcsw.cast_unsigned(),
            minor_faults: usage.ru_minflt.cast_unsigned(),
            major_faults: usage.ru_majflt.cast_unsigned(),
        }
    }
}

/// What was charged to all threads of a process, or to children that have ended and
/// were waited for, and theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessUsage {
    /// CPU time, user and kernel, in steps of 2 µs.
    pub cpu_ns: u64,
    /// What is counted of threads.
    pub counts: ThreadUsage,
}

/// Reads what was charged to this process.
///
/// Errors: none on Linux; passed on if there is one.
/// Source: getrusage(2), `RUSAGE_SELF`.
pub fn process_usage() -> Result<ProcessUsage, Errno> {
    usage(libc::RUSAGE_SELF).map(|usage| ProcessUsage::of(&usage))
}

/// Reads what was charged to its children that were waited for.
///
/// Errors: as [`process_usage`].
/// Source: getrusage(2), `RUSAGE_CHILDREN`.
pub fn children_usage() -> Result<ProcessUsage, Errno> {
    usage(libc::RUSAGE_CHILDREN).map(|usage| ProcessUsage::of(&usage))
}

impl ProcessUsage {
    fn of(usage: &libc::rusage) -> ProcessUsage {
        let ProcessCpu { user_ns, system_ns } = ProcessCpu::of(usage);
        ProcessUsage { cpu_ns: user_ns + system_ns, counts: ThreadUsage::of(usage) }
    }
}

/// CPU time of all threads of the process since it began. The kernel keeps
/// the sum in nanoseconds and divides it by where ticks found the threads
/// (`cputime_adjust`, kernel/sched/cputime.c): below some hundred milliseconds
/// the parts are rough, and the sum is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessCpu {
    /// In user mode, in steps of 1 µs.
    pub user_ns: u64,
    /// In the kernel, in steps of 1 µs.
    pub system_ns: u64,
}

/// Reads the process's CPU time.
///
/// Errors: none on Linux; passed on if there is one.
/// Source: getrusage(2), `RUSAGE_SELF`.
pub fn process_cpu() -> Result<ProcessCpu, Errno> {
    cpu(libc::RUSAGE_SELF)
}

/// Reads the CPU time of all children that have ended and were waited for, and of
/// theirs.
///
/// Errors: none on Linux; passed on if there is one.
/// Source: getrusage(2), `RUSAGE_CHILDREN`.
pub fn children_cpu() -> Result<ProcessCpu, Errno> {
    cpu(libc::RUSAGE_CHILDREN)
}

/// The time of the process and of such children together.
///
/// Errors: as [`process_cpu`].
pub fn process_cpu_with_children() -> Result<ProcessCpu, Errno> {
    let (own, children) = (process_cpu()?, children_cpu()?);
    Ok(ProcessCpu {
        user_ns: own.user_ns + children.user_ns,
        system_ns: own.system_ns + children.system_ns,
    })
}

/// CPU time of another process, in ns: of all its threads, those that have ended too, and
/// of none of its children.
///
/// Errors: `ESRCH` where there is no such process, or it has ended.
/// Source: clock_getcpuclockid(3); kernel/time/posix-cpu-timers.c.
pub fn cpu_ns_of(pid: u32) -> Result<u64, Errno> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| Errno::ESRCH)?;
    let mut clock = 0;
    // SAFETY: the pointer is to a live, writable clockid_t for the length of the call.
    match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
        0 => clock_ns(clock).ok_or(Errno::ESRCH),
        errno => Err(Errno::from_raw(errno)),
    }
}

/// CPU time of all threads of this process, those that have ended too, in ns. Of other threads
/// that run it has what they had spent when somebody last looked, or the kernel's tick came.
///
/// Source: clock_gettime(2), `CLOCK_PROCESS_CPUTIME_ID`; `thread_group_cputime`,
/// kernel/sched/cputime.c.
pub fn cpu_ns_of_process() -> Option<u64> {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of a thread of this process by its id, in ns, up to now also where it runs.
/// Threads that the kernel makes for io_uring are threads of the process (Linux 5.12).
///
/// Errors: `ESRCH` where the process has no such thread, or it has ended.
/// Source: clock_getcpuclockid(3) for the shape of such clocks
/// (`CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`, include/linux/posix-timers_types.h).
pub fn cpu_ns_of_thread(tid: u32) -> Result<u64, Errno> {
    const OF_ONE_THREAD: libc::clockid_t = 4 | 2;
    let tid = libc::clockid_t::try_from(tid).map_err(|_| Errno::ESRCH)?;
    // A number of a thread has 22 bits (`PID_MAX_LIMIT`).
    clock_ns((!tid << 3) | OF_ONE_THREAD).ok_or(Errno::ESRCH)
}

/// What a clock says; `None` where there is none.
fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live, writable timespec for the length of the call.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0)
        .then(|| time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

fn cpu(whose: libc::c_int) -> Result<ProcessCpu, Errno> {
    usage(whose).map(|usage| ProcessCpu::of(&usage))
}

impl ProcessCpu {
    fn of(usage: &libc::rusage) -> ProcessCpu {
        let ns = |time: libc::timeval| {
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
        };
        ProcessCpu { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
    }
}

fn usage(whose: libc::c_int) -> Result<libc::rusage, Errno> {
    // SAFETY: an all-zero rusage is a valid value of that plain C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live, writable rusage for the length of the call.
    match unsafe { libc::getrusage(whose, &raw mut usage) } {
        0 => Ok(usage),
        _ => Err(Errno::last()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_fresh_memory_faults() {
        let before = thread_usage().unwrap();
        let fresh = vec![1u8; 4 << 20];
        std::hint::black_box(&fresh);
        let after = thread_usage().unwrap();
        assert!(after.minor_faults > before.minor_faults);
    }

    #[test]
    fn the_process_has_the_time_of_its_threads() {
        let before = process_cpu().unwrap();
        let thread_ns = std::thread::spawn(|| {
            while crate::clock::thread_cpu_ns() < 3_000_000 {
                std::hint::black_box(0);
            }
            crate::clock::thread_cpu_ns()
        });
        let thread_ns = thread_ns.join().unwrap();
        let after = process_cpu().unwrap();
        let spent = after.user_ns + after.system_ns - before.user_ns - before.system_ns;
        // Each part is rounded down to a microsecond, before and after.
        assert!(spent + 2_000 >= thread_ns, "{spent} ns of {thread_ns} ns");
    }

    #[test]
    fn the_time_of_a_process_can_be_had_by_its_id() {
        let own = |cpu: ProcessCpu| cpu.user_ns + cpu.system_ns;
        let before = own(process_cpu().unwrap());
        let by_id = cpu_ns_of(std::process::id()).unwrap();
        let after = own(process_cpu().unwrap());
        assert!(before <= by_id + 2_000 && by_id <= after + 2_000, "{before} {by_id} {after}");
        assert_eq!(cpu_ns_of(u32::MAX), Err(Errno::ESRCH));
    }

    #[test]
    fn the_process_keeps_the_time_of_threads_that_have_ended() {
        let before = cpu_ns_of_process().unwrap();
        let spent = std::thread::spawn(|| {
            while crate::clock::thread_cpu_ns() < 3_000_000 {
                std::hint::black_box(0);
            }
        });
        spent.join().unwrap();
        assert!(cpu_ns_of_process().unwrap() >= before + 3_000_000);
    }

    #[test]
    fn the_time_of_a_thread_can_be_had_by_its_id() {
        let tid = crate::process::thread_id();
        let before = crate::clock::thread_cpu_ns();
        let other = std::thread::spawn(move || cpu_ns_of_thread(tid).unwrap()).join().unwrap();
        let after = crate::clock::thread_cpu_ns();
        assert!(before <= other && other <= after, "{before} {other} {after}");
        assert_eq!(cpu_ns_of_thread(u32::MAX), Err(Errno::ESRCH));
        assert_eq!(cpu_ns_of_thread(1 << 22), Err(Errno::ESRCH));
    }
}
