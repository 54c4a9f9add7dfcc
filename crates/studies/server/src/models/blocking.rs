//! Models that serve a connection in calls that wait, to its end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use iolens_model::server::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::{socket, tcp};

use super::entry::{Docs, Entry, Makes, Workers, only};
use crate::acceptor::{Acceptor, Taken};
use crate::conversation::{Conversation, Wants, Wire};
use crate::{BLOCKING, Context, Hands, cannot};

/// Serves a connection until its client ends it, it fails, or the server ends.
pub(super) fn serve(socket: BorrowedFd<'_>, hands: &mut Hands) {
    let Hands { received, answers } = hands;
    let mut conversation = Conversation::default();
    let mut wire = BlockingWire(socket);
    while !answers.tally.tallies().is_stopping() {
        let wants = match socket::recv(socket, received) {
            Ok(0) => return conversation.end(answers),
            Ok(bytes) => conversation.feed(answers, &received[..bytes], &mut wire),
            Err(Errno::EINTR) => continue,
            Err(errno) => return conversation.fail(answers, errno),
        };
        if wants != Ok(Wants::Bytes) {
            return;
        }
    }
}

/// Sends in calls that wait until all is taken.
struct BlockingWire<'a>(BorrowedFd<'a>);

impl Wire for BlockingWire<'_> {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut sent = 0;
        while sent < bytes.len() {
            match socket::send(self.0, &bytes[sent..]) {
                Ok(more) => sent += more,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(sent)
    }

    fn finish(&mut self) {
        // The client may have gone.
        let _ = tcp::finish_sending(self.0);
    }
}

/// `iterative`: one thread takes a connection, serves it to its end, and takes the
/// next one. accept(2), recv(2) and send(2), each of which waits.
///
/// Needs: nothing. Everybody else waits while one is served; who does not move
/// for the stall limit is given up.
pub(super) static ITERATIVE: Entry = Entry {
    id: "iterative",
    summary: "one thread, one connection at a time",
    makes: Makes::Nothing,
    workers: Workers::None,
    needs: "one request per connection, or a single connection",
    descriptors_end: None,
    since: None,
    waiting: BLOCKING,
    many_that_stay: Err("it serves one connection to its end while the others wait"),
    others_wait: true,
    docs: ITERATIVE_DOCS,
    run: one_after_another,
};

/// Its page in docs/models.md.
const ITERATIVE_DOCS: Docs = Docs {
    path: &[
        "accept4(2), blocking: `inet_csk_accept`, `inet_csk_wait_for_connect`",
        "recv(2) of at most 16 KiB, blocking: `tcp_recvmsg`, `sk_wait_data`, woken by \
         `sock_def_readable`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
        "close(2), then the next connection",
    ],
    compared_with: "fork and thread_per_connection with one connection at a time: what creating a \
        process or a thread for it costs.",
    not_shown: "Anything about several keep-alive connections: all but one wait in the kernel's \
        queue, and that wait is their latency.",
};

fn one_after_another(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let mut acceptor = Acceptor::new(context, only(listeners)?, BLOCKING);
    let mut hands = context.hands()?;
    context.begun();
    loop {
        match acceptor.take(&hands.answers.tally).map_err(cannot("take a connection"))? {
            Taken::Connection(socket) => {
                let Some(held) = context.live.hold(socket) else { return Ok(()) };
                serve(held.as_fd(), &mut hands);
            }
            Taken::None => {}
            Taken::Over => return Ok(()),
        }
    }
}

/// `thread_per_connection`: one thread takes connections and starts another one
/// for each, which serves it in calls that wait.
///
/// Needs: a thread for each connection. Beyond the limit a connection is closed,
/// counted, and the others are served on.
pub(super) static THREAD_PER_CONNECTION: Entry = Entry {
    id: "thread_per_connection",
    summary: "one thread per connection, blocking calls",
    makes: Makes::Thread,
    workers: Workers::None,
    needs: "threads: RLIMIT_NPROC, kernel.threads-max, a cgroup's pids.max",
    descriptors_end: None,
    since: None,
    waiting: BLOCKING,
    many_that_stay: Ok(()),
    others_wait: false,
    docs: THREAD_DOCS,
    run: a_thread_each,
};

/// Its page in docs/models.md.
const THREAD_DOCS: Docs = Docs {
    path: &[
        "accept4(2), blocking: `inet_csk_accept`, `inet_csk_wait_for_connect`",
        "a thread: clone3(2), `kernel_clone`, with a stack of 128 KiB, touched only as far as \
         needed",
        "recv(2) of at most 16 KiB, blocking: `tcp_recvmsg`, `sk_wait_data`, woken by \
         `sock_def_readable`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
        "its end: `do_exit`, munmap(2) or the C library's stack cache",
    ],
    compared_with: "fork: what sharing an address space saves. epoll_lt: what a thread switch per \
        request costs, against a call that says who is ready.",
    not_shown: "Stacks of the usual 2 to 8 MiB: their address space would be a limit of its own.",
};

/// A stack that nothing here comes near; the usual 2 MiB of ten thousand threads
/// are 20 GB of addresses.
const STACK_BYTES: usize = 128 << 10;

fn a_thread_each(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let mut acceptor = Acceptor::new(context, only(listeners)?, BLOCKING);
    let tally = context.tallies.take().ok_or("there are too many threads")?;
    // So that what cannot be made is known now, and not with every connection.
    drop(context.hands()?);
    context.begun();
    // It ends when all of its threads have.
    std::thread::scope(|scope| {
        loop {
            let taken = acceptor.take(&tally).map_err(cannot("take a connection"));
            let socket = match taken.inspect_err(|_| context.end())? {
                Taken::Connection(socket) => socket,
                Taken::None => continue,
                Taken::Over => return Ok(()),
            };
            let Some(held) = context.live.hold(socket) else { return Ok(()) };
            let serve = move || match context.hands() {
                Ok(mut hands) => serve(held.as_fd(), &mut hands),
                Err(_) => drop(held),
            };
            let started =
                std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, serve);
            if started.is_err() {
                // The connection was closed with the closure that had it.
                tally.mishap(Mishap::NoTask);
            }
        }
    })
}
