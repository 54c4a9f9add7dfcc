//! `cargo xtask test` and `test-unprivileged`: the tests of the workspace with
//! their skips counted, and the same tests as a user without privilege.
//!
//! The second is about what an ordinary user meets, while the checkout may lie
//! in a home directory that only root may enter. So nothing is run in place:
//! test binaries, the tool and the workspace's files are copied to a directory
//! everybody may read, and the binaries run there as the other user. Tests
//! find their sources through `CARGO_MANIFEST_DIR` and the tool through
//! `IOLENS_TEST_BIN`, both read when they run and not when they are compiled:
//! ```text
//! let tool = std::env::var_os("IOLENS_TEST_BIN")
//!     .unwrap_or_else(|| env!("CARGO_BIN_EXE_iolens").into());
//! ```
//! Examples in docs are not run a second time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;
use xshell::{Cmd, Shell, cmd};

use crate::{root, tidy};

/// Chooses the ordinary user by number.
const USER_VARIABLE: &str = "IOLENS_TEST_UID";

/// Where the skips of all binaries are collected, in the copy.
const LOG: &str = "log/skips";

/// `nobody` on most systems; the kernel's overflow user on all.
const NOBODY: u32 = 65534;

/// `cargo test` on the workspace, or with `args`, then the comparison of skips.
pub(crate) fn run(sh: &Shell, args: &[&str]) -> Result<()> {
    let scratch = TempDir::new()?;
    let log = scratch.path().join("skips");
    let args = or_workspace(args);
    cmd!(sh, "cargo test {args...}").quiet().env(LOG_VARIABLE, &log).run()?;
    check_skips(own_user()?, &log)
}

/// Every test binary as an ordinary user, then the comparison of skips.
pub(crate) fn run_unprivileged(sh: &Shell, args: &[&str]) -> Result<()> {
    let user = match own_user()? {
        0 => chosen_user()?,
        user => user,
    };
    let args = or_workspace(args);
    let build = "--no-run --message-format=json-render-diagnostics".split(' ');
    let messages = cmd!(sh, "cargo test {build...} {args...}").quiet().read()?;
    let built = parse_artifacts(&messages, &root());
    let stage = Stage { sh, scratch: reachable_scratch(sh, user)?, user };
    stage.fill(&built).context("cannot stage the tests")?;
    let mut failed = Vec::new();
    for TestBinary { package, path } in &built.tests {
        let name = format!("{package} ({})", file_name(path).display());
        println!("\n{name}, as user {user}");
        if stage.run(package, path).is_err() {
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "tests failed as user {user}: {}", failed.join(", "));
    check_skips(user, &stage.path(LOG))
}

/// What of the workspace is tested: all, unless somebody says what.
fn or_workspace<'a>(args: &'a [&'a str]) -> &'a [&'a str] {
    if args.is_empty() { &["--workspace"] } else { args }
}

/// What `cargo test --no-run` made.
struct Built {
    tests: Vec<TestBinary>,
    /// The tool, where some test needs it.
    tool: Option<PathBuf>,
}

/// One binary of tests.
struct TestBinary {
    /// Directory of its package, from the root of the workspace.
    package: String,
    path: PathBuf,
}

/// The executables among cargo's messages, one JSON object a line.
fn parse_artifacts(messages: &str, root: &Path) -> Built {
    let mut built = Built { tests: Vec::new(), tool: None };
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(executable) = message["executable"].as_str() else { continue };
        let manifest = Path::new(message["manifest_path"].as_str().unwrap_or(""));
        let package = manifest.parent().and_then(|directory| directory.strip_prefix(root).ok());
        let path = PathBuf::from(executable);
        match package {
            Some(package) if message["profile"]["test"] == true => {
                let package = package.to_string_lossy().into_owned();
                built.tests.push(TestBinary { package, path });
            }
            _ if message["target"]["name"] == "iolens" => built.tool = Some(path),
            _ => {}
        }
    }
    built
}

/// A copy of everything, in a directory the user may enter.
struct Stage<'a> {
    sh: &'a Shell,
    scratch: TempDir,
    user: u32,
}

impl Stage<'_> {
    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn fill(&self, built: &Built) -> Result<()> {
        let (sh, scratch, user) = (self.sh, self.scratch.path(), self.user.to_string());
        let (workspace, files) = (sh.create_dir(self.path("workspace"))?, tidy::paths(&root())?);
        cmd!(sh, "cp --parents --target-directory={workspace} {files...}").quiet().run()?;
        // A file is as private as its owner keeps it; the copy is not.
        cmd!(sh, "chmod --recursive a+rX {workspace}").quiet().run()?;
        let programs = built.tests.iter().map(|binary| &binary.path).chain(&built.tool);
        cmd!(sh, "install --target-directory={scratch} {programs...}").quiet().run()?;
        let own = ["home", "tmp", "runtime", "log"].map(|name| self.path(name));
        // Who is not root owns what it makes, and need not give it away.
        let owner = if own_user()? == 0 { &[format!("--owner={user}")][..] } else { &[] };
        Ok(cmd!(sh, "install --mode=700 {owner...} --directory {own...}").quiet().run()?)
    }

    /// Runs one binary with an environment of its own.
    fn run(&self, package: &str, binary: &Path) -> Result<()> {
        let package = self.path("workspace").join(package);
        // insta looks for snapshots where it is told to, instead of asking cargo.
        let places = [
            ("HOME", "home"),
            ("XDG_CACHE_HOME", "home/.cache"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("XDG_DATA_HOME", "home/.local/share"),
            ("XDG_STATE_HOME", "home/.local/state"),
            ("XDG_RUNTIME_DIR", "runtime"),
            ("TMPDIR", "tmp"),
            ("INSTA_WORKSPACE_ROOT", "workspace"),
            (LOG_VARIABLE, LOG),
        ];
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let _in_package = self.sh.push_dir(&package);
        let mut test = as_user(self.sh, self.user, &self.path(file_name(binary)))?
            .env_clear()
            .envs(places.map(|(name, place)| (name, self.path(place))))
            .envs([("LANG", "C.UTF-8"), ("RUST_BACKTRACE", "1"), ("INSTA_UPDATE", "no")])
            .env("PATH", path)
            .env("CARGO_MANIFEST_DIR", &package);
        let tool = self.path("iolens");
        if tool.exists() {
            test = test.env("IOLENS_TEST_BIN", tool);
        }
        Ok(test.quiet().run()?)
    }
}

/// A command that runs `program` as `user`, by itself if that is who we are.
fn as_user<'a>(sh: &'a Shell, user: u32, program: &Path) -> Result<Cmd<'a>> {
    let id = user.to_string();
    Ok(match own_user()? == user {
        true => cmd!(sh, "{program}"),
        false => cmd!(sh, "setpriv --reuid={id} --regid={id} --clear-groups -- {program}"),
    })
}

/// A scratch directory from which the user can run a program: `TMPDIR` may lie
/// in somebody's home, and any of these may be mounted `noexec`.
fn reachable_scratch(sh: &Shell, user: u32) -> Result<TempDir> {
    for parent in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()] {
        let Ok(scratch) = tempfile::Builder::new().prefix("iolens-xtask-").tempdir_in(parent)
        else {
            continue;
        };
        let (directory, probe) = (scratch.path(), scratch.path().join("probe"));
        sh.write_file(&probe, "#!/bin/sh\n")?;
        cmd!(sh, "chmod 755 {directory} {probe}").quiet().run()?;
        if as_user(sh, user, &probe)?.quiet().ignore_stderr().run().is_ok() {
            return Ok(scratch);
        }
    }
    bail!(
        "user {user} can run programs neither from TMPDIR nor from /tmp nor from /var/tmp, \
         or setpriv (util-linux) is missing"
    )
}

fn chosen_user() -> Result<u32> {
    let Ok(text) = std::env::var(USER_VARIABLE) else { return Ok(NOBODY) };
    let user = text.parse().ok().filter(|user| *user != 0);
    user.with_context(|| format!("{USER_VARIABLE}=`{text}` is no ordinary user's number"))
}

/// The user this process runs as.
fn own_user() -> Result<u32> {
    Ok(std::fs::metadata("/proc/self").context("cannot look at /proc/self")?.uid())
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

// Which tests skipped, against which may: a skip that nobody expected hides a
// test, so it fails. How tests report a skip: `tests/support/skip.rs`.

/// Names the file that tests append their skips to.
const LOG_VARIABLE: &str = "IOLENS_SKIP_LOG";

/// Chooses the list of a third environment, such as a kind of container:
/// `NAME` for `tests/expected/NAME.txt`.
const ENVIRONMENT_VARIABLE: &str = "IOLENS_TEST_ENVIRONMENT";

/// Compares the log of a complete test run with the list that applies to a user, and says what it
/// found.
///
/// Fails on a skip that is not listed. A listed test that ran is only
/// reported: the list is of what may skip, on machines that differ.
fn check_skips(user_id: u32, log: &Path) -> Result<()> {
    let default = if user_id == 0 { "root" } else { "unprivileged" };
    let name = std::env::var(ENVIRONMENT_VARIABLE).unwrap_or_else(|_| default.to_owned());
    let list = format!("tests/expected/{name}.txt");
    let read = |path: &Path| std::fs::read_to_string(path).context(format!("{}", path.display()));
    let expected = read(&root().join(&list))?;
    // Without a skip nobody made it.
    let seen = if log.exists() { read(log)? } else { String::new() };
    let skips = parse_log(&seen);
    let [unexpected, unused] = compare(&parse_list(&expected), &skips);
    println!("{} tests skipped ({name})", skips.len());
    skips.iter().for_each(|(name, reason)| println!("  {name}: {reason}"));
    unused.iter().for_each(|name| println!("note: {name} is listed in {list} and did not skip"));
    ensure!(
        unexpected.is_empty(),
        "skips that {list} does not list:\n{}\n\
         make them run, or add these lines with the reason in the commit",
        unexpected.join("\n")
    );
    Ok(())
}

/// Names of a list: one per line, `#` begins a comment.
fn parse_list(text: &str) -> Vec<&str> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines.filter(|name| !name.is_empty()).collect()
}

/// `<name>: <reason>` lines; a test that ran twice is one skip.
fn parse_log(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.split_once(": ").unwrap_or((line, ""))).collect()
}

/// Tests that skipped and are not listed, and listed ones that did not skip.
fn compare<'a>(expected: &[&'a str], skips: &BTreeMap<&'a str, &str>) -> [Vec<&'a str>; 2] {
    let unexpected = skips.keys().filter(|name| !expected.contains(name));
    let unused = expected.iter().filter(|name| !skips.contains_key(*name));
    [unexpected.copied().collect(), unused.copied().collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/t/it-1"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/iolens/Cargo.toml","target":{"name":"iolens"},"profile":{"test":false},"executable":"/t/iolens"}
{"reason":"compiler-artifact","manifest_path":"/r/serde/Cargo.toml","target":{"name":"serde"},"profile":{"test":false},"executable":null}
not json
{"reason":"build-finished","success":true}"#;
        let built = parse_artifacts(messages, Path::new("/w"));
        assert_eq!(built.tool.as_deref(), Some(Path::new("/t/iolens")));
        assert_eq!(built.tests.len(), 1);
        assert_eq!(built.tests[0].package, "crates/a");
        assert_eq!(built.tests[0].path, Path::new("/t/it-1"));
    }

    fn check(list: &str, log: &str, unexpected: &[&str], unused: &[&str]) {
        assert_eq!(compare(&parse_list(list), &parse_log(log)), [unexpected, unused]);
    }

    #[test]
    fn only_a_skip_that_is_not_listed_is_unexpected() {
        check("", "", &[], &[]);
        check("# why\na::b::c # note\n", "a::b::c: no device\na::b::c: no device\n", &[], &[]);
        check("a::b\n", "a::c: why: because\n", &["a::c"], &["a::b"]);
    }

    #[test]
    fn the_reason_may_hold_colons() {
        let log = parse_log("a::b: why: because\n");
        assert_eq!(log["a::b"], "why: because");
    }

    #[test]
    fn there_is_a_list_for_either_user() {
        for name in ["root", "unprivileged"] {
            let list = root().join(format!("tests/expected/{name}.txt"));
            let text = std::fs::read_to_string(list).expect("the list is there");
            let names = parse_list(&text);
            assert!(names.is_sorted(), "{name}.txt is sorted");
            assert!(names.iter().all(|line| line.contains("::")), "{name}.txt names tests");
        }
    }
}
