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

use crate::{root, skips, tidy};

/// Chooses the ordinary user by number.
const USER_VARIABLE: &str = "IOLENS_TEST_UID";

/// Where the skips of all binaries are collected, in the copy.
const LOG: &str = "log/skips";

/// `nobody` on most systems; the kernel's overflow user on all.
const NOBODY: u32 = 65534;

/// `cargo test` on the workspace, or with `args`, then the comparison of skips.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let scratch = Scratch::new(&std::env::temp_dir())?;
    let log = scratch.path.join("skips");
    let mut command = Command::new(cargo());
    command.arg("test").args(or_workspace(args)).current_dir(root());
    let status = command.env(skips::LOG_VARIABLE, &log).status();
    if !status.map_err(|e| format!("cannot run cargo: {e}"))?.success() {
        return Err("tests failed".to_owned());
    }
    skips::check(&root(), &skips::environment(own_user()?), &log)
}

/// Every test binary as an ordinary user, then the comparison of skips.
pub(crate) fn run_unprivileged(args: &[&str]) -> Result<(), String> {
    let user = match own_user()? {
        0 => chosen_user()?,
        user => user,
    };
    let built = build(or_workspace(args))?;
    let stage = Stage::new(user, &built)?;
    let mut failed = Vec::new();
    for binary in &built.tests {
        println!("\n{} ({}), as user {user}", binary.package, file_name(&binary.path));
        if !stage.run(binary)? {
            failed.push(format!("{} ({})", binary.package, file_name(&binary.path)));
        }
    }
    if !failed.is_empty() {
        return Err(format!("tests failed as user {user}: {}", failed.join(", ")));
    }
    skips::check(&root(), &skips::environment(user), &stage.scratch.path.join(LOG))
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

fn build(args: &[&str]) -> Result<Built, String> {
    let output = Command::new(cargo())
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(args)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !output.status.success() {
        return Err("the tests do not build".to_owned());
    }
    Ok(parse_artifacts(&String::from_utf8_lossy(&output.stdout), &root()))
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
    scratch: Scratch,
    user: u32,
    tool: Option<PathBuf>,
}

impl Stage {
    fn new(user: u32, built: &Built) -> Result<Stage, String> {
        let scratch = reachable_scratch(user)?;
        let mut stage = Stage { scratch, user, tool: None };
        stage.fill(built).map_err(|e| format!("cannot stage the tests: {e}"))?;
        Ok(stage)
    }

    fn fill(&mut self, built: &Built) -> io::Result<()> {
        let base = &self.scratch.path;
        for path in tidy::paths(&root())? {
            let target = base.join("workspace").join(&path);
            fs::create_dir_all(target.parent().unwrap_or(base))?;
            fs::copy(root().join(&path), &target)?;
            // A file is as private as its owner keeps it; the copy is not.
            let mode = fs::metadata(&target)?.permissions().mode();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode | 0o444))?;
        }
        for binary in &built.tests {
            copy_executable(&binary.path, &self.staged(&binary.path))?;
        }
        if let Some(tool) = &built.tool {
            let staged = base.join("iolens");
            copy_executable(tool, &staged)?;
            self.tool = Some(staged);
        }
        for name in ["home", "tmp", "runtime", "log"] {
            let directory = base.join(name);
            fs::create_dir(&directory)?;
            chown(&directory, Some(self.user), Some(self.user)).or_else(only_for_root)?;
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    fn staged(&self, binary: &Path) -> PathBuf {
        self.scratch.path.join(file_name(binary))
    }

    /// Runs one binary with an environment of its own; whether it passed.
    fn run(&self, binary: &TestBinary) -> Result<bool, String> {
        let base = &self.scratch.path;
        let package = base.join("workspace").join(&binary.package);
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
        let mut command = as_user(self.user, self.staged(&binary.path).as_os_str());
        command
            .env_clear()
            .envs(places.map(|(name, place)| (name, base.join(place))))
            .envs([("LANG", "C.UTF-8"), ("RUST_BACKTRACE", "1"), ("INSTA_UPDATE", "no")])
            .env("PATH", path)
            .env("CARGO_MANIFEST_DIR", &package)
            .current_dir(&package);
        if let Some(tool) = &self.tool {
            command.env("IOLENS_TEST_BIN", tool);
        }
        let status = command.status().map_err(|e| format!("cannot run setpriv: {e}"))?;
        Ok(status.success())
    }
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
fn reachable_scratch(user: u32) -> Result<Scratch, String> {
    for parent in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()] {
        let Ok(scratch) = Scratch::new(&parent) else { continue };
        let probe = scratch.path.join("probe");
        let written = fs::write(&probe, "#!/bin/sh\n")
            .and_then(|()| fs::set_permissions(&probe, fs::Permissions::from_mode(0o755)));
        if written.is_ok() && as_user(user, probe.as_os_str()).status().is_ok_and(|s| s.success()) {
            return Ok(scratch);
        }
    }
    Err(format!(
        "user {user} can run programs neither from TMPDIR nor from /tmp nor from /var/tmp, \
         or setpriv (util-linux) is missing"
    ))
}

/// A directory of this process that goes with it.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(parent: &Path) -> Result<Scratch, String> {
        let path = parent.join(format!("iolens-xtask-{}", std::process::id()));
        let made = fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
        made.map_err(|e| format!("cannot create {}: {e}", path.display()))?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.path) {
            eprintln!("xtask: cannot remove {}: {e}", self.path.display());
        }
    }
}

fn copy_executable(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))
}

/// Who is not root owns what it makes, and need not give it away.
fn only_for_root(error: io::Error) -> io::Result<()> {
    if own_user() == Ok(0) { Err(error) } else { Ok(()) }
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

/// The cargo that started us, else the one in the path.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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

    #[test]
    fn a_scratch_directory_goes_with_its_owner() {
        let parent = std::env::temp_dir();
        let scratch = Scratch::new(&parent).expect("it is made");
        let path = scratch.path.clone();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }
}
