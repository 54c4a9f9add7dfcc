//! The first screen of a run of `syscall`.

use iolens_document::{Align, Answer, Block, Column, Grid, Label, Listing, Screen, Text, ends};
use iolens_model::arm::Role;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use crate::groups::distinct;
use crate::number::{InWords, nanoseconds, usable};
use crate::screen::effort::command;
use crate::screen::table::{self, Better, INTERVALS, Marks, SAME};
use crate::studies::syscall::calls::{self, Row as Call};
use crate::words;

/// The empty call, which most are told in.
const EMPTY: &str = "getppid";

/// What to type next.
pub(crate) fn next(_: &Analysis, is_cut_short: bool) -> Vec<Text> {
    if is_cut_short { Vec::new() } else { vec![command("iolens explain last", "why")] }
}

pub(crate) fn fill(screen: &mut Screen, run: &Run, analysis: &Analysis) {
    let sized = calls::by_size(analysis).into_iter().next();
    let filled = calls::filled(analysis).into_iter().next();
    let Some(first) = sized.as_ref().and_then(|cells| cells.first().copied()).or(filled) else {
        return;
    };
    screen.blocks.extend(match &sized {
        Some(cells) => sizes(run, cells).map(Block::Grid),
        None => Some(Block::Listing(listing(run, first))),
    });
    let shown = sized.unwrap_or_else(|| vec![first]);
    let rows: Vec<Call> = shown.iter().flat_map(|cell| calls::rows(run, cell)).collect();
    if rows.iter().any(|row| row.arm.arm.role == Role::Control) {
        screen.legend.push("* does not enter the kernel".into());
    }
    let mut marks = Marks::default();
    for contrast in rows.iter().filter_map(|row| row.arm.contrast.as_ref()) {
        let (_, mark) = table::compared(contrast, Better::Less, run.header.plan.quick);
        marks.note(if mark == SAME { SAME } else { "" });
    }
    screen.legend.extend(table::legend(marks, analysis.delta, &run.header.plan.baseline, &[]));
    screen.answers.extend(crossing(run, first));
    screen.answers.extend(alone(run, analysis));
    screen.answers.extend(by_threads(run, analysis));
}

/// The calls of one cell, as many beside each other as have room.
fn listing(run: &Run, cell: &CellAnalysis) -> Listing {
    let row = |[call, ns, interval]: [String; 3]| {
        vec![
            (Column::left(""), vec![call]),
            (Column::decimal(""), vec![ns]),
            (Column::left(""), vec![interval]),
        ]
    };
    let rows = calls::rows(run, cell);
    let mut lines: Vec<[String; 3]> = rows.iter().map(|row| line(run, row)).collect();
    let refused = |arm: &ArmAnalysis| [name(arm), arm.status.word().to_owned(), String::new()];
    lines.extend(calls::invalid(cell).map(refused));
    let is_told = lines.iter().any(|[.., interval]| !interval.is_empty());
    let intervals = if is_told { format!("[{INTERVALS}]") } else { "(no intervals)".to_owned() };
    let of = cell.cell.own_size().or_empty(|size| format!(" of {size}"));
    Listing {
        title: format!(
            "{}ns per call{of} in a tight loop{} ({}'s × ratio) {intervals}",
            threads_of(run, cell),
            words::together(cell.cell.threads),
            run.header.plan.baseline
        ),
        rows: Grid::filled("", lines.into_iter().map(row)),
    }
}

/// The threads that a table is of, where the run has several counts.
fn threads_of(run: &Run, cell: &CellAnalysis) -> String {
    match run.header.plan.threads.len() {
        0 | 1 => String::new(),
        _ => format!("{}, ", words::threads(cell.cell.threads)),
    }
}

/// Calls that move blocks of several sizes: a column for each.
fn sizes(run: &Run, cells: &[&CellAnalysis]) -> Option<Grid> {
    let threads = cells.first().or_empty(|cell| threads_of(run, cell));
    let entry = |cell: &&CellAnalysis, id: &str| {
        let rows = calls::rows(run, cell);
        let own = rows.iter().find(|row| row.arm.arm.primitive == id);
        let missing = || match calls::invalid(cell).find(|arm| arm.arm.primitive == id) {
            Some(arm) => vec![arm.status.word().to_owned()],
            None => vec!["not run".to_owned()],
        };
        let parts = own.map_or_else(missing, |row| line(run, row)[1..].into());
        (Column::of(cell.cell.size.to_string(), &[Align::Decimal, Align::Left]), parts)
    };
    let all = cells.iter().flat_map(|cell| {
        calls::rows(run, cell).into_iter().map(|row| row.arm).chain(calls::invalid(cell))
    });
    let of_call = |arm: &ArmAnalysis| (arm.arm.primitive.clone(), name(arm));
    let row = |(id, label): (String, String)| {
        let entries = cells.iter().map(|cell| entry(cell, &id));
        std::iter::once((Column::left(""), vec![label])).chain(entries).collect()
    };
    let together = cells.first().or_empty(|cell| words::together(cell.cell.threads).to_owned());
    let title = format!(
        "{threads}ns per call by block size, in a tight loop{together} ({}'s × ratio) \
         [{INTERVALS}]",
        run.header.plan.baseline
    );
    let calls = distinct(all.map(of_call));
    (!calls.is_empty()).then(|| Grid::filled(title, calls.into_iter().map(row)))
}

/// What a call is called.
fn name(arm: &ArmAnalysis) -> String {
    let mark = match arm.arm.role {
        Role::Control => "*",
        Role::Baseline => " (baseline)",
        Role::Compared | Role::SelfCheck => "",
    };
    format!("{}{mark}", arm.arm.label)
}

/// A call, its time, and the interval of that against the baseline.
fn line(run: &Run, call: &Call<'_>) -> [String; 3] {
    let ns = call.ns.value;
    let interval = call.arm.contrast.as_ref().and_then(|contrast| {
        let (factor, mark) = table::compared(contrast, Better::Less, run.header.plan.quick);
        let mark = if mark == SAME { format!(" {SAME}") } else { String::new() };
        factor.ends_of(ns).map(|ends| format!("[{ends}]{mark}"))
    });
    [name(call.arm), three_digits(ns), interval.unwrap_or_default()]
}

/// What a call into the kernel and back costs; several threads have only a time of all together.
fn crossing(run: &Run, cell: &CellAnalysis) -> Option<Answer> {
    if cell.cell.threads > 1 {
        return None;
    }
    let ns = calls::time_of(cell, EMPTY)?;
    let interval = usable(ns.interval).or_empty(|i| format!(" [{}]", ends(i)));
    let host = &run.header.host;
    let on = words::fact(host, &["mitigations"]);
    // `NAME: Mitigation: …` of each flaw that is mitigated.
    let on = on.map(|all| all.matches(": Mitigation").count());
    let mitigations = on.or_empty(|n| {
        format!(", with {}", crate::number::count(n, "CPU vulnerability mitigation"))
    });
    let guest = words::fact(host, &["virtualization"]).filter(|_| words::is_guest(host));
    let guest = guest.or_empty(|name| format!(", under {name}"));
    let said = format!(
        "{}{interval} into the kernel and back ({EMPTY}){mitigations}{guest}",
        nanoseconds(ns.value)
    );
    Some(Answer::one(Label::Crossing, said))
}

/// What a call costs that stands alone, with the reading of the clock behind it, and from how many
/// in a row on it no longer matters; `None` where others are made at the same time.
fn alone(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let call = &run.header.plan.baseline;
    let steady = calls::steady(analysis).filter(|cell| cell.cell.threads == 1)?;
    let steady = calls::time_of(steady, call)?;
    let series = calls::series(analysis);
    let times = |calls: u64| {
        let (_, cell) = series.iter().find(|(known, _)| *known == calls)?;
        Some(calls::time_of(cell, call)?.value)
    };
    let one = times(1)?;
    let ten = times(10).or_empty(|ns| format!("; ten in a row take {} each", nanoseconds(ns)));
    let clock = run.header.calibration.as_ref().map(|found| found.clock_read_ns);
    let clock = clock.or_empty(|ns| format!(" ({})", nanoseconds(ns)));
    let said = format!(
        "a lone {call} takes {} with one clock reading{clock}, {}× one in a tight loop{ten}",
        nanoseconds(one),
        three_digits(one / steady.value)
    );
    Some(Answer::one(Label::Alone, said))
}

/// What more threads make of it.
fn by_threads(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let cells = calls::by_threads(analysis).into_iter().next()?;
    let (one, all) = (cells.first()?, cells.last()?);
    let more = f64::from(all.cell.threads) / f64::from(one.cell.threads);
    let gain = |row: &Call<'_>| {
        let then = calls::time_of(all, &row.arm.arm.primitive)?.value;
        Some((row.ns.value / then, row.arm.arm.label.clone()))
    };
    let gains: Vec<(f64, String)> = calls::rows(run, one).iter().filter_map(gain).collect();
    let least = gains.iter().min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let most = gains.iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let of = one.cell.own_size().or_empty(|size| format!(" at {size}"));
    let said = format!(
        "{} make {}× ({}) to {}× ({}) the calls of {}{of}; {}× is ideal",
        words::threads(all.cell.threads),
        three_digits(least.0),
        least.1,
        three_digits(most.0),
        most.1,
        words::threads(one.cell.threads),
        three_digits(more)
    );
    Some(Answer::one(Label::Threads, said))
}
