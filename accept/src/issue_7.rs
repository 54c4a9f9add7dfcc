//! Issue 7: servers and what loads them, each on its own.

use super::{
    Line, crowd, echo_rivals, oracle, search, server_faults, server_limits, server_runs, top2,
    virtual_time, wrk,
};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 7,
        id: "a",
        promise: "10 000 long connections on `epoll_lt`, `epoll_et` and `uring` complete without an \
                  error, made in less than 3 s, the client under 100 MB; where a limit stops them, \
                  it is named",
        check: crowd::check,
    },
    Line {
        issue: 7,
        id: "b",
        promise: "`top2` gives the same two processes as an independent reading of /proc, with \
                  hostile process names running",
        check: top2::check,
    },
    Line {
        issue: 7,
        id: "c",
        promise: "matched request by request with an oracle of 5 ms, latency less its record has a \
                  median under 0.3 ms and is never negative; a stall of 1.4 s gives an \
                  intended-send maximum of 1.4 s ± 5 % and the schedule's p99 ± 5 %, which \
                  actual-send hides; a stalled client is flagged, not blamed on the server",
        check: oracle::check,
    },
    Line {
        issue: 7,
        id: "d",
        promise: "in virtual time, 10⁶ arrivals: the mean wait within 1 % of M/D/1 at ρ 0.5 and 0.8, \
                  gaps exponential by a Kolmogorov-Smirnov test",
        check: virtual_time::check,
    },
    Line {
        issue: 7,
        id: "e",
        promise: "against the same nginx, `load` reaches at least wrk's rate with no more CPU time \
                  for each request (δ = 3 %)",
        check: wrk::check,
    },
    Line {
        issue: 7,
        id: "f",
        promise: "`epoll_lt` and `uring` within 10 % of plain C loops of the same design, in rate \
                  and in the server's CPU time for each request",
        check: echo_rivals::check,
    },
    Line {
        issue: 7,
        id: "g",
        promise: "`select` beyond the descriptor limit and `thread_per_connection` beyond the pid \
                  limit end in a message, not a crash",
        check: server_limits::check,
    },
    Line {
        issue: 7,
        id: "h",
        promise: "port in use, ports that run out, a backlog that overflows, clients that die, \
                  vanish, do not read, send garbage or too much: a clear message or a counted \
                  outcome, and the others are served on",
        check: server_faults::check,
    },
    Line {
        issue: 7,
        id: "i",
        promise: "`run server --quick` compares all models that this machine supports and names \
                  the cheapest per request with its interval in under 2 minutes",
        check: server_runs::first_look,
    },
    Line {
        issue: 7,
        id: "j",
        promise: "`run server` with 10 000 long connections measures `epoll_lt`, `epoll_et` and \
                  `uring` without an error, or says which limit stopped them",
        check: server_runs::crowd,
    },
    Line {
        issue: 7,
        id: "k",
        promise: "`run server --slo 'p99<5ms' --knee` finds the rates of M/D/1 for a server that \
                  works 500 µs on each request, within one step of 5 % to each side; where the machine \
                  disturbs what lies above, it says at least a rate that is not above them",
        check: search::check,
    },
];
