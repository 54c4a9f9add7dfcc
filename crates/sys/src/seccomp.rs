//! Seccomp filters: giving up a system call, as the runtime of a container does
//! for what it starts. Tests take it away from themselves; see seccomp(2).
//!
//! # Safety
//! The filter's program lives on this stack and is as long as it says; the
//! kernel copies it.

#![expect(unsafe_code, reason = "see the safety note above")]

use crate::errno::Errno;

/// From now on io_uring_setup(2) fails with `errno` in this thread and in
/// whatever it starts. There is no way back. The process gives up gaining rights
/// from programs (`PR_SET_NO_NEW_PRIVS`), without which only root may filter.
///
/// Errors: `EINVAL` where the kernel has no filters.
pub fn give_up_io_uring(errno: Errno) -> Result<(), Errno> {
    // Values of <linux/filter.h>, which libc has as wider integers.
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let call = u32::try_from(libc::SYS_io_uring_setup).map_err(|_| Errno::EINVAL)?;
    let refuse = libc::SECCOMP_RET_ERRNO | (errno.raw().unsigned_abs() & libc::SECCOMP_RET_DATA);
    let mut program = [
        // `nr` is the first field of `struct seccomp_data`.
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_EQUAL, 0, 1, call),
        instruction(RETURN, 0, 0, refuse),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: the first call takes numbers; the second reads the program, whose
    // four instructions outlive it.
    let result = unsafe {
        match libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) {
            0 => libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter),
            failed => failed,
        }
    };
    if result == 0 { Ok(()) } else { Err(Errno::last()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io_uring::try_ring;

    #[test]
    fn a_thread_without_the_call_has_no_ring() {
        for errno in [Errno::EPERM, Errno::ENOSYS] {
            let without = move || {
                give_up_io_uring(errno).unwrap();
                try_ring()
            };
            assert_eq!(std::thread::spawn(without).join().unwrap(), Err(errno));
        }
    }
}
