//! `thread_per_connection`: one thread takes connections and starts another one
//! for each, which serves it in calls that wait.
//!
//! Needs: a thread for each connection. Beyond the limit a connection is closed,
//! counted, and the others are served on.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iolens_model::served::Mishap;

use super::entry::{Docs, Entry, Makes, Workers, only};
use crate::acceptor::{Acceptor, Taken};
use crate::{BLOCKING, Context, blocking, cannot};

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
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
    docs: DOCS,
    run,
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
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

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
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
                Ok(mut hands) => blocking::serve(held.as_fd(), &mut hands),
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
