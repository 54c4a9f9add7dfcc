//! Where the copies are.

use iolens_model::arm::Role;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis};
use maud::{Markup, html};

use super::answers::prose;
use crate::results;
use crate::words;

/// The copy ledger, and what the copies cost beside a plain `memcpy`.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "copies",
        "Where the copies are",
        html! {
            (results::ledger(run, analysis).html())
            p.aside {
                "From each arm’s declared data path. “At the sender” counts what the sending "
                "process and its kernel side copy; “end to end” adds the copy into the "
                "receiver’s buffer. A control stops short of the socket."
            }
            @if let Some(text) = saved(run, analysis) { p { (prose(run, &text)) } }
        },
    )
}

/// What arms with one copy less at the sender save, beside the same bytes
/// copied without a kernel.
fn saved(run: &Run, analysis: &Analysis) -> Option<String> {
    let cell = results::largest(analysis)?;
    let per_byte = |arm: &ArmAnalysis| Some(arm.figures.as_ref()?.ns_per_byte.value);
    let baseline = cell.arms.iter().find(|arm| arm.arm.role == Role::Baseline)?;
    let calls = |arm: &ArmAnalysis| Some(arm.figures.as_ref()?.tx_calls_per_message.value.round());
    // Only a copy may differ: what more calls cost would hide what it saves.
    let fewer = |arm: &&ArmAnalysis| {
        arm.arm.role == Role::Compared
            && calls(arm) == calls(baseline)
            && arm.copies_sender.zip(baseline.copies_sender).is_some_and(|(a, b)| a == b - 1.0)
    };
    let differences: Vec<String> = cell
        .arms
        .iter()
        .filter(fewer)
        .filter_map(|arm| {
            let difference = per_byte(baseline)? - per_byte(arm)?;
            Some(format!("{} more than {}", three_digits(difference), arm.arm.label))
        })
        .collect();
    let memcpy = cell.arms.iter().find(|arm| arm.arm.primitive == "memcpy").and_then(per_byte)?;
    (!differences.is_empty()).then(|| {
        format!(
            "At {}, {}, which copies each byte once more at the sender, takes in ns per byte {}; \
             a memcpy of the same bytes alone takes {}. Differences of single-arm figures have no \
             interval of their own.",
            words::subject(&run.header.plan, &cell.cell),
            baseline.arm.label,
            crate::number::list(&differences),
            three_digits(memcpy)
        )
    })
}
