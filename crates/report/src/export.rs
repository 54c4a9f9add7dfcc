//! What an export has rows of, and the columns of it that are wanted.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

pub use crate::records::UnknownColumn;
use crate::records::columns::Kind;
use crate::records::{self, Record, cells, trials};

/// Which columns are wanted.
#[derive(Debug, Clone, Copy)]
pub enum Columns<'a> {
    /// All that there are.
    All,
    /// These, in this order.
    Named(&'a [String]),
}

/// The rows of an export. All runs are of one study.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// One per arm and trial: sums over the measured slices.
    Arms(&'a [Run]),
    /// One per slice, both ends, discarded slices too.
    Slices(&'a [Run]),
    /// One per arm and cell: figures, ratio, intervals, verdict; each run with its analysis.
    Cells(&'a [Run], &'a [Analysis]),
    /// One per phase of a search.
    Phases(&'a [Run]),
}

impl<'a> Rows<'a> {
    pub(crate) fn runs(self) -> &'a [Run] {
        match self {
            Rows::Arms(runs) | Rows::Slices(runs) | Rows::Cells(runs, _) | Rows::Phases(runs) => {
                runs
            }
        }
    }

    /// What a list of them is called.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Rows::Arms(_) => "arms",
            Rows::Slices(_) => "slices",
            Rows::Cells(..) => "cells",
            Rows::Phases(_) => "phases",
        }
    }

    /// The rows, each with these columns in their order.
    ///
    /// Errors: the first column that they do not have.
    pub(crate) fn records(
        self,
        columns: Columns<'_>,
    ) -> Result<impl Iterator<Item = Record> + 'a, UnknownColumn> {
        let names = match columns {
            Columns::All => Vec::new(),
            Columns::Named(names) => names.to_vec(),
        };
        let mut all = self.all().peekable();
        if let Some(first) = all.peek() {
            first.check(&names)?;
        }
        Ok(all.map(move |record| record.only(&names)))
    }

    /// The columns that most readers need, in the order that rows have: which row it is, what came
    /// of it, what it cost. Every row is looked at.
    pub fn short(self) -> Vec<String> {
        let kind = match self {
            Rows::Arms(_) => Kind::Arms,
            Rows::Slices(_) => Kind::Slices,
            Rows::Cells(..) => Kind::Cells,
            Rows::Phases(_) => Kind::Phases,
        };
        let study = self.runs().first().map(|run| run.header.plan.study());
        records::short(kind, study, self.all())
    }

    fn all(self) -> Box<dyn Iterator<Item = Record> + 'a> {
        match self {
            Rows::Arms(runs) => Box::new(runs.iter().flat_map(trials::arms)),
            Rows::Slices(runs) => Box::new(runs.iter().flat_map(trials::slices)),
            Rows::Phases(runs) => Box::new(runs.iter().flat_map(trials::phases)),
            Rows::Cells(runs, analyses) => {
                let pairs = runs.iter().zip(analyses);
                Box::new(pairs.flat_map(|(run, analysis)| cells::cells(run, analysis)))
            }
        }
    }
}
