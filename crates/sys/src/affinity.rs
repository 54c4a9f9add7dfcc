//! On which processors a thread may run; see sched_setaffinity(2).
//!
//! # Safety
//! The kernel reads or writes a mask on this stack, and is told how long it is. The C library's
//! wrappers would do, but their mask ends at 1024 processors.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::ffi::c_ulong;

use crate::errno::Errno;

/// Largest processor number that can be named here: no kernel is built for more processors
/// (`NR_CPUS_RANGE_END` in arch/x86/Kconfig, `NR_CPUS` of the others).
pub const CPU_MAX: u32 = 8191;

const BITS: u32 = c_ulong::BITS;

/// A bit for each processor, as the kernel reads it.
type Mask = [c_ulong; (CPU_MAX + 1).div_ceil(BITS) as usize];

fn mask_of(cpus: &[u32]) -> Result<Mask, Errno> {
    let mut mask: Mask = [0; _];
    for &cpu in cpus {
        let word = mask.get_mut((cpu / BITS) as usize).ok_or(Errno::EINVAL)?;
        *word |= 1 << (cpu % BITS);
    }
    Ok(mask)
}

/// Binds the calling thread to one processor.
///
/// Errors: `EINVAL` if the processor is offline, does not exist, or lies
/// outside the cpuset of the process.
pub fn pin_thread(cpu: u32) -> Result<(), Errno> {
    restrict_thread(&[cpu])
}

/// Lets the calling thread, and what it starts from now on, run on these
/// processors only.
///
/// Errors: `EINVAL` if none of them is one that it may run on.
pub fn restrict_thread(cpus: &[u32]) -> Result<(), Errno> {
    let mask = mask_of(cpus)?;
    // SAFETY: the kernel reads as many bytes of the mask as it is told that there are.
    let got =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) };
    if got < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Processors the calling thread may run on, in rising order.
///
/// Errors: `ENOSYS` where a filter of system calls forbids it.
pub fn thread_cpus() -> Result<Vec<u32>, Errno> {
    let mut mask: Mask = [0; _];
    // SAFETY: the kernel writes at most as many bytes as it is told that there are.
    let got = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr())
    };
    if got < 0 {
        return Err(Errno::last());
    }
    let is_set = |cpu: &u32| mask[(cpu / BITS) as usize] >> (cpu % BITS) & 1 == 1;
    Ok((0..=CPU_MAX).filter(is_set).collect())
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
        // Neither is a processor of this machine: the kernel refuses one, the mask the other.
        assert_eq!(pin_thread(CPU_MAX), Err(Errno::EINVAL));
        assert_eq!(pin_thread(CPU_MAX + 1), Err(Errno::EINVAL));
    }
}
