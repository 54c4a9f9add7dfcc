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

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{self, cargo, output};
use crate::{root, skips, tidy};

/// Chooses the ordinary user by number.
const USER_VARIABLE: &str = "IOLENS_TEST_UID";

/// Where the skips of all binaries are collected, in the copy.
const LOG: &str = "log/skips";

/// `nobody` on most systems; the kernel's overflow user on all.
const NOBODY: u32 = 65534;

/// `cargo test` on the workspace, or with `args`, then the comparison of skips.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let scratch = TempDir::new().map_err(|e| format!("no temporary directory: {e}"))?;
    let log = scratch.path().join("skips");
    let mut command = cargo(["test"]);
    program::run(command.args(or_workspace(args)).env(skips::LOG_VARIABLE, &log))?;
    skips::check(own_user()?, &log)
}

/// Every test binary as an ordinary user, then the comparison of skips.
pub(crate) fn run_unprivileged(args: &[&str]) -> Result<(), String> {
    let user = match own_user()? {
        0 => chosen_user()?,
        user => user,
    };
    let mut build = cargo(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    let messages = output(build.args(or_workspace(args)).stderr(Stdio::inherit()))?;
    let built = parse_artifacts(&String::from_utf8_lossy(&messages), &root());
    let stage = Stage { scratch: reachable_scratch(user)?, user };
    stage.fill(&built).map_err(|e| format!("cannot stage the tests: {e}"))?;
    let mut failed = Vec::new();
    for TestBinary { package, path } in &built.tests {
        let name = format!("{package} ({})", file_name(path).display());
        println!("\n{name}, as user {user}");
        if !stage.run(package, path)? {
            failed.push(name);
        }
    }
    match failed.is_empty() {
        true => skips::check(user, &stage.path(LOG)),
        false => Err(format!("tests failed as user {user}: {}", failed.join(", "))),
    }
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
struct Stage {
    scratch: TempDir,
    user: u32,
}

impl Stage {
    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn fill(&self, built: &Built) -> io::Result<()> {
        for path in tidy::paths(&root())? {
            let target = self.path("workspace").join(&path);
            fs::create_dir_all(target.parent().unwrap_or(self.scratch.path()))?;
            fs::copy(root().join(&path), &target)?;
            // A file is as private as its owner keeps it; the copy is not.
            set_mode(&target, fs::metadata(&target)?.permissions().mode() | 0o444)?;
        }
        let tests =
            built.tests.iter().map(|binary| (&binary.path, self.path(file_name(&binary.path))));
        for (from, to) in tests.chain(built.tool.iter().map(|tool| (tool, self.path("iolens")))) {
            fs::copy(from, &to)?;
            set_mode(&to, 0o755)?;
        }
        for name in ["home", "tmp", "runtime", "log"] {
            let directory = self.path(name);
            fs::create_dir(&directory)?;
            // Who is not root owns what it makes, and need not give it away.
            if own_user() == Ok(0) {
                chown(&directory, Some(self.user), Some(self.user))?;
            }
            set_mode(&directory, 0o700)?;
        }
        Ok(())
    }

    /// Runs one binary with an environment of its own; whether it passed.
    fn run(&self, package: &str, binary: &Path) -> Result<bool, String> {
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
            (skips::LOG_VARIABLE, LOG),
        ];
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let mut command = as_user(self.user, self.path(file_name(binary)).as_os_str());
        command
            .env_clear()
            .envs(places.map(|(name, place)| (name, self.path(place))))
            .envs([("LANG", "C.UTF-8"), ("RUST_BACKTRACE", "1"), ("INSTA_UPDATE", "no")])
            .env("PATH", path)
            .env("CARGO_MANIFEST_DIR", &package)
            .current_dir(&package);
        let tool = self.path("iolens");
        if tool.exists() {
            command.env("IOLENS_TEST_BIN", tool);
        }
        let status = command.status().map_err(|e| format!("cannot run setpriv: {e}"))?;
        Ok(status.success())
    }
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// A command that runs `program` as `user`, by itself if that is who we are.
fn as_user(user: u32, program: &OsStr) -> Command {
    if own_user() == Ok(user) {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    command.args([OsStr::new("--clear-groups"), OsStr::new("--"), program]);
    command
}

/// A scratch directory from which the user can run a program: `TMPDIR` may lie
/// in somebody's home, and any of these may be mounted `noexec`.
fn reachable_scratch(user: u32) -> Result<TempDir, String> {
    for parent in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()] {
        let Ok(scratch) = tempfile::Builder::new().prefix("iolens-xtask-").tempdir_in(parent)
        else {
            continue;
        };
        let probe = scratch.path().join("probe");
        let written = set_mode(scratch.path(), 0o755)
            .and_then(|()| fs::write(&probe, "#!/bin/sh\n"))
            .and_then(|()| set_mode(&probe, 0o755));
        if written.is_ok() && as_user(user, probe.as_os_str()).status().is_ok_and(|s| s.success()) {
            return Ok(scratch);
        }
    }
    Err(format!(
        "user {user} can run programs neither from TMPDIR nor from /tmp nor from /var/tmp, \
         or setpriv (util-linux) is missing"
    ))
}

fn chosen_user() -> Result<u32, String> {
    match std::env::var(USER_VARIABLE) {
        Err(_) => Ok(NOBODY),
        Ok(text) => match text.parse() {
            Ok(0) | Err(_) => Err(format!("{USER_VARIABLE}=`{text}` is no ordinary user's number")),
            Ok(user) => Ok(user),
        },
    }
}

/// The user this process runs as.
fn own_user() -> Result<u32, String> {
    let own = fs::metadata("/proc/self").map_err(|e| format!("cannot look at /proc/self: {e}"))?;
    Ok(own.uid())
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
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
}
