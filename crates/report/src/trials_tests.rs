//! What is shown of a run rests on its analysis: its trials need not be in memory.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::text::{self, Style};
use crate::{columns_tests, figure, html, json};

/// Everything that is made of a whole run, in bytes.
fn shown(run: &Run, analysis: &Analysis) -> Vec<String> {
    let style = Style { colour: true, width: 100 };
    let mut all = vec![
        html::page(run, analysis),
        json::run(run, analysis),
        text::run(run, analysis, &style),
        text::whole(run, analysis, &style),
    ];
    all.extend(analysis.cells.iter().map(|cell| text::show(run, analysis, cell, &style)));
    all.extend(figure::all(run, analysis).into_iter().map(|figure| figure.svg));
    all
}

#[test]
fn a_page_reads_no_trial() {
    for (study, (run, analysis)) in columns_tests::studies() {
        let without = Run { trials: Vec::new(), ..run.clone() };
        assert!(shown(&run, &analysis) == shown(&without, &analysis), "{study}");
    }
}
