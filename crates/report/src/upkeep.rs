//! What upkeep of the database says: which runs went, and what room they left.

use iolens_document::Joined;
use iolens_document::plain;
use iolens_model::run::Extent;
use iolens_model::units::Bytes;

use crate::number::{self, InWords};
use crate::text::{RunRow, one_line};

/// Runs that were removed, with how much of what went along; `freed` is what is
/// free in the file since then.
pub fn removed(runs: &[RunRow], counts: &[(u64, &str)], freed: Bytes) -> String {
    let parts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| number::count(*n, noun)).collect();
    let went = if parts.is_empty() { "nothing was in it".to_owned() } else { parts.join(", ") };
    format!("removed {}: {went}; {freed} of the file are free now", names(runs))
}

/// What `iolens gc` found and did in a file.
#[derive(Debug)]
pub struct Collected<'a> {
    /// The file.
    pub database: &'a str,
    /// Runs that were named by their age or number.
    pub outdated: &'a [RunRow],
    /// Runs that held nothing.
    pub empty: &'a [RunRow],
    /// What room there was.
    pub before: Extent,
    /// And is now; `None` where nothing was done.
    pub after: Option<Extent>,
}

/// What was done, or what would be.
pub fn collected(done: &Collected) -> String {
    let would = if done.after.is_none() { "would remove" } else { "removed" };
    let mut out = String::new();
    for (runs, which) in [(done.outdated, ""), (done.empty, " that held nothing")] {
        if !runs.is_empty() {
            let what = number::count(runs.len(), "run");
            out.push_str(&format!("{would} {what}{which}: {}\n", names(runs)));
        }
    }
    let before = done.before.total();
    let room = match done.after {
        Some(after) => {
            let runs = number::count(after.runs, "run");
            format!("{before} before, {} after, {runs}", after.total())
        }
        None => {
            let free = Bytes(done.before.log_bytes.0 + done.before.free_bytes.0);
            let runs = if out.is_empty() { "" } else { " and what the runs take" };
            format!("{before}; would give back {free} of log and free pages{runs}")
        }
    };
    format!("{out}{}: {room}", done.database)
}

/// A run of a file that is imported.
#[derive(Debug)]
pub struct Taken<'a> {
    /// Its id.
    pub id: &'a str,
    /// The user's name for it.
    pub name: Option<&'a str>,
    /// What was studied.
    pub study: &'a str,
    /// The label of the machine that measured it.
    pub host: &'a str,
    /// Trials, phases of searches and sampled trials.
    pub counts: [u64; 3],
    /// What became of it, in a word or two.
    pub fate: &'a str,
    /// Why; empty where there is nothing to say.
    pub why: &'a str,
}

/// A file and its runs, a line each; what stands against one is below it.
pub fn taken(file: &str, runs: &[Taken<'_>]) -> String {
    let width = runs.iter().map(|run| run.host.chars().count()).max().unwrap_or(0);
    let mut out = format!("{}: {}\n", plain::shown(file), number::count(runs.len(), "run"));
    for run in runs {
        let nouns = ["trial", "phase", "sampled trial"];
        let of = run.counts.into_iter().zip(nouns).filter(|(n, _)| *n > 0);
        let counts: Vec<String> = of.map(|(n, noun)| number::count(n, noun)).collect();
        let held = if counts.is_empty() { "no trials".to_owned() } else { counts.join(", ") };
        let name = run.name.or_empty(|name| format!(" ({})", one_line(name)));
        let (id, fate, host, study) = (one_line(run.id), run.fate, run.host, run.study);
        out.push_str(&format!("  {fate:<13}  {id}  {host:<width$}  {study}, {held}{name}\n"));
        for line in run.why.lines() {
            let line = plain::shown(line.trim());
            out.push_str(&format!("    {line}\n"));
        }
    }
    out
}

/// What came of an import: runs that came in, that were there, and that were refused.
pub fn imported(database: &str, counts: [usize; 3], is_dry: bool) -> String {
    let [came, there, refused] = counts.map(|count| count as u64);
    let would = if is_dry { "would import" } else { "imported" };
    let mut parts = vec![format!("{would} {}", number::count(came, "run"))];
    parts.extend((there > 0).then(|| format!("{there} already there")));
    parts.extend((refused > 0).then(|| format!("{refused} refused")));
    format!("{}: {database}", parts.join(", "))
}

/// Runs by id and name.
fn names(runs: &[RunRow]) -> String {
    let name = |run: &RunRow| match &run.name {
        Some(name) => format!("{} ({})", run.id, name.escape_debug()),
        None => run.id.clone(),
    };
    runs.iter().map(name).joined(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, name: Option<&str>) -> RunRow {
        RunRow {
            host: None,
            id: id.to_owned(),
            name: name.map(str::to_owned),
            started_unix_ns: 0,
            took_ns: None,
            study: "net".to_owned(),
            cells: 1,
            trials: 2,
            ended: "passes".to_owned(),
        }
    }

    #[test]
    fn what_went_is_said() {
        let runs = [run("0000000a", Some("before\n")), run("0000000b", None)];
        let counts = [(8, "trial"), (1, "slice"), (0, "phase")];
        assert_eq!(
            removed(&runs, &counts, Bytes(3 * Bytes::MIB)),
            "removed 0000000a (before\\n), 0000000b: 8 trials, 1 slice; 3 MiB of the file are \
             free now"
        );
        let nothing = removed(&runs[1..], &counts[2..], Bytes(0));
        assert_eq!(nothing, "removed 0000000b: nothing was in it; 0 B of the file are free now");
    }

    #[test]
    fn what_was_done_and_what_would_be_are_told_apart() {
        let extent = |file, log, free| Extent {
            runs: 2,
            file_bytes: Bytes(file * Bytes::MIB),
            log_bytes: Bytes(log * Bytes::MIB),
            free_bytes: Bytes(free * Bytes::MIB),
        };
        let (outdated, empty) = ([run("0000000a", None)], [run("0000000b", None)]);
        let plan = Collected {
            database: "x.db",
            outdated: &outdated,
            empty: &empty,
            before: extent(9, 1, 4),
            after: None,
        };
        insta::assert_snapshot!(collected(&plan), @"
        would remove 1 run: 0000000a
        would remove 1 run that held nothing: 0000000b
        x.db: 10 MiB; would give back 5 MiB of log and free pages and what the runs take
        ");
        let done = Collected { outdated: &[], after: Some(extent(5, 0, 0)), ..plan };
        insta::assert_snapshot!(collected(&done), @"
        removed 1 run that held nothing: 0000000b
        x.db: 10 MiB before, 5 MiB after, 2 runs
        ");
        let idle = Collected { empty: &[], after: None, ..done };
        insta::assert_snapshot!(
            collected(&idle),
            @"x.db: 10 MiB; would give back 5 MiB of log and free pages"
        );
    }
}
