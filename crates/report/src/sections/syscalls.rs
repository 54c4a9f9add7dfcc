//! What `iolens show` and a page say of a run of `syscall`.

use iolens_document::{Fold, Node, Section};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{Form, setting};
use crate::calls;

pub(super) fn sections(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    vec![Section::new("numbers", "All numbers", tables(run, analysis, form))]
}

/// Every number: by threads, by calls in a row, by setting; what each call is.
fn tables(run: &Run, analysis: &Analysis, form: Form) -> Vec<Node> {
    let wide = form == Form::Page;
    let baseline = &run.header.plan.baseline;
    let mut nodes = vec![Node::aside(format!(
        "× {baseline}: in the typical slice. Times are {baseline}'s times that multiple; CPU is \
         the total of a call's own trials."
    ))];
    let by_size = calls::sizes(run, analysis).into_iter();
    let beside = by_size.chain(calls::threads(run, analysis)).chain(calls::in_a_row(run, analysis));
    nodes.extend(beside.map(Node::Table));
    for cell in &analysis.cells {
        let table = calls::by_cost(run, cell, wide).without_caption();
        nodes.push(Node::Fold(Fold {
            summary: setting(run, &cell.cell).into(),
            is_open: analysis.cells.len() == 1,
            nodes: vec![Node::Table(table)],
        }));
    }
    nodes.extend(calls::missing(analysis).map(Node::Table));
    if wide {
        nodes.push(Node::Table(calls::kinds(run)));
    }
    nodes
}
