//! Issue 9: the other end on another machine.

use super::process::Job;
use super::{Bench, Judged, Line, Outcome, hosts, launchers, slow_link};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 9,
        id: "a",
        promise: "two namespaces as two hosts with a real sshd in one of them: `run net --peer \
                  \"ssh …\"` completes in both directions with counters from both ends",
        check: hosts::whole,
    },
    Line {
        issue: 9,
        id: "b",
        promise: "killing sshd, the worker or the link in mid-run gives failed trials with reasons, \
                  no hang, nothing left on either side",
        check: hosts::losses,
    },
    Line {
        issue: 9,
        id: "c",
        promise: "strangers that connect, send garbage or flood the data port during a trial change \
                  no byte count, and the trial is invalid and says so",
        check: hosts::strangers,
    },
    Line {
        issue: 9,
        id: "d",
        promise: "databases from three hosts merge, and the merged report keeps each row's origin",
        check: check_import,
    },
    Line {
        issue: 9,
        id: "e",
        promise: "the launchers that docs/clusters.md shows, between two namespaces, with programs \
                  that stand in for srun and kubectl",
        check: launchers::check,
    },
    Line {
        issue: 9,
        id: "f",
        promise: "the manifests are as the schemas of Kubernetes have them",
        check: launchers::manifests,
    },
    Line {
        issue: 9,
        id: "g",
        promise: "a launcher that is missing or asks for a password, a binary that is missing or of \
                  another version, a banner: each named, no hang",
        check: check_faults,
    },
    Line {
        issue: 9,
        id: "h",
        promise: "a firewall that lets control through and drops data is named as such",
        check: hosts::firewall,
    },
    Line {
        issue: 9,
        id: "i",
        promise: "over a link of 8 Mbit/s a run completes with valid trials, none of them timed \
                  out, and large messages go at the rate of the link less headers",
        check: slow_link::check,
    },
];

fn check_import(_: &Bench) -> Judged {
    tests("import::")
}

fn check_faults(_: &Bench) -> Judged {
    tests("far::")
}

/// Whether these tests of the command pass.
fn tests(of: &str) -> Judged {
    let args = ["test", "--workspace", "--test", "it", of];
    let done = Job::cargo(&args).limit_minutes(15).run()?;
    let said = done.stdout();
    let results = said.lines().filter(|line| line.starts_with("test ")).collect::<Vec<_>>();
    let passes = done.status.success() && results.iter().any(|line| line.ends_with(" ok"));
    let evidence = results.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}
