//! What is listed as pages of the documentation: what it is, nothing about this machine.

use std::fmt::Write;

use iolens_model::data_path::{DataPath, End, Hop, Movement, Mover};
use iolens_model::host::KernelVersion;
use iolens_model::metrics::METRICS;
use iolens_net::entry::Entry;
use iolens_net::receivers::RECEIVERS;
use iolens_net::registry::REGISTRY;
use iolens_server::models::MODELS;

use super::{calls_of, in_families};
use crate::args::Listed;

/// The page of a kind; of those that have none, that of the methods.
pub(super) fn of(what: Option<Listed>) -> String {
    match what {
        Some(Listed::Calls) => system_calls(),
        Some(Listed::Models) => models(),
        Some(Listed::Metrics) => metrics(),
        _ => primitives(),
    }
}

const HEAD: &str = "\
# Primitives

The methods of `iolens run net`, which the code calls primitives. This file is made from the
entries in `crates/studies/net/src/primitives` and `crates/studies/net/src/receivers` by
`cargo xtask docs`; a test says when it is out of date. `iolens list` says which of
them work on a machine, and why the others do not.

- **Linux**: the first kernel that has what it needs; `-` for a control that makes no
  system call.
- **Calls**: system calls per message at the sender, if none is cut short.
- **Copies**: CPU copies of each payload byte, at the sender and from the sender's
  fields to the receiver's buffer. Where the kernel decides at run time whether
  to copy, both numbers are given; a run shows the measured share.
- **Hops**: the path of the bytes over loopback and veth, received with `recv`.

Each primitive that sends with system calls has a twin, `bare_<id>` (shown by
`list --all`): a bare loop of the same calls. The primitive must be EQUIVALENT to
it: `run net --methods send,bare_send --baseline send`.
";

/// The whole file.
fn primitives() -> String {
    let mut text = HEAD.to_owned();
    let entries = in_families(REGISTRY.iter().copied());
    for family in entries.chunk_by(|a, b| a.family == b.family) {
        table(&mut text, family);
        for path in alike(family.iter().copied(), |entry| entry.hops) {
            let ids: Vec<&str> = path.iter().map(|entry| entry.id).collect();
            hops(&mut text, &ids, path[0].hops);
        }
    }
    receivers(&mut text);
    text
}

const RECEIVERS_HEAD: &str = "
## receivers

The receiver is an axis of a run (`--receivers`): all arms of a cell have the same one.
These hops take the place of those of `recv`.

";

/// The receivers and their hops, those with the same ones together.
fn receivers(text: &mut String) {
    text.push_str(RECEIVERS_HEAD);
    text.push_str("| id | what it does | Linux |\n|---|---|---|\n");
    for entry in RECEIVERS {
        let _ = writeln!(text, "| `{}` | {} | {} |", entry.id, entry.summary, since(entry.since));
    }
    let paths = alike(RECEIVERS.iter().copied(), |entry| entry.hops);
    for path in paths {
        let ids: Vec<&str> = path.iter().map(|entry| entry.id).collect();
        hops(text, &ids, path[0].hops);
    }
}

const CALLS_HEAD: &str = "\
# Calls

The system calls that `iolens run syscall` compares. This file is made from the entries
in `crates/studies/syscall/src` by `cargo xtask docs`; a test says when it is out of date.
`iolens list calls` says which of them work on a machine, and why the others do not.

- **Linux**: the first kernel that has it; `-` if every kernel has it.
- **Calls**: system calls of one unit; 0 if the kernel is not called.
- **Bytes**: what one unit moves between the program and the kernel: a block, which is 1 B or
  what `--sizes` says. `--sizes` leaves out calls that move none.
- **File**: with `--file`, calls that *read* use that file, calls that *write* are refused,
  and the others are left out.
- **At most**: units in one slice of a thread, for calls that use up something made before
  the slice, or that take milliseconds; fewer if blocks are large.
";

/// The calls by kind.
fn system_calls() -> String {
    let mut text = CALLS_HEAD.to_owned();
    let entries = super::calls_by_kind();
    for kind in entries.chunk_by(|a, b| a.kind == b.kind) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n## {}\n", kind[0].kind);
        text.push_str("| id | what is done | Linux | calls | bytes | file | at most |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        for entry in kind {
            let control = if entry.control { " (a control)" } else { "" };
            let most = entry.most.map_or_else(|| "-".to_owned(), |most| most.to_string());
            let _ = writeln!(
                text,
                "| `{}` | {}{control} | {} | {} | {} | {} | {most} |",
                entry.id,
                entry.summary,
                since(entry.since),
                entry.calls,
                if entry.bytes > 0 { "a block" } else { "-" },
                entry.of_file.word().unwrap_or("-")
            );
        }
    }
    text
}

/// The first kernel, or a dash.
fn since(version: Option<KernelVersion>) -> String {
    version.map_or_else(|| "-".to_owned(), |version| version.to_string())
}

// Writing to a string cannot fail.
fn table(text: &mut String, family: &[&Entry]) {
    let _ = writeln!(text, "\n## {}\n", family[0].family.name());
    text.push_str("| id | what it does | Linux | calls | copies at the sender | end to end |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for entry in family {
        let hidden = if entry.hidden { " (shown by `list --all`)" } else { "" };
        let since = since(entry.since);
        let path = entry.data_path();
        let _ = writeln!(
            text,
            "| `{}` | {}{hidden} | {since} | {} | {} | {} |",
            entry.id,
            entry.summary,
            calls_of(entry.calls),
            copies(&path, DataPath::copies_sender),
            copies(&path, |path, late| path.copies_end_to_end(late, 0.0)),
        );
    }
}

/// `1`, or `0 or 1` where the kernel decides.
fn copies(path: &DataPath, of: fn(&DataPath, f64) -> f64) -> String {
    let (least, most) = (of(path, 0.0), of(path, 1.0));
    if least == most { format!("{least}") } else { format!("{least} or {most}") }
}

/// Entries with the same hops together; those that have none are left out.
fn alike<'a, T>(entries: impl Iterator<Item = &'a T>, hops: fn(&T) -> &[Hop]) -> Vec<Vec<&'a T>> {
    let mut paths: Vec<Vec<&T>> = Vec::new();
    for entry in entries.filter(|entry| !hops(entry).is_empty()) {
        match paths.iter_mut().find(|path| hops(path[0]) == hops(entry)) {
            Some(path) => path.push(entry),
            None => paths.push(vec![entry]),
        }
    }
    paths
}

fn hops(text: &mut String, ids: &[&str], hops: &[Hop]) {
    let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    let _ = writeln!(text, "\n{}:\n", ids.join(", "));
    for (number, hop) in hops.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", number + 1, sentence(hop));
    }
}

/// `user memory → socket buffer: copied by the kernel at the sender (`f`)`.
fn sentence(hop: &Hop) -> String {
    let movement = match hop.movement {
        Movement::Copy => "copied",
        Movement::Reference => "passed on as a reference",
        Movement::LateCopy => "copied late, if at all,",
        Movement::Mapped => "mapped where whole pages can be,",
        Movement::Discarded => "thrown away unread",
    };
    let mover = match hop.mover {
        Mover::User => "by the program",
        Mover::Kernel => "by the kernel",
        Mover::Device => "by the device",
    };
    let end = match hop.end {
        End::Sender => "at the sender",
        End::Receiver => "at the receiver",
    };
    format!("{} → {}: {movement} {mover} {end} (`{}`)", hop.from, hop.to, hop.function)
}

const MODELS_HEAD: &str = "\
# Models

The concurrency models of servers that `iolens serve` runs, all with the same protocol
(`docs/server-protocol.md`), the same buffers and the same code around them: they differ
in what each thread waits for, and in which call. This file is made from the entries in
`crates/studies/server/src/models` by `cargo xtask docs`; a test says when it is out of
date. `iolens list models` says which of them work on a machine, and why the others do not.

- **Makes**: what it makes, or keeps, for each connection.
- **Linux**: the first kernel that has what it needs; `-` if every kernel has it.
- **Workers**: what `--workers` counts.

Every connection has TCP_NODELAY and the congestion control `reno`; `--backlog` sets the
listen backlog.

| id | what it does | makes | workers | Linux |
|---|---|---|---|---|
";

/// docs/models.md: what the models are, nothing about this machine.
fn models() -> String {
    let mut text = MODELS_HEAD.to_owned();
    for entry in MODELS {
        let workers = entry.workers.word().unwrap_or("-");
        let since = since(entry.since);
        let (id, summary, makes) = (entry.id, entry.summary, entry.makes.word());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{id}` | {summary} | {makes} | {workers} | {since} |");
    }
    for entry in MODELS {
        let docs = &entry.docs;
        let _ = writeln!(text, "\n## {}\n\nPath through the kernel:\n", entry.id);
        for (index, step) in docs.path.iter().enumerate() {
            let _ = writeln!(text, "{}. {step}", index + 1);
        }
        let _ = writeln!(text, "\n**Needs**: {}.\n", entry.needs);
        let _ = writeln!(text, "**Compared with**: {}\n", docs.compared_with);
        let _ = writeln!(text, "**Does not show**: {}", docs.not_shown);
    }
    text
}

const METRICS_HEAD: &str = "\
# Metrics

What iolens counts and derives, under the names that `iolens list metrics`, exports and
`--json` have for it. This file is made from the table in `crates/model/src/metrics.rs` by
`cargo xtask docs`; a test says when it is out of date.

- A name ends in its unit if it has one. `tx_` is the sending end and `rx_` the receiving
  end; names with neither cover both ends together.
- A count of an arm in a trial is the sum over its counted slices; the figures of a cell are
  computed from its trials (METHOD, From a trial to a ratio).
- **Null where**: what was not measured is null, in CSV an empty field, and never 0.
  `not_measured` in JSON gives the reason in this run. Every metric is null for an arm that
  failed or was skipped, and a sum over both ends is null if one end did not count; `-`
  means that there is no other reason.

| metric | unit | what it is | source | null where |
|---|---|---|---|---|
";

/// The whole file.
fn metrics() -> String {
    let mut text = METRICS_HEAD.to_owned();
    for metric in METRICS {
        let null_where = metric.null_when.words().unwrap_or("-");
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {null_where} |",
            metric.name, metric.unit, metric.what, metric.source
        );
    }
    text
}
