//! What runs of files answer besides which engine is fastest.

use iolens_document::table::{Table, left, right};
use iolens_document::{Fact, Joined, Node, Text};
use iolens_model::command_line;
use iolens_model::copy::ProgramStart;
use iolens_model::file::AfterDrop;
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_stats::after_drop::{Worth, worth};
use iolens_stats::analysis::Analysis;

use super::numbers::{engine, time, times};
use crate::arms::curves;
use crate::bounds::{NO_BOUND, disturbed};
use crate::findings::{self, Flush, Limit, Limiting, Reach};
use crate::number::rate;
use crate::number::{InWords, NONE, count, nanoseconds, percent};
use crate::sections::setting;
use crate::studies::files::{facts, writes};
use crate::words;

/// How close the fastest comes to what bounds it: a fact for each curve.
pub(super) fn limits(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let mut facts: Vec<Fact> = Vec::new();
    let all = findings::limits(run, analysis);
    for own in all.chunk_by(|a, b| (&a.setting, &a.method) == (&b.setting, &b.method)) {
        let Some(first) = own.first() else { continue };
        let bounds = own.iter().map(|limit| bound(run, limit));
        let said = format!(
            "{} at {}, {}: {}",
            first.method,
            first.setting.size,
            rate(first.bytes_per_s.value),
            bounds.joined("; ")
        );
        facts.push(Fact::new(words::curve(&run.header, &first.setting.curve()), said));
    }
    Node::facts(facts).into_iter().collect()
}

fn bound(run: &Run, limit: &Limit) -> String {
    let share = |of: f64| percent(limit.bytes_per_s.value / of);
    match &limit.bound {
        Limiting::BestCold { setting: at, method, .. }
            if *at == limit.setting && *method == limit.method =>
        {
            "the best cold rate here, the best evidence of what the device delivers".to_owned()
        }
        Limiting::BestCold { setting: at, method, bytes_per_s } => format!(
            "{} of the best cold rate here ({}, {method} at {})",
            share(*bytes_per_s),
            rate(*bytes_per_s),
            setting(run, at)
        ),
        Limiting::Memory { name, bytes_per_s, spread } => {
            let mark = spread.or_empty(disturbed);
            let name = format!("the {name} ({}{mark})", rate(*bytes_per_s));
            match limit.reach {
                Reach::Below => format!("{} of {name}{}", share(*bytes_per_s), copied(run)),
                Reach::At => format!("as fast as {name}"),
                Reach::AboveCopy => {
                    format!("faster than {name}, which writes as much to memory besides")
                }
                Reach::Above => format!("faster than {name}, which {NO_BOUND}"),
            }
        }
    }
}

/// What a copy of a file does besides.
fn copied(run: &Run) -> &'static str {
    match run.header.plan.copy() {
        Some(_) => "; copying a file also allocates every page of the new one",
        None => "",
    }
}

/// What was timed, the time, and whether pages of the file were read.
type Timed = (&'static str, fn(&AfterDrop) -> f64, bool);

const TIMED: [Timed; 3] = [
    ("First read of a page of the file", |one| one.page.0 as f64, true),
    ("First read of a MiB of the file", |one| one.mib.0 as f64, true),
    ("open, fstat and close of 10,000 files", |one| one.names.0 as f64, false),
];

/// What dropping caches of the whole system is worth, where the user had it tried.
pub(super) fn drops(run: &Run) -> Vec<Node> {
    let found = run.header.file.as_ref().map_or(&[][..], |file| &file.dropped);
    if found.is_empty() {
        return Vec::new();
    }
    let said = "After the caches of the whole system were dropped (/proc/sys/vm/drop_caches), in \
                random order before the first pass. Cached: of what was read, after the drop. \
                Dentries: unused ones that were left.";
    let tables = TIMED.iter().map(|timed| Node::Table(after_drop(found, timed)));
    std::iter::once(Node::aside(said)).chain(tables).collect()
}

/// Every mode with what came after it.
fn after_drop(found: &[AfterDrop], (what, of, reads): &Timed) -> Table {
    let pages = found.iter().filter_map(|one| one.resident_bytes).max();
    let row = |one: Worth| {
        let percent = |of: &dyn Fn(&AfterDrop) -> Option<f64>| -> String {
            let own = found.iter().filter(|drop| drop.mode == one.mode);
            let shares: Option<Vec<f64>> = own.map(of).collect();
            let median = shares.and_then(|mut shares| {
                shares.sort_unstable_by(f64::total_cmp);
                shares.get(shares.len() / 2).copied()
            });
            median.or_dash(|share| format!("{:.0}", 100.0 * share))
        };
        let resident = |drop: &AfterDrop| {
            let (now, all) = drop.resident_bytes.zip(pages)?;
            Some(now as f64 / all.max(1) as f64)
        };
        let unused = |drop: &AfterDrop| Some(drop.unused_dentries_permille? as f64 / 1000.0);
        vec![
            left("dropped", "", mode(&one)),
            left("time", "[95%]", time(&one.time_ns)),
            left("over nothing", "[95%]", one.ratio.as_ref().or_dash(times)),
            right("cached", "%", if *reads { percent(&resident) } else { NONE.to_owned() }),
            right("dentries", "%", percent(&unused)),
        ]
    };
    Table::of(*what, worth(found, of).into_iter().map(row))
}

/// `1 (pages)`.
fn mode(worth: &Worth) -> String {
    worth.mode.map_or_else(|| "nothing".to_owned(), |mode| format!("{mode} ({})", mode.what()))
}

/// What it takes that each block is on the device before the next one, and what that proves.
pub(super) fn durable(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let mut nodes: Vec<Node> = over_others(run, analysis).into_iter().map(Node::Table).collect();
    if let Some(flush) = findings::flush(run) {
        let flushed = flush_words(&flush).map(|said| Fact::new("Flush", said));
        let bytes = run.header.file.as_ref().map(|file| file.bytes);
        let device = bytes.filter(|_| flush.has_device).map(|bytes| {
            let said = format!(
                "used as found, not preconditioned: after {bytes} and more of writing without a \
                 pause it may be slower"
            );
            Fact::new("Device", said)
        });
        nodes.extend(Node::facts(flushed.into_iter().chain(device).collect()));
    }
    nodes
}

/// A table for each curve that has durable engines; their times stand with all numbers.
fn over_others(run: &Run, analysis: &Analysis) -> Vec<Table> {
    let over_baseline = format!("time over {}'s", run.header.plan.baseline);
    let together = "[95%, all together]";
    let mut tables = Vec::new();
    for (curve, cells) in curves(analysis) {
        let mut table = Table::of(words::curve(&run.header, &curve), []);
        for cell in cells {
            let is_lazy = writes::is_lazy(run, cell);
            for (nth, arm) in writes::durable(run, cell).into_iter().enumerate() {
                let over = writes::over_baseline(arm).filter(|_| is_lazy);
                let next = writes::over_next(run, cell, arm)
                    .or_empty(|(other, ratio)| format!("{} {other}", times(&ratio)));
                let size = if nth == 0 { cell.cell.size.to_string() } else { String::new() };
                let row = vec![
                    right("block size", "", size),
                    left("engine", "", engine(analysis, &arm.arm.label)),
                    left(&over_baseline, together, over.or_dash(|over| times(&over))),
                    left("over another's", together, next),
                ];
                table.fill(nth == 0, row);
            }
        }
        tables.extend(table.with_rows());
    }
    tables
}

/// Whether a block can be on a device in the time that its flush takes.
fn flush_words(flush: &Flush) -> Option<String> {
    if !flush.has_device {
        return Some(format!(
            "{} has no device: nothing written there lasts, and fsync, fdatasync and O_DSYNC do \
             nothing",
            flush.file_system
        ));
    }
    let ns = |ns: u64| nanoseconds(ns as f64);
    let tried = format!(
        "writing a page and its fdatasync took {} before the run (median of {}, {} to {})",
        ns(flush.median_ns?),
        flush.tried,
        ns(flush.least_ns?),
        ns(flush.most_ns?)
    );
    let so = match (flush.is_plausible?, flush.is_guest) {
        (false, _) => {
            "no device programs flash or disk that fast: its cache survives a power cut, or the \
             flush is acknowledged and not made"
        }
        (true, true) => "a device can be that fast",
        (true, false) => {
            "a device can be that fast; whether the bytes survive a power cut only a power cut shows"
        }
    };
    Some(format!("{tried}: {so}"))
}

/// Programs that copy: how they are called, and what starting them takes.
pub(super) fn programs(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let programs = run.header.engines.iter().filter_map(|facts| {
        let line = command_line::join(command_line::redacted(facts.program.as_ref()?));
        let own = if line.contains("{block}") { "" } else { ", in blocks of its own choice" };
        let start = facts::start_of(&run.header, &analysis.told, &facts.id);
        let start = start.or_empty(|start| {
            let ProgramStart { median_ns, min_ns, max_ns, runs, .. } = start;
            format!(
                "; {} to start ({} to {}, {})",
                Nanos(median_ns),
                Nanos(min_ns),
                Nanos(max_ns),
                count(runs, "start")
            )
        });
        Some(Fact::new(&facts.id, Text::code(line).and(format!("{own}{start}"))))
    });
    let facts: Vec<Fact> = programs.collect();
    if facts.is_empty() {
        return Vec::new();
    }
    let said = "As whole processes, from the call that starts them to the end of waiting, on the \
                CPU of the engine's thread. Engines are timed from their first call to their last, \
                with both files open. Starts were timed with an empty file, apart from the copies.";
    vec![Node::aside(said), Node::Facts(facts)]
}
