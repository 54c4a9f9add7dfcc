//! Which model for how many connections and which service: a row for each stretch of
//! connection counts at which the same can be said.

use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::{COST, Kind, Kinds, LATENCY, is_open, read};
use crate::arms::span;
use crate::figure::metric::Metric;
use crate::number::{NONE, optional, ratio};
use crate::standing::{Standing, standing};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// One number of connections at one load, of one kind of models.
struct Step {
    kind: Option<Kind>,
    connections: u32,
    choice: String,
    best: Option<Best>,
}

/// The cheapest, or who has the least.
struct Best {
    primitive: String,
    cost: Option<f64>,
    ratio: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
}

/// The decision table.
pub(crate) fn decision(run: &Run, analysis: &Analysis) -> Table {
    let plan = &run.header.plan;
    let kinds = Kinds::of(analysis);
    let columns = vec![
        Column::left("load", ""),
        Column::right("connections", ""),
        Column::left("cheapest per request", ""),
        Column::right("server CPU", "µs per request"),
        Column::right("ratio", &format!("to {}", plan.baseline)),
        Column::right("p50", "µs"),
        Column::right("p99", "µs"),
    ];
    let mut table = Table::new("Cheapest model by server CPU per request", columns);
    for (load, kind, steps) in curves(analysis, &kinds) {
        let of_kind = kind.map_or_else(String::new, |kind| format!(", {}", kind.name()));
        let name = format!("{}{of_kind}", words::load(plan, load));
        for (i, same) in steps.chunk_by(|a, b| a.choice == b.choice).enumerate() {
            let row = row(if i == 0 { &name } else { "" }, same);
            if i == 0 { table.push_group(row) } else { table.push(row) }
        }
    }
    table
}

/// A load, a kind of models, and its steps with connections rising.
type Curve<'a> = (&'a Cell, Option<Kind>, Vec<Step>);

fn curves<'a>(analysis: &'a Analysis, kinds: &Kinds<'_>) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve> = Vec::new();
    // At an offered rate all models do the same work, so that comes first.
    let (open, closed): (Vec<&CellAnalysis>, Vec<&CellAnalysis>) =
        analysis.cells.iter().partition(|cell| is_open(cell));
    for cell in open.into_iter().chain(closed) {
        for (kind, view) in kinds.cells(cell) {
            let Some(step) = step(&view, kind, analysis.delta) else { continue };
            let same = |(known, of, _): &&mut Curve| {
                *of == step.kind && is_load(known) == is_load(&cell.cell)
            };
            match curves.iter_mut().find(same) {
                Some((.., steps)) => steps.push(step),
                None => curves.push((&cell.cell, kind, vec![step])),
            }
        }
    }
    for (.., steps) in &mut curves {
        steps.sort_by_key(|step| step.connections);
    }
    curves
}

/// What cells of one curve have in common.
fn is_load(cell: &Cell) -> Option<(String, u32)> {
    let server = cell.server()?;
    let words = [
        server.load_in_words(),
        server.service.clone(),
        server.length_in_words(),
        server.topology.to_string(),
    ];
    Some((words.join(", "), cell.threads))
}

fn step(view: &CellAnalysis, kind: Option<Kind>, delta: f64) -> Option<Step> {
    let connections = view.cell.server()?.connections;
    let cell = view.by_cpu();
    let standing: Standing = standing(&cell, delta);
    let best = standing.best().and_then(|best| {
        let arm = cell.arms.iter().find(|arm| arm.arm.label == best.label)?;
        let value = |metric: &Metric| read(metric, arm).map(|estimate| estimate.value);
        Some(Best {
            primitive: best.primitive.to_owned(),
            cost: value(&COST),
            ratio: best.contrast.map(|contrast| contrast.ratio),
            p50: value(&LATENCY[0]),
            p99: value(&LATENCY[1]),
        })
    });
    Some(Step { kind, connections, choice: standing.brief(), best })
}

fn row(load: &str, steps: &[Step]) -> Vec<Entry> {
    let ends = [steps.first(), steps.last()].map(|step| step.map_or(0, |step| step.connections));
    let connections = match ends {
        [first, last] if first == last => first.to_string(),
        [first, last] => format!("{first} to {last}"),
    };
    let bests = || steps.iter().filter_map(|step| step.best.as_ref());
    let over = |of: fn(&Best) -> Option<f64>, text: fn(f64) -> String| match span(
        bests().filter_map(of),
    ) {
        Some((low, high)) if text(low) == text(high) => text(low),
        Some((low, high)) => format!("{} to {}", text(low), text(high)),
        None => NONE.to_owned(),
    };
    let digits = |value: f64| optional(Some(value));
    let choice = steps.first().map(|step| step.choice.clone()).unwrap_or_default();
    let tone = match bests().next() {
        Some(best) => crate::figure::style::tone(&best.primitive),
        None => Tone::Faint,
    };
    vec![
        load.into(),
        connections.into(),
        Entry::toned(choice, tone),
        over(|best| best.cost, digits).into(),
        over(|best| best.ratio, ratio).into(),
        over(|best| best.p50, digits).into(),
        over(|best| best.p99, digits).into(),
    ]
}
