//! Where the copies are.

use iolens_model::axes::Topology;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::results;

/// Settings up to which the receivers of each stand open.
const BESIDE: usize = 2;

/// Data paths side by side, and the copy ledger beneath.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "copies",
        "Where the copies are",
        html! {
            p.aside {
                "Time runs downwards. A filled arrow is a copy, made byte by byte by a CPU; a thin "
                "one moves only a reference; a dashed one is a reference that the kernel turns "
                "into a copy later, with the share of sends of which it said so, or that it maps "
                "for the receiver as far as it can. "
                "A device has a lane where a path uses one: over loopback and veth none does."
                @if run.header.plan.topologies().contains(&Topology::Sink) {
                    " On sink a path ends at a device that drops everything: what follows the "
                    "send queue does not happen there."
                }
            }
            (super::paths::diagrams(run, analysis))
            (results::ledger(run, analysis).html())
            @let beside = results::receivers(run, analysis);
            @if beside.len() > BESIDE {
                details {
                    summary { "Receivers beside each other, in " (beside.len()) " settings" }
                    @for table in &beside { (table.html()) }
                }
            } @else {
                @for table in &beside { (table.html()) }
            }
            @if !beside.is_empty() { p.aside { (results::RECEIVERS_READ) } }
            p.aside {
                "Declared: which hops there are and which of them copy, by each primitive’s data "
                "path. Measured: the share of a late copy, as the kernel reports it with each "
                "completion, and the share that it mapped for a receiver. "
                "“At the sender” counts what the sending process and its kernel side copy; "
                "“end to end” adds the copy into the receiver’s buffer, where the receiver has "
                "one. A control stops short "
                "of the socket."
            }
        },
    )
}
