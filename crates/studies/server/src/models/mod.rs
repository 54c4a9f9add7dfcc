//! The concurrency models: one file each, named after its id, and one line in
//! [`MODELS`]. The file's own documentation says which thread waits, for what, and in
//! which calls; everything else is the same in all of them.

mod entry;
mod epoll_et;
mod epoll_lt;
mod epoll_reuseport;
mod fork;
mod iterative;
mod poll;
mod prefork;
mod select;
mod select_large;
mod thread_per_connection;
mod thread_pool;
mod tokio;
mod uring;

pub use self::entry::{Docs, Entry, Makes, Workers};

/// Every model, sorted by id.
pub const MODELS: &[&Entry] = &[
    &epoll_et::ENTRY,
    &epoll_lt::ENTRY,
    &epoll_reuseport::ENTRY,
    &fork::ENTRY,
    &iterative::ENTRY,
    &poll::ENTRY,
    &prefork::ENTRY,
    &select::ENTRY,
    &select_large::ENTRY,
    &thread_per_connection::ENTRY,
    &thread_pool::ENTRY,
    &tokio::ENTRY,
    &uring::ENTRY,
];

/// The model of an id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    MODELS.iter().copied().find(|entry| entry.id == id)
}

/// Whether that is a model which keeps a process or a thread for each connection; not of
/// a program that this build does not know.
#[must_use]
pub fn keeps(id: &str) -> bool {
    find(id).is_some_and(|entry| entry.makes != Makes::Nothing)
}
