//! Tiles in rows and columns: each with the hues and markers of who is ahead, or may be.

use super::sheet::{Drawing, Medium, Said, Sheet};
use super::style::Look;
use super::svg::{self, Spot, Svg};

/// Tiles in rows and columns.
pub(crate) struct Tiles {
    pub(crate) legend: Vec<(Look, String)>,
    /// What is across, and what goes down.
    pub(crate) axes: [String; 2],
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<TileRow>,
}

#[derive(Default)]
pub(crate) struct TileRow {
    /// What stands above it and others.
    pub(crate) above: String,
    pub(crate) names: Vec<String>,
    /// In each column; `None` where there is nothing to say.
    pub(crate) tiles: Vec<Option<Tile>>,
    /// What stands behind them.
    pub(crate) behind: String,
}

pub(crate) struct Tile {
    /// Of the arm that is ahead, or of all that may be.
    pub(crate) looks: Vec<Look>,
    pub(crate) is_won: bool,
    /// A word or number below the markers.
    pub(crate) below: String,
    /// The same in words, for the table.
    pub(crate) text: String,
    pub(crate) hover: String,
}

const GAP: f64 = 4.0;
const HEIGHT: f64 = 42.0;
/// The name of what goes down stands above the tiles, as do headings.
const ABOVE: f64 = 22.0;

/// Where the parts of rows stand.
struct Grid {
    /// Room for the names of rows, and for what is behind them.
    names: f64,
    behind: f64,
    pitch: f64,
}

impl Grid {
    const PITCH_MIN: f64 = 22.0;
    const PITCH_MAX: f64 = 120.0;

    /// So many rows beside each other.
    fn of(all: &Tiles, medium: Medium, beside: usize) -> Grid {
        let names = all.rows.iter().flat_map(|row| &row.names).map(|name| &**name);
        let names = (svg::widest(names, 12.0) + 20.0).max(66.0);
        // Where it is narrow that stands below its row.
        let behind = match medium.is_narrow() {
            true => 0.0,
            false => svg::widest(all.rows.iter().map(|row| &*row.behind), 11.0),
        };
        let room = medium.width() / beside as f64 - names - behind;
        let pitch = (room / all.columns.len() as f64).min(Grid::PITCH_MAX);
        Grid { names, behind, pitch }
    }
}

/// With as few rows beside each other as fit the height.
pub(crate) fn draw(said: &Said, all: &Tiles, medium: Medium) -> Drawing {
    let grids = (1..=4).map(|beside| (beside, Grid::of(all, medium, beside)));
    let grids = grids.filter(|(beside, grid)| *beside == 1 || grid.pitch >= Grid::PITCH_MIN);
    let drawings = grids.map(|(beside, grid)| draw_in(said, all, medium, beside, &grid));
    medium.fitting(drawings).expect("one row beside no other is always drawn")
}

fn draw_in(said: &Said, all: &Tiles, medium: Medium, beside: usize, grid: &Grid) -> Drawing {
    let width = grid.names + grid.pitch * all.columns.len() as f64 + grid.behind;
    let mut sheet = Sheet::new(said, medium, width * beside as f64);
    sheet.legend(all.legend.iter().map(|(look, label)| (*look, &**label)));
    let (top, mut lowest) = (sheet.y, sheet.y);
    for (nth, rows) in all.rows.chunks(all.rows.len().div_ceil(beside).max(1)).enumerate() {
        sheet.y = top;
        draw_rows(&mut sheet, all, rows, width * nth as f64, grid);
        lowest = lowest.max(sheet.y);
    }
    sheet.y = lowest;
    sheet.finish()
}

fn draw_rows(sheet: &mut Sheet<'_>, all: &Tiles, rows: &[TileRow], from: f64, grid: &Grid) {
    let [across, down] = &all.axes;
    let (left, pitch) = (from + grid.names, grid.pitch);
    let right = left + pitch * all.columns.len() as f64;
    sheet.svg.text(from, sheet.y + 14.0, "tn", down);
    sheet.y += ABOVE;
    let mut last = "";
    for TileRow { above, names, tiles, behind } in rows {
        if above != last {
            sheet.svg.text(from, sheet.y + 14.0, "tp", above);
            sheet.y += ABOVE;
            last = above;
        }
        let middle = sheet.y + 25.0;
        let first = middle - 8.0 * (names.len() as f64 - 1.0);
        for (i, name) in names.iter().enumerate() {
            sheet.svg.text(left - 14.0, first + 16.0 * i as f64, "tk ae", name);
        }
        for (i, tile) in tiles.iter().enumerate() {
            let corner = (left + pitch * i as f64, sheet.y);
            tile.iter().for_each(|tile| draw_tile(&mut sheet.svg, corner, pitch - GAP, tile));
        }
        sheet.y += HEIGHT;
        if grid.behind > 0.0 {
            sheet.svg.text(right, middle, "td", behind);
        } else if !behind.is_empty() {
            sheet.svg.text(left, sheet.y + 8.0, "td", behind);
            sheet.y += 18.0;
        }
    }
    let widest = svg::widest(all.columns.iter().map(|label| &**label), 11.5) + 6.0;
    let step = (1..all.columns.len()).find(|step| widest <= pitch * *step as f64).unwrap_or(1);
    for (i, label) in all.columns.iter().enumerate().step_by(step) {
        let x = left + pitch * (i as f64 + 0.5) - GAP / 2.0;
        sheet.svg.text(x, sheet.y + 14.0, "tk am", label);
    }
    sheet.svg.text(f64::midpoint(left, right), sheet.y + 32.0, "tn am", across);
    sheet.y += 38.0;
}

fn draw_tile(svg: &mut Svg, (x, y): Spot, width: f64, tile: &Tile) {
    const APART: f64 = 14.0;
    let Tile { looks, is_won, below, hover, .. } = tile;
    let class = match &looks[..] {
        [won] if *is_won => format!("f c-{} tile", won.hue),
        _ => "none".to_owned(),
    };
    svg.tile((x, y), (width, HEIGHT - GAP), &class, hover);
    let middle = x + width / 2.0;
    // As many markers as fit; the hover and the table name all.
    let fit = (1..=looks.len()).rev().find(|n| APART * *n as f64 <= width - 8.0).unwrap_or(1);
    let first = middle - APART * (fit.min(looks.len()) as f64 - 1.0) / 2.0;
    for (i, look) in looks.iter().take(fit).enumerate() {
        svg.marker((first + APART * i as f64, y + 13.0), *look, false);
    }
    let has_room = svg::width(below, 11.5) < width;
    svg.text(middle, y + 32.0, "tk am", if has_room { below } else { "" });
}
