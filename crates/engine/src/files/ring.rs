//! What writing and copying through a ring have in common.

use iolens_sys::errno::Errno;
use iolens_sys::io_uring::TransferRing;
use iolens_sys::process;

/// Requests under way at once: enough that a device has several to work on, few
/// enough that their blocks stay in the processor's caches.
pub(crate) const DEPTH: usize = 8;

/// Most bytes of registered buffers, which are locked; null where nothing limits them.
/// Half of what a user without `CAP_IPC_LOCK` may lock: the ring itself, other threads and
/// the user's other processes need some too.
pub(crate) fn locked_bytes_max() -> Option<u64> {
    let limit = (!process::may_lock_any_memory()).then(process::memlock_limit_bytes)?;
    (limit != u64::MAX).then_some(limit / 2)
}

/// Memory for the blocks that are under way at once, whatever their number.
pub(crate) fn memory_bytes_max() -> usize {
    const MEMORY_BYTES_MAX: u64 = 64 << 20;
    let most = locked_bytes_max().map_or(MEMORY_BYTES_MAX, |most| most.min(MEMORY_BYTES_MAX));
    usize::try_from(most).unwrap_or(usize::MAX)
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
