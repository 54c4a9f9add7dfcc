//! How much work a slice is: found once per run, before the first pass, and
//! then fixed.

use iolens_model::cell::Cell;
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::trial::SliceKind;
use iolens_model::units::Nanos;

/// Messages per thread that a slice has at least.
const MESSAGES_PER_THREAD_MIN: u64 = 4;

/// A first guess of a message's time, to be corrected by a probe: a call and
/// a copy at each end on a machine of no great speed.
const GUESS_CALL_NS: f64 = 1_500.0;
const GUESS_BYTES_PER_NS: f64 = 4.0;

/// A round trip wakes a thread at each end.
const GUESS_ROUND_TRIP_NS: f64 = 30_000.0;

/// The time of one message before anything was measured, in ns.
#[must_use]
pub fn guessed_message_ns(cell: &Cell) -> f64 {
    let fixed_ns = if cell.is_rr() { GUESS_ROUND_TRIP_NS } else { GUESS_CALL_NS };
    fixed_ns + cell.size.0 as f64 / GUESS_BYTES_PER_NS
}

/// Messages of a slice that is meant to last for `target`.
#[must_use]
pub fn messages(target: Nanos, message_ns: f64, cell: &Cell) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let messages = (target.0 as f64 / message_ns) as u64;
    messages.max(MESSAGES_PER_THREAD_MIN * u64::from(cell.threads))
}

/// Median time per message over an arm's slices of a probe, in ns.
#[must_use]
pub fn measured_message_ns(probe: &TrialOutcome, arm: usize) -> Option<f64> {
    let per_message = |s: &SliceOutcome| {
        (s.arm == arm && s.kind == SliceKind::Measured && s.tx.messages > 0)
            .then(|| s.tx.time_ns as f64 / s.tx.messages as f64)
    };
    let mut all: Vec<f64> = probe.slices.iter().filter_map(per_message).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().filter(|&ns| ns > 0.0)
}
