//! What the worker of the sending end has to know of how an arm sends.

use iolens_model::cell::Cell;
use iolens_model::transport::Transport;

use iolens_net::entry::{Ends, Entry};

/// How an arm sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// Which ends it has.
    pub(crate) ends: Ends,
    /// What its messages travel over.
    pub(crate) transport: Transport,
    /// Whether it pins pages, which `RLIMIT_MEMLOCK` limits.
    pub(crate) locks_memory: bool,
}

impl Way {
    /// That of a primitive.
    pub(crate) fn of(entry: &Entry) -> Way {
        let &Entry { ends, transport, locks_memory, .. } = entry;
        Way { ends, transport, locks_memory }
    }

    /// Whether there is a receiving end to what an arm sends.
    pub(crate) fn is_received(&self, cell: &Cell) -> bool {
        self.ends == Ends::Pair && cell.has_receiver()
    }
}
