//! The columns that a run is exported with, for the tests of every study.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::export::Rows;
use crate::{calls, copying, csv, files, fixture, servers, writes};

/// A run of every study.
pub(crate) fn studies() -> Vec<(&'static str, (Run, Analysis))> {
    vec![
        ("net", fixture::run()),
        ("file", files::tests::run()),
        ("write", writes::tests::run()),
        ("copy", copying::tests::run()),
        ("syscall", calls::tests::run()),
        ("server", servers::tests::run()),
    ]
}

/// The tables of a run by name, each with its columns, one in a line. Asserts that no
/// column has a word of another study, and that no row has fewer.
pub(crate) fn without(
    foreign: &[&str],
    run: &Run,
    analysis: &Analysis,
) -> [(&'static str, String); 3] {
    let tables = [
        ("arms", csv::all(Rows::Arms(std::slice::from_ref(run)))),
        ("slices", csv::all(Rows::Slices(std::slice::from_ref(run)))),
        ("cells", csv::all(Rows::Cells(std::slice::from_ref(run), std::slice::from_ref(analysis)))),
    ];
    tables.map(|(name, rows)| {
        let header = rows.lines().next().expect("a header").replace(',', "\n");
        assert!(foreign.iter().all(|word| !header.contains(word)), "{header}");
        assert!(rows.lines().all(|line| line.split(',').count() >= header.lines().count()));
        (name, header)
    })
}
