//! `iolens net send` and `iolens net recv`: one transfer by hand, in this
//! process and in the foreground; nothing is stored.

use std::net::SocketAddr;
use std::process::ExitCode;

use iolens_engine::by_hand::Conditions;
use iolens_engine::by_hand::recv::{Connected, Wish};
use iolens_engine::by_hand::send::{Listening, Offer};
use iolens_engine::host;
use iolens_engine::registry::Ends;
use iolens_model::outcome::Status;
use iolens_model::plan::SocketOptions;
use iolens_model::transfer::Transfer;
use iolens_model::transport::Transport;
use iolens_model::trial::Work;
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};
use iolens_report::transfer;

use crate::args::{self, BothEnds, NetEnd};
use crate::failure::{Failure, INTERRUPTED, catch, unusable, usage};
use crate::output::style;
use crate::request::CONGESTION;
use crate::{output, request, runner};

/// How long it is sent where neither a time nor a number is asked for.
const WINDOW: Nanos = Nanos(5 * Nanos::SECOND.0);

/// One end of a transfer.
pub(crate) fn net(args: &args::Net) -> Result<ExitCode, Failure> {
    match &args.end {
        NetEnd::Send(send) => self::send(send),
        NetEnd::Recv(recv) => self::recv(recv),
    }
}

fn send(args: &args::NetSend) -> Result<ExitCode, Failure> {
    let offer = offer(args)?;
    let host = host::limits(&host::Root::real());
    offer.check(&host).map_err(|why| cannot("send", &args.primitive, &why))?;
    let addresses = args.listen.resolve().map_err(Failure::usage)?;
    let mut interrupts = catch()?;
    let mut listening =
        first_that_works(&addresses, |address| Listening::open(&offer, &host, address))?;
    output::note(&format!("listening on {}", listening.address()));
    for number in 1..=args.clients {
        match listening.accept(&interrupts).map_err(Failure::unusable)? {
            Some(peer) => output::note(&format!("{number} of {} connected: {peer}", args.clients)),
            None => return Err(interrupted_early(number - 1, args.clients)),
        }
    }
    conclude(&listening.send(&mut interrupts), &args.both)
}

/// What is asked for, as far as it can be.
fn offer(args: &args::NetSend) -> Result<Offer, Failure> {
    let entry = request::one_primitive(&args.primitive).map_err(Failure::usage)?;
    if entry.ends == Ends::SenderOnly {
        return Err(usage!(
            "`{}` cannot send to anybody: it is a control, whose bytes do not leave this process\n  \
             `iolens list methods` shows what sends",
            entry.id
        ));
    }
    if entry.transport != Transport::Tcp {
        return Err(usage!(
            "`{}` sends over {}: by hand it is TCP, so that any program can be the other end\n  \
             `iolens list methods` shows what else sends",
            entry.id,
            entry.transport
        ));
    }
    let work = match args.messages {
        Some(messages) => Work::Messages(messages),
        None => Work::Window(args.window.unwrap_or(WINDOW)),
    };
    Ok(Offer {
        entry,
        message_bytes: args.size,
        fields: args.fields,
        iovec: args.iovec,
        working_set: args.send_memory,
        clients: args.clients,
        work,
        conditions: conditions(&args.both, receive_size())?,
    })
}

fn recv(args: &args::NetRecv) -> Result<ExitCode, Failure> {
    let entry = request::known_receiver(&args.receiver).map_err(Failure::usage)?;
    entry.try_here().map_err(|why| cannot("receive", entry.id, &why))?;
    let receive_bytes = args.recv_size.unwrap_or(receive_size());
    let wish = Wish {
        entry,
        connections: args.connections,
        message_bytes: args.size,
        fields: args.fields,
        conditions: conditions(&args.both, receive_bytes)?,
    };
    let addresses = args.address.resolve().map_err(Failure::usage)?;
    let mut interrupts = catch()?;
    let connected = first_that_works(&addresses, |address| Connected::open(&wish, *address));
    let connected = match connected {
        Err(_) if interrupts.came() => return Err(interrupted_early(0, args.connections)),
        connected => connected?,
    };
    conclude(&connected.receive(&mut interrupts), &args.both)
}

/// Bytes asked of one call unless another number is asked for.
fn receive_size() -> Bytes {
    Tuning::DEFAULT.receive_size_bytes.unwrap_or(Bytes(1))
}

/// What both ends have in common, checked.
fn conditions(args: &BothEnds, receive_bytes: Bytes) -> Result<Conditions, Failure> {
    let congestion = args.congestion.clone().unwrap_or_else(|| CONGESTION.to_owned());
    runner::check_congestion(&congestion)?;
    let cpus = usable_cpus(args.cpus.as_ref())?;
    let buffer_bytes = args.socket_buffer.unwrap_or(Tuning::DEFAULT.socket_buffer_bytes);
    let socket = SocketOptions { congestion, buffer_bytes, nodelay: true, receive_bytes };
    Ok(Conditions { socket, cpus, stall_limit: args.stall_limit.as_duration() })
}

/// The processors that are asked for, each of which this process may use.
pub(crate) fn usable_cpus(asked: Option<&Vec<u32>>) -> Result<Option<Vec<u32>>, Failure> {
    if let Some(cpus) = asked {
        runner::check_cpus(cpus, &host::limits(&host::Root::real()).cpus)?;
    }
    Ok(asked.cloned())
}

/// The first of a name's addresses that works, or what the system said of them.
pub(crate) fn first_that_works<T>(
    addresses: &[SocketAddr],
    open: impl Fn(&SocketAddr) -> Result<T, String>,
) -> Result<T, Failure> {
    let mut reasons = Vec::new();
    for address in addresses {
        match open(address) {
            Ok(opened) => return Ok(opened),
            Err(why) => reasons.push(why),
        }
    }
    Err(Failure::unusable(reasons.join("\n")))
}

fn cannot(what: &str, id: &str, why: &str) -> Failure {
    unusable!("cannot {what} with {id} here: {why}")
}

fn interrupted_early(connected: u32, of: u32) -> Failure {
    let message = format!("interrupted before anything moved: {connected} of {of} were connected");
    Failure::interrupted(message)
}

/// Prints what was done, whole or not.
fn conclude(done: &Transfer, args: &BothEnds) -> Result<ExitCode, Failure> {
    output::result(&match args.json {
        true => transfer::json(done),
        false => transfer::text(done, &style()),
    });
    ended(done.status, done.reason.as_deref())
}

/// How a command ends that did one thing, whole or not.
pub(crate) fn ended(status: Status, reason: Option<&str>) -> Result<ExitCode, Failure> {
    match status {
        Status::Ok => Ok(ExitCode::SUCCESS),
        Status::Interrupted => Ok(ExitCode::from(INTERRUPTED)),
        status => Err(Failure::unusable(reason.unwrap_or(status.word()))),
    }
}
