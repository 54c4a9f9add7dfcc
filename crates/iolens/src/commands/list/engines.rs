//! `iolens list engines`: the ways to read a file, what each needs, and whether it
//! works here, which is tried on a small file of ours.

use std::fmt::Write;

use iolens_engine::files::read::engines::{ENGINES, Entry};
use iolens_engine::files::subject::Subject;
use iolens_engine::files::test_file::TestFile;
use serde_json::{Value, json};

/// Two blocks of the largest unit of storage that anybody asks for, and a tail.
const FILE_BYTES: u64 = (128 << 10) + 3;

/// Every engine, tried in the folder for temporary files.
pub(super) fn items() -> Vec<Value> {
    let folder = std::env::temp_dir();
    let made = TestFile::make(&folder, 1).and_then(|mut file| {
        file.resize(FILE_BYTES, || false).map_err(|e| e.to_string())?;
        file.subject()
    });
    ENGINES.iter().map(|entry| item(entry, made.as_ref())).collect()
}

fn item(entry: &Entry, tried_on: Result<&Subject, &String>) -> Value {
    let refused = match tried_on {
        Ok(subject) => entry.try_on(subject).err(),
        Err(why) => Some(why.clone()),
    };
    json!({
        "name": entry.id,
        "summary": entry.summary,
        "needs": entry.needs,
        "path": entry.path,
        "since_linux": entry.since.map(|version| version.to_string()),
        "has_depth": entry.has_depth,
        "direct": entry.is_direct,
        "file_system": tried_on.ok().map(Subject::file_system),
        "available": refused.is_none(),
        "unavailable_reason": refused,
    })
}

/// Name, first kernel, whether it works here, what it does and what it needs.
pub(super) fn rows(items: &[Value]) -> String {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or("-").to_owned();
    let width = items.iter().map(|item| text(item, "name").len()).max().unwrap_or(0);
    let mut rows = format!("  {:width$}  {:6}  here\n", "", "Linux");
    for item in items {
        let here = if item["available"] == true { "yes" } else { "no" };
        let (name, since) = (text(item, "name"), text(item, "since_linux"));
        // Writing to a string cannot fail.
        let _ = writeln!(rows, "  {name:width$}  {since:6}  {here:4}  {}", text(item, "summary"));
        let needs = text(item, "needs");
        if needs != "nothing" {
            let _ = writeln!(rows, "  {:width$}  {:6}  {:4}  needs {needs}", "", "", "");
        }
        if let Some(why) = item["unavailable_reason"].as_str() {
            let _ = writeln!(rows, "  {:width$}  {:6}  {:4}  not here: {why}", "", "", "");
        }
    }
    if let Some(file_system) = items.iter().find_map(|item| item["file_system"].as_str()) {
        let folder = std::env::temp_dir();
        let _ = writeln!(rows, "  Tried in {}, on {file_system}.", folder.display());
    }
    rows
}
