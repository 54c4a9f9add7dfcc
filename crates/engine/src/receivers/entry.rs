//! What the list of receivers is made of.

use std::borrow::Cow;

use iolens_model::data_path::{Hop, ReceiverFacts};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::tcp::SetupError;

use crate::availability;
use crate::receive::{Receiver, Setup};

/// One receiver.
#[derive(Debug)]
pub struct Entry {
    /// Its id: the kernel's own word where there is one.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The first kernel that has what it needs; null where every one does.
    pub since: Option<KernelVersion>,
    /// Its hops, which take the place of those of `recv` in a cell's path.
    pub hops: &'static [Hop],
    /// What it can receive from.
    pub transports: &'static [Transport],
    /// Whether this process has the bytes in the end.
    pub has_bytes: bool,
    /// Descriptors that it opens for each connection.
    pub descriptors: u32,
    /// Tries whether it works here; why not.
    pub(super) available: fn() -> Result<(), String>,
    /// Makes the receiving end of one thread.
    ///
    /// Errors: what it cannot do without was refused.
    pub(crate) open: Open,
}

/// How a receiver is made.
pub(crate) type Open = for<'a> fn(Setup<'a>) -> Result<Box<dyn Receiver + 'a>, SetupError>;

impl Entry {
    /// Tries it.
    ///
    /// Errors: why it does not work here, and the kernel that it needs where
    /// this one is older.
    pub fn try_here(&self) -> Result<(), String> {
        (self.available)().map_err(|why| availability::with_version(why, self.since))
    }

    /// What a run keeps of the entry.
    #[must_use]
    pub fn facts(&self) -> ReceiverFacts {
        ReceiverFacts {
            id: self.id.to_owned(),
            summary: self.summary.to_owned(),
            hops: Cow::Borrowed(self.hops),
        }
    }
}

/// Nothing has to be tried: what every kernel has that iolens runs on.
pub(crate) fn everywhere() -> Result<(), String> {
    Ok(())
}
