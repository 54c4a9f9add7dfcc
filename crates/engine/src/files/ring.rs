//! What writing and copying through a ring have in common.

use iolens_sys::errno::Errno;
use iolens_sys::io_uring::TransferRing;
use iolens_sys::process;

/// Requests under way at once: enough that a device has several to work on, few
/// enough that their blocks stay in the processor's caches.
pub(crate) const DEPTH: usize = 8;

/// Memory for the blocks that are under way at once, whatever their number: what is
/// registered is locked, of which a user without `CAP_IPC_LOCK` has little, and the
/// ring itself and other threads need some too.
pub(crate) fn memory_bytes_max() -> usize {
    const MEMORY_BYTES_MAX: u64 = 64 << 20;
    let limit = match process::may_lock_any_memory() {
        true => u64::MAX,
        false => process::memlock_limit_bytes(),
    };
    usize::try_from((limit / 2).min(MEMORY_BYTES_MAX)).unwrap_or(usize::MAX)
}

/// Waits for what is under way when nobody asks for its results any more: the kernel
/// has the ring's memory until then.
#[cold]
pub(crate) fn drain(ring: &mut TransferRing) {
    loop {
        while ring.ended().is_some() {}
        if ring.under_way() == 0 || ring.submit().is_err_and(|errno| errno != Errno::EINTR) {
            return;
        }
    }
}
