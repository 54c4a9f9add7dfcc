//! The same thing twice, and twice the same but for one arm whose handicap is known: what
//! comparisons of runs say of it.

use super::run_id;
use crate::prelude::*;

/// Asks what a comparison prints. Its exit code 1 says that something is slower, which is what is
/// looked for.
fn compare(bench: &Bench, words: &str) -> Res {
    bench.note("compare", words);
    let json = bench.iolens(format!("compare {words} --json")).run()?.json()?;
    bench.ask("two runs", &json, &Value::Null);
    Ok(())
}

/// One plan, five times; whatever is SLOWER in one of them is not.
pub fn repetitions(bench: &Bench) -> Res {
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

/// Two copies of one build, measured in turn, do not differ.
pub fn fresh_copies(bench: &Bench) -> Res {
    let copy = bench.copy_tool("copy-of-iolens")?;
    let run = bench.json(
        "run net --quick --sizes 4KiB --network loopback --methods send,write --passes 12 --budget \
         60s --json",
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
/// A request costs something besides the work, some hundred microseconds: by right the arm
/// becomes slower by what it took in the first run, over that and the work that was added.
/// Of that something a part grows with the work (ticks, interrupts), so the work is long: with
/// one of 4 ms the right ratio was known to 0.001, and on a quiet machine its interval is narrower.
pub fn handicap(bench: &Bench) -> Res {
    let both = format!("{} {}", handicapped(bench, WORK_US)?, handicapped(bench, HANDICAPPED_US)?);
    compare(bench, &both)
}

/// A run in which `slow` works so long on each request; its id.
fn handicapped(bench: &Bench, slow_us: u32) -> Res<String> {
    let mut run = bench.iolens(format!(
        "run server --models epoll_lt --connections 1 --keep-alive yes --load closed --network \
         loopback --budget 4m --progress none --json --service burn:{WORK_US}"
    ));
    for (name, work_us) in [("same", WORK_US), ("slow", slow_us)] {
        let serve = format!("serve epoll_lt --service burn:{work_us} --listen :{{port}}");
        run = run.arg("--external").arg(format!("{name}={} {serve}", bench.tool.display()));
    }
    run_id(&run.json()?)
}
