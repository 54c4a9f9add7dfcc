//! Development tasks of iolens. `cargo xtask` lists them.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people: it prints, waits for other programs and exits"
)]

mod docs;
mod program;
mod release;
mod skips;
mod testing;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask tidy                      check the rules of architecture and style
cargo xtask test [ARGS]               cargo test --workspace (or ARGS), and compare its skips
cargo xtask test-unprivileged [ARGS]  the same tests as an ordinary user
cargo xtask docs                      make docs/{primitives,calls,models,metrics,export}.md
cargo xtask release                   static binaries with their papers, in target/packages
cargo xtask accept [SUBJECT [LINE]]   what was promised, measured, as a table; --list names it";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["tidy"] => run_tidy(),
        ["test", rest @ ..] => testing::run(rest),
        ["test-unprivileged", rest @ ..] => testing::run_unprivileged(rest),
        ["docs"] => docs::run(),
        ["release"] => release::run(),
        ["accept", rest @ ..] => {
            // The acceptance program is built when it is asked for.
            let accept = ["run", "--quiet", "--package", "iolens-accept", "--"];
            program::run(&mut program::cargo(accept.iter().chain(rest)))
        }
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_tidy() -> Result<(), String> {
    let root = root();
    let workspace = tidy::Workspace::read(&root)
        .map_err(|e| format!("cannot read the workspace at {}: {e}", root.display()))?;
    let findings = tidy::check(&workspace);
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.len() {
        0 => Ok(()),
        count => Err(format!("{count} findings")),
    }
}

/// The root of the workspace. The variable wins over the directory this was
/// compiled in, so that tests can run on a copy (see `testing`).
fn root() -> PathBuf {
    let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}
