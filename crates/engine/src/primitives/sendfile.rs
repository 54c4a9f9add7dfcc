//! `sendfile`: sendfile(2) from a file in memory that holds the ring's
//! messages one behind the other.
//!
//! Path through the kernel: sendfile(2) → `splice_direct_to_actor`, which asks
//! the file for references to pages of its page cache
//! (`shmem_file_splice_read`) → `splice_to_socket` → `tcp_sendmsg_locked` with
//! `MSG_SPLICE_PAGES` → `skb_splice_from_iter` (before Linux 6.5: `sendpage`).
//! Nothing is copied at the sender. The references survive `lo` and veth,
//! because such a socket buffer is not marked as zero-copy and
//! `skb_orphan_frags` leaves it alone: the receiver's copy reads the file's
//! own pages.
//! Needs: memfd_create(2).
//! Compared with: `send`, which copies the same contiguous bytes once;
//! `sendfile_file`, where a file system stands behind the page cache.
//! The file is never written again after it was made: there is no completion,
//! and what is written before the receiver has read reaches it.
//! Does not show: how the message came into the file; a page cache that lacks
//! what is sent.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use iolens_model::data_path::{CallsPerMessage, DataPath, End, Hop, Movement, Mover};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::{file, ring, splice};

use crate::entry::{Ends, Entry, Setup, SetupError, Shape};
use crate::op::{Budget, Fact, Sender, Span, Tally, drive_answers, drive_batch};
use crate::primitives::{COPY_OUT, HAND_OVER, SPLICE_PAGES};
use crate::transmit::whole;

/// How sendfile comes by the pages of a file.
pub(crate) const FILE_PAGES: Hop = Hop {
    from: Cow::Borrowed("page cache"),
    to: Cow::Borrowed("internal pipe"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("splice_direct_to_actor"),
    movement: Movement::Reference,
};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "sendfile",
    family: Family::PageMoving,
    condition: Some(Condition::InFile),
    summary: "sendfile(2) of a message that lies in a file in memory (memfd)",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    datagrams: false,
    locks_memory: false,
    descriptors: 1,
    since: Some(KernelVersion::new(3, 17, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[FILE_PAGES, SPLICE_PAGES, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(Box::new(Sendfile::open(&setup, in_memory()?)?))
}

/// An empty file in memory.
///
/// Errors: the kernel makes none.
pub(crate) fn in_memory() -> Result<File, SetupError> {
    file::in_memory("iolens")
        .map_err(|errno| SetupError { tried: "make a file in memory".to_owned(), errno })
}

/// Sends messages from a file.
pub(crate) struct Sendfile<'a> {
    fd: BorrowedFd<'a>,
    file: File,
    shape: Shape,
    next: usize,
    tally: Tally,
}

impl<'a> Sendfile<'a> {
    /// Fills an empty file with the ring's messages.
    ///
    /// Errors: the file cannot be written, or not be found out about.
    pub(crate) fn open(setup: &Setup<'a>, file: File) -> Result<Sendfile<'a>, SetupError> {
        let shape = setup.shape;
        fill(&file, &shape)?;
        Ok(Sendfile { fd: setup.link.socket(), file, shape, next: 0, tally: Tally::default() })
    }

    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let Shape { messages, message_bytes, .. } = self.shape;
        let index = self.next;
        self.next = if index + 1 == messages { 0 } else { index + 1 };
        let begin = index * message_bytes;
        let (socket, file) = (self.fd, self.file.as_fd());
        whole(message_bytes, &mut self.tally, |done| {
            splice::sendfile(socket, file, (begin + done) as u64, message_bytes - done)
        })?;
        self.tally.messages += 1;
        Ok(())
    }
}

impl Sender for Sendfile<'_> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        drive_batch(|| self.message(), budget)
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        drive_answers(|| self.message(), requests)
    }

    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn touch(&mut self) {
        touch(&self.file);
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn facts(&self) -> Vec<Fact> {
        let name = file::file_system(self.file.as_fd());
        name.map(|name| ("file_system", name)).into_iter().collect()
    }
}

/// Writes a ring's messages to an empty file, one call for each: the size of
/// the calls decides how large the folios of the page cache are.
///
/// Errors: the file cannot be written.
pub(crate) fn fill(mut file: &File, shape: &Shape) -> Result<(), SetupError> {
    let failed = |e: std::io::Error| SetupError {
        tried: format!("write {} messages to a file", shape.messages),
        errno: e.into(),
    };
    for index in 0..shape.messages {
        let message: Vec<u8> =
            (0..shape.message_bytes).map(|at| ring::content(index, at)).collect();
        file.write_all(&message).map_err(failed)?;
    }
    // Nothing is left to be written back while a slice runs.
    file.sync_data().map_err(failed)
}

/// Brings a file's pages into the CPU's cache, by reading through a buffer that
/// takes little of it.
pub(crate) fn touch(file: &File) {
    let (mut piece, mut offset) = ([0; 4096], 0);
    while let Ok(n @ 1..) = file.read_at(&mut piece, offset) {
        std::hint::black_box(&piece);
        offset += n as u64;
    }
}
