//! `cargo xtask docs`: docs/primitives.md, docs/calls.md, docs/models.md and
//! docs/metrics.md as the tool prints them, and docs/export.md as a test of the exports
//! writes it. The tool is run, not linked: a task may know no crate of ours. Tests
//! compare the files with what would be written.

use crate::program::{cargo, output, write};

/// What is listed, and the file in the folder `docs` that has it.
const LISTED: [(&str, &str); 4] =
    [("methods", "primitives"), ("calls", "calls"), ("models", "models"), ("metrics", "metrics")];

/// The test that makes docs/export.md.
const EXPORT: [&str; 6] =
    ["test", "--quiet", "--package", "iolens-report", "--lib", "export_docs::"];

/// Builds the tool and writes what it prints; tests that make docs are told to.
pub(crate) fn run() -> Result<(), String> {
    for (listed, file) in LISTED {
        let args = ["run", "--quiet", "--package", "iolens", "--", "list", listed, "--markdown"];
        write(&crate::root().join(format!("docs/{file}.md")), output(&mut cargo(args))?)?;
        println!("wrote docs/{file}.md");
    }
    output(cargo(EXPORT).env("IOLENS_DOCS", "write"))?;
    println!("wrote docs/export.md");
    Ok(())
}
