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
