//! The columns that a table has where none are asked for: a dozen that most readers need, of the
//! many that there are.

use std::borrow::Cow;

use iolens_model::cell::Cell;
use serde_json::Value;

use super::{Record, axes, tuning};
use crate::named::{Named, named};

/// Of rows of arms; of these and the others each study has some.
pub(crate) const ARMS: &[&str] = &[
    "run pass arm message_bytes block_bytes file_bytes calls_in_a_row connections threads workers",
    "status reason time_ns messages blocks copies calls requests_ok",
    "goodput_bits_per_s read_bytes_per_s write_bytes_per_s copied_bytes_per_s calls_per_s",
    "ns_per_message ns_per_block ns_per_copy ns_per_call",
    "tx_cpu_ns rx_cpu_ns cpu_ns server_cpu_ns client_cpu_ns cycles server_cycles",
];

/// Of rows of slices.
pub(crate) const SLICES: &[&str] = &[
    "run pass round kind arm message_bytes block_bytes file_bytes calls_in_a_row connections",
    "threads workers time_ns tx_messages rx_bytes blocks copies calls bytes requests_ok",
    "tx_cpu_ns rx_cpu_ns cpu_ns server_cpu_ns client_cpu_ns",
    "tx_cycles rx_cycles cycles server_cycles unused",
];

/// Of rows of cells.
pub(crate) const CELLS: &[&str] = &[
    "run arm message_bytes block_bytes file_bytes calls_in_a_row connections threads workers",
    "status reason n ratio ratio_simultaneous_low ratio_simultaneous_high verdict",
    "goodput_bits_per_s read_bytes_per_s write_bytes_per_s copied_bytes_per_s calls_per_s",
    "ns_per_message ns_per_block ns_per_copy ns_per_call requests_per_s",
    "tx_cpu_ns_per_byte rx_cpu_ns_per_byte cpu_ns_per_byte cpu_ns_per_call",
    "server_cpu_ns_per_request cycles_per_byte cycles_per_call server_cycles_per_request",
];

/// Of rows of phases.
pub(crate) const PHASES: &[&str] = &[
    "run phase arm connections workers step rate_per_s achieved_per_s duration_ns status reason",
    "requests_ok server_cpu_ns client_cpu_ns server_cycles",
];

/// Where requests were timed.
const TIMED: &str = "latency_p50_ns latency_p99_ns";

/// The columns of rows that are wanted, in their order: also the axes of this cell, where rows
/// differ in them, and what requests took, where some were timed.
pub(crate) fn of(
    mut rows: impl Iterator<Item = Record>,
    cell: Option<&Cell>,
    wanted: &[&str],
) -> Vec<String> {
    let Some(first) = rows.next() else { return Vec::new() };
    let within = |words: &str, name: &str| words.split(' ').any(|word| word == name);
    let mut apart: Named = cell.map(|cell| [axes(cell), tuning(cell)].concat()).unwrap_or_default();
    apart.extend(named! { isolated: true, host: true });
    let tells_apart: Vec<bool> =
        first.columns.iter().map(|(name, _)| apart.iter().any(|(axis, _)| axis == name)).collect();
    let timed = |(name, value): &(Cow<'_, str>, Value)| !value.is_null() && within(TIMED, name);
    let of_first = |column: &(Cow<'_, str>, Value)| {
        timed(column) || wanted.iter().any(|line| within(line, &column.0))
    };
    let mut kept: Vec<bool> = first.columns.iter().map(of_first).collect();
    for row in rows {
        let both = row.columns.iter().zip(&first.columns).zip(&tells_apart);
        for (kept, ((own, first), tells_apart)) in kept.iter_mut().zip(both) {
            *kept = *kept || *tells_apart && own != first || timed(own);
        }
    }
    let named = first.columns.iter().zip(kept).filter(|(_, kept)| *kept);
    named.map(|((name, _), _)| name.to_string()).collect()
}
