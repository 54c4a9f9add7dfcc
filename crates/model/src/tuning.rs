//! Settings of a cell that most plans leave alone: the network under the
//! connection, the sizes of buffers and batches. One list of them, from which
//! follow the setting of a cell, the axes of a plan, and the columns of exports.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::axes::{IpVersion, Topology, crossed};
use crate::parse;
use crate::units::Bytes;

/// What has a use for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// Every arm.
    Every,
    /// A veth pair, whichever the arm.
    Veth,
    /// Whoever receives, whichever the arm.
    Receiver,
    /// Arms that read zero-copy completions with calls of their own.
    Completions,
    /// Arms that send through a ring of io_uring.
    Rings,
    /// A network whose devices can be polled, whichever the arm.
    Polled,
}

/// An axis of a plan, as far as it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedAxis {
    /// The field of [`Tuning`] and [`TuningAxes`].
    pub field: &'static str,
    /// What has a use for it.
    pub concern: Concern,
    /// How many values it has.
    pub values: usize,
}

/// Makes the types. An entry is
/// ```text
/// field: type = usual value, what it concerns, |tuning| its words;
/// ```
/// with no words where it does not apply, or says nothing of its own. The first token is the sign
/// for what a macro is given, for the macro that this one makes.
macro_rules! settings {
    ($d:tt $($(#[$doc:meta])+ $field:ident: $type:ty = $usual:expr, $concern:ident,
        |$tuning:ident| $words:expr;)+) => {
        /// What all arms of a cell have in common beyond what a plan is about.
        /// What does not apply in a cell is `None`, so that it does not tell
        /// cells apart.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(deny_unknown_fields)]
        pub struct Tuning {
            $($(#[$doc])+ pub $field: $type,)+
        }

        /// The values of each that a plan has.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct TuningAxes {
            $(#[doc = concat!("As of [`Tuning::", stringify!($field), "`].")]
            pub $field: Vec<$type>,)+
        }

        impl Tuning {
            /// What a plan that states nothing has where all of it applies; see
            /// docs/journal for the measurements behind the sizes.
            pub const DEFAULT: Tuning = Tuning { $($field: $usual,)+ };

            /// The fields, which are columns of exports.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field),)+];

            /// Each setting in words, in the order of the fields.
            pub fn words(self) -> Vec<Option<String>> {
                vec![$({
                    let $tuning = self;
                    $words
                },)+]
            }
        }

        /// Those of [`Tuning::DEFAULT`].
        impl Default for TuningAxes {
            fn default() -> TuningAxes {
                TuningAxes { $($field: vec![Tuning::DEFAULT.$field],)+ }
            }
        }

        impl TuningAxes {
            /// Every setting, in the order of the fields.
            fn all(&self) -> Vec<Tuning> {
                let all = vec![Tuning::DEFAULT];
                $(let all = crossed(all, &self.$field, |one, &value| one.$field = value);)+
                all
            }

            /// That setting alone.
            fn only(setting: Tuning) -> TuningAxes {
                TuningAxes { $($field: vec![setting.$field],)+ }
            }

            /// The first value of each.
            fn first(&self) -> Tuning {
                let mut first = Tuning::DEFAULT;
                $(first.$field = self.$field.first().copied().unwrap_or(first.$field);)+
                first
            }

            /// How many values each has, in the order of the fields.
            pub fn lengths(&self) -> Vec<usize> {
                vec![$(self.$field.len(),)+]
            }

            /// Those that are not as a plan has them which states nothing.
            pub fn changed(&self) -> Vec<ChangedAxis> {
                let usual = TuningAxes::default();
                let all = [$((self.$field != usual.$field).then_some(ChangedAxis {
                    field: stringify!($field),
                    concern: Concern::$concern,
                    values: self.$field.len(),
                }),)+];
                all.into_iter().flatten().collect()
            }
        }

        /// Calls a macro with the fields of [`tuning::Tuning`](crate::tuning::Tuning).
        #[macro_export]
        macro_rules! with_tuning_fields {
            ($d then:ident) => { $d then! { $($field)+ } };
        }
    };
}

settings! { $
    /// The internet protocol.
    ip: IpVersion = IpVersion::V4, Every, |tuning| Some(tuning.ip.to_string());
    /// MTU of the veth pair, headers of IP and TCP included; `None` where the
    /// device is not one.
    mtu_bytes: Option<u32> = Some(1500), Veth, |tuning| {
        tuning.mtu_bytes.map(|bytes| format!("MTU {bytes}"))
    };
    /// `SO_SNDBUF` and `SO_RCVBUF`, before the kernel doubles it.
    socket_buffer_bytes: Bytes = Bytes(512 << 10), Every, |tuning| {
        Some(format!("socket buffer {}", tuning.socket_buffer_bytes))
    };
    /// Bytes asked of one receiving call, whatever the message size; `None` where
    /// nobody receives.
    receive_size_bytes: Option<Bytes> = Some(Bytes(128 << 10)), Receiver, |tuning| {
        tuning.receive_size_bytes.map(|size| format!("receive size {size}"))
    };
    /// Zero-copy sends after which completions are read, as many as have come;
    /// null to read them when a message is to be used again that is still held.
    reap_batch: Option<u32> = None, Completions, |tuning| {
        let sends = tuning.reap_batch.map_or("when needed".to_owned(), |n| n.to_string());
        Some(format!("reap batch {sends}"))
    };
    /// Sends through a ring that are under way at once, at most.
    uring_depth: RingDepth = RingDepth::Batch, Rings, |tuning| {
        (tuning.ring_depth() != tuning.uring_batch)
            .then(|| format!("io_uring depth {}", tuning.ring_depth()))
    };
    /// Sends through a ring that one io_uring_enter(2) hands over.
    uring_batch: u32 = 1, Rings, |tuning| Some(format!("io_uring batch {}", tuning.uring_batch));
    /// Flags of a ring that sends.
    ring_flags: RingFlags = RingFlags::ONE_THREAD, Rings, |tuning| {
        Some(format!("ring flags {}", tuning.ring_flags))
    };
    /// How long a call that would sleep until something arrives polls the device first.
    busy_poll_us: BusyPoll = BusyPoll::OFF, Polled, |tuning| {
        let us = tuning.busy_poll_us.0.map_or("", |_| " µs");
        Some(format!("busy poll {}{us}", tuning.busy_poll_us))
    };
}

/// `SO_BUSY_POLL` of both ends, in microseconds (socket(7)), with devices that can be polled;
/// `None` leaves both as they are. 0 has the devices alone, so that the polling itself can be
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BusyPoll(pub Option<u32>);

impl BusyPoll {
    /// No polling, and devices as they are.
    pub const OFF: BusyPoll = BusyPoll(None);

    const WORD: &'static str = "off";

    /// The longest that is taken.
    const US_MAX: u32 = 1_000_000;
}

/// `off`, `50`.
impl fmt::Display for BusyPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str(BusyPoll::WORD),
            Some(us) => us.fmt(f),
        }
    }
}

impl FromStr for BusyPoll {
    type Err = String;

    fn from_str(text: &str) -> Result<BusyPoll, String> {
        match text.parse() {
            Ok(us) if us <= BusyPoll::US_MAX => Ok(BusyPoll(Some(us))),
            _ if text == BusyPoll::WORD => Ok(BusyPoll::OFF),
            _ => Err(format!(
                "`{text}` is not a polling time: write whole microseconds from 0 to {}, or `{}`",
                BusyPoll::US_MAX,
                BusyPoll::WORD
            )),
        }
    }
}

/// How a ring is set up: flags of io_uring_setup(2), as in include/uapi/linux/io_uring.h, in a
/// combination that the kernel takes, and what is registered, in bits that the kernel has no flags
/// in: the socket (`IOSQE_FIXED_FILE`), the ring itself (`IORING_ENTER_REGISTERED_RING`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RingFlags(u32);

impl RingFlags {
    const SQPOLL: u32 = 1 << 1;
    const COOP_TASKRUN: u32 = 1 << 8;
    const SINGLE_ISSUER: u32 = 1 << 12;
    const DEFER_TASKRUN: u32 = 1 << 13;
    const FIXED_FILE: u32 = 1 << 30;
    const REGISTERED_RING: u32 = 1 << 31;

    const NAMED: [(&'static str, u32); 6] = [
        ("coop_taskrun", RingFlags::COOP_TASKRUN),
        ("single_issuer", RingFlags::SINGLE_ISSUER),
        ("defer_taskrun", RingFlags::DEFER_TASKRUN),
        ("sqpoll", RingFlags::SQPOLL),
        ("fixed_file", RingFlags::FIXED_FILE),
        ("registered_ring", RingFlags::REGISTERED_RING),
    ];
    const NONE: &'static str = "none";

    /// Those of programs with one thread for each ring.
    pub const ONE_THREAD: RingFlags =
        RingFlags(RingFlags::SINGLE_ISSUER | RingFlags::DEFER_TASKRUN);

    /// The kernel's numbers.
    pub fn bits(self) -> u32 {
        self.0
    }

    fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    /// What the kernel would refuse (`io_uring_sanitise_params`,
    /// io_uring/io_uring.c).
    fn checked(self) -> Result<RingFlags, String> {
        if self.has(RingFlags::DEFER_TASKRUN) && !self.has(RingFlags::SINGLE_ISSUER) {
            return Err("defer_taskrun needs single_issuer: single_issuer+defer_taskrun".to_owned());
        }
        let by_thread = RingFlags::COOP_TASKRUN | RingFlags::DEFER_TASKRUN;
        if self.has(RingFlags::SQPOLL) && self.has(by_thread) {
            return Err("sqpoll cannot be combined with coop_taskrun or defer_taskrun: these \
                        defer work to the thread that sqpoll relieves"
                .to_owned());
        }
        Ok(self)
    }
}

/// `none`, `single_issuer+defer_taskrun`.
impl fmt::Display for RingFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = RingFlags::NAMED.into_iter().filter(|(_, flag)| self.has(*flag));
        let names: Vec<&str> = own.map(|(name, _)| name).collect();
        f.write_str(if names.is_empty() { RingFlags::NONE } else { "" })?;
        f.write_str(&names.join("+"))
    }
}

impl FromStr for RingFlags {
    type Err = String;

    fn from_str(text: &str) -> Result<RingFlags, String> {
        if text == RingFlags::NONE {
            return Ok(RingFlags(0));
        }
        let mut flags = 0;
        for word in text.split('+') {
            let Some((_, flag)) = RingFlags::NAMED.into_iter().find(|(name, _)| *name == word)
            else {
                let names = RingFlags::NAMED.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "unknown ring flag `{word}`; choose from: none, {names}, and sums"
                ));
            };
            flags |= flag;
        }
        RingFlags(flags).checked()
    }
}

parse::stored_as_text!(RingFlags);

/// Sends through a ring at once, at most.
pub const RING_SENDS_MAX: u32 = 256;

/// Sends through a ring that are under way at once. In a cell, a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RingDepth {
    /// As many as one call hands over.
    Batch,
    /// So many.
    Sends(u32),
}

impl RingDepth {
    const BATCH: &'static str = "batch";
}

/// `batch`, `16`.
impl fmt::Display for RingDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingDepth::Batch => f.write_str(RingDepth::BATCH),
            RingDepth::Sends(sends) => sends.fmt(f),
        }
    }
}

impl FromStr for RingDepth {
    type Err = String;

    fn from_str(text: &str) -> Result<RingDepth, String> {
        if text == RingDepth::BATCH {
            return Ok(RingDepth::Batch);
        }
        match parse::count(text) {
            Err(why) => Err(format!("{why}; or write `{}`", RingDepth::BATCH)),
            Ok(sends) => match u32::try_from(sends).ok().filter(|&n| n <= RING_SENDS_MAX) {
                Some(sends) => Ok(RingDepth::Sends(sends)),
                None => Err(format!(
                    "{sends} sends at once are too many: the largest number is {RING_SENDS_MAX}"
                )),
            },
        }
    }
}

impl Tuning {
    /// Sends through a ring that are under way at once.
    pub fn ring_depth(self) -> u32 {
        match self.uring_depth {
            RingDepth::Batch => self.uring_batch,
            RingDepth::Sends(sends) => sends,
        }
    }

    /// The same in a topology, where some of it may not apply.
    #[must_use]
    pub fn within(self, topology: Topology) -> Tuning {
        Tuning {
            mtu_bytes: self.mtu_bytes.filter(|_| topology == Topology::Veth),
            receive_size_bytes: self.receive_size_bytes.filter(|_| topology.has_receiver()),
            uring_depth: RingDepth::Sends(self.ring_depth()),
            busy_poll_us: if topology.can_be_polled() { self.busy_poll_us } else { BusyPoll::OFF },
            ..self
        }
    }

    /// The network that a trial makes.
    pub fn network(self) -> NetworkOptions {
        let default = NetworkOptions::default();
        NetworkOptions { ip: self.ip, mtu_bytes: self.mtu_bytes.unwrap_or(default.mtu_bytes) }
    }

    /// What is not as it is by default, in words.
    pub fn unusual(self) -> Vec<String> {
        let usual = Tuning::DEFAULT.words();
        let own = self.words().into_iter().zip(usual);
        own.filter_map(|(own, usual)| own.filter(|own| Some(own) != usual.as_ref())).collect()
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning::DEFAULT
    }
}

impl TuningAxes {
    /// Every setting, each once: what does not apply in a topology makes no
    /// cells.
    pub fn within(&self, topology: Topology) -> Vec<Tuning> {
        let mut seen = HashSet::new();
        let all = self.all().into_iter().map(|one| one.within(topology));
        all.filter(|one| seen.insert(*one)).collect()
    }

    /// The same with one setting alone, which has to be one of these in some
    /// topology. What does not apply there is not in it.
    pub fn at(&self, setting: Tuning) -> TuningAxes {
        let first = self.first();
        TuningAxes::only(Tuning {
            mtu_bytes: setting.mtu_bytes.or(first.mtu_bytes),
            receive_size_bytes: setting.receive_size_bytes.or(first.receive_size_bytes),
            uring_depth: match setting.ring_depth() == setting.uring_batch {
                true => RingDepth::Batch,
                false => setting.uring_depth,
            },
            ..setting
        })
    }
}

/// Socket settings asked of both ends in a trial; what the kernel made of them
/// is stored with it. The default is of studies that have none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SocketOptions {
    /// `TCP_CONGESTION`.
    pub congestion: String,
    /// `SO_SNDBUF` and `SO_RCVBUF`; the kernel doubles it and caps it at
    /// `net.core.wmem_max` and `rmem_max`.
    pub buffer_bytes: Bytes,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// Bytes asked of one `recv`, whatever the message size.
    pub receive_bytes: Bytes,
}

/// The network between the ends of a trial. Over loopback only the protocol is
/// ours to choose; the device is the machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkOptions {
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// MTU of a veth pair, headers of IP and TCP included.
    pub mtu_bytes: u32,
}

impl NetworkOptions {
    /// MTU of the device of [`Topology::Sink`]: the largest, so that a datagram
    /// of any length goes out in one piece.
    pub const SINK_MTU_BYTES: u32 = 65_535;

    /// MTU of the device that we make for a topology; `None` where it is the
    /// machine's.
    pub fn device_mtu_bytes(self, topology: Topology) -> Option<u32> {
        match topology {
            Topology::Loopback | Topology::Host => None,
            Topology::Veth => Some(self.mtu_bytes),
            Topology::Sink => Some(NetworkOptions::SINK_MTU_BYTES),
        }
    }

    /// The largest message that is one datagram in [`Topology::Sink`]: its MTU
    /// less the headers of IP (RFC 791, RFC 8200) and UDP (RFC 768).
    pub fn datagram_max(self) -> Bytes {
        const UDP_HEADER_BYTES: u32 = 8;
        let ip_header_bytes = match self.ip {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        };
        let headers_bytes = ip_header_bytes + UDP_HEADER_BYTES;
        Bytes(u64::from(NetworkOptions::SINK_MTU_BYTES - headers_bytes))
    }
}

/// IPv4 with the MTU of Ethernet.
impl Default for NetworkOptions {
    fn default() -> Self {
        NetworkOptions { ip: IpVersion::V4, mtu_bytes: 1500 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_or_does_not_apply_is_not_said() {
        for &topology in Topology::ALL {
            assert!(Tuning::DEFAULT.within(topology).unusual().is_empty(), "{topology}");
        }
        let deep = RingDepth::Sends(8);
        let tuning = Tuning { mtu_bytes: Some(9000), uring_depth: deep, ..Tuning::DEFAULT };
        assert_eq!(tuning.unusual(), ["MTU 9000", "io_uring depth 8"]);
        assert_eq!(tuning.within(Topology::Loopback).unusual(), ["io_uring depth 8"]);
        let chain =
            Tuning { uring_depth: RingDepth::Batch, uring_batch: 4, reap_batch: Some(2), ..tuning };
        assert_eq!(chain.unusual(), ["MTU 9000", "reap batch 2", "io_uring batch 4"]);
    }

    #[test]
    fn polling_is_off_or_a_time_and_only_where_a_device_can_be_polled() {
        for (text, polling) in [("off", None), ("0", Some(0)), ("50", Some(50))] {
            assert_eq!(
                (text.parse(), &*BusyPoll(polling).to_string()),
                (Ok(BusyPoll(polling)), text)
            );
        }
        let refused = ["", "-1", "1000001", "50us"].map(|text| text.parse::<BusyPoll>().is_err());
        assert_eq!(refused, [true; 4]);
        let polling = Tuning { busy_poll_us: BusyPoll(Some(50)), ..Tuning::DEFAULT };
        for (topology, words) in [(Topology::Veth, "busy poll 50 µs"), (Topology::Sink, "")] {
            assert_eq!(polling.within(topology).unusual().join(""), words);
        }
    }

    #[test]
    fn a_depth_is_written_as_it_is_read() {
        for depth in [RingDepth::Batch, RingDepth::Sends(16)] {
            assert_eq!(depth.to_string().parse(), Ok(depth));
            let json = serde_json::to_string(&depth).unwrap();
            assert_eq!(serde_json::from_str::<RingDepth>(&json).unwrap(), depth);
        }
        let refused = ["deep", "0", "257"].map(|text| text.parse::<RingDepth>().is_err());
        assert_eq!(refused, [true; 3]);
    }

    #[test]
    fn flags_of_a_ring_are_those_that_the_kernel_takes() {
        for text in [
            "none",
            "coop_taskrun",
            "single_issuer+defer_taskrun",
            "single_issuer+sqpoll",
            "sqpoll",
            "fixed_file",
            "single_issuer+defer_taskrun+fixed_file+registered_ring",
        ] {
            let flags: RingFlags = text.parse().unwrap();
            assert_eq!(flags.to_string(), text);
            let json = serde_json::to_string(&flags).unwrap();
            assert_eq!(serde_json::from_str::<RingFlags>(&json).unwrap(), flags);
        }
        assert_eq!("defer_taskrun+single_issuer".parse(), Ok(RingFlags::ONE_THREAD));
        for (text, why) in [
            ("defer_taskrun", "needs single_issuer"),
            ("sqpoll+coop_taskrun", "cannot be combined"),
            ("sqpol", "unknown ring flag `sqpol`; choose from: none, coop_taskrun,"),
            ("", "unknown ring flag"),
        ] {
            let refused = text.parse::<RingFlags>().unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn an_axis_is_changed_when_its_values_are_other_ones() {
        let axes = TuningAxes { uring_batch: vec![1, 4], ..TuningAxes::default() };
        let changed = ChangedAxis { field: "uring_batch", concern: Concern::Rings, values: 2 };
        assert_eq!(axes.changed(), [changed]);
        assert_eq!(axes.at(axes.within(Topology::Veth)[0]), TuningAxes::default());
    }
}
