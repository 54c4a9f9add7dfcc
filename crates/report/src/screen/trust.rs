//! How far the numbers are to be trusted: self-checks, what has no number and why, and without
//! which a decision could go wrong.

use iolens_document::{Answer, Label, Text, change_by, change_interval};
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Verdict};

use super::show;
use crate::findings::{self, Finding, ReadByCalls, SendBuffers, SenderConnections};
use crate::groups::{distinct, grouped};
use crate::number::{count, list, list_with};
use crate::words;

/// Lines of what has no number.
const PROBLEMS_MAX: usize = 3;

/// Cautions that stand on the screen.
const CAUTIONS_MAX: usize = 2;

/// Why no number may be used.
pub(crate) fn alarm(analysis: &Analysis) -> Option<Text> {
    let check = &analysis.self_check;
    if !analysis.is_usable() {
        let reasons = analysis.arms().filter_map(|arm| arm.reason.as_deref());
        let by_reason = grouped(reasons.map(|reason| (reason, ())));
        let most = by_reason.iter().rev().max_by_key(|(_, times)| times.len());
        let why = most.map_or("nothing was measured", |(reason, _)| reason);
        let often = if by_reason.len() > 1 { " Most often:" } else { "" };
        return Some(Text::plain(format!("No result.{often} {why}")));
    }
    let failed = check.failed()?;
    Some(Text::plain(format!(
        "Do not use these numbers: {failed} of {} found a difference where there is none",
        count(check.counted, "self-check")
    )))
}

/// What has no usable number, by method and reason.
pub(crate) fn problems(run: &Run, analysis: &Analysis) -> Vec<Text> {
    // A call that cannot be made so often in a row is none that failed.
    let is_told = |cell: &&CellAnalysis| cell.cell.syscall().is_none_or(|s| s.in_a_row.is_none());
    let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(is_told).collect();
    let of_cell = |cell: &&CellAnalysis| {
        let place = super::place(run, &cell.cell);
        let own = cell.arms.iter().filter(|arm| arm.arm.role != Role::SelfCheck);
        let one =
            |arm: &ArmAnalysis| Some((unusable(run, arm)?, (arm.arm.label.clone(), place.clone())));
        own.filter_map(one).collect::<Vec<_>>()
    };
    let all = grouped(cells.iter().flat_map(of_cell));
    let one = |((what, why), found): &((&str, String), Vec<(String, String)>)| {
        let (methods, places): (Vec<&String>, Vec<&String>) =
            found.iter().map(|(method, place)| (method, place)).unzip();
        let places = distinct(places);
        let at = match places.as_slice() {
            places if places.len() == cells.len() => String::new(),
            [place] => format!(" at {place}"),
            places => format!(" in {} of {} settings", places.len(), cells.len()),
        };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let methods = list(distinct(methods));
        Text::plain(format!("✗ {methods} {what}{at}{why}"))
    };
    let more = all.len().saturating_sub(PROBLEMS_MAX);
    let rest = (more > 0).then(|| Text::plain(format!("✗ {more} more: ")).and_code(show(run)));
    all.iter().take(PROBLEMS_MAX).map(one).chain(rest).collect()
}

/// What is wrong with the numbers of an arm, and why; `None` where nothing is.
fn unusable(run: &Run, arm: &ArmAnalysis) -> Option<(&'static str, String)> {
    const UNEQUAL: &str = "its slices differ in length from the baseline's, so per-slice \
                           overhead may shift the ratio; a quieter machine or a longer --slice \
                           helps";
    let reason = || arm.reason.clone().unwrap_or_default();
    match (arm.status, arm.contrast.as_ref()) {
        (Status::Ok, Some(contrast)) => match contrast.verdict {
            Verdict::Invalid => Some(("invalid", crate::remarks::reason(&contrast.reason))),
            // Of a server the table says it, with a mark.
            Verdict::Unranked if run.header.plan.server().is_none() => {
                Some(("not ranked", UNEQUAL.to_owned()))
            }
            _ => None,
        },
        (Status::Ok, None) => None,
        (Status::Skipped, _) => Some(("not run", reason())),
        (status, _) => Some((status.word(), reason())),
    }
}

/// Without which a decision could go wrong.
pub(crate) fn cautions(run: &Run, analysis: &Analysis) -> Vec<Answer> {
    told(run, &findings::cautions(run, analysis))
}

/// Those of these that the screen has room for.
pub(crate) fn told(run: &Run, all: &[Finding]) -> Vec<Answer> {
    let one = |finding: &Finding| Some(Answer::one(Label::Caution, caution(run, finding)?));
    all.iter().filter_map(one).take(CAUTIONS_MAX).collect()
}

fn caution(run: &Run, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::SharedCpu { cpu } => {
            format!("both ends share CPU {cpu} and take turns on it: each time is that of both")
        }
        Finding::Confirms { run } => {
            format!("this confirms the crossovers of run {run}: iolens show {run} has the answer")
        }
        Finding::Sequential => {
            "methods ran one after another: the numbers include the machine's drift in between"
                .to_owned()
        }
        Finding::Crowded { threads, cpus } => {
            let end = if run.header.plan.net().is_some() { " per end" } else { "" };
            format!(
                "{} threads share {}{end}: this compares contention, not scaling",
                words::one_of(threads),
                count(*cpus, "CPU")
            )
        }
        Finding::Dropped => {
            "nothing is delivered: this shows what a send costs down to the device".to_owned()
        }
        Finding::HeldBack { methods } => format!(
            "{} without TCP_NODELAY, which iolens sets: small messages share segments",
            list_with(methods, "sends", "send")
        ),
        Finding::SendBuffers(SendBuffers { methods, theirs_bytes, ours_bytes }) => format!(
            "{} from buffers of {}, iolens from {} (--socket-buffer)",
            list_with(methods, "sends", "send"),
            Bytes(*theirs_bytes),
            Bytes(*ours_bytes),
        ),
        Finding::Connections { senders } => list(senders.iter().map(connections_in_words)),
        Finding::ReadByCalls { readers } => list(readers.iter().map(reading_in_words)),
        Finding::Drift { over_run } => {
            let faster = if *over_run < 0.0 { "sped up" } else { "slowed down" };
            let by = change_by(1.0 + over_run.abs());
            format!(
                "the machine {faster} by {by} during the run: trust the changes, not the absolute \
                 values"
            )
        }
        Finding::Neighbours { widened, .. } => format!(
            "successive trials are correlated: intervals were widened by {}",
            change_by(*widened)
        ),
        _ => return None,
    })
}

fn connections_in_words(found: &SenderConnections) -> String {
    let SenderConnections { method, made, threads } = found;
    format!("{method} makes {} for {}", count(*made, "connection"), count(*threads, "thread"))
}

fn reading_in_words(found: &ReadByCalls) -> String {
    let ReadByCalls { method, bytes, block_bytes } = found;
    let block = Bytes(*block_bytes);
    match *bytes < 1.0 {
        true => format!("{method} reads nothing with system calls: does it map the file?"),
        false => format!("{method} reads {bytes:.0} bytes per block of {block} with system calls"),
    }
}

/// How noisy it was, what is invalid, what was not read.
pub(crate) fn trust(run: &Run, analysis: &Analysis) -> Answer {
    let check = findings::self_check(run, analysis);
    let mut said: Vec<String> = Vec::new();
    let itself = format!("{} against itself", check.baseline);
    said.push(match (check.checks, check.farthest, check.span) {
        (0, Some(_), _) => "too few trials to check itself".to_owned(),
        (_, None, _) => "the baseline was not measured twice".to_owned(),
        (_, Some(_), None) => format!("{itself}: no usable interval"),
        (_, Some(farthest), Some(span)) => {
            let by = change_by(farthest);
            let span = change_interval((span.low, span.high));
            match check.checks {
                1 => format!("{itself}: {by} apart {span}"),
                _ => format!("{itself}: up to {by} apart, 95% within {span}"),
            }
        }
    });
    let is_lost = |cell: &&CellAnalysis| cell.trials_used == 0;
    let lost = analysis.cells.iter().filter(is_lost).count();
    if lost > 0 {
        said.push(format!(
            "{lost} of {} without a usable trial",
            count(analysis.cells.len(), "setting")
        ));
    }
    let rejected = analysis.rejected.len();
    if rejected > 0 {
        said.push(format!("{} not fully used", count(rejected, "trial")));
    }
    match (analysis.told.counted_by_pmu, run.header.host.pmu_caution()) {
        (true, None) => {}
        (true, Some(_)) => {
            said.push("hardware counters never checked against another tool".to_owned())
        }
        (false, _) => said.push("no hardware counters".to_owned()),
    }
    let more = findings::cautions(run, analysis).len().saturating_sub(CAUTIONS_MAX);
    if more > 0 {
        said.push(count(more, "more caution"));
    }
    Answer::of(Label::Trust, said)
}
