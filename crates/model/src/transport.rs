//! What the messages of an arm travel over.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What carries messages from one end to the other. It is the arm's, not the
/// cell's: a pipe and a TCP connection are compared in one trial, like two calls.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A TCP connection; in the topology `sink`, which has no receiver, UDP.
    #[default]
    Tcp,
    /// A TCP connection that may have several paths, and has one here
    /// (`IPPROTO_MPTCP`, RFC 8684).
    Mptcp,
    /// UDP: a message is a datagram, and may be lost.
    Udp,
    /// A stream socket of `AF_UNIX` (unix(7)).
    UnixStream,
    /// A pipe (pipe(7)): one way, and no socket.
    Pipe,
}

impl Transport {
    /// Every one that an arm can have.
    pub const ALL: [Transport; 5] =
        [Transport::Tcp, Transport::Mptcp, Transport::Udp, Transport::UnixStream, Transport::Pipe];

    /// The one word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Mptcp => "mptcp",
            Transport::Udp => "udp",
            Transport::UnixStream => "unix_stream",
            Transport::Pipe => "pipe",
        }
    }

    /// Whether a message may be lost on its way although its call succeeded.
    #[must_use]
    pub fn loses(self) -> bool {
        self == Transport::Udp
    }

    /// Whether what is sent passes the network device of the topology. What
    /// does not stays within this kernel, wherever the ends stand.
    #[must_use]
    pub fn passes_device(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Mptcp | Transport::Udp)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_what_is_stored() {
        for transport in Transport::ALL {
            let stored = serde_json::to_string(&transport).expect("a word");
            assert_eq!(stored, format!("\"{transport}\""));
        }
    }
}
