//! Which arm is cheapest at which size and thread count: one tile per cell,
//! with the arm's hue and marker where it is surely ahead of every other one,
//! and the markers of all that may be cheapest where nothing is.

use iolens_model::family::Condition;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{CellAnalysis, Contrast};

use super::paper::Medium;
use super::sheet::{Drawing, Sheet};
use super::style::{self, Look};
use super::svg;
use super::{Curve, Figure, Group, Sweep, chart};
use crate::number::{self, NONE};
use crate::standing::{self, Candidate, Standing, standing};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;
use crate::{alone, files};

/// What a tile says.
struct Tile {
    /// Look of the winner; none where there is none.
    winner: Option<Look>,
    /// Looks of all that may be cheapest.
    arms: Vec<Look>,
    /// A word or number below the markers.
    below: String,
    /// The same in words, for the hover and the table.
    text: String,
    /// What it rests on, for the hover.
    evidence: String,
}

/// The title, in the words of the study.
fn title(run: &Run, sweep: &Sweep<'_>) -> String {
    let plan = &run.header.plan;
    let (arm, size) = (words::arm_of(plan), words::size_of(plan));
    let title = format!("Fastest {arm} by {size} and threads (with its speed)");
    let state = files::state(&sweep.setting).map(str::to_owned);
    let state = words::as_found(&run.header, &sweep.setting, Vec::from_iter(state));
    words::joined(std::iter::once(title).chain(state).collect())
}

/// The figure of one sweep.
pub(super) fn figure(sweep: &Sweep<'_>) -> Option<Figure> {
    // One thread count has it in the crossovers.
    if sweep.by_size().len() < 2 || sweep.curves.len() < 2 || alone::is_alone(sweep.cells()) {
        return None;
    }
    let run = sweep.run;
    let tile = |cell: &CellAnalysis| tile(cell, sweep.analysis.delta, run.header.plan.quick);
    let draw = |medium| draw(run, sweep, medium, &tile);
    Some(sweep.drawn(Group::Crossover, "cheapest", draw, table(run, sweep, &tile)))
}

fn tile(cell: &CellAnalysis, delta: f64, quick: bool) -> Tile {
    let look = |arm: &Candidate| style::of(arm.primitive);
    let name = |arm: &Candidate| chart::shown(&[cell], arm.label);
    let several = |word: &str, best: Candidate, others: &[Candidate]| {
        let all: Vec<Candidate> = [&[best], others].concat();
        let names: Vec<String> = all.iter().map(name).collect();
        Tile {
            winner: None,
            arms: all.iter().map(look).collect(),
            below: word.to_owned(),
            text: format!("{word}: {}", number::list(&names)),
            evidence: evidence(&all),
        }
    };
    match standing(cell, delta, quick) {
        Standing::Cheapest { best, nearest } => {
            let below = match best.contrast {
                Some(contrast) => format!("{}×", number::ratio(contrast.ratio)),
                None => "baseline".to_owned(),
            };
            Tile {
                winner: Some(look(&best)),
                arms: vec![look(&best)],
                text: format!("{}, {below}; next is {}", name(&best), name(&nearest)),
                below,
                evidence: evidence(&[best, nearest]),
            }
        }
        Standing::Tie { best, others } => several("tie", best, &others),
        Standing::Unseparated { best, others } => several("open", best, &others),
        Standing::NoInterval { best, .. } => several("one trial", best, &[]),
        Standing::Alone(only) => several("alone", only, &[]),
        Standing::Nothing(why) => {
            let below = NONE.to_owned();
            Tile { winner: None, arms: Vec::new(), below, text: why, evidence: evidence(&[]) }
        }
    }
}

/// `; send: 1.06 [1.05, 1.07], n = 12` of the arms that have a contrast.
fn evidence(arms: &[Candidate]) -> String {
    let one = |(label, contrast): (&str, &Contrast)| {
        format!("; {label}: {}, n = {}", number::contrast(contrast), contrast.n)
    };
    let judged = arms.iter().filter_map(|arm| Some((arm.label, arm.contrast?)));
    let all: String = judged.map(one).collect();
    if all.is_empty() { "; n = 0".to_owned() } else { all }
}

/// `; send, which needs a contiguous message, is left out`.
fn without(left_out: &[Candidate]) -> String {
    let contiguous = |arm: &Candidate| arm.condition == Some(Condition::Contiguous);
    let needs = match left_out.iter().all(contiguous) {
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

fn draw(
    run: &Run,
    sweep: &Sweep<'_>,
    medium: Medium,
    tile: &dyn Fn(&CellAnalysis) -> Tile,
) -> Drawing {
    let grid = Grid::of(sweep, medium);
    let cells = sweep.cells();
    let left_out = standing::conditional_in(cells.iter().copied());
    let how = format!(
        "solid: ahead of all others, with its speed vs {}; dashed: a tie, or too close to call{}",
        run.header.plan.baseline,
        without(&left_out)
    );
    let mut sheet = Sheet::new(medium, grid.width(), &sweep.title(&title(run, sweep)), &how);
    let items = chart::compared(&cells)
        .iter()
        .filter(|arm| left_out.iter().all(|left_out| left_out.label != arm.label))
        .map(|arm| (style::of(&arm.primitive), chart::shown(&cells, &arm.label)))
        .collect::<Vec<_>>();
    sheet.legend(&items.iter().map(|(look, label)| (*look, label.as_str())).collect::<Vec<_>>());
    grid.axes(&mut sheet, run);
    for Curve { threads, cells, .. } in &sweep.curves {
        for cell in cells {
            let (x, y) = grid.place(*threads, cell.cell.size);
            let hover = words::subject(&run.header, &cell.cell);
            draw_tile(&mut sheet, (x, y), (grid.pitch - GAP, HEIGHT - GAP), &tile(cell), &hover);
        }
    }
    sheet.y += grid.height() + 38.0;
    sheet.finish(&words::footer(&run.header, &sweep.setting))
}

/// Where the tiles stand: sizes from left to right, and in a column of a paper, which is too
/// narrow for what a tile says, from top to bottom.
struct Grid {
    sizes: Vec<Bytes>,
    threads: Vec<u32>,
    sizes_go_down: bool,
    /// Between the left edges of two tiles.
    pitch: f64,
}

const LEFT: f64 = 66.0;
const GAP: f64 = 4.0;
const HEIGHT: f64 = 46.0;
/// The name of what goes down stands above the tiles.
const ABOVE: f64 = 22.0;

impl Grid {
    fn of(sweep: &Sweep<'_>, medium: Medium) -> Grid {
        const PITCH_MAX: f64 = 120.0;
        let sizes = sweep.by_size().into_iter().map(|(size, _)| size).collect();
        let threads = sweep.curves.iter().map(|curve| curve.threads).collect();
        let sizes_go_down = medium.is_narrow();
        let mut grid = Grid { sizes, threads, sizes_go_down, pitch: PITCH_MAX };
        let columns = grid.labels().0.len().max(1) as f64;
        grid.pitch = ((medium.width() - LEFT) / columns).min(PITCH_MAX);
        grid
    }

    /// What stands below the columns and beside the rows.
    fn labels(&self) -> (Vec<String>, Vec<String>) {
        let sizes = self.sizes.iter().map(Bytes::to_string).collect();
        let threads = self.threads.iter().map(u32::to_string).collect();
        if self.sizes_go_down { (threads, sizes) } else { (sizes, threads) }
    }

    fn width(&self) -> f64 {
        LEFT + self.pitch * self.labels().0.len() as f64
    }

    fn height(&self) -> f64 {
        ABOVE + HEIGHT * self.labels().1.len() as f64
    }

    /// The corner of a tile, from where the grid begins.
    fn place(&self, threads: u32, size: Bytes) -> (f64, f64) {
        let along = self.sizes.iter().position(|known| *known == size).unwrap_or(0);
        let of = self.threads.iter().position(|known| *known == threads).unwrap_or(0);
        let (column, row) = if self.sizes_go_down { (of, along) } else { (along, of) };
        (LEFT + self.pitch * column as f64, ABOVE + HEIGHT * row as f64)
    }

    fn axes(&self, sheet: &mut Sheet, run: &Run) {
        let (columns, rows) = self.labels();
        let size = words::size_of(&run.header.plan);
        let (down, across) = match self.sizes_go_down {
            true => (size.as_str(), "threads"),
            false => ("threads", size.as_str()),
        };
        let (top, bottom) = (sheet.y, sheet.y + self.height());
        sheet.svg.text(0.0, top + 14.0, "tn", down);
        for (i, label) in rows.iter().enumerate() {
            let y = top + ABOVE + HEIGHT * i as f64 + 28.0;
            sheet.svg.text(LEFT - 14.0, y, "tk ae", label);
        }
        for (i, label) in columns.iter().enumerate() {
            let x = LEFT + self.pitch * (i as f64 + 0.5) - GAP / 2.0;
            sheet.svg.text(x, bottom + 14.0, "tk am", label);
        }
        let middle = LEFT + self.pitch * columns.len() as f64 / 2.0;
        sheet.svg.text(middle, bottom + 32.0, "tn am", across);
    }
}

/// A tile with its corner from where the grid begins.
fn draw_tile(
    sheet: &mut Sheet,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    tile: &Tile,
    hover: &str,
) {
    const APART: f64 = 14.0;
    let y = sheet.y + y;
    let class = match tile.winner {
        Some(look) => format!("f c-{} tile", look.hue),
        None => "none".to_owned(),
    };
    sheet.svg.tile(
        (x, y),
        (width, height),
        &class,
        &format!("{hover}: {}{}", tile.text, tile.evidence),
    );
    let middle = x + width / 2.0;
    // As many markers as fit; the hover and the table name all.
    let room = ((width - 8.0) / APART).max(1.0);
    let fit = tile.arms.iter().take_while({
        let mut used = 0.0;
        move |_| {
            used += 1.0;
            used <= room
        }
    });
    let shown: Vec<&Look> = fit.collect();
    let first = middle - APART * (shown.len() as f64 - 1.0) / 2.0;
    for (i, look) in shown.into_iter().enumerate() {
        let at = (first + APART * i as f64, y + 15.0);
        sheet.svg.marker(at, *look, false);
    }
    let below = if svg::width(&tile.below, 11.5) < width { tile.below.as_str() } else { "" };
    sheet.svg.text(middle, y + 35.0, "tk am", below);
}

fn table(run: &Run, sweep: &Sweep<'_>, tile: &dyn Fn(&CellAnalysis) -> Tile) -> Table {
    let mut columns = vec![Column::right("size", "")];
    columns
        .extend(sweep.curves.iter().map(|curve| Column::left(&words::threads(curve.threads), "")));
    let mut table = Table::new(title(run, sweep), columns);
    for (size, cells) in sweep.by_size() {
        let mut row: Vec<Entry> = vec![size.to_string().into()];
        for Curve { threads, .. } in &sweep.curves {
            let cell = cells.iter().find(|cell| cell.cell.threads == *threads);
            row.push(match cell {
                Some(cell) => tile(cell).text.into(),
                None => Entry::toned(NONE, Tone::Faint),
            });
        }
        table.push(row);
    }
    table
}
