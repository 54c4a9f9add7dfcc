//! What the list of models is made of.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use iolens_model::host::KernelVersion;
use iolens_model::load::Length;
use iolens_model::server::{MAKES_NOTHING, ServerSetting};
use iolens_sys::tcp_server::Waiting;

use crate::services::Spec;
use crate::{Close, Context, NEVER, ServeOptions, Server};
use iolens_harness::host::with_version;

iolens_model::words! {
    /// What a model makes for a connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Makes {
        /// A process, or it keeps one for it.
        Process = "process",
        /// A thread.
        Thread = "thread",
        /// Nothing but a descriptor and some bytes.
        Nothing = MAKES_NOTHING,
    }
}

/// What a number of workers is, in a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// There is one thread, or as many as connections.
    None,
    /// Threads.
    Threads,
    /// Processes that wait for a connection; there are more when all are busy.
    Processes,
    /// Threads with a listening socket each.
    Shards,
    /// Threads of a runtime, which has them serve as it likes.
    Runtime,
}

impl Workers {
    /// What `--workers` means; nothing where it means nothing.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Workers::None => None,
            Workers::Threads | Workers::Runtime => Some("threads"),
            Workers::Processes => Some("spare processes"),
            Workers::Shards => Some("threads, each with its own listening socket"),
        }
    }
}

/// One model.
#[derive(Debug)]
pub struct Entry {
    /// Its id.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it makes for a connection.
    pub makes: Makes,
    /// What a number of workers is.
    pub workers: Workers,
    /// What it needs of the machine beyond sockets, and what stops it.
    pub needs: &'static str,
    /// Where the numbers of descriptors end that it can wait for, whatever the process
    /// may have; `None` where they do not.
    pub descriptors_end: Option<usize>,
    /// The first kernel that has what it needs; `None` where every one has.
    pub since: Option<KernelVersion>,
    /// Whether it calls in a way that waits.
    pub waiting: Waiting,
    /// Whether many connections that stay can be measured with it.
    ///
    /// Errors: why not.
    pub many_that_stay: Result<(), &'static str>,
    /// Whether other clients wait while one does not move, so that there has to be
    /// a limit.
    pub others_wait: bool,
    /// What docs/models.md says of it.
    pub docs: Docs,
    /// Serves until the server is to end.
    ///
    /// Errors: what it needs was refused.
    pub(crate) run: Run,
}

/// What is worth to know of a model before its numbers are read.
#[derive(Debug)]
pub struct Docs {
    /// The path through the kernel of a connection and its requests: calls, and the
    /// functions of Linux 6.x that do the work.
    pub path: &'static [&'static str],
    /// With which others, and what the difference shows.
    pub compared_with: &'static str,
    /// What its numbers say nothing of.
    pub not_shown: &'static str,
}

/// One that looks after all connections with calls that never wait.
pub(super) const fn never_waits(
    id: &'static str,
    summary: &'static str,
    run: Run,
    docs: Docs,
) -> Entry {
    Entry {
        id,
        summary,
        makes: Makes::Nothing,
        workers: Workers::None,
        needs: "descriptors: RLIMIT_NOFILE",
        descriptors_end: None,
        since: None,
        waiting: NEVER,
        many_that_stay: Ok(()),
        others_wait: false,
        docs,
        run,
    }
}

/// How a model runs: the calling thread is its main one.
pub(crate) type Run = fn(&Arc<Context>, Vec<OwnedFd>) -> Result<(), String>;

/// How long a model may take for one request when it is tried.
const TRY_LIMIT: Duration = Duration::from_secs(5);

impl Entry {
    /// Whether it can be measured with so many connections: what serves one at a time,
    /// or forgets one that it has served, is no answer to many that stay.
    ///
    /// Errors: why not.
    pub fn allow(&self, setting: &ServerSetting) -> Result<(), String> {
        let stays = setting.length == Length::Long && setting.connections > 1;
        match (stays, self.many_that_stay) {
            (true, Err(why)) => Err(why.to_owned()),
            _ => Ok(()),
        }
    }

    /// Tries it: one request over loopback.
    ///
    /// Errors: why it does not work here, and the kernel that it needs where this
    /// one is older.
    pub fn try_here(&'static self) -> Result<(), String> {
        self.attempt().map_err(|why| with_version(why, self.since))
    }

    fn attempt(&'static self) -> Result<(), String> {
        let server = Server::open(ServeOptions {
            model: self,
            service: Spec::parse("echo")?,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            backlog: 1,
            workers: 1,
            close: Close::Client,
            stall_limit: TRY_LIMIT,
            cpus: None,
        })?;
        let running = server.start()?;
        let mut reply = [0; 6];
        let asked = TcpStream::connect(running.address()).and_then(|mut client| {
            client.set_read_timeout(Some(TRY_LIMIT))?;
            client.write_all(b"1 try\n")?;
            client.read_exact(&mut reply)
        });
        let served = running.stop();
        match (served.failure, asked) {
            (Some(why), _) => Err(why),
            (None, Err(error)) => Err(format!("it does not answer: {error}")),
            (None, Ok(())) if &reply != b"1 try\n" => Err("it answers something else".to_owned()),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// The only listener of a model that has no shards.
pub(super) fn only(listeners: Vec<OwnedFd>) -> Result<OwnedFd, String> {
    listeners.into_iter().next().ok_or_else(|| "there is no socket to listen on".to_owned())
}
