//! Rule: the registries of primitives, receivers, engines, models and services are
//! complete and sorted.
//! Each is one file and one line; a file without its line would never be
//! measured.

use super::Finding;
use super::source::Source;

/// A list, and the folder of its entries.
const LISTS: &[(&str, &str)] = &[
    ("crates/engine/src/registry.rs", "crates/engine/src/primitives/"),
    ("crates/engine/src/receivers/mod.rs", "crates/engine/src/receivers/"),
    ("crates/engine/src/files/copy/engines/mod.rs", "crates/engine/src/files/copy/engines/"),
    ("crates/engine/src/files/read/engines/mod.rs", "crates/engine/src/files/read/engines/"),
    ("crates/engine/src/files/write/engines/mod.rs", "crates/engine/src/files/write/engines/"),
    ("crates/engine/src/server/models/mod.rs", "crates/engine/src/server/models/"),
    ("crates/engine/src/server/services/mod.rs", "crates/engine/src/server/services/"),
];

/// Findings in the registries; none as long as there are no entries.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    LISTS.iter().flat_map(|(list, folder)| check_one(sources, list, folder)).collect()
}

/// Findings in the list of one folder's entries.
fn check_one(sources: &[Source], list: &str, folder: &str) -> Vec<Finding> {
    let names: Vec<&str> = sources.iter().filter_map(|s| entry_file(&s.path, folder)).collect();
    let Some(registry) = sources.iter().find(|source| source.path == list) else {
        let missing = |_: &&str| Finding::new(list, 0, "there are entries and no registry");
        return names.first().iter().copied().map(missing).collect();
    };
    let listed = entries(registry);
    let mut findings = Vec::new();
    for name in &names {
        let times = listed.iter().filter(|(_, entry)| entry == name).count();
        if times != 1 {
            let message = format!("list `&{name}::ENTRY` once; it is listed {times} times");
            findings.push(Finding::new(list, 0, message));
        }
    }
    for (line, entry) in &listed {
        if !names.contains(&entry.as_str()) {
            let message = format!("`{entry}::ENTRY` has no file {folder}{entry}.rs");
            findings.push(Finding::new(list, line + 1, message));
        }
    }
    for pair in listed.windows(2) {
        if let [(_, before), (line, entry)] = pair
            && before > entry
        {
            let message = format!("`{entry}` belongs before `{before}`: the list is sorted");
            findings.push(Finding::new(list, line + 1, message));
        }
    }
    findings
}

/// The entry that a file of the folder is, unless it holds what they share.
fn entry_file<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let name = path.strip_prefix(folder)?.strip_suffix(".rs")?;
    (!["mod", "entry", "tests"].contains(&name) && !name.contains('/')).then_some(name)
}

/// Every `&name::ENTRY` outside of tests, with its line from 0.
fn entries(registry: &Source) -> Vec<(usize, String)> {
    let lines = registry.lines.iter().enumerate().filter(|(_, line)| !line.is_test);
    let mut found = Vec::new();
    for (number, line) in lines {
        for (at, _) in line.code.match_indices("::ENTRY") {
            let path = line.code[..at].rsplit('&').next().unwrap_or("");
            let name = path.rsplit("::").next().unwrap_or("").trim();
            found.push((number, name.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "crates/engine/src/registry.rs";
    const PRIMITIVES: &str = "crates/engine/src/primitives/";
    const RECEIVERS: &str = "crates/engine/src/receivers/";

    fn check(registry: &str, expect: &[&str]) {
        let primitive = |name| Source::new(&format!("{PRIMITIVES}{name}.rs"), "");
        let sources = [
            primitive("mod"),
            primitive("send"),
            primitive("write"),
            Source::new(REGISTRY, registry),
        ];
        let findings = super::check(&sources);
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, expect);
    }

    #[test]
    fn a_registry_that_lists_every_file_once_in_order_is_tidy() {
        check("&send::ENTRY,\n&primitives::write::ENTRY,\n", &[]);
        check("[&send::ENTRY, &write::ENTRY]\n// &ghost::ENTRY\n", &[]);
        assert_eq!(super::check(&[Source::new("crates/engine/src/lib.rs", "")]), []);
    }

    #[test]
    fn gaps_repeats_ghosts_and_disorder_are_found() {
        check("&send::ENTRY", &["list `&write::ENTRY` once; it is listed 0 times"]);
        check(
            "&send::ENTRY, &send::ENTRY, &write::ENTRY",
            &["list `&send::ENTRY` once; it is listed 2 times"],
        );
        check(
            "&write::ENTRY, &send::ENTRY",
            &["`send` belongs before `write`: the list is sorted"],
        );
        let ghost = "`ghost::ENTRY` has no file crates/engine/src/primitives/ghost.rs";
        check("&ghost::ENTRY, &send::ENTRY, &write::ENTRY", &[ghost]);
        let alone = [Source::new(&format!("{PRIMITIVES}send.rs"), "")];
        assert_eq!(super::check(&alone).len(), 1);
        let receivers = [
            Source::new(&format!("{RECEIVERS}recv.rs"), ""),
            Source::new(&format!("{RECEIVERS}mod.rs"), "&recv::ENTRY, &ghost::ENTRY"),
        ];
        assert_eq!(super::check(&receivers).len(), 2, "a ghost, and out of order");
    }
}
