//! The first screens of runs of `file` and `copy`.

use iolens_document::{Answer, Label, Screen, Text, change};
use iolens_model::axes::Study;
use iolens_model::copy::ProgramStart;
use iolens_model::file::CacheState;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use crate::arms;
use crate::bounds;
use crate::findings::{self, Limit, Limiting, Ranking, Reach, Stalls};
use crate::number::rate;
use crate::number::{list_with, nanoseconds};
use crate::screen::effort::command;
use crate::screen::table::{self, Better, Marks, Measure};
use crate::screen::{choices, more, short, told};
use crate::studies::files::facts;

/// Curves that are shown; the others are in `iolens show`.
const CURVES_MAX: usize = 4;

/// What to type next, of a run that read.
pub(crate) fn next_of_reads(_: &Analysis, _: bool) -> Vec<Text> {
    vec![command("iolens tune read FILE", "one file of yours")]
}

pub(crate) fn fill(screen: &mut Screen, run: &Run, analysis: &Analysis) {
    let curves = arms::curves(analysis);
    let shown: Vec<&CellAnalysis> =
        curves.iter().take(CURVES_MAX).flat_map(|(_, cells)| cells.iter().copied()).collect();
    let methods = table::methods(&shown);
    let mut marks = Marks::default();
    let unit = facts::unit(&shown);
    let title = format!("throughput, {}", unit.name);
    let measure = Measure::compared(title, facts::rate_of, unit.size, Better::More);
    let section = table::section(run, &shown, &methods, &measure, &mut marks);
    screen.blocks.push(table::matrix(run, table::heads(&methods, &[]), vec![section]));
    screen.legend = table::legend(marks, analysis.delta, &run.header.plan.baseline, &methods);
    screen.legend.extend(controls(run, analysis));
    screen.legend.extend(more(run, curves.len(), CURVES_MAX, " settings"));
    let warnings = run.header.file.iter().flat_map(|file| &file.warnings);
    screen.problems.splice(0..0, warnings.map(|why| Text::plain(format!("✗ the file: {why}"))));
    screen.answers = answers(run, analysis);
}

/// Who was measured and is not in the table.
fn controls(run: &Run, analysis: &Analysis) -> Option<Text> {
    let labels = facts::controls(analysis);
    let said = list_with(&labels, "is a control", "are controls");
    let said = format!("{said}, not compared: ");
    (!labels.is_empty()).then(|| Text::plain(said).and_code(crate::screen::show(run)))
}

fn answers(run: &Run, analysis: &Analysis) -> Vec<Answer> {
    let curve = |ranking: &Ranking| short(run, &ranking.setting);
    let mut out = choices(Label::Fastest, run, &findings::rankings(run, analysis), curve);
    out.extend(stalls(run, analysis));
    match run.header.plan.study() {
        Study::Copy => out.extend(starts(run, analysis)),
        _ => out.extend(limit(run, analysis)),
    }
    out
}

/// Rare slices that are much slower, where they change what is said.
fn stalls(run: &Run, analysis: &Analysis) -> Option<Answer> {
    /// Places that are told.
    const TOLD: usize = 2;
    let mut all = findings::stalls(analysis);
    all.retain(|stalls| change(stalls.with_stalls) != change(stalls.typical));
    all.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let one = |stalls: &Stalls| {
        format!(
            "{} at {}: {} with its stalls, {} without",
            stalls.method,
            crate::screen::place(run, &stalls.setting),
            change(stalls.with_stalls),
            change(stalls.typical)
        )
    };
    let said = told(all.iter().map(|stalls| one(stalls).into()).collect(), TOLD);
    (!said.is_empty()).then_some(Answer { label: Label::Stalls, said })
}

/// How far the typical ratio is from that of totals.
fn weight(stalls: &Stalls) -> f64 {
    (stalls.typical / stalls.with_stalls).ln().abs()
}

/// How close the fastest comes to what memory allows.
fn limit(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let is_warm = |limit: &Limit| limit.setting.cache() == Some(CacheState::Warm);
    let mut all = findings::limits(run, analysis);
    all.retain(is_warm);
    // The first bound of the fastest.
    all.sort_by(|a, b| b.bytes_per_s.value.total_cmp(&a.bytes_per_s.value));
    let limit = all.first()?;
    let Limiting::Memory { name, bytes_per_s, .. } = &limit.bound else { return None };
    let value = limit.bytes_per_s.value;
    let who = format!("{} at {}", limit.method, limit.setting.size);
    let of = format!("{} of {}", rate(value), rate(*bytes_per_s));
    let said = match limit.reach {
        Reach::Below => {
            format!("{who} reaches {:.0}% of the {name} ({of})", 100.0 * value / bytes_per_s)
        }
        Reach::At => format!("{who} is as fast as the {name} here ({of})"),
        Reach::AboveCopy => format!("{who} passes the {name} ({of}), which writes as much besides"),
        Reach::Above => format!(
            "{who} passes the {name} that was measured before the run ({of}): that {}",
            bounds::NO_BOUND
        ),
    };
    Some(Answer::one(Label::Limit, said))
}

/// What of a program's time its start is, at the smallest size.
fn starts(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let smallest = analysis.cells.iter().min_by_key(|cell| cell.cell.size)?;
    let one = |id: &String| {
        let ProgramStart { median_ns, .. } = facts::start_of(&run.header, &analysis.told, id)?;
        let mut own = smallest.arms.iter().filter(|arm| arm.status == Status::Ok);
        let arm = own.find(|arm| arm.arm.primitive == *id)?;
        let copy_ns = arm.figures.as_ref()?.ns_per_message.value;
        let share = 100.0 * median_ns as f64 / copy_ns;
        let [start, whole] = [median_ns as f64, copy_ns].map(nanoseconds);
        Some(format!("{start} of {id}'s {whole} ({share:.0}%)"))
    };
    let all: Vec<String> = run.header.plan.primitives.iter().filter_map(one).collect();
    let said = format!(
        "at {}, starting the process takes {}",
        smallest.cell.size,
        crate::number::list(&all)
    );
    (!all.is_empty()).then(|| Answer::one(Label::StartUp, said))
}
