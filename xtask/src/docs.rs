//! `cargo xtask docs`: docs/primitives.md, docs/calls.md and docs/models.md as the tool
//! prints them. The tool is run, not linked: a task may know no crate of ours. A test of
//! the binary compares the files with what it would print.

use std::process::Command;

use crate::testing::cargo;

/// What is listed in a file of its name in the folder `docs`.
const LISTED: [&str; 3] = ["primitives", "calls", "models"];

/// Builds the tool and writes what it prints.
pub(crate) fn run() -> Result<(), String> {
    LISTED.into_iter().try_for_each(write)
}

fn write(listed: &str) -> Result<(), String> {
    let args = ["run", "--quiet", "--package", "iolens", "--", "list", listed, "--markdown"];
    let words = format!("cargo {}", args.join(" "));
    let output = Command::new(cargo())
        .args(args)
        .current_dir(crate::root())
        .output()
        .map_err(|e| format!("cannot run `{words}`: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{words}` failed ({}):\n{said}", output.status));
    }
    let path = crate::root().join(format!("docs/{listed}.md"));
    std::fs::write(&path, output.stdout)
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("wrote docs/{listed}.md");
    Ok(())
}
