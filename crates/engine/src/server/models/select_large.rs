//! `select_large`: as `select`, with sets that grow with the descriptors. The
//! kernel takes sets of any length; the C library's type and macros do not, so a
//! program has to make them itself.
//!
//! Needs: a descriptor for each connection; a call takes longer the larger the
//! largest one is.

use super::{Entry, Makes, Workers, select};
use crate::server::NEVER;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "select_large",
    summary: "as select, with sets of any length, which the C library has not",
    makes: Makes::Nothing,
    workers: Workers::None,
    needs: "descriptors: RLIMIT_NOFILE",
    since: None,
    waiting: NEVER,
    others_wait: false,
    run: |context, listeners| select::run(context, listeners, usize::MAX),
};
