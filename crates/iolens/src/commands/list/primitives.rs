//! `iolens list methods`: every entry of the registry, by family, with the
//! kernel that it needs and whether it works here.

use std::fmt::Write;

use iolens_engine::availability;
use iolens_engine::registry::{self, Entry};
use iolens_model::data_path::CallsPerMessage;
use iolens_model::family::Family;
use serde_json::{Value, json};

/// The entries by family and then by id; `all` for those too that only check
/// iolens itself.
pub(super) fn entries(all: bool) -> Vec<&'static Entry> {
    in_families(registry::all().filter(|entry| all || !entry.hidden))
}

/// Entries by family and then by id.
pub(super) fn in_families(entries: impl Iterator<Item = &'static Entry>) -> Vec<&'static Entry> {
    let mut entries: Vec<&Entry> = entries.collect();
    entries.sort_by_key(|entry| (entry.family, entry.id));
    entries
}

/// An entry with what came of trying it.
pub(super) fn item(entry: &Entry) -> Value {
    let refused = availability::try_here(entry).err();
    json!({
        "name": entry.id,
        "summary": entry.summary,
        "family": entry.family.id(),
        "condition": entry.condition.map(|condition| format!("only {}", condition.words())),
        "transport": entry.transport,
        "control": entry.control,
        "hidden": entry.hidden,
        "transport": entry.transport,
        "datagrams": entry.datagrams,
        "since_linux": entry.since.map(|version| version.to_string()),
        "available": refused.is_none(),
        "unavailable_reason": refused,
        "calls_per_message": calls(entry.data_path.calls),
        "copies_sender": entry.data_path.copies_sender(1.0),
        "copies_end_to_end": entry.data_path.copies_end_to_end(1.0, 0.0),
        "data_path": entry.data_path,
    })
}

/// System calls of a message, in words.
pub(super) fn calls(calls: CallsPerMessage) -> String {
    match calls {
        CallsPerMessage::Fixed(calls) => calls.to_string(),
        CallsPerMessage::PerField => "one per field".to_owned(),
        CallsPerMessage::Shared(messages) => format!("one for up to {messages}"),
    }
}

/// Items in columns under the names of what they are listed with, which stands
/// under a key of theirs.
pub(super) fn rows(items: &[Value], listed_with: &str) -> String {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or("-").to_owned();
    let width = |key: &str, heading: &str| {
        let widths = items.iter().map(|item| text(item, key).len());
        widths.max().unwrap_or(0).max(heading.len())
    };
    let (name, since) = (width("name", ""), width("since_linux", "Linux"));
    let mut rows = format!("  {:name$}  {:since$}  here\n", "", "Linux");
    let mut family = None;
    for item in items {
        // Writing to a string cannot fail.
        if family.replace(&item[listed_with]) != Some(&item[listed_with]) {
            let _ = writeln!(rows, "{}", heading(&text(item, listed_with)));
        }
        let here = if item["available"] == true { "yes" } else { "no" };
        let _ = writeln!(
            rows,
            "  {:name$}  {:since$}  {here:4}  {}",
            text(item, "name"),
            text(item, "since_linux"),
            text(item, "summary")
        );
        if let Some(why) = item["unavailable_reason"].as_str() {
            let _ = writeln!(rows, "  {:name$}  {:since$}        not here: {why}", "", "");
        }
    }
    rows
}

/// A family's name, with the word that selects it where that is another one.
fn heading(id: &str) -> String {
    match Family::find(id) {
        Some(family) if family.name() != id => format!("{family} ({id})"),
        _ => id.to_owned(),
    }
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
            item("uring_send", "plain", Some("5.6"), Some("cannot make a ring: EPERM")),
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
            "                            not here: cannot make a ring: EPERM",
        ];
        assert_eq!(rows(&items, "family").lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn families_are_in_one_piece() {
        let families: Vec<_> = entries(true).iter().map(|entry| entry.family).collect();
        assert!(families.is_sorted());
        assert!(entries(false).iter().all(|entry| !entry.hidden));
    }
}
