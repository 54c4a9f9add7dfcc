//! `iolens list`: what exists, from the registry and the tables themselves.

mod markdown;

use std::fmt::Write;
use std::process::ExitCode;

use clap::ValueEnum;
use iolens_engine::stage;
use iolens_file::subject::Subject;
use iolens_file::test_file::TestFile;
use iolens_file::{copy, engines};
use iolens_model::axes::Topology;
use iolens_model::data_path::CallsPerMessage;
use iolens_model::family::Family;
use iolens_model::host::KernelVersion;
use iolens_model::metrics::METRICS;
use iolens_net::availability;
use iolens_net::entry::Entry;
use iolens_net::receivers::RECEIVERS;
use iolens_net::registry;
use iolens_net::transports::{self, Listing};
use iolens_server::models::MODELS;
use iolens_syscall::CALLS;
use serde_json::{Value, json};

use crate::args::{self, Listed, written_choice};
use crate::{built_in, output, studies};

/// Lists one kind of thing, or all.
pub(crate) fn list(args: &args::List) -> ExitCode {
    let kinds = args.what.map_or(Listed::value_variants().to_vec(), |what| vec![what]);
    output::result(&match (args.markdown, args.json) {
        (true, _) => markdown::of(args.what),
        (_, true) => {
            let named =
                kinds.iter().map(|&kind| (written_choice(&kind), items(kind, args.all).into()));
            format!("{:#}", Value::Object(named.collect()))
        }
        _ => text(&kinds, args.all),
    });
    ExitCode::SUCCESS
}

fn text(kinds: &[Listed], all: bool) -> String {
    let mut text = String::new();
    for &kind in kinds {
        if kinds.len() > 1 {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{}{}:",
                if text.is_empty() { "" } else { "\n" },
                written_choice(&kind)
            );
        }
        let layout = match kind {
            Listed::Methods => &BY_FAMILY,
            Listed::Calls => &Layout { group: Some(("kind", family)), ..BY_FAMILY },
            Listed::Engines => &BY_TASK,
            Listed::Models => {
                &Layout { column: Some(("per_connection", "per connection", 0)), group: None }
            }
            _ => &Layout { column: None, group: None },
        };
        let items = items(kind, all);
        text.push_str(&rows(&items, layout));
        if let Some(file_system) = items.iter().find_map(|item| item["file_system"].as_str()) {
            let folder = std::env::temp_dir();
            let _ = writeln!(text, "  Tried in {}, on {file_system}.", folder.display());
        }
    }
    text
}

/// The line above a group, from its word.
type Heading = fn(&str) -> String;

/// How items are listed.
struct Layout {
    /// A key of theirs between name and summary, its heading and least width; beside it stands
    /// whether they work here.
    column: Option<(&'static str, &'static str, usize)>,
    /// What they are listed under, and the line for it.
    group: Option<(&'static str, Heading)>,
}

const BY_FAMILY: Layout =
    Layout { column: Some(("since_linux", "Linux", 0)), group: Some(("family", family)) };

const BY_TASK: Layout = Layout {
    column: Some(("since_linux", "Linux", 6)),
    group: Some(("task", |task| format!("  to {task}:"))),
};

/// A family's name, with the word that selects it where that is another one.
fn family(id: &str) -> String {
    match Family::find(id) {
        Some(family) if family.name() != id => format!("{family} ({id})"),
        _ => id.to_owned(),
    }
}

/// Items in columns, and below each what it needs and why it is not here.
fn rows(items: &[Value], layout: &Layout) -> String {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or("-").to_owned();
    let widest = |key: &str| items.iter().map(|item| text(item, key).len()).max().unwrap_or(0);
    let name = widest("name");
    let middle = |column: &str, here: &str| match layout.column {
        None => String::new(),
        Some((key, heading, least)) => {
            let width = widest(key).max(heading.len()).max(least);
            format!("{column:width$}  {here:4}  ")
        }
    };
    let mut rows = String::new();
    // Writing to a string cannot fail.
    if let Some((_, heading, _)) = layout.column {
        let _ = writeln!(rows, "  {:name$}  {}", "", middle(heading, "here").trim_end());
    }
    let mut group = None;
    for item in items {
        if let Some((key, line)) = layout.group
            && group.replace(&item[key]) != Some(&item[key])
        {
            let _ = writeln!(rows, "{}", line(&text(item, key)));
        }
        let column = layout.column.map_or_else(String::new, |(key, ..)| text(item, key));
        let middle_of_it = middle(&column, if item["available"] == true { "yes" } else { "no" });
        let (id, summary) = (text(item, "name"), text(item, "summary"));
        let _ = writeln!(rows, "  {id:name$}  {middle_of_it}{summary}");
        let below =
            [("workers", "--workers: "), ("needs", "needs "), ("unavailable_reason", "not here: ")];
        for (key, says) in below {
            if let Some(what) = item[key].as_str().filter(|what| *what != "nothing") {
                let _ = writeln!(rows, "  {:name$}  {}{says}{what}", "", middle("", ""));
            }
        }
    }
    rows
}

/// Everything of a kind; each item has a `name` and a `summary`.
fn items(kind: Listed, all: bool) -> Vec<Value> {
    match kind {
        Listed::Studies => studies::ALL
            .iter()
            .map(|spec| json!({"name": spec.study.word(), "summary": spec.summary}))
            .collect(),
        Listed::Methods => methods(all).into_iter().map(method).collect(),
        Listed::Receivers => RECEIVERS
            .iter()
            .map(|entry| {
                let item = json!({"name": entry.id, "summary": entry.summary, "hops": entry.hops});
                tried(since(entry.since, item), entry.try_here())
            })
            .collect(),
        Listed::Calls => calls_by_kind().into_iter().map(call).collect(),
        Listed::Engines => engines(),
        Listed::Models => MODELS
            .iter()
            .map(|entry| {
                let item = json!({
                    "name": entry.id,
                    "summary": entry.summary,
                    "per_connection": entry.makes.word(),
                    "workers": entry.workers.word(),
                    "needs": entry.needs,
                });
                tried(since(entry.since, item), entry.try_here())
            })
            .collect(),
        Listed::Transports => transports::all().into_iter().map(transport).collect(),
        Listed::Networks => Topology::ALL.iter().map(|&t| topology(t)).collect(),
        Listed::Plans => built_in::ALL
            .iter()
            .map(|plan| json!({"name": plan.name, "summary": plan.summary()}))
            .collect(),
        Listed::Metrics => METRICS
            .iter()
            .map(|m| json!({"name": m.name, "summary": m.what, "unit": m.unit, "source": m.source}))
            .collect(),
    }
}

/// An item with what came of trying it here.
fn tried<T>(mut item: Value, here: Result<T, String>) -> Value {
    item["available"] = here.is_ok().into();
    item["unavailable_reason"] = here.err().into();
    item
}

/// An item with the first kernel that has it.
fn since(version: Option<KernelVersion>, mut item: Value) -> Value {
    item["since_linux"] = version.map(|version| version.to_string()).into();
    item
}

/// The entries by family and then by id; `all` for those too that only check
/// iolens itself.
fn methods(all: bool) -> Vec<&'static Entry> {
    in_families(registry::all().filter(|entry| all || !entry.hidden))
}

/// Entries by family and then by id.
fn in_families(entries: impl Iterator<Item = &'static Entry>) -> Vec<&'static Entry> {
    let mut entries: Vec<&Entry> = entries.collect();
    entries.sort_by_key(|entry| (entry.family, entry.id));
    entries
}

fn method(entry: &Entry) -> Value {
    let path = entry.data_path();
    let item = json!({
        "name": entry.id,
        "summary": entry.summary,
        "family": entry.family.word(),
        "condition": entry.condition.map(|condition| format!("only {}", condition.words())),
        "transport": entry.transport,
        "control": entry.control,
        "hidden": entry.hidden,
        "datagrams": entry.datagrams,
        "calls_per_message": calls_of(entry.calls),
        "copies_sender": path.copies_sender(1.0),
        "copies_end_to_end": path.copies_end_to_end(1.0, 0.0),
        "data_path": path,
    });
    tried(since(entry.since, item), availability::try_here(entry))
}

/// System calls of a message, in words.
fn calls_of(calls: CallsPerMessage) -> String {
    match calls {
        CallsPerMessage::Fixed(calls) => calls.to_string(),
        CallsPerMessage::PerField => "one per field".to_owned(),
        CallsPerMessage::Shared(messages) => format!("one for up to {messages}"),
    }
}

/// The calls by kind and then by id.
fn calls_by_kind() -> Vec<&'static iolens_syscall::Entry> {
    let mut entries: Vec<&iolens_syscall::Entry> = CALLS.to_vec();
    entries.sort_by_key(|entry| (entry.kind, entry.id));
    entries
}

fn call(entry: &iolens_syscall::Entry) -> Value {
    let item = json!({
        "name": entry.id,
        "summary": entry.summary,
        "kind": entry.kind,
        "control": entry.control,
        "calls": entry.calls,
        "bytes": entry.bytes,
        "file": entry.of_file.word(),
        "calls_per_slice_max": entry.most,
    });
    tried(since(entry.since, item), entry.try_here())
}

/// A transport and what sends over it.
fn transport(listing: Listing) -> Value {
    let Listing { name, summary, primitives, refused } = listing;
    let with = match &primitives[..] {
        [] => "; no method of this build sends over it".to_owned(),
        many if many.len() > 4 => format!("; {} methods", many.len()),
        few => format!("; {}", few.join(", ")),
    };
    let summary = format!("{summary}{with}");
    let item = json!({"name": name, "summary": summary, "primitives": primitives});
    tried(item, refused.map_or(Ok(()), Err))
}

/// A topology and whether it can be made here, which is tried.
fn topology(topology: Topology) -> Value {
    let what = match topology {
        Topology::Loopback => "both ends in the namespace iolens was started in, over lo",
        Topology::Veth => "each end in an unnamed namespace, a veth pair between them",
        Topology::Sink => {
            "UDP into a device that drops everything: no receiver, no driver, no DMA; the one \
             place without a NIC where zero-copy sends are not copied"
        }
        Topology::Host => "the other end on another machine, reached by --peer",
    };
    tried(json!({"name": topology.word(), "summary": what}), stage::available(topology))
}

/// Two blocks of the largest unit of storage that anybody asks for, and a tail.
const FILE_BYTES: u64 = (128 << 10) + 3;

/// Every engine, tried on a small file of ours in the folder for temporary files.
fn engines() -> Vec<Value> {
    let folder = std::env::temp_dir();
    let made = TestFile::make(&folder, 1).and_then(|mut file| {
        file.resize(FILE_BYTES, || false).map_err(|e| e.to_string())?;
        file.subject()
    });
    let file_system = made.as_ref().ok().map(Subject::file_system);
    /// What all engines have in common, of three types.
    macro_rules! item {
        ($task:literal, $entry:ident, $try:expr, $($more:tt)*) => {{
            let item = json!({
                "name": $entry.id,
                "task": $task,
                "summary": $entry.summary,
                "needs": $entry.needs,
                "path": $entry.path,
                "direct": $entry.is_direct,
                "file_system": file_system,
                $($more)*
            });
            let here = made.as_ref().map_err(String::clone).and_then($try);
            tried(since($entry.since, item), here)
        }};
    }
    let mut items = Vec::new();
    items.extend(engines::READING.iter().map(
        |entry| item!("read", entry, |file| entry.try_on(file), "has_depth": entry.has_depth),
    ));
    items.extend(engines::WRITING.iter().map(|entry| {
        item!("write", entry, |_| entry.try_in(&folder), "has_depth": entry.has_depth,
            "durable": entry.is_durable, "by_hand": entry.own.by_hand)
    }));
    items.extend(
        engines::COPYING
            .iter()
            .map(|entry| item!("copy", entry, |file| entry.try_on(file, &folder),)),
    );
    items.extend(copy::copiers::PROGRAMS.iter().map(|program| {
        let item = json!({
            "name": program.id,
            "task": "copy, as a program",
            "summary": program.summary,
            "needs": "nothing",
            "path": program.path,
            "direct": false,
            "file_system": null,
        });
        tried(since(None, item), program.try_here())
    }));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_with_their_families_and_say_why_not() {
        let item = |name, family, since, why: Option<&str>| {
            json!({
                "name": name,
                "summary": format!("what {name} does"),
                "family": family,
                "since_linux": since,
                "available": why.is_none(),
                "unavailable_reason": why,
            })
        };
        let items = [
            item("sendmsg_iov", "classic", Some("2.0"), None),
            item("memcpy", "controls", None, None),
            item("send", "plain", Some("2.0"), None),
            item("uring_send", "plain", Some("5.6"), Some("cannot create a ring: EPERM")),
        ];
        let expected = [
            "               Linux  here",
            "the classic three (classic)",
            "  sendmsg_iov  2.0    yes   what sendmsg_iov does",
            "controls",
            "  memcpy       -      yes   what memcpy does",
            "plain",
            "  send         2.0    yes   what send does",
            "  uring_send   5.6    no    what uring_send does",
            "                            not here: cannot create a ring: EPERM",
        ];
        assert_eq!(rows(&items, &BY_FAMILY).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn families_are_in_one_piece() {
        let families: Vec<_> = methods(true).iter().map(|entry| entry.family).collect();
        assert!(families.is_sorted());
        assert!(methods(false).iter().all(|entry| !entry.hidden));
    }
}
