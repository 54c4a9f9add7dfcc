//! Issue 8: whether it can be relied on.

use super::process::Job;
use super::{Bench, Judged, Line, Outcome, fuzzing, handicap, repetitions, simulated, speed};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 8,
        id: "a",
        promise: "the simulations of METHOD 2.10 pass: coverage within three binomial standard \
                  errors for normal and log-normal trials, stated for slow ones, A/A rates likewise",
        check: check_simulations,
    },
    Line {
        issue: 8,
        id: "b",
        promise: "`iolens` alone on a terminal leads from a question to a report in under ten key \
                  presses and shows the equivalent command (by hand)",
        check: check_menu,
    },
    Line {
        issue: 8,
        id: "c",
        promise: "five repetitions of one plan, compared pairwise, give no SLOWER in ten comparisons",
        check: repetitions::check,
    },
    Line {
        issue: 8,
        id: "d",
        promise: "an arm that takes 20 % longer in a second run is SLOWER in the comparison, it \
                  alone, with the right ratio in its interval",
        check: handicap::check,
    },
    Line {
        issue: 8,
        id: "e",
        promise: "fuzzing whatever reads what others wrote (plans, databases, workers, servers, \
                  tables, the machine) for a minute each finds nothing",
        check: fuzzing::check,
    },
    Line {
        issue: 8,
        id: "f",
        promise: "the report of a run with 100 000 trials in under 2 s and 200 MB, `show last` in \
                  under 100 ms, the first line of a run on the screen in under 100 ms",
        check: speed::check,
    },
    Line {
        issue: 8,
        id: "g",
        promise: "a database that is locked, cut off, foreign, of a later version or without room, \
                  a plan with a typo, a reader that goes, a terminal without UTF-8 or colours: a \
                  clear message, nothing lost",
        check: check_faults,
    },
];

fn check_simulations(_: &Bench) -> Judged {
    let kinds = [("nominal", 18), ("A/A", 1), ("slower", 1)];
    simulated::rates("iolens-stats", "simulation", &kinds)
}

fn check_menu(_: &Bench) -> Judged {
    Ok(Outcome::Skip(
        "by hand: start `iolens` in a terminal of 80x24, count the keys to a report, then again \
         with TERM=dumb, NO_COLOR=1, LANG=C; leave with Ctrl-C and Esc, `stty -a` before and after"
            .to_owned(),
    ))
}

/// The tests of each fault.
const FAULTS: [&str; 6] =
    ["database::", "storage::", "mistakes::", "pipes::", "terminal::", "faults::"];

fn check_faults(_: &Bench) -> Judged {
    let mut evidence = Vec::new();
    let mut passes = true;
    for tests in FAULTS {
        let args = ["test", "--package", "iolens", "--test", "it", tests];
        let done = Job::cargo(&args).limit_minutes(15).run()?;
        let said = done.stdout();
        let result =
            said.lines().find(|line| line.starts_with("test result:")).unwrap_or("none ran");
        passes &= done.status.success() && !result.contains(" 0 passed");
        evidence.push(format!("{tests} {result}"));
    }
    let lib = ["test", "--package", "iolens", "--lib", "plan_file::"];
    passes &= Job::cargo(&lib).limit_minutes(15).run()?.status.success();
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}
