//! The axes of a study and the values each can take: the same words in plans,
//! flags, columns and pages.

/// Declares an enum whose values have one word each: `ALL` in the order in which they stand,
/// and `word`. What is derived is the caller's.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $word:expr,)+
    }) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every value, in the order in which it is documented.
            $vis const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The words for this value.
            $vis fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }
    };
}

/// Declares an axis: an enum whose values have one word each, which is what
/// serde, `Display`, `FromStr` and "expected one of" all use.
macro_rules! axis {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $crate::words! {
            $(#[$meta])*
            #[derive(
                Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
                serde::Serialize, serde::Deserialize,
            )]
            pub enum $name {
                $($(#[$doc])* #[serde(rename = $word)] $variant = $word,)+
            }
        }

        impl $name {
            /// The value of a word.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

pub(crate) use axis;

axis! {
    /// What is studied.
    Study {
        /// Messages through sockets.
        Net = "net",
        /// What a crossing into the kernel costs.
        Syscall = "syscall",
        /// Blocks of a file.
        File = "file",
        /// Blocks written to a file.
        Write = "write",
        /// Whole files, copied.
        Copy = "copy",
        /// Requests to a server.
        Server = "server",
        /// Operations of programs of the user's.
        Ab = "ab",
    }
}

impl Study {
    /// Those that `iolens run` measures: all but `ab`, which has a command of its own.
    pub const OF_RUN: &[Study] =
        &[Study::Net, Study::File, Study::Write, Study::Copy, Study::Syscall, Study::Server];

    /// One of these by its word.
    pub fn of_run(word: &str) -> Option<Study> {
        Study::OF_RUN.iter().copied().find(|study| study.word() == word)
    }

    /// Whether the size of a unit of work is an axis.
    pub fn has_sizes(self) -> bool {
        match self {
            Study::Net | Study::File | Study::Write | Study::Copy => true,
            Study::Syscall | Study::Server | Study::Ab => false,
        }
    }

    /// Whether its arms are engines that move blocks of a file.
    pub fn has_blocks(self) -> bool {
        match self {
            Study::File | Study::Write => true,
            Study::Net | Study::Syscall | Study::Copy | Study::Server | Study::Ab => false,
        }
    }

    /// What a unit of work is called.
    pub fn unit(self) -> &'static str {
        match self {
            Study::Net => "message",
            Study::Syscall => "call",
            Study::File | Study::Write => "block",
            Study::Copy => "copy",
            Study::Server => "request",
            Study::Ab => "operation",
        }
    }

    /// Several of them.
    pub fn units(self) -> &'static str {
        match self {
            Study::Net => "messages",
            Study::Syscall => "calls",
            Study::File | Study::Write => "blocks",
            Study::Copy => "copies",
            Study::Server => "requests",
            Study::Ab => "operations",
        }
    }

    /// What an arm is called.
    pub fn arm(self) -> &'static str {
        match self {
            Study::Net | Study::Copy | Study::Syscall | Study::Ab => "arm",
            Study::File | Study::Write => "engine",
            Study::Server => "model",
        }
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
        /// One end here, the other one on another machine, over the network between them.
        Host = "peer",
    }
}

impl Topology {
    /// Whether anybody receives what is sent there.
    pub fn has_receiver(self) -> bool {
        match self {
            Topology::Loopback | Topology::Veth | Topology::Host => true,
            Topology::Sink => false,
        }
    }

    /// Whether a call that receives there can poll a device: those that loop back have no NAPI
    /// instance, and one that drops everything delivers nothing.
    pub fn can_be_polled(self) -> bool {
        matches!(self, Topology::Veth | Topology::Host)
    }

    /// Whether its ends are on two machines.
    pub fn is_apart(self) -> bool {
        self == Topology::Host
    }
}

axis! {
    /// Which end is on this machine, where the other one is on another.
    Direction {
        /// The sending end.
        Tx = "tx",
        /// The receiving end.
        Rx = "rx",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro derives the same for all axes")]
impl Default for Direction {
    fn default() -> Direction {
        Direction::Tx
    }
}

impl Direction {
    /// What this machine does, and what the other one does.
    pub fn words(self) -> [&'static str; 2] {
        match self {
            Direction::Tx => ["sends", "receives"],
            Direction::Rx => ["receives", "sends"],
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
        PerMessage = "per-message",
        /// Once, before the first message: the upper bound of what reuse saves.
        Prepared = "prebuilt",
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

/// The words of axes that have several values; some have none for a usual one.
pub(crate) fn several(
    rows: impl IntoIterator<Item = (usize, impl Into<Option<String>>)>,
) -> Vec<String> {
    rows.into_iter().filter(|(values, _)| *values > 1).filter_map(|(_, word)| word.into()).collect()
}

/// Each of `all` with each of the values, in this order.
pub(crate) fn crossed<C: Clone, T>(all: Vec<C>, values: &[T], set: impl Fn(&mut C, &T)) -> Vec<C> {
    let pairs = all.iter().flat_map(|one| values.iter().map(move |value| (one, value)));
    let with = |(one, value): (&C, &T)| {
        let mut one = one.clone();
        set(&mut one, value);
        one
    };
    pairs.map(with).collect()
}

/// How many [`crossed`] makes at most of axes with so many values, also on its way to none;
/// `None` where that is no number.
pub(crate) fn product(lengths: impl IntoIterator<Item = usize>) -> Option<usize> {
    lengths.into_iter().try_fold(1_usize, |all, length| all.checked_mul(length.max(1)))
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
