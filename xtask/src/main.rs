//! Development tasks of iolens. `cargo xtask` lists them.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people: it prints, waits for other programs and exits"
)]

mod release;
mod testing;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

const HELP: &str = "\
cargo xtask tidy                      check the rules of architecture and style
cargo xtask test [ARGS]               cargo test --workspace (or ARGS), and compare its skips
cargo xtask test-unprivileged [ARGS]  the same tests as an ordinary user
cargo xtask docs                      make docs/{primitives,calls,models,metrics,export}.md
cargo xtask release                   static binaries with their papers, in target/packages
cargo xtask accept [SUBJECT [LINE]]   what was promised, measured, as a table; --list names it";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("xtask: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<ExitCode> {
    let sh = &Shell::new()?;
    sh.change_dir(root());
    match args {
        ["tidy"] => run_tidy()?,
        ["test", rest @ ..] => testing::run(sh, rest)?,
        ["test-unprivileged", rest @ ..] => testing::run_unprivileged(sh, rest)?,
        ["docs"] => make_docs(sh)?,
        ["release"] => release::run(sh)?,
        // The acceptance program is built when it is asked for.
        ["accept", rest @ ..] => {
            cmd!(sh, "cargo run --quiet --package iolens-accept -- {rest...}").quiet().run()?;
        }
        [] | ["help" | "--help" | "-h"] => println!("{HELP}"),
        _ => {
            eprintln!("{HELP}");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_tidy() -> Result<()> {
    let root = root();
    let workspace = tidy::Workspace::read(&root);
    let workspace = workspace.with_context(|| format!("cannot read {}", root.display()))?;
    let findings = tidy::check(&workspace);
    findings.iter().for_each(|finding| println!("{finding}"));
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

/// What the tool lists, and the file in the folder `docs` that has it.
const LISTED: [(&str, &str); 4] =
    [("methods", "primitives"), ("calls", "calls"), ("models", "models"), ("metrics", "metrics")];

/// The tool is run, not linked: a task may know no crate of ours. A test of the exports writes
/// docs/export.md if it is told to. Tests compare all of them with what would be written.
fn make_docs(sh: &Shell) -> Result<()> {
    for (listed, file) in LISTED {
        let list = cmd!(sh, "cargo run --quiet --package iolens -- list {listed} --markdown");
        sh.write_file(format!("docs/{file}.md"), list.output()?.stdout)?;
    }
    let export = cmd!(sh, "cargo test --quiet --package iolens-report --lib export_docs::");
    Ok(export.env("IOLENS_DOCS", "write").run()?)
}

/// The root of the workspace. The variable wins over the directory this was
/// compiled in, so that tests can run on a copy (see `testing`).
fn root() -> PathBuf {
    let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}
