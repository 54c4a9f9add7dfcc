//! Issue 6: every plain tool and a run on each file system, in a mount namespace of its
//! own, copies that share blocks and that go on where they were interrupted, a device
//! that fails and a quota that is used up.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::process::{Job, need};
use super::{Bench, Judged, Outcome};

/// The kinds, and what makes them: a program and its package, where one is needed.
const KINDS: [(&str, Option<(&str, &str)>); 8] = [
    ("ext4", Some(("mkfs.ext4", "e2fsprogs"))),
    ("xfs", Some(("mkfs.xfs", "xfsprogs"))),
    ("btrfs", Some(("mkfs.btrfs", "btrfs-progs"))),
    ("tmpfs", None),
    ("overlay", None),
    ("fuse", Some(("bindfs", "bindfs"))),
    ("failing", Some(("mkfs.ext4", "e2fsprogs"))),
    ("quota", Some(("mkfs.btrfs", "btrfs-progs"))),
];

/// Mounts, uses the tool, and unmounts.
const SCRIPT: &str = include_str!("file_systems.sh");

/// Exit codes of the script where the file system cannot be had.
const NOT_HERE: [i32; 2] = [8, 9];

/// What a command said.
struct Said {
    name: String,
    code: i32,
    out: String,
    err: String,
}

pub(crate) fn check(bench: &Bench) -> Judged {
    if super::process::own_user() != Ok(0) {
        return Ok(Outcome::Skip("mounting file systems needs root".to_owned()));
    }
    let listed = bench.iolens_json("file_systems", &["list", "engines", "--json"], 1)?.json;
    let of_task = |task: &str| {
        let engines = listed["engines"].as_array().into_iter().flatten();
        let own = engines.filter(|engine| engine["task"] == task);
        own.filter_map(|engine| engine["name"].as_str()).collect::<Vec<_>>().join(" ")
    };
    let engines = ["read", "copy", "write"].map(of_task);
    let (mut evidence, mut passes) = (Vec::new(), true);
    for (kind, needed) in KINDS {
        let there = needed.map_or(Ok(()), |(program, package)| need(program, package));
        let judged = there.and_then(|()| on(bench, kind, &engines));
        passes &= judged.is_ok();
        let line = judged.unwrap_or_else(|why| format!("WRONG: {why}"));
        eprintln!("   {kind}: {line}");
        evidence.push(format!("{kind}: {line}"));
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Uses the tool on one kind.
fn on(bench: &Bench, kind: &str, engines: &[String; 3]) -> Result<String, String> {
    let name = format!("file_systems-{kind}");
    let home = bench.home(&name)?;
    let content: Vec<u8> =
        (0..1_048_579_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(home.join("source"), content).map_err(|e| format!("cannot write: {e}"))?;
    let (path, tool) = (home.display().to_string(), bench.tool.display().to_string());
    let args = ["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"];
    let rest = [kind, path.as_str(), tool.as_str()];
    let engines = engines.each_ref().map(String::as_str);
    let job = Job::new("unshare").args(&args).args(&rest).args(&engines);
    let finished = bench.at_home(&name, job)?.limit_minutes(5).run()?;
    if let Some(code) = finished.status.code().filter(|code| NOT_HERE.contains(code)) {
        let lines = finished.stderr_lines().iter().map(|(_, line)| line.as_str());
        return Err(format!("it cannot be had ({code}): {}", lines.collect::<Vec<_>>().join(" ")));
    }
    finished.success()?;
    let said = said(&home.join("said"))?;
    match kind {
        "failing" => failing(&said),
        "quota" => quota(&said, &left(&home.join("said"))),
        _ => judged(&said, &home.join("said")),
    }
}

fn said(folder: &Path) -> Result<Vec<Said>, String> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let entries = fs::read_dir(folder).map_err(|e| format!("nothing was said: {e}"))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".code")?.to_owned()))
        .collect();
    names.sort();
    let of = |name: String| Said {
        code: text(&format!("{name}.code")).trim().parse().unwrap_or(-1),
        out: text(&format!("{name}.out")),
        err: text(&format!("{name}.err")),
        name,
    };
    Ok(names.into_iter().map(of).collect())
}

impl Said {
    /// Whether it gave a result, or one message why not.
    fn is_clear(&self) -> bool {
        let messages = self.err.lines().filter(|line| line.starts_with("iolens: ")).count();
        match self.code {
            0 => messages == 0,
            _ => self.code > 0 && messages == 1,
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or(Value::Null)
    }
}

/// What is wrong with what was said, else what it was in short.
fn judged(said: &[Said], folder: &Path) -> Result<String, String> {
    // A run reports what it has, also where it was interrupted.
    let is_run = |one: &Said| ["run", "interrupted"].contains(&one.name.as_str());
    if let Some(unclear) = said.iter().find(|one| !one.is_clear() && !is_run(one)) {
        let Said { name, code, err, .. } = unclear;
        return Err(format!("{name} ended with {code}: {err}"));
    }
    let done = |prefix: &'static str| {
        said.iter().filter(move |one| one.name.starts_with(prefix) && one.code == 0)
    };
    let is_done = |name| said.iter().any(|one| one.name == name && one.code == 0);
    let mut sums: Vec<String> =
        done("read-").map(|one| one.json()["checksum"].to_string()).collect();
    sums.sort();
    let readers = sums.len();
    sums.dedup();
    if sums.len() != 1 || !is_done("read-read") || !is_done("copy-read_write") {
        return Err(format!("{readers} readers found {sums:?}"));
    }
    if folder.join("changed").exists() {
        return Err("the user's file or a copy of it is not as it was".to_owned());
    }
    let left = left(folder);
    if left != "f" {
        return Err(format!("something was left behind: {left}"));
    }
    let rows = format!("{}{}", rows(said)?, copies(said)?);
    let refused: Vec<String> = said
        .iter()
        .filter(|one| one.code != 0 && one.name != "run")
        .map(|one| one.err.lines().next().unwrap_or_default().to_owned())
        .collect();
    let copies = done("copy-").count();
    Ok(format!(
        "{readers} readers with one checksum, {copies} copiers; {rows}; {}",
        refused.join("; ")
    ))
}

/// What is in the folder of the runs after them.
fn left(folder: &Path) -> String {
    fs::read_to_string(folder.join("left")).unwrap_or_default().trim().to_owned()
}

/// What a run of copies said where there was one: of sources in the page cache and out of
/// it, of what shares blocks, and of a run that was interrupted and gone on with.
fn copies(said: &[Said]) -> Result<String, String> {
    let find = |name: &str| said.iter().find(|one| one.name == name);
    let Some((shown, resumed)) = find("shown").zip(find("resumed")) else {
        return Ok(String::new());
    };
    let (shown, went_on) = (shown.json(), find("interrupted").is_some_and(|one| one.code == 130));
    let cells = shown["cells"].as_array().ok_or("the run of copies has no cells")?;
    for cache in ["warm", "cold"] {
        let of = |id: &str| {
            let mut own = cells.iter().filter(|row| row["cache"] == cache);
            own.find(|row| row["primitive"] == id).ok_or(format!("no {cache} {id}"))
        };
        let (bytes, shares) = (of("read_write")?, of("reflink")?);
        // Another program may have a processor when the yardsticks are measured.
        let is_copied = bytes["status"] == "ok" && bytes["copied_bytes_per_s"].is_f64();
        let is_apart = shares["copied_bytes_per_s"].is_null() && shares["verdict"].is_null();
        let is_there = ["ok", "skipped"].iter().any(|&status| shares["status"] == status);
        if !is_copied || !is_apart || !is_there {
            return Err(format!("{cache} copies: {bytes}; {shares}"));
        }
    }
    if !went_on || resumed.code != 0 || !resumed.err.contains("committed: ") {
        return Err(format!("copies did not go on: {}: {}", resumed.code, resumed.err));
    }
    let shares = cells.iter().filter(|row| row["primitive"] == "reflink" && row["status"] == "ok");
    Ok(format!("; copies warm and cold, {} of reflink, and gone on with", shares.count()))
}

/// Where a quota is used up: each tool and each run says so, and leaves nothing.
fn quota(said: &[Said], left: &str) -> Result<String, String> {
    let (mut used_up, mut elsewhere) = (0, 0);
    for one in said {
        if !one.is_clear() && !one.name.starts_with("run-") {
            return Err(format!("{} ended with {}: {}", one.name, one.code, one.err));
        }
        let names = |word: &str| one.err.contains(word);
        match (names("EDQUOT") || names("SIGBUS"), names("EXDEV") && one.name != "copy-read_write")
        {
            (true, _) if one.code == 4 => used_up += 1,
            (_, true) if one.code == 4 => elsewhere += 1,
            _ => return Err(format!("{} ended with {}: {}", one.name, one.code, one.err)),
        }
    }
    match (used_up > elsewhere + 3, left) {
        (true, "") => Ok(format!(
            "{used_up} of {} tools and runs said EDQUOT, or SIGBUS of a mapping, and left nothing",
            said.len()
        )),
        (true, left) => Err(format!("something was left behind: {left}")),
        (false, _) => Err(format!("only {used_up} of {} met the quota", said.len())),
    }
}

/// How many arms a run could use, each other one having its reason.
fn rows(said: &[Said]) -> Result<String, String> {
    let show = said.iter().find(|one| one.name == "show").ok_or("nothing was shown")?.json();
    let rows = show["cells"].as_array().ok_or("the run has no cells")?;
    if let Some(row) = rows.iter().find(|row| row["status"] != "ok" && !row["reason"].is_string()) {
        return Err(format!("no reason: {row}"));
    }
    let is_failed = |row: &&Value| row["status"] == "failed";
    if let Some(row) = rows.iter().find(is_failed) {
        return Err(format!("{} failed: {}", row["primitive"], row["reason"]));
    }
    let ok = |cache: &str| {
        let own = rows.iter().filter(|row| row["cache"] == cache);
        own.filter(|row| row["status"] == "ok").count()
    };
    match ok("warm") {
        0 => Err("no warm cell has a number".to_owned()),
        warm => Ok(format!("{warm} warm and {} cold arms of {}", ok("cold"), rows.len())),
    }
}

/// Where every read fails: a message with the errno, or the signal, and failed trials.
fn failing(said: &[Said]) -> Result<String, String> {
    let mut messages = Vec::new();
    for one in said.iter().filter(|one| one.name.starts_with("read-")) {
        let is_named = one.err.contains("EIO") || one.err.contains("SIGBUS");
        if one.code == 0 || !is_named {
            return Err(format!("{} ended with {}: {}", one.name, one.code, one.err));
        }
        messages.push(one.err.lines().next().unwrap_or_default().to_owned());
    }
    for name in ["run", "midway"] {
        let run = said.iter().find(|one| one.name == name).ok_or("no run")?;
        let failed = run.err.lines().find(|line| line.contains("EIO") || line.contains("SIGBUS"));
        // A run that had numbers before keeps them.
        let has_numbers = run.err.lines().any(|line| line.contains(": ok, "));
        let expected = if has_numbers { 0..=4 } else { 4..=4 };
        match failed.filter(|_| expected.contains(&run.code) && messages.len() >= 3) {
            Some(line) => messages.push(line.to_owned()),
            None => return Err(format!("{name} ended with {}: {}", run.code, run.err)),
        }
    }
    Ok(messages.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, code: i32, err: &str, out: &str) -> Said {
        Said { name: name.to_owned(), code, out: out.to_owned(), err: err.to_owned() }
    }

    #[test]
    fn a_result_or_one_message() {
        assert!(one("a", 0, "", "").is_clear());
        assert!(one("a", 4, "iolens: no\n  do\n", "").is_clear());
        assert!(!one("a", 4, "", "").is_clear());
        assert!(!one("a", 4, "iolens: a\niolens: b\n", "").is_clear());
        assert!(!one("a", -1, "iolens: a\n", "").is_clear());
    }

    #[test]
    fn a_failed_arm_and_one_without_a_reason_are_wrong() {
        let show = |rows: &str| vec![one("show", 0, "", &format!("{{\"cells\": [{rows}]}}"))];
        let ok = r#"{"status": "ok", "cache": "warm"}"#;
        assert_eq!(rows(&show(ok)).as_deref(), Ok("1 warm and 0 cold arms of 1"));
        let failed = format!("{ok}, {}", r#"{"status": "failed", "reason": "why"}"#);
        assert!(rows(&show(&failed)).is_err());
        assert!(rows(&show(r#"{"status": "invalid"}"#)).is_err());
        assert!(rows(&show("")).is_err());
    }

    #[test]
    fn a_quota_is_named_by_all_and_nothing_stays() {
        let met = |name: String| one(&name, 4, "iolens: cannot write w: EDQUOT\n", "");
        let all = |last: Said| -> Vec<Said> {
            (0..5).map(|n| met(format!("write-{n}"))).chain([last]).collect()
        };
        let other = |err: &str| one("copy-reflink", 4, err, "");
        assert!(quota(&all(other("iolens: it failed: EXDEV\n")), "").is_ok());
        assert!(quota(&all(other("iolens: it failed: EXDEV\n")), "w").is_err());
        assert!(quota(&all(other("iolens: oh\n")), "").is_err());
        assert!(quota(&all(one("write-x", 0, "", "")), "").is_err());
    }

    #[test]
    fn a_device_that_fails_is_named_by_all() {
        let named = |name| one(name, 4, "iolens: cannot read f: EIO\n", "");
        let mut all = vec![named("read-read"), named("read-direct"), named("read-mmap")];
        assert!(failing(&all).is_err(), "no run");
        let failed = "committed: failed: `read`: cannot read f: EIO\n";
        all.push(one("run", 4, failed, ""));
        let midway = |code| one("midway", code, &format!("committed: : ok, \n{failed}"), "");
        let both = |last: Said| {
            let again = |one: &Said| super::tests::one(&one.name, one.code, &one.err, &one.out);
            all.iter().map(again).chain([last]).collect::<Vec<_>>()
        };
        assert!(failing(&both(midway(0))).is_ok());
        assert!(failing(&both(midway(101))).is_err());
        assert!(failing(&both(one("midway", 0, "committed: : ok, \n", ""))).is_err());
        all[0].err = "iolens: oh\n".to_owned();
        assert!(failing(&all).is_err());
    }
}
