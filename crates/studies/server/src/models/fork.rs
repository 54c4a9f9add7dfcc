//! `fork`: one process takes connections and forks another one for each, which
//! serves it in calls that wait, and ends. The textbook's first concurrent server.
//!
//! Needs: a process for each connection. Beyond the limit a connection is closed,
//! counted, and the others are served on. Children that have ended are taken note
//! of (wait4(2)) before the next connection is.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_model::server::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::fork::{self, Patience};
use iolens_sys::process;

use super::entry::{Docs, Entry, Makes, Workers, only};
use crate::acceptor::{Acceptor, Taken};
use crate::tally::Tally;
use crate::{BLOCKING, Context, Hands, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "fork",
    summary: "one process per connection, blocking calls",
    makes: Makes::Process,
    workers: Workers::None,
    needs: "processes: RLIMIT_NPROC, kernel.pid_max, a cgroup's pids.max",
    descriptors_end: None,
    since: None,
    waiting: BLOCKING,
    many_that_stay: Err("it keeps one child per connection, like `prefork`"),
    others_wait: false,
    docs: DOCS,
    run,
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "accept4(2), blocking: `inet_csk_accept`, `inet_csk_wait_for_connect`",
        "fork(2): `kernel_clone`, `copy_process`, `dup_mm`: copies page tables and descriptors, \
         and later every page that is written to",
        "the child: recv(2) of at most 16 KiB, blocking: `tcp_recvmsg`, `sk_wait_data`, woken by \
         `sock_def_readable`",
        "the child: one send(2) for all replies: `tcp_sendmsg`, `tcp_write_xmit`",
        "exit_group(2): `do_exit`; the parent reaps it with wait4(2) before its next connection",
    ],
    compared_with: "thread_per_connection: what a separate address space costs. prefork: what \
        forking ahead of time saves.",
    not_shown: "What forking costs a large program: this one uses little memory, so its page \
        tables are short.",
};

/// Children that have not ended, with the rows they count in.
#[derive(Default)]
struct Children(HashMap<u32, Tally>);

impl Children {
    /// Takes note of those that have ended.
    fn reap(&mut self) {
        while let Ok(Some(ended)) = fork::ended(Patience::Looks) {
            self.0.remove(&ended.id);
        }
    }

    /// Ends all.
    fn end(&mut self) {
        for &id in self.0.keys() {
            // It may have ended.
            let _ = fork::kill(id);
        }
        while !self.0.is_empty() {
            match fork::ended(Patience::Waits) {
                Ok(Some(ended)) => drop(self.0.remove(&ended.id)),
                Err(Errno::EINTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    let mut acceptor = Acceptor::new(context, only(listeners)?, BLOCKING);
    let tally = context.tallies.take().ok_or("there are too many processes")?;
    tally.set_task(process::thread_id());
    // What children serve with: each gets a copy.
    let mut hands = context.hands()?;
    let mut children = Children::default();
    context.begun();
    let result = loop {
        let socket = match acceptor.take(&tally) {
            Ok(Taken::Connection(socket)) => socket,
            Ok(Taken::None) => continue,
            Ok(Taken::Over) => break Ok(()),
            Err(errno) => break Err(cannot("take a connection")(errno)),
        };
        children.reap();
        if !serve_in_child(context, &mut hands, &socket, &mut children) {
            tally.mishap(Mishap::NoTask);
        }
    };
    children.end();
    result
}

/// Forks a child that serves a connection; whether there is one.
fn serve_in_child(
    context: &Context,
    hands: &mut Hands,
    socket: &OwnedFd,
    children: &mut Children,
) -> bool {
    let Some(tally) = context.tallies.take() else { return false };
    // The row goes with the hands into the child, and stays with its id here.
    let before = std::mem::replace(&mut hands.answers.tally, tally);
    let started = fork::start(|| {
        hands.answers.tally.set_task(process::id());
        super::blocking::serve(socket.as_fd(), hands);
        0
    });
    let tally = std::mem::replace(&mut hands.answers.tally, before);
    match started {
        Ok(id) => {
            children.0.insert(id, tally);
            true
        }
        Err(_) => false,
    }
}
