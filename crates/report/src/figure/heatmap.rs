//! Which arm is cheapest at which size and thread count: one tile per cell,
//! with the arm's hue and marker where it is surely ahead of every other one,
//! and the markers of all that may be cheapest where nothing is.

use iolens_model::family::Condition;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::sheet::{Drawing, Medium, Sheet};
use super::style::{self, Look};
use super::svg::{self, Anchor};
use super::{Figure, Group, Sweep, chart};
use crate::number::{self, NONE};
use crate::standing::{self, Candidate, Standing, standing};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

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
}

/// The title, in the words of the study.
fn title(run: &Run, sweep: &Sweep<'_>) -> String {
    let plan = &run.header.plan;
    let (arm, size, unit) = (words::arm_of(plan), words::size_of(plan), plan.study().unit());
    let title = format!("Cheapest {arm} by {size} and thread count (least ns per {unit})");
    match sweep.setting.cache().map(|cache| cache.to_string()) {
        Some(cache) => format!("{title}, {}", words::as_found(&run.header, &sweep.setting, cache)),
        None => title,
    }
}

/// The figure of one sweep.
pub(super) fn figure(run: &Run, analysis: &Analysis, sweep: &Sweep<'_>) -> Option<Figure> {
    let sizes = sweep.by_size();
    if sizes.len() < 2 && sweep.curves.len() < 2 {
        return None;
    }
    let tile = |cell: &CellAnalysis| tile(cell, analysis.delta);
    let draw = |medium| draw(run, sweep, medium, &tile);
    let title = sweep.title(&title(run, sweep));
    Some(sweep.finish(run, Group::Crossover, "cheapest", &title, draw, table(run, sweep, &tile)))
}

fn tile(cell: &CellAnalysis, delta: f64) -> Tile {
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
        }
    };
    match standing(cell, delta) {
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
            }
        }
        Standing::Tie { best, others } => several("tie", best, &others),
        Standing::Unseparated { best, others } => several("open", best, &others),
        Standing::NoInterval { best, .. } => several("one trial", best, &[]),
        Standing::Nothing(why) => {
            let below = NONE.to_owned();
            Tile { winner: None, arms: Vec::new(), below, text: why }
        }
    }
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
    const LEFT: f64 = 66.0;
    const GAP: f64 = 4.0;
    const HEIGHT: f64 = 46.0;
    let sizes = sweep.by_size();
    let pitch = ((medium.width() - LEFT) / sizes.len() as f64).min(120.0);
    let width = LEFT + pitch * sizes.len() as f64;
    let cells = sweep.cells();
    let left_out = standing::conditional_in(cells.iter().copied());
    let how = format!(
        "filled: surely ahead of every other arm, by however little, with its speed against {}; \
         tie: within δ; open: any of these may be cheapest{}",
        run.header.plan.baseline,
        without(&left_out)
    );
    let mut sheet = Sheet::new(medium, width, &sweep.title(&title(run, sweep)), &how);
    let items = chart::compared(&cells)
        .iter()
        .filter(|arm| left_out.iter().all(|left_out| left_out.label != arm.label))
        .map(|arm| (style::of(&arm.primitive), chart::shown(&cells, &arm.label)))
        .collect::<Vec<_>>();
    sheet.legend(&items);
    sheet.svg.text(0.0, sheet.y + 14.0, Anchor::Start, "tn", "threads");
    sheet.y += 22.0;
    for (threads, cells) in &sweep.curves {
        sheet.svg.text(LEFT - 14.0, sheet.y + 28.0, Anchor::End, "tk", &threads.to_string());
        for cell in cells {
            let column = sizes.iter().position(|(size, _)| *size == cell.cell.size);
            let x = LEFT + pitch * column.unwrap_or(0) as f64;
            let hover = words::subject(&run.header, &cell.cell);
            draw_tile(&mut sheet, (x, pitch - GAP, HEIGHT - GAP), &tile(cell), &hover);
        }
        sheet.y += HEIGHT;
    }
    for (i, (size, _)) in sizes.iter().enumerate() {
        let x = LEFT + pitch * (i as f64 + 0.5) - GAP / 2.0;
        sheet.svg.text(x, sheet.y + 14.0, Anchor::Middle, "tk", &size.to_string());
    }
    let middle = LEFT + pitch * sizes.len() as f64 / 2.0;
    sheet.svg.text(middle, sheet.y + 32.0, Anchor::Middle, "tn", &words::size_of(&run.header.plan));
    sheet.y += 38.0;
    sheet.finish(&words::footer(&run.header, &sweep.setting))
}

fn draw_tile(sheet: &mut Sheet, (x, width, height): (f64, f64, f64), tile: &Tile, hover: &str) {
    const APART: f64 = 14.0;
    let y = sheet.y;
    let class = match tile.winner {
        Some(look) => format!("f c-{} tile", look.hue),
        None => "none".to_owned(),
    };
    sheet.svg.tile((x, y), (width, height), &class, &format!("{hover}: {}", tile.text));
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
        sheet.svg.marker(at, look.marker, &format!("f s c-{} mark", look.hue));
    }
    let below = if svg::width(&tile.below, 11.5) < width { tile.below.as_str() } else { "" };
    sheet.svg.text(middle, y + 35.0, Anchor::Middle, "tk", below);
}

fn table(run: &Run, sweep: &Sweep<'_>, tile: &dyn Fn(&CellAnalysis) -> Tile) -> Table {
    let mut columns = vec![Column::right("size", "")];
    columns.extend(sweep.curves.iter().map(|(n, _)| Column::left(&words::threads(*n), "")));
    let mut table = Table::new(title(run, sweep), columns);
    for (size, cells) in sweep.by_size() {
        let mut row: Vec<Entry> = vec![size.to_string().into()];
        for (threads, _) in &sweep.curves {
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
