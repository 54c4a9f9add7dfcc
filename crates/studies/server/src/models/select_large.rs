//! `select_large`: as `select`, with sets that grow with the descriptors. The
//! kernel takes sets of any length; the C library's type and macros do not, so a
//! program has to make them itself.
//!
//! Needs: a descriptor for each connection; a call takes longer the larger the
//! largest one is.

use super::entry::{Docs, Entry, never_waits};
use super::select;

/// The registry entry.
pub(super) static ENTRY: Entry = never_waits(
    "select_large",
    "select with larger sets than the C library has",
    |context, listeners| select::run(context, listeners, usize::MAX),
    DOCS,
);

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "like select, with sets as long as the largest descriptor needs",
        "one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "select below 1024 descriptors, where the two should not differ, and poll \
        above.",
    not_shown: "What a portable program can do: the kernel takes larger sets, POSIX and the C \
        library do not.",
};
