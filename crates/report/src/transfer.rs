//! What one end of a transfer by hand prints: for a person, a line for each
//! thing; for programs, one object.

use std::fmt::Write;

use iolens_model::data_path::End;
use iolens_model::outcome::{Status, ZerocopyCounts};
use iolens_model::transfer::{Cpu, OfConnection, Transfer, Until};
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::ZerocopyFigures;
use serde_json::Value;

use crate::groups::{Named, fields, named, object, prefixed};
use crate::json;
use crate::number::{InWords, NONE, count, nanoseconds, percent};
use crate::results::detail;
use crate::text::{BOLD, Style};
use iolens_document::sentence;

/// Where the values stand, behind the names.
const INDENT: usize = 14;

/// A transfer for a terminal.
pub fn text(transfer: &Transfer, style: &Style) -> String {
    named_rows(&headline(transfer), &rows(transfer), style)
}

/// What was done in one line, and values behind their names.
pub(crate) fn named_rows(headline: &str, rows: &[(&str, String)], style: &Style) -> String {
    let mut out = style.paint(BOLD, &sentence::hanging(headline, style.width, 2));
    out.push('\n');
    out.push_str(&listing(rows, style));
    out
}

/// Names, and behind them values that are folded.
pub(crate) fn listing(rows: &[(&str, String)], style: &Style) -> String {
    let mut out = String::new();
    for (name, value) in rows {
        // The value is folded as if the name stood before it.
        let folded =
            sentence::hanging(&format!("{}{value}", " ".repeat(INDENT)), style.width, INDENT);
        let folded = folded.trim_start();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:0$}{folded}", INDENT - 2);
    }
    out
}

/// A transfer for programs. A null is what is not known, or what this end does
/// not have.
pub fn json(transfer: &Transfer) -> String {
    let zerocopy = transfer.zerocopy.as_ref();
    let facts =
        transfer.facts.iter().map(|(name, value)| (name.clone().into(), value.clone().into()));
    let own = fields!(Some(transfer);
        end primitive address connections status reason message_bytes bytes timed_bytes
        messages calls mapped_bytes
    );
    let more = named! {
        schema: json::SCHEMA,
        messages_per_call: transfer.messages_per_call(),
        ns_per_message: transfer.ns_per_message(),
        time_ns: transfer.time,
        time_until: transfer.until,
        goodput_bits_per_s: transfer.goodput_bits_per_s(),
        zerocopy_copied_share: zerocopy.and_then(|z| z.copied_share()),
        mapped_share: transfer.mapped_share(),
        each: transfer.each.iter().map(one).collect::<Vec<_>>(),
        facts: object(facts),
    };
    let sends = prefixed("zerocopy_", fields!(zerocopy; sends completions enobufs));
    json::print(&object([own, more, cpu_ns(transfer.cpu), sends].concat()))
}

/// CPU time of a process, for programs; its parts where they are known.
pub(crate) fn cpu_ns(cpu: Option<Cpu>) -> Named {
    let parts = cpu.and_then(|cpu| cpu.parts());
    named! {
        cpu_ns: cpu.map(|cpu| cpu.sum()),
        cpu_user_ns: parts.map(|(user, _)| user),
        cpu_system_ns: parts.map(|(_, system)| system),
    }
}

fn one(one: &OfConnection) -> Value {
    object(named! {
        peer: one.peer,
        bytes: one.bytes,
        timed_bytes: one.timed_bytes,
        time_ns: one.time,
        goodput_bits_per_s: one.goodput_bits_per_s(),
    })
}

/// `sendmsg_zerocopy (copied): sent messages of 64 KiB from 127.0.0.1:4000 to 1 client`.
fn headline(transfer: &Transfer) -> String {
    let name = match transfer.zerocopy.is_some_and(|counts| figures(&counts).is_copied()) {
        true => format!("{} (copied)", transfer.primitive),
        false => transfer.primitive.clone(),
    };
    let messages = transfer.message_bytes.or_empty(|size| format!(" messages of {size}"));
    let (address, n) = (&transfer.address, transfer.connections);
    let what = match transfer.end {
        End::Sender => format!("sent{messages} from {address} to {}", count(n, "client")),
        End::Receiver => format!("received{messages} from {address}, {}", count(n, "connection")),
    };
    match transfer.status {
        Status::Ok => format!("{name}: {what}"),
        status => format!("{name}: {what}; {}", status.word()),
    }
}

fn figures(counts: &ZerocopyCounts) -> ZerocopyFigures {
    ZerocopyFigures {
        sends: counts.sends,
        completions: counts.completions,
        notifications_per_send: counts.notifications_per_send(),
        copied_share: counts.copied_share(),
        enobufs: counts.enobufs,
    }
}

/// Names and values, in the order of the page.
fn rows(transfer: &Transfer) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("bytes", bytes(transfer.bytes)),
        ("messages", messages(transfer)),
        ("seconds", format!("{:.6}, {}", transfer.time.as_seconds(), clock(transfer))),
    ];
    rows.extend(transfer.ns_per_message().map(|ns| ("per message", nanoseconds(ns))));
    rows.push(("goodput", rate(transfer)));
    rows.extend(each(transfer));
    rows.push(("calls", calls(transfer)));
    if let Some(counts) = &transfer.zerocopy {
        rows.push(("zero-copy", zerocopy(counts)));
    }
    if let Some(mapped) = transfer.mapped_bytes {
        let share = transfer.mapped_share().or_dash(percent);
        rows.push(("mapped", format!("{share} of the bytes, {}", bytes(mapped))));
    }
    rows.push(("CPU time", transfer.cpu.map_or_else(unread, |cpu| cpu_time(transfer, &cpu))));
    let facts: Vec<String> =
        transfer.facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !facts.is_empty() {
        rows.push(("socket", facts.join(", ")));
    }
    rows
}

/// What stands for the CPU time of a process where it could not be read.
pub(crate) fn unread() -> String {
    format!("{NONE}, getrusage(2) failed")
}

/// `1048576000 (1000 MiB)`.
fn bytes(bytes: u64) -> String {
    match bytes {
        Bytes::KIB.. => format!("{bytes} ({})", Bytes(bytes)),
        _ => bytes.to_string(),
    }
}

fn messages(transfer: &Transfer) -> String {
    match transfer.messages {
        Some(messages) => messages.to_string(),
        None => format!("{NONE}, a stream has none in it: their size is told with --size"),
    }
}

/// Which time it is.
fn clock(transfer: &Transfer) -> &'static str {
    match (transfer.end, transfer.until) {
        (End::Sender, Until::Receipt) => "from the first call to the last receipt",
        (End::Sender, Until::Acknowledgement) => {
            "from the first call to the last acknowledgement, which TCP may delay by 40 ms: no \
             receipt, since a receiver did not close its end when it had read everything"
        }
        (End::Sender, _) => "from the first call to the last one",
        (End::Receiver, Until::EndOfStream) => "from the first bytes to the end of the last stream",
        (End::Receiver, _) => "from the first bytes to the last ones",
    }
}

/// A line for each of several connections: `1 (127.0.0.1:4002): 500 MiB in 0.312346 s, 13.4
/// Gbit/s`. All of a receiving end lead to one address.
fn each(transfer: &Transfer) -> impl Iterator<Item = (&'static str, String)> {
    let name = match transfer.end {
        End::Sender => "clients",
        End::Receiver => "connections",
    };
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    let several = if transfer.each.len() > 1 { &transfer.each[..] } else { &[] };
    names.zip((1..).zip(several)).map(|(name, (number, one))| {
        let peer = match transfer.end {
            End::Sender => format!(" ({})", one.peer),
            End::Receiver => String::new(),
        };
        let (bytes, seconds) = (Bytes(one.bytes), one.time.as_seconds());
        let rate = goodput(one.goodput_bits_per_s());
        (name, format!("{number}{peer}: {bytes} in {seconds:.6} s, {rate}"))
    })
}

/// The rate of all connections, and what it leaves out.
fn rate(transfer: &Transfer) -> String {
    if transfer.came_at_once() {
        return "unknown: nothing came after the first receive".to_owned();
    }
    let rate = goodput(transfer.goodput_bits_per_s());
    match transfer.timed_bytes < transfer.bytes {
        true => format!("{rate}, without the first receive of each connection"),
        false => rate,
    }
}

fn goodput(rate: Option<f64>) -> String {
    rate.or_dash(|bits| format!("{} Gbit/s", three_digits(bits / 1e9)))
}

fn calls(transfer: &Transfer) -> String {
    let calls = transfer.calls;
    match transfer.messages_per_call() {
        Some(messages) => format!("{calls}, {} messages per call", three_digits(messages)),
        None if calls > 0 => format!("{calls}, {} per call", Bytes(transfer.bytes / calls)),
        None => calls.to_string(),
    }
}

/// A share between none and all is only about right for `MSG_ZEROCOPY`.
fn zerocopy(counts: &ZerocopyCounts) -> String {
    if counts.sends == 0 {
        return "no send was one".to_owned();
    }
    let said = detail::sends(&figures(counts));
    match counts.copied_share() {
        Some(share) if share > 0.0 && share < 1.0 => {
            format!("{said}; a share between 0 and 100% may be off, since notifications merge")
        }
        _ => said,
    }
}

fn cpu_time(transfer: &Transfer, cpu: &Cpu) -> String {
    let ns = cpu.sum().0 as f64;
    let per = match transfer.messages {
        Some(messages) if messages > 0 => {
            format!(" ({} per message)", nanoseconds(ns / messages as f64))
        }
        _ if transfer.bytes > 0 => format!(" ({} ns/B)", three_digits(ns / transfer.bytes as f64)),
        _ => String::new(),
    };
    cpu.in_words(&per)
}

#[cfg(test)]
mod tests {
    use iolens_model::units::Nanos;

    use super::*;

    const PLAIN: Style = Style::plain(100);

    fn sent() -> Transfer {
        Transfer {
            end: End::Sender,
            primitive: "sendmsg_zerocopy".to_owned(),
            address: "127.0.0.1:4000".to_owned(),
            connections: 2,
            status: Status::Ok,
            reason: None,
            message_bytes: Some(Bytes(65_536)),
            bytes: 1000 << 20,
            timed_bytes: 1000 << 20,
            messages: Some(16_000),
            calls: 16_004,
            time: Nanos(312_345_678),
            until: Until::Receipt,
            zerocopy: Some(ZerocopyCounts {
                notifications: 16_002,
                sends: 16_002,
                completions: 16_002,
                copied: Some(16_002),
                enobufs: 2,
            }),
            mapped_bytes: None,
            cpu: Some(Cpu { user: Nanos(12_100_000), system: Nanos(300_000_000) }),
            each: [(4002, 312_345_678), (4004, 250_000_000)].map(client).to_vec(),
            facts: vec![("congestion control".to_owned(), "reno".to_owned())],
        }
    }

    fn client((port, ns): (u16, u64)) -> OfConnection {
        let (peer, bytes) = (format!("127.0.0.1:{port}"), 500 << 20);
        OfConnection { peer, bytes, timed_bytes: bytes, time: Nanos(ns) }
    }

    fn received() -> Transfer {
        Transfer {
            end: End::Receiver,
            primitive: "tcp_zerocopy_receive".to_owned(),
            // Without 128 KiB.
            timed_bytes: (1000 << 20) - (128 << 10),
            message_bytes: None,
            messages: None,
            until: Until::EndOfStream,
            zerocopy: None,
            mapped_bytes: Some(500 << 20),
            facts: Vec::new(),
            connections: 1,
            each: vec![client((4000, 312_345_678))],
            ..sent()
        }
    }

    #[test]
    fn the_sending_end_says_what_became_of_its_sends() {
        insta::assert_snapshot!(text(&sent(), &PLAIN), @r#"
        sendmsg_zerocopy (copied): sent messages of 64 KiB from 127.0.0.1:4000 to 2 clients
          bytes       1048576000 (1000 MiB)
          messages    16000
          seconds     0.312346, from the first call to the last receipt
          per message 19.5 µs
          goodput     26.9 Gbit/s
          clients     1 (127.0.0.1:4002): 500 MiB in 0.312346 s, 13.4 Gbit/s
                      2 (127.0.0.1:4004): 500 MiB in 0.250000 s, 16.8 Gbit/s
          calls       16004, 1.00 messages per call
          zero-copy   16002 zero-copy sends, 16002 completions read back in 1.00 notifications per send,
                      100% of them reported as copied, 2 sends refused with ENOBUFS or ENOMEM and repeated
          CPU time    312 ms (19.5 µs per message), 12.1 ms of it user and 300 ms system
          socket      congestion control reno
        "#);
    }

    #[test]
    fn the_receiving_end_has_no_messages_unless_told() {
        insta::assert_snapshot!(text(&received(), &PLAIN), @r#"
        tcp_zerocopy_receive: received from 127.0.0.1:4000, 1 connection
          bytes       1048576000 (1000 MiB)
          messages    –, a stream has none in it: their size is told with --size
          seconds     0.312346, from the first bytes to the end of the last stream
          goodput     26.9 Gbit/s, without the first receive of each connection
          calls       16004, 64.0 KiB per call
          mapped      50% of the bytes, 524288000 (500 MiB)
          CPU time    312 ms (0.298 ns/B), 12.1 ms of it user and 300 ms system
        "#);
        let two = Transfer { each: sent().each, ..received() };
        assert!(text(&two, &PLAIN).contains("connections 1: 500 MiB in 0.312346 s, 13.4 Gbit/s\n"));
        // One whose bytes were all there in one receive has no rate, whatever the others have.
        let mut mixed = two;
        mixed.each[1].timed_bytes = 0;
        assert!(text(&mixed, &PLAIN).contains(" 2: 500 MiB in 0.250000 s, –\n"));
        let at_once = Transfer { timed_bytes: 0, ..received() };
        let said = text(&at_once, &PLAIN);
        assert!(said.contains("goodput     unknown: nothing came after the first"), "{said}");
        let told = Transfer { message_bytes: Some(Bytes(100)), messages: Some(7), ..received() };
        let said = text(&told, &PLAIN);
        assert!(
            said.contains("messages    7\n") && said.contains("per message 44.6 ms\n"),
            "{said}"
        );
    }

    #[test]
    fn what_was_cut_short_says_so_and_divides_by_nothing() {
        let nothing = Transfer {
            status: Status::Interrupted,
            bytes: 0,
            timed_bytes: 0,
            messages: Some(0),
            calls: 0,
            time: Nanos(0),
            until: Until::LastCall,
            zerocopy: Some(ZerocopyCounts::default()),
            cpu: None,
            each: Vec::new(),
            ..sent()
        };
        insta::assert_snapshot!(text(&nothing, &PLAIN), @r#"
        sendmsg_zerocopy: sent messages of 64 KiB from 127.0.0.1:4000 to 2 clients; interrupted
          bytes       0
          messages    0
          seconds     0.000000, from the first call to the last one
          goodput     –
          calls       0
          zero-copy   no send was one
          CPU time    –, getrusage(2) failed
          socket      congestion control reno
        "#);
        let copied = Some(1);
        let some =
            ZerocopyCounts { sends: 4, copied, notifications: 2, completions: 4, enobufs: 0 };
        assert!(zerocopy(&some).ends_with("may be off, since notifications merge"));
        let unsure = Transfer { until: Until::Acknowledgement, ..sent() };
        assert!(text(&unsure, &PLAIN).contains("no receipt"));
    }

    #[test]
    fn programs_get_base_units_and_nulls() {
        insta::assert_snapshot!(json(&sent()), @r#"
        {
          "address": "127.0.0.1:4000",
          "bytes": 1048576000,
          "calls": 16004,
          "connections": 2,
          "cpu_ns": 312100000,
          "cpu_system_ns": 300000000,
          "cpu_user_ns": 12100000,
          "each": [
            {
              "bytes": 524288000,
              "goodput_bits_per_s": 13428404154.194828,
              "peer": "127.0.0.1:4002",
              "time_ns": 312345678,
              "timed_bytes": 524288000
            },
            {
              "bytes": 524288000,
              "goodput_bits_per_s": 16777216000.0,
              "peer": "127.0.0.1:4004",
              "time_ns": 250000000,
              "timed_bytes": 524288000
            }
          ],
          "end": "sender",
          "facts": {
            "congestion control": "reno"
          },
          "goodput_bits_per_s": 26856808308.389656,
          "mapped_bytes": null,
          "mapped_share": null,
          "message_bytes": 65536,
          "messages": 16000,
          "messages_per_call": 0.9997500624843789,
          "ns_per_message": 19521.604875,
          "primitive": "sendmsg_zerocopy",
          "reason": null,
          "schema": "iolens/2",
          "status": "ok",
          "time_ns": 312345678,
          "time_until": "receipt",
          "timed_bytes": 1048576000,
          "zerocopy_completions": 16002,
          "zerocopy_copied_share": 1.0,
          "zerocopy_enobufs": 2,
          "zerocopy_sends": 16002
        }
        "#);
        let received: serde_json::Value = serde_json::from_str(&json(&received())).expect("JSON");
        assert_eq!(received["zerocopy_sends"], serde_json::Value::Null);
        assert_eq!(received["mapped_share"], 0.5);
    }
}
