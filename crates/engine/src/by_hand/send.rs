//! The sending end: it listens, takes as many connections as it has clients,
//! and listens no more. Each client gets the same messages, at the same time,
//! in a stream of its own that ends with the last of them.
//!
//! A client is whoever connects: it need not be iolens, and nothing travels
//! but messages. So there is no byte for a receipt. A receiver that closes its
//! end after the end of the stream says with that that it has read everything,
//! which ends the clock. One that does not close (`nc` waits for the end of
//! its own input first), or that had closed its sending direction before, is
//! not waited for: then the clock ends when its kernel has acknowledged the
//! last byte, and the result says so.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use iolens_model::axes::{Iovec, Mode, Topology, WorkingSet};

use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::data_path::End;
use iolens_model::host::HostFacts;
use iolens_model::transfer::{Transfer, Until};
use iolens_model::trial::Work;
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::tcp::{self, SetupError};
use iolens_sys::usage::ProcessCpu;
use iolens_sys::{clock, poll, socket, zerocopy};

use super::{
    Conditions, Connection, Name, Served, Start, amount, not_started, of_the_peer, serve_all,
    socket_facts, span_from,
};
use crate::layout;
use iolens_harness::locked_memory::Limits;
use iolens_harness::op::{Budget, Sender, Span, Tally};
use iolens_harness::watch::Insistence;
use iolens_net::availability;
use iolens_net::entry::{Entry, Link, Setup, Shape};

/// A receiver whose kernel has everything may take this long to close.
const RECEIPT_NS: u64 = 1_000_000_000;

/// How often it is asked meanwhile how much was acknowledged, which nothing
/// tells by itself. The clock ends this late at most where there is no receipt.
const ASK_NS: u64 = 1_000_000;

/// What is sent, and to how many.
#[derive(Debug, Clone)]
pub struct Offer {
    /// How it is sent; an entry with two ends.
    pub entry: &'static Entry,
    /// Payload bytes of a message; at least 1.
    pub message_bytes: Bytes,
    /// Fields of a message; 1 to [`FIELDS_MAX`](iolens_net::FIELDS_MAX).
    pub fields: u32,
    /// When the iovec is built.
    pub iovec: Iovec,
    /// Size of the memory that is sent from.
    pub working_set: WorkingSet,
    /// Connections to take; at least 1.
    pub clients: u32,
    /// What each of them gets.
    pub work: Work,
    /// What both ends have in common.
    pub conditions: Conditions,
}

impl Offer {
    /// Whether this machine can send it, found out before anybody has connected.
    ///
    /// Errors: why not, with the arithmetic where memory is too little.
    pub fn check(&self, host: &HostFacts) -> Result<(), String> {
        availability::open_here(self.entry)?;
        let cell = self.cell();
        if self.entry.locks_memory {
            Limits::here().allow(&cell)?;
        }
        let needed = layout::ring_memory(&cell, layout::ring_messages(&cell, host));
        match host.memory.value() {
            Some(memory) if needed.0 > memory.0 / 2 => Err(format!(
                "the messages for {} need {needed} of memory, more than half of {memory}",
                clients(self.clients)
            )),
            _ => Ok(()),
        }
    }

    /// The cell that this would be in a run, for what depends on nothing else
    /// but the messages.
    fn cell(&self) -> Cell {
        Cell {
            setting: Setting::Net(NetSetting {
                topology: Topology::Loopback,
                mode: Mode::Stream,
                working_set: self.working_set,
                fields: self.fields,
                iovec: self.iovec,
                receiver: String::new(),
                tuning: Tuning::DEFAULT,
            }),
            threads: self.clients,
            size: self.message_bytes,
        }
    }

    fn shape(&self, host: &HostFacts) -> Shape {
        Shape {
            messages: layout::ring_messages(&self.cell(), host) as usize,
            message_bytes: usize::try_from(self.message_bytes.0).unwrap_or(usize::MAX),
            fields: self.fields as usize,
            iovec: self.iovec,
        }
    }

    /// One for each client, or one deadline for all.
    fn budgets(&self) -> Vec<Budget> {
        match self.work {
            Work::Messages(n) => {
                let budget = || Budget::messages(n, 1).in_pieces(self.message_bytes.0);
                (0..self.clients).map(|_| budget()).collect()
            }
            Work::Window(time) => vec![Budget::window(time.0, self.message_bytes.0)],
        }
    }
}

/// `1 client`, `3 clients`.
fn clients(n: u32) -> String {
    format!("{n} client{}", if n == 1 { "" } else { "s" })
}

/// The sending end before all clients are there.
#[derive(Debug)]
pub struct Listening<'a> {
    offer: &'a Offer,
    shape: Shape,
    listener: tcp::Listener,
    address: SocketAddr,
    clients: Vec<Connection>,
}

impl<'a> Listening<'a> {
    /// Listens on an address; port 0 is one of the kernel's choosing.
    ///
    /// Errors: the step that failed, and what to do.
    pub fn open(
        offer: &'a Offer,
        host: &HostFacts,
        address: &SocketAddr,
    ) -> Result<Listening<'a>, String> {
        let options = offer.conditions.options();
        let listener = tcp::Listener::open(address, &options, offer.clients as usize);
        let listener = listener.map_err(|error| refused(&error, address))?;
        let address = listener.address().map_err(|error| error.to_string())?;
        Ok(Listening { offer, shape: offer.shape(host), listener, address, clients: Vec::new() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next client, for as long as it takes; `None` when the user
    /// has interrupted.
    ///
    /// Errors: the step that failed.
    pub fn accept(&mut self, interrupts: &Interrupts) -> Result<Option<SocketAddr>, SetupError> {
        let wait = |errno| SetupError { tried: "wait for a connection".to_owned(), errno };
        loop {
            match poll::readable(&[interrupts.as_fd(), self.listener.as_fd()], u64::MAX) {
                Ok(ready) if ready[0] => return Ok(None),
                Ok(ready) if ready[1] => {}
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(errno) => return Err(wait(errno)),
            }
            match self.take() {
                Ok(peer) => return Ok(Some(peer)),
                // Whoever it was has gone again.
                Err(error) if GONE.contains(&error.errno) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self) -> Result<SocketAddr, SetupError> {
        let fd = self.listener.accept()?;
        let peer = tcp::peer_address(fd.as_fd())?;
        self.clients.push(Connection::of(fd, peer)?);
        Ok(peer)
    }

    /// Listens no more, and sends to those who came.
    pub fn send(self, interrupts: &mut Interrupts) -> Transfer {
        let Listening { offer, shape, listener, address, clients } = self;
        drop(listener);
        let budgets = offer.budgets();
        let stop = |insistence| {
            budgets.iter().for_each(Budget::stop);
            if insistence == Insistence::Insists {
                for client in &clients {
                    // Those that have ended are as good.
                    let _ = tcp::hang_up(client.as_fd());
                }
            }
        };
        let serve = |thread: usize, client: &Connection, start: &Start| {
            let budget = &budgets[thread % budgets.len()];
            Task { offer, shape, client, budget }.serve(thread, start)
        };
        let done = serve_all(&clients, interrupts, &stop, serve);
        let name = Name {
            end: End::Sender,
            primitive: offer.entry.id,
            address,
            message_bytes: Some(offer.message_bytes),
        };
        done.transfer(&name, &clients)
    }
}

/// Why it cannot listen, and what to do.
fn refused(error: &SetupError, address: &SocketAddr) -> String {
    let advice = match error.errno {
        Errno::EADDRINUSE => {
            "another program listens there: take another port, or 0 for a free one"
        }
        Errno::EADDRNOTAVAIL => "no device of this machine has that address",
        Errno::EACCES if address.port() < 1024 => {
            "only root may listen on ports below net.ipv4.ip_unprivileged_port_start"
        }
        _ => return error.to_string(),
    };
    format!("{error}\n  {advice}")
}

/// What accepting ends with when the client has gone meanwhile.
const GONE: [Errno; 4] = [Errno::ECONNABORTED, Errno::ENOTCONN, Errno::EAGAIN, Errno::EINTR];

/// One client, to be served.
struct Task<'a> {
    offer: &'a Offer,
    shape: Shape,
    client: &'a Connection,
    budget: &'a Budget,
}

impl Task<'_> {
    /// Everything of one thread.
    fn serve(&self, thread: usize, start: &Start) -> (Served, Option<ProcessCpu>) {
        let opened = self.offer.conditions.pin(thread).and_then(|()| self.open());
        match (start.meet(thread, opened.is_ok()), opened) {
            (Ok(before), Ok(mut sender)) => (self.send(sender.as_mut()), before),
            (Ok(_), Err(why)) => (Served::nothing(why), None),
            (Err(not), opened) => (not_started(not, opened.err()), None),
        }
    }

    fn open(&self) -> Result<Box<dyn Sender + '_>, String> {
        let stall_limit = self.offer.conditions.stall_limit;
        let link = Link::Socket(self.client.as_fd());
        let setup = Setup { link, shape: self.shape, tuning: Tuning::DEFAULT, stall_limit };
        let mut sender = (self.offer.entry.open)(setup).map_err(|error| error.to_string())?;
        if self.offer.working_set == WorkingSet::Hot {
            sender.touch();
        }
        Ok(sender)
    }

    /// Sends everything and waits for the receipt.
    fn send(&self, sender: &mut dyn Sender) -> Served {
        let first_ns = clock::monotonic_ns();
        let result = self.transmit(sender);
        let mut facts = socket_facts(self.client.as_fd());
        facts.extend(sender.facts().into_iter().map(|(name, value)| (name.to_owned(), value)));
        let tally = sender.tally();
        let served = |span, until, failure| Served {
            tally,
            mapped_bytes: None,
            untimed_bytes: 0,
            span,
            until,
            failure,
            facts,
        };
        match result {
            Ok((span, until)) => {
                let failure = self.client.ended().err().map(|error| error.to_string());
                served(span, until, failure)
            }
            Err(why) => {
                let why = self.explain(why, &tally);
                served(span_from(first_ns), Until::LastCall, Some(why))
            }
        }
    }

    /// All of the budget, to the receipt and the last completion; the clock and
    /// what ended it.
    fn transmit(&self, sender: &mut dyn Sender) -> Result<(Span, Until), Broken> {
        let fd = self.client.as_fd();
        let mut span = sender.run(self.budget).map_err(Broken::at("send"))?;
        // Before the end of the stream: a receiver that has read it may close its own
        // end at once, and then nothing is left to wait on.
        sender.settle().map_err(Broken::at("hear that everything was released"))?;
        let settled_ns = clock::monotonic_ns();
        let read_before_the_end = tcp::info(fd).is_ok_and(|info| info.peer_has_ended);
        tcp::finish_sending(fd).map_err(Broken::at("end the stream"))?;
        let last = Last { fd, has_ended: read_before_the_end };
        let (until, end_ns) = last
            .await_receipt(self.offer.conditions.stall_limit)
            .map_err(Broken::at("hear of the receipt"))?;
        span.last_call_ns = end_ns.max(settled_ns);
        Ok((span, until))
    }

    /// Why it broke off, and after how much.
    fn explain(&self, broken: Broken, tally: &Tally) -> String {
        let Broken { tried, errno } = broken;
        let done = format!("{} in {} messages", amount(tally.bytes), tally.messages);
        let conditions = &self.offer.conditions;
        if errno == Errno::ENOBUFS && self.offer.entry.locks_memory {
            return format!("{}; sent: {done}", Limits::here().refusal(&self.offer.cell()));
        }
        of_the_peer(errno, "receiver", conditions.stall_limit, &done).unwrap_or_else(|| match errno
        {
            Errno::ETIMEDOUT => {
                format!("cannot {tried}: no completion came within the time limit after {done}")
            }
            errno => format!("cannot {tried} after {done}: {errno}"),
        })
    }
}

/// A step that failed.
#[derive(Debug, Clone, Copy)]
struct Broken {
    tried: &'static str,
    errno: Errno,
}

impl Broken {
    fn at(tried: &'static str) -> impl Fn(Errno) -> Broken {
        move |errno| Broken { tried, errno }
    }
}

/// A connection whose stream was ended at this end.
pub(super) struct Last<'a> {
    pub(super) fd: BorrowedFd<'a>,
    /// Whether the receiver had ended its own direction before: then its end is
    /// no receipt.
    pub(super) has_ended: bool,
}

impl Last<'_> {
    /// Waits until the receiver closes its end, or its kernel has everything and
    /// it does not.
    ///
    /// Errors: `EAGAIN` when neither moved within the limit; what the connection
    /// says when the receiver has gone.
    pub(super) fn await_receipt(&self, stall_limit: Duration) -> Result<(Until, u64), Errno> {
        let stall_ns = u64::try_from(stall_limit.as_nanos()).unwrap_or(u64::MAX);
        let (mut least, mut moved_ns) = (u64::MAX, clock::monotonic_ns());
        let mut acknowledged_ns = None;
        loop {
            if self.hear()? {
                return Ok((Until::Receipt, clock::monotonic_ns()));
            }
            let missing = tcp::unacknowledged_bytes(self.fd)?;
            let now_ns = clock::monotonic_ns();
            if missing < least {
                (least, moved_ns) = (missing, now_ns);
            }
            if missing == 0 {
                let since_ns = *acknowledged_ns.get_or_insert(now_ns);
                if self.has_ended || now_ns - since_ns >= RECEIPT_NS {
                    return Ok((Until::Acknowledgement, since_ns));
                }
            } else if now_ns - moved_ns >= stall_ns {
                return Err(Errno::EAGAIN);
            }
        }
    }

    /// Listens for a moment; whether the receiver has closed its end. What it
    /// says before that is nobody's business.
    fn hear(&self) -> Result<bool, Errno> {
        if self.has_ended {
            // It can always be read, and says at once that both directions have
            // ended, so that there is nothing to wait on: an error is all that
            // it can still tell.
            return match zerocopy::wait(self.fd, 0) {
                Ok(_) | Err(Errno::ENOTCONN | Errno::EINTR) => {
                    poll::readable(&[], ASK_NS).map(|_| false).or_else(|errno| match errno {
                        Errno::EINTR => Ok(false),
                        errno => Err(errno),
                    })
                }
                Err(errno) => Err(errno),
            };
        }
        match poll::is_readable(self.fd, ASK_NS) {
            Ok(false) | Err(Errno::EINTR) => return Ok(false),
            Ok(true) => {}
            Err(errno) => return Err(errno),
        }
        match socket::recv(self.fd, &mut [0; 4096]) {
            Ok(bytes) => Ok(bytes == 0),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}
