//! What hyperfine says of the same commands in the same minutes.

use super::{built, compared, times};
use crate::prelude::*;

/// Blocks of A and then of B are two machines where there are neighbours.
pub fn hyperfine(bench: &Bench) -> Res {
    built(bench)?;
    for (amount, what) in [(100, "no change"), (103, "3 % planted")] {
        let commands = ["./work cpu 100 1000".to_owned(), format!("./work cpu {amount} 1000")];
        let commands = commands.each_ref().map(String::as_str);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..times() {
            let ([_, cpu], _) = compared(bench, "--threshold 2% --budget 30s", commands)?;
            ours.push((cpu.change * 100.0, cpu.verdict));
            let job = Job::of("hyperfine -N --warmup 3 --runs 30 --export-json h.json");
            bench.at_home(job.args(commands)).minutes(5).success()?;
            let found: Value = serde_json::from_str(&bench.read("h.json")?)?;
            let mean = |nth: usize| found["results"][nth]["mean"].as_f64().context("no mean");
            theirs.push((mean(1)? / mean(0)? - 1.0) * 100.0);
        }
        let words: Vec<String> =
            ours.iter().map(|(change, verdict)| format!("{change:+.1} {verdict}")).collect();
        bench.note(format!("{what}, ours by CPU time, %"), words.join(", "));
        let words: Vec<String> = theirs.iter().map(|change| format!("{change:+.1}")).collect();
        bench.note(format!("{what}, ratio of hyperfine's means, %"), words.join(", "));
        let wrong = ours.iter().filter(|(_, verdict)| match amount {
            100 => verdict == "SLOWER" || verdict == "FASTER",
            _ => verdict == "FASTER",
        });
        bench.same(format!("{what}, wrong verdicts of ours"), wrong.count(), 0);
    }
    Ok(())
}
