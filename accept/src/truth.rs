//! Whether numbers are right: simulations, known answers, agreement with others' counts and
//! recomputations, equal time, and what measuring itself costs.

mod doctor;
mod groups;
mod perf_stat;
mod repeated;
mod thread_cpu;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::network::plan;
use crate::prelude::*;

pub const FUNCTIONS: Functions = &[
    ("stated-time", stated_time),
    ("perf-stat", perf_stat::check),
    ("audit", audit),
    ("doctor", doctor::check),
    ("thread-cpu", thread_cpu::check),
    ("groups", groups::check),
    ("recompute", recompute),
    ("repetitions", repeated::repetitions),
    ("handicap", repeated::handicap),
    ("fresh-copies", repeated::fresh_copies),
];

fn stated_time(bench: &Bench) -> Res {
    let run = plan(bench, "classic-72.toml").minutes(40).success()?;
    let stated = run.err_lines().find_map(stated_seconds);
    let stated = stated.ok_or("the run did not say how long it would take")?;
    bench.note("stated", format!("{stated:.0} s, took {:.0} s", run.seconds()));
    bench.within("of it", run.seconds() / stated, 0.75..=1.25);
    Ok(())
}

/// Seconds in a line that says `expected time: about 4.5 min`.
fn stated_seconds(line: &str) -> Option<f64> {
    let words = line.split("expected time: about ").nth(1)?.split([';', ',', '(']).next()?;
    // `4m 30s` and `270 s`: a number and its unit may stand apart.
    let mut rest = words.trim().trim_end_matches('.');
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(char::is_alphabetic)?);
        let (unit, behind) = behind.split_once(' ').unwrap_or((behind, ""));
        let of_unit = match unit {
            "h" => 3600.0,
            "m" | "min" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            _ => return None,
        };
        seconds += of_unit * number.trim().parse::<f64>().ok()?;
        rest = behind.trim();
    }
    Some(seconds)
}

/// The plausibility gates on tables of others: planted rows and texts.
fn audit(bench: &Bench) -> Res {
    for name in ["planted.csv", "planted_files.csv"] {
        let text = crate::bench::read(&fixture(name))?;
        let lines = |word: &str| -> BTreeSet<u64> {
            let numbered = (1..).zip(text.lines());
            numbered.filter(|(_, line)| line.starts_with(word)).map(|(number, _)| number).collect()
        };
        let (planted, sound) = (lines("impossible"), lines("possible"));
        bench.judge(name, !planted.is_empty() && !sound.is_empty(), "has rows of both kinds");
        let (code, file) = audited(bench, name)?;
        bench.same("exit code", code, Some(1));
        bench.same("flagged of those that are impossible", flagged(&file), planted);
    }
    let file = audited(bench, "perf_impossible.txt")?.1;
    let impossible = file.list("findings").iter().filter(|one| one["severity"] == "impossible");
    let texts: Vec<&str> = impossible.map(|finding| finding.word("text")).collect();
    let has = |part: &str| texts.iter().any(|text| text.contains(part));
    let both = has("hold 11.00, not 305") && has("a clock of 0.1310 GHz");
    bench.judge("perf_impossible.txt", both && texts.len() == 2, texts.join("; "));
    let (code, file) = audited(bench, "perf_possible.txt")?;
    bench.same("perf_possible.txt, exit code", code, Some(0));
    bench.same("flagged", flagged(&file), BTreeSet::new());
    Ok(())
}

/// A fixture of the crate that audits.
fn fixture(name: &str) -> std::path::PathBuf {
    crate::root().join("crates/audit/fixtures").join(name)
}

/// Exit code and findings of one fixture.
fn audited(bench: &Bench, name: &str) -> Res<(Option<i32>, Value)> {
    let done = bench.iolens("audit --json").arg(fixture(name)).run()?;
    Ok((done.status.code(), done.json()?.at("files/0").clone()))
}

/// Lines in any finding that is more than a remark.
fn flagged(file: &Value) -> BTreeSet<u64> {
    let findings = file.list("findings").iter().filter(|found| found["severity"] != "remark");
    findings.flat_map(|found| found.list("lines")).filter_map(Value::as_u64).collect()
}

/// Runs of seconds. `--passes` makes them short, and unlike `--quick` leaves them verdicts. All
/// but the first and third have several groups of arms: more than one trial holds.
const RECOMPUTED: [&str; 7] = [
    "run net --network loopback --sizes 64,4KiB,64KiB --threads 1 --passes 12 --rounds 5 \
     --slice 1ms --methods send_staged,sendmsg_iov,send,writev,sendmsg_zerocopy",
    "run net --network loopback --sizes 4KiB --threads 1 --passes 6 --rounds 4 --slice 1ms \
     --methods send_staged,sendmsg_iov,send,writev,write,sendmmsg,send_per_field,splice,\
     uring_send",
    "run file --block-sizes 64KiB --passes 5 --rounds 5 --slice 1ms",
    "run write --block-sizes 64KiB --passes 5 --rounds 4 --slice 1ms",
    "run syscall --bursts full,10 --passes 5 --rounds 5 --slice 500us",
    "run server --network loopback --connections 8 --load closed --passes 6 --rounds 4 \
     --slice 1ms",
    "run server --network loopback --connections 8 --load 50% --step-time 1s --passes 3 \
     --models epoll_lt,poll,prefork,thread_per_connection",
];

/// Computed again by a program that shares no code with the tool.
fn recompute(bench: &Bench) -> Res {
    let id = |run| run_id(&bench.json(format!("{run} --progress none --json"))?);
    let ids: Vec<String> = RECOMPUTED.into_iter().map(id).collect::<Res<_>>()?;
    let witness = Job::new("python3").arg(crate::root().join("witness/recompute.py"));
    let witness = witness.words("--perturb --iolens").arg(&bench.tool).args(ids);
    let done = bench.at_home(witness).run()?;
    let said = format!("{}\n{}", done.stdout(), done.stderr());
    let agrees = done.status.success() && said.contains("nothing disagrees");
    bench.judge("computed again", agrees, said);
    Ok(())
}

fn run_id(json: &Value) -> Res<String> {
    Ok(json.at("run/id").as_str().ok_or("the JSON names no run")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_time_is_read() {
        let seconds = |text: &str| stated_seconds(&format!("expected time: about {text}; more"));
        assert_eq!(seconds("4m 30s"), Some(270.0));
        assert_eq!(seconds("8.34 min"), Some(500.4));
        assert_eq!(seconds("1h 2m"), Some(3720.0));
        assert_eq!(seconds("38.5 s"), Some(38.5));
        assert_eq!(seconds("soon"), None);
        assert_eq!(stated_seconds("nothing is said"), None);
    }
}
