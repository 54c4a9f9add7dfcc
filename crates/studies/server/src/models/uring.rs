//! `uring`: one thread with one ring of io_uring(7), and one system call for as
//! much as there is: a request that takes connections and stays, one for each
//! connection that receives into buffers of the ring and stays, and one that
//! sends. The ring has one issuer, and the kernel's part is done in its calls
//! (`IORING_SETUP_SINGLE_ISSUER`, `IORING_SETUP_DEFER_TASKRUN`).
//!
//! Needs: Linux 6.1, and that io_uring is allowed. A connection has one send under
//! way at a time; requests that come meanwhile are answered at once, and their replies
//! go out together, after it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_model::host::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Buffers, Completion, ServerRing};
use iolens_sys::tcp;

use super::entry::{Docs, Entry, never_waits, only};
use crate::acceptor::{After, Reserve, is_of_one_connection};
use crate::conversation::{Conversation, Wants, Wire};
use crate::{Context, Hands, NEVER, RECEIVE_BYTES, cannot};
use iolens_harness::ring_refusal;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    needs: "io_uring with multishot receive: kernel.io_uring_disabled=0, no seccomp filter \
        against it",
    since: Some(KernelVersion::new(6, 1, 0)),
    ..never_waits(
        "uring",
        "one thread, io_uring(7): multishot accept and receive, provided buffers",
        run,
        DOCS,
    )
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "one io_uring_enter(2) submits all requests and waits for completions; the kernel does \
         its part within that call (`io_run_local_work`)",
        "connections: one multishot accept (`IORING_ACCEPT_MULTISHOT`, `io_accept`)",
        "bytes: one multishot receive per connection (`IORING_RECV_MULTISHOT`, `io_recv`), woken \
         by `io_poll_wake`, into one of 512 provided buffers of 16 KiB",
        "replies: one send at a time per connection (`io_send`, `tcp_sendmsg`), tried as soon as \
         it is submitted",
    ],
    compared_with: "epoll_lt: what one call for everything saves.",
    not_shown: "A polling kernel thread (`IORING_SETUP_SQPOLL`), registered files, zero-copy \
        sends: each is another design with costs of its own.",
};

/// Buffers of all connections together, of the size of everybody's.
#[expect(clippy::cast_possible_truncation, reason = "16 KiB")]
const BUFFERS: Buffers = Buffers { count: 512, bytes: RECEIVE_BYTES as u32 };

/// Bytes of a connection that wait before no more are taken.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// What the buffer of a send may have to be kept for another one.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Buffers that are kept: a connection without a send under way has none.
const KEPT_MAX: usize = 512;

/// A connection.
#[derive(Debug, Default)]
struct Peer {
    conversation: Conversation,
    wants: Option<Wants>,
    /// What goes out next, after a send that is under way.
    out: Vec<u8>,
    /// Whether a send is under way.
    sends: bool,
    /// Whether the stream has ended, or receiving was stopped.
    receives: bool,
    /// Whether receiving is to be stopped, or is.
    paused: bool,
    /// Whether nothing more will be sent.
    finishes: bool,
    /// Whether the client sends no more.
    ended: bool,
}

/// The thread that has the ring.
struct UringLoop {
    ring: ServerRing,
    hands: Hands,
    peers: Vec<Peer>,
    /// Buffers of sends that are done.
    kept: Vec<Vec<u8>>,
    reserve: Arc<Reserve>,
}

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let ring = ServerRing::open(only(listeners)?, context.stop.as_fd(), BUFFERS);
    let ring = ring.map_err(|why| ring_refusal::setup_error(why).to_string())?;
    let reserve = Arc::clone(&context.reserve);
    let mut this =
        UringLoop { ring, hands: context.hands()?, peers: Vec::new(), kept: Vec::new(), reserve };
    context.begun();
    while !context.is_stopping() {
        match this.ring.wait() {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(cannot("wait for completions")(errno)),
        }
        while let Some(completion) = this.ring.completed() {
            this.take(completion)?;
        }
    }
    Ok(())
}

impl UringLoop {
    #[inline]
    fn take(&mut self, completion: Completion) -> Result<(), String> {
        let done = match completion {
            Completion::Received { slot, filled } => {
                let Some(peer) = self.peers.get_mut(slot as usize) else { return Ok(()) };
                let bytes = self.ring.bytes(&filled);
                let (conversation, mut wire) = peer.parts(&mut self.kept);
                let wants = conversation.feed(&mut self.hands.answers, bytes, &mut wire);
                peer.wants = wants.ok();
                self.ring.give_back(filled);
                self.go_on(slot)
            }
            Completion::Sent { slot, bytes, result } => self.sent(slot, bytes, result),
            Completion::Accepted(slot) => {
                self.hands.answers.tally.connection();
                self.enter(slot)
            }
            Completion::ReceiveEnded { slot, result } => self.receive_ended(slot, result),
            Completion::AcceptEnded(errno) => return self.cannot_accept(errno),
            Completion::Waits => self.accept_one(),
            Completion::Stop => Ok(()),
        };
        done.map_err(cannot("hand requests over"))
    }

    fn enter(&mut self, slot: u32) -> Result<(), Errno> {
        if slot as usize >= self.peers.len() {
            self.peers.resize_with(slot as usize + 1, Peer::default);
        }
        self.peers[slot as usize] =
            Peer { wants: Some(Wants::Bytes), receives: true, ..Peer::default() };
        self.ring.receive(slot)
    }

    #[inline]
    fn sent(
        &mut self,
        slot: u32,
        mut bytes: Vec<u8>,
        result: Result<usize, Errno>,
    ) -> Result<(), Errno> {
        let Some(peer) = self.peers.get_mut(slot as usize) else { return Ok(()) };
        peer.sends = false;
        let failed = match result {
            Ok(sent) if sent == bytes.len() => None,
            Ok(_) => Some(Errno::EPIPE),
            Err(errno) => Some(errno),
        };
        if let Some(errno) = failed {
            peer.conversation.fail(&self.hands.answers, errno);
            return self.close(slot);
        }
        if bytes.capacity() <= KEPT_BYTES_MAX && self.kept.len() < KEPT_MAX {
            bytes.clear();
            self.kept.push(bytes);
        }
        if peer.wants == Some(Wants::Room) {
            let (conversation, mut wire) = peer.parts(&mut self.kept);
            peer.wants = conversation.resume(&mut self.hands.answers, &mut wire).ok();
        }
        self.go_on(slot)
    }

    /// Sends what there is to send, and then does what is left to do.
    #[inline]
    fn go_on(&mut self, slot: u32) -> Result<(), Errno> {
        let Some(peer) = self.peers.get_mut(slot as usize) else { return Ok(()) };
        if peer.conversation.waiting_bytes() > WAITING_BYTES_MAX && !peer.paused && peer.receives {
            peer.paused = true;
            self.ring.stop_receiving(slot)?;
        }
        if peer.sends {
            return Ok(());
        }
        if !peer.out.is_empty() {
            peer.sends = true;
            return self.ring.send(slot, std::mem::take(&mut peer.out));
        }
        match peer.wants {
            None | Some(Wants::Nothing) => self.close(slot),
            _ if peer.ended => {
                peer.conversation.end(&self.hands.answers);
                self.close(slot)
            }
            _ => self.settle(slot),
        }
    }

    /// Nothing is to be sent: perhaps for ever, perhaps more can be taken again.
    #[inline]
    fn settle(&mut self, slot: u32) -> Result<(), Errno> {
        let Some(peer) = self.peers.get_mut(slot as usize) else { return Ok(()) };
        if peer.finishes {
            peer.finishes = false;
            // The client may have gone.
            let _ = self.ring.socket(slot).map(tcp::finish_sending);
        }
        if peer.paused && !peer.receives {
            (peer.paused, peer.receives) = (false, true);
            self.ring.receive(slot)?;
        }
        Ok(())
    }

    #[cold]
    fn receive_ended(&mut self, slot: u32, result: Result<(), Errno>) -> Result<(), Errno> {
        let Some(peer) = self.peers.get_mut(slot as usize) else { return Ok(()) };
        peer.receives = false;
        match result {
            Ok(()) => peer.ended = true,
            // All buffers were full for a moment; they were given back since.
            Err(Errno::ENOBUFS) if !peer.paused => {
                peer.receives = true;
                return self.ring.receive(slot);
            }
            Err(Errno::ENOBUFS | Errno::ECANCELED) if peer.paused => {}
            Err(errno) => {
                peer.conversation.fail(&self.hands.answers, errno);
                return self.close(slot);
            }
        }
        self.go_on(slot)
    }

    fn close(&mut self, slot: u32) -> Result<(), Errno> {
        self.peers[slot as usize] = Peer::default();
        self.ring.close(slot);
        Ok(())
    }

    /// The request that takes connections has ended.
    #[cold]
    fn cannot_accept(&mut self, errno: Errno) -> Result<(), String> {
        let is_stopping = self.hands.answers.tally.tallies().is_stopping();
        let done = match Next::after(errno, is_stopping) {
            Next::Again => self.ring.accept(),
            Next::Watch => self.ring.watch(),
            Next::Over => Ok(()),
            Next::Fails => Err(errno),
        };
        done.map_err(cannot("take connections"))
    }

    /// Somebody waits to be taken.
    #[cold]
    fn accept_one(&mut self) -> Result<(), Errno> {
        let tally = &self.hands.answers.tally;
        let after = self.reserve.after(Errno::EMFILE, self.ring.listener(), NEVER, tally)?;
        if let After::Connection(socket) = after {
            let slot = self.ring.adopt(socket);
            self.enter(slot)?;
        }
        self.ring.accept()
    }
}

/// What follows when the request that takes connections has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Another one.
    Again,
    /// Somebody has to come before it is made: it would end at once.
    Watch,
    /// Nothing: nobody listens any more.
    Over,
    /// The end of the server: another one would end in the same way, again and again.
    Fails,
}

impl Next {
    fn after(errno: Errno, is_stopping: bool) -> Next {
        match errno {
            _ if is_stopping => Next::Over,
            Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS | Errno::EAGAIN => {
                Next::Watch
            }
            errno if is_of_one_connection(errno) => Next::Again,
            _ => Next::Fails,
        }
    }
}

impl Peer {
    /// Its conversation, and where that sends to.
    #[inline]
    fn parts<'a>(&'a mut self, kept: &'a mut Vec<Vec<u8>>) -> (&'a mut Conversation, RingWire<'a>) {
        let wire = RingWire { out: &mut self.out, kept, finishes: &mut self.finishes };
        (&mut self.conversation, wire)
    }
}

/// Takes what the next send is to have.
struct RingWire<'a> {
    out: &'a mut Vec<u8>,
    kept: &'a mut Vec<Vec<u8>>,
    finishes: &'a mut bool,
}

impl Wire for RingWire<'_> {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.out.len() > WAITING_BYTES_MAX {
            return Ok(0);
        }
        if self.out.capacity() == 0 {
            *self.out = self.kept.pop().unwrap_or_default();
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn is_deferred(&self) -> bool {
        true
    }

    fn finish(&mut self) {
        *self.finishes = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_of_accepting_that_is_not_known_is_no_loop_and_not_silent() {
        let after = |errno| Next::after(errno, false);
        assert_eq!(after(Errno::EMFILE), Next::Watch);
        assert_eq!(after(Errno::ECONNABORTED), Next::Again);
        for errno in [Errno::EINVAL, Errno::ECANCELED, Errno::EBADF, Errno::EIO] {
            assert_eq!((after(errno), Next::after(errno, true)), (Next::Fails, Next::Over));
        }
    }
}
