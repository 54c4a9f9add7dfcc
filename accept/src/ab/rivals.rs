//! What hyperfine says of the same commands in the same minutes, and benchstat of its times.

use super::{built, compared, times};
use crate::prelude::*;

/// What benchstat says of two samples of times, s: a change in %, or that it sees none.
fn benchstat(bench: &Bench, samples: [&[f64]; 2]) -> Res<Option<f64>> {
    let names = ["a.txt", "b.txt"];
    for (name, sample) in names.iter().zip(samples) {
        let line = |time: &f64| format!("BenchmarkWork 1 {} ns/op\n", time * 1e9);
        bench.write(name, sample.iter().map(line).collect::<String>())?;
    }
    let job = Job::new(bench.peers.join("benchstat")).words("-format csv").args(names);
    let table = bench.at_home(job).success()?.stdout();
    let row = table.lines().find(|line| line.starts_with("Work,")).context("no row of Work")?;
    match row.split(',').nth(5).context("no change")? {
        "~" => Ok(None),
        change => Ok(Some(change.trim_end_matches('%').parse()?)),
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
            let times = |nth: usize| {
                let all = found["results"][nth]["times"].as_array().context("no times")?;
                Res::Ok(all.iter().filter_map(Value::as_f64).collect::<Vec<_>>())
            };
            told.push(benchstat(bench, [&times(0)?, &times(1)?])?);
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
        bench.note(format!("{what}, benchstat of its times, %"), words.join(", "));
        let wrong = ours.iter().filter(|(_, verdict)| match amount {
            100 => verdict == "SLOWER" || verdict == "FASTER",
            _ => verdict == "FASTER",
        });
        bench.same(format!("{what}, wrong verdicts of ours"), wrong.count(), 0);
    }
    Ok(())
}
