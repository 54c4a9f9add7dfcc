//! How long one waits for what is stored, and for the first line.

use std::time::Duration;

use crate::prelude::*;

/// The shape of the trials: two arms and the hidden one, a slice each.
const FEW: &str = "run net --methods send,sendmsg_iov --sizes 1KiB,64KiB --threads 1 --network \
                   loopback --sequential-messages 2000 --passes 2 --progress none --db few.db";

/// A wait that is not felt.
const AT_ONCE_S: f64 = 0.1;

/// The fastest of so many: on a shared machine any one may be held up.
const TIMES: usize = 5;

pub fn check(bench: &Bench) -> Res {
    // A database with very many trials, made of a few that were measured.
    bench.run(FEW)?;
    let multiply = Job::cargo("run --release --package iolens-store --example multiply --");
    multiply.arg(bench.path("few.db")).arg(bench.path("many.db")).arg("100000").success()?;
    let report = "report last --db many.db -o page.html --overwrite";
    // Such a machine has slow ones of what takes seconds, several in a row.
    let (seconds, mib) = fastest(bench, report, 4 * TIMES)?;
    bench.within("report of 100000 trials, s", seconds, ..2.0);
    bench.within("MiB", mib, ..200.0);
    bench.within("bytes of page", bench.read("page.html")?.len(), 1..);
    // An ordinary run, to be shown.
    bench.run("run net --quick --network loopback --progress none")?;
    let (seconds, mib) = fastest(bench, "show last", TIMES)?;
    bench.within(format!("show last, {mib:.0} MiB, s"), seconds, ..AT_ONCE_S);
    for words in ["run net --quick --network loopback", "run net --quick --dry-run", "runs"] {
        bench.within(format!("first line of `{words}`, s"), first_line(bench, words)?, ..AT_ONCE_S);
    }
    Ok(())
}

/// The shortest time of a command in s, and the most memory it had in MiB.
fn fastest(bench: &Bench, words: &str, times: usize) -> Res<(f64, f64)> {
    let (mut least, mut most_kib) = (f64::INFINITY, 0.0_f64);
    for _ in 0..times {
        let time = Job::of("time -f").arg("peak %M");
        let done = bench.under(time, words).success()?;
        let peak = done.noted("peak ").strip_prefix("peak ").and_then(|kib| kib.parse().ok());
        most_kib = most_kib.max(peak.ok_or("`time` named no peak")?);
        least = least.min(done.seconds());
    }
    Ok((least, most_kib / 1024.0))
}

/// How long it takes until a command has said anything, on either output, in s.
fn first_line(bench: &Bench, words: &str) -> Res<f64> {
    let mut least = Duration::MAX;
    for _ in 0..TIMES {
        let first = bench.run(words)?.said.iter().map(|line| line.after).min();
        least = least.min(first.ok_or(format!("`iolens {words}` said nothing"))?);
    }
    Ok(least.as_secs_f64())
}
