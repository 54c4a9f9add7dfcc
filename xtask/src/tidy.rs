//! `cargo xtask tidy`: the rules of architecture and style as code. It also
//! runs as a test, so `cargo test` says what review would have to say.
//!
//! A rule is a function from files to findings; each is tested on a small bad
//! input, because a rule that finds nothing proves nothing.

mod graph;
mod modules;
mod registry;
mod source;
mod style;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use source::Source;

/// Larger files are data of some kind, not text anybody edits.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// File, from the root of the workspace.
    path: String,
    /// Line, from 1; 0 for the whole file.
    line: usize,
    /// The rule and what to do.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// The text files of the workspace: path from its root, and content.
pub(crate) struct Workspace {
    files: Vec<(String, String)>,
}

impl Workspace {
    /// Reads the workspace at `root`: every text file but those of git and of
    /// build directories. It does not ask git, so a file is tidy before it is
    /// added, and an unpacked archive can be checked.
    pub(crate) fn read(root: &Path) -> io::Result<Workspace> {
        let mut files = Vec::new();
        for path in paths(root)? {
            let full = root.join(&path);
            if full.metadata()?.len() <= TEXT_BYTES_MAX
                && let Ok(text) = String::from_utf8(fs::read(full)?)
            {
                files.push((path, text));
            }
        }
        Ok(Workspace { files })
    }
}

/// Every file below `root` that belongs to the workspace, sorted.
pub(crate) fn paths(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && path != ".git" && !entry.path().join("CACHEDIR.TAG").exists() {
                directories.push(path);
            } else if kind.is_file() && path != ".git" {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Applies every rule.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let is_rust = |(path, _): &&(String, String)| path.ends_with(".rs");
    let sources = workspace.files.iter().filter(is_rust);
    let mut sources: Vec<Source> = sources.map(|(path, text)| Source::new(path, text)).collect();
    modules::mark_tests(&mut sources);
    let mut findings = graph::check(workspace);
    findings.extend(modules::check(&sources));
    findings.extend(registry::check(&sources));
    findings.extend(sources.iter().flat_map(style::check));
    findings.extend(style::check_roots(&sources));
    findings.extend(workspace.files.iter().flat_map(|(path, text)| style::check_text(path, text)));
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        let workspace = Workspace::read(&crate::root()).expect("the workspace can be read");
        let is_root = workspace.files.iter().any(|(path, _)| path == "xtask/Cargo.toml");
        assert!(is_root, "this is not the workspace's root");
        let findings = check(&workspace);
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
    }
}
