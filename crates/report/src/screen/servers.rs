//! The first screen of a run of `server`: what a request costs at a fixed rate, where all do
//! the same work, and in a closed loop.

use iolens_document::{
    Align, Answer, Block, Column, Grid, Label, Row, Screen, Text, change, unusable,
};
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::search::Goal;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Saturated};
use iolens_stats::search::{self, Ended};

use super::choices;
use super::table::{self, Better, INTERVALS, Marks};
use crate::findings::Ranking;
use crate::servers::searches;
use crate::servers::{
    COST, Kind, Kinds, LATENCY, THROUGHPUT, cost_contrast, is_open, models, read,
};
use crate::words;

/// Loads that are shown; the others are in `iolens show`.
const LOADS_MAX: usize = 3;

pub(super) fn fill(screen: &mut Screen, run: &Run, analysis: &Analysis) {
    let kinds = Kinds::of(analysis);
    let mut marks = Marks::default();
    let (open, closed): (Vec<&CellAnalysis>, Vec<&CellAnalysis>) =
        analysis.cells.iter().partition(|cell| is_open(cell));
    let mut blocks: Vec<Vec<Row>> = Vec::new();
    let mut bounded = false;
    for cell in open.iter().chain(&closed) {
        for (kind, view) in kinds.cells(cell) {
            bounded |= models(&view).any(is_bounded);
            blocks.push(block(run, &kinds, cell, kind, &view, &mut marks));
        }
    }
    let more = blocks.len().saturating_sub(LOADS_MAX);
    blocks.truncate(LOADS_MAX);
    screen.blocks.push(Block::Grid(Grid {
        title: format!("server CPU per request, lower is better [{INTERVALS}]"),
        columns: columns(run),
        rows: blocks.join(&Row::Gap),
    }));
    screen.legend = table::legend(marks, &[]);
    if bounded {
        screen.legend.push("≥ lower bound: the client ran out of CPU first".into());
    }
    if more > 0 {
        screen.legend.push(Text::plain(format!("{more} more loads: ")).and_code(super::show(run)));
    }
    screen.answers = answers(run, analysis, !open.is_empty());
}

/// Whether the client was the limit of a rate.
fn is_bounded(arm: &ArmAnalysis) -> bool {
    arm.server.as_ref().is_some_and(|server| server.limits.client_busy.is_some())
}

fn columns(run: &Run) -> Vec<Column> {
    let factor = [Align::Right, Align::Right, Align::Right, Align::Left];
    vec![
        Column::left(""),
        Column::decimal("µs/req"),
        Column::of(format!("against {}", run.header.plan.baseline), &factor),
        Column::decimal("p99 ms"),
        Column::right("req/s"),
        Column::decimal("CPUs used"),
        Column::left(""),
    ]
}

/// The models under one load, the cheapest first.
fn block(
    run: &Run,
    kinds: &Kinds<'_>,
    cell: &CellAnalysis,
    kind: Option<Kind>,
    view: &CellAnalysis,
    marks: &mut Marks,
) -> Vec<Row> {
    let is_open = is_open(cell);
    let rate = kinds.offered(cell, kind).map(|(least, most)| {
        let (least, most) = (three_digits(least), three_digits(most));
        if least == most { most } else { format!("{least} to {most}") }
    });
    let setting = words::subject(&run.header, &cell.cell);
    let load = match (is_open, rate) {
        (true, Some(rate)) => format!("{setting}: {rate} requests/s"),
        _ => format!("{setting}: each as fast as it can"),
    };
    let cost = |arm: &ArmAnalysis| read(&COST, arm).map_or(f64::INFINITY, |cost| cost.value);
    let mut arms: Vec<&ArmAnalysis> = models(view).filter(|arm| arm.status == Status::Ok).collect();
    arms.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let mut rows = vec![Row::Heading(load)];
    for arm in arms {
        let own = if arm.arm.role == Role::Baseline { " (baseline)" } else { "" };
        let p99 = read(&LATENCY[1], arm).map(|p99| three_digits(p99.value / 1e3));
        let mut cells = vec![
            vec![format!("  {}{own}", arm.arm.label)],
            vec![read(&COST, arm).map_or_else(String::new, |cost| three_digits(cost.value))],
            against(run, arm, marks),
            vec![p99.unwrap_or_default()],
        ];
        match is_open {
            true => cells.extend([vec![], vec![], vec![]]),
            false => cells.extend(closed_parts(arm)),
        }
        rows.push(Row::Cells(cells));
    }
    rows
}

/// The change of what a request costs.
fn against(run: &Run, arm: &ArmAnalysis, marks: &mut Marks) -> Vec<String> {
    let Some(contrast) = cost_contrast(arm) else { return Vec::new() };
    if !contrast.verdict.is_ranked() {
        return vec!["not ranked".to_owned()];
    }
    let (factor, mark) = table::compared(contrast, Better::Less, run.header.plan.quick);
    marks.undecided |= mark == table::UNDECIDED;
    marks.same |= mark == table::SAME;
    let [low, high] = match factor.interval {
        Some((low, high)) => {
            let end = |end: f64| change(end).replace('%', "");
            [format!("[{},", end(low)), format!("{}]", end(high))]
        }
        None => [String::new(), format!("[{}]", unusable())],
    };
    vec![change(factor.typical), low, high, mark.to_owned()]
}

/// The rate of a closed loop, and who had no time left.
fn closed_parts(arm: &ArmAnalysis) -> [Vec<String>; 3] {
    let least = if is_bounded(arm) { "≥" } else { "" };
    let rate = read(&THROUGHPUT, arm);
    let rate = rate.map_or_else(String::new, |rate| format!("{least}{}", three_digits(rate.value)));
    let server = arm.server.as_ref();
    let used = server.and_then(|server| server.server.cpus_utilized);
    let full = server.and_then(|server| server.saturated);
    let full = match full {
        Some(Saturated::Server | Saturated::Both) => "full",
        _ => "",
    };
    [
        vec![rate],
        vec![used.map_or_else(String::new, |used| three_digits(used.value))],
        vec![full.to_owned()],
    ]
}

fn answers(run: &Run, analysis: &Analysis, has_open: bool) -> Vec<Answer> {
    // Where there is a fixed rate, that is what ranks.
    let mut own = analysis.clone();
    if has_open {
        own.cells.retain(is_open);
    }
    let subject = |ranking: &Ranking| words::subject(&run.header, &ranking.setting);
    let mut out = searched(run, analysis);
    out.extend(choices(Label::Cheapest, run, &own, subject));
    out.extend(unknown(analysis));
    out
}

/// Up to which rate each model keeps what was asked of its latency.
fn searched(run: &Run, analysis: &Analysis) -> Vec<Answer> {
    let several = search::cells(&run.header.plan).len() > 1;
    let one = |found: &searches::Found| {
        let place = match several {
            true => format!("{}: ", words::subject(&run.header, &found.cell)),
            false => String::new(),
        };
        let goal = match found.goal {
            Goal::Slo(_) => format!("{place}{} is kept up to, in requests/s", found.goal),
            Goal::Knee => format!("{place}latency climbs beyond, in requests/s"),
        };
        let each = |answer: &search::Answer| {
            let rate = answer.kept_per_s.map(searches::rate);
            let said = match (answer.ended, rate) {
                (Ended::Found, Some(rate)) => rate,
                (Ended::AtLeast, Some(rate)) => format!("≥{rate}"),
                (Ended::CutShort, Some(rate)) => format!("≥{rate} so far"),
                (Ended::Below, _) => "no rate".to_owned(),
                (Ended::Unusable, _) => "unusable".to_owned(),
                (_, None) => "not known: cut short".to_owned(),
            };
            Text::plain(format!("{} {said}", answer.arm.label))
        };
        let said = std::iter::once(Text::plain(goal)).chain(found.answers.iter().map(each));
        Answer { label: Label::Limit, said: said.collect() }
    };
    searches::found(run, analysis).iter().map(one).collect()
}

/// What the client kept from being seen.
fn unknown(analysis: &Analysis) -> Option<Answer> {
    let closed = analysis.cells.iter().filter(|cell| !is_open(cell));
    let arms: Vec<&ArmAnalysis> =
        closed.flat_map(models).filter(|a| a.status == Status::Ok).collect();
    let bounded = arms.iter().filter(|arm| is_bounded(arm)).count();
    (bounded > 0).then(|| Answer {
        label: Label::Unknown,
        said: vec![
            Text::plain(format!(
                "the capacity of {bounded} of {}: their client was full first",
                arms.len()
            )),
            Text::code("--client-cpus").and(" gives it more"),
        ],
    })
}
