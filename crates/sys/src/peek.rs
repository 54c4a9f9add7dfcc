//! Bytes of this process at any address, which the kernel checks; see process_vm_readv(2).
//! A program with file capabilities may not open its /proc/self/mem.
//!
//! # Safety
//! process_vm_readv(2) reads and writes no more than it is told of, and only what is mapped.

#![expect(unsafe_code, reason = "see the safety note above")]

use crate::errno::Errno;

/// The bytes from `address` on.
///
/// Errors: `EFAULT` where they cannot be read; `EPERM` or `ENOSYS` where a filter of system
/// calls forbids it.
pub fn bytes_at<const N: usize>(address: u64) -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    let address = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    let into = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let from = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: N };
    // SAFETY: getpid(2) has no arguments; `into` is an array of `N` bytes, and `from` is the
    // kernel's to check.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const into, 1, &raw const from, 1, 0)
    };
    match usize::try_from(read) {
        Ok(read) if read == N => Ok(bytes),
        Ok(_) => Err(Errno::EFAULT),
        Err(_) => Err(Errno::last()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_an_error() {
        let here = [1, 2, 3];
        assert_eq!(bytes_at(here.as_ptr().addr() as u64), Ok(here));
        assert_eq!(bytes_at::<2>(0), Err(Errno::EFAULT));
        assert_eq!(bytes_at::<2>(u64::MAX), Err(Errno::EFAULT));
    }
}
