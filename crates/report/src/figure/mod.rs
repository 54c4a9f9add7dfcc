//! Figures of a run and its analysis, each with a table of the same numbers. A figure is a
//! [`Plate`] first, which says all that is drawn: its title, how to read it, and [`Marks`] of
//! one kind as plain data. Each kind has a renderer, which draws a plate once for the page and
//! once for a paper. The writer is ours because a figure has to follow the page's light and dark
//! through classes, label its curves directly, answer a hover with n, interval and verdict, and
//! mark sizes at powers of two.

use std::borrow::Cow;

// The files of this folder begin with `use super::*`: all speak of these.
use iolens_document::table::{Column, Entry, Table, Tone};
use iolens_model::arm::{Arm, Role};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::copy::CopySetting;
use iolens_model::file::{FileSetting, WriteSetting};
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, CostModel, Estimate, Interval,
};
use iolens_stats::attribution::Explanation;

use crate::groups::{first_of_each, grouped};
use crate::number::{self, NONE};
use crate::parts::{self, Part};
use crate::studies::StudyReport;
use crate::{arms, words};
use bars::Bars;
use chart::{Along, Chart, Kind, Panel, Point, Series};
use metric::Metric;
use scale::Scale;
use sheet::{Drawing, Medium, Sheet};
use style::Look;
use svg::{Spot, Svg};

pub(crate) mod bars;
pub(crate) mod chart;
mod crossover;
mod draw;
pub mod extremes;
mod flame;
pub(crate) mod metric;
mod rows;
pub(crate) mod scale;
mod sheet;
pub(crate) mod style;
mod svg;
#[cfg(test)]
mod tests;
mod tiles;

pub use sheet::Paper;
pub(crate) use sheet::page_style;

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
    #[must_use]
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
    pub(crate) title: String,
    /// How to read it.
    pub(crate) how: String,
    /// Machine, software and run.
    pub(crate) footer: [String; 2],
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
    Tiles(tiles::Tiles),
    Bars(Bars),
    Stacks(Vec<flame::Stacks>),
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
        let (footer, leads) =
            (words::footer(&run.header, cell), StudyReport::of(plan.study()).leads);
        Plate { stem, group, title, how, footer, marks, table, leads, family: None, has_narrow }
    }

    fn draw(&self, medium: Medium) -> Drawing {
        match &self.marks {
            Marks::Chart(chart) => draw::draw(self, chart, medium),
            Marks::Tiles(all) => tiles::draw(self, all, medium),
            Marks::Bars(all) => bars::draw(self, all, medium),
            Marks::Stacks(stacks) => flame::draw(self, stacks, medium),
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
            title: self.title,
            group: self.group,
            table: self.table,
            leads: self.leads,
            family: self.family,
        }
    }
}

/// Every figure of a run, in the order of [`Group`]; within a group the first
/// topology and mode first. Their files are as wide as a page.
#[must_use]
pub fn all(run: &Run, analysis: &Analysis) -> Vec<Figure> {
    all_on(Paper::Page, run, analysis)
}

/// The same with files of another size.
#[must_use]
pub fn all_on(paper: Paper, run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let analysis = &analysis.shown();
    let mut plates = (StudyReport::of(run.header.plan.study()).plates)(run, analysis);
    let explained = iolens_stats::attribution::explain(&run.profiles, &run.header.plan.baseline);
    plates.extend(explained.iter().filter_map(|one| bars::of_classes(run, one)));
    plates.extend(explained.iter().filter_map(|one| flame::figure(run, one)));
    plates.sort_by_key(|plate| plate.group);
    plates.into_iter().map(|plate| plate.print(paper)).collect()
}

/// The parts of a run that have figures of their own, each with its analysis;
/// the whole run where one figure can show all arms.
fn shown(analysis: &Analysis) -> Vec<(Option<Part>, Cow<'_, Analysis>)> {
    let parts = parts::parts(analysis);
    if parts.is_empty() {
        return vec![(None, Cow::Borrowed(analysis))];
    }
    let own = parts.iter().map(|part| Cow::Owned(part.of(analysis))).collect::<Vec<_>>();
    parts.into_iter().map(Some).zip(own).collect()
}

/// The figures of a study with sizes: those beside each other, and of each sweep those that all
/// studies have and its own.
pub(crate) fn by_size(
    run: &Run,
    analysis: &Analysis,
    own: fn(&Sweep<'_>) -> Vec<Plate>,
    beside: fn(&[Sweep<'_>]) -> Vec<Plate>,
) -> Vec<Plate> {
    let of = |sweeps: &[Sweep<'_>]| {
        let mut plates = beside(sweeps);
        for sweep in sweeps {
            let common = [crossover::figure, tiles::figure, metric::ratios];
            plates.extend(common.iter().filter_map(|plate| plate(sweep)));
            plates.extend(own(sweep));
        }
        plates
    };
    let parts = shown(analysis);
    parts.iter().flat_map(|(part, own)| of(&sweeps(run, own, part.as_ref()))).collect()
}

/// The families of a run that have figures of their own, in their order: the
/// word and the name of each.
#[must_use]
pub fn families(analysis: &Analysis) -> Vec<(&'static str, &'static str)> {
    let parts = parts::parts(analysis).into_iter();
    let mut families: Vec<_> = parts.map(|part| (part.id, part.group())).collect();
    families.dedup();
    families
}

/// Cells that differ in two things at most, such as size and thread count.
pub(crate) struct Sweep<'a> {
    pub(crate) run: &'a Run,
    pub(crate) analysis: &'a Analysis,
    /// Which arms of the run these are; `None` for all.
    pub(crate) part: Option<&'a Part>,
    /// What the cells have in common; of what they differ in it says nothing.
    pub(crate) setting: Cell,
    /// The panels of most figures.
    pub(crate) curves: Vec<Curve<'a>>,
}

/// Cells that differ in one thing.
#[derive(Clone)]
pub(crate) struct Curve<'a> {
    /// What tells them from those of other curves.
    pub(crate) title: String,
    pub(crate) threads: u32,
    pub(crate) cells: Vec<&'a CellAnalysis>,
}

impl<'a> Sweep<'a> {
    /// The same with other curves.
    pub(crate) fn with(&self, curves: Vec<Curve<'a>>) -> Sweep<'a> {
        Sweep { setting: self.setting.clone(), curves, ..*self }
    }

    /// The cells of all curves.
    pub(crate) fn cells(&self) -> Vec<&'a CellAnalysis> {
        self.curves.iter().flat_map(|curve| &curve.cells).copied().collect()
    }

    /// The cells by size, sizes rising.
    pub(crate) fn by_size(&self) -> Vec<(Bytes, Vec<&'a CellAnalysis>)> {
        let mut sizes = grouped(self.cells().into_iter().map(|cell| (cell.cell.size, cell)));
        sizes.sort_by_key(|(size, _)| *size);
        sizes
    }

    /// One row per curve, one panel in it per metric that was measured; equal units share a
    /// scale.
    pub(crate) fn panels(&self, along: Along, metrics: &[Metric]) -> Vec<Panel> {
        let cells = self.cells();
        let measured = || metrics.iter().filter(|metric| metric.is_in(&cells));
        let panels = self.curves.iter().flat_map(|Curve { title, cells, .. }| {
            measured().map(move |metric| {
                let title = match metrics {
                    [_] => title.clone(),
                    _ => format!("{}, {title}", metric.name),
                };
                metric.panel(self.run, along, cells, title)
            })
        });
        let mut panels: Vec<Panel> = panels.collect();
        chart::share_scales(&mut panels);
        panels
    }

    /// A figure of a chart of intervals, if that has a panel; `metric` is the middle of its
    /// file name.
    pub(crate) fn figure(
        &self,
        group: Group,
        metric: &str,
        [title, how]: [&str; 2],
        chart: Chart,
    ) -> Option<Plate> {
        let table = chart.table(self.title(title));
        let how = format!("bands: 95% intervals{how}");
        (!chart.panels.is_empty()).then(|| {
            let plate = self.plate(group, metric, [title, &how], Marks::Chart(chart), table);
            // One curve makes few figures, so there is room for each twice.
            Plate { has_narrow: plate.has_narrow || self.curves.len() == 1, ..plate }
        })
    }

    /// A title that says, behind what it shows, of which arms that is.
    pub(crate) fn title(&self, title: &str) -> String {
        match self.part {
            Some(part) => format!("{title} · {}", part.name()),
            None => title.to_owned(),
        }
    }

    pub(crate) fn plate(
        &self,
        group: Group,
        metric: &str,
        [title, how]: [&str; 2],
        marks: Marks,
        table: Table,
    ) -> Plate {
        let stem = stem(&self.run.header.plan, &self.setting, metric);
        let stem = stem + &self.part.map(Part::stem).unwrap_or_default();
        let said = [self.title(title), how.to_owned()];
        Plate {
            family: self.part.map(|part| part.id),
            leads: group == Group::Crossover || metric.starts_with("ratio"),
            ..Plate::new(self.run, &self.setting, (group, stem), said, marks, table)
        }
    }
}

pub(crate) fn sweeps<'a>(
    run: &'a Run,
    analysis: &'a Analysis,
    part: Option<&'a Part>,
) -> Vec<Sweep<'a>> {
    let curves = arms::curves(analysis).into_iter().map(|(curve, cells)| {
        let (title, threads) = (words::panel(&run.header, &curve), curve.threads);
        (Cell { threads: 0, ..curve }, Curve { title, threads, cells })
    });
    let sweep = |(setting, curves)| Sweep { run, analysis, part, setting, curves };
    grouped(curves).into_iter().map(sweep).collect()
}

/// The name of a figure: its study, where, what it shows, and the fixed axes.
fn stem(plan: &Plan, cell: &Cell, metric: &str) -> String {
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
        let word = crate::words::brief(cell, word);
        format!("-{}", word.replace(' ', "-").to_lowercase())
    })
    .collect()
}
