//! Primitives that move references to pages into the socket: from a file, and from memory by
//! way of a pipe.

use std::borrow::Cow;
use std::fs::File;
use std::io::{IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use iolens_model::axes::Iovec;
use iolens_model::data_path::{CallsPerMessage, Hop, Movement};
use iolens_model::family::{Condition, Family};
use iolens_model::host::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::pages::page_bytes;
use iolens_sys::proc::Root;
use iolens_sys::ring::{self, Layout, MessageRing};
use iolens_sys::splice::{self, Pipe, places};
use iolens_sys::{clock, file, tcp, zerocopy};

use crate::entry::{Entry, Open, Setup, SetupError, Shape};
use crate::hops::{COPY_IN, COPY_OUT, HAND_OVER, SPLICE_PAGES};
use crate::transmit::{Iovecs, whole};
use iolens_harness::op::{Budget, Fact, Op, Sender, Span, Tally, drive_answers, drive_batch};
use iolens_harness::stream::Stream;

/// sendfile(2) of messages that lie in a file.
const fn sendfile(
    id: &'static str,
    summary: &'static str,
    since: KernelVersion,
    open: Open,
) -> Entry {
    const FILE_PAGES: Hop = Hop {
        from: Cow::Borrowed("page cache"),
        to: Cow::Borrowed("internal pipe"),
        function: Cow::Borrowed("splice_direct_to_actor"),
        movement: Movement::Reference,
        ..COPY_IN
    };
    const HOPS: &[Hop] = &[FILE_PAGES, SPLICE_PAGES, HAND_OVER, COPY_OUT];
    let (family, condition) = (Family::PageMoving, Some(Condition::InFile));
    Entry {
        descriptors: 1,
        since: Some(since),
        ..Entry::tcp(id, family, condition, summary, HOPS, open)
    }
}

/// `sendfile`: sendfile(2) from a file in memory that holds the ring's
/// messages one behind the other.
///
/// Path through the kernel: sendfile(2) → `splice_direct_to_actor`, which asks
/// the file for references to pages of its page cache
/// (`shmem_file_splice_read`) → `splice_to_socket` → `tcp_sendmsg_locked` with
/// `MSG_SPLICE_PAGES` → `skb_splice_from_iter` (before Linux 6.5: `sendpage`).
/// Nothing is copied at the sender. The references survive `lo` and veth,
/// because such a socket buffer is not marked as zero-copy and
/// `skb_orphan_frags` leaves it alone: the receiver's copy reads the file's
/// own pages.
/// Needs: memfd_create(2).
/// Compared with: `send`, which copies the same contiguous bytes once;
/// `sendfile_file`, where a file system stands behind the page cache.
/// The file is never written again after it was made: there is no completion,
/// and what is written before the receiver has read reaches it.
/// Does not show: how the message came into the file; a page cache that lacks
/// what is sent.
pub(crate) static SENDFILE: Entry = sendfile(
    "sendfile",
    "sendfile(2) of a message that lies in a file in memory (memfd)",
    KernelVersion::new(3, 17, 0),
    |setup| Ok(Box::new(Sendfile::open(&setup, in_memory()?)?)),
);

/// An empty file in memory.
///
/// Errors: the kernel makes none.
pub(crate) fn in_memory() -> Result<File, SetupError> {
    file::in_memory("iolens")
        .map_err(|errno| SetupError { tried: "make a file in memory".to_owned(), errno })
}

/// `sendfile_file`: sendfile(2) from a regular file of ours in the folder for
/// temporary files (`TMPDIR`), which has no name and is in the page cache.
///
/// Path through the kernel: as `sendfile`, but the file system gives out the
/// references (`filemap_splice_read` of ext4, xfs, btrfs), whose page cache may
/// hold larger folios than memory files do.
/// Needs: a folder for temporary files that can be written. Which file system
/// it is on is stored with the trial; on tmpfs this is `sendfile`.
/// Compared with: `sendfile`; the difference is the file system's.
/// The file is written and synced before the first slice, so no slice waits for
/// the device or meets the writing back; it is never written again.
/// Does not show: a file that has to be read from its device first.
pub(crate) static SENDFILE_FILE: Entry = sendfile(
    "sendfile_file",
    "sendfile(2) of a message that lies in a regular file, page cache warm",
    KernelVersion::new(2, 6, 23),
    |setup| Ok(Box::new(Sendfile::open(&setup, in_folder()?)?)),
);

/// An empty file without a name in the folder for temporary files.
///
/// Errors: nothing can be written there.
pub(crate) fn in_folder() -> Result<File, SetupError> {
    let folder = std::env::temp_dir();
    file::in_folder(&folder).map_err(|errno| SetupError {
        tried: format!("make a file in {} (TMPDIR names another folder)", folder.display()),
        errno,
    })
}

/// Sends messages from a file.
struct Sendfile<'a> {
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
    fn open(setup: &Setup<'a>, file: File) -> Result<Sendfile<'a>, SetupError> {
        let shape = setup.shape;
        fill(&file, &shape)?;
        Ok(Sendfile { fd: setup.link.socket(), file, shape, next: 0, tally: Tally::default() })
    }

    #[inline(always)]
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

/// `splice`: vmsplice(2) of the fields' pages into a pipe, then splice(2) from
/// the pipe to the socket.
///
/// Path through the kernel: vmsplice(2) → `iter_to_pipe`, which takes
/// references to the pages of every field → splice(2) → `splice_to_socket` →
/// `tcp_sendmsg_locked` with `MSG_SPLICE_PAGES` → `skb_splice_from_iter`
/// (before Linux 6.5: `sendpage`). Nothing is copied at the sender. The
/// references survive `lo` and veth, because such a socket buffer is not marked
/// as zero-copy and `skb_orphan_frags` leaves it alone: the receiver's copy
/// reads the sender's own pages.
/// Needs: a pipe. Each page that a field touches takes a place in it, and a
/// message that needs more than there are goes in several pairs of calls, all
/// but the last with `SPLICE_F_MORE`. The pipe is made as large as a message
/// needs, up to `fs.pipe-max-size`, and its size is stored with the trial.
/// Compared with: `sendmsg_zerocopy`, which takes the same references and says
/// when they are free; `sendmsg_iov`, which copies the same fields;
/// `send_staged`.
///
/// When is memory free again that was spliced? No completion tells, and
/// `SPLICE_F_GIFT` would only forbid to use it ever again. What can be known:
/// - Over a network, when the peer has acknowledged the bytes (`SIOCOUTQ`):
///   they will not be sent again.
/// - Over `lo` and veth an acknowledgement is not enough. The peer's receive
///   queue holds our pages, and its program reads what is in them when it
///   reads (`acknowledged_pages_are_still_ours_until_they_are_read`). There
///   only the program at the other end can tell.
///
/// So three things hold here. A message of the ring is not sent again before
/// its bytes were acknowledged: a program that sends to another host has to
/// wait for that, and it is within the clock. The ring is never written after
/// it was made, so that what arrives is right whatever still refers to it. And
/// a slice ends with the receipt, which the receiving program returns when it
/// has read every byte; `settle` finds nothing unacknowledged then.
///
/// Does not show: over `lo` and veth, what it costs a program that writes its
/// messages anew to learn that the other one has read them; it cannot be
/// faster than this.
pub(crate) static SPLICE: Entry = Entry {
    descriptors: 2,
    since: Some(KernelVersion::new(2, 6, 17)),
    calls: CallsPerMessage::Fixed(2),
    ..Entry::tcp(
        "splice",
        Family::PageMoving,
        Some(Condition::Unchanged),
        "vmsplice(2) of the fields' pages into a pipe, splice(2) from there to the socket",
        &[USER_PAGES, SPLICE_PAGES, HAND_OVER, COPY_OUT],
        open_splice,
    )
};

const USER_PAGES: Hop = Hop {
    to: Cow::Borrowed("pipe"),
    function: Cow::Borrowed("iter_to_pipe"),
    movement: Movement::Reference,
    ..COPY_IN
};

/// The kernel's own size of a pipe, in pages, and what `fs.pipe-max-size` is unless
/// somebody changed it.
const PIPE_PLACES: usize = 16;
const PIPE_BYTES_MAX: usize = 1 << 20;

/// How long an acknowledgement is awaited by asking again and again; longer
/// ones are slept for.
const PATIENCE_NS: u64 = 50_000;

/// How long each sleep lasts. Nothing wakes it but the end of the connection.
const NAP_NS: u64 = 50_000;

struct Splice<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    pipe: Pipe,
    prepared: bool,
    /// For each message of the ring, how much had been sent when it had.
    sent_by: Box<[u64]>,
    /// How much of what was sent is known to be acknowledged.
    acknowledged: u64,
    stall_limit: Duration,
}

fn open_splice(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let stream = Stream::new(&setup.shape, Layout::Separate);
    Ok(Box::new(Splice {
        fd: setup.link.socket(),
        sent_by: vec![0; stream.ring.messages()].into_boxed_slice(),
        pipe: pipe_for(&stream.ring)?,
        stream,
        prepared: setup.shape.iovec == Iovec::Prepared,
        acknowledged: 0,
        stall_limit: setup.stall_limit,
    }))
}

/// A pipe that is as large as the messages of a ring need, if it may be.
///
/// Errors: there is none.
pub(crate) fn pipe_for(ring: &MessageRing) -> Result<Pipe, SetupError> {
    let failed = |errno| SetupError { tried: "make a pipe".to_owned(), errno };
    let pipe = Pipe::open().map_err(failed)?;
    let places = message_places(ring);
    if places > PIPE_PLACES {
        // Where the user has too much in pipes already, this one stays as it is,
        // and messages take more calls: the size is read back and stored.
        let _ = pipe.resize((places * page_bytes()).min(pipe_bytes_max()));
    }
    Ok(pipe)
}

/// Places in a pipe that the largest message of a ring takes.
fn message_places(ring: &MessageRing) -> usize {
    let of_message = |index| ring.fields(index).iter().map(|field| places(field)).sum();
    (0..ring.messages()).map(of_message).max().unwrap_or(0)
}

fn pipe_bytes_max() -> usize {
    let text = Root::real().read("proc/sys/fs/pipe-max-size");
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(PIPE_BYTES_MAX)
}

impl Op for Splice<'_> {
    #[inline(always)]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        if self.sent_by[index] > self.acknowledged {
            self.await_acknowledged(self.sent_by[index])?;
        }
        let Stream { ring, tally, .. } = &mut self.stream;
        let way = Way { pipe: &self.pipe, socket: self.fd };
        if self.prepared {
            way.send(ring.prepared(index), ring.message_bytes(), tally)?;
        } else {
            let iovec: Iovecs<'_> = ring.fields(index).iter().map(|f| IoSlice::new(f)).collect();
            way.send(&iovec, ring.message_bytes(), tally)?;
        }
        tally.messages += 1;
        self.sent_by[index] = tally.bytes;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.await_acknowledged(self.stream.tally.bytes)
    }

    fn facts(&self) -> Vec<Fact> {
        let size = self.pipe.size_bytes();
        size.map(|bytes| ("pipe_bytes", bytes.to_string())).into_iter().collect()
    }
}

impl Splice<'_> {
    /// Waits until the peer has acknowledged the first `sent` bytes.
    ///
    /// Errors: `ETIMEDOUT` when it did not within the stall limit, else what
    /// ended the connection.
    #[inline(never)]
    fn await_acknowledged(&mut self, sent: u64) -> Result<(), Errno> {
        let mut begin_ns = None;
        loop {
            let waiting = tcp::unacknowledged_bytes(self.fd)?;
            // A byte of the harness may wait behind ours: then too little is
            // taken as acknowledged, never too much.
            self.acknowledged = self.stream.tally.bytes.saturating_sub(waiting);
            if self.acknowledged >= sent {
                return Ok(());
            }
            let now_ns = clock::monotonic_ns();
            let waited_ns = now_ns - *begin_ns.get_or_insert(now_ns);
            if waited_ns < PATIENCE_NS {
                std::thread::yield_now();
                continue;
            }
            if u128::from(waited_ns) >= self.stall_limit.as_nanos() {
                return Err(Errno::ETIMEDOUT);
            }
            match zerocopy::wait(self.fd, NAP_NS) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// The pipe and where it leads.
#[derive(Clone, Copy)]
struct Way<'a> {
    pipe: &'a Pipe,
    socket: BorrowedFd<'a>,
}

impl Way<'_> {
    /// Sends a message, whose pieces are `iovec`, whole.
    #[inline]
    fn send(self, iovec: &[IoSlice<'_>], total: usize, tally: &mut Tally) -> Result<(), Errno> {
        let taken = self.pipe.vmsplice(iovec);
        tally.calls += 1;
        if taken == Ok(total) {
            return self.empty(total, false, tally);
        }
        self.send_in_parts(iovec, taken, tally)
    }

    /// Moves the `bytes` that are in the pipe to the socket.
    #[inline]
    fn empty(self, bytes: usize, more: bool, tally: &mut Tally) -> Result<(), Errno> {
        whole(bytes, tally, |done| self.pipe.splice_to(self.socket, bytes - done, more))
    }

    /// Goes on after a first vmsplice(2) that did not take everything.
    #[cold]
    #[inline(never)]
    fn send_in_parts(
        self,
        iovec: &[IoSlice<'_>],
        first: Result<usize, Errno>,
        tally: &mut Tally,
    ) -> Result<(), Errno> {
        let mut copy: Iovecs<'_> = iovec.iter().copied().collect();
        let mut left = &mut copy[..];
        let mut taken = first;
        loop {
            match taken {
                Ok(bytes) => {
                    IoSlice::advance_slices(&mut left, bytes);
                    self.empty(bytes, !left.is_empty(), tally)?;
                    if left.is_empty() {
                        return Ok(());
                    }
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
            // The pipe is empty: this cannot wait.
            taken = self.pipe.vmsplice(left);
            tally.calls += 1;
        }
    }
}
