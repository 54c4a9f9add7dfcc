//! `iolens list engines`: the ways to read, to write and to copy a file, what each
//! needs, and whether it works here, which is tried on a small file of ours.

use std::fmt::Write;

use iolens_engine::files::subject::Subject;
use iolens_engine::files::test_file::TestFile;
use iolens_engine::files::{copy, read, write};
use iolens_model::kernel::KernelVersion;
use serde_json::{Value, json};

/// Two blocks of the largest unit of storage that anybody asks for, and a tail.
const FILE_BYTES: u64 = (128 << 10) + 3;

/// An entry of any of the three types.
macro_rules! listed {
    ($task:literal, $entry:expr) => {
        Listed {
            task: $task,
            id: $entry.id,
            summary: $entry.summary,
            needs: $entry.needs,
            path: $entry.path,
            since: $entry.since,
            is_direct: $entry.is_direct,
        }
    };
}

/// Every engine, tried in the folder for temporary files.
pub(super) fn items() -> Vec<Value> {
    let folder = std::env::temp_dir();
    let made = TestFile::make(&folder, 1).and_then(|mut file| {
        file.resize(FILE_BYTES, || false).map_err(|e| e.to_string())?;
        file.subject()
    });
    let file_system = made.as_ref().ok().map(Subject::file_system);
    let tried = |attempt: &dyn Fn(&Subject) -> Result<(), String>| match &made {
        Ok(subject) => attempt(subject).err(),
        Err(why) => Some(why.clone()),
    };
    let mut items = Vec::new();
    for entry in read::engines::ENGINES {
        let refused = tried(&|subject| entry.try_on(subject));
        let mut item = item(&listed!("read", entry), file_system, refused);
        item["has_depth"] = entry.has_depth.into();
        items.push(item);
    }
    for entry in write::engines::ENGINES {
        let refused = tried(&|_| entry.try_in(&folder));
        items.push(item(&listed!("write", entry), file_system, refused));
    }
    for entry in copy::engines::ENGINES {
        let refused = tried(&|subject| entry.try_on(subject, &folder));
        items.push(item(&listed!("copy", entry), file_system, refused));
    }
    items.extend(copy::copiers::PROGRAMS.iter().map(program));
    items
}

/// A program that is an arm of the study `copy`, and whether there is one here.
fn program(program: &copy::copiers::Program) -> Value {
    json!({
        "name": program.id,
        "task": "copy, as a program",
        "summary": program.summary,
        "needs": "nothing",
        "path": program.path,
        "since_linux": null,
        "direct": false,
        "file_system": null,
        "available": program.try_here().is_ok(),
        "unavailable_reason": program.try_here().err(),
    })
}

/// What all engines have in common, of three types.
struct Listed<'a> {
    task: &'a str,
    id: &'a str,
    summary: &'a str,
    needs: &'a str,
    path: &'a str,
    since: Option<KernelVersion>,
    is_direct: bool,
}

fn item(listed: &Listed<'_>, file_system: Option<&str>, refused: Option<String>) -> Value {
    json!({
        "name": listed.id,
        "task": listed.task,
        "summary": listed.summary,
        "needs": listed.needs,
        "path": listed.path,
        "since_linux": listed.since.map(|version| version.to_string()),
        "direct": listed.is_direct,
        "file_system": file_system,
        "available": refused.is_none(),
        "unavailable_reason": refused,
    })
}

/// Name, first kernel, whether it works here, what it does and what it needs.
pub(super) fn rows(items: &[Value]) -> String {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or("-").to_owned();
    let width = items.iter().map(|item| text(item, "name").len()).max().unwrap_or(0);
    let mut rows = format!("  {:width$}  {:6}  here\n", "", "Linux");
    let mut task = String::new();
    for item in items {
        if task != text(item, "task") {
            task = text(item, "task");
            // Writing to a string cannot fail.
            let _ = writeln!(rows, "  to {task}:");
        }
        let here = if item["available"] == true { "yes" } else { "no" };
        let (name, since) = (text(item, "name"), text(item, "since_linux"));
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
