//! Every system call and every unsafe block of iolens, one file per kernel
//! facility. No policy: nothing here retries, logs or guesses; `EINTR`, short
//! counts and time-outs are the caller's business.
//!
//! Measured calls go through the C library's wrappers, because that is what
//! programs pay. Set-up calls use rustix.

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

pub mod addresses;
pub mod affinity;
pub mod calls;
pub mod child;
pub mod clock;
pub mod cpuid;
pub mod durable;
pub mod epoll;
pub mod errno;
pub mod ethtool;
pub mod event;
pub mod file;
pub mod fork;
pub mod io_uring;
pub mod kin;
pub mod last_word;
pub mod launch;
pub mod lock;
pub mod memory;
pub mod netlink;
pub mod netns;
pub mod packet;
pub mod pages;
pub mod peek;
pub mod perf_event;
pub mod pipe;
pub mod poll;
pub mod proc;
pub mod proc_stat;
pub mod process;
pub mod ring;
pub mod scan;
pub mod seccomp;
pub mod select;
pub mod shared;
pub mod signal;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
pub mod socket;
pub mod splice;
pub mod storage;
pub mod sysctl;
pub mod tcp;
pub mod tcp_client;
pub mod tcp_server;
pub mod terminal;
pub mod tracing;
pub mod udp;
pub mod unix;
pub mod usage;
pub mod vsock;
pub mod xdp;
pub mod zerocopy;
pub mod zerocopy_receive;
