//! `cargo xtask docs`: docs/primitives.md as the tool prints it. The tool is
//! run, not linked: a task may know no crate of ours. A test of the binary
//! compares the file with what it would print.

use std::process::Command;

use crate::testing::cargo;

/// The file, from the root of the workspace.
const FILE: &str = "docs/primitives.md";

/// Builds the tool and writes what it prints.
pub(crate) fn run() -> Result<(), String> {
    let args = ["run", "--quiet", "--package", "iolens", "--", "list", "primitives", "--markdown"];
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
    let path = crate::root().join(FILE);
    std::fs::write(&path, output.stdout)
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    println!("wrote {FILE}");
    Ok(())
}
