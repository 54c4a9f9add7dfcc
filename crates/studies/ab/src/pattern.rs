//! Names of files with `*`, `?` and `[a-z]` in them, as a shell understands them; no shell sees the
//! commands of `ab`.

use std::path::{Path, PathBuf};

/// A part of a pattern for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `*`: any characters, or none.
    Any,
    /// `?`: one character.
    One,
    /// `[a-z]`, `[!a-z]`: one of these, or one that is not.
    Set { is_negated: bool, ranges: Vec<(char, char)> },
    /// The character itself.
    Char(char),
}

impl Part {
    /// Whether it stands for this character.
    fn takes(&self, c: char) -> bool {
        match self {
            Part::Any | Part::One => true,
            Part::Set { is_negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *is_negated
            }
            Part::Char(own) => *own == c,
        }
    }
}

/// The files whose path matches, sorted. A pattern without a `/` is of the current folder; a name
/// that begins with a dot must be written with it.
pub(crate) fn files(pattern: &str) -> Vec<PathBuf> {
    let start = if pattern.starts_with('/') { "/" } else { "." };
    let mut found = vec![PathBuf::from(start)];
    for component in pattern.split('/').filter(|component| !matches!(*component, "" | ".")) {
        found = found.iter().flat_map(|folder| within(folder, component)).collect();
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

/// What a folder has of a name.
fn within(folder: &Path, component: &str) -> Vec<PathBuf> {
    if !component.contains(['*', '?', '[']) {
        return vec![folder.join(component)];
    }
    let parts = parts(component);
    let is_meant = |name: &str| {
        (!name.starts_with('.') || component.starts_with('.')) && matches(&parts, name)
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_meant(name)).map(|name| folder.join(name)).collect()
}

fn parts(component: &str) -> Vec<Part> {
    let chars: Vec<char> = component.chars().collect();
    let (mut parts, mut at) = (Vec::new(), 0);
    while let Some(&c) = chars.get(at) {
        at += 1;
        parts.push(match c {
            '*' => Part::Any,
            '?' => Part::One,
            '[' => match set(&chars[at..]) {
                Some((part, length)) => {
                    at += length;
                    part
                }
                None => Part::Char(c),
            },
            c => Part::Char(c),
        });
    }
    parts
}

/// A set, and its length with the bracket that ends it; `None` where none does.
fn set(after: &[char]) -> Option<(Part, usize)> {
    let is_negated = after.first().is_some_and(|c| matches!(c, '!' | '^'));
    let first = usize::from(is_negated);
    // A bracket that comes first is meant itself.
    let end = first + 1 + after.get(first + 1..)?.iter().position(|c| *c == ']')?;
    let (mut ranges, mut at) = (Vec::new(), first);
    while at < end {
        let is_range = at + 2 < end && after[at + 1] == '-';
        let last = if is_range { at + 2 } else { at };
        ranges.push((after[at], after[last]));
        at = last + 1;
    }
    Some((Part::Set { is_negated, ranges }, end + 1))
}

/// Whether a whole name matches. What follows the last `*` is tried from one place after another,
/// so that it takes at most the product of both lengths.
fn matches(parts: &[Part], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut part, mut at) = (0, 0);
    // Behind the last `*`, and where what follows it was tried.
    let mut retry: Option<(usize, usize)> = None;
    while at < name.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                part += 1;
                retry = Some((part, at));
            }
            Some(one) if one.takes(name[at]) => (part, at) = (part + 1, at + 1),
            _ => {
                let Some((behind, tried)) = retry else { return false };
                (part, at) = (behind, tried + 1);
                retry = Some((behind, at));
            }
        }
    }
    parts[part..].iter().all(|part| *part == Part::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        let check = |pattern: &str, name: &str, expect: bool| {
            assert_eq!(matches(&parts(pattern), name), expect, "{pattern} {name}");
        };
        for (pattern, name) in [
            ("base-*", "base-"),
            ("base-*", "base-12"),
            ("*-*-x", "a-b-c-x"),
            ("b?se", "base"),
            ("b[a-c]se-[0-9]", "base-7"),
            ("[!a]b", "bb"),
            ("[]x]", "]"),
            ("[-a]", "-"),
            ("[", "["),
            ("é*", "été"),
            ("**", ""),
        ] {
            check(pattern, name, true);
        }
        for (pattern, name) in
            [("base-*", "bas"), ("b?se", "bse"), ("[!a]b", "ab"), ("a*b", "abc"), ("", "x")]
        {
            check(pattern, name, false);
        }
        check(&"*a".repeat(30), &"a".repeat(200), true);
        check(&format!("{}b", "*a".repeat(30)), &"a".repeat(200), false);
    }

    #[test]
    fn folders_are_searched_too() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["1/bench", "2/bench", "2/other", ".3/bench", "bench"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = folder.path().to_str().unwrap();
        let found = |pattern: &str| -> Vec<String> {
            let files = files(&format!("{root}/{pattern}"));
            let short = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
            files.iter().map(short).collect()
        };
        assert_eq!(found("*/bench"), ["1/bench", "2/bench"]);
        assert_eq!(found(".*/b*"), [".3/bench"]);
        assert_eq!(found("./2/*"), ["2/bench", "2/other"]);
        assert_eq!(found("*"), ["bench"]);
        assert!(found("nowhere/*").is_empty());
    }
}
