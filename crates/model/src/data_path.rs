//! The data path of a primitive as data: which hops the bytes take, who makes
//! them, and whether the hop copies. Diagrams and the copy ledger come from
//! here, never from prose.

use serde::Serialize;

/// Who moves the bytes over a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The sending process.
    Sender,
    /// The receiving process.
    Receiver,
}

/// What happens to the bytes on a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Movement {
    /// A CPU reads and writes every byte.
    Copy,
    /// Only a reference to the pages moves.
    Reference,
}

/// One step of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// Where the bytes are before, in two or three words.
    pub from: &'static str,
    /// Where they are after.
    pub to: &'static str,
    /// The end whose work this is.
    pub end: End,
    /// Who moves them.
    pub mover: Mover,
    /// The function that does it: the kernel's own name, or `memcpy`.
    pub function: &'static str,
    /// Copy or reference.
    pub movement: Movement,
}

/// System calls a primitive needs to send one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallsPerMessage {
    /// This many, when no call is cut short.
    Fixed(u32),
    /// One per non-empty field.
    PerField,
}

/// All hops of a message in order, and the system calls that cause them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DataPath {
    /// Hops in the order in which the bytes take them.
    pub hops: &'static [Hop],
    /// Calls at the sender.
    pub calls: CallsPerMessage,
}

impl DataPath {
    /// CPU copies of each payload byte made at the sender.
    #[must_use]
    pub fn copies_sender(&self) -> u32 {
        self.copies(|hop| hop.end == End::Sender)
    }

    /// CPU copies of each payload byte from the sender's fields to the
    /// receiver's buffer.
    #[must_use]
    pub fn copies_end_to_end(&self) -> u32 {
        self.copies(|_| true)
    }

    fn copies(&self, counts: impl Fn(&Hop) -> bool) -> u32 {
        let copied = |hop: &&Hop| {
            counts(hop) && hop.movement == Movement::Copy && hop.mover != Mover::Device
        };
        u32::try_from(self.hops.iter().filter(copied).count()).unwrap_or(u32::MAX)
    }
}
