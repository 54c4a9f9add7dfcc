//! Rules about how files read: their length and width, their first line, where `unsafe` may stand,
//! and words that promise to come back later. Clippy's are in the workspace's manifest: printing,
//! unwrapping, `unsafe` that nothing explains.

use super::Finding;
use super::source::{Function, Source, words};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// Functions that may be longer: path and name. Better left empty.
const LONG_FUNCTIONS: &[(&str, &str)] = &[];

/// The one crate where `unsafe` may stand.
const UNSAFE_PACKAGE: &str = "sys";

/// Words that say that something is not done; split, so that this file may
/// name them.
const UNFINISHED_WORDS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// Directories of one machine.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ho", "me/")];

/// Findings in one Rust file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |line: usize, message: String| findings.push(source.finding(line, message));
    if !source.lines.first().is_some_and(|line| line.text.starts_with("//!")) {
        find(1, "a file begins with `//!`: what it is for".to_owned());
    }
    let length = source.lines.len();
    if length > FILE_LINES_MAX {
        find(0, format!("{length} lines, at most {FILE_LINES_MAX}: split it"));
    }
    for Function { name, first, last } in source.functions() {
        let length = last - first + 1;
        let excepted = LONG_FUNCTIONS.contains(&(source.path.as_str(), name.as_str()));
        if length > FUNCTION_LINES_MAX && !excepted {
            find(first, format!("`{name}` has {length} lines, at most {FUNCTION_LINES_MAX}"));
        }
    }
    for line in &source.lines {
        let mut say = |message: String| find(line.number, message);
        let columns = line.text.chars().count();
        if columns > COLUMNS_MAX && !line.has_string() {
            say(format!("{columns} columns, at most {COLUMNS_MAX}"));
        }
        if source.package() != UNSAFE_PACKAGE && !words(&line.code, "unsafe").is_empty() {
            say("`unsafe` outside of crates/sys".to_owned());
        }
    }
    findings
}

/// Findings in the roots of libraries and binaries: all but one forbid
/// `unsafe`, so that no later `allow` can bring it back.
pub(crate) fn check_roots(sources: &[Source]) -> Vec<Finding> {
    let is_root = |source: &&Source| {
        source.path.ends_with("/src/lib.rs") || source.path.ends_with("/src/main.rs")
    };
    let forbids = |source: &Source| {
        source.lines.iter().any(|line| line.code.starts_with("#![forbid(unsafe_code)]"))
    };
    let roots = sources.iter().filter(is_root);
    let lax = roots.filter(|source| source.package() != UNSAFE_PACKAGE && !forbids(source));
    lax.map(|source| source.finding(1, "add `#![forbid(unsafe_code)]`")).collect()
}

/// Findings in any text file.
pub(crate) fn check_text(path: &str, text: &str) -> Vec<Finding> {
    // Checksums of other people's packages may spell anything.
    if path == "Cargo.lock" {
        return Vec::new();
    }
    let said = (1..).zip(text.lines()).flat_map(|(number, line)| {
        let unfinished = UNFINISHED_WORDS.iter().filter(|word| !words(line, word).is_empty());
        let unfinished = unfinished.map(|word| format!("`{word}`: do it or drop it"));
        let places = MACHINE_PATHS.iter().filter(|path| line.contains(**path));
        let said = unfinished.chain(places.map(|path| format!("`{path}`: a path of one machine")));
        said.map(move |message| Finding::new(path, number, message)).collect::<Vec<_>>()
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines and messages' first words of what is found in a file.
    fn check_file(path: &str, text: &str, expect: &[(usize, &str)]) {
        let findings = check(&Source::new(path, text));
        assert_eq!(findings.len(), expect.len(), "{findings:?}");
        for (finding, (line, part)) in findings.iter().zip(expect) {
            assert_eq!(finding.line, *line, "{finding}");
            assert!(finding.message.contains(part), "{finding}");
        }
    }

    #[test]
    fn files_begin_with_their_purpose_and_end_in_time() {
        check_file("crates/model/src/a.rs", "//! A.\nfn a() {}\n", &[]);
        check_file("crates/model/src/a.rs", "use b;\n", &[(1, "begins with")]);
        let long = format!("//! A.\n{}", "\n".repeat(FILE_LINES_MAX));
        check_file("crates/model/src/a.rs", &long, &[(0, "601 lines")]);
    }

    #[test]
    fn functions_and_lines_have_a_limit() {
        let body = |lines: usize| format!("//! A.\nfn a() {{\n{}}}\n", "    b();\n".repeat(lines));
        check_file("crates/model/src/a.rs", &body(68), &[]);
        check_file("crates/model/src/a.rs", &body(69), &[(2, "`a` has 71 lines")]);
        let wide =
            format!("//! A.\nlet a = {};\nlet b = \"{}\";\n", "1".repeat(99), "1".repeat(99));
        check_file("crates/model/src/a.rs", &wide, &[(2, "108 columns")]);
    }

    #[test]
    fn unsafe_stands_in_sys() {
        let bare = "//! A.\nfn a() {\n    unsafe { b() }\n}\n";
        check_file("crates/engine/src/a.rs", bare, &[(3, "outside of crates/sys")]);
        check_file("crates/engine/tests/a.rs", bare, &[(3, "outside of crates/sys")]);
        check_file("crates/sys/src/a.rs", bare, &[]);
        check_file("crates/engine/src/a.rs", "//! unsafe\n", &[]);
    }

    #[test]
    fn roots_forbid_unsafe() {
        let root = |path: &str, text: &str| check_roots(&[Source::new(path, text)]).len();
        assert_eq!(root("crates/model/src/lib.rs", "//! A.\n"), 1);
        assert_eq!(root("xtask/src/main.rs", "//! A.\n// #![forbid(unsafe_code)]\n"), 1);
        assert_eq!(root("crates/model/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(root("crates/sys/src/lib.rs", "//! A.\n"), 0);
    }

    #[test]
    fn texts_name_no_machine_and_promise_nothing() {
        let text = |line: &str| check_text("README.md", line).len();
        assert_eq!(text(concat!("see /ho", "me/me/notes")), 1);
        assert_eq!(text(concat!("// FIX", "ME later")), 1);
        assert_eq!(text(concat!("mktemp iolens.XX", "XXXX and homework/x")), 0);
    }
}
