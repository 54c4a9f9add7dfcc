//! The axes of a study and the values each can take: the same words in plans,
//! flags, columns and pages.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tuning::Tuning;
use crate::units::Bytes;

/// Declares an axis: an enum whose values have one word each, which is what
/// serde, `Display`, `FromStr` and "expected one of" all use.
macro_rules! axis {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the order in which it is documented.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The one word for this value.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The value of a word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

axis! {
    /// What is studied.
    Study {
        /// Messages through sockets.
        Net = "net",
    }
}

axis! {
    /// Where the two ends of a connection stand.
    Topology {
        /// Both ends in the network namespace iolens was started in, over `lo`.
        Loopback = "loopback",
        /// Each end in an unnamed network namespace of its own, with a veth
        /// pair between them.
        Veth = "veth",
        /// The sending end alone, with UDP into a device that drops all of it,
        /// in a namespace of our own.
        Sink = "sink",
    }
}

impl Topology {
    /// Whether anybody receives what is sent there.
    #[must_use]
    pub fn has_receiver(self) -> bool {
        match self {
            Topology::Loopback | Topology::Veth => true,
            Topology::Sink => false,
        }
    }
}

axis! {
    /// What travels on a connection, and when.
    Mode {
        /// One way, as fast as the receiver takes it.
        Stream = "stream",
        /// Request and response: the receiving end sends one byte, the sending
        /// end answers with a message; one request in flight per connection.
        Rr = "rr",
    }
}

axis! {
    /// How large the memory is from which messages are sent.
    WorkingSet {
        /// The rings of one arm fit the L2 cache.
        Hot = "hot",
        /// The rings of one arm are larger than the last-level cache.
        Cold = "cold",
    }
}

axis! {
    /// The internet protocol under TCP.
    IpVersion {
        /// IPv4.
        V4 = "ipv4",
        /// IPv6.
        V6 = "ipv6",
    }
}

axis! {
    /// When the iovec of a message is built.
    Iovec {
        /// For every message, as a program does that has just made its fields.
        PerMessage = "per_message",
        /// Once, before the first message: the upper bound of what reuse saves.
        Prepared = "prepared",
    }
}

axis! {
    /// When events of perf_event_open(2) are open.
    #[derive(Default)]
    Counting {
        /// In every slice.
        #[default]
        On = "on",
        /// In none.
        Off = "off",
        /// In every slice but those of the A/A arm, whose ratio then is what
        /// counting costs.
        Alternate = "alternate",
    }
}

/// One setting of the axes: what all arms of a trial have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Where the ends stand.
    pub topology: Topology,
    /// What travels.
    pub mode: Mode,
    /// Size of the memory that is sent from.
    pub working_set: WorkingSet,
    /// Fields per message, each allocated on its own; at least 1.
    pub fields: u32,
    /// When the iovec is built.
    pub iovec: Iovec,
    /// Receiver primitive, the same for all arms.
    pub receiver: String,
    /// What most plans leave alone.
    #[serde(default)]
    pub tuning: Tuning,
    /// Thread pairs, one connection each; at least 1. Sorts before the size,
    /// so that a table reads as one curve after another.
    pub threads: u32,
    /// Payload bytes of one message; at least 1.
    pub message_bytes: Bytes,
}

impl Cell {
    /// Fields of a message, where a plan states nothing.
    pub const FIELDS: u32 = 8;

    /// The receiver, where a plan states nothing.
    pub const RECEIVER: &'static str = "recv";

    /// A setting with the first value of every other axis, no thread and no
    /// byte: what the cells of a topology are made from.
    pub(crate) fn blank(topology: Topology) -> Cell {
        Cell {
            topology,
            mode: Mode::Stream,
            working_set: WorkingSet::Hot,
            fields: Cell::FIELDS,
            iovec: Iovec::PerMessage,
            receiver: String::new(),
            tuning: Tuning::DEFAULT.within(topology),
            threads: 0,
            message_bytes: Bytes(0),
        }
    }

    /// The setting without the size: cells that share it form one curve.
    #[must_use]
    pub fn curve(&self) -> Cell {
        Cell { message_bytes: Bytes(0), ..self.clone() }
    }

    /// `8 fields`.
    #[must_use]
    pub fn fields_in_words(&self) -> String {
        format!("{} field{}", self.fields, if self.fields == 1 { "" } else { "s" })
    }

    /// `iovec prepared`.
    #[must_use]
    pub fn iovec_in_words(&self) -> String {
        format!("iovec {}", self.iovec)
    }

    /// `received with recv`; null where nobody receives.
    #[must_use]
    pub fn receiver_in_words(&self) -> Option<String> {
        let is_named = self.topology.has_receiver() && !self.receiver.is_empty();
        is_named.then(|| format!("received with {}", self.receiver))
    }

    /// What is not as it is where a plan states nothing, in words.
    #[must_use]
    pub fn unusual(&self) -> Vec<String> {
        let fields = (self.fields != Cell::FIELDS).then(|| self.fields_in_words());
        let iovec = (self.iovec != Iovec::PerMessage).then(|| self.iovec_in_words());
        let receiver = self.receiver_in_words().filter(|_| self.receiver != Cell::RECEIVER);
        [fields, iovec, receiver].into_iter().flatten().chain(self.tuning.unusual()).collect()
    }
}

/// `64 KiB × 4 threads, loopback, stream, hot`, and whatever is not as it is
/// where a plan states nothing.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(
            f,
            "{} × {} thread{plural}, {}, {}, {}",
            self.message_bytes, self.threads, self.topology, self.mode, self.working_set
        )?;
        self.unusual().iter().try_for_each(|word| write!(f, ", {word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_leads_back_to_its_value() {
        for &value in Iovec::ALL {
            assert_eq!(Iovec::from_word(value.word()), Some(value));
        }
        assert_eq!(Topology::from_word("moon"), None);
    }
}
