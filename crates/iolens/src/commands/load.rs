//! `iolens load`: load on a server, in this process and in the foreground;
//! nothing is stored.

use std::net::SocketAddr;
use std::process::ExitCode;

use iolens_engine::clock;
use iolens_engine::load::{self, Answer, Count, Expected, Form, Settings, Watch};
use iolens_model::load::{Arrivals, Length, Pace};
use iolens_model::units::Nanos;
use serde_json::json;

use crate::args;
use crate::commands::net::{ended, usable_cpus};
use crate::failure::{Failure, catch};
use crate::output;
use crate::output::style;

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
