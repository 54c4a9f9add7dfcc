//! What `iolens load` prints: for a person, a line for each thing and a table of
//! latencies; for programs, one object.

use std::fmt::Write;

use iolens_model::load::{ClientThread, Load, Outcomes, Pace};
use iolens_model::outcome::Status;
use iolens_model::reading::Histogram;
use iolens_model::units::{Bytes, Nanos, three_digits};
use iolens_stats::load::{ClientLimit, Judgement, LATE, QUANTILES, judge, quantile};
use serde_json::Value;

use crate::groups::{fields, named, object, prefixed};
use crate::json;
use crate::number::{InWords, count, percent};
use crate::text::{BOLD, Style, YELLOW};
use crate::transfer::{cpu_ns, listing, unread};
use iolens_document::sentence;

/// A load for a terminal.
pub fn text(load: &Load, style: &Style) -> String {
    let judgement = judge(load);
    let mut out = style.paint(BOLD, &sentence::hanging(&headline(load), style.width, 2));
    out.push('\n');
    out.push_str(&listing(&before(load), style));
    if load.from_due.total() > 0 {
        out.push_str(&latencies(load));
    }
    out.push_str(&listing(&after(load), style));
    for remark in remarks(load, &judgement) {
        let folded = sentence::hanging(&format!("  {remark}"), style.width, 2);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", style.paint(YELLOW, &folded));
    }
    out
}

/// `load on 127.0.0.1:7001: 16 long connections, 1000 requests per second (poisson), 10.0 s`.
fn headline(load: &Load) -> String {
    let mut what = count(load.connections, &format!("{} connection", load.length.word()));
    if load.in_flight > 1 {
        let _ = write!(what, " × {} requests in flight", load.in_flight);
    }
    let pace = match load.pace {
        Pace::Closed { think: Nanos(0) } => "closed loop".to_owned(),
        Pace::Closed { think } => format!("closed loop, {think} think time"),
        Pace::Open { rate, arrivals } => {
            format!("open loop, {} per second ({})", rate_text(rate), arrivals.word())
        }
    };
    let end = match load.status {
        Status::Ok => String::new(),
        status => format!("; {}", status.word()),
    };
    format!("load on {}: {what}, {pace}, {}{end}", load.address, load.window)
}

/// A rate without an exponent and without digits that nobody asked for.
fn rate_text(rate: f64) -> String {
    if rate >= 100.0 { format!("{rate:.0}") } else { three_digits(rate) }
}

/// What stands above the latencies.
fn before(load: &Load) -> Vec<(&'static str, String)> {
    let mut rows = vec![("requests", requests(load))];
    if let Some(rate) = load.rate() {
        rows.push(("rate", format!("{} replies per second{}", rate_text(rate), stability(load))));
    }
    rows
}

fn requests(load: &Load) -> String {
    let Outcomes { ok, timeout, refused, reset, invalid, abandoned } = load.outcomes;
    let unsent = match load.unsent {
        0 => String::new(),
        unsent => format!(" ({unsent} never sent: no connection was free)"),
    };
    let others: Vec<String> = [
        (timeout, format!("{timeout} timeout{unsent}")),
        (refused, format!("{refused} refused")),
        (reset, format!("{reset} reset")),
        (invalid, format!("{invalid} invalid")),
        (abandoned, format!("{abandoned} abandoned by this client")),
    ]
    .into_iter()
    .filter_map(|(count, text)| (count > 0).then_some(text))
    .collect();
    let warmup = match load.warmup {
        0 => String::new(),
        warmup => format!("; {warmup} before, to warm up"),
    };
    match others.is_empty() {
        true if load.scheduled == 0 => format!("none that counts{warmup}"),
        true => format!("{}, all ok{warmup}", load.scheduled),
        false => format!("{}: {ok} ok, {}{warmup}", load.scheduled, others.join(", ")),
    }
}

/// The slowest and the fastest whole second, where there are some.
fn stability(load: &Load) -> String {
    let whole = usize::try_from(load.window.0 / Nanos::SECOND.0).unwrap_or(0);
    let seconds = &load.per_second[..whole.min(load.per_second.len())];
    match (seconds.iter().min(), seconds.iter().max()) {
        (Some(least), Some(most)) if seconds.len() > 1 => {
            format!("; {least} to {most} in a second")
        }
        _ => String::new(),
    }
}

/// Columns of the table of latencies, behind its names.
const COLUMN: usize = 9;
const NAMES: usize = 16;

/// The table of latencies, by both clocks.
fn latencies(load: &Load) -> String {
    let mut out = format!("  {:1$}", "latency", NAMES - 2);
    for name in ["mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"] {
        let _ = write!(out, "{name:>COLUMN$}");
    }
    out.push('\n');
    row(&mut out, "from due", &load.from_due);
    row(&mut out, "from sent", &load.from_sent);
    if load.lag.total() > 0 {
        row(&mut out, "own lag", &load.lag);
    }
    out
}

fn row(out: &mut String, name: &str, times: &Histogram) {
    let _ = write!(out, "    {name:0$}", NAMES - 4);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
    let mean = times.mean_ns().map(|ns| Nanos(ns.round() as u64));
    let quantiles = QUANTILES.iter().map(|&q| quantile(times, q));
    let most = times.quantile_ns(1.0).map(Nanos);
    for time in std::iter::once(mean).chain(quantiles).chain([most]) {
        let text = time.or_dash(|time| time.to_string());
        let _ = write!(out, "{text:>COLUMN$}");
    }
    out.push('\n');
}

/// What stands below the latencies.
fn after(load: &Load) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("checked", load.checked.clone()),
        (
            "bytes",
            format!("{} sent, {} received", Bytes(load.sent_bytes), Bytes(load.received_bytes)),
        ),
        ("connections", connections(load)),
    ];
    if !load.threads.is_empty() {
        rows.push(("client CPU", client(load)));
    }
    if load.late_replies > 0 {
        rows.push((
            "late",
            format!("{} to requests that had timed out", count(load.late_replies, "reply",)),
        ));
    }
    rows.extend(load.failures.iter().map(|(text, times)| ("failure", format!("{times} × {text}"))));
    rows
}

fn connections(load: &Load) -> String {
    let made = load.connects.made;
    let failed = match load.connects.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let ramp = load.connects.ramp.or_empty(|ramp| format!(" in {ramp}, before the requests"));
    format!("{made} made{ramp}{failed}")
}

/// CPU time of the client: its own, which no server is to be charged with.
fn client(load: &Load) -> String {
    let Some(cpu) = load.cpu else { return unread() };
    // The time of all threads since the begin, so the replies of the warm-up are in it.
    let answered = (load.outcomes.ok + load.warmup).max(1);
    let spun: u64 = load.threads.iter().map(ClientThread::polled_ns).sum();
    let worked = cpu.sum().0.saturating_sub(spun);
    let busiest = load.busiest_thread().or_dash(percent);
    let spinning = match spun {
        0 => String::new(),
        spun => format!("; {} polling for due requests", Nanos(spun)),
    };
    let waited = load.run_delay().or_empty(|waited| format!("; {waited} ready without a CPU"));
    format!(
        "{}{spinning}; {} of work per reply; busiest thread {busiest}{waited}",
        cpu.in_words(""),
        Nanos(worked / answered),
    )
}

/// What a reader must know before using a figure.
fn remarks(load: &Load, judgement: &Judgement) -> Vec<String> {
    let mut remarks: Vec<String> =
        judgement.client.iter().map(|limit| saturated(load, limit)).collect();
    if let Some(late) = judgement.late {
        remarks.push(format!(
            "The client itself was late, by {} at most ({} of the requests by {LATE} or more): the \
             longest times from due are partly its own.",
            late.peak,
            percent(late.share)
        ));
    }
    if let Some(achieved) = judgement.achieved.filter(|_| judgement.is_server_behind()) {
        remarks.push(format!(
            "The rate was not kept: {} of the requests due were answered in time, and the client \
             was not the limit. Times from due grow as long as this goes on.",
            percent(achieved)
        ));
    }
    if load.connects.slow > 0 {
        remarks.push(format!(
            "{} took 0.9 s or more: a queue of connections not yet accepted was full, and the kernel \
             tried again after a second. A longer --ramp or a longer backlog avoids that.",
            count(load.connects.slow, "connection")
        ));
    }
    let Some(network) = load.network else { return remarks };
    let counted = [
        ("ListenOverflows", network.listen_overflows),
        ("ListenDrops", network.listen_drops),
        ("RetransSegs", network.retransmits),
    ];
    let counted = counted.iter().filter(|(_, count)| *count > 0);
    let counted: Vec<String> = counted.map(|(name, count)| format!("{name} {count}")).collect();
    if !counted.is_empty() {
        remarks.push(format!(
            "The kernel counted, for everything in this network namespace: {}. Dropped and \
             retransmitted segments show in the tail as times of 200 ms or a second.",
            counted.join(", ")
        ));
    }
    remarks
}

fn saturated(load: &Load, limit: &ClientLimit) -> String {
    let rate = load.rate().or_empty(rate_text);
    match limit {
        ClientLimit::Busy(share) => format!(
            "The client was saturated: one thread worked {} of the time. The rate is a lower bound \
             (≥ {rate} per second), and times include the client's own queue. More --threads offer \
             more, if CPUs are free.",
            percent(*share)
        ),
        ClientLimit::Lag(lag) => format!(
            "The client was saturated: it could not keep its schedule, and took up one request in a \
             hundred {lag} or more after it was due. Times from due are partly its own.{}",
            starved(load)
        ),
    }
}

/// Who had the client's processor, where that is what it waited for.
fn starved(load: &Load) -> String {
    const SHARE: f64 = 0.01;
    let wall: u64 = load.threads.iter().map(|thread| thread.wall.0).sum();
    match load.run_delay() {
        Some(waited) if waited.0 as f64 >= SHARE * wall as f64 => format!(
            " Others had its processor meanwhile: it was ready without one for {waited} \
             (--cpus gives it another)."
        ),
        _ => String::new(),
    }
}

/// A load for programs. A null is what is not known, or what this load does not
/// have.
pub fn json(load: &Load) -> String {
    let judgement = judge(load);
    let (rate, arrivals, think) = match load.pace {
        Pace::Open { rate, arrivals } => (Some(rate), Some(arrivals), None),
        Pace::Closed { think } => (None, None, Some(think)),
    };
    let own = fields!(Some(load);
        address connections in_flight length seed status reason checked scheduled outcomes unsent
        warmup late_replies replies_in_window per_second sent_bytes received_bytes network
    );
    let more = named! {
        schema: json::SCHEMA,
        offered_per_s: rate,
        arrivals: arrivals,
        think_ns: think,
        failures: failures(load),
        window_ns: load.window,
        rate_per_s: load.rate(),
        from_due: summary(&load.from_due),
        from_sent: summary(&load.from_sent),
        lag: summary(&load.lag),
        mean_in_flight: load.mean_in_flight(),
        ramp_ns: load.connects.ramp,
        threads: load.threads.iter().map(thread).collect::<Vec<Value>>(),
        achieved_share: judgement.achieved,
        client_limited: judgement.is_client_limited(),
        server_behind: judgement.is_server_behind(),
        remarks: remarks(load, &judgement),
    };
    let kind = if rate.is_some() { "open" } else { "closed" };
    let connects = prefixed("connections_", fields!(Some(&load.connects); made failed slow));
    let kind = ("loop".into(), kind.into());
    json::print(&object([own, more, cpu_ns(load.cpu), connects, vec![kind]].concat()))
}

/// What a thread of the client spent.
fn thread(thread: &ClientThread) -> Value {
    let own = fields!(Some(thread); involuntary_switches);
    let times = named! {
        cpu_ns: thread.cpu,
        spinning_ns: thread.spinning,
        wall_ns: thread.wall,
        run_delay_ns: thread.run_delay,
        busy_share: thread.busy(),
    };
    object([own, times].concat())
}

fn failures(load: &Load) -> Value {
    let each =
        load.failures.iter().map(|(text, count)| object(named! { what: text, count: count }));
    each.collect()
}

/// Percentiles and the whole histogram.
fn summary(times: &Histogram) -> Value {
    let [p50, p90, p99, p999, p9999] = QUANTILES.map(|q| quantile(times, q));
    let own = named! {
        samples: times.total(),
        mean_ns: times.mean_ns(),
        p50_ns: p50,
        p90_ns: p90,
        p99_ns: p99,
        p999_ns: p999,
        p9999_ns: p9999,
        max_ns: times.quantile_ns(1.0),
        buckets: times.buckets,
    };
    object(own)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
