//! The empty system call: the price of crossing into the kernel and back.
//!
//! # Safety
//! The call takes and returns plain numbers.

#![expect(unsafe_code, reason = "see the safety note above")]

/// `getppid(2)` through the C library, which does not cache it: the kernel
/// reads one pointer under RCU.
#[inline]
pub fn getppid() -> i32 {
    // SAFETY: getppid takes no argument, touches no memory of ours and cannot fail.
    unsafe { libc::getppid() }
}
