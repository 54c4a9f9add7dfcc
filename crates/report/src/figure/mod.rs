//! Figures: each is one file that turns a run and its analysis into a
//! `chart::Chart` and a table with the same numbers; `draw` makes SVG of
//! a chart, once for the page and once for a paper. The writer is ours
//! because a figure has to follow the page's light and dark through classes,
//! label its curves directly, answer a hover with n, interval and verdict, and
//! mark sizes at powers of two.

use std::borrow::Cow;

use iolens_model::axes::Study;
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::copy::CopySetting;
use iolens_model::file::{FileSetting, WriteSetting};
use iolens_model::plan::Plan;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use crate::parts::{self, Part};
use crate::table::Table;
use crate::words;

mod attribution;
mod by_size;
mod cache;
pub(crate) mod chart;
mod clip;
mod copies;
mod cpu;
mod crossover;
pub(crate) mod draw;
pub mod extremes;
mod files;
mod flame;
mod goodput;
mod heatmap;
mod labels;
mod latency;
mod message_time;
pub(crate) mod metric;
mod paper;
mod plot;
mod processors;
mod ratio;
mod rows;
pub(crate) mod scale;
mod searches;
mod servers;
pub(crate) mod sheet;
pub(crate) mod style;
mod summary;
pub(crate) mod svg;
mod switches;
#[cfg(test)]
mod tests;
mod threads;

pub(crate) use paper::Medium;
pub use paper::Paper;
use sheet::Drawing;
pub(crate) use sheet::page_style;

/// How every figure begins to say how it is read.
const INTERVALS: &str = "bands: 95% intervals";

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
    /// The same again for a screen that is narrow, its panels one below the other; null
    /// for figures that keep their width there and scroll.
    pub narrow: Option<String>,
    /// The same numbers as a table.
    pub table: Table,
    /// Whether it is one of those that are read first.
    pub leads: bool,
    /// The family whose arms it shows; null where it shows all arms of a run.
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
    let mut figures = Vec::new();
    match run.header.plan.study() {
        Study::Net | Study::File | Study::Write | Study::Copy => {
            for (part, analysis) in shown(analysis) {
                figures.extend(of_part(paper, run, &analysis, part.as_ref()));
            }
        }
        Study::Syscall => figures.extend(crate::calls::figures(paper, run, analysis)),
        Study::Server => figures.extend(servers::all(paper, run, analysis)),
    }
    let explained = iolens_stats::attribution::explain(&run.profiles, &run.header.plan.baseline);
    let mut sampled = attribution::figures(paper, run, &explained);
    sampled.extend(flame::figures(paper, run, &explained));
    figures.extend(sampled);
    figures.sort_by_key(|figure: &Figure| figure.group);
    figures
}

impl Figure {
    /// A figure of all arms, without curves, that is not among those read first.
    fn new(
        paper: Paper,
        group: Group,
        file_stem: String,
        title: &str,
        draw: impl Fn(Medium) -> Drawing,
        table: Table,
    ) -> Figure {
        Figure {
            file_stem,
            title: title.to_owned(),
            group,
            inline: draw(Medium::Page).inline(),
            svg: paper.print(draw),
            narrow: None,
            table,
            family: None,
            lines: 0,
            leads: false,
        }
    }
}

/// A figure of a study of calls; `metric` is the middle of its file name.
pub(crate) fn of_calls(
    paper: Paper,
    run: &Run,
    metric: &str,
    title: &str,
    draw: impl Fn(Medium) -> Drawing,
    table: Table,
) -> Figure {
    let stem = format!("{}-{metric}", run.header.plan.study());
    Figure { leads: true, ..Figure::new(paper, Group::Main, stem, title, draw, table) }
}

/// The parts of a run that have figures of their own, each with its analysis;
/// the whole run where one figure can show all arms.
fn shown(analysis: &Analysis) -> Vec<(Option<Part>, Cow<'_, Analysis>)> {
    let parts = parts::parts(analysis);
    if parts.is_empty() {
        return vec![(None, Cow::Borrowed(analysis))];
    }
    let own = |part: Part| {
        let analysis = part.of(analysis);
        (Some(part), Cow::Owned(analysis))
    };
    parts.into_iter().map(own).collect()
}

fn of_part(paper: Paper, run: &Run, analysis: &Analysis, part: Option<&Part>) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    if words::is_of_files(&run.header.plan) {
        let sweeps = sweeps(paper, analysis, part);
        for sweep in &sweeps {
            figures.extend(crossover::figure(run, analysis, sweep));
            if sweep.curves.len() > 1 {
                figures.extend(heatmap::figure(run, analysis, sweep));
            }
        }
        figures.extend(match run.header.plan.study() {
            Study::Copy => copies::all(run, analysis, &sweeps),
            _ => files::all(run, analysis, &sweeps),
        });
        return figures;
    }
    for sweep in sweeps(paper, analysis, part) {
        figures.extend(crossover::figure(run, analysis, &sweep));
        figures.extend(heatmap::figure(run, analysis, &sweep));
        figures.extend(ratio::figure(run, analysis, &sweep));
        figures.extend(goodput::figure(run, &sweep));
        // Of a single size the summary says it all.
        if sweep.by_size().len() > 1 {
            figures.extend(message_time::figure(run, analysis, &sweep));
            figures.extend(cpu::figure(run, &sweep));
            figures.extend(cache::figure(run, &sweep));
            figures.extend(switches::figure(run, &sweep));
            figures.extend(latency::figure(run, &sweep));
        }
        figures.extend(threads::figures(run, &sweep));
        figures.extend(summary::default(run, &sweep));
    }
    figures
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

/// Curves that differ in their thread count only: the panels of one figure.
pub(crate) struct Sweep<'a> {
    /// What they have in common; its threads and size mean nothing.
    pub(crate) setting: Cell,
    /// Thread count and cells of each curve.
    pub(crate) curves: Vec<(u32, Vec<&'a CellAnalysis>)>,
    /// Which arms of the run these are; null for all.
    part: Option<&'a Part>,
    /// What the files of its figures are for.
    paper: Paper,
}

impl<'a> Sweep<'a> {
    /// The title of the panel of a thread count.
    fn panel(&self, run: &Run, threads: u32) -> String {
        words::panel(&run.header, &Cell { threads, ..self.setting.clone() })
    }

    /// The cells of all curves.
    fn cells(&self) -> Vec<&'a CellAnalysis> {
        self.curves.iter().flat_map(|(_, cells)| cells).copied().collect()
    }

    /// The cells by size, sizes rising.
    fn by_size(&self) -> Vec<(Bytes, Vec<&'a CellAnalysis>)> {
        let mut sizes: Vec<(Bytes, Vec<&CellAnalysis>)> = Vec::new();
        for cell in self.cells() {
            let size = cell.cell.size;
            match sizes.iter_mut().find(|(known, _)| *known == size) {
                Some((_, cells)) => cells.push(cell),
                None => sizes.push((size, vec![cell])),
            }
        }
        sizes.sort_by_key(|(size, _)| *size);
        sizes
    }

    /// A figure of a chart.
    fn figure(&self, run: &Run, group: Group, metric: &str, chart: chart::Chart) -> Figure {
        let titled = chart::Chart { title: self.title(&chart.title), ..chart };
        let draw = |medium| draw::draw(&titled, medium);
        let figure = self.finish(run, group, metric, &titled.title, draw, titled.table());
        // Pages of `net` have too many figures to draw each twice, unless they are of one size.
        let is_drawn_twice = words::is_of_files(&run.header.plan) || titled.only_place().is_some();
        let narrow = is_drawn_twice.then(|| draw(Medium::Narrow).inline());
        Figure { lines: titled.lines(), narrow, ..figure }
    }

    /// A title that says, behind what it shows, of which arms that is.
    fn title(&self, title: &str) -> String {
        match self.part {
            Some(part) => format!("{title} · {}", part.name()),
            None => title.to_owned(),
        }
    }

    /// A figure from its parts; `metric` is the middle of its file name.
    fn finish(
        &self,
        run: &Run,
        group: Group,
        metric: &str,
        title: &str,
        draw: impl Fn(Medium) -> Drawing,
        table: Table,
    ) -> Figure {
        let stem = stem(&run.header.plan, &self.setting, metric);
        let stem = stem + &self.part.map(Part::stem).unwrap_or_default();
        Figure {
            family: self.part.map(|part| part.id),
            leads: group == Group::Crossover || metric.starts_with("ratio"),
            ..Figure::new(self.paper, group, stem, title, draw, table)
        }
    }
}

/// The name of a figure: its study, where, what it shows, and the fixed axes.
fn stem(plan: &Plan, cell: &Cell, metric: &str) -> String {
    let (study, rest) = (plan.study(), stem_rest(plan, cell));
    match &cell.setting {
        Setting::Net(NetSetting { topology, mode, working_set, .. }) => {
            format!("{study}-{topology}-{metric}-{mode}-{working_set}{rest}")
        }
        Setting::Syscall(_) => format!("{study}-{metric}{rest}"),
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

fn sweeps<'a>(paper: Paper, analysis: &'a Analysis, part: Option<&'a Part>) -> Vec<Sweep<'a>> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    for (curve, cells) in crate::results::curves(analysis) {
        let setting = Cell { threads: 0, ..curve.clone() };
        match sweeps.iter_mut().find(|sweep| sweep.setting == setting) {
            Some(sweep) => sweep.curves.push((curve.threads, cells)),
            None => {
                let curves = vec![(curve.threads, cells)];
                sweeps.push(Sweep { setting, curves, part, paper });
            }
        }
    }
    sweeps
}
