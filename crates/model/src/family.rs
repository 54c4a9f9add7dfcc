//! What a primitive is listed with, and what it needs of a message.

use std::fmt;

use serde::{Deserialize, Serialize};

crate::words! {
    /// Primitives that belong together: lists, figures and tables group by it, in
    /// this order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Family {
        /// The textbook comparison: two copies, one copy, none.
        Classic = "classic",
        /// System calls for contiguous and scattered memory.
        Plain = "plain",
        /// Pages are handed over instead of copied.
        PageMoving = "page_moving",
        /// Submission and completion rings.
        #[serde(rename = "io_uring")]
        IoUring = "io_uring",
        /// Messages that are packets.
        Datagram = "datagram",
        /// What is protocol and what is copy: other transports, and parts alone.
        Controls = "controls",
    }
}

impl Family {
    /// Its name, as headings have it.
    pub fn name(self) -> &'static str {
        match self {
            Family::Classic => "the classic three",
            Family::PageMoving => "page moving",
            other => other.word(),
        }
    }

    /// The family of an id.
    pub fn find(id: &str) -> Option<Family> {
        Family::ALL.iter().copied().find(|family| family.word() == id)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a message must be like for a primitive that cannot send any: over
/// fields that lie scattered, and are written anew for every message, it would
/// need the copy or the waiting that others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// It lies in one piece of memory already.
    Contiguous,
    /// It lies in a file already.
    InFile,
    /// It is a datagram, in one piece already, and may be lost.
    Datagram,
    /// Its memory stays as it is until the other end's program has read it.
    Unchanged,
}

impl Condition {
    /// For which messages a primitive with this condition can be used, after
    /// "only".
    pub fn words(self) -> &'static str {
        match self {
            Condition::Contiguous => "for a message that is contiguous already",
            Condition::InFile => "for a message that lies in a file already",
            Condition::Datagram => "for a message that is contiguous already and may be lost",
            Condition::Unchanged => {
                "for memory that is left as it is until the other end's program has read it"
            }
        }
    }

    /// The same as the heading of a column.
    pub fn heading(self) -> &'static str {
        match self {
            Condition::Contiguous => "if the message is contiguous already",
            Condition::InFile => "if it lies in a file already",
            Condition::Datagram => "if it is contiguous and may be lost",
            Condition::Unchanged => "if its memory is left as it is until it was read",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_by_their_ids_and_stored_as_them() {
        assert!(Family::ALL.is_sorted());
        for &family in Family::ALL {
            assert_eq!(Family::find(family.word()), Some(family));
            let stored = serde_json::to_string(&family).expect("a word");
            assert_eq!(stored, format!("\"{}\"", family.word()));
        }
        assert_eq!(Family::find("send"), None);
    }
}
