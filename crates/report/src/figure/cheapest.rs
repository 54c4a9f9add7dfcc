//! Which arm is cheapest at which size and thread count: one tile per cell, with the arm's hue
//! and marker where it is surely ahead of every other one, and the markers of all that may be
//! cheapest where nothing is.

use iolens_document::table::{Column, Entry, Table, Tone};
use iolens_model::family::Condition;
use iolens_model::units::Bytes;
use iolens_stats::analysis::CellAnalysis;

use super::sweep::Sweep;
use super::tiles::{Tile, TileRow, Tiles};
use super::{Group, Marks, Plate, chart, style};
use crate::number::{self, NONE};
use crate::standing::{self, Candidate, Standing, standing};
use crate::{arms, words};

/// The figure of one sweep.
pub(crate) fn figure(sweep: &Sweep<'_>) -> Option<Plate> {
    let (header, cells) = (&sweep.run.header, sweep.cells());
    // One thread count has it in the crossovers.
    if sweep.by_size().len() < 2 || sweep.curves.len() < 2 || arms::is_alone(sweep.cells()) {
        return None;
    }
    let left_out = standing::conditional_in(cells.iter().copied());
    let how = format!(
        "solid: ahead of all others, with its speed vs {}; dashed: a tie, or too close to call{}",
        header.plan.baseline,
        without(&left_out)
    );
    let arms = chart::arms(&cells).into_iter().filter(|arm| {
        arms::is_method(arm) && left_out.iter().all(|left_out| left_out.label != arm.label)
    });
    let legend = arms.map(|arm| (style::of(&arm.primitive), chart::shown(&cells, &arm.label)));
    let sizes = sweep.by_size();
    let rows = sweep.curves.iter().map(|curve| {
        let tile = |(size, _): &(Bytes, _)| {
            let cell = curve.cells.iter().find(|cell| cell.cell.size == *size)?;
            Some(tile(sweep, cell))
        };
        let names = vec![curve.threads.to_string()];
        TileRow { names, tiles: sizes.iter().map(tile).collect(), ..TileRow::default() }
    });
    let tiles = Tiles {
        legend: legend.collect(),
        axes: [words::size_of(&header.plan), "threads".to_owned()],
        columns: sizes.iter().map(|(size, _)| size.to_string()).collect(),
        rows: rows.collect(),
    };
    let title = title(sweep);
    let table = table(sweep, &title, &tiles);
    Some(sweep.plate(Group::Crossover, "cheapest", [&title, &how], Marks::Tiles(tiles), table))
}

/// The title, in the words of the study.
fn title(Sweep { run, setting, .. }: &Sweep<'_>) -> String {
    let plan = &run.header.plan;
    let (arm, size) = (plan.study().arm(), words::size_of(plan));
    let title = format!("Fastest {arm} by {size} and threads (with its speed)");
    let state = words::file_state(setting).map(str::to_owned);
    let state = words::as_found(&run.header, setting, Vec::from_iter(state));
    words::joined(std::iter::once(title).chain(state).collect())
}

fn tile(sweep: &Sweep<'_>, cell: &CellAnalysis) -> Tile {
    let header = &sweep.run.header;
    let name = |arm: &Candidate| chart::shown(&[cell], arm.label);
    let unsure = |word: &str, arms: Vec<_>| {
        let text = format!("{word}: {}", number::list(arms.iter().map(name)));
        (word.to_owned(), text, arms)
    };
    let standing = standing(cell, sweep.analysis.delta, header.plan.quick);
    let is_won = matches!(standing, Standing::Cheapest { .. });
    let (below, text, arms) = match standing {
        Standing::Cheapest { best, nearest } => {
            let below = match best.contrast {
                Some(contrast) => format!("{}×", number::ratio(contrast.ratio)),
                None => "baseline".to_owned(),
            };
            let text = format!("{}, {below}; next is {}", name(&best), name(&nearest));
            (below, text, vec![best, nearest])
        }
        Standing::Nothing(text) => (NONE.to_owned(), text, Vec::new()),
        Standing::Tie { best, others } => unsure("tie", [vec![best], others].concat()),
        Standing::Unseparated { best, others } => unsure("open", [vec![best], others].concat()),
        Standing::NoInterval(best) => unsure("one trial", vec![best]),
        Standing::Alone(only) => unsure("alone", vec![only]),
    };
    let hover = format!("{}: {text}{}", words::subject(header, &cell.cell), evidence(&arms));
    let looks = arms.iter().map(|arm| style::of(arm.primitive));
    let looks = looks.take(if is_won { 1 } else { arms.len() }).collect();
    Tile { looks, is_won, below, text, hover }
}

/// `; send: 1.06 [1.05, 1.07], n = 12` of the arms that have a contrast.
fn evidence(arms: &[Candidate]) -> String {
    let ranked = arms.iter().filter(|arm| arm.is_ranked());
    let judged = ranked.filter_map(|arm| Some((arm.label, arm.contrast?)));
    let all: String = judged
        .map(|(label, of)| format!("; {label}: {}, n = {}", number::contrast(of), of.n))
        .collect();
    if all.is_empty() { "; n = 0".to_owned() } else { all }
}

/// `; send, which needs a contiguous message, is left out`.
fn without(left_out: &[Candidate]) -> String {
    let mut conditions = left_out.iter().map(|arm| arm.condition);
    let needs = match conditions.all(|of| of == Some(Condition::Contiguous)) {
        true => "a contiguous message",
        false => "a message of a certain kind",
    };
    let labels: Vec<&str> = left_out.iter().map(|arm| arm.label).collect();
    match labels.as_slice() {
        [] => String::new(),
        [one] => format!("; {one}, which needs {needs}, is left out"),
        several => format!("; {}, which need {needs}, are left out", several.join(", ")),
    }
}

fn table(sweep: &Sweep<'_>, title: &str, all: &Tiles) -> Table {
    let counts = sweep.curves.iter().map(|curve| words::threads(curve.threads));
    let mut columns = vec![Column::right("size", "")];
    columns.extend(counts.map(|threads| Column::left(&threads, "")));
    let mut table = Table::new(title, columns);
    for (nth, size) in all.columns.iter().enumerate() {
        let entry = |row: &TileRow| match &row.tiles[nth] {
            Some(tile) => Entry::from(&tile.text),
            None => Entry::toned(NONE, Tone::Faint),
        };
        table.push(std::iter::once(size.into()).chain(all.rows.iter().map(entry)).collect());
    }
    table
}
