//! Single system calls as arms: what the study `syscall` compares. A call is an
//! entry in a file of its kind and a line in [`CALLS`]; every call's result is
//! checked on every call, in a loop that is compiled for it.
//!
//! What a call uses up is made outside the clock, before each slice: a close
//! needs a descriptor to close, a page fault a page that is not there. Such a
//! call has a limit of how many one slice holds ([`Entry::most`]). Where even that
//! is not possible, two calls are one unit and the entry says so.

#![forbid(unsafe_code)]

mod descriptors;
mod entry;
mod files;
mod memory;
mod transfers;
mod waits;

pub use self::entry::{Asked, Entry, OfFile, Setup, UsersFile};

/// Every call, sorted by id.
pub const CALLS: &[&Entry] = &[
    &waits::CLOCK_GETTIME,
    &waits::CLOCK_GETTIME_VDSO,
    &descriptors::CLOSE,
    &descriptors::DUP,
    &waits::EPOLL_WAIT,
    &memory::FAULT_ANONYMOUS,
    &memory::FAULT_FILE,
    &files::FSTAT,
    &files::FSYNC,
    &waits::FUNCTION,
    &waits::FUTEX_WAKE,
    &waits::GETPPID,
    &waits::IO_URING_ENTER,
    &waits::IO_URING_NOP,
    &transfers::LSEEK,
    &memory::MMAP_MUNMAP,
    &memory::MMAP_POPULATE,
    &descriptors::OPEN,
    &descriptors::OPEN_CLOSE,
    &transfers::PREAD,
    &transfers::PWRITE,
    &transfers::READ_BAD,
    &transfers::READ_FILE,
    &transfers::READ_PIPE,
    &transfers::READ_ZERO,
    &transfers::READV,
    &files::STAT,
    &files::STATX,
    &transfers::WRITE_FILE,
    &transfers::WRITE_NULL,
    &transfers::WRITE_PIPE,
];

/// The entry of an id.
pub fn find(id: &str) -> Option<&'static Entry> {
    CALLS.iter().copied().find(|entry| entry.id == id)
}

#[cfg(test)]
mod tests;
