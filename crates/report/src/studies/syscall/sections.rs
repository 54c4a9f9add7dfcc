//! What `iolens show` and a page say of a run of `syscall`.

use iolens_document::{Fold, Node, Section};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::sections::{Form, setting};
use crate::studies::syscall;

pub(crate) fn sections(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
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
    let by_size = syscall::sizes(run, analysis).into_iter();
    let beside =
        by_size.chain(syscall::threads(run, analysis)).chain(syscall::in_a_row(run, analysis));
    nodes.extend(beside.map(Node::Table));
    for cell in &analysis.cells {
        let table = syscall::by_cost(run, cell, wide).without_caption();
        nodes.push(Node::Fold(Fold {
            summary: setting(run, &cell.cell).into(),
            is_open: analysis.cells.len() == 1,
            nodes: vec![Node::Table(table)],
        }));
    }
    nodes.extend(syscall::missing(analysis).map(Node::Table));
    if wide {
        nodes.push(Node::Table(syscall::kinds(run)));
    }
    nodes
}
