//! `iolens list`: what exists, from the registry and the tables themselves.

mod engines;
mod markdown;
mod metrics;
mod models;
mod plans;
mod primitives;

use std::fmt::Write;
use std::process::ExitCode;

use iolens_engine::calls::{self, CALLS};
use iolens_engine::receivers::{self, RECEIVERS};
use iolens_engine::stage;
use iolens_engine::transports::{self, Listing};
use iolens_model::axes::{Study, Topology};
use iolens_model::metrics::METRICS;
use serde_json::{Value, json};

use crate::args::{self, Listed};
use crate::failure::Failure;
use crate::output;

/// Lists one kind of thing, or all.
pub(crate) fn list(args: &args::List) -> Result<ExitCode, Failure> {
    let kinds = match args.what {
        Some(what) => vec![what],
        None => vec![
            Listed::Studies,
            Listed::Methods,
            Listed::Receivers,
            Listed::Calls,
            Listed::Engines,
            Listed::Models,
            Listed::Transports,
            Listed::Networks,
            Listed::Plans,
            Listed::Metrics,
        ],
    };
    if args.markdown {
        output::result(&match args.what {
            Some(Listed::Calls) => markdown::system_calls(),
            Some(Listed::Models) => models::markdown(),
            Some(Listed::Metrics) => metrics::markdown(),
            _ => markdown::primitives(),
        });
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        let all: serde_json::Map<String, Value> = kinds
            .iter()
            .map(|&kind| (heading(kind).to_owned(), Value::Array(items(kind, args.all))))
            .collect();
        output::result(&format!("{:#}", Value::Object(all)));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for &kind in &kinds {
        if kinds.len() > 1 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}{}:", if text.is_empty() { "" } else { "\n" }, heading(kind));
        }
        let items = items(kind, args.all);
        text.push_str(&match kind {
            Listed::Methods => primitives::rows(&items, "family"),
            Listed::Calls => primitives::rows(&items, "kind"),
            Listed::Engines => engines::rows(&items),
            Listed::Models => models::rows(&items),
            _ => rows(&items),
        });
    }
    output::result(&text);
    Ok(ExitCode::SUCCESS)
}

fn heading(kind: Listed) -> &'static str {
    match kind {
        Listed::Studies => "studies",
        Listed::Methods => "methods",
        Listed::Receivers => "receivers",
        Listed::Calls => "calls",
        Listed::Engines => "engines",
        Listed::Models => "models",
        Listed::Transports => "transports",
        Listed::Networks => "networks",
        Listed::Plans => "plans",
        Listed::Metrics => "metrics",
    }
}

/// Everything of a kind; each item has a `name` and a `summary`.
fn items(kind: Listed, all: bool) -> Vec<Value> {
    match kind {
        Listed::Studies => Study::ALL
            .iter()
            .map(|study| match study {
                Study::Net => json!({"name": study.word(), "summary": "messages through sockets"}),
                Study::Syscall => {
                    let summary = "single system calls: what a crossing into the kernel costs";
                    json!({"name": study.word(), "summary": summary})
                }
                Study::File => json!({"name": study.word(), "summary": "reads of a file"}),
                Study::Write => {
                    let summary = "writes to a file of ours, and what it takes to make them last";
                    json!({"name": study.word(), "summary": summary})
                }
                Study::Copy => {
                    json!({"name": study.word(), "summary": "copies of whole files, beside dd and cp"})
                }
                Study::Server => {
                    let summary = "requests to one service under every concurrency model";
                    json!({"name": study.word(), "summary": summary})
                }
            })
            .collect(),
        Listed::Methods => primitives::entries(all).into_iter().map(primitives::item).collect(),
        Listed::Receivers => RECEIVERS.iter().map(|entry| receiver(entry)).collect(),
        Listed::Calls => calls_by_kind().into_iter().map(call).collect(),
        Listed::Engines => engines::items(),
        Listed::Models => models::items(),
        Listed::Transports => transports::all().into_iter().map(transport).collect(),
        Listed::Networks => Topology::ALL.iter().map(|&t| topology(t)).collect(),
        Listed::Plans => plans::items(),
        Listed::Metrics => METRICS
            .iter()
            .map(|m| json!({"name": m.name, "summary": m.what, "unit": m.unit, "source": m.source}))
            .collect(),
    }
}

/// The calls by kind and then by id.
fn calls_by_kind() -> Vec<&'static calls::Entry> {
    let mut entries: Vec<&calls::Entry> = CALLS.to_vec();
    entries.sort_by_key(|entry| (entry.kind, entry.id));
    entries
}

/// A call and whether it works here, which is tried.
fn call(entry: &calls::Entry) -> Value {
    let refused = entry.try_here().err();
    json!({
        "name": entry.id,
        "summary": entry.summary,
        "kind": entry.kind,
        "control": entry.control,
        "calls": entry.calls,
        "bytes": entry.bytes,
        "calls_per_slice_max": entry.most,
        "since_linux": entry.since.map(|version| version.to_string()),
        "available": refused.is_none(),
        "unavailable_reason": refused,
    })
}

/// A transport, what sends over it, and whether this kernel has it.
fn transport(listing: Listing) -> Value {
    let Listing { name, summary, primitives, refused } = listing;
    let with = match &primitives[..] {
        [] => "; no method of this build sends over it".to_owned(),
        many if many.len() > 4 => format!("; {} methods", many.len()),
        few => format!("; {}", few.join(", ")),
    };
    json!({
        "name": name,
        "summary": format!("{summary}{with}"),
        "primitives": primitives,
        "available": refused.is_none(),
        "unavailable_reason": refused,
    })
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
    let refused = stage::available(topology).err();
    json!({
        "name": topology.word(),
        "summary": what,
        "available": refused.is_none(),
        "unavailable_reason": refused,
    })
}

/// A receiver and whether it works here, which is tried.
fn receiver(entry: &receivers::Entry) -> Value {
    let refused = entry.try_here().err();
    json!({
        "name": entry.id,
        "summary": entry.summary,
        "since_linux": entry.since.map(|version| version.to_string()),
        "available": refused.is_none(),
        "unavailable_reason": refused,
        "hops": entry.hops,
    })
}

/// Name and summary in two columns, and below it why something is not here.
fn rows(items: &[Value]) -> String {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let width = items.iter().map(|item| text(item, "name").len()).max().unwrap_or(0);
    items.iter().fold(String::new(), |mut rows, item| {
        let _ = writeln!(rows, "  {:width$}  {}", text(item, "name"), text(item, "summary"));
        if let Some(why) = item["unavailable_reason"].as_str() {
            let _ = writeln!(rows, "  {:width$}  not here: {why}", "");
        }
        rows
    })
}
