//! Issue 25: right numbers on restless machines.

use super::{
    Line, equal_time, fresh_copies, groups, neighbours, recompute, thread_cpu, tune_finals,
};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 25,
        id: "a",
        promise: "two busy loops beside it, 20 cells: no arm that makes the baseline's call, the \
                  A/A arm and its bare loop, is judged FASTER or SLOWER",
        check: equal_time::check,
    },
    Line {
        issue: 25,
        id: "b",
        promise: "CPU time has that of the kernel's threads that work for an arm (io_uring): of \
                  what the process spends less than 5 % is left out, for every arm of every study",
        check: thread_cpu::check,
    },
    Line {
        issue: 25,
        id: "c",
        promise: "cells with several groups of arms: n is the contrast's, tables are in the order \
                  of their ratios, each arm is judged beside the A/A of its own group",
        check: groups::check,
    },
    Line {
        issue: 25,
        id: "d",
        promise: "4000 finals of `tune` between equally fast arms, for each of six settings: any \
                  of them is told apart in 5 % at most",
        check: tune_finals::check,
    },
    Line {
        issue: 25,
        id: "e",
        promise: "trials that resemble those of the passes before them (AR(1) at 0.4) are said to \
                  in over 90 % of runs, and intervals then cover 93 %; states of ten passes are \
                  said too",
        check: neighbours::check,
    },
    Line {
        issue: 25,
        id: "f",
        promise: "runs of net, file, write, syscall and server, several of them with more arms \
                  than a trial holds, computed again from their exported slices by a program that \
                  shares no code: contrasts, pairs, intervals, verdicts and figures agree to six \
                  digits, and one changed slice does not",
        check: recompute::check,
    },
    Line {
        issue: 25,
        id: "g",
        promise: "a build measured in turn with a copy of itself differs from it in none of \
                  twenty comparisons",
        check: fresh_copies::check,
    },
];
