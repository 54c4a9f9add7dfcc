//! Crossovers: one row of tiles per curve and pair of arms, with which of the two is ahead by
//! more than δ at which sizes, and where nobody can tell.

use iolens_document::table::{Column, Entry, Table};
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, Crossover, CrossoverPoint, CrossoverShape, Estimate};

use super::style::{self, Look};
use super::sweep::{Curve, Sweep};
use super::tiles::{Tile, TileRow, Tiles};
use super::{Group, Marks, Plate, chart};
use crate::crossing::{self, Ahead};
use crate::groups::first_of_each;
use crate::number::{self, InWords};
use crate::{arms, words};

/// A pair of arms on one curve.
struct Pair<'a> {
    curve: &'a Curve<'a>,
    crossover: &'a Crossover,
    /// Labels of the first and the second arm.
    labels: [String; 2],
    /// Where both take the same time, as fresh trials have shown.
    same_at: Option<Estimate>,
}

/// The figure of one sweep; none without a pair.
pub(crate) fn figure(sweep: &Sweep<'_>) -> Option<Plate> {
    let analysis = sweep.analysis;
    let plan = &sweep.run.header.plan;
    let pairs: Vec<Pair> = sweep.curves.iter().flat_map(|curve| pairs(analysis, curve)).collect();
    let points = pairs.iter().flat_map(|pair| &pair.crossover.points);
    let mut sizes: Vec<Bytes> = points.map(|point| point.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (arm, size) = (plan.study().arm(), words::size_of(plan));
    let title = format!("Crossovers (which {arm} is ahead at which {size})");
    let is_looked_for = pairs.iter().any(|pair| pair.same_at.is_some());
    let how = format!(
        "each row compares two; solid: that one is ahead by more than {}, dashed: a tie, or too \
         close to call; numbers: time of the upper over that of the lower; behind them the band \
         between{}",
        number::percent(analysis.delta).replace(' ', ""),
        if is_looked_for { ", and where both take the same time, from fresh trials" } else { "" }
    );
    let looks = |pair: &Pair<'_>| {
        let arms = [&pair.crossover.first, &pair.crossover.second];
        arms.map(|label| style::of(arms::primitive(analysis, label)))
    };
    let legend = pairs.iter().flat_map(|pair| looks(pair).into_iter().zip(pair.labels.clone()));
    let tiles = Tiles {
        legend: first_of_each(legend.map(|item| (item.1.clone(), item))),
        axes: [size, format!("{arm}s")],
        columns: sizes.iter().map(Bytes::to_string).collect(),
        rows: pairs.iter().map(|pair| pair.row(looks(pair), &sizes, analysis.delta)).collect(),
    };
    let table = table(&pairs, &tiles, is_looked_for);
    (!pairs.is_empty()).then(|| {
        let said = [&*title, &how];
        sweep.plate(Group::Crossover, "crossovers", said, Marks::Tiles(tiles), table)
    })
}

fn pairs<'a>(analysis: &'a Analysis, curve: &'a Curve<'a>) -> impl Iterator<Item = Pair<'a>> {
    let of = curve.cells[0].cell.curve();
    let own = analysis.crossovers.iter().filter(move |c| c.curve == of && !c.points.is_empty());
    own.map(|crossover| Pair {
        curve,
        crossover,
        labels: [&crossover.first, &crossover.second].map(|arm| chart::shown(&curve.cells, arm)),
        same_at: crossing::crossing(analysis, crossover).and_then(|found| found.at_bytes),
    })
}

impl Pair<'_> {
    fn row(&self, looks: [Look; 2], sizes: &[Bytes], delta: f64) -> TileRow {
        let at = self.same_at.or_empty(|at| format!("; same time at {}", crossing::size(at)));
        let tile = |size: &Bytes| {
            let mut points = self.crossover.points.iter();
            Some(self.tile(points.find(|point| point.size == *size)?, looks, delta))
        };
        TileRow {
            above: self.curve.title.clone(),
            names: self.labels.to_vec(),
            tiles: sizes.iter().map(tile).collect(),
            behind: self.band(["upper", "lower"]) + &at,
        }
    }

    fn tile(&self, point: &CrossoverPoint, looks: [Look; 2], delta: f64) -> Tile {
        let [first, second] = &self.labels;
        let (looks, verdict) = match crossing::ahead(point, delta) {
            Ahead::First => (vec![looks[0]], format!("{first} is ahead")),
            Ahead::Second => (vec![looks[1]], format!("{second} is ahead")),
            Ahead::Nobody => (Vec::new(), "tie or unknown".to_owned()),
        };
        // Trials that both arms have.
        let cell = self.curve.cells.iter().find(|cell| cell.cell.size == point.size);
        let contrast = |label: &String| arms::labelled(cell?, label)?.contrast.as_ref();
        let arms = [&self.crossover.first, &self.crossover.second];
        let n = arms.into_iter().filter_map(contrast).map(|contrast| contrast.n).min();
        let below = number::ratio(point.ratio);
        let text = format!("{below} {}", point.simultaneous.or_empty(number::bracket));
        let hover = format!(
            "{}: time of {first} over that of {second}: {text} (simultaneous), n = {}, {verdict}",
            point.size,
            n.unwrap_or(0)
        );
        Tile { is_won: !looks.is_empty(), looks, below, text, hover }
    }

    /// The band between the two, as short as it can be said, with what the two
    /// are called.
    fn band(&self, [first, second]: [&str; 2]) -> String {
        let c = self.crossover;
        let size = |bytes: Option<Bytes>, open: &str, last: Bytes| {
            bytes.map_or_else(|| format!("{open} {last}"), |bytes| bytes.to_string())
        };
        match c.shape {
            CrossoverShape::FirstThroughout => format!("none: {first} ahead"),
            CrossoverShape::SecondThroughout => format!("none: {second} ahead"),
            CrossoverShape::NeitherAnywhere => "every size".to_owned(),
            CrossoverShape::Mixed => "no single band".to_owned(),
            CrossoverShape::Crosses
            | CrossoverShape::FirstThenUnknown
            | CrossoverShape::UnknownThenSecond => format!(
                "{} to {}",
                size(c.first_ahead_to, "<", c.smallest),
                size(c.second_ahead_from, ">", c.largest)
            ),
        }
    }
}

fn table(pairs: &[Pair<'_>], tiles: &Tiles, is_looked_for: bool) -> Table {
    let mut columns =
        vec![Column::right("threads", ""), Column::left("first", ""), Column::left("second", "")];
    columns.extend(tiles.columns.iter().map(|size| Column::left(size, "ratio [sim. 95%]")));
    columns.push(Column::left("tie or unknown", ""));
    columns.extend(is_looked_for.then(|| Column::left("same time at", "[95%]")));
    let caption = "Time of the first arm over that of the second: above 1 the second is ahead";
    let mut table = Table::new(caption, columns);
    for (pair, row) in pairs.iter().zip(&tiles.rows) {
        let ratios = row.tiles.iter().map(|tile| tile.as_ref().or_dash(|tile| tile.text.clone()));
        let keys = std::iter::once(pair.curve.threads.to_string()).chain(pair.labels.clone());
        let entries = keys.chain(ratios).chain([pair.band(["first", "second"])]);
        let at = is_looked_for.then(|| pair.same_at.or_dash(crossing::size));
        table.push(entries.chain(at).map(Entry::from).collect());
    }
    table
}
