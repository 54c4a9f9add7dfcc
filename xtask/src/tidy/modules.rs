//! Rule: every file of a package can be reached from one of its roots. A file
//! that nobody includes is not compiled, and looks as if it were.

use std::collections::BTreeSet;

use super::source::{Line, Source, words};
use super::{Finding, Workspace};

/// Findings: files that no root leads to.
pub(crate) fn check_files(sources: &[Source]) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Source> = sources.iter().filter(|source| is_root(&source.path)).collect();
    while let Some(source) = open.pop() {
        if reached.insert(source.path.as_str()) {
            let targets = modules(source, |_| true);
            open.extend(sources.iter().filter(|other| targets.contains(&other.path)));
        }
    }
    let lost = sources.iter().filter(|source| !reached.contains(source.path.as_str()));
    lost.map(|source| source.finding(0, "no module includes this file")).collect()
}

/// Marks files as test code whose `mod` item stands under `#[cfg(test)]`, with
/// everything they include.
pub(crate) fn mark_tests(sources: &mut [Source]) {
    let is_test = |line: &Line| line.is_test;
    let mut marked = BTreeSet::new();
    loop {
        let targets: BTreeSet<String> =
            sources.iter().flat_map(|source| modules(source, is_test)).collect();
        if targets == marked {
            return;
        }
        for source in sources.iter_mut().filter(|source| targets.contains(&source.path)) {
            source.lines.iter_mut().for_each(|line| line.is_test = true);
        }
        marked = targets;
    }
}

/// Whether cargo compiles the file by itself.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let within = match parts.as_slice() {
        ["crates", "studies", _, within @ ..]
        | ["crates", _, within @ ..]
        | ["accept" | "fuzz" | "xtask", within @ ..] => within,
        // Examples of the guide, which a test compiles.
        ["docs", _, _] => return true,
        _ => return false,
    };
    matches!(
        within,
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["tests" | "benches" | "examples" | "fuzz_targets", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// Paths of the files a file may name as its modules: `mod name;` in either
/// layout, and `#[path = "…"]`, on the lines that count.
fn modules(source: &Source, counts: impl Fn(&Line) -> bool) -> BTreeSet<String> {
    let (directory, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    let owns_directory = stem == "mod" || is_root(&source.path);
    let below = if owns_directory { directory.to_owned() } else { format!("{directory}/{stem}") };
    let mut targets = BTreeSet::new();
    for line in source.lines.iter().filter(|line| counts(line)) {
        if line.code.trim_start().starts_with("#[path") {
            let relative = line.text.split('"').nth(1).unwrap_or("");
            targets.insert(resolve(directory, relative));
        }
        for at in words(&line.code, "mod") {
            if let Some((name, _)) = line.code[at + 3..].split_once(';') {
                let name = name.trim();
                targets.insert(format!("{below}/{name}.rs"));
                targets.insert(format!("{below}/{name}/mod.rs"));
            }
        }
    }
    targets
}

/// `relative` as seen from `directory`.
fn resolve(directory: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in relative.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

// Rule: which crate may depend on which. The most important property of a
// crate is what it does not depend on.

/// Every package of the workspace with the packages it may use, in tests and
/// build scripts too.
const EDGES: &[(&str, &str)] = &[
    (
        "iolens",
        "iolens-ab iolens-audit iolens-document iolens-engine iolens-file iolens-harness iolens-model \
         iolens-net iolens-programs iolens-report iolens-server iolens-stats iolens-store iolens-syscall",
    ),
    (
        "iolens-ab",
        "iolens-engine iolens-harness iolens-model iolens-programs iolens-stats iolens-sys",
    ),
    ("iolens-accept", ""),
    ("iolens-audit", "iolens-model iolens-stats"),
    (
        "iolens-engine",
        "iolens-file iolens-harness iolens-model iolens-net iolens-programs iolens-server iolens-sys \
         iolens-syscall",
    ),
    ("iolens-file", "iolens-harness iolens-model iolens-programs iolens-sys"),
    (
        "iolens-fuzz",
        "iolens iolens-audit iolens-engine iolens-harness iolens-model iolens-programs iolens-report iolens-server \
         iolens-stats iolens-store iolens-sys",
    ),
    ("iolens-harness", "iolens-model iolens-sys"),
    ("iolens-model", ""),
    ("iolens-document", "iolens-model"),
    ("iolens-net", "iolens-harness iolens-model iolens-sys"),
    ("iolens-programs", "iolens-model iolens-sys"),
    ("iolens-report", "iolens-document iolens-model iolens-stats"),
    ("iolens-server", "iolens-harness iolens-model iolens-sys"),
    ("iolens-stats", "iolens-model"),
    ("iolens-store", "iolens-model"),
    ("iolens-sys", ""),
    ("iolens-syscall", "iolens-harness iolens-model iolens-sys"),
    ("xtask", ""),
];

/// Findings in every manifest but the workspace's own.
pub(crate) fn check_crates(workspace: &Workspace) -> Vec<Finding> {
    let is_manifest = |path: &str| path.ends_with("/Cargo.toml");
    let manifests = workspace.files.iter().filter(|(path, _)| is_manifest(path));
    manifests.flat_map(|(path, text)| check_manifest(path, text)).collect()
}

fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(e) => return vec![Finding::new(path, 0, format!("not a manifest: {e}"))],
    };
    let name = table.get("package").and_then(|package| package.get("name"));
    let name = name.and_then(toml::Value::as_str).unwrap_or("");
    let Some((_, allowed)) = EDGES.iter().find(|(package, _)| *package == name) else {
        let message = format!("package `{name}` has no line in EDGES of xtask/src/tidy/modules.rs");
        return vec![Finding::new(path, 0, message)];
    };
    let refused = |&used: &&str| {
        let is_allowed = allowed.split(' ').any(|package| package == used);
        !is_allowed && EDGES.iter().any(|(package, _)| *package == used)
    };
    let finding = |used| Finding::new(path, 0, format!("`{name}` must not depend on `{used}`"));
    dependencies(&table).into_iter().filter(refused).map(finding).collect()
}

/// Names of all packages a manifest depends on, in whatever section.
fn dependencies(table: &toml::Table) -> Vec<&str> {
    let tables = table.iter().filter_map(|(key, value)| Some((key, value.as_table()?)));
    let used = tables.flat_map(|(key, section)| match key.ends_with("dependencies") {
        true => section.iter().map(|(name, how)| renamed(how).unwrap_or(name)).collect(),
        false => dependencies(section),
    });
    used.collect()
}

fn renamed(how: &toml::Value) -> Option<&str> {
    how.get("package")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_includes_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "pub mod b;\nmod c;\n// mod lost;\n"),
            ("crates/a/src/b.rs", "mod deep;"),
            ("crates/a/src/b/deep.rs", ""),
            ("crates/a/src/c/mod.rs", "mod leaf;"),
            ("crates/a/src/c/leaf.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/tests/it/main.rs", "mod x;\n#[path = \"../../../../tests/s.rs\"]\nmod s;"),
            ("crates/a/tests/it/x.rs", ""),
            ("tests/s.rs", ""),
            ("tests/t.rs", ""),
        ];
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        let lost: Vec<_> = check_files(&sources).into_iter().map(|finding| finding.path).collect();
        assert_eq!(lost, ["crates/a/src/lost.rs", "tests/t.rs"]);
    }

    #[test]
    fn files_that_only_tests_include_are_test_code() {
        let files = [
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod fixture;\nmod b;\n"),
            ("crates/a/src/fixture.rs", "mod deep;"),
            ("crates/a/src/fixture/deep.rs", "x"),
            ("crates/a/src/b.rs", "x"),
        ];
        let mut sources: Vec<_> = files.iter().map(|(p, text)| Source::new(p, text)).collect();
        mark_tests(&mut sources);
        let tests: Vec<_> = sources.iter().map(|source| source.lines[0].is_test).collect();
        assert_eq!(tests, [true, true, true, false]);
    }

    fn check(name: &str, rest: &str, expect: &[&str]) {
        let text = format!("[package]\nname = \"{name}\"\n{rest}");
        let findings = check_manifest("crates/x/Cargo.toml", &text);
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, expect);
    }

    #[test]
    fn a_forbidden_edge_is_found_in_every_section() {
        let edge = ["`iolens-stats` must not depend on `iolens-store`"];
        check("iolens-stats", "[dependencies]\niolens-store.workspace = true\n", &edge);
        check("iolens-stats", "[dev-dependencies]\niolens-store = { path = '../store' }\n", &edge);
        check("iolens-stats", "[target.'cfg(unix)'.dependencies]\niolens-store = '1'\n", &edge);
        check("iolens-stats", "[build-dependencies]\ns = { package = 'iolens-store' }\n", &edge);
        check("xtask", "[dependencies]\niolens = '1'\n", &["`xtask` must not depend on `iolens`"]);
    }

    #[test]
    fn allowed_and_foreign_edges_are_not() {
        check("iolens-stats", "[dependencies]\niolens-model = '1'\nserde = '1'\n", &[]);
        let line = "package `iolens-new` has no line in EDGES of xtask/src/tidy/modules.rs";
        check("iolens-new", "", &[line]);
    }
}
