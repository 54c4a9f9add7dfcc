//! A program of the user's that sends: what it is told, and the facts of it that arms carry
//! ([`ArmFact`](crate::outcome::ArmFact)).

use std::net::SocketAddr;

use crate::units::Bytes;

/// What a program that sends is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderTask {
    /// Whom it is to connect to: `{host}` and `{port}`.
    pub receiver: SocketAddr,
    /// Bytes of a message: `{size}`.
    pub size: Bytes,
    /// Threads, each with a connection of its own: `{threads}`.
    pub threads: u32,
    /// Messages over all threads, after which it ends: `{messages}`. One that does not ask for
    /// them sends until it is killed.
    pub messages: u64,
    /// Longer than it will be left to run, in seconds: `{seconds}`.
    pub seconds: u64,
}

/// The fact of a program that sends which says whether its socket has `TCP_NODELAY`: `on` or
/// [`NODELAY_OFF`].
pub const NODELAY: &str = "TCP_NODELAY";

/// The value of [`NODELAY`] of a program whose small messages may be held back (tcp(7)).
pub const NODELAY_OFF: &str = "off";

/// The fact of a program that sends which says how large its send buffer is, bytes, as the kernel
/// reads it back.
pub const SEND_BUFFER: &str = "SO_SNDBUF, bytes";

/// The same of the methods beside it.
pub const OUR_SEND_BUFFER: &str = "SO_SNDBUF of the methods of iolens, bytes";

/// The fact of a program that sends which says how many connections it made, where they are not
/// one for each thread.
pub const CONNECTIONS: &str = "connections";
