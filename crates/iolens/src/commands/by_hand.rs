//! `iolens net send`, `net recv`, `serve` and `load`: one end by hand, in this process and in the
//! foreground; nothing is stored.

use std::net::SocketAddr;
use std::process::ExitCode;

use iolens_engine::by_hand::Conditions;
use iolens_engine::by_hand::recv::{Connected, Wish};
use iolens_engine::by_hand::send::{Listening, Offer};
use iolens_engine::{Interrupts, clock};
use iolens_model::load::{Arrivals, Length, Pace};
use iolens_model::outcome::Status;
use iolens_model::plan::SocketOptions;
use iolens_model::server::Mishap;
use iolens_model::transfer::Transfer;
use iolens_model::transport::Transport;
use iolens_model::trial::Work;
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};
use iolens_net::entry::Ends;
use iolens_report::{served, transfer};
use iolens_server::load::{self, Answer, Count, Expected, Form, Settings, Watch};
use iolens_server::models::MODELS;
use iolens_server::{News, Running, ServeOptions, Server};
use serde_json::json;

use crate::args::{self, BothEnds, NetEnd};
use crate::failure::{Failure, INTERRUPTED, catch, this_hosts_limits, unusable, usage};
use crate::output::{self, style};
use crate::runner;
use crate::studies::net::{known_method, known_receiver};
use crate::studies::server::known_model;
use crate::studies::tuning::CONGESTION;

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
    let host = this_hosts_limits()?;
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
    let entry = known_method(&args.primitive).map_err(Failure::usage)?;
    if entry.ends == Ends::SenderOnly {
        return Err(usage!(
            "`{}` sends nothing: it is a control, whose bytes do not leave this process\n  \
             `iolens list methods` shows what sends",
            entry.id
        ));
    }
    if entry.transport != Transport::Tcp {
        return Err(usage!(
            "`{}` sends over {}: `iolens net` uses TCP, so that any program can be the other \
             end\n  `iolens list methods` shows what else sends",
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
    let entry = known_receiver(&args.receiver).map_err(Failure::usage)?;
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
fn usable_cpus(asked: Option<&Vec<u32>>) -> Result<Option<Vec<u32>>, Failure> {
    if let Some(cpus) = asked {
        let here = this_hosts_limits()?;
        runner::check_cpus(cpus, &here.cpus)?;
    }
    Ok(asked.cloned())
}

/// The first of a name's addresses that works, or what the system said of them.
fn first_that_works<T>(
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
fn ended(status: Status, reason: Option<&str>) -> Result<ExitCode, Failure> {
    match status {
        Status::Ok => Ok(ExitCode::SUCCESS),
        Status::Interrupted => Ok(ExitCode::from(INTERRUPTED)),
        status => Err(Failure::unusable(reason.unwrap_or(status.word()))),
    }
}

/// Serves until the user ends it.
pub(crate) fn serve(args: &args::Serve) -> Result<ExitCode, Failure> {
    let model = known_model(&args.model).map_err(Failure::usage)?;
    if let (Some(_), None) = (args.workers, model.workers.word()) {
        let with: Vec<&str> =
            MODELS.iter().filter(|m| m.workers.word().is_some()).map(|m| m.id).collect();
        return Err(usage!(
            "`{}` has no number of threads or processes to choose: --workers is for {}",
            model.id,
            with.join(", ")
        ));
    }
    let cpus = usable_cpus(args.cpus.as_ref())?;
    let all = match &cpus {
        Some(cpus) => cpus.len(),
        None => this_hosts_limits()?.cpus.len(),
    };
    let workers = args.workers.unwrap_or_else(|| u32::try_from(all.max(1)).unwrap_or(u32::MAX));
    let addresses = args.listen.resolve().map_err(Failure::usage)?;
    // Before anybody can connect, so that the end is in order whenever it comes.
    let interrupts =
        Interrupts::catch_in_scripts_too().map_err(|e| unusable!("cannot catch signals: {e}"))?;
    let server = first_that_works(&addresses, |&address| {
        Server::open(ServeOptions {
            model,
            service: args.service.clone(),
            address,
            backlog: args.backlog,
            workers,
            close: args.close,
            stall_limit: args.stall_limit.as_duration(),
            cpus: cpus.clone(),
        })
    })?;
    let running =
        server.start().map_err(|why| unusable!("cannot serve with {} here: {why}", model.id))?;
    output::note(&format!("listening on {}", running.address()));
    let waited = watch(&running, &interrupts);
    let served = running.stop();
    output::result(&match args.json {
        true => served::json(&served),
        false => served::text(&served, &style()),
    });
    waited?;
    match served.failure {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => Err(Failure::unusable(why)),
    }
}

/// Waits for the end, and says when something goes wrong for the first time.
fn watch(running: &Running, interrupts: &iolens_engine::Interrupts) -> Result<(), Failure> {
    let mut told: Vec<Mishap> = Vec::new();
    loop {
        let news = running.wait(interrupts);
        match news.map_err(|e| unusable!("cannot wait for the end: {e}"))? {
            News::Interrupted | News::Ended => return Ok(()),
            News::Mishaps => {
                for (mishap, _) in running.mishaps() {
                    if !told.contains(&mishap) {
                        told.push(mishap);
                        output::note(&format!("counted from now on: {}", mishap.text()));
                    }
                }
            }
        }
    }
}

/// For how long requests are made where neither a time nor a number is asked for.
const TIME: Nanos = Nanos(10 * Nanos::SECOND.0);

/// Offers a load and says what came of it.
pub(crate) fn load(args: &args::Load) -> Result<ExitCode, Failure> {
    let settings = settings(args)?;
    settings.check().map_err(Failure::usage)?;
    let mut interrupts = catch()?;
    let print = |answer: &Answer<'_>| {
        output::result(&if args.json { printed_json(answer) } else { printed(answer) });
    };
    let watch: Option<&Watch<'_>> = if args.print { Some(&print) } else { None };
    let load = load::run_by_hand(&settings, &mut interrupts, watch);
    output::result(&match args.json {
        true => iolens_report::load::json(&load),
        false => iolens_report::load::text(&load, &style()),
    });
    ended(load.status, load.reason.as_deref())
}

/// What is asked for, as far as it can be.
fn settings(args: &args::Load) -> Result<Settings, Failure> {
    let address = reachable(&args.address.resolve().map_err(Failure::usage)?);
    let text = filler(args.payload.map_or(0, |bytes| bytes.0));
    let expected = match (&args.service, &args.http) {
        (_, Some(_)) => Expected::Http,
        (Some(service), None) => Expected::of_service(service, &text).map_err(Failure::usage)?,
        (None, None) => Expected::Id,
    };
    let form = match &args.http {
        Some(path) => Form::http(path, &address),
        None => Form::Line { text },
    };
    let pace = match args.rate {
        Some(rate) => Pace::Open { rate, arrivals: args.arrivals.unwrap_or(Arrivals::Poisson) },
        None => Pace::Closed { think: args.think.unwrap_or_default() },
    };
    let count = match (args.requests, args.time) {
        (Some(requests), _) => Count::Requests(requests),
        (None, Some(time)) => Count::Time(time),
        (None, None) if args.print => Count::Requests(u64::from(args.connections)),
        (None, None) => Count::Time(TIME),
    };
    let cpus = usable_cpus(args.cpus.as_ref())?;
    let per_cpu = cpus.as_ref().and_then(|cpus| u32::try_from(cpus.len()).ok()).unwrap_or(1);
    Ok(Settings {
        connections: args.connections,
        in_flight: args.in_flight,
        length: if args.short { Length::Short } else { Length::Long },
        pace,
        count,
        warmup: args.warmup.unwrap_or_default(),
        ramp: args.ramp.unwrap_or_default(),
        timeout: args.timeout,
        threads: args.threads.unwrap_or(per_cpu.min(args.connections)),
        cpus,
        sources: args.sources.clone().unwrap_or_default(),
        seed: args.seed.unwrap_or_else(clock::unix_ns),
        form,
        expected,
        ..Settings::closed_loop(address)
    })
}

/// The first of a name's addresses that can be connected to, or the first one.
fn reachable(addresses: &[SocketAddr]) -> SocketAddr {
    let reaches = |address: &&SocketAddr| std::net::TcpStream::connect(**address).is_ok();
    match addresses {
        // No server sees a connection that nobody asked for.
        [one] => *one,
        several => *several.iter().find(reaches).unwrap_or(&several[0]),
    }
}

/// So many bytes that are easy to tell apart by eye.
fn filler(bytes: u64) -> Vec<u8> {
    let letters = (b'a'..=b'z').chain(b'0'..=b'9');
    letters.cycle().take(usize::try_from(bytes).unwrap_or(usize::MAX)).collect()
}

/// `connection 3, request 17: text`.
fn printed(answer: &Answer<'_>) -> String {
    let wrong = if answer.is_right { "" } else { " (not as expected)" };
    let text = String::from_utf8_lossy(answer.text);
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    let time = Nanos(answer.received_ns - answer.due_ns);
    format!("connection {}, request {}: {text} [{time}]{wrong}\n", answer.connection, answer.id)
}

/// The same for programs: an object on a line, times in ns on `CLOCK_MONOTONIC`.
fn printed_json(answer: &Answer<'_>) -> String {
    let object = json!({
        "connection": answer.connection,
        "id": answer.id,
        "due_ns": answer.due_ns,
        "sent_ns": answer.sent_ns,
        "received_ns": answer.received_ns,
        "is_right": answer.is_right,
        "text": String::from_utf8_lossy(answer.text),
    });
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_printed_on_one_line() {
        let answer = Answer {
            connection: 3,
            id: 17,
            due_ns: 1_000,
            sent_ns: 1_000,
            received_ns: 251_000,
            is_right: true,
            text: b"a\x1b[31m b",
        };
        assert_eq!(printed(&answer), "connection 3, request 17: a\u{fffd}[31m b [250 µs]\n");
        let wrong = Answer { is_right: false, ..answer };
        assert!(printed(&wrong).ends_with("(not as expected)\n"));
        let line = printed_json(&wrong);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(line.ends_with("}\n") && line.lines().count() == 1);
        assert_eq!((&object["due_ns"], &object["received_ns"]), (&1_000.into(), &251_000.into()));
        assert_eq!(
            (&object["text"], &object["is_right"]),
            (&"a\u{1b}[31m b".into(), &false.into())
        );
        assert_eq!(filler(38), b"abcdefghijklmnopqrstuvwxyz0123456789ab");
    }
}
