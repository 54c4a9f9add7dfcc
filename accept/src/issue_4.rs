//! Issue 4: where the time goes, and numbers that cannot be.

use super::{Line, agreement, audit, doctor, explain, overhead};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 4,
        id: "a",
        promise: "a single arm under `--isolate`, with `perf stat --control` around our own \
                  bracket, agrees with our counts within 1 % for task-clock, context switches and \
                  faults (and cycles where there is a PMU)",
        check: agreement::check,
    },
    Line {
        issue: 4,
        id: "b",
        promise: "`explain` on veth shows the late copy and page pinning for `sendmsg_zerocopy` \
                  and neither for `send`; over 95 % of `memcpy` falls in user code",
        check: explain::check,
    },
    Line {
        issue: 4,
        id: "c",
        promise: "`audit` flags, in a file of planted rows, every impossible one and no possible \
                  one; the perf text with \"0.131 GHz\" and 305 switches at 520/s over 21.14 ms \
                  is flagged on both counts",
        check: audit::check,
    },
    Line {
        issue: 4,
        id: "d",
        promise: "`doctor` is right on this machine as root and as an ordinary user: each claim \
                  that can be tried again is so, and the command it advises first has its effect",
        check: doctor::check,
    },
    Line {
        issue: 4,
        id: "e",
        promise: "counters open cost less than 2 % of a slice's time (upper end of the interval, \
                  alternated slices), reading them less than 5 % of a trial's and none within a \
                  slice's clock",
        check: overhead::check_counters,
    },
    Line {
        issue: 4,
        id: "f",
        promise: "sampling at 1 kHz costs less than 2 % of a slice's time (upper end of the \
                  interval, alternated slices)",
        check: overhead::check_sampling,
    },
];
