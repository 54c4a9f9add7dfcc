//! Cells of a run that figures show together: sweeps and their curves.

use iolens_document::table::Table;
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::chart::{Along, Chart};
use super::{Group, Marks, Plate, stem};
use crate::groups::grouped;
use crate::parts::Part;
use crate::{arms, words};

/// Cells that differ in two things at most, such as size and thread count.
pub(crate) struct Sweep<'a> {
    pub(crate) run: &'a Run,
    pub(crate) analysis: &'a Analysis,
    /// Which arms of the run these are; `None` for all.
    pub(crate) part: Option<&'a Part>,
    /// What their sizes are on an axis.
    pub(crate) sizes: Along,
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
        let how = format!("bands: 95% intervals, each by itself{how}");
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
    sizes: Along,
    part: Option<&'a Part>,
) -> Vec<Sweep<'a>> {
    let curves = arms::curves(analysis).into_iter().map(|(curve, cells)| {
        let (title, threads) = (words::panel(&run.header, &curve), curve.threads);
        (Cell { threads: 0, ..curve }, Curve { title, threads, cells })
    });
    let sweep = |(setting, curves)| Sweep { run, analysis, part, sizes, setting, curves };
    grouped(curves).into_iter().map(sweep).collect()
}
