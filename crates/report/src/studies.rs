//! What reports have of each study: a folder each, and an entry each. This is the only list of
//! studies here.

pub mod ab;
pub(crate) mod files;
pub(crate) mod net;
pub(crate) mod server;
pub(crate) mod syscall;
#[cfg(test)]
pub(crate) mod tests;

use iolens_document::table::Table;
use iolens_document::{Node, Screen, Section, Text};
use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use crate::figure::chart::Along;
use crate::figure::{Figure, Plate};
use crate::findings::Ranking;
use crate::records::columns::StudyColumns;
use crate::sections::Form;

/// A study on screens, on pages, in figures and in exports.
pub(crate) struct StudyReport {
    /// What its trials are counted by, where there are several settings.
    pub(crate) per: &'static str,
    /// What an arm that does nothing does once.
    pub(crate) nothing: &'static str,
    /// What settings may have in common, in the words of a screen.
    pub(crate) common: fn(&Cell) -> Vec<String>,
    /// Fills in what its screens have.
    pub(crate) screen: fn(&mut Screen, &Run, &Analysis),
    /// What to type next, of a run that was cut short or was not.
    pub(crate) next: fn(&Analysis, bool) -> Vec<Text>,
    /// What its page asks.
    pub(crate) question: &'static str,
    /// What a run answers, in a few words; `None` where that takes more.
    pub(crate) claim: fn(&Analysis, &[Ranking]) -> Option<String>,
    pub(crate) sections: fn(&Run, &Analysis, Form) -> Vec<Section>,
    /// What its page ends with.
    pub(crate) last: fn(&Run, &Analysis) -> Option<Section>,
    /// A setting by itself.
    pub(crate) setting: OfSetting,
    /// Its figures, before they are drawn.
    pub(crate) plates: fn(&Run, &Analysis) -> Vec<Plate>,
    /// What its sizes are in figures.
    pub(crate) sizes: Along,
    /// Whether all its figures are read first.
    pub(crate) leads: bool,
    /// The figures in their order on a page, as many as have room in so many bytes.
    pub(crate) figures: fn(&Run, &Analysis, Vec<Figure>, usize) -> Vec<Node>,
    /// After which section they stand.
    pub(crate) after: &'static str,
    pub(crate) columns: StudyColumns,
}

/// How a setting is shown by itself.
pub(crate) enum OfSetting {
    /// As a table of its arms, above all trials of each.
    Arms(fn(&Run, &Analysis, &CellAnalysis, usize) -> Table),
    /// As a section, which has all of it.
    Section(fn(&Run, &Analysis, &CellAnalysis) -> Section),
}

impl StudyReport {
    pub(crate) fn of(study: Study) -> &'static StudyReport {
        match study {
            Study::Net => &net::NET,
            Study::File => &files::FILE,
            Study::Write => &files::WRITE,
            Study::Copy => &files::COPY,
            Study::Syscall => &syscall::SYSCALL,
            Study::Server => &server::SERVER,
            Study::Ab => &ab::AB,
        }
    }
}
