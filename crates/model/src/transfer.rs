//! One transfer by hand: what one end of it did.

use serde::{Deserialize, Serialize};

use crate::data_path::End;
use crate::outcome::ZerocopyCounts;
use crate::reading::Status;
pub use crate::units::Cpu;
use crate::units::{Bytes, Nanos};

/// What one end of a transfer did, summed over its connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Which end this is.
    pub end: End,
    /// The primitive that sent, or the receiver that received.
    pub primitive: String,
    /// The address that the sending end listened on.
    pub address: String,
    /// Connections, each with a thread of its own.
    pub connections: u32,
    /// Whether it ran to its end.
    pub status: Status,
    /// Why not.
    pub reason: Option<String>,
    /// Payload bytes of a message; `None` at a receiving end that was not told.
    pub message_bytes: Option<Bytes>,
    /// Payload bytes the kernel accepted, or delivered.
    pub bytes: u64,
    /// Of these, what moved within `time`: at the receiving end without the first receive of each
    /// connection, since the time begins when that has returned.
    pub timed_bytes: u64,
    /// Messages sent, or received in whole; `None` where their size is not known.
    pub messages: Option<u64>,
    /// System calls that moved, or tried to move, payload.
    pub calls: u64,
    /// From the first call to `until` at the sending end, from the first bytes
    /// at the receiving one.
    pub time: Nanos,
    /// What ended the time.
    pub until: Until,
    /// Zero-copy sends; `None` for primitives that make none.
    pub zerocopy: Option<ZerocopyCounts>,
    /// Payload bytes that were mapped; `None` for receivers that map none.
    pub mapped_bytes: Option<u64>,
    /// CPU time of this process over the transfer, set-up left out; `None` where
    /// it cannot be read.
    pub cpu: Option<Cpu>,
    /// What each connection carried, in the order in which they were made.
    pub each: Vec<OfConnection>,
    /// What the kernel made of the options of the first connection, and what
    /// the primitive says about itself: names and values.
    pub facts: Vec<(String, String)>,
}

/// What one connection of a transfer carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfConnection {
    /// The address at its other end.
    pub peer: String,
    /// Payload bytes.
    pub bytes: u64,
    /// Of these, what moved within `time`.
    pub timed_bytes: u64,
    /// From its own first call, or bytes, to what ended its time.
    pub time: Nanos,
}

impl OfConnection {
    /// Payload bits per second; `None` where nothing moved within the time.
    pub fn goodput_bits_per_s(&self) -> Option<f64> {
        bits_per_s(self.timed_bytes, self.time)
    }
}

fn bits_per_s(bytes: u64, time: Nanos) -> Option<f64> {
    (time.0 > 0 && bytes > 0).then(|| bytes as f64 * 8e9 / time.0 as f64)
}

/// What ended the time of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The last receiver had read everything and closed its end: the receipt.
    Receipt,
    /// The last receiver's kernel had acknowledged everything; the receiver
    /// itself gave no receipt, and may have read it later.
    Acknowledgement,
    /// The last call of a transfer that was cut short.
    LastCall,
    /// The end of the last stream was received.
    EndOfStream,
}

impl Transfer {
    /// Whether the time says nothing: each stream came whole in its first receive.
    pub fn came_at_once(&self) -> bool {
        self.bytes > 0 && self.timed_bytes == 0
    }

    /// Payload bits per second; `None` where nothing moved within the time.
    pub fn goodput_bits_per_s(&self) -> Option<f64> {
        bits_per_s(self.timed_bytes, self.time)
    }

    /// Time over the messages of all connections that moved within it, and parts of messages;
    /// `None` where there are none, or they are not known.
    pub fn ns_per_message(&self) -> Option<f64> {
        let messages = self.messages.filter(|&messages| messages > 0 && self.timed_bytes > 0)?;
        let timed_share = self.timed_bytes as f64 / self.bytes as f64;
        Some(self.time.0 as f64 / (messages as f64 * timed_share))
    }

    /// Messages over calls; `None` where messages are not known or nothing was
    /// called.
    pub fn messages_per_call(&self) -> Option<f64> {
        let messages = self.messages.filter(|_| self.calls > 0)?;
        Some(messages as f64 / self.calls as f64)
    }

    /// Share of the bytes that were mapped, 0 to 1; `None` for receivers that map
    /// none.
    pub fn mapped_share(&self) -> Option<f64> {
        let mapped = self.mapped_bytes.filter(|_| self.bytes > 0)?;
        Some(mapped as f64 / self.bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's ticks come every 1 to 10 ms: of few of them no share can be had.
    #[test]
    fn a_short_time_has_no_parts() {
        let cpu = |user, system| Cpu { user: Nanos(user), system: Nanos(system) };
        assert_eq!(cpu(0, 28_000_000).in_words(""), "28.0 ms");
        assert_eq!(cpu(49_000_000, 0).in_words(" (1 ns/B)"), "49.0 ms (1 ns/B)");
        assert_eq!(cpu(25_000_000, 24_900_000).in_words(""), "49.9 ms");
        let least = cpu(20_000_000, 30_000_000).in_words("");
        assert_eq!(least, "50.0 ms, 20.0 ms of it user and 30.0 ms system");
        assert_eq!(cpu(0, 300_000_000).in_words(""), "300 ms");
        assert_eq!(cpu(300_000_000, 0).in_words(""), "300 ms");
        let long = cpu(100_000_000, 200_000_000).in_words("");
        assert_eq!(long, "300 ms, 100 ms of it user and 200 ms system");
    }

    #[test]
    fn what_is_not_known_has_no_ratio() {
        let transfer = Transfer {
            end: End::Receiver,
            primitive: "recv".to_owned(),
            address: "127.0.0.1:1".to_owned(),
            connections: 1,
            status: Status::Ok,
            reason: None,
            message_bytes: None,
            bytes: 1000,
            timed_bytes: 1000,
            messages: None,
            calls: 4,
            time: Nanos(2_000),
            until: Until::EndOfStream,
            zerocopy: None,
            mapped_bytes: Some(250),
            cpu: None,
            each: Vec::new(),
            facts: Vec::new(),
        };
        assert_eq!(transfer.goodput_bits_per_s(), Some(4e9));
        assert_eq!((transfer.messages_per_call(), transfer.mapped_share()), (None, Some(0.25)));
        let known = Transfer { messages: Some(8), mapped_bytes: None, ..transfer.clone() };
        assert_eq!((known.messages_per_call(), known.mapped_share()), (Some(2.0), None));
        assert_eq!((transfer.ns_per_message(), known.ns_per_message()), (None, Some(250.0)));
        let nothing = Transfer {
            bytes: 0,
            timed_bytes: 0,
            messages: Some(0),
            calls: 0,
            time: Nanos(0),
            ..transfer.clone()
        };
        assert_eq!((nothing.goodput_bits_per_s(), nothing.messages_per_call()), (None, None));
        assert_eq!(nothing.mapped_share(), None);
        of_a_short_stream(transfer);
    }

    /// 384 KiB in three receives, the last two of which took 262 144 ns: 8 Gbit/s, not 12.
    fn of_a_short_stream(like: Transfer) {
        let peer = String::new();
        let (bytes, timed_bytes, time) = (384 << 10, 256 << 10, Nanos(262_144));
        let short = Transfer { bytes, timed_bytes, messages: Some(6), time, ..like };
        assert_eq!((short.goodput_bits_per_s(), short.came_at_once()), (Some(8e9), false));
        assert_eq!(short.ns_per_message(), Some(65_536.0));
        let one = OfConnection { peer, bytes, timed_bytes, time };
        assert_eq!(one.goodput_bits_per_s(), Some(8e9));
        let at_once = OfConnection { timed_bytes: 0, ..one };
        assert_eq!(at_once.goodput_bits_per_s(), None);
        let at_once = Transfer { timed_bytes: 0, ..short };
        assert_eq!((at_once.goodput_bits_per_s(), at_once.ns_per_message()), (None, None));
        assert!(at_once.came_at_once());
    }
}
