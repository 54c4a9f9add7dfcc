//! Rule: which crate may depend on which. The most important property of a
//! crate is what it does not depend on.

use super::{Finding, Workspace};

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
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
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
        let message = format!("package `{name}` has no line in EDGES of xtask/src/tidy/graph.rs");
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
        let line = "package `iolens-new` has no line in EDGES of xtask/src/tidy/graph.rs";
        check("iolens-new", "", &[line]);
    }
}
