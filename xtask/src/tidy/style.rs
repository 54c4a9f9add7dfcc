//! Rules about how files read: their length and width, their first line, where
//! `unsafe`, printing and unwrapping may stand, and words that promise to come
//! back later.

use super::Finding;
use super::source::{Function, Line, Source, words};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// Functions that may be longer: path and name. Better left empty.
const LONG_FUNCTIONS: &[(&str, &str)] = &[];

/// The one crate where `unsafe` may stand.
const UNSAFE_PACKAGE: &str = "sys";

/// Packages that talk to people.
const PRINTING_PACKAGES: &[&str] = &["accept", "iolens", "xtask"];

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
        check_calls(source, line, &mut say);
        check_unsafe(source, line, &mut say);
    }
    findings
}

/// Calls that may not stand on a line.
fn check_calls(source: &Source, line: &Line, say: &mut impl FnMut(String)) {
    let calls = |name: &&str| {
        let follows = |at: &usize| line.code[at + name.len()..].starts_with('!');
        words(&line.code, name).iter().any(follows)
    };
    for name in ["todo", "unimplemented", "dbg"].iter().filter(|name| calls(name)) {
        say(format!("`{name}!` does not stay in the code"));
    }
    // Printing is how a build script talks to cargo.
    let may_print =
        PRINTING_PACKAGES.contains(&source.package()) || source.path.ends_with("build.rs");
    let prints = ["print", "println", "eprint", "eprintln"].into_iter().find(calls);
    if let Some(name) = prints.filter(|_| !line.is_test && !may_print) {
        say(format!("`{name}!`: only crates/iolens prints"));
    }
    if line.code.contains(".unwrap()") && !line.is_test {
        say("`unwrap` outside of tests: `expect` says why it cannot fail".to_owned());
    }
}

/// `unsafe` on a line that may not be there, or that nothing explains.
fn check_unsafe(source: &Source, line: &Line, say: &mut impl FnMut(String)) {
    for at in words(&line.code, "unsafe") {
        let next = line.code[at + "unsafe".len()..].trim_start();
        let is_block = next.starts_with('{') || next.starts_with("impl");
        if source.package() != UNSAFE_PACKAGE {
            say("`unsafe` outside of crates/sys".to_owned());
        } else if is_block && !is_explained(&source.lines[..line.number - 1]) {
            say("`unsafe` without a `// SAFETY:` comment before it".to_owned());
        }
    }
}

/// Whether the comment above a statement, whose last line comes after these, names what makes it
/// safe.
fn is_explained(lines: &[Line]) -> bool {
    let mut above = lines.iter().rev().map(|line| line.text.trim()).peekable();
    // To the start of the statement: a line before it ends one, or a block.
    let continues = |text: &&str| {
        !text.starts_with("//") && !text.ends_with([';', '{', '}', ',']) && !text.is_empty()
    };
    while above.next_if(|text| continues(text) || text.starts_with("#[")).is_some() {}
    above.take_while(|text| text.starts_with("//")).any(|text| text.starts_with("// SAFETY:"))
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
    fn calls_stand_where_they_may() {
        let body = "//! A.\nfn a() { println!(\"dbg!\"); b.unwrap(); /* todo!() */ }\n";
        check_file("crates/model/src/a.rs", body, &[(2, "only crates/iolens"), (2, "`unwrap`")]);
        check_file("crates/iolens/src/a.rs", body, &[(2, "`unwrap`")]);
        check_file("crates/model/tests/a.rs", body, &[]);
        check_file("crates/model/src/a.rs", "//! A.\nfn a() { todo!() }\n", &[(2, "`todo!`")]);
        check_file("crates/model/tests/a.rs", "//! A.\nfn a() { dbg!(1) }\n", &[(2, "`dbg!`")]);
    }

    #[test]
    fn unsafe_stands_in_sys_and_is_explained() {
        let bare = "//! A.\nfn a() {\n    unsafe { b() }\n}\n";
        check_file("crates/engine/src/a.rs", bare, &[(3, "outside of crates/sys")]);
        check_file("crates/engine/tests/a.rs", bare, &[(3, "outside of crates/sys")]);
        check_file("crates/sys/src/a.rs", bare, &[(3, "SAFETY")]);
        check_file("crates/sys/src/a.rs", "//! A.\nunsafe impl Send for A {}\n", &[(2, "SAFETY")]);
        let explained = "//! A.\nfn a() {\n    // SAFETY: b asks for nothing\n    // at all.\n    \
                         #[inline]\n    let c =\n        unsafe { b() };\n}\n";
        check_file("crates/sys/src/a.rs", explained, &[]);
        let stale = "//! A.\nfn a() {\n    // SAFETY: of b.\n    b();\n    unsafe { c() }\n}\n";
        check_file("crates/sys/src/a.rs", stale, &[(5, "SAFETY")]);
        check_file("crates/sys/src/a.rs", "//! unsafe\nunsafe fn a() {}\n", &[]);
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
