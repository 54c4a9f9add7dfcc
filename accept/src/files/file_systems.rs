//! Every plain tool and a run on each file system, in a mount namespace of its
//! own, copies that share blocks and that go on where they were interrupted, a device
//! that fails and a quota that is used up.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::prelude::*;
use crate::process::names;

const KINDS: [&str; 8] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse", "failing", "quota"];

/// Mounts, uses the tool, and unmounts.
const SCRIPT: &str = include_str!("file_systems.sh");

/// What a command of the script said; without a code where it was not started.
#[derive(Clone, Default)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

/// By the names of commands.
type All = BTreeMap<String, Said>;

pub fn check(bench: &Bench) -> Res {
    let listed = bench.json("list engines --json")?;
    let of_task = |task: &str| listed.names("engines", |engine| engine["task"] == task).join(" ");
    let engines = ["read", "copy", "write"].map(of_task);
    for kind in KINDS {
        let used = on(&bench.room(&format!("file-systems-{kind}"))?, kind, &engines);
        bench.part(kind, used.map(|()| "used"));
    }
    Ok(())
}

/// Uses the tool on one kind.
fn on(bench: &Bench, kind: &str, engines: &[String; 3]) -> Res {
    let content = (0..1_048_579_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
    bench.write("source", content.collect::<Vec<u8>>())?;
    let job = Job::of("unshare --mount --propagation private sh -c").args([SCRIPT, "sh", kind]);
    let job = job.arg(bench.path("")).arg(&bench.tool).args(engines);
    let finished = bench.at_home(job).minutes(5).run()?;
    // The script's own codes.
    if let Some(code @ (8 | 9)) = finished.status.code() {
        return Err(format!("it cannot be had ({code}): {}", finished.stderr()));
    }
    finished.success()?;
    let (said, left) = (said(bench), bench.read("said/left").unwrap_or_default());
    match kind {
        "failing" => failing(bench, &said),
        "quota" => quota(bench, &said, left.trim()),
        _ => {
            let changed = bench.path("said/changed").exists();
            bench.expect(!changed, kind, "the user's file or a copy of it is not as it was");
            judge(bench, &said, left.trim());
        }
    }
    Ok(())
}

/// What all commands said.
fn said(bench: &Bench) -> All {
    let of = |name: &str| {
        let text = |part: &str| bench.read(&format!("said/{name}.{part}")).unwrap_or_default();
        Said { code: text("code").trim().parse().ok(), out: text("out"), err: text("err") }
    };
    let names = names(bench.path("said"));
    let names = names.iter().filter_map(|name| name.strip_suffix(".code"));
    names.map(|name| (name.to_owned(), of(name))).collect()
}

fn find(said: &All, name: &str) -> Said {
    said.get(name).cloned().unwrap_or_default()
}

impl Said {
    /// Whether it gave a result, or one message why not.
    fn is_clear(&self) -> bool {
        let messages = self.err.lines().filter(|line| line.starts_with("iolens: ")).count();
        self.code.is_some_and(|code| code >= 0 && messages == usize::from(code != 0))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or(Value::Null)
    }

    fn first_line(&self) -> &str {
        self.err.lines().next().unwrap_or_default()
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it ended with {:?}: {}", self.code, self.err)
    }
}

/// Where all works or says why not.
fn judge(check: &Check, said: &All, left: &str) {
    for (name, one) in said {
        // A run reports what it has, also where it was interrupted.
        let is_run = ["run", "interrupted"].contains(&name.as_str());
        check.expect(is_run || one.is_clear(), name, one);
    }
    let of_kind = |prefix: &'static str| said.iter().filter(move |(n, _)| n.starts_with(prefix));
    let mut readers: Vec<String> = of_kind("read-")
        .filter(|(_, one)| one.code == Some(0))
        .map(|(_, one)| one.json()["checksum"].to_string())
        .collect();
    check.note("readers", readers.len());
    readers.dedup();
    check.same("checksums that they found", readers.len(), 1);
    check.note("copiers", of_kind("copy-").filter(|(_, one)| one.code == Some(0)).count());
    for name in ["read-read", "copy-read_write"] {
        check.same(name, find(said, name).code, Some(0));
    }
    check.same("left", left, "f");
    rows(check, &find(said, "show").json());
    copies(check, said);
    let refused = said.iter().filter(|(name, one)| one.code != Some(0) && *name != "run");
    refused.for_each(|(name, one)| check.note(name, one.first_line()));
}

/// What a run of copies said where there was one: of sources in the page cache and out of
/// it, of what shares blocks, and of a run that was interrupted and gone on with.
fn copies(check: &Check, said: &All) {
    let (Some(shown), Some(resumed)) = (said.get("shown"), said.get("resumed")) else { return };
    let shown = shown.json();
    for cache in ["warm", "cold"] {
        let of = |id: &str| {
            let mut own = shown.rows().iter().filter(|row| row["cache"] == cache);
            own.find(|row| row["primitive"] == id).unwrap_or(&Value::Null)
        };
        let (bytes, shares) = (of("read_write"), of("reflink"));
        check.same(format!("{cache} copies"), bytes.word("status"), "ok");
        check.within("bytes/s", bytes.num("copied_bytes_per_s"), 0.0..);
        // What shares blocks copies nothing, and is not compared.
        let is_apart = shares["copied_bytes_per_s"].is_null() && shares["verdict"].is_null();
        let is_tried = ["ok", "skipped"].contains(&shares.word("status"));
        check.expect(is_apart && is_tried, "reflink", shares);
        check.note("reflink", shares.word("status"));
    }
    check.same("interrupted", find(said, "interrupted").code, Some(130));
    let goes_on = resumed.code == Some(0) && resumed.err.contains("committed: ");
    check.judge("gone on with", goes_on, resumed.first_line());
}

/// Where a quota is used up: each tool and each run says so, and leaves nothing.
fn quota(check: &Check, said: &All, left: &str) {
    let (mut used_up, mut elsewhere) = (0, 0);
    for (name, one) in said {
        let names = |word: &str| one.err.contains(word);
        let is_full = names("EDQUOT") || names("SIGBUS");
        let is_elsewhere = names("EXDEV") && name != "copy-read_write";
        let is_clear = one.code == Some(4) && (one.is_clear() || name.starts_with("run-"));
        check.expect(is_clear && (is_full || is_elsewhere), name, one);
        used_up += usize::from(is_full);
        elsewhere += usize::from(is_elsewhere && !is_full);
    }
    let of = format!("of {} tools and runs said EDQUOT, or SIGBUS of a mapping", said.len());
    check.within(of, used_up, elsewhere + 4..);
    check.same("left", left, "");
}

/// How many arms a run could use, each other one having its reason.
fn rows(check: &Check, show: &Value) {
    for row in show.rows() {
        let has_reason = row["status"] != "failed" && row["reason"].is_string();
        check.expect(row["status"] == "ok" || has_reason, "failed, or without a reason", row);
    }
    let ok = |cache: &str| {
        show.rows().iter().filter(|row| row["cache"] == cache && row["status"] == "ok").count()
    };
    check.within(format!("of {} arms, warm ones with numbers", show.rows().len()), ok("warm"), 1..);
    check.note("cold ones", ok("cold"));
}

/// Where every read fails: a message with the errno, or the signal, and failed trials.
fn failing(check: &Check, said: &All) {
    let is_named = |line: &str| line.contains("EIO") || line.contains("SIGBUS");
    let mut reads = 0;
    for (name, one) in said.iter().filter(|(name, _)| name.starts_with("read-")) {
        check.expect(one.code != Some(0) && is_named(&one.err), name, one);
        check.note(name, one.first_line());
        reads += 1;
    }
    check.within("reads that failed", reads, 3..);
    for name in ["run", "midway"] {
        let run = find(said, name);
        // A run that had numbers before keeps them.
        let has_numbers = run.err.lines().any(|line| line.contains(": ok, "));
        let codes = if has_numbers { 0..=4 } else { 4..=4 };
        let is_ended = run.code.is_some_and(|code| codes.contains(&code));
        let named = run.err.lines().find(|line| is_named(line));
        check.judge(name, is_ended && named.is_some(), named.unwrap_or(&run.err));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::passes;

    fn one(code: i32, err: &str) -> Said {
        Said { code: Some(code), err: err.to_owned(), out: String::new() }
    }

    fn all<const N: usize>(said: [(&str, Said); N]) -> All {
        said.map(|(name, one)| (name.to_owned(), one)).into()
    }

    #[test]
    fn a_result_or_one_message() {
        assert!(one(0, "").is_clear());
        assert!(one(4, "iolens: no\n  do\n").is_clear());
        assert!(!one(4, "").is_clear() && !one(0, "iolens: a\n").is_clear());
        assert!(!one(4, "iolens: a\niolens: b\n").is_clear());
        assert!(!one(-1, "iolens: a\n").is_clear() && !Said::default().is_clear());
    }

    #[test]
    fn a_failed_arm_and_one_without_a_reason_are_wrong() {
        let good = |more: &[Value]| {
            let ok = json!({"status": "ok", "cache": "warm"});
            let cells = [&[ok], more].concat();
            passes(|check| rows(check, &json!({ "cells": cells })))
        };
        assert!(good(&[]) && good(&[json!({"status": "skipped", "reason": "why"})]));
        assert!(!good(&[json!({"status": "failed", "reason": "why"})]));
        assert!(!good(&[json!({"status": "invalid"})]));
        assert!(!passes(|check| rows(check, &json!({"cells": []}))));
    }

    #[test]
    fn readers_that_differ_and_what_is_left_are_wrong() {
        let read = |sum: &str| Said { out: format!("{{\"checksum\": \"{sum}\"}}"), ..one(0, "") };
        let good = |sum: &str, left: &str| {
            let show = r#"{"cells": [{"status": "ok", "cache": "warm"}]}"#.to_owned();
            let said = [
                ("read-read", read("7")),
                ("read-mmap", read(sum)),
                ("copy-read_write", one(0, "")),
                ("show", Said { out: show, ..one(0, "") }),
            ];
            passes(|check| judge(check, &all(said), left))
        };
        assert!(good("7", "f") && !good("8", "f") && !good("7", "f w"));
    }

    #[test]
    fn a_quota_is_named_by_all_and_nothing_stays() {
        let good = |last: (&str, Said), left: &str| {
            let mut said = all([last]);
            let met = |n: u8| (format!("write-{n}"), one(4, "iolens: cannot write w: EDQUOT\n"));
            said.extend((0..5).map(met));
            passes(|check| quota(check, &said, left))
        };
        let other = |err: &str| ("copy-reflink", one(4, err));
        assert!(good(other("iolens: it failed: EXDEV\n"), ""));
        assert!(!good(other("iolens: it failed: EXDEV\n"), "w"));
        assert!(!good(other("iolens: oh\n"), ""));
        assert!(!good(("write-x", one(0, "")), ""));
    }

    #[test]
    fn a_device_that_fails_is_named_by_all() {
        let named = || one(4, "iolens: cannot read f: EIO\n");
        let failed = "committed: failed: `read`: cannot read f: EIO\n";
        let numbers = "committed: : ok, \n";
        let good = |read: Said, midway: Said| {
            let reads = [("read-read", read), ("read-direct", named()), ("read-mmap", named())];
            let runs = [("run", one(4, failed)), ("midway", midway)];
            let said = all(reads).into_iter().chain(all(runs)).collect();
            passes(|check| failing(check, &said))
        };
        let midway = |code| one(code, &format!("{numbers}{failed}"));
        assert!(good(named(), midway(0)));
        assert!(!good(named(), midway(101)) && !good(named(), Said::default()));
        assert!(!good(named(), one(0, numbers)));
        assert!(!good(one(4, "iolens: oh\n"), midway(0)));
    }
}
