//! The concurrency models, an entry each in [`MODELS`], which says which thread waits, for what,
//! and in which calls; everything else is the same in all of them.

pub(crate) mod blocking;
mod entry;
mod epoll;
mod fork;
mod prefork;
mod select_poll;
mod thread_pool;
mod tokio;
mod uring;

pub use self::entry::{Docs, Entry, Makes, Workers};

/// Every model, sorted by id.
pub const MODELS: &[&Entry] = &[
    &epoll::EPOLL_ET,
    &epoll::EPOLL_LT,
    &epoll::EPOLL_REUSEPORT,
    &fork::ENTRY,
    &blocking::ITERATIVE,
    &select_poll::POLL,
    &prefork::ENTRY,
    &select_poll::SELECT,
    &select_poll::SELECT_LARGE,
    &blocking::THREAD_PER_CONNECTION,
    &thread_pool::ENTRY,
    &tokio::ENTRY,
    &uring::ENTRY,
];

/// The model of an id.
pub fn find(id: &str) -> Option<&'static Entry> {
    MODELS.iter().copied().find(|entry| entry.id == id)
}

/// Whether that is a model which keeps a process or a thread for each connection; not of
/// a program that this build does not know.
pub fn keeps(id: &str) -> bool {
    find(id).is_some_and(|entry| entry.makes != Makes::Nothing)
}
