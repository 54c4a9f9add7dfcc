//! What zero-copy sends need of locked memory, and what there is: the kernel
//! counts the pages of each call against the user's `RLIMIT_MEMLOCK`
//! (`mm_account_pinned_pages`, net/core/skbuff.c) unless the process has
//! `CAP_IPC_LOCK`, and each notification against `net.core.optmem_max`. Sends
//! through io_uring count the same pages (`io_notif_account_mem`,
//! io_uring/notif.h) and no notification; registered buffers count theirs for
//! as long as they are registered, which is found out when an arm is opened.

use iolens_model::cell::Cell;
use iolens_model::units::Bytes;
use iolens_sys::pages::page_bytes;
use iolens_sys::proc::Root;
use iolens_sys::process;

/// The kernel counts whole pages, and two more than the bytes fill: they may
/// begin and end anywhere in a page.
const PAGES_MORE: u64 = 2;

/// What this process may lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `RLIMIT_MEMLOCK`; `None` where it does not apply to us.
    pub locked: Option<Bytes>,
    /// `net.core.optmem_max`; `None` where it cannot be read.
    pub optmem: Option<Bytes>,
}

impl Limits {
    /// The limits of this process, in its network namespace.
    pub fn here() -> Limits {
        let optmem = Root::real().read("proc/sys/net/core/optmem_max");
        let locked = (!process::may_lock_any_memory()).then(process::memlock_limit_bytes);
        Limits {
            locked: locked.filter(|&bytes| bytes < u64::MAX).map(Bytes),
            optmem: optmem.ok().and_then(|text| text.parse().ok()).map(Bytes),
        }
    }

    /// Whether zero-copy messages of this cell can be sent at all.
    ///
    /// Errors: why not, with the arithmetic.
    pub fn allow(&self, cell: &Cell) -> Result<(), String> {
        match self.locked {
            Some(limit) if needed(cell) > limit => Err(self.refusal(cell)),
            _ => Ok(()),
        }
    }

    /// The largest zero-copy message of one thread, to a page; `None` for no
    /// limit.
    pub fn largest_message(&self) -> Option<Bytes> {
        let page_bytes = page_bytes() as u64;
        let pages = (self.locked?.0 / page_bytes).saturating_sub(PAGES_MORE);
        Some(Bytes(pages * page_bytes))
    }

    /// Why zero-copy messages of this cell cannot be sent, with the
    /// arithmetic.
    pub fn refusal(&self, cell: &Cell) -> String {
        let subject = match cell.threads {
            1 => "message needs".to_owned(),
            threads => format!("one message of each of {threads} threads needs"),
        };
        let locked = match self.locked {
            Some(limit) => format!("is {limit}"),
            None => "does not apply (unlimited, or CAP_IPC_LOCK)".to_owned(),
        };
        let optmem = self.optmem.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
        format!(
            "{subject} {} of locked memory, RLIMIT_MEMLOCK {locked}, optmem_max is {optmem}",
            needed(cell)
        )
    }
}

/// Locked memory that one zero-copy message of every thread needs.
fn needed(cell: &Cell) -> Bytes {
    let page_bytes = page_bytes() as u64;
    let pages = (cell.size.0 / page_bytes).saturating_add(PAGES_MORE);
    Bytes(pages.saturating_mul(page_bytes).saturating_mul(u64::from(cell.threads)))
}

#[cfg(test)]
pub(crate) mod tests;
