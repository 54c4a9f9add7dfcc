//! `iolens list models`: the concurrency models of servers, what each makes for a
//! connection and needs, and whether it works here, which is tried with a request.

use std::fmt::Write;

use iolens_engine::server::models::{Entry, MODELS};
use serde_json::{Value, json};

/// Every model, tried.
pub(super) fn items() -> Vec<Value> {
    MODELS.iter().map(|entry| item(entry, entry.try_here().err())).collect()
}

fn item(entry: &Entry, refused: Option<String>) -> Value {
    json!({
        "name": entry.id,
        "summary": entry.summary,
        "per_connection": entry.makes.word(),
        "workers": entry.workers.word(),
        "needs": entry.needs,
        "since_linux": entry.since.map(|version| version.to_string()),
        "available": refused.is_none(),
        "unavailable_reason": refused,
    })
}

/// Name, what it makes for a connection, whether it works here, what it does and
/// what it needs.
pub(super) fn rows(items: &[Value]) -> String {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or("-").to_owned();
    let width = items.iter().map(|item| text(item, "name").len()).max().unwrap_or(0);
    let mut rows = format!("  {:width$}  {:14}  here\n", "", "per connection");
    for item in items {
        let here = if item["available"] == true { "yes" } else { "no" };
        let (name, makes) = (text(item, "name"), text(item, "per_connection"));
        // Writing to a string cannot fail.
        let _ = writeln!(rows, "  {name:width$}  {makes:14}  {here:4}  {}", text(item, "summary"));
        let mut under = |line: String| {
            let _ = writeln!(rows, "  {:width$}  {:14}  {:4}  {line}", "", "", "");
        };
        if let Some(workers) = item["workers"].as_str() {
            under(format!("--workers: {workers}"));
        }
        under(format!("needs {}", text(item, "needs")));
        if let Some(why) = item["unavailable_reason"].as_str() {
            under(format!("not here: {why}"));
        }
    }
    rows
}

const HEAD: &str = "\
# Models

The concurrency models of servers that `iolens serve` runs, all with the same protocol
(`docs/server-protocol.md`), the same buffers and the same code around them: they differ
in who waits for what, and in which call. This file is made from the entries in
`crates/engine/src/server/models` by `cargo xtask docs`; a test says when it is out of
date. `iolens list models` says which of them work on a machine, and why not.

- **Makes**: what it makes, or keeps, for a connection.
- **Linux**: the first kernel that has what it needs; none where every one does.
- **Workers**: what `--workers` is a number of.

Every connection has TCP_NODELAY and the congestion control `reno`; the length of the
queue of connections that wait to be taken is set (`--backlog`).

| id | what it does | makes | workers | Linux |
|---|---|---|---|---|
";

/// docs/models.md: what the models are, nothing about this machine.
pub(super) fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for entry in MODELS {
        let workers = entry.workers.word().unwrap_or("-");
        let since = entry.since.map_or_else(|| "-".to_owned(), |version| version.to_string());
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
