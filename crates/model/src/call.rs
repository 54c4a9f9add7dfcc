//! Calls of the study `syscall`, as a run knew them.

use serde::{Deserialize, Serialize};

use crate::axes::axis;
use crate::cell::Cell;
use crate::external::External;

axis! {
    /// What a call is listed with.
    CallKind {
        /// What lies under every other call.
        Floors = "floors",
        /// A block to the kernel, or from it.
        Bytes = "bytes",
        /// Descriptors made and closed.
        Descriptors = "descriptors",
        /// Questions about files, and their way to the device.
        Files = "files",
        /// Memory mapped and touched.
        Memory = "memory",
        /// Waiting, waking, rings.
        Waits = "waits",
    }
}

/// A call as a run knew it, whatever a later build says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFacts {
    /// Id of the registry entry.
    pub id: String,
    /// What it is listed with.
    pub kind: CallKind,
    /// What is done, in one line.
    pub summary: String,
    /// System calls of one unit.
    pub calls: u32,
    /// Bytes that one unit moves where a cell has no size; 0 where it moves none.
    pub bytes: u32,
    /// Units that a thread's slice has at most; `None` where there is no end.
    pub most: Option<u32>,
}

impl CallFacts {
    /// Bytes that one unit moves in a cell.
    pub fn bytes_in(&self, cell: &Cell) -> u64 {
        match (self.bytes, cell.size.0) {
            (own, 0) => own.into(),
            (0, _) => 0,
            (_, block) => block,
        }
    }
}

/// The axes of `syscall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallAxes {
    /// Calls in a row that a slice is; `None` for as many as fill it. A number is
    /// a question about one thread and block: its cells have the first thread count and the
    /// first size alone.
    pub in_a_row: Vec<Option<u64>>,
    /// A file of the user's that calls are about; `None` for files of ours.
    pub file: Option<String>,
    /// Programs of the user's that are arms; they speak the loop protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<External>,
}
