//! A result as a screen: the winner beside what people would use instead, what bounds it, how
//! to run it and how to write it.

use iolens_document::{Answer, Block, Column, Factor, Grid, Label, Screen, Text};
use iolens_model::command_line;
use iolens_model::file::Consumer;
use iolens_model::tune::{Configuration, FOLIOS_SMALL, LimitKind, Record, Stage, Stop, Task, Work};
use iolens_model::units::{Bytes, Nanos, three_digits};
use iolens_stats::tune::{Against, DELTA, Ratio, Verdict};

use super::{command, cure, in_code, limit_share, name, state};
use crate::number::{self, InWords, Unit, count, list, percent, usable};
use crate::screen::table::{Marks, beside, change_column, legend, mark};

/// The screen.
pub(super) fn screen(record: &Record, verdict: &Verdict, verbose: bool) -> Screen {
    let mut marks = Marks::default();
    let grid = grid(record, verdict, &mut marks);
    let mut screen = Screen {
        header: header(record),
        effort: effort(record, verdict),
        blocks: vec![Block::Grid(grid)],
        legend: legend(marks, DELTA, &verdict.winner.engine, &[]),
        ..Screen::default()
    };
    screen.answers.extend(answers(record, verdict));
    screen.answers.extend(cautions(record, verdict).map(|said| Answer::one(Label::Caution, said)));
    screen.answers.push(trust(record, verdict));
    if verbose {
        screen.answers.extend(more(record, verdict));
    }
    screen.answers.push(next(record, verbose));
    screen
}

fn header(record: &Record) -> Vec<Text> {
    let facts = &record.facts;
    let task = record.wishes.task;
    let size = Bytes(facts.file_bytes);
    let file = format!("{} ({size}, {}, {})", facts.file, facts.file_system, state(record));
    let looked_at = match (task, record.wishes.consumer) {
        (Task::Copy, _) => None,
        (Task::Read, Consumer::None) => Some("bytes not looked at"),
        (Task::Read, _) => Some("every byte read"),
    };
    let into = facts.folder.as_ref().map(|(folder, system)| format!("into {folder} ({system})"));
    let mut parts: Vec<Text> = vec![format!("tune {task}").into(), file.into()];
    parts.extend(into.map(Text::from));
    parts.extend(looked_at.map(Text::from));
    parts
}

fn effort(record: &Record, verdict: &Verdict) -> Vec<Text> {
    let ended = match record.stop {
        Stop::Precision => "precise enough",
        Stop::Bound => "the limit is reached",
        Stop::Equivalent => "the best are the same",
        Stop::Decided => "the best is decided",
        Stop::Budget => "out of time",
    };
    let trials = record.trials.len();
    let took = Nanos(record.duration.0);
    vec![
        format!("{trials} trials, {} final rounds", verdict.bytes_per_s.n).into(),
        format!("{took} ({ended})").into(),
    ]
}

/// The winner and the others of the final.
fn grid(record: &Record, verdict: &Verdict, marks: &mut Marks) -> Grid {
    let others = || verdict.against.iter().filter(|one| !matches!(one.work, Work::Limit { .. }));
    let rates = std::iter::once(verdict.bytes_per_s.value).chain(others().map(|o| o.bytes_per_s));
    let unit = Unit::of(number::BYTES, rates);
    let row = |name: String, bytes_per_s: f64, change, cpu: Option<f64>| {
        vec![
            (Column::left(""), vec![name]),
            (
                Column::decimal("throughput").below(unit.name),
                vec![three_digits(bytes_per_s / unit.size)],
            ),
            (change_column("change"), change),
            (Column::decimal("CPU").below("s per GiB"), vec![cpu.or_empty(three_digits)]),
        ]
    };
    let (bytes_per_s, cpu) = (verdict.bytes_per_s.value, verdict.cpu_s_per_gib);
    let mut rows = vec![row(verdict.winner.words(), bytes_per_s, Vec::new(), cpu)];
    rows.extend(others().map(|other| {
        let change = against_winner(&other.ratio, marks);
        row(name(record, &other.work), other.bytes_per_s, change, other.cpu_s_per_gib)
    }));
    let winner = &verdict.winner.engine;
    Grid::filled(format!("change against {winner} [95%, all comparisons together]"), rows)
}

/// What another has of the winner's rate, whose ratio to it this is.
fn against_winner(ratio: &Ratio, marks: &mut Marks) -> Vec<String> {
    let is_same = ratio.is_equivalent(DELTA);
    let interval = if is_same { ratio.interval90 } else { ratio.interval };
    let factor = Factor { typical: ratio.value, interval: usable(interval) }.inverse();
    beside(factor, mark(factor, is_same, false), marks)
}

fn answers(record: &Record, verdict: &Verdict) -> Vec<Answer> {
    let mut used = vec![Text::from(verdict.winner.words())];
    if !verdict.tied.is_empty() {
        let tied = list(verdict.tied.iter().map(Configuration::words));
        used.push(Text::from(format!("within {} or undecided: {tied}", percent(DELTA))));
        used.push("of these it uses the least CPU time, or is the simplest".into());
    }
    let mut limits = verdict.limits.iter();
    let mut bound: Vec<Text> = Vec::new();
    if let Some(first) = limits.next() {
        bound.push(limit_share(first, verdict.is_bound).into());
    }
    bound.extend(
        limits.map(|share| format!("{}: {}", share.kind, limit_share(share, false)).into()),
    );
    let code = in_code(record, &verdict.winner).into_iter().map(Text::from);
    vec![
        Answer { label: Label::Use, said: used },
        Answer { label: Label::Limit, said: bound },
        Answer::one(Label::RunIt, Text::code(command(record, &verdict.winner))),
        Answer { label: Label::InCode, said: code.collect() },
    ]
    .into_iter()
    .filter(|answer| !answer.said.is_empty())
    .collect()
}

/// Without which the numbers could be taken for others.
fn cautions<'a>(record: &'a Record, verdict: &'a Verdict) -> impl Iterator<Item = Text> + 'a {
    let facts = &record.facts;
    let shared = verdict.shared.as_ref().map(|(engine, seconds)| {
        let time = crate::number::nanoseconds(seconds * 1e9);
        format!("{engine} copies in {time} and moves no byte: it shares the blocks")
    });
    let most = record.trials.iter().filter(|trial| trial.stage == Stage::Final);
    let most = most.map(|trial| trial.extent.bytes).max().filter(|&bytes| bytes < facts.file_bytes);
    let part = most.map(|bytes| format!("measured on the first {} of the file", Bytes(bytes)));
    let guest = facts.hypervisor.as_ref().map(|name| format!("a virtual machine ({name})"));
    let stolen = record.stolen.filter(|stolen| stolen.0 > 0);
    let stolen = stolen.map(|stolen| format!("{stolen} of CPU time stolen meanwhile"));
    let here = [part, guest, stolen].into_iter().flatten().collect::<Vec<_>>();
    let here = (!here.is_empty()).then(|| here.join(", "));
    let mut failed: Vec<String> = Vec::new();
    for trial in &record.trials {
        let why = trial.failure.as_ref().and_then(|why| why.lines().next());
        let said = why.map(|why| format!("{} is out: {why}", trial.work.words()));
        failed.extend(said.filter(|said| !failed.contains(said)));
    }
    let noticed = facts.warnings.iter().chain(&record.notes).cloned();
    shared.into_iter().chain(here).chain(failed).chain(noticed).map(Text::from)
}

fn trust(record: &Record, verdict: &Verdict) -> Answer {
    let proof = match &record.proof {
        Some(proof) if proof.winner == proof.plain => {
            format!("bytes verified (checksum {} of {})", proof.winner, Bytes(proof.bytes))
        }
        Some(proof) => format!("WRONG BYTES: checksum {}, {} plain", proof.winner, proof.plain),
        None => "bytes not verified".to_owned(),
    };
    let said = vec![proof.into(), cache(record, &verdict.winner).into()];
    Answer { label: Label::Trust, said }
}

/// What of the extent was cached around the winner's trials.
fn cache(record: &Record, winner: &Configuration) -> String {
    let trials: Vec<_> = record
        .trials
        .iter()
        .filter(|one| one.stage == Stage::Final && one.work.configuration() == Some(winner))
        .collect();
    let mean = |shares: Option<Vec<f64>>| {
        shares.map(|shares| shares.iter().sum::<f64>() / shares.len().max(1) as f64)
    };
    let before = mean(trials.iter().map(|trial| trial.resident_before_share).collect());
    let after = mean(trials.iter().map(|trial| trial.resident_after_share).collect());
    match before.zip(after) {
        Some((before, after)) if percent(before) == percent(after) => {
            format!("{} cached before and after", percent(before))
        }
        Some((before, after)) => {
            format!("{} cached before, {} after", percent(before), percent(after))
        }
        None => "the kernel does not say what was cached".to_owned(),
    }
}

/// What `--verbose` adds.
fn more(record: &Record, verdict: &Verdict) -> Vec<Answer> {
    let mut all: Vec<Text> = Vec::new();
    let is_scan = verdict.limits.iter().any(|share| share.kind == LimitKind::Scan);
    let huge = record.facts.huge_mapped_share.filter(|&s| is_scan && s < FOLIOS_SMALL);
    all.extend(huge.map(|share| {
        let offer = if record.cure.is_none() { cure::OFFER } else { "" };
        format!(
            "{} of the file is cached as huge pages; the rest is mapped 4 KiB at a time, which \
             slows a mapping (a file read from its device in order is often cached in larger \
             pieces than one just written){offer}",
            percent(share)
        )
        .into()
    }));
    all.extend(cure::told(record).map(Text::from));
    let is_program = |other: &Against| matches!(other.work, Work::Program(_));
    let is_looked_at = record.wishes.task == Task::Read && record.wishes.consumer == Consumer::Scan;
    if is_looked_at && verdict.against.iter().any(is_program) {
        all.push(
            "dd does not look at what it reads; the engines here do, which is more work".into(),
        );
    }
    let programs = record.programs.iter();
    all.extend(programs.map(|(name, arguments)| {
        Text::plain(format!("{name}: ")).and_code(command_line::join(arguments))
    }));
    all.push(format!("seed {}", record.wishes.seed).into());
    let not_run = |one: &iolens_model::tune::Pruned| {
        Answer::one(Label::NotRun, format!("{}: {}", one.what, one.why.replace('\n', " ")))
    };
    let notes = all.into_iter().map(|said| Answer { label: Label::Notes, said: vec![said] });
    record.pruned.iter().map(not_run).chain(notes).collect()
}

fn next(record: &Record, verbose: bool) -> Answer {
    let mut said = Vec::new();
    if !verbose {
        let pruned = match record.pruned.len() {
            0 => "notes".to_owned(),
            n => format!("notes, {} not tried", count(n, "engine")),
        };
        said.push(Text::code("--verbose").and(format!(" ({pruned})")));
    }
    if record.stop == Stop::Budget {
        let more = Nanos(record.wishes.budget.0.saturating_mul(3)).written();
        said.push(Text::code(format!("--budget {more}")).and(" (narrower)"));
    }
    said.push(Text::code("-o best.json").and(" (to check again with --replay)"));
    Answer { label: Label::Next, said }
}
