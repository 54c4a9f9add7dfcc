//! What becomes of the bytes that were read, compiled into the loop of the engine:
//! a read whose bytes nobody looks at is another thing than one whose bytes are.

use iolens_model::file;
use iolens_sys::memory::Memory;
use serde::{Deserialize, Serialize};

use crate::checksum::{Checksum, Xor};

iolens_model::words! {
    /// What is done with the bytes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Consumer {
        /// Nothing. Of a mapped file one byte of each page is read, since nothing would
        /// happen otherwise.
        None = "none",
        /// Every 64-bit word is added up.
        Scan = "scan",
        /// The checksum.
        Hash = "hash",
        /// The XOR of 32-bit words.
        Xor = "xor",
        /// Both of these.
        HashAndXor = "hash+xor",
    }
}

/// What a study asks for.
impl From<file::Consumer> for Consumer {
    fn from(asked: file::Consumer) -> Consumer {
        match asked {
            file::Consumer::None => Consumer::None,
            file::Consumer::Scan => Consumer::Scan,
            file::Consumer::Hash => Consumer::Hash,
        }
    }
}

impl Consumer {
    /// What it makes of nothing.
    pub fn of_nothing(self) -> Digest {
        let is = |consumers: &[Consumer]| consumers.contains(&self);
        Digest {
            checksum: is(&[Consumer::Hash, Consumer::HashAndXor]).then(Checksum::new),
            xor: is(&[Consumer::Xor, Consumer::HashAndXor]).then(Xor::default),
        }
    }
}

/// What was made of the bytes; `None` for what was not asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest {
    /// The hash.
    pub checksum: Option<Checksum>,
    /// The XOR.
    pub xor: Option<Xor>,
}

impl Digest {
    /// Takes in that of another thread, which had the same consumer.
    pub fn merge(&mut self, other: &Digest) {
        if let (Some(own), Some(other)) = (&mut self.checksum, &other.checksum) {
            own.merge(other);
        }
        if let (Some(own), Some(other)) = (&mut self.xor, &other.xor) {
            own.merge(other);
        }
    }
}

/// One consumer.
pub(crate) trait Consume: Send + Default {
    /// Takes the bytes at an offset of the file, where they lie.
    fn take(&mut self, offset: u64, bytes: impl Memory);

    /// What was made of them.
    fn digest(&self) -> Digest {
        Digest::default()
    }
}

/// Nothing.
#[derive(Debug, Default)]
pub(crate) struct Nothing;

impl Consume for Nothing {
    #[inline]
    fn take(&mut self, _offset: u64, bytes: impl Memory) {
        let _ = bytes.touch();
    }
}

/// Every word is added up, into nothing: `scan` lets no compiler leave it out.
#[derive(Debug, Default)]
pub(crate) struct Scan;

impl Consume for Scan {
    #[inline]
    fn take(&mut self, _offset: u64, bytes: impl Memory) {
        let _ = bytes.scan();
    }
}

impl Consume for Checksum {
    #[inline]
    fn take(&mut self, offset: u64, bytes: impl Memory) {
        Checksum::take(self, offset, bytes);
    }

    fn digest(&self) -> Digest {
        Digest { checksum: Some(*self), xor: None }
    }
}

impl Consume for Xor {
    #[inline]
    fn take(&mut self, offset: u64, bytes: impl Memory) {
        Xor::take(self, offset, bytes);
    }

    fn digest(&self) -> Digest {
        Digest { checksum: None, xor: Some(*self) }
    }
}

/// Both.
#[derive(Debug, Default)]
pub(crate) struct HashAndXor(Checksum, Xor);

impl Consume for HashAndXor {
    #[inline]
    fn take(&mut self, offset: u64, bytes: impl Memory) {
        self.0.take(offset, bytes);
        self.1.take(offset, bytes);
    }

    fn digest(&self) -> Digest {
        Digest { checksum: Some(self.0), xor: Some(self.1) }
    }
}
