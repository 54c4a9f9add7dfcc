//! Names the build: the version and, in a checkout, the commit. Workers say it
//! in their first message and every run is stored with it.

use std::path::Path;
use std::process::Command;

fn main() {
    // In a worktree they are not below its own folder. One that is not there would have
    // this run, and all that depends on it built, every time.
    for path in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", path]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-env-changed=IOLENS_BUILD");
    let version = env!("CARGO_PKG_VERSION");
    let build = std::env::var("IOLENS_BUILD").ok().or_else(|| {
        let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
        Some(format!("{version} ({commit})"))
    });
    println!("cargo:rustc-env=IOLENS_BUILD={}", build.as_deref().unwrap_or(version));
}

/// What git says, if there is a git and this is a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
