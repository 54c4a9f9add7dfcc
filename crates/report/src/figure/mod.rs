//! Figures of a run and its analysis, each with a table of the same numbers. A figure is a
//! [`Plate`] first, which says all that is drawn: its title, how to read it, and [`Marks`] of
//! one kind as plain data. Each kind has a renderer, which draws a plate once for the page and
//! once for a paper. The writer is ours because a figure has to follow the page's light and dark
//! through classes, label its curves directly, answer a hover with n, interval and verdict, and
//! mark sizes at powers of two.

pub(crate) mod bars;
pub(crate) mod chart;
mod cheapest;
mod crossover;
mod draw;
pub(crate) mod explained;
pub mod extremes;
mod flame;
pub(crate) mod metric;
mod rows;
pub(crate) mod scale;
mod sheet;
pub(crate) mod style;
mod svg;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
mod tiles;

use iolens_document::table::Table;
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::copy::CopySetting;
use iolens_model::file::{FileSetting, WriteSetting};
use iolens_model::plan::Plan;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;

use self::bars::Bars;
use self::chart::Chart;
use self::flame::Stacks;
pub use self::sheet::Paper;
pub(crate) use self::sheet::page_style;
use self::sheet::{Drawing, Medium, Said};
use self::tiles::Tiles;
use crate::number::InWords;
use crate::words;

/// A figure with its table twin.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// File name without extension: study, topology, metric, fixed parameters.
    pub file_stem: String,
    /// Title, with the unit.
    pub title: String,
    /// Which part of a report it belongs to.
    pub group: Group,
    /// A standalone SVG of the size of a [`Paper`]: light, with its own styles.
    pub svg: String,
    /// The same for the width of the HTML page, without styles, which come from
    /// the page around it.
    pub inline: String,
    /// The same again for a screen that is narrow, its panels one below the other; `None`
    /// for figures that keep their width there and scroll.
    pub narrow: Option<String>,
    /// The same numbers as a table.
    pub table: Table,
    /// Whether it is one of those that are read first.
    pub leads: bool,
    /// The family whose arms it shows; `None` where it shows all arms of a run.
    pub family: Option<&'static str>,
    /// Lines of different arms in it, baseline and A/A copy among them; zero
    /// in a figure that is made of other marks.
    pub lines: usize,
}

/// The part of a report that a figure belongs to, in the order of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Which arm from which size on.
    Crossover,
    /// Ratio, goodput, time per message.
    Main,
    /// Where the time goes: CPU, caches, switches.
    Time,
    /// Round trips.
    Latency,
    /// What every processor did.
    Processors,
    /// Against the thread count.
    Threads,
    /// All metrics of one setting.
    Summary,
}

impl Group {
    /// Every part.
    pub const ALL: [Group; 7] = [
        Group::Crossover,
        Group::Main,
        Group::Time,
        Group::Latency,
        Group::Processors,
        Group::Threads,
        Group::Summary,
    ];

    /// Its heading; empty for what is read first.
    pub fn heading(self) -> &'static str {
        match self {
            Group::Crossover | Group::Main => "",
            Group::Time => "Where the time goes",
            Group::Latency => "Latency",
            Group::Processors => "Use of the processors",
            Group::Threads => "Against the thread count",
            Group::Summary => "Overview",
        }
    }
}

/// What a figure says, before anything is drawn.
pub(crate) struct Plate {
    pub(crate) stem: String,
    pub(crate) group: Group,
    pub(crate) said: Said,
    pub(crate) marks: Marks,
    pub(crate) table: Table,
    pub(crate) leads: bool,
    pub(crate) family: Option<&'static str>,
    /// Whether a page has it for narrow screens too.
    pub(crate) has_narrow: bool,
}

/// The marks of a figure, of one kind.
pub(crate) enum Marks {
    Chart(Chart),
    Tiles(Tiles),
    Bars(Bars),
    Stacks(Vec<Stacks>),
}

impl Plate {
    /// A plate of all arms, about a cell or what cells have in common.
    pub(crate) fn new(
        run: &Run,
        cell: &Cell,
        (group, stem): (Group, String),
        [title, how]: [String; 2],
        marks: Marks,
        table: Table,
    ) -> Plate {
        let plan = &run.header.plan;
        // Pages of `net` have too many charts to draw each twice, unless they are of one size.
        let has_narrow = match &marks {
            Marks::Chart(chart) => words::is_of_files(plan) || chart.only_place().is_some(),
            Marks::Bars(_) => true,
            Marks::Tiles(_) | Marks::Stacks(_) => false,
        };
        let said = Said { title, how, footer: words::footer(&run.header, cell) };
        Plate { stem, group, said, marks, table, leads: false, family: None, has_narrow }
    }

    fn draw(&self, medium: Medium) -> Drawing {
        match &self.marks {
            Marks::Chart(chart) => {
                let place = chart.only_place();
                let rows = place.and_then(|place| rows::draw(&self.said, chart, place, medium));
                rows.unwrap_or_else(|| draw::draw(&self.said, chart, medium))
            }
            Marks::Tiles(all) => tiles::draw(&self.said, all, medium),
            Marks::Bars(all) => bars::draw(&self.said, all, medium),
            Marks::Stacks(stacks) => flame::draw(&self.said, stacks, medium),
        }
    }

    fn print(self, paper: Paper) -> Figure {
        let inline = |medium| self.draw(medium).inline();
        Figure {
            svg: paper.print(|medium| self.draw(medium)),
            inline: inline(Medium::Page),
            narrow: self.has_narrow.then(|| inline(Medium::Narrow)),
            lines: match &self.marks {
                Marks::Chart(chart) => chart.named().len(),
                _ => 0,
            },
            file_stem: self.stem,
            title: self.said.title,
            group: self.group,
            table: self.table,
            leads: self.leads,
            family: self.family,
        }
    }
}

/// The name of a figure: its study, where, what it shows, and the fixed axes.
pub(crate) fn stem(plan: &Plan, cell: &Cell, metric: &str) -> String {
    let (study, rest) = (plan.study(), stem_rest(plan, cell));
    match &cell.setting {
        Setting::Net(NetSetting { topology, mode, working_set, .. }) => {
            format!("{study}-{topology}-{metric}-{mode}-{working_set}{rest}")
        }
        Setting::Syscall(_) | Setting::Ab(_) => format!("{study}-{metric}{rest}"),
        Setting::Server(ServerSetting { topology, service, length, .. }) => {
            let service = service.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            let workers = match plan.threads.as_slice() {
                [_] => String::new(),
                _ => format!("-{}-workers", cell.threads),
            };
            format!("{study}-{topology}-{metric}-{service}-{length}{workers}")
        }
        Setting::Copy(CopySetting { cache, .. }) => format!("{study}-{metric}-{cache}{rest}"),
        Setting::File(FileSetting { cache, pattern, consumer, .. }) => {
            format!("{study}-{metric}-{cache}-{pattern}-{consumer}{rest}")
        }
        Setting::Write(WriteSetting { destination, pattern, .. }) => {
            format!("{study}-{metric}-{destination}-{pattern}{rest}")
        }
    }
}

/// What of the other axes is in a file name: where it tells figures apart.
fn stem_rest(plan: &Plan, cell: &Cell) -> String {
    let always = cell.words();
    let told = plan.told_apart(cell).into_iter().filter(|word| !always.contains(word));
    told.map(|word| {
        let word = words::brief(cell, word);
        format!("-{}", word.replace(' ', "-").to_lowercase())
    })
    .collect()
}

/// `-64kib`; empty where a cell has no size.
pub(crate) fn size_stem(cell: &Cell) -> String {
    let size = cell.own_size().map(|size| size.to_string().replace(' ', "").to_lowercase());
    size.or_empty(|size| format!("-{size}"))
}
