//! Every plain tool and a run on each file system, in a mount namespace of its
//! own, copies that share blocks and that go on where they were interrupted, a device
//! that fails and a quota that is used up.

use serde_json::Value;

use crate::bench::names;
use crate::prelude::*;

const KINDS: [&str; 8] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse", "failing", "quota"];

/// Mounts, uses the tool, and unmounts.
const SCRIPT: &str = include_str!("file_systems.sh");

/// What a command said.
#[derive(Clone)]
struct Said {
    name: String,
    code: i32,
    out: String,
    err: String,
}

pub fn check(bench: &Bench, check: &mut Check) -> Res {
    let listed = bench.json("list engines --json")?;
    let of_task = |task: &str| listed.names("engines", |engine| engine["task"] == task).join(" ");
    let engines = ["read", "copy", "write"].map(of_task);
    for kind in KINDS {
        check.part(kind, on(&bench.room(&format!("file-systems-{kind}"))?, kind, &engines));
    }
    Ok(())
}

/// Uses the tool on one kind.
fn on(bench: &Bench, kind: &str, engines: &[String; 3]) -> Res<String> {
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
    let said = said(bench);
    let left = bench.read("said/left").unwrap_or_default();
    match kind {
        "failing" => failing(&said),
        "quota" => quota(&said, left.trim()),
        _ if bench.path("said/changed").exists() => {
            Err("the user's file or a copy of it is not as it was".to_owned())
        }
        _ => judged(&said, left.trim()),
    }
}

/// What all commands said, by their names.
fn said(bench: &Bench) -> Vec<Said> {
    let mut names = names(bench.path("said"));
    names.sort();
    let of = |name: &str| {
        let text = |part: &str| bench.read(&format!("said/{name}.{part}")).unwrap_or_default();
        let code = text("code").trim().parse().unwrap_or(-1);
        Said { code, out: text("out"), err: text("err"), name: name.to_owned() }
    };
    names.iter().filter_map(|name| Some(of(name.strip_suffix(".code")?))).collect()
}

fn find<'a>(said: &'a [Said], name: &str) -> Res<&'a Said> {
    said.iter().find(|one| one.name == name).ok_or_else(|| format!("there is no {name}"))
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

    fn first_line(&self) -> &str {
        self.err.lines().next().unwrap_or_default()
    }

    fn unexpected<T>(&self) -> Res<T> {
        Err(format!("{} ended with {}: {}", self.name, self.code, self.err))
    }
}

/// What is wrong with what was said, else what it was in short.
fn judged(said: &[Said], left: &str) -> Res<String> {
    // A run reports what it has, also where it was interrupted.
    let is_run = |one: &Said| ["run", "interrupted"].contains(&one.name.as_str());
    if let Some(unclear) = said.iter().find(|one| !one.is_clear() && !is_run(one)) {
        return unclear.unexpected();
    }
    let done = |prefix: &'static str| {
        said.iter().filter(move |one| one.name.starts_with(prefix) && one.code == 0)
    };
    let mut sums: Vec<String> =
        done("read-").map(|one| one.json()["checksum"].to_string()).collect();
    let (readers, copiers) = (sums.len(), done("copy-").count());
    sums.sort();
    sums.dedup();
    let is_done = |name| find(said, name).is_ok_and(|one| one.code == 0);
    if sums.len() != 1 || !is_done("read-read") || !is_done("copy-read_write") {
        return Err(format!("{readers} readers found {sums:?}"));
    }
    if left != "f" {
        return Err(format!("something was left behind: {left}"));
    }
    let (rows, copies) = (rows(said)?, copies(said)?);
    let refused = said.iter().filter(|one| one.code != 0 && one.name != "run");
    let refused = refused.map(Said::first_line).collect::<Vec<_>>().join("; ");
    Ok(format!("{readers} readers with one checksum, {copiers} copiers; {rows}{copies}; {refused}"))
}

/// What a run of copies said where there was one: of sources in the page cache and out of
/// it, of what shares blocks, and of a run that was interrupted and gone on with.
fn copies(said: &[Said]) -> Res<String> {
    let (Ok(shown), Ok(resumed)) = (find(said, "shown"), find(said, "resumed")) else {
        return Ok(String::new());
    };
    let shown = shown.json();
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
        if !is_copied || !is_apart || !["ok", "skipped"].contains(&shares.word("status")) {
            return Err(format!("{cache} copies: {bytes}; {shares}"));
        }
    }
    let interrupted = find(said, "interrupted").is_ok_and(|one| one.code == 130);
    if !interrupted || resumed.code != 0 || !resumed.err.contains("committed: ") {
        return resumed.unexpected();
    }
    let shares = cells.iter().filter(|row| row["primitive"] == "reflink" && row["status"] == "ok");
    Ok(format!("; copies warm and cold, {} of reflink, and gone on with", shares.count()))
}

/// Where a quota is used up: each tool and each run says so, and leaves nothing.
fn quota(said: &[Said], left: &str) -> Res<String> {
    let (mut used_up, mut elsewhere) = (0, 0);
    for one in said {
        let names = |word: &str| one.err.contains(word);
        let is_clear = one.is_clear() || one.name.starts_with("run-");
        let is_elsewhere = names("EXDEV") && one.name != "copy-read_write";
        match (names("EDQUOT") || names("SIGBUS"), is_elsewhere) {
            (true, _) if is_clear && one.code == 4 => used_up += 1,
            (_, true) if is_clear && one.code == 4 => elsewhere += 1,
            _ => return one.unexpected(),
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
fn rows(said: &[Said]) -> Res<String> {
    let show = find(said, "show")?.json();
    let rows = show["cells"].as_array().ok_or("the run has no cells")?;
    let is_wrong = |row: &&Value| {
        row["status"] == "failed" || row["status"] != "ok" && !row["reason"].is_string()
    };
    if let Some(row) = rows.iter().find(is_wrong) {
        return Err(format!("failed, or without a reason: {row}"));
    }
    let ok = |cache: &str| {
        rows.iter().filter(|row| row["cache"] == cache && row["status"] == "ok").count()
    };
    match ok("warm") {
        0 => Err("no warm cell has a number".to_owned()),
        warm => Ok(format!("{warm} warm and {} cold arms of {}", ok("cold"), rows.len())),
    }
}

/// Where every read fails: a message with the errno, or the signal, and failed trials.
fn failing(said: &[Said]) -> Res<String> {
    let is_named = |line: &str| line.contains("EIO") || line.contains("SIGBUS");
    let mut messages = Vec::new();
    for one in said.iter().filter(|one| one.name.starts_with("read-")) {
        if one.code == 0 || !is_named(&one.err) {
            return one.unexpected();
        }
        messages.push(one.first_line());
    }
    if messages.len() < 3 {
        return Err(format!("only {messages:?}"));
    }
    for name in ["run", "midway"] {
        let run = find(said, name)?;
        // A run that had numbers before keeps them.
        let has_numbers = run.err.lines().any(|line| line.contains(": ok, "));
        let least = if has_numbers { 0 } else { 4 };
        match run.err.lines().find(|line| is_named(line)) {
            Some(line) if (least..=4).contains(&run.code) => messages.push(line),
            _ => return run.unexpected(),
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
        let both = |last: Said| [all.clone(), vec![last]].concat();
        assert!(failing(&both(midway(0))).is_ok());
        assert!(failing(&both(midway(101))).is_err());
        assert!(failing(&both(one("midway", 0, "committed: : ok, \n", ""))).is_err());
        all[0].err = "iolens: oh\n".to_owned();
        assert!(failing(&all).is_err());
    }
}
