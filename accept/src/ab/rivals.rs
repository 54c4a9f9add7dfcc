//! What hyperfine says of the same commands in the same minutes.

use super::{built, compared, times};
use crate::prelude::*;

/// Whether two samples differ by the test of Mann and Whitney at 5 %, as benchstat has it; normal
/// approximation, good from 20 on, without ties, which times in ns have not.
fn differ(one: &[f64], other: &[f64]) -> bool {
    let wins = |a: &f64| other.iter().filter(|b| a > b).count() as f64;
    let u: f64 = one.iter().map(wins).sum();
    let (n, m) = (one.len() as f64, other.len() as f64);
    let spread = (n * m * (n + m + 1.0) / 12.0).sqrt();
    (u - n * m / 2.0).abs() / spread > 1.96
}

/// Blocks of A and then of B are two machines where there are neighbours.
pub fn hyperfine(bench: &Bench) -> Res {
    built(bench)?;
    for (amount, what) in [(100, "no change"), (103, "3 % planted")] {
        let commands = ["./work cpu 100 1000".to_owned(), format!("./work cpu {amount} 1000")];
        let commands = commands.each_ref().map(String::as_str);
        let (mut ours, mut theirs, mut ranked) = (Vec::new(), Vec::new(), 0);
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
            ranked += u32::from(differ(&times(0)?, &times(1)?));
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
        bench.note(
            format!("{what}, different by benchstat's test of its times (Mann-Whitney, 5 %)"),
            format!("{ranked} of {of}"),
        );
        let wrong = ours.iter().filter(|(_, verdict)| match amount {
            100 => verdict == "SLOWER" || verdict == "FASTER",
            _ => verdict == "FASTER",
        });
        bench.same(format!("{what}, wrong verdicts of ours"), wrong.count(), 0);
    }
    Ok(())
}
