//! `epoll_reuseport`: threads that share nothing, each with a listening socket on
//! the same port (`SO_REUSEPORT`), among which the kernel shares connections out
//! by their hash; each does what `epoll_lt` does.
//!
//! Needs: many connections: with few of them some threads have none.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::entry::{Docs, Entry, Workers, never_waits};
use super::epoll_lt::{EpollLoop, How};
use crate::Context;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    workers: Workers::Shards,
    needs: "many connections: the kernel spreads them by hash",
    ..never_waits(
        "epoll_reuseport",
        "several threads share a port (SO_REUSEPORT), each like epoll_lt",
        run,
        DOCS,
    )
};

/// Its page in docs/models.md.
const DOCS: Docs = Docs {
    path: &[
        "a hash of its addresses and ports assigns each new connection to a listening socket: \
         `reuseport_select_sock`",
        "then like epoll_lt, in each thread with its own epoll instance",
    ],
    compared_with: "epoll_lt: what more CPUs bring where nothing is shared. thread_pool and \
        tokio: what handing over work costs.",
    not_shown: "An even load: the hash does not know who is busy, and with few connections some \
        threads get none. `requests_by_task` shows how uneven it was.",
};

fn run(context: &Arc<Context>, listeners: Vec<OwnedFd>) -> Result<(), String> {
    std::thread::scope(|scope| {
        let mut listeners = listeners.into_iter();
        let own = listeners.next();
        let mut shards = Vec::new();
        for listener in listeners {
            let shard = move || shard(context, listener, || {});
            let started = std::thread::Builder::new().spawn_scoped(scope, shard);
            let started = started.map_err(|e| format!("cannot start a thread: {e}"));
            // The others end before this does.
            shards.push(started.inspect_err(|_| context.end())?);
        }
        let result = own.map_or(Ok(()), |listener| shard(context, listener, || context.begun()));
        let panicked = || Err("a thread panicked".to_owned());
        shards
            .into_iter()
            .fold(result, |result, shard| result.and(shard.join().unwrap_or_else(|_| panicked())))
    })
}

/// What one of them does; the others end with it.
fn shard(context: &Context, listener: OwnedFd, begun: impl FnOnce()) -> Result<(), String> {
    let opened = EpollLoop::open(context, listener, How::Levels);
    opened.and_then(|shard| shard.run(begun)).inspect_err(|_| context.end())
}
