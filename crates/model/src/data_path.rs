//! The data path of a primitive as data: which hops the bytes take, who makes
//! them, and whether the hop copies. Diagrams and the copy ledger come from
//! here, never from prose.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::family::{Condition, Family};
use crate::transport::Transport;

/// Who moves the bytes over a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mover {
    /// User code: ours stands for the application's.
    User,
    /// The kernel, on some CPU.
    Kernel,
    /// A device, by DMA.
    Device,
}

/// Which end's time the hop costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The sending process.
    Sender,
    /// The receiving process.
    Receiver,
}

/// What happens to the bytes on a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movement {
    /// A CPU reads and writes every byte.
    Copy,
    /// Only a reference to the pages moves.
    Reference,
    /// A reference that the kernel turns into a copy where the bytes do not
    /// leave through a device that takes it: always over loopback and veth.
    /// Which share was copied is measured, not declared.
    LateCopy,
    /// A reference where whole pages can be mapped into the receiver's address
    /// space, a copy of the rest. Which share was mapped is measured.
    Mapped,
    /// The bytes end here, and nobody has read them.
    Discarded,
}

/// One step of the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Where the bytes are before, in two or three words.
    pub from: Cow<'static, str>,
    /// Where they are after.
    pub to: Cow<'static, str>,
    /// The end whose work this is.
    pub end: End,
    /// Who moves them.
    pub mover: Mover,
    /// The function that does it: the kernel's own name, or `memcpy`.
    pub function: Cow<'static, str>,
    /// Copy or reference.
    pub movement: Movement,
}

/// System calls a primitive needs to send one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallsPerMessage {
    /// This many, when no call is cut short.
    Fixed(u32),
    /// One per non-empty field.
    PerField,
    /// One for up to this many messages.
    Shared(u32),
}

/// All hops of a message in order, and the system calls that cause them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPath {
    /// Hops in the order in which the bytes take them.
    pub hops: Cow<'static, [Hop]>,
    /// Calls at the sender.
    pub calls: CallsPerMessage,
}

impl DataPath {
    /// The path with the receiving end's hops replaced by `hops`, those of
    /// another receiver. A path that ends at the sender stays as it is.
    pub fn received_by(&self, hops: &[Hop]) -> DataPath {
        let is_sender = |hop: &&Hop| hop.end == End::Sender;
        let sender: Vec<Hop> = self.hops.iter().filter(is_sender).cloned().collect();
        if sender.len() == self.hops.len() {
            return self.clone();
        }
        let all = sender.into_iter().chain(hops.iter().cloned()).collect();
        DataPath { hops: Cow::Owned(all), calls: self.calls }
    }

    /// CPU copies of each payload byte made at the sender, if the share
    /// `late_share` (0 to 1) of the bytes was copied late.
    pub fn copies_sender(&self, late_share: f64) -> f64 {
        let shares = Shares { late: late_share, mapped: 0.0 };
        self.copies(shares, |hop| hop.end == End::Sender)
    }

    /// CPU copies of each payload byte from the sender's fields to the
    /// receiver's buffer, as above, if the share `mapped_share` (0 to 1) was
    /// mapped where the path may map.
    pub fn copies_end_to_end(&self, late_share: f64, mapped_share: f64) -> f64 {
        self.copies(Shares { late: late_share, mapped: mapped_share }, |_| true)
    }

    /// Whether the kernel decides at run time if it copies.
    pub fn may_copy_late(&self) -> bool {
        self.hops.iter().any(|hop| hop.movement == Movement::LateCopy)
    }

    /// Whether nothing of it is decided at run time.
    pub fn is_fixed(&self) -> bool {
        !self.may_copy_late() && !self.may_map()
    }

    /// Whether the kernel maps pages for the receiver, where it can.
    pub fn may_map(&self) -> bool {
        self.hops.iter().any(|hop| hop.movement == Movement::Mapped)
    }

    fn copies(&self, shares: Shares, counts: impl Fn(&Hop) -> bool) -> f64 {
        let copies = |hop: &Hop| match (hop.mover, hop.movement) {
            (Mover::Device, _) | (_, Movement::Reference | Movement::Discarded) => 0.0,
            (_, Movement::Copy) => 1.0,
            (_, Movement::LateCopy) => shares.late,
            (_, Movement::Mapped) => 1.0 - shares.mapped,
        };
        // An empty sum of floats would be -0.
        self.hops.iter().filter(|hop| counts(hop)).map(copies).fold(0.0, |sum, n| sum + n)
    }
}

/// What the kernel decided at run time, as shares of the bytes.
#[derive(Debug, Clone, Copy)]
struct Shares {
    late: f64,
    mapped: f64,
}

/// A primitive as a run knew it: what its diagrams and ledgers are drawn from,
/// whatever a later build says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimitiveFacts {
    /// Id of the registry entry.
    pub id: String,
    /// What it does, in one line.
    pub summary: String,
    /// What it is listed with.
    pub family: Family,
    /// What it needs of a message; `None` where it can send any.
    pub condition: Option<Condition>,
    /// What its messages travel over.
    pub transport: Transport,
    /// The path of the bytes, received with `recv`.
    pub data_path: DataPath,
}

/// A receiver as a run knew it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverFacts {
    /// Id of the registry entry.
    pub id: String,
    /// What it does, in one line.
    pub summary: String,
    /// The hops at the receiving end: they take the place of those of `recv`
    /// in the path of a primitive.
    pub hops: Cow<'static, [Hop]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(end: End, movement: Movement) -> Hop {
        let word = || Cow::Borrowed("");
        let mover = Mover::Kernel;
        Hop { from: word(), to: word(), end, mover, function: word(), movement }
    }

    fn path(hops: Vec<Hop>) -> DataPath {
        DataPath { hops: hops.into(), calls: CallsPerMessage::Fixed(1) }
    }

    #[test]
    fn a_receiver_takes_the_place_of_the_receive_copy_alone() {
        let (copy_in, copy_out) =
            (hop(End::Sender, Movement::Copy), hop(End::Receiver, Movement::Copy));
        let whole = path(vec![copy_in.clone(), copy_out]);
        assert_eq!((whole.copies_sender(0.0), whole.copies_end_to_end(0.0, 0.0)), (1.0, 2.0));
        let dropped = whole.received_by(&[hop(End::Receiver, Movement::Discarded)]);
        assert_eq!((dropped.copies_sender(0.0), dropped.copies_end_to_end(0.0, 0.0)), (1.0, 1.0));
        let mapped = whole.received_by(&[hop(End::Receiver, Movement::Mapped)]);
        assert_eq!(mapped.copies_end_to_end(0.0, 0.75), 1.25);
        assert!(mapped.may_map() && !mapped.is_fixed() && whole.is_fixed());
        // What has no receiver gets none.
        let control = path(vec![copy_in]);
        assert_eq!(control.received_by(&[hop(End::Receiver, Movement::Mapped)]), control);
    }
}
