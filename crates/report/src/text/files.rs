//! The answer of a run of `file` or `write`, for a terminal.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{BOLD, DIM, Style, painted, push_answers, push_sentence};
use crate::results::{self, files};
use crate::wrap;
use crate::{alone, answers, copying};

/// Sentences, then one table per curve.
pub(super) fn whole(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let mut out = String::new();
    let sentences = answers::sentences(run, analysis);
    let after = push_answers(&mut out, &sentences, style);
    for (curve, cells) in results::curves(analysis) {
        let table = files::curve(run, &analysis.told, &cells, style.columns());
        out.push('\n');
        out.push_str(&super::heading(&files::heading(run, &curve), style));
        out.push('\n');
        out.push_str(&painted(&table, style));
    }
    let tables = [files::durable(run, analysis), crate::files::drops_table(run)];
    for table in tables.into_iter().flatten().chain(files::fits(run, analysis)) {
        out.push('\n');
        out.push_str(&style.paint(BOLD, &wrap::hanging(&table.caption, style.columns(), 0)));
        out.push('\n');
        out.push_str(&table.text(style.columns()));
    }
    out.push('\n');
    let plan = &run.header.plan;
    let baseline = &plan.baseline;
    let is_alone = alone::is_alone(&analysis.cells);
    let verdicts = match plan.quick || is_alone {
        true => String::new(),
        false => format!(
            " Intervals are pointwise; verdicts use simultaneous ones over all {} contrasts.",
            analysis.contrasts
        ),
    };
    let apart = match run.header.plan.write() {
        Some(_) => {
            "left dirty: bytes in the page cache that are not on the device when a slice ends, over \
             bytes written, above 100 % where the kernel counts pages that it keeps together (large \
             folios) as a whole; brought there outside of its time."
        }
        None => {
            "from device: bytes that storage delivered over bytes read, above 100 % with what was \
             read ahead and not asked for."
        }
    };
    let reading = match plan.copy() {
        Some(_) if is_alone => "rate: over all of a cell's trials, with its interval.".to_owned(),
        None if is_alone => {
            format!("rate: over all of a cell's trials, with its interval. {apart}")
        }
        Some(_) => copying::reading(run),
        None => format!(
            "ratio: time per block of {baseline} over the engine's; above 1 the engine is faster. \
             {apart}"
        ),
    };
    let cpu = crate::files::CPU_READ;
    let reading = format!("{reading} CPU: {cpu}.{verdicts}");
    out.push_str(&style.paint(DIM, &wrap::hanging(&reading, style.columns(), 0)));
    out.push('\n');
    for sentence in after {
        push_sentence(&mut out, sentence, style);
    }
    out
}
