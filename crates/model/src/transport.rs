//! What the messages of an arm travel over, and programs of the user's that send them.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

crate::words! {
    /// What carries messages from one end to the other. It is the arm's, not the
    /// cell's: a pipe and a TCP connection are compared in one trial, like two calls.
    #[derive(
        Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Transport {
        /// A TCP connection; in the topology `sink`, which has no receiver, UDP.
        #[default]
        Tcp = "tcp",
        /// A TCP connection that may have several paths, and has one here
        /// (`IPPROTO_MPTCP`, RFC 8684).
        Mptcp = "mptcp",
        /// UDP: a message is a datagram, and may be lost.
        Udp = "udp",
        /// A stream socket of `AF_UNIX` (unix(7)).
        UnixStream = "unix_stream",
        /// A pipe (pipe(7)): one way, and no socket.
        Pipe = "pipe",
    }
}

impl Transport {
    /// Whether a message may be lost on its way although its call succeeded.
    pub fn loses(self) -> bool {
        self == Transport::Udp
    }

    /// Whether what is sent passes the network device of the topology. What
    /// does not stays within this kernel, wherever the ends stand.
    pub fn passes_device(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Mptcp | Transport::Udp)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

// A program of the user's that sends: what it is told, and the facts of it that arms carry
// ([`ArmFact`](crate::outcome::ArmFact)).

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_what_is_stored() {
        for &transport in Transport::ALL {
            let stored = serde_json::to_string(&transport).expect("a word");
            assert_eq!(stored, format!("\"{transport}\""));
        }
    }
}
