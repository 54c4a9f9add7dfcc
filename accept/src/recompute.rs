//! Runs of every study, computed again from their exported slices by a program that shares no
//! code with the tool.

use super::process::{Job, need};
use super::{Bench, Judged, Outcome, results};

/// Runs of seconds. `--passes` makes them short, and unlike `--quick` leaves them verdicts. All
/// but the first and third have several groups of arms: more than one trial holds.
const RUNS: [&str; 7] = [
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

pub(crate) fn check(bench: &Bench) -> Judged {
    if let Err(missing) = need("python3", "python3") {
        return Ok(Outcome::Skip(missing));
    }
    let mut runs = Vec::new();
    for run in RUNS {
        let words = format!("{run} --progress none --json");
        let args: Vec<&str> = words.split_whitespace().collect();
        runs.push(results::run_id(&bench.iolens_json("recompute", &args, 5)?.json)?);
    }
    let witness = crate::root().join("witness/recompute.py").display().to_string();
    let tool = bench.tool.display().to_string();
    let mut args = vec![witness.as_str(), "--perturb", "--iolens", tool.as_str()];
    args.extend(runs.iter().map(String::as_str));
    let done = bench.at_home("recompute", Job::new("python3").args(&args))?;
    let done = done.limit_minutes(10).run()?;
    let said = format!("{}\n{}", done.stdout(), done.stderr());
    let agrees = done.status.success() && said.contains("nothing disagrees");
    Ok(if agrees { Outcome::Pass(said) } else { Outcome::Fail(said) })
}
