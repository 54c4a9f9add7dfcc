//! Whether numbers are right: simulations, known answers, agreement with others' counts and
//! recomputations, equal time, and what measuring itself costs.

mod doctor;
mod groups;
mod overhead;
mod perf_stat;
mod repeated;
mod thread_cpu;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::Value;

use crate::json::{DIFFERENT, half_width, is_judged, ratio_words};
use crate::network::plan;
use crate::prelude::*;
use crate::process::{Running, tests};

pub const LINES: &[Line] = &[
    line(
        "simulations",
        "the simulations of METHOD.md pass: coverage within three binomial standard errors for \
         normal and log-normal trials, stated for slow ones, A/A rates likewise",
        &[],
        |bench| {
            let kinds = [("nominal", 18..=99), ("A/A", 1..=99), ("slower", 1..=99)];
            rates(bench, "iolens-stats --lib simulation", "%", &kinds)
        },
    ),
    line(
        "neighbours",
        "trials that resemble those of the passes before them (AR(1) at 0.4) are said to in over \
         90% of runs, and intervals then cover 93%; states of ten passes are said too",
        &[],
        |bench| {
            let kinds = [("AR(1)", 2..=99), ("independent", 3..=99), ("states of", 2..=99)];
            rates(bench, "iolens-stats --lib simulation::neighbours", "%", &kinds)
        },
    ),
    line(
        "tune-finals",
        "4000 finals of `tune` between equally fast arms, for each of six settings: one is \
         called faster in at most 5%",
        &[],
        |bench| rates(bench, "iolens-stats --lib tune::finals", "%", &[("equal arms", 6..=99)]),
    ),
    line(
        "virtual-time",
        "in virtual time, 10⁶ arrivals: the mean wait within 1% of M/D/1 at ρ 0.5 and 0.8, gaps \
         exponential by a Kolmogorov-Smirnov test",
        &[],
        |bench| {
            let kinds = [("M/D/1", 4..=4), ("Kolmogorov", 4..=4), ("stall", 2..=2)];
            rates(bench, "iolens-engine --lib load::", "figure: ", &kinds)
        },
    ),
    line(
        "noise-floor",
        "over 256 B, 4, 16, 64 KiB × 1 and 4 threads the A/A half-width is under 4% in at least 6 \
         of 8 cells within 15 s a cell, and no A/A arm is FASTER or SLOWER",
        &[],
        noise_floor,
    ),
    line(
        "self-check",
        "over 20 cells of one full run the A/A arm is FASTER or SLOWER in none and excludes 1 \
         pointwise in at most 4",
        &[],
        self_check,
    ),
    line(
        "equal-time",
        "two busy loops beside it, 20 cells: no arm that makes the baseline's call, the A/A arm and \
         its bare loop, is judged FASTER or SLOWER",
        &[],
        equal_time,
    ),
    line(
        "stated-time",
        "`run plans/classic-72.toml` keeps to the time it states within a quarter",
        &[],
        stated_time,
    ),
    line(
        "perf-stat",
        "a single arm under `--isolate`, with `perf stat --control` around our own bracket, agrees \
         with our counts within 1% for task-clock, context switches and faults (and cycles where \
         there is a PMU)",
        &["perf"],
        perf_stat::check,
    ),
    line(
        "explain",
        "`explain` on veth shows the late copy and page pinning for `sendmsg_zerocopy` and neither \
         for `send`; over 95% of `memcpy` falls in user code",
        &[],
        explain,
    ),
    line(
        "audit",
        "`audit` flags, in a file of planted rows, every impossible one and no possible one; the \
         perf text with \"0.131 GHz\" and 305 switches at 520/s over 21.14 ms is flagged on both \
         counts",
        &[],
        audit,
    ),
    line(
        "doctor",
        "`doctor` is right on this machine as root and as an ordinary user: each claim that can be \
         tried again is so, and the command it advises first has its effect",
        &["python3", "setpriv", "setcap", "unshare", "prlimit"],
        doctor::check,
    ),
    line(
        "counters",
        "counters open cost less than 2% of a slice's time (upper end of the interval, alternated \
         slices), reading them less than 5% of a trial's and none within a slice's clock",
        &[],
        overhead::counters,
    ),
    line(
        "sampling",
        "sampling at 1 kHz costs less than 2% of a slice's time (upper end of the interval, \
         alternated slices)",
        &[],
        overhead::sampling,
    ),
    line(
        "thread-cpu",
        "CPU time has that of the kernel's threads that work for an arm (io_uring): of what the \
         process spends less than 5% is left out, for every arm of every study",
        &[],
        thread_cpu::check,
    ),
    line(
        "groups",
        "cells with several groups of arms: n is the contrast's, tables are in the order of their \
         ratios, each arm is judged beside the A/A of its own group",
        &[],
        groups::check,
    ),
    line(
        "recompute",
        "runs of net, file, write, syscall and server, several of them with more arms than a trial \
         holds, computed again from their exported slices by a program that shares no code: \
         contrasts, pairs, intervals, verdicts and figures agree to six digits, and one changed \
         slice does not",
        &["python3"],
        recompute,
    ),
    line(
        "repetitions",
        "five repetitions of one plan, compared pairwise, give no SLOWER in ten comparisons",
        &[],
        repeated::repetitions,
    ),
    line(
        "handicap",
        "an arm that takes 20% longer in a second run is SLOWER in the comparison, it alone, with \
         the right ratio in its interval",
        &[],
        repeated::handicap,
    ),
    line(
        "fresh-copies",
        "a build measured in turn with a copy of itself differs from it in none of twenty \
         comparisons",
        &[],
        repeated::fresh_copies,
    ),
];

/// Runs simulations, tests that are always run; they must pass, and print as many lines of each
/// kind as are asked for. `mark` stands in every such line.
fn rates(check: &Check, words: &str, mark: &str, kinds: &[(&str, RangeInclusive<usize>)]) -> Res {
    let done = tests(check, &format!("--package {words} -- --nocapture"))?;
    let lines = done.out_lines().filter(|line| line.contains(mark));
    // A test's name may stand in front of its first line.
    let rates: Vec<&str> =
        lines.map(|line| line.split_once("figure: ").map_or(line, |(_, rate)| rate)).collect();
    for (kind, count) in kinds {
        let of_kind: Vec<&str> = rates.iter().copied().filter(|rate| rate.contains(kind)).collect();
        check.judge(kind, count.contains(&of_kind.len()), of_kind.join("\n"));
    }
    Ok(())
}

fn noise_floor(bench: &Bench) -> Res {
    let run = bench.run(
        "run net --sizes 256,4KiB,16KiB,64KiB --threads 1,4 --methods send_staged,sendmsg_iov \
         --budget 2m --json",
    )?;
    let json = run.json()?;
    let copies = copies(bench, &json, 8);
    copies.iter().for_each(|row| bench.note("A/A", ratio_words(row)));
    let narrow = copies.iter().filter(|row| half_width(row) < 0.04).count();
    bench.within("cells under ±4%", narrow, 6..);
    bench.within("seconds", run.seconds(), ..=8.0 * 15.0);
    Ok(())
}

fn self_check(bench: &Bench) -> Res {
    let json = bench.json(
        "run net --methods send_staged,sendmsg_iov,sendmsg_zerocopy --threads 1,2,4,8 --sizes \
         256,1KiB,4KiB,16KiB,64KiB --network veth --budget 5m --json",
    )?;
    let excludes = |row: &&Value| row.num("ratio_low") > 1.0 || row.num("ratio_high") < 1.0;
    let excluding = copies(bench, &json, 20).into_iter().filter(excludes).count();
    bench.within("exclude 1 pointwise", excluding, ..=4);
    Ok(())
}

/// The baseline's copies in all cells, none of which may be judged different from it.
fn copies<'a>(check: &Check, json: &'a Value, cells: usize) -> Vec<&'a Value> {
    let copies = json.rows_where("role", "self_check");
    check.same("cells", copies.len(), cells);
    let different = copies.iter().filter(|row| is_judged(row, &DIFFERENT)).count();
    check.same("A/A arms FASTER or SLOWER", different, 0);
    copies
}

/// The baseline, a bare loop of the same call, and the hidden copy; 20 cells.
/// Not a quick run: those have no verdicts.
const EQUAL: &str = "run net --methods send,bare_send --baseline send \
                     --sizes 64,512,4KiB,16KiB,64KiB --threads 1,2,3,4 --network loopback \
                     --passes 12 --budget 5m --json";

/// On a machine whose processors others want too: two loops that want one each, as many as the
/// machine of the promise has.
fn equal_time(bench: &Bench) -> Res {
    let busy = || Job::shell("while :; do :; done").start();
    let _loops: [Running; 2] = [busy()?, busy()?];
    judge_equal_time(bench, &bench.json(EQUAL)?);
    Ok(())
}

fn judge_equal_time(check: &Check, json: &Value) {
    for role in ["self_check", "compared"] {
        let rows = json.rows_where("role", role);
        check.same(format!("cells of {role}"), rows.len(), 20);
        for row in &rows {
            // The copy is never called a winner, but the cell invalid.
            let is_invalid = role == "self_check" && is_judged(row, &["INVALID"]);
            if is_invalid || is_judged(row, &DIFFERENT) || row.word("verdict").is_empty() {
                check.judge(role, false, ratio_words(row));
            }
        }
        for word in ["EQUIVALENT", "SMALL", "INCONCLUSIVE", "UNRANKED"] {
            check.note(word, rows.iter().filter(|row| is_judged(row, &[word])).count());
        }
    }
    let remarks = json.to_string().matches("slices are not equal in time").count();
    check.note("remarks on slices of unequal length", remarks);
}

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

/// The late copy and the pinning of a zero-copy send, and neither elsewhere.
fn explain(bench: &Bench) -> Res {
    bench.run(
        "run net --methods send,sendmsg_zerocopy,memcpy --baseline send --sizes 64KiB --threads 1 \
         --network veth --quick --json",
    )?;
    let explained = bench.json("explain last 1 --arms send,sendmsg_zerocopy,memcpy --json")?;
    if explained["attribution"]["kernel"] != true {
        bench.missing("this user may not sample the kernel");
        return Ok(());
    }
    // The share of a class in the CPU time of an arm's both ends.
    let share = |arm: &str, class: &str| {
        let arm = explained.find("attribution/arms", "arm", arm);
        // Where there is none it has no part.
        arm.find("both/classes", "class", class).num("share/value").max(0.0)
    };
    for class in ["late_copy", "page_pinning"] {
        // What a share has to reach to be shown, and what one may have by accident.
        let of = |arm| format!("{class} of {arm}");
        bench.within(of("sendmsg_zerocopy"), share("sendmsg_zerocopy", class), 0.02..);
        bench.within(of("send"), share("send", class), ..=0.002);
    }
    bench.within("user code of memcpy", share("memcpy", "user"), 0.95..);
    explained.list("sentences").iter().for_each(|sentence| bench.note("it says", sentence));
    Ok(())
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
    use serde_json::json;

    use super::*;
    use crate::check::passes;

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

    #[test]
    fn a_copy_that_is_judged_different_fails_the_line() {
        let arms = |role: &str, verdict: &str| {
            vec![json!({"primitive": "send", "role": role, "verdict": verdict}); 20]
        };
        let with = |copy: &str, twin: &str| {
            let rows = [arms("self_check", copy), arms("compared", twin)].concat();
            passes(|check| judge_equal_time(check, &json!({ "cells": rows })))
        };
        assert!(with("EQUIVALENT", "INCONCLUSIVE"));
        assert!(with("SMALL", "UNRANKED"));
        assert!(!with("INVALID", "EQUIVALENT"));
        assert!(!with("", "EQUIVALENT"), "no verdict");
        assert!(!with("EQUIVALENT", "SLOWER"));
        let half = json!({"cells": arms("self_check", "EQUIVALENT")});
        assert!(!passes(|check| judge_equal_time(check, &half)), "half of the arms");
    }
}
