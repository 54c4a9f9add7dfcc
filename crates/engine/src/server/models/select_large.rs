//! `select_large`: as `select`, with sets that grow with the descriptors. The
//! kernel takes sets of any length; the C library's type and macros do not, so a
//! program has to make them itself.
//!
//! Needs: a descriptor for each connection; a call takes longer the larger the
//! largest one is.

use super::{Entry, never_waits, select};

/// The registry entry.
pub(super) static ENTRY: Entry = never_waits(
    "select_large",
    "as select, with sets of any length, which the C library has not",
    |context, listeners| select::run(context, listeners, usize::MAX),
);
