//! `iolens ab`: programs whose difference is known, and programs that do not differ.

mod calls;
mod links;

use crate::prelude::*;

pub const FUNCTIONS: Functions = &[
    ("no-op", no_op),
    ("planted", planted),
    ("commands", commands),
    ("copied", copied),
    ("calls", calls::calls),
    ("cost", calls::cost),
    ("hyperfine", hyperfine),
    ("links", links::links),
    ("power", links::power),
];

/// The program, whose operations are of a stated amount.
const WORK: &str = include_str!("ab/work.c");

const KINDS: [&str; 3] = ["cpu", "pread", "memory"];

/// What is compared how often; the environment says otherwise for a long run.
fn times() -> u32 {
    let asked = std::env::var("IOLENS_ACCEPT_TIMES").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or(8)
}

/// Builds the program, with a byte-identical copy by cp(1) beside it.
fn built(bench: &Bench) -> Res {
    bench.write("work.c", WORK)?;
    bench.at_home(Job::of("cc -O2 -o work work.c")).success()?;
    bench.at_home(Job::of("cp work copy")).success()?;
    Ok(())
}

/// A contrast of a run of two programs.
struct Contrast {
    verdict: String,
    change: f64,
    /// `None` of one trial.
    interval: Option<[f64; 2]>,
    /// The slowdown that it sees nine times in ten within the budget, as a fraction.
    seen: Option<f64>,
}

/// Compares two commands; their contrasts by time and by CPU time, and what it took, s.
fn compared(bench: &Bench, flags: &str, commands: [&str; 2]) -> Res<([Contrast; 2], f64)> {
    let job = bench.iolens(format!("ab {flags} --no-calls --progress none --wait --json"));
    let done = job.args(commands).minutes(10).run()?;
    let result = done.json().with_context(|| done.stderr())?;
    let contrasts = result["settings"][0]["contrasts"].as_array().context("no contrasts")?;
    let contrast = |quantity: &str| {
        let own = contrasts.iter().find(|one| one["quantity"] == quantity);
        let own = own.with_context(|| format!("no contrast of {quantity}: {result}"))?;
        let number = |value: &Value| value.as_f64().with_context(|| format!("no number in {own}"));
        let bound = |at: usize| own["interval"][at].as_f64();
        Res::Ok(Contrast {
            verdict: own["verdict"].as_str().context("no verdict")?.to_owned(),
            change: number(&own["change"])?,
            interval: bound(0).zip(bound(1)).map(<[f64; 2]>::from),
            seen: own["power"]["at_budget"].as_f64(),
        })
    };
    let seconds = result["seconds"].as_f64().context("no seconds")?;
    Ok(([contrast("time")?, contrast("cpu")?], seconds))
}

/// Verdicts of several comparisons, counted.
#[derive(Default)]
struct Tally {
    of: u32,
    slower: u32,
    faster: u32,
    invalid: u32,
    equivalent: u32,
    excluding: u32,
    without: u32,
    longest_s: f64,
    worst: f64,
}

impl Tally {
    fn add(&mut self, contrast: &Contrast, seconds: f64) {
        self.of += 1;
        self.slower += u32::from(contrast.verdict == "SLOWER");
        self.faster += u32::from(contrast.verdict == "FASTER");
        self.invalid += u32::from(contrast.verdict == "INVALID");
        self.equivalent += u32::from(contrast.verdict == "EQUIVALENT");
        let excludes = |[low, high]: [f64; 2]| low > 0.0 || high < 0.0;
        self.excluding += u32::from(contrast.interval.is_some_and(excludes));
        self.without += u32::from(contrast.interval.is_none());
        self.longest_s = self.longest_s.max(seconds);
        self.worst = self.worst.max(contrast.change.abs());
    }

    /// Whether this is what comparisons of the same come to: no change, and most of them judged.
    /// Hidden copies that differ make one INVALID.
    fn finds_no_change(&self) -> bool {
        self.slower + self.faster == 0 && self.invalid * 4 <= self.of
    }

    fn words(&self) -> String {
        let Tally { of, slower, faster, invalid, equivalent, excluding, .. } = self;
        let Tally { without, longest_s, worst, .. } = self;
        format!(
            "{of}: {slower} SLOWER, {faster} FASTER, {invalid} INVALID, {equivalent} EQUIVALENT, \
             {excluding} intervals exclude no change, {without} without an interval, largest \
             change {:.2} %, at most {longest_s:.1} s",
            worst * 100.0
        )
    }
}

/// Comparisons of one kind of work, by time and by CPU time.
fn several(bench: &Bench, flags: &str, commands: [&str; 2]) -> Res<[Tally; 2]> {
    let mut tallies = <[Tally; 2]>::default();
    for _ in 0..times() {
        let (contrasts, seconds) = compared(bench, flags, commands)?;
        for (tally, contrast) in tallies.iter_mut().zip(&contrasts) {
            tally.add(contrast, seconds);
        }
    }
    Ok(tallies)
}

/// A slowdown that is known has to be found, and a small one not to be made large.
fn planted(bench: &Bench) -> Res {
    built(bench)?;
    let rows: [(_, _, _, &[&str]); 4] = [
        (103, "--threshold 2% --budget 20s", "3 % at 2 %", &KINDS),
        (104, "--threshold 2% --budget 20s", "4 % at 2 %", &["memory"]),
        (105, "--threshold 3% --budget 10s", "5 % at 3 %", &KINDS),
        (101, "--threshold 2% --budget 10s", "1 % at 2 %", &KINDS),
    ];
    for (amount, flags, what, kinds) in rows {
        for kind in kinds {
            let commands = [format!("./work {kind} 100"), format!("./work {kind} {amount}")];
            let commands = commands.each_ref().map(String::as_str);
            let tallies = several(bench, &format!("--loop {flags}"), commands)?;
            for (quantity, tally) in ["time", "CPU"].iter().zip(&tallies) {
                let good = match amount {
                    101 => tally.slower == 0 && tally.equivalent * 10 >= tally.of * 8,
                    _ => tally.slower * 10 >= tally.of * 9,
                };
                bench.judge(format!("{what}, {kind}, {quantity}"), good, tally.words());
            }
        }
    }
    Ok(())
}

/// Whole commands of some 10 ms.
fn commands(bench: &Bench) -> Res {
    built(bench)?;
    let flags = "--threshold 3% --budget 60s";
    for (amount, is_planted) in [(100, false), (105, true)] {
        let commands = ["./work cpu 100 1000".to_owned(), format!("./work cpu {amount} 1000")];
        let commands = commands.each_ref().map(String::as_str);
        let tallies = several(bench, flags, commands)?;
        for (quantity, tally) in ["time", "CPU"].iter().zip(&tallies) {
            let good = match is_planted {
                true => tally.slower * 10 >= tally.of * 9,
                false => tally.finds_no_change(),
            };
            bench.judge(format!("{amount} against 100, {quantity}"), good, tally.words());
        }
    }
    Ok(())
}

/// A copy by cp(1) against the linker's output: from fresh copies there is no difference.
fn copied(bench: &Bench) -> Res {
    built(bench)?;
    let commands = ["./work pread 100", "./copy pread 100"];
    let (fresh, _) = compared(bench, "--loop --threshold 1% --budget 20s", commands)?;
    for (quantity, contrast) in ["time", "CPU"].iter().zip(&fresh) {
        bench.within(format!("change in {quantity}, %"), contrast.change * 100.0, -0.5..=0.5);
    }
    let (in_place, _) = compared(bench, "--loop --in-place --threshold 1% --budget 20s", commands)?;
    let changes = in_place.map(|contrast| format!("{:.2} %", contrast.change * 100.0));
    bench.note("where they lie", changes.join(", "));
    Ok(())
}

// Two names of the same bytes, on a quiet machine and beside a compiler.

/// What is compared: a name, flags, and what runs, under one name and the other.
const SAME: [(&str, &str, [&str; 2]); 6] = [
    ("loop that computes", "--loop", ["./work cpu 100", "./copy cpu 100"]),
    ("loop of pread", "--loop", ["./work pread 100", "./copy pread 100"]),
    ("loop that misses the cache", "--loop", ["./work memory 100", "./copy memory 100"]),
    ("loop of SQLite", "--loop", ["./query", "./query-copy"]),
    ("command of 5 ms", "", ["./work cpu 100 500", "./copy cpu 100 500"]),
    ("command of 15 ms", "", ["./work cpu 100 1500", "./copy cpu 100 1500"]),
];

/// Comparisons from which on the share of intervals that exclude no change is judged as it is.
const JUDGED: u32 = 1000;

/// No verdict may say that there is a change.
pub fn no_op(bench: &Bench) -> Res {
    built(bench)?;
    let sqlite = links::compiled(bench)?;
    bench.at_home(Job::of("cc -o query query.o sqlite3.o -lm")).success()?;
    bench.at_home(Job::of("cp query query-copy")).success()?;
    let (mut all, mut excluding) = (0, 0);
    for place in ["quiet", "beside a compiler"] {
        let compiler = match place {
            "quiet" => None,
            _ => {
                // Not for longer than this program, should it be killed.
                let compile = format!("cc -O2 -c -o beside.o {}", sqlite.display());
                let script = format!("while kill -0 $PPID; do {compile}; done");
                Some(bench.at_home(Job::shell(&script)).minutes(10_000).start()?)
            }
        };
        for (what, flags, commands) in SAME {
            // Beside a compiler, what is in flight at the end waits for the processor.
            let flags = format!("{flags} --threshold 2% --budget 9s");
            let tallies = several(bench, &flags, commands)?;
            for (quantity, tally) in ["time", "CPU"].iter().zip(&tallies) {
                let good = tally.finds_no_change() && tally.longest_s <= 10.0;
                bench.judge(format!("{what}, {place}, {quantity}"), good, tally.words());
                all += tally.of - tally.without;
                excluding += tally.excluding;
            }
        }
        if let Some(compiler) = compiler {
            // With what it has started.
            Job::of(format!("kill -KILL -- -{}", compiler.id())).run()?;
        }
    }
    let share = 100.0 * f64::from(excluding) / f64::from(all.max(1));
    let what = "95% intervals that exclude no change";
    bench.note(what, format!("{share:.1} % of {all}, by time and by CPU time"));
    // Of fewer, as few or as many as chance may make them.
    let spread = |share: f64| match all >= 2 * JUDGED {
        true => 0.0,
        false => 3.0 * (share * (100.0 - share) / f64::from(all.max(1))).sqrt(),
    };
    bench.within(what, share, 2.0 - spread(2.0)..=7.0 + spread(7.0));
    Ok(())
}

// What hyperfine says of the same commands in the same minutes, and benchstat's test of its times.

/// benchstat's test (golang.org/x/perf: Mann and Whitney, two-sided, at 5 %; it shows the change of
/// the median) of the times that hyperfine has written. It prints nothing where it sees no change.
/// benchstat itself comes through a proxy that not every machine reaches.
const BENCHSTAT: &str = r#"
import json, statistics
from scipy.stats import mannwhitneyu
a, b = (result["times"] for result in json.load(open("h.json"))["results"])
if mannwhitneyu(a, b, method="exact").pvalue < 0.05:
    print(100 * (statistics.median(b) / statistics.median(a) - 1))
"#;

/// What it says: a change in %, or that it sees none.
fn benchstat(bench: &Bench) -> Res<Option<f64>> {
    let job = Job::new(bench.peers.join("scipy/bin/python")).args(["-c", BENCHSTAT]);
    match bench.at_home(job).success()?.stdout().trim() {
        "" => Ok(None),
        change => Ok(Some(change.parse()?)),
    }
}

/// Blocks of A and then of B are two machines where there are neighbours.
pub fn hyperfine(bench: &Bench) -> Res {
    built(bench)?;
    for (amount, what) in [(100, "no change"), (103, "3 % planted")] {
        let commands = ["./work cpu 100 1000".to_owned(), format!("./work cpu {amount} 1000")];
        let commands = commands.each_ref().map(String::as_str);
        let (mut ours, mut theirs, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..times() {
            let ([_, cpu], _) = compared(bench, "--threshold 2% --budget 30s", commands)?;
            ours.push((cpu.change * 100.0, cpu.verdict));
            let job = Job::of("hyperfine -N --warmup 3 --runs 30 --export-json h.json");
            bench.at_home(job.args(commands)).minutes(5).success()?;
            let found: Value = serde_json::from_str(&bench.read("h.json")?)?;
            let mean = |nth: usize| found["results"][nth]["mean"].as_f64().context("no mean");
            theirs.push((mean(1)? / mean(0)? - 1.0) * 100.0);
            told.push(benchstat(bench)?);
        }
        let words: Vec<String> =
            ours.iter().map(|(change, verdict)| format!("{change:+.1} {verdict}")).collect();
        bench.note(format!("{what}, ours by CPU time, %"), words.join(", "));
        let words: Vec<String> = theirs.iter().map(|change| format!("{change:+.1}")).collect();
        bench.note(format!("{what}, ratio of hyperfine's means, %"), words.join(", "));
        let beyond = theirs.iter().filter(|change| **change > 5.0).count();
        let of = theirs.len();
        bench.note(
            format!("{what}, slower by the 5 % threshold of many gates"),
            format!("{beyond} of {of}"),
        );
        let words: Vec<String> = told
            .iter()
            .map(|change| change.map_or_else(|| "~".to_owned(), |change| format!("{change:+.1}")))
            .collect();
        bench.note(format!("{what}, benchstat's test of its times, %"), words.join(", "));
        let wrong = ours.iter().filter(|(_, verdict)| match amount {
            100 => verdict == "SLOWER" || verdict == "FASTER",
            _ => verdict == "FASTER" || verdict == "EQUIVALENT",
        });
        bench.same(format!("{what}, wrong verdicts of ours"), wrong.count(), 0);
    }
    Ok(())
}
