//! Servers and what loads them, each on its own and in runs.

use crate::prelude::*;

mod crowd;
mod oracle;
mod rivals;
mod runs;
mod search;
pub mod serving;
mod top2;

pub const LINES: &[Line] = &[
    line(
        "crowd",
        "10 000 long connections on `epoll_lt`, `epoll_et` and `uring` complete without an error, \
         made in less than 3 s, the client under 100 MB; where a limit stops them, it is named",
        &["prlimit"],
        crowd::check,
    ),
    line(
        "top2",
        "`top2` gives the same two processes as an independent reading of /proc, with hostile \
         process names running",
        &["python3", "unshare"],
        top2::check,
    ),
    line(
        "oracle",
        "matched request by request with an oracle of 5 ms, latency less its record has a median \
         under 0.3 ms and is never negative; a stall of 1.4 s gives an intended-send maximum of 1.4 \
         s ± 5% and the schedule's p99 ± 5%, which actual-send hides; a stalled client is \
         flagged, not blamed on the server",
        &[],
        oracle::check,
    ),
    line(
        "wrk",
        "against the same nginx, `load` reaches at least wrk's rate with no more CPU time for each \
         request (δ = 3%)",
        &["nginx", "wrk", "bash", "taskset"],
        rivals::wrk,
    ),
    line(
        "echo-in-c",
        "`epoll_lt` and `uring` within 10% of plain C loops of the same design, in rate and in the \
         server's CPU time for each request",
        &["gcc", "echo-in-c"],
        rivals::echo_in_c,
    ),
    line(
        "limits",
        "`select` beyond the descriptor limit and `thread_per_connection` beyond the pid limit end \
         in a message, not a crash",
        &[],
        crowd::limits,
    ),
    line(
        "first-look",
        "`run server --quick` compares all models that this machine supports and names the cheapest \
         per request with its interval in under 2 minutes",
        &[],
        runs::first_look,
    ),
    line(
        "crowd-run",
        "`run server` with 10 000 long connections measures `epoll_lt`, `epoll_et` and `uring` \
         without an error, or says which limit stopped them",
        &[],
        runs::crowd,
    ),
    line(
        "search",
        "`run server --slo 'p99<5ms' --knee` finds the rates of M/D/1 for a server that works 500 \
         µs on each request, within one step of 5% to each side; where the machine disturbs what \
         lies above, it says at least a rate that is not above them",
        &[],
        search::check,
    ),
];
