//! The receiving end: it connects to a sending one, receives until every stream
//! has ended, and then closes, which is the receipt.
//!
//! The clock runs from the first bytes to the end of the last stream. It starts
//! when they are here, so rates leave out what the first receive of each
//! connection brought. A stream has no messages in it: who wants them counted
//! says how large they are.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use iolens_model::data_path::End;
use iolens_model::transfer::{Transfer, Until};
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::tcp::{self, SetupError};
use iolens_sys::usage::ProcessCpu;
use iolens_sys::{clock, poll};

use super::{
    Conditions, Connection, Name, Served, Start, amount, not_started, of_the_peer, serve_all,
    socket_facts, span_from,
};
use iolens_harness::op::Span;
use iolens_harness::watch::Insistence;
use iolens_net::receive::{Received, Receiver};
use iolens_net::receivers::Entry;
use iolens_net::take::Setup;

/// How it is received.
#[derive(Debug, Clone)]
pub struct Wish {
    /// With what.
    pub entry: &'static Entry,
    /// Connections to make; at least 1.
    pub connections: u32,
    /// Payload bytes of a message, to count these; `None` leaves them uncounted.
    pub message_bytes: Option<Bytes>,
    /// Fields of a message, for a receiver that scatters.
    pub fields: u32,
    /// What both ends have in common.
    pub conditions: Conditions,
}

/// Connected, and nothing received.
#[derive(Debug)]
pub struct Connected<'a> {
    wish: &'a Wish,
    address: SocketAddr,
    connections: Vec<Connection>,
}

impl<'a> Connected<'a> {
    /// Makes all connections.
    ///
    /// Errors: the step that failed, and what to do.
    pub fn open(wish: &'a Wish, address: SocketAddr) -> Result<Connected<'a>, String> {
        let options = wish.conditions.options();
        let one = |_| Connection::of(tcp::connect_to(&address, &options)?, address);
        let connections = (0..wish.connections).map(one).collect::<Result<_, SetupError>>();
        let connections = connections.map_err(|error| refused(&error, address))?;
        Ok(Connected { wish, address, connections })
    }

    /// Receives until every stream has ended.
    pub fn receive(self, interrupts: &mut Interrupts) -> Transfer {
        let Connected { wish, address, connections } = self;
        let stopped = AtomicBool::new(false);
        let stop = |insistence| {
            stopped.store(true, Ordering::Relaxed);
            for connection in &connections {
                // Those that have ended are as good.
                let _ = match insistence {
                    Insistence::Asked => tcp::finish_receiving(connection.as_fd()),
                    Insistence::Insists => tcp::hang_up(connection.as_fd()),
                };
            }
        };
        let serve = |thread: usize, connection: &Connection, start: &Start| {
            Task { wish, connection, stopped: &stopped }.serve(thread, start)
        };
        let done = serve_all(&connections, interrupts, &stop, serve);
        let name = Name {
            end: End::Receiver,
            primitive: wish.entry.id,
            address,
            message_bytes: wish.message_bytes,
        };
        done.transfer(&name, &connections)
    }
}

/// Why it cannot connect, and what to do.
fn refused(error: &SetupError, address: SocketAddr) -> String {
    let advice = match error.errno {
        Errno::ECONNREFUSED => format!(
            "nothing is listening there: start `iolens net send METHOD --listen {address} \
             --size SIZE` first, with --clients for several connections"
        ),
        // What a blocking connect says when SO_SNDTIMEO is over (socket(7)).
        Errno::EINPROGRESS | Errno::EAGAIN => {
            "nobody answered within the time limit (--stall-limit)".to_owned()
        }
        _ => return error.to_string(),
    };
    format!("{error}\n  {advice}")
}

/// One connection, to be received from.
struct Task<'a> {
    wish: &'a Wish,
    connection: &'a Connection,
    /// The user has interrupted: an end that is seen then is our own.
    stopped: &'a AtomicBool,
}

impl Task<'_> {
    /// Everything of one thread.
    fn serve(&self, thread: usize, start: &Start) -> (Served, Option<ProcessCpu>) {
        let opened = self.wish.conditions.pin(thread).and_then(|()| self.open());
        match (start.meet(thread, opened.is_ok()), opened) {
            (Ok(before), Ok(mut receiver)) => (self.receive(receiver.as_mut()), before),
            (Ok(_), Err(why)) => (Served::nothing(why), None),
            (Err(not), opened) => (not_started(not, opened.err()), None),
        }
    }

    fn open(&self) -> Result<Box<dyn Receiver + '_>, String> {
        let conditions = &self.wish.conditions;
        let receive_bytes = conditions.socket.receive_bytes.0;
        let setup = Setup {
            links: vec![self.connection.as_fd()],
            pipes: vec![false],
            receive_bytes: usize::try_from(receive_bytes).unwrap_or(usize::MAX),
            fields: self.wish.fields as usize,
            stall_limit: conditions.stall_limit,
        };
        (self.wish.entry.open)(setup).map_err(|error| error.to_string())
    }

    /// Receives to the end of the stream.
    fn receive(&self, receiver: &mut dyn Receiver) -> Served {
        let mut received = Received::default();
        let result = self.await_first().and_then(|()| receiver.receive_into(&mut received));
        let end_ns = clock::monotonic_ns();
        let facts = socket_facts(self.connection.as_fd());
        let failure = match result {
            Ok(()) => self.give_receipt().err().or_else(|| self.cut_off(received.tally.bytes)),
            Err(errno) => Some(self.explain(errno, received.tally.bytes)),
        };
        let span = match received.first_ns {
            0 => Span::none(),
            first_ns => Span { last_call_ns: end_ns, ..span_from(first_ns) },
        };
        Served {
            tally: received.tally,
            mapped_bytes: received.mapped_bytes,
            untimed_bytes: received.first_bytes,
            span,
            until: if failure.is_none() { Until::EndOfStream } else { Until::LastCall },
            failure,
            facts,
        }
    }

    /// Closes the connection's own direction. One that was interrupted is left
    /// as it is, and reset in the end.
    fn give_receipt(&self) -> Result<(), String> {
        if self.stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.connection.ended().map_err(|error| error.to_string())?;
        let refused = |errno| format!("cannot give the sender its receipt: {errno}");
        tcp::finish_sending(self.connection.as_fd()).map_err(refused)
    }

    /// Waits until something comes, for as long as it takes: the sender waits
    /// for all of its clients.
    fn await_first(&self) -> Result<(), Errno> {
        loop {
            match poll::is_readable(self.connection.as_fd(), u64::MAX) {
                Ok(true) => return Ok(()),
                Ok(false) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// What is wrong with a stream of so many bytes that has ended.
    fn cut_off(&self, bytes: u64) -> Option<String> {
        let size = self.wish.message_bytes?;
        let rest = bytes % size.0;
        (rest > 0).then(|| {
            format!(
                "the stream ended after {}, {rest} bytes into a message of {size}: the sender \
                 went away, or sends other sizes",
                amount(bytes)
            )
        })
    }

    fn explain(&self, errno: Errno, bytes: u64) -> String {
        let done = amount(bytes);
        of_the_peer(errno, "sender", self.wish.conditions.stall_limit, &done)
            .unwrap_or_else(|| format!("cannot receive after {done}: {errno}"))
    }
}
