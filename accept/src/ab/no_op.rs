//! Two names of the same bytes, on a quiet machine and beside a compiler.

use super::{built, links, several};
use crate::prelude::*;

/// What is compared: a name, flags, and what runs, under one name and the other.
const SAME: [(&str, &str, [&str; 2]); 6] = [
    ("loop that computes", "--loop", ["./work cpu 100", "./copy cpu 100"]),
    ("loop of pread", "--loop", ["./work pread 100", "./copy pread 100"]),
    ("loop that misses the cache", "--loop", ["./work memory 100", "./copy memory 100"]),
    ("loop of SQLite", "--loop", ["./query", "./query-copy"]),
    ("command of 5 ms", "", ["./work cpu 100 500", "./copy cpu 100 500"]),
    ("command of 15 ms", "", ["./work cpu 100 1500", "./copy cpu 100 1500"]),
];

/// Comparisons from which on the share of intervals that exclude no change is judged.
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
                let script =
                    format!("while :; do cc -O2 -c -o beside.o {}; done", sqlite.display());
                Some(bench.at_home(Job::shell(&script)).minutes(10_000).start()?)
            }
        };
        for (what, flags, commands) in SAME {
            let flags = format!("{flags} --threshold 2% --budget 10s");
            let tallies = several(bench, &flags, commands)?;
            for (quantity, tally) in ["time", "CPU"].iter().zip(&tallies) {
                let good = tally.slower + tally.faster == 0;
                bench.judge(format!("{what}, {place}, {quantity}"), good, tally.words());
                (all, excluding) = (all + tally.of, excluding + tally.excluding);
            }
        }
        if let Some(compiler) = compiler {
            // With what it has started.
            Job::of(format!("kill -KILL -- -{}", compiler.id())).run()?;
        }
    }
    let share = 100.0 * f64::from(excluding) / f64::from(all);
    let what = "95% intervals that exclude no change";
    bench.note(what, format!("{share:.1} % of {all}, by time and by CPU time"));
    if all >= 2 * JUDGED {
        bench.within(what, share, 2.0..=7.0);
    }
    Ok(())
}
