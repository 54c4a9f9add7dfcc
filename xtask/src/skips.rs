//! Which tests skipped, against which may: a skip that nobody expected hides a
//! test, so it fails. How tests report a skip: `tests/support/skip.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Names the file that tests append their skips to.
pub(crate) const LOG_VARIABLE: &str = "IOLENS_SKIP_LOG";

/// Chooses the list of a third environment, such as a kind of container:
/// `NAME` for `tests/expected/NAME.txt`.
const ENVIRONMENT_VARIABLE: &str = "IOLENS_TEST_ENVIRONMENT";

/// The name of the list that applies to a user.
pub(crate) fn environment(user_id: u32) -> String {
    let default = if user_id == 0 { "root" } else { "unprivileged" };
    std::env::var(ENVIRONMENT_VARIABLE).unwrap_or_else(|_| default.to_owned())
}

/// What differs between the skips that were seen and those that are expected.
#[derive(Debug, Default, PartialEq, Eq)]
struct Difference {
    /// Test and reason of skips that are not listed.
    unexpected: Vec<(String, String)>,
    /// Listed tests that did not skip.
    unused: Vec<String>,
}

/// Compares the log of a complete test run with the list of `environment`,
/// and says what it found.
///
/// Fails on a skip that is not listed. A listed test that ran is only
/// reported: the list is of what may skip, on machines that differ.
pub(crate) fn check(root: &Path, environment: &str, log: &Path) -> Result<(), String> {
    let list = root.join(format!("tests/expected/{environment}.txt"));
    let cannot = |path: &Path, e: io::Error| format!("cannot read {}: {e}", path.display());
    let expected = fs::read_to_string(&list).map_err(|e| cannot(&list, e))?;
    let seen = match fs::read_to_string(log) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        other => other.map_err(|e| cannot(log, e))?,
    };
    let skips = parse_log(&seen);
    let Difference { unexpected, unused } = compare(&parse_list(&expected), &skips);
    println!("{} tests skipped ({environment})", skips.len());
    for (name, reason) in &skips {
        println!("  {name}: {reason}");
    }
    for name in &unused {
        println!("note: {name} is listed in {environment}.txt and did not skip");
    }
    if unexpected.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = unexpected.iter().map(|(name, _)| name.as_str()).collect();
    Err(format!(
        "skips that tests/expected/{environment}.txt does not list:\n{}\n\
         make them run, or add these lines with the reason in the commit",
        names.join("\n")
    ))
}

/// Names of a list: one per line, `#` begins a comment.
fn parse_list(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// `<name>: <reason>` lines; a test that ran twice is one skip.
fn parse_log(text: &str) -> BTreeMap<String, String> {
    let split = |line: &str| {
        let (name, reason) = line.split_once(": ").unwrap_or((line, ""));
        (name.to_owned(), reason.to_owned())
    };
    text.lines().filter(|line| !line.is_empty()).map(split).collect()
}

fn compare(expected: &[String], skips: &BTreeMap<String, String>) -> Difference {
    let unlisted = |(name, _): &(&String, &String)| !expected.contains(name);
    let owned = |(name, reason): (&String, &String)| (name.clone(), reason.clone());
    Difference {
        unexpected: skips.iter().filter(unlisted).map(owned).collect(),
        unused: expected.iter().filter(|name| !skips.contains_key(*name)).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, log: &str, unexpected: &[&str], unused: &[&str]) {
        let difference = compare(&parse_list(list), &parse_log(log));
        let names: Vec<_> = difference.unexpected.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, unexpected);
        assert_eq!(difference.unused, unused);
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
            let list = crate::root().join(format!("tests/expected/{name}.txt"));
            let text = fs::read_to_string(list).expect("the list is there");
            let names = parse_list(&text);
            assert!(names.is_sorted(), "{name}.txt is sorted");
            assert!(names.iter().all(|line| line.contains("::")), "{name}.txt names tests");
        }
    }
}
