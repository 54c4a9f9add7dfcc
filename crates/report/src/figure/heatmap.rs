//! Which arm is cheapest at which size and thread count: one tile per cell,
//! with the arm's hue and marker where it is surely ahead of every other one,
//! and the markers of all that may be cheapest where nothing is.

use iolens_model::family::Condition;

use super::*;
use crate::files;
use crate::standing::{self, Candidate, Standing, standing};

/// What a tile says.
struct Tile<'a> {
    /// All that may be cheapest; the one that is, for sure, and the next.
    arms: Vec<Candidate<'a>>,
    is_won: bool,
    /// A word or number below the markers.
    below: String,
    /// The same in words, for the hover and the table.
    text: String,
}

/// The figure of one sweep.
pub(super) fn figure(sweep: &Sweep<'_>) -> Option<Figure> {
    // One thread count has it in the crossovers.
    if sweep.by_size().len() < 2 || sweep.curves.len() < 2 || alone::is_alone(sweep.cells()) {
        return None;
    }
    let draw = |medium| draw(sweep, medium);
    Some(sweep.drawn(Group::Crossover, "cheapest", draw, table(sweep)))
}

/// The title, in the words of the study.
fn title(Sweep { run, setting, .. }: &Sweep<'_>) -> String {
    let plan = &run.header.plan;
    let (arm, size) = (words::arm_of(plan), words::size_of(plan));
    let title = format!("Fastest {arm} by {size} and threads (with its speed)");
    let state = files::state(setting).map(str::to_owned);
    let state = words::as_found(&run.header, setting, Vec::from_iter(state));
    words::joined(std::iter::once(title).chain(state).collect())
}

fn tile<'a>(sweep: &Sweep<'_>, cell: &'a CellAnalysis) -> Tile<'a> {
    let name = |arm: &Candidate| chart::shown(&[cell], arm.label);
    let (word, arms) = match standing(cell, sweep.analysis.delta, sweep.run.header.plan.quick) {
        Standing::Cheapest { best, nearest } => {
            let below = match best.contrast {
                Some(contrast) => format!("{}×", number::ratio(contrast.ratio)),
                None => "baseline".to_owned(),
            };
            let text = format!("{}, {below}; next is {}", name(&best), name(&nearest));
            return Tile { arms: vec![best, nearest], is_won: true, below, text };
        }
        Standing::Nothing(text) => {
            return Tile { arms: Vec::new(), is_won: false, below: NONE.to_owned(), text };
        }
        Standing::Tie { best, others } => ("tie", [vec![best], others].concat()),
        Standing::Unseparated { best, others } => ("open", [vec![best], others].concat()),
        Standing::NoInterval { best, .. } => ("one trial", vec![best]),
        Standing::Alone(only) => ("alone", vec![only]),
    };
    let text = format!("{word}: {}", number::list(&Vec::from_iter(arms.iter().map(name))));
    Tile { arms, is_won: false, below: word.to_owned(), text }
}

/// `; send: 1.06 [1.05, 1.07], n = 12` of the arms that have a contrast.
fn evidence(arms: &[Candidate]) -> String {
    let judged = arms.iter().filter_map(|arm| Some((arm.label, arm.contrast?)));
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

const LEFT: f64 = 66.0;
const GAP: f64 = 4.0;
const HEIGHT: f64 = 46.0;
/// The name of what goes down stands above the tiles.
const ABOVE: f64 = 22.0;

/// Sizes from left to right, and in a column of a paper, which is too narrow for what a tile
/// says, from top to bottom.
fn draw(sweep: &Sweep<'_>, medium: Medium) -> Drawing {
    const PITCH_MAX: f64 = 120.0;
    let (header, cells) = (&sweep.run.header, sweep.cells());
    let sizes = sweep.by_size().iter().map(|(size, _)| size.to_string()).collect();
    let threads = sweep.curves.iter().map(|curve| curve.threads.to_string()).collect();
    let size = words::size_of(&header.plan);
    let axes: [(Vec<String>, &str); 2] = match medium.is_narrow() {
        true => [(threads, "threads"), (sizes, &size)],
        false => [(sizes, &size), (threads, "threads")],
    };
    let [(columns, across), (rows, down)] = &axes;
    let pitch = ((medium.width() - LEFT) / columns.len() as f64).min(PITCH_MAX);
    let width = LEFT + pitch * columns.len() as f64;
    let left_out = standing::conditional_in(cells.iter().copied());
    let how = format!(
        "solid: ahead of all others, with its speed vs {}; dashed: a tie, or too close to call{}",
        header.plan.baseline,
        without(&left_out)
    );
    let mut sheet = Sheet::new(medium, width, &sweep.title(&title(sweep)), &how);
    let arms = chart::arms(&cells).into_iter().filter(|arm| {
        chart::is_compared(arm) && left_out.iter().all(|left_out| left_out.label != arm.label)
    });
    sheet.legend(arms.map(|arm| (style::of(&arm.primitive), chart::shown(&cells, &arm.label))));
    let top = sheet.y + ABOVE;
    let svg = &mut sheet.svg;
    svg.text(0.0, sheet.y + 14.0, "tn", down);
    for (i, label) in rows.iter().enumerate() {
        svg.text(LEFT - 14.0, top + HEIGHT * i as f64 + 28.0, "tk ae", label);
    }
    let bottom = top + HEIGHT * rows.len() as f64;
    for (i, label) in columns.iter().enumerate() {
        svg.text(LEFT + pitch * (i as f64 + 0.5) - GAP / 2.0, bottom + 14.0, "tk am", label);
    }
    svg.text((LEFT + width) / 2.0, bottom + 32.0, "tn am", across);
    for cell in cells {
        let own = [cell.cell.size.to_string(), cell.cell.threads.to_string()];
        let at = |labels: &[String]| labels.iter().position(|label| own.contains(label));
        let [column, row] = [columns, rows].map(|labels| at(labels).unwrap_or(0) as f64);
        let corner = (LEFT + pitch * column, top + HEIGHT * row);
        let subject = words::subject(header, &cell.cell);
        draw_tile(svg, corner, pitch - GAP, &tile(sweep, cell), &subject);
    }
    sheet.y = bottom + 38.0;
    sheet.finish(&words::footer(header, &sweep.setting))
}

fn draw_tile(svg: &mut Svg, (x, y): Spot, width: f64, tile: &Tile, subject: &str) {
    const APART: f64 = 14.0;
    let Tile { arms, is_won, below, text } = tile;
    let hover = format!("{subject}: {text}{}", evidence(arms));
    let looks = arms.iter().map(|arm| style::of(arm.primitive));
    let looks: Vec<Look> = looks.take(if *is_won { 1 } else { arms.len() }).collect();
    let class = match looks.as_slice() {
        [won] if *is_won => format!("f c-{} tile", won.hue),
        _ => "none".to_owned(),
    };
    svg.tile((x, y), (width, HEIGHT - GAP), &class, &hover);
    let middle = x + width / 2.0;
    // As many markers as fit; the hover and the table name all.
    let fit = (1..=looks.len()).rev().find(|n| APART * *n as f64 <= width - 8.0).unwrap_or(1);
    let first = middle - APART * (fit.min(looks.len()) as f64 - 1.0) / 2.0;
    for (i, look) in looks.into_iter().take(fit).enumerate() {
        svg.marker((first + APART * i as f64, y + 15.0), look, false);
    }
    let has_room = svg::width(below, 11.5) < width;
    svg.text(middle, y + 35.0, "tk am", if has_room { below } else { "" });
}

fn table(sweep: &Sweep<'_>) -> Table {
    let threads = || sweep.curves.iter().map(|curve| curve.threads);
    let mut columns = vec![Column::right("size", "")];
    columns.extend(threads().map(|threads| Column::left(&words::threads(threads), "")));
    let mut table = Table::new(title(sweep), columns);
    for (size, cells) in sweep.by_size() {
        let entry = |threads| match cells.iter().find(|cell| cell.cell.threads == threads) {
            Some(cell) => tile(sweep, cell).text.into(),
            None => Entry::toned(NONE, Tone::Faint),
        };
        let size = Entry::from(size.to_string());
        table.push(std::iter::once(size).chain(threads().map(entry)).collect());
    }
    table
}
