//! `cargo xtask docs`: docs/primitives.md, docs/calls.md, docs/models.md and
//! docs/metrics.md as the tool prints them, and docs/export.md as a test of the exports
//! writes it. The tool is run, not linked: a task may know no crate of ours. Tests
//! compare the files with what would be written.

use std::process::Command;

use crate::program;
use crate::testing::cargo;

/// What is listed, and the file in the folder `docs` that has it.
const LISTED: [(&str, &str); 4] =
    [("methods", "primitives"), ("calls", "calls"), ("models", "models"), ("metrics", "metrics")];

/// The test that makes docs/export.md.
const EXPORT: [&str; 6] =
    ["test", "--quiet", "--package", "iolens-report", "--lib", "export_docs::"];

/// Builds the tool and writes what it prints.
pub(crate) fn run() -> Result<(), String> {
    LISTED.into_iter().try_for_each(write)?;
    output_of(&EXPORT)?;
    println!("wrote docs/export.md");
    Ok(())
}

fn write((listed, file): (&str, &str)) -> Result<(), String> {
    let args = ["run", "--quiet", "--package", "iolens", "--", "list", listed, "--markdown"];
    let text = output_of(&args)?;
    let path = crate::root().join(format!("docs/{file}.md"));
    std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("wrote docs/{file}.md");
    Ok(())
}

/// What cargo prints with these arguments; tests that make docs are told to.
fn output_of(args: &[&str]) -> Result<Vec<u8>, String> {
    let mut command = Command::new(cargo());
    command.args(args).env("IOLENS_DOCS", "write").current_dir(crate::root());
    Ok(program::output(&mut command)?.stdout)
}
