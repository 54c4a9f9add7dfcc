//! `tokio`: a task for each connection on tokio's runtime of several threads, which
//! waits with epoll(7), edge-triggered, and moves tasks to threads that have none.
//! Calls are made when the runtime says that they will not wait
//! (`readable().await`, `try_read`), into the same buffers as everywhere.
//!
//! Needs: a descriptor for each connection.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::TcpListener as StdListener;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_sys::errno::Errno;
use iolens_sys::{poll, tcp};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::block_in_place;

use super::entry::{Docs, Entry, Workers, never_waits, only};
use crate::acceptor::After;
use crate::conversation::{Conversation, Wants, Wire};
use crate::tally::Tally;
use crate::{Context, Hands, NEVER, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    workers: Workers::Runtime,
    ..never_waits("tokio", "one task per connection on tokio's multi-threaded runtime", run, DOCS)
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "registered once, edge-triggered; a thread of the runtime waits in epoll_wait(2): \
         `ep_poll`",
        "a thread runs each ready task, and idle threads steal tasks; futex(2) wakes sleeping \
         ones",
        "one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
    ],
    compared_with: "epoll_reuseport and thread_pool: the cost of a runtime that does for a \
        program what these do by hand.",
    not_shown: "Other runtimes, or tokio with one thread (`current_thread`). --workers sets the \
        number of threads, which changes the result.",
};

thread_local! {
    /// What a thread of the runtime serves with, from its first request on.
    static HANDS: RefCell<Option<Hands>> = const { RefCell::new(None) };
}

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let failed = |what: &'static str| move |e: io::Error| cannot(what)(Errno::from(e));
    let listener = StdListener::from(only(listeners)?);
    let tally = context.tallies.take().ok_or("there are too many threads")?;
    // So that what cannot be made is known now.
    drop(context.hands()?);
    let runtime = Builder::new_multi_thread()
        .worker_threads(context.options.workers as usize)
        .thread_name("serve-tokio")
        .enable_io()
        .build()
        .map_err(failed("start tokio's runtime"))?;
    let entered = runtime.enter();
    let listener = TcpListener::from_std(listener).map_err(failed("watch a listening socket"))?;
    let of_acceptor = Arc::clone(context);
    context.begun();
    runtime.spawn(async move {
        if let Err(why) = accept(&of_acceptor, &listener, &tally).await {
            of_acceptor.fail(why);
        }
    });
    drop(entered);
    // Readable when it is to end, and also when it has failed.
    while !context.is_stopping() {
        let _ = poll::readable(&[context.stop.as_fd()], u64::MAX);
    }
    // With the runtime go its tasks, and their connections.
    Ok(())
}

/// Takes connections.
async fn accept(
    context: &Arc<Context>,
    listener: &TcpListener,
    tally: &Tally,
) -> Result<(), String> {
    while !context.is_stopping() {
        let stream = match listener.accept().await {
            Ok((stream, _)) => {
                tally.connection();
                stream
            }
            Err(_) if context.is_stopping() => return Ok(()),
            Err(error) => {
                let after = context.reserve.after(error.into(), listener.as_fd(), NEVER, tally);
                match after.map_err(cannot("take a connection"))? {
                    After::Connection(socket) => match TcpStream::from_std(socket.into()) {
                        Ok(stream) => stream,
                        Err(error) => return Err(cannot("watch a connection")(error.into())),
                    },
                    After::Next => continue,
                    After::None => {
                        // Without a descriptor it would fail at once, again and again.
                        let fds = [listener.as_fd(), context.stop.as_fd()];
                        let _ = block_in_place(|| poll::readable(&fds, u64::MAX));
                        continue;
                    }
                }
            }
        };
        tokio::spawn(serve(Arc::clone(context), stream));
    }
    Ok(())
}

/// Serves a connection to its end.
async fn serve(context: Arc<Context>, stream: TcpStream) {
    let mut conversation = Conversation::default();
    let mut wants = Wants::Bytes;
    loop {
        let ready = match wants {
            Wants::Bytes => stream.readable().await,
            Wants::Room => stream.writable().await,
            Wants::Nothing => return,
        };
        if ready.is_err() {
            return;
        }
        wants = with_hands(&context, |hands| match wants {
            Wants::Room => conversation.resume(&mut hands.answers, &mut TokioWire(&stream)).ok(),
            _ => receive(&mut conversation, hands, &stream),
        })
        .unwrap_or(Wants::Nothing);
    }
}

/// Receives once; nothing where the connection is to be closed.
fn receive(
    conversation: &mut Conversation,
    hands: &mut Hands,
    stream: &TcpStream,
) -> Option<Wants> {
    let Hands { received, answers } = hands;
    match stream.try_read(received) {
        Ok(0) => {
            conversation.end(answers);
            None
        }
        Ok(bytes) => conversation.feed(answers, &received[..bytes], &mut TokioWire(stream)).ok(),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Some(Wants::Bytes)
        }
        Err(e) => {
            conversation.fail(answers, e.into());
            None
        }
    }
}

/// Does something with what this thread serves with.
fn with_hands<R>(context: &Context, work: impl FnOnce(&mut Hands) -> Option<R>) -> Option<R> {
    HANDS.with_borrow_mut(|hands| {
        if hands.is_none() {
            match context.hands() {
                Ok(made) => *hands = Some(made),
                Err(why) => context.fail(why),
            }
        }
        work(hands.as_mut()?)
    })
}

/// Sends what there is room for.
struct TokioWire<'a>(&'a TcpStream);

impl Wire for TokioWire<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut sent = 0;
        // The runtime learns that there is no room from the call that finds none.
        while sent < bytes.len() {
            match self.0.try_write(&bytes[sent..]) {
                Ok(more) => sent += more,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(sent)
    }

    fn finish(&mut self) {
        // The client may have gone.
        let _ = tcp::finish_sending(self.0.as_fd());
    }
}
