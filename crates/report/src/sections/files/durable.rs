//! What it takes that each block is on the device before the next one, and what that proves.

use iolens_document::table::{Column, Table};
use iolens_document::{Fact, Node};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{engine, times};
use crate::findings::{self, Flush};
use crate::number::{OrDash, nanoseconds};
use crate::results::curves;
use crate::{words, writes};

pub(super) fn nodes(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let mut nodes: Vec<Node> = tables(run, analysis).into_iter().map(Node::Table).collect();
    if let Some(flush) = findings::flush(run) {
        let flushed = flush_words(&flush).map(|said| Fact::new("Flush", said));
        let bytes = run.header.file.as_ref().map(|file| file.bytes);
        let device = bytes.filter(|_| flush.has_device).map(|bytes| {
            let said = format!(
                "used as found, not preconditioned: after {bytes} and more of writing without a \
                 pause it may be slower"
            );
            Fact::new("Device", said)
        });
        nodes.extend(Node::facts(flushed.into_iter().chain(device).collect()));
    }
    nodes
}

/// A table for each curve that has durable engines; their times stand with all numbers.
fn tables(run: &Run, analysis: &Analysis) -> Vec<Table> {
    let baseline = &run.header.plan.baseline;
    let mut tables = Vec::new();
    for (curve, cells) in curves(analysis) {
        let columns = vec![
            Column::right("block size", ""),
            Column::left("engine", ""),
            Column::left(&format!("time over {baseline}'s"), "[95%, all together]"),
            Column::left("over another's", "[95%, all together]"),
        ];
        let mut table = Table::new(words::curve(&run.header, &curve), columns);
        for cell in cells {
            let is_lazy = writes::is_lazy(run, cell);
            for (nth, arm) in writes::durable(run, cell).into_iter().enumerate() {
                let over = writes::over_baseline(arm).filter(|_| is_lazy);
                let next = writes::over_next(run, cell, arm);
                let row = vec![
                    if nth == 0 { cell.cell.size.to_string() } else { String::new() }.into(),
                    engine(analysis, &arm.arm.label),
                    over.or_dash(|over| times(&over)).into(),
                    next.map_or_else(String::new, |(other, ratio)| {
                        format!("{} {other}", times(&ratio))
                    })
                    .into(),
                ];
                table.push_row(nth == 0, row);
            }
        }
        tables.extend(table.with_rows());
    }
    tables
}

/// Whether a block can be on a device in the time that its flush takes.
fn flush_words(flush: &Flush) -> Option<String> {
    if !flush.has_device {
        return Some(format!(
            "{} has no device: nothing written there lasts, and fsync, fdatasync and O_DSYNC do \
             nothing",
            flush.file_system
        ));
    }
    let ns = |ns: u64| nanoseconds(ns as f64);
    let tried = format!(
        "writing a page and its fdatasync took {} before the run (median of {}, {} to {})",
        ns(flush.median_ns?),
        flush.tried,
        ns(flush.least_ns?),
        ns(flush.most_ns?)
    );
    let so = match (flush.is_plausible?, flush.is_guest) {
        (false, _) => {
            "no device programs flash or disk that fast: its cache survives a power cut, or the \
             flush is acknowledged and not made"
        }
        (true, true) => "a device can be that fast",
        (true, false) => {
            "a device can be that fast; whether the bytes survive a power cut only a power cut shows"
        }
    };
    Some(format!("{tried}: {so}"))
}
