//! The words that the page uses, folded at its end and linked at its top.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::number::percent;

/// Words and what they mean, in the order in which a reader meets them.
pub(super) fn fold(run: &Run, analysis: &Analysis) -> Markup {
    let baseline = &run.header.plan.baseline;
    let delta = percent(analysis.delta);
    html! {
        details.glossary {
            summary { "The words of this page" }
            // Inside the fold: a browser opens it for whoever follows the link.
            dl.facts id="words" {
                dt { "arm" }
                dd { "One way of sending that is measured. A compared arm sends; a control, such "
                    "as memcpy, sends nothing and shows what a part costs alone." }
                dt { "baseline" }
                dd { "The arm that the others are compared with, here " code { (baseline) }
                    ". A ratio above 1 is faster than it." }
                dt { "cell" }
                dd { "One setting: message size, threads, topology, mode, working set." }
                dt { "curve" } dd { "The cells that differ in message size alone." }
                dt { "slice, round, trial, pass" }
                dd { "A slice is a few milliseconds of one arm; a round one slice of each; a "
                    "trial many rounds of one cell in fresh processes; a pass one trial of every "
                    "cell. n counts trials." }
                dt { "typical slice, totals" }
                dd { "Ratios are those of typical slices: the median over the rounds of a trial, "
                    "then the mean over trials. Goodput, times and CPU times are the baseline’s "
                    "totals and the ratio. Something rare and long (a tail) shows in totals alone, "
                    "which exports have." }
                dt { "δ (delta)" }
                dd { "The smallest difference that matters, stated before the run: " (delta) "." }
                dt { "pointwise, simultaneous" }
                dd { "A pointwise 95 % interval holds for one ratio by itself. Simultaneous ones "
                    "hold for all ratios of the run together, so that picking the most striking "
                    "one is safe; they are wider, and verdicts use them." }
                dt { "FASTER, SLOWER" } dd { "The simultaneous interval lies beyond δ." }
                dt { "SMALL" } dd { "Surely different, but perhaps by less than δ." }
                dt { "EQUIVALENT" } dd { "Surely different by less than δ, if at all." }
                dt { "INCONCLUSIVE, not separated" }
                dd { "The interval is too wide to say; that is not the same as equal." }
                dt { "A/A, self-check, noise floor" }
                dd { "A hidden second copy of the baseline runs as an arm of its own: what it "
                    "differs from the baseline is noise, and nothing smaller can be seen." }
                dt { "gate N" }
                dd { "A check of the environment and of what is physically possible, by its "
                    "number. It may make a trial unusable or only remark something." }
                dt { "copied" }
                dd { "A zero-copy send whose bytes the kernel copied after all, as it reports." }
                dt { "loopback, veth" }
                dd { "Both ends in one network namespace, or each in its own, joined by a pair of "
                    "virtual Ethernet devices." }
                dt { "sink" }
                dd { "Messages go by UDP into a device that drops everything: no receiver, no "
                    "driver, no DMA. The one place on a machine without a network card where a "
                    "zero-copy send is not copied." }
                dt { "hot, cold" }
                dd { "The memory that is sent from fits the L2 cache, or is larger than the "
                    "last-level cache." }
                dt { "stream, rr" }
                dd { "Messages one after another, or each a request that awaits its response." }
            }
        }
    }
}
