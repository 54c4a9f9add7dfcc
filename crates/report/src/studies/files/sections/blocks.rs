//! What a block costs by the cost model, and where larger blocks or more threads bring no more.

use iolens_document::table::{Entry, Table, Tone, left, right};
use iolens_document::{Fact, Node};
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, CellAnalysis, CostModel, PlateauAxis, ReadPlateau};

use super::numbers::{engine, scaled, time};
use crate::arms::{curves, methods};
use crate::groups::{distinct, grouped};
use crate::number::{self, InWords, NONE, percent};
use crate::sections::setting;
use crate::studies::files::facts;
use crate::words;

/// How the tables are read, and one for each curve.
pub(super) fn nodes(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let mut tables: Vec<Table> = Vec::new();
    for (curve, cells) in curves(analysis) {
        tables.extend(table(run, analysis, &curve, &cells));
    }
    if tables.is_empty() {
        return Vec::new();
    }
    let (unit, size) = (run.header.plan.study().unit(), words::size_of(&run.header.plan));
    let more = percent(analysis.delta);
    let said = format!(
        "Time of a {unit}, all threads together = fixed cost + size ÷ bandwidth. Half: the {size} \
         at which half of the time is the fixed cost. Flat: from here on larger ones are not {more} \
         faster."
    );
    let mut nodes = vec![Node::aside(said)];
    nodes.extend(tables.into_iter().map(Node::Table));
    nodes
}

fn table(run: &Run, analysis: &Analysis, curve: &Cell, cells: &[&CellAnalysis]) -> Option<Table> {
    let size = words::size_of(&run.header.plan);
    let per_unit = format!("per {} [95%]", run.header.plan.study().unit());
    let mut table = Table::of(words::curve(&run.header, curve), []);
    for label in labels(cells) {
        let is_its = |model: &&CostModel| model.curve == *curve && model.label == label;
        let model = analysis.cost_models.iter().find(is_its);
        let is_flat = |plateau: &&ReadPlateau| {
            plateau.axis == PlateauAxis::Size
                && plateau.from.curve() == *curve
                && plateau.label == label
        };
        let flat = analysis.read_plateaus.iter().find(is_flat);
        // Files that are copied have a cost where there is a line.
        if model.is_none() && (flat.is_none() || run.header.plan.copy().is_some()) {
            continue;
        }
        let note = model.and_then(holds).map(|said| table.note(&said));
        let [fixed, bandwidth, half] = model.map_or_else(|| [NONE; 3].map(Entry::from), fitted);
        let flat = flat.or_dash(|plateau| plateau.from.size.to_string());
        let engine = Entry { note, ..engine(analysis, &label) };
        let row = vec![
            left("engine", "", engine),
            left("fixed cost", &per_unit, fixed),
            left("bandwidth", "GiB/s [95%]", bandwidth),
            right("half", &size, half),
            right("flat", &size, flat),
        ];
        table.fill(false, row);
    }
    table.with_rows()
}

/// The engines of a curve that have numbers.
fn labels(cells: &[&CellAnalysis]) -> Vec<String> {
    let arms = cells.iter().flat_map(|cell| methods(cell)).filter(|arm| arm.figures.is_some());
    distinct(arms.map(|arm| arm.arm.label.clone()))
}

/// The line, faint where points are on none.
fn fitted(model: &CostModel) -> [Entry; 3] {
    let at_most = if model.fixed_is_upper_bound { "≤ " } else { "" };
    let bandwidth = facts::bandwidth(model);
    let half = number::bytes(model.half_size_bytes.value).to_string();
    let tone = if model.is_affine() { Tone::Plain } else { Tone::Faint };
    let shown = [
        format!("{at_most}{}", time(&model.fixed_ns)),
        bandwidth.or_dash(|found| scaled(&found, Bytes::GIB as f64, "")),
        half,
    ];
    shown.map(|text| Entry::toned(text, tone.clone()))
}

/// Where the line does not hold.
fn holds(model: &CostModel) -> Option<String> {
    let off = format!("{:+.0}% off at {}", 100.0 * model.worst_residual, model.worst_at);
    match model.breaks_at {
        _ if !model.is_affine() => Some(format!("not a line: {off}; this is the nearest one")),
        Some(size) => Some(format!("holds below {size}")),
        None => None,
    }
}

/// From how many threads on more of them bring no more, by engine.
pub(super) fn threads(run: &Run, analysis: &Analysis) -> Vec<Node> {
    if run.header.plan.threads.len() < 2 {
        return Vec::new();
    }
    let by_threads = |plateau: &&ReadPlateau| plateau.axis == PlateauAxis::Threads;
    let flat = analysis.read_plateaus.iter().filter(by_threads);
    let found = grouped(flat.map(|p| (p.label.as_str(), setting(run, &p.from))));
    let more = percent(analysis.delta);
    if found.is_empty() {
        let said = format!("No setting shows that more threads bring less than {more} more.");
        return vec![Node::say(said)];
    }
    let said = format!("More threads than these are not {more} faster.");
    let facts = found.into_iter().map(|(label, places)| Fact::new(label, places.join("; ")));
    vec![Node::aside(said), Node::Facts(facts.collect())]
}
