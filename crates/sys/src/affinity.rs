//! On which processors a thread may run; see sched_setaffinity(2).

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::errno::Errno;

/// Largest processor number that can be named here.
pub const CPU_MAX: u32 = 1023;

const _: () = assert!(CpuSet::MAX_CPU == 1024);

/// Binds the calling thread to one processor.
///
/// Errors: `EINVAL` if the processor is offline, does not exist, or lies
/// outside the cpuset of the process.
pub fn pin_thread(cpu: u32) -> Result<(), Errno> {
    if cpu > CPU_MAX {
        return Err(Errno::from_raw(libc::EINVAL));
    }
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets the calling thread, and what it starts from now on, run on these
/// processors only.
///
/// Errors: `EINVAL` if none of them is one that it may run on.
pub fn restrict_thread(cpus: &[u32]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu > CPU_MAX {
            return Err(Errno::from_raw(libc::EINVAL));
        }
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Processors the calling thread may run on, in rising order.
///
/// Errors: `EINVAL` on machines with more than 1024 processors.
pub fn thread_cpus() -> Result<Vec<u32>, Errno> {
    let set = sched_getaffinity(None)?;
    Ok((0..=CPU_MAX).filter(|&cpu| set.is_set(cpu as usize)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_reads_back_its_cpu() {
        let cpus = thread_cpus().unwrap();
        let last = *cpus.last().unwrap();
        let seen = std::thread::spawn(move || {
            pin_thread(last).unwrap();
            thread_cpus().unwrap()
        });
        assert_eq!(seen.join().unwrap(), vec![last]);
        assert_eq!(pin_thread(CPU_MAX + 1), Err(Errno::from_raw(libc::EINVAL)));
    }
}
