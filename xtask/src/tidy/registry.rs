//! Rule: the registries of models and services are complete and sorted.
//! Each is one file and one line; a file without its line would never be
//! measured.

use super::Finding;
use super::source::{Source, is_of_word};

/// A list, and the folder of its entries.
const LISTS: &[(&str, &str)] = &[
    ("crates/engine/src/server/models/mod.rs", "crates/engine/src/server/models/"),
    ("crates/engine/src/server/services/mod.rs", "crates/engine/src/server/services/"),
];

/// Findings in the registries; none as long as there are no entries.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    LISTS.iter().flat_map(|(list, folder)| check_one(sources, list, folder)).collect()
}

/// Where the list of one folder's entries is not its files, each once and in order.
fn check_one(sources: &[Source], list: &str, folder: &str) -> Option<Finding> {
    let mut files: Vec<&str> = sources.iter().filter_map(|s| entry_file(&s.path, folder)).collect();
    files.sort_unstable();
    let Some(registry) = sources.iter().find(|source| source.path == list) else {
        return files.first().map(|_| Finding::new(list, 0, "there are entries and no registry"));
    };
    let listed = entries(registry);
    let differs = |at: &usize| listed.get(*at).map(|(_, name)| *name) != files.get(*at).copied();
    let at = (0..listed.len().max(files.len())).find(differs)?;
    let (line, name) = listed.get(at).copied().unwrap_or((0, "nothing"));
    let file = files.get(at).unwrap_or(&"the end");
    let rule = format!("list each file of {folder} once and in order");
    Some(registry.finding(line, format!("`{name}` where `{file}` belongs: {rule}")))
}

/// The entry that a file of the folder is, unless it holds what they share.
fn entry_file<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let name = path.strip_prefix(folder)?.strip_suffix(".rs")?;
    (!["mod", "entry", "tests"].contains(&name) && !name.contains('/')).then_some(name)
}

/// Every `&name::ENTRY` outside of tests, with the number of its line.
fn entries(registry: &Source) -> Vec<(usize, &str)> {
    let lines = registry.own_lines().flat_map(|line| {
        line.code.match_indices("::ENTRY").map(|(at, _)| (line.number, &line.code[..at]))
    });
    lines.map(|(line, path)| (line, path.rsplit(|c| !is_of_word(c)).next().unwrap_or(""))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "crates/engine/src/server/models/mod.rs";
    const MODELS: &str = "crates/engine/src/server/models/";
    const SERVICES: &str = "crates/engine/src/server/services/";

    fn check(registry: &str, expect: &[&str]) {
        let model = |name| Source::new(&format!("{MODELS}{name}.rs"), "");
        let sources =
            [model("entry"), model("fork"), model("uring"), Source::new(REGISTRY, registry)];
        let findings = super::check(&sources);
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, expect);
    }

    #[test]
    fn a_registry_that_lists_every_file_once_in_order_is_tidy() {
        check("&fork::ENTRY,\n&models::uring::ENTRY,\n", &[]);
        check("[&fork::ENTRY, &uring::ENTRY]\n// &ghost::ENTRY\n", &[]);
        assert_eq!(super::check(&[Source::new("crates/engine/src/lib.rs", "")]), []);
    }

    #[test]
    fn gaps_repeats_ghosts_and_disorder_are_found() {
        let belongs = |found: &str, file: &str| {
            format!(
                "`{found}` where `{file}` belongs: list each file of {MODELS} once and in order"
            )
        };
        check("&fork::ENTRY", &[&belongs("nothing", "uring")]);
        check("&fork::ENTRY, &fork::ENTRY, &uring::ENTRY", &[&belongs("fork", "uring")]);
        check("&uring::ENTRY, &fork::ENTRY", &[&belongs("uring", "fork")]);
        check("&ghost::ENTRY, &fork::ENTRY, &uring::ENTRY", &[&belongs("ghost", "fork")]);
        check("&fork::ENTRY, &uring::ENTRY, &x::ENTRY", &[&belongs("x", "the end")]);
        let alone = [Source::new(&format!("{MODELS}fork.rs"), "")];
        assert_eq!(super::check(&alone).len(), 1);
        let services = [
            Source::new(&format!("{SERVICES}echo.rs"), ""),
            Source::new(&format!("{SERVICES}mod.rs"), "&echo::ENTRY, &ghost::ENTRY"),
        ];
        assert_eq!(super::check(&services).len(), 1, "a ghost");
    }
}
