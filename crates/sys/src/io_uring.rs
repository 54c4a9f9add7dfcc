//! Whether a process may have a ring of io_uring; see io_uring_setup(2).
//!
//! # Safety
//! The parameters live on this stack for the whole call and are as large as
//! the kernel's struct; the descriptor is new and nobody else's.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{FromRawFd, OwnedFd};

use crate::errno::Errno;

/// `struct io_uring_params` of include/uapi/linux/io_uring.h: 120 bytes, all
/// zero for a ring without wishes.
const PARAMS_WORDS: usize = 30;

/// Makes the smallest ring and throws it away.
///
/// Errors: `EPERM` where `kernel.io_uring_disabled` or a seccomp filter
/// forbids it, `ENOSYS` where the kernel or a filter has no such call, `ENOMEM`
/// beyond `RLIMIT_MEMLOCK` before Linux 5.12.
pub fn try_ring() -> Result<(), Errno> {
    let mut params = [0u32; PARAMS_WORDS];
    // SAFETY: the kernel reads and writes 120 bytes, which live on this stack.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, params.as_mut_ptr()) };
    let Ok(fd) = i32::try_from(fd) else { return Err(Errno::EBADMSG) };
    if fd < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_made_or_its_refusal_has_a_name() {
        match try_ring() {
            Ok(()) => {}
            Err(errno) => {
                let refusals = [libc::EPERM, libc::ENOSYS, libc::ENOMEM, libc::EACCES];
                assert!(refusals.contains(&errno.raw()), "{errno}");
            }
        }
    }
}
