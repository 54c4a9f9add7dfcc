//! Whether numbers are right: simulations, known answers, agreement with others' counts and
//! recomputations, equal time, and what measuring itself costs.

mod doctor;
mod known;
mod perf_stat;

use crate::prelude::*;
use crate::process::miss_skipped;

pub const FUNCTIONS: Functions = &[
    ("stated-time", stated_time),
    ("perf-stat", perf_stat::check),
    ("doctor", doctor::check),
    ("thread-cpu", thread_cpu),
    ("groups", known::groups),
    ("looped", known::looped),
    ("recompute", recompute),
    ("repetitions", repetitions),
    ("handicap", handicap),
    ("fresh-copies", fresh_copies),
];

fn stated_time(bench: &Bench) -> Res {
    let plan = crate::root().join("plans/classic-72.toml");
    let run = bench.iolens("run").arg(plan).minutes(40).success()?;
    let stated = run.err_lines().find_map(stated_seconds);
    let stated = stated.context("the run did not say how long it would take")?;
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
    Ok(json.at("run/id").as_str().context("the JSON names no run")?.to_owned())
}

/// Arms whose work threads of the kernel's do, in part at least, on every kernel that has them.
const RINGS: [&str; 4] =
    ["file uring_sqpoll", "write uring_fixed", "copy uring_copy", "net uring_send"];

/// CPU time that threads of the kernel's spend for an arm: as the conformance test of the engine
/// compares it with that of the process, and as the tool shows it beside what `file write` reads of
/// its own process.
fn thread_cpu(bench: &Bench) -> Res {
    let done = Job::cargo("test --release --package iolens-engine --test cpu_time").run()?;
    let compared = done.out_lines().filter(|line| line.starts_with("cpu_time "));
    bench.note("arms compared with their processes", compared.count());
    for ring in RINGS {
        match done.line(&format!("{ring}:")) {
            line if line.starts_with("cpu_time ") => bench.note(ring, line),
            _ => bench.missing(format!("{ring} was not measured\n{}", done.stderr())),
        }
    }
    miss_skipped(bench, &done);
    bench.part("conformance", done.success().map(|_| "it passes"));
    let run = "run write --engines write,uring_fixed --baseline write --block-sizes 256KiB \
               --threads 1 --target new --quick --passes 5 --json";
    let json = bench.json(run)?;
    let whole = whole(bench, "uring_fixed")? / whole(bench, "write")?;
    bench.ask("the study", &json, &json!(whole));
    Ok(())
}

/// CPU time of whole processes that write with an engine, per byte, with the making of the blocks
/// in it: of three the one which was disturbed least. Its parts are told apart by the clock's ticks
/// alone.
fn whole(bench: &Bench, engine: &str) -> Res<f64> {
    let line = format!(
        "file write whole-{engine} --engine {engine} --block-size 256KiB --count 2048 --overwrite \
         --json"
    );
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        least = least.min(bench.json(&line)?.number(".cpu_ns / .bytes")?);
    }
    Ok(least)
}

/// Asks what a comparison prints. Its exit code 1 says that something is slower, which is what is
/// looked for.
fn compare(bench: &Bench, words: &str) -> Res {
    bench.note("compare", words);
    let json = bench.iolens(format!("compare {words} --json")).run()?.json()?;
    bench.ask("two runs", &json, &Value::Null);
    Ok(())
}

/// One plan, five times; whatever is SLOWER in one of them is not.
fn repetitions(bench: &Bench) -> Res {
    let run = "run net --methods send_staged,sendmsg_iov,send --sizes 1KiB,16KiB,256KiB \
               --threads 1 --network loopback --budget 2m --progress none --json";
    let runs: Vec<String> = (0..5).map(|_| run_id(&bench.json(run)?)).collect::<Res<_>>()?;
    for (index, a) in runs.iter().enumerate() {
        for b in &runs[index + 1..] {
            compare(bench, &format!("{a} {b}"))?;
        }
    }
    Ok(())
}

/// Two copies of one build, measured in turn, do not differ. `--passes` makes the run short;
/// after `--quick`, no change would get a verdict.
fn fresh_copies(bench: &Bench) -> Res {
    let copy = bench.copy_tool("copy-of-iolens")?;
    let run = bench.json(
        "run net --sizes 4KiB --threads 1 --network loopback --methods send,write --passes 12 \
         --rounds 5 --slice 1ms --json",
    )?;
    let words = format!("{} --progress none --rerun {}", run_id(&run)?, copy.display());
    (0..20).try_for_each(|_| compare(bench, &words))
}

/// Work on each request, µs: so long that what else a request costs is little beside it.
const WORK_US: u32 = 40_000;

/// The same with the handicap.
const HANDICAPPED_US: u32 = WORK_US * 12 / 10;

/// Servers that work for a fixed time on each request are the one place where a user can
/// set the cost of an arm to the microsecond, and `--external` makes any program an arm: so
/// iolens itself serves twice beside the model that is the baseline, in both runs with as
/// much work for each request but for one of the two, which has 20 % more in the second. No
/// arm is changed for the sake of the test.
///
/// A request costs something besides the work, some hundred microseconds, of which a part grows
/// with the work (ticks, interrupts, steal). A third server, with half of the work, tells how
/// much: by right the arm becomes slower by what it took in the first run, over that and what the
/// work that was added costs by this.
fn handicap(bench: &Bench) -> Res {
    let both = format!("{} {}", handicapped(bench, WORK_US)?, handicapped(bench, HANDICAPPED_US)?);
    compare(bench, &both)
}

/// A run in which `slow` works so long on each request; its id.
fn handicapped(bench: &Bench, slow_us: u32) -> Res<String> {
    let mut run = bench.iolens(format!(
        "run server --models epoll_lt --connections 1 --keep-alive yes --load closed --network \
         loopback --budget 4m --progress none --json --service burn:{WORK_US}"
    ));
    for (name, work_us) in [("same", WORK_US), ("half", WORK_US / 2), ("slow", slow_us)] {
        let serve = format!("serve epoll_lt --service burn:{work_us} --listen :{{port}}");
        run = run.arg("--external").arg(format!("{name}={} {serve}", bench.tool.display()));
    }
    run_id(&run.json()?)
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
