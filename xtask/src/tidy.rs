//! `cargo xtask tidy`: the rules of architecture and style as code. It also
//! runs as a test, so `cargo test` says what review would have to say.
//!
//! A rule is a function from files to findings; each is tested on a small bad
//! input, because a rule that finds nothing proves nothing.

mod modules;
mod source;
mod style;
mod tables;

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
        let made = made_here(&root.join(&directory))?;
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_made = name == ".git" || made.contains(&name);
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            let kind = entry.file_type()?;
            let is_build = || entry.path().join("CACHEDIR.TAG").exists();
            if kind.is_dir() && !is_made && !is_build() {
                directories.push(path);
            } else if kind.is_file() && !is_made {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Names in a directory that its `.gitignore` gives with a slash before them: what is built or
/// collected there, such as the inputs that a fuzzer found.
fn made_here(directory: &Path) -> io::Result<Vec<String>> {
    match fs::read_to_string(directory.join(".gitignore")) {
        Ok(text) => {
            Ok(text.lines().filter_map(|l| l.strip_prefix('/')).map(str::to_owned).collect())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

/// Applies every rule.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let is_rust = |(path, _): &&(String, String)| path.ends_with(".rs");
    let sources = workspace.files.iter().filter(is_rust);
    let mut sources: Vec<Source> = sources.map(|(path, text)| Source::new(path, text)).collect();
    modules::mark_tests(&mut sources);
    let mut findings = modules::check_crates(workspace);
    findings.extend(modules::check_files(&sources));
    findings.extend(sources.iter().flat_map(tables::check_prose));
    findings.extend(sources.iter().flat_map(style::check));
    findings.extend(style::check_roots(&sources));
    findings.extend(tables::check_tables(&sources));
    findings.extend(workspace.files.iter().flat_map(|(path, text)| style::check_text(path, text)));
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_ignores_by_its_place_is_not_read() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("it is made");
            fs::write(path, text).expect("it is written");
        };
        write("fuzz/.gitignore", "/corpus\n*.log\n");
        write("fuzz/corpus/plan/00", "");
        write("fuzz/seeds/corpus/00", "");
        let paths = paths(directory.path()).expect("it can be read");
        assert_eq!(paths, ["fuzz/.gitignore", "fuzz/seeds/corpus/00"]);
    }

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
