//! `thread_pool`: one thread takes connections and waits for all of them with
//! epoll_wait(2); those that are ready go through a queue (a mutex and a condition
//! variable) to threads that are there from the beginning. One of them receives,
//! answers, sends, and has the connection waited for again (`EPOLLONESHOT`), so
//! that no two ever serve the same one.
//!
//! Needs: threads that hand work over, two wake-ups for a request.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use iolens_sys::epoll::{Epoll, Events, Trigger};
use iolens_sys::errno::Errno;
use iolens_sys::process;

use super::entry::{Docs, Entry, Workers, never_waits, only};
use crate::acceptor::{Acceptor, BURST, Taken};
use crate::conversation::Wants;
use crate::ready::{Peer, Peers, Until, number};
use crate::tally::Tally;
use crate::{Context, Hands, NEVER, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    workers: Workers::Threads,
    ..never_waits(
        "thread_pool",
        "one thread in epoll(7) queues ready connections for a pool of threads",
        run,
        DOCS,
    )
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "registered with `EPOLLONESHOT`; one thread waits in epoll_wait(2): `ep_poll`",
        "ready connections go into a queue, and each wakes a thread: futex(2), `futex_wake`",
        "that thread: one recv(2) of at most 16 KiB: `tcp_recvmsg`",
        "that thread: one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
        "that thread arms the connection again: epoll_ctl(2), `ep_modify`",
    ],
    compared_with: "epoll_lt: what handing each request to another thread costs. epoll_reuseport: \
        what any sharing costs.",
    not_shown: "What the threads are for: a service that computes or waits. With echo they have \
        nothing to do in parallel.",
};

/// Descriptors that are reported by one call at most.
const EVENTS: usize = 256;

/// A connection that the thread that has it waited for may lose at once.
type Shared = Arc<OwnedFd>;

/// What the threads share.
struct Pool<'a> {
    context: &'a Context,
    epoll: Epoll,
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Connections that nobody serves.
    peers: Peers<Shared>,
    /// Numbers of those that are ready, in the order in which they were told.
    ready: VecDeque<usize>,
    over: bool,
}

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let mut acceptor = Acceptor::new(context, only(listeners)?, NEVER);
    let tally = context.tallies.take().ok_or("there are too many threads")?;
    tally.set_task(process::thread_id());
    let pool = Pool {
        context,
        epoll: Epoll::new().map_err(cannot("make an epoll instance"))?,
        queue: Mutex::default(),
        filled: Condvar::new(),
    };
    for fd in [acceptor.as_fd(), context.stop.as_fd()] {
        let added = pool.epoll.add(fd, number(fd) as u64, Trigger::Readable);
        added.map_err(cannot("watch a descriptor"))?;
    }
    // So that what cannot be made is known now, and no thread ends without a word.
    let hands = (0..context.options.workers).map(|_| context.hands());
    let hands = hands.collect::<Result<Vec<_>, String>>()?;
    std::thread::scope(|scope| {
        for hands in hands {
            let work = || pool.work(hands);
            let started = std::thread::Builder::new().spawn_scoped(scope, work);
            if let Err(error) = started {
                pool.end();
                return Err(format!("cannot start a thread: {error}"));
            }
        }
        context.begun();
        let result = pool.dispatch(&mut acceptor, &tally);
        pool.end();
        result
    })
}

impl Pool<'_> {
    /// What the thread does that waits for connections.
    fn dispatch(&self, acceptor: &mut Acceptor, tally: &Tally) -> Result<(), String> {
        let mut events = Events::with_room(EVENTS);
        let (listener, stop) = (number(acceptor.as_fd()), number(self.context.stop.as_fd()));
        while !self.context.is_stopping() {
            match self.epoll.wait_long(&mut events) {
                Ok(()) => {}
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(cannot("wait for connections")(errno)),
            }
            let told = (0..events.len()).filter_map(|index| events.get(index));
            let told = told.filter_map(|ready| usize::try_from(ready.key).ok());
            let (mut accepts, mut ready) = (false, 0);
            let mut queue = self.queue();
            for number in told {
                if number == listener {
                    accepts = true;
                } else if number != stop {
                    queue.ready.push_back(number);
                    ready += 1;
                }
            }
            drop(queue);
            (0..ready).for_each(|_| self.filled.notify_one());
            if accepts {
                self.accept(acceptor, tally)?;
            }
        }
        Ok(())
    }

    fn accept(&self, acceptor: &mut Acceptor, tally: &Tally) -> Result<(), String> {
        for _ in 0..BURST {
            let Taken::Connection(socket) =
                acceptor.take(tally).map_err(cannot("take a connection"))?
            else {
                return Ok(());
            };
            let peer = Box::new(Peer::new(Arc::new(socket)));
            self.await_again(peer, |socket, key| {
                self.epoll.add(socket.as_fd(), key, Trigger::ReadableOnce)
            });
        }
        Ok(())
    }

    /// What the threads do that serve.
    fn work(&self, mut hands: Hands) {
        hands.answers.tally.set_task(process::thread_id());
        while let Some(mut peer) = self.next() {
            let trigger = match peer.serve(&mut hands, Until::OneCall) {
                Wants::Nothing => continue,
                Wants::Bytes => Trigger::ReadableOnce,
                Wants::Room => Trigger::WritableOnce,
            };
            self.await_again(peer, |socket, key| self.epoll.change(socket.as_fd(), key, trigger));
        }
    }

    /// The next connection that is ready; nothing at the end.
    fn next(&self) -> Option<Box<Peer<Shared>>> {
        let mut queue = self.queue();
        loop {
            if queue.over {
                return None;
            }
            if let Some(number) = queue.ready.pop_front() {
                if let Some(peer) = queue.peers.take(number) {
                    return Some(peer);
                }
                continue;
            }
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Has a connection waited for. It is in its place before: as soon as it is
    /// told of, another thread takes it.
    fn await_again(
        &self,
        peer: Box<Peer<Shared>>,
        arm: impl FnOnce(&OwnedFd, u64) -> Result<(), Errno>,
    ) {
        let socket = Arc::clone(&peer.socket);
        let number = number(socket.as_fd());
        self.queue().peers.insert(peer);
        if arm(&socket, number as u64).is_err() {
            drop(self.queue().peers.take(number));
        }
    }

    fn end(&self) {
        self.queue().over = true;
        self.filled.notify_all();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::tests::context;

    /// A server whose threads have all ended would take connections and answer nobody.
    #[test]
    fn threads_that_cannot_serve_are_why_it_does_not_begin() {
        let (begun, hears) = sync_channel(1);
        let (context, listener) = context(&ENTRY, 4, begun);
        let mut tallies: Vec<Tally> = std::iter::from_fn(|| context.tallies.take()).collect();
        // Enough to see that one can be made.
        tallies.truncate(tallies.len() - 2);
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let result = run(&context, vec![listener]);
                context.begin_sender();
                result
            });
            let has_begun = hears.recv().is_ok();
            context.end();
            (has_begun, running.join().unwrap())
        });
        assert_eq!(result, (false, Err("there are too many threads or processes".to_owned())));
    }
}
