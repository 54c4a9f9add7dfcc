//! What was measured, where, how long and how often; and what to do next.

use iolens_document::{Answer, Joined, Label, Text};
use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::command_line;
use iolens_model::host::HostFacts;
use iolens_model::run::{Run, StoppedBy};
use iolens_model::units::{Nanos, three_digits};
use iolens_stats::analysis::Analysis;

use crate::groups::distinct;
use crate::number::{InWords, count};
use crate::studies::entry::StudyReport;
use crate::words;

/// The study, the settings that all rows share, the machine.
pub(crate) fn header(run: &Run, own: &StudyReport) -> Vec<Text> {
    let plan = &run.header.plan;
    let mut parts = vec![plan.study().to_string()];
    let cells = plan.cells();
    parts.extend(shared(run, &cells, own.common));
    parts.extend(machine(run));
    Text::parts(parts)
}

/// What all settings have in common, in words.
fn shared(run: &Run, cells: &[Cell], words: fn(&Cell) -> Vec<String>) -> Vec<String> {
    let plan = &run.header.plan;
    let Some(first) = cells.first() else { return Vec::new() };
    let mut parts: Vec<String> = Vec::new();
    if let Some(file) = &run.header.file {
        let place = match file.is_ours {
            true => format!("{} in {}", file.file_system, file.place),
            false => format!("{} ({}), {}", file.place, file.bytes, file.file_system),
        };
        parts.push(place);
        let is_read = plan.file().is_some() && file.is_ours;
        parts.extend(is_read.then(|| format!("file of {}", file.bytes)));
    }
    let own = words(first);
    let others: Vec<Vec<String>> = cells.iter().map(words).collect();
    let is_common = |word: &&String| others.iter().all(|words| words.contains(word));
    parts.extend(own.iter().filter(is_common).cloned());
    let further = plan.told_further(first);
    let common = |word: &&String| cells.iter().all(|cell| plan.told_further(cell).contains(word));
    parts.extend(further.iter().filter(common).cloned());
    if let ([threads], true) = (plan.threads.as_slice(), plan.server().is_none()) {
        parts.push(words::threads(*threads));
    }
    distinct(parts)
}

/// `AMD EPYC 9B14, 2 CPUs (VM), Linux 6.18`.
pub(crate) fn machine(run: &Run) -> Option<String> {
    let host = &run.header.host;
    let guest = if words::is_guest(host) { " (VM)" } else { "" };
    let model = words::fact(host, &["model", "model name", "cpu model"]).map(short_model);
    let cpus = format!("{}{guest}", count(host.cpus.len(), "CPU"));
    let parts = [model, Some(cpus), kernel(host)];
    Some(parts.into_iter().flatten().joined(", "))
}

/// A processor's name without what tells nothing.
fn short_model(model: &str) -> String {
    let model = model.split(" @").next().unwrap_or(model);
    let model = model.replace("(R)", "").replace("(TM)", "").replace("(tm)", "");
    let is_told = |word: &&str| {
        !matches!(*word, "Processor" | "CPU" | "processor") && !word.ends_with("-Core")
    };
    model.split_whitespace().filter(is_told).joined(" ")
}

/// `Linux 6.18`.
fn kernel(host: &HostFacts) -> Option<String> {
    let release = words::fact(host, &["kernel", "release", "osrelease"])?;
    let version = release.split_ascii_whitespace().next()?;
    let parts = version.split(['.', '-']).take(2);
    Some(format!("Linux {}", parts.joined(".")))
}

/// How often, how long, and how it ended where that was not by itself.
pub(crate) fn effort(run: &Run, analysis: &Analysis) -> Vec<Text> {
    let plan = &run.header.plan;
    let quick = if plan.quick { "quick look: " } else { "" };
    let each = each_trial(analysis).or_empty(|time| format!(" × {time}"));
    let sizes = distinct(analysis.cells.iter().map(|cell| cell.cell.size));
    let per = match analysis.cells.len() {
        0 | 1 => "",
        cells if cells == sizes.len() => " per size",
        _ => " per setting",
    };
    let mut parts = vec![format!("{quick}{}{each}{per}", trials(analysis))];
    let end = run.header.end.as_ref();
    let took = run.header.took_ns();
    parts.extend(took.map(|ns| format!("{} in all", spent(ns))));
    let passes = || match plan.passes.maximum {
        most if most == plan.passes.minimum => format!("{} of {most} passes", analysis.passes),
        _ => count(analysis.passes, "pass"),
    };
    parts.extend(match end.map(|end| end.stopped_by) {
        None => Some(format!("not ended, or killed, after {}", passes())),
        Some(StoppedBy::Interrupted) => Some(format!("interrupted after {}", passes())),
        Some(StoppedBy::Lost) => Some(format!("other machine lost after {}", passes())),
        Some(StoppedBy::Budget) => Some(out_of_time(run)),
        Some(StoppedBy::Stalled) => Some("more passes did not help".to_owned()),
        Some(StoppedBy::Precision | StoppedBy::Passes | StoppedBy::NothingUsable) => None,
    });
    Text::parts(parts)
}

/// Whether the first passes took much longer than was given; what resumes has its budget anew.
fn out_of_time(run: &Run) -> String {
    let is_whole = run.header.end.as_ref().is_some_and(|end| end.paused_ns == 0);
    let took_ns = run.header.took_ns().filter(|_| is_whole).unwrap_or(0);
    let budget_ns = run.header.plan.budget.0;
    match took_ns > budget_ns.saturating_mul(2) {
        true => format!("{} beyond the budget", spent(took_ns - budget_ns)),
        false => "out of time".to_owned(),
    }
}

/// `20 trials`, `12 to 20 trials`.
fn trials(analysis: &Analysis) -> String {
    let compared = |cell: &iolens_stats::analysis::CellAnalysis| {
        cell.compared_trials().unwrap_or((cell.trials_used, cell.trials_used))
    };
    let all = analysis.cells.iter().map(compared);
    match all.reduce(|(least, most), (a, b)| (least.min(a), most.max(b))) {
        None => "no trials".to_owned(),
        Some((least, most)) if least == most => count(most, "trial"),
        Some((least, most)) => format!("{least} to {most} trials"),
    }
}

/// How long a trial was measured, on average.
fn each_trial(analysis: &Analysis) -> Option<String> {
    let started: u64 = analysis.cells.iter().map(|cell| u64::from(cell.trials_started)).sum();
    let each_ns = analysis.told.spent.slices_ns.checked_div(started).filter(|&ns| ns > 0)?;
    Some(Nanos(each_ns).to_string())
}

/// `17 s`, `4 min 52 s`.
pub(crate) fn spent(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match (ns + 500_000_000) / 1_000_000_000 {
        0..10 => format!("{} s", three_digits(seconds)),
        whole @ 10..60 => format!("{whole} s"),
        whole @ 60..3600 if whole % 60 == 0 => format!("{} min", whole / 60),
        whole @ 60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        whole => format!("{} h {} min", whole / 3600, whole / 60 % 60),
    }
}

/// What to type next. A run of another machine is not gone on with here.
pub(crate) fn next(
    run: &Run,
    analysis: &Analysis,
    full_run: Option<Nanos>,
    own: &StudyReport,
) -> Option<Answer> {
    let plan = &run.header.plan;
    if run.header.origin.is_some() {
        return None;
    }
    let mut said: Vec<Text> = Vec::new();
    let cut_short = run.header.end.as_ref().is_none_or(|end| end.stopped_by.is_cut_short());
    if cut_short {
        said.push(command("iolens resume last", "the rest"));
    } else if plan.quick {
        let time = full_run.or_empty(|time| format!(", up to {}", spent(time.0)));
        said.push(command(&again(run), &format!("verdicts{time}")));
    }
    said.extend((own.next)(analysis, cut_short));
    said.push(Text::code("iolens show last"));
    Some(Answer { label: Label::Next, said })
}

/// A command and what it is for. The run of a screen with one has just been measured: it is `last`.
pub(crate) fn command(words: &str, why: &str) -> Text {
    Text::code(words).and(format!(" ({why})"))
}

/// Flags of a quick look, with a value, that are not those of the run after it.
const NOT_AGAIN: [&str; 4] = ["--budget", "--db", "--name", "--progress"];

/// Whether the command that measures longer is what was typed. What has lost a secret is no
/// command.
fn is_typed_again(run: &Run) -> bool {
    let typed = &run.header.command;
    typed.iter().any(|word| word == "--quick") && !command_line::is_redacted(typed)
}

/// The study or the plan that the command which measures longer names; `None` where it names none.
pub fn longer(run: &Run) -> Option<&str> {
    match is_typed_again(run) {
        true => run.header.command.get(2).map(String::as_str),
        false => Some(run.header.plan.study().word()),
    }
}

/// The command that measures longer: what was typed, without `--quick`. The screen names the
/// database by itself.
fn again(run: &Run) -> String {
    let typed = &run.header.command;
    if !is_typed_again(run) {
        return format!("iolens run {}", run.header.plan.study());
    }
    let mut words = vec!["iolens"];
    let mut rest = typed.iter().skip(1).map(String::as_str);
    while let Some(word) = rest.next() {
        match word {
            "--quick" => {}
            word if NOT_AGAIN.contains(&word) => drop(rest.next()),
            word if word.split_once('=').is_some_and(|(flag, _)| NOT_AGAIN.contains(&flag)) => {}
            word => words.push(word),
        }
    }
    command_line::join(words)
}

/// Whether any network of the plan is one.
pub(crate) fn is_on(run: &Run, topology: Topology) -> bool {
    run.header.plan.topologies().contains(&topology)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_quick_look_is_gone_on_with_by_what_was_typed() {
        let (mut run, _) = fixture::quick();
        let mut check = |typed: &str, expect: &str| {
            run.header.command = typed.split(' ').map(|word| word.replace('_', " ")).collect();
            assert_eq!(again(&run), expect, "{typed}");
            assert_eq!(longer(&run), expect.split(' ').nth(2), "{typed}");
        };
        check("iolens run classic-48 --quick", "iolens run classic-48");
        check("iolens run ./mine.toml --quick", "iolens run ./mine.toml");
        check("iolens run file --quick --file /data/a_b", "iolens run file --file '/data/a b'");
        check("/usr/bin/iolens run net --quick", "iolens run net");
        check("iolens run net --sizes 1KiB --quick --wait", "iolens run net --sizes 1KiB --wait");
        check("iolens run net --db a.db --quick --db=b.db --ip ipv6", "iolens run net --ip ipv6");
        check("iolens run quick", "iolens run net");
        check("iolens run net --quick --external a=curl --password ***", "iolens run net");
    }
}
