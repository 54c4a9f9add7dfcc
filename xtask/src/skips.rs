//! Which tests skipped, against which may: a skip that nobody expected hides a
//! test, so it fails. How tests report a skip: `tests/support/skip.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::root;

/// Names the file that tests append their skips to.
pub(crate) const LOG_VARIABLE: &str = "IOLENS_SKIP_LOG";

/// Chooses the list of a third environment, such as a kind of container:
/// `NAME` for `tests/expected/NAME.txt`.
const ENVIRONMENT_VARIABLE: &str = "IOLENS_TEST_ENVIRONMENT";

/// Compares the log of a complete test run with the list that applies to a user, and says what it
/// found.
///
/// Fails on a skip that is not listed. A listed test that ran is only
/// reported: the list is of what may skip, on machines that differ.
pub(crate) fn check(user_id: u32, log: &Path) -> Result<()> {
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
