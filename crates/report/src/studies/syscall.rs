//! The study `syscall`, and what `iolens show` and a page say of a run of it.

pub(crate) mod calls;
pub(crate) mod figures;
pub(crate) mod screen;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use iolens_document::{Fold, Node, Section};
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use self::tables::by_cost;
use super::entry::{ARMS_OF_ONE_END, Ends, OfSetting, SLICE_OF_ONE_END, StudyColumns, StudyReport};
use crate::sections::{Form, drawn, setting};
use crate::{arms, number};

pub(super) static SYSCALL: StudyReport = StudyReport {
    nothing: "turn of an empty loop",
    common: Cell::words,
    screen: screen::fill,
    next: screen::next,
    question: "What does a system call cost?",
    claim: |analysis, _| {
        // The time of several threads is no call's.
        let cell = analysis.cells.iter().find(|cell| cell.cell.threads == 1)?;
        let baseline = arms::methods(cell).next()?;
        let ns = number::nanoseconds(calls::time(baseline)?.value);
        Some(format!("A call of {} takes {ns}", baseline.arm.label))
    },
    sections,
    last: |_, _| None,
    setting: OfSetting::Arms(|run, _, cell, _| by_cost(run, cell, false)),
    plates: figures::all,
    figures: |_, _, figures, _| drawn(figures),
    after: "answer",
    columns: StudyColumns {
        ends: Ends::One,
        keys: &[("calls_in_a_row", "in_a_row")],
        arms: ARMS_OF_ONE_END,
        whole: ["", ""],
        axes: "calls_in_a_row block_bytes threads",
        slice: SLICE_OF_ONE_END,
        figures: "{ns_per_call:interval} calls_per_s mib_per_s system_calls_per_call
            cpu_ns_per_call cycles_per_call instructions_per_call context_switches_per_call
            run_delay_ns_per_call",
        parts: &[("rate", "calls_per_s")],
    },
};

fn sections(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    vec![Section::new("numbers", "All numbers", numbers(run, analysis, form))]
}

/// Every number: by threads, by calls in a row, by setting; what each call is.
fn numbers(run: &Run, analysis: &Analysis, form: Form) -> Vec<Node> {
    let wide = form == Form::Page;
    let baseline = &run.header.plan.baseline;
    let mut nodes = vec![Node::aside(format!(
        "× {baseline}: in the typical slice. Times are {baseline}'s times that multiple; CPU is \
         the total of a call's own trials."
    ))];
    let by_size = tables::sizes(run, analysis).into_iter();
    let beside =
        by_size.chain(tables::threads(run, analysis)).chain(tables::in_a_row(run, analysis));
    nodes.extend(beside.map(Node::Table));
    for cell in &analysis.cells {
        let table = by_cost(run, cell, wide).without_caption();
        nodes.push(Node::Fold(Fold {
            summary: setting(run, &cell.cell).into(),
            is_open: analysis.cells.len() == 1,
            nodes: vec![Node::Table(table)],
        }));
    }
    nodes.extend(tables::missing(analysis).map(Node::Table));
    if wide {
        nodes.push(Node::Table(tables::kinds(run)));
    }
    nodes
}
