//! `prefork`: processes that are there before the first connection each take one
//! from the same socket, serve it in calls that wait, and take the next. When the
//! last one that waits has got a connection, more are made; they stay.
//!
//! Needs: a process for each connection at once.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use iolens_model::server::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::event::Event;
use iolens_sys::fork::{self, Patience};
use iolens_sys::{poll, process};

use super::entry::{Docs, Entry, Makes, Workers, only};
use crate::acceptor::{Acceptor, Taken};
use crate::tally::Tally;
use crate::{BLOCKING, Context, Hands, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "prefork",
    summary: "processes forked ahead of time, one per connection, blocking calls",
    makes: Makes::Process,
    workers: Workers::Processes,
    needs: "processes: RLIMIT_NPROC, kernel.pid_max, a cgroup's pids.max",
    descriptors_end: None,
    since: None,
    waiting: BLOCKING,
    many_that_stay: Ok(()),
    others_wait: false,
    docs: DOCS,
    run,
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "accept4(2), blocking: `inet_csk_accept`, `inet_csk_wait_for_connect`; all processes wait \
         on the same socket, and a connection wakes one (`prepare_to_wait_exclusive`)",
        "recv(2) of at most 16 KiB, blocking: `tcp_recvmsg`, `sk_wait_data`, woken by \
         `sock_def_readable`",
        "one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
        "close(2), then accept4(2) again",
    ],
    compared_with: "fork: what is saved because the process exists already. thread_per_connection: \
        what switching address spaces costs, with as many connections as processes.",
    not_shown: "The cost of forking, once there are as many processes as concurrent connections. \
        Until then it is part of the first requests.",
};

/// Time between two looks whether children have ended by themselves, which tell nobody.
const LOOK_NS: u64 = 1_000_000_000;

/// The children, and what they tell their parent by.
struct Family<'a> {
    context: &'a Context,
    acceptor: Acceptor,
    /// Set by the child that leaves nobody to wait.
    wanted: Event,
    children: Vec<(u32, Tally)>,
}

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let tally = context.tallies.take().ok_or("there are too many processes")?;
    tally.set_task(process::thread_id());
    let mut family = Family {
        context,
        acceptor: Acceptor::new(context, only(listeners)?, BLOCKING),
        wanted: Event::new().map_err(cannot("make an eventfd"))?,
        children: Vec::new(),
    };
    let first = family.grow();
    if first.is_ok() {
        context.begun();
    }
    let result = first.and_then(|()| {
        while !context.is_stopping() {
            match poll::readable(&[family.wanted.as_fd(), context.stop.as_fd()], LOOK_NS) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(cannot("wait for children")(errno)),
            }
            let died = family.reap();
            // When all stop, they end by themselves.
            if !context.is_stopping() {
                (0..died).for_each(|_| tally.mishap(Mishap::ChildDied));
            }
            let is_short = family.wanted.take() || family.nobody_waits();
            if is_short && !context.is_stopping() && family.grow().is_err() {
                tally.mishap(Mishap::NoTask);
            }
        }
        Ok(())
    });
    family.end();
    result
}

impl Family<'_> {
    /// Makes as many as are to wait.
    ///
    /// Errors: there is not even one.
    fn grow(&mut self) -> Result<(), String> {
        for index in 0..self.context.options.workers {
            let mut hands = self.context.hands()?;
            // Counted before it is there, so that it cannot be asked for twice.
            self.context.tallies.idle().fetch_add(1, Ordering::SeqCst);
            hands.answers.tally.set_waits(true);
            let started = fork::start(|| {
                hands.answers.tally.set_task(process::id());
                serve(self.context, &mut self.acceptor, &self.wanted, &mut hands);
                0
            });
            match started {
                Ok(id) => self.children.push((id, hands.answers.tally)),
                Err(errno) => {
                    self.context.tallies.idle().fetch_sub(1, Ordering::SeqCst);
                    if index == 0 {
                        return Err(cannot("fork a process")(errno));
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Takes note of those that have ended, which none does by itself: they wait for nothing
    /// any more. How many there were.
    fn reap(&mut self) -> usize {
        let before = self.children.len();
        while let Ok(Some(ended)) = fork::ended(Patience::Looks) {
            let idle = self.context.tallies.idle();
            self.children.retain(|(id, tally)| {
                if *id == ended.id && tally.waits() {
                    idle.fetch_sub(1, Ordering::SeqCst);
                }
                *id != ended.id
            });
        }
        before - self.children.len()
    }

    /// Whether no child waits for a connection, by what each of them says.
    fn nobody_waits(&self) -> bool {
        !self.children.iter().any(|(_, tally)| tally.waits())
    }

    fn end(&mut self) {
        for (id, _) in &self.children {
            // It may have ended.
            let _ = fork::kill(*id);
        }
        while !self.children.is_empty() {
            match fork::ended(Patience::Waits) {
                Ok(Some(ended)) => self.children.retain(|(id, _)| *id != ended.id),
                Err(Errno::EINTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

/// What a child does.
fn serve(context: &Context, acceptor: &mut Acceptor, wanted: &Event, hands: &mut Hands) {
    let idle = context.tallies.idle();
    while let Ok(taken) = acceptor.take(&hands.answers.tally) {
        match taken {
            Taken::Connection(socket) => {
                // First, and last below: who is killed between is never counted out twice.
                hands.answers.tally.set_waits(false);
                if idle.fetch_sub(1, Ordering::SeqCst) == 1 {
                    wanted.set();
                }
                super::blocking::serve(socket.as_fd(), hands);
                drop(socket);
                idle.fetch_add(1, Ordering::SeqCst);
                hands.answers.tally.set_waits(true);
            }
            Taken::None => {}
            Taken::Over => return,
        }
    }
}
