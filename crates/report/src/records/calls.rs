//! Rows of the study `syscall`: what is counted is calls, there is no receiver,
//! and a size is no axis.

use std::borrow::Cow;

use iolens_model::cell::{Cell, SyscallSetting};
use iolens_model::outcome::TrialOutcome;
use iolens_model::run::Run;
use iolens_stats::analysis::{ArmAnalysis, Estimate, Figures};
use serde_json::{Value, json};

use super::{
    Named, Record, accounts_of_one_end, fixed, further, head_of_one_end, high, later, low, pmu,
};
use crate::calls::bytes_of;
use crate::totals::totals;

/// The axes of a cell.
pub(super) fn axes(cell: &Cell, setting: SyscallSetting) -> Named {
    fixed([("calls_in_a_row", json!(setting.in_a_row)), ("threads", json!(cell.threads))])
}

/// One arm of one trial.
pub(super) fn arm_row(run: &Run, trial: &TrialOutcome, index: usize) -> Record {
    let totals = totals(trial, index);
    let totals = totals.as_ref();
    let setting = trial.cell.syscall().unwrap_or(SyscallSetting { in_a_row: None });
    let axes = axes(&trial.cell, setting);
    let mut row = head_of_one_end(run, trial, index, totals, axes);
    let time_ns = totals.map(|t| t.time_ns as f64);
    let calls = totals.map(|t| t.messages as f64).filter(|&calls| calls > 0.0);
    let per_call = time_ns.zip(calls).map(|(ns, calls)| ns / calls);
    row.extend(fixed([
        ("calls", json!(totals.map(|t| t.messages))),
        ("system_calls", json!(totals.and_then(|t| t.tx_calls))),
        ("bytes", json!(totals.map(|t| t.tx_bytes))),
        ("ns_per_call", json!(per_call)),
        ("calls_per_s", json!(per_call.map(|ns| 1e9 / ns))),
    ]));
    row.extend(accounts_of_one_end(totals));
    // Per byte there is nothing to say of most calls.
    row.extend(pmu(totals).into_iter().filter(|(name, _)| name != "cycles_per_byte"));
    let more = further(totals).into_iter().filter(|(name, _)| name != "tx_calls");
    row.extend(of_one_end(more.chain(later(totals)).collect(), "calls"));
    Record { columns: row, whole: Vec::new() }
}

/// Columns of an end without those of the end that is not there, under the
/// names that they have in a study of one end, whose `unit`s are what net calls
/// messages.
pub(super) fn of_one_end(columns: Named, unit: &str) -> Named {
    let mine = columns.into_iter().filter(|(name, _)| !name.starts_with("rx_"));
    let named = |(name, value): (Cow<'static, str>, Value)| -> (Cow<'static, str>, Value) {
        let name = match name.strip_prefix("tx_") {
            Some("messages") => unit.to_owned(),
            Some("calls") => "system_calls".to_owned(),
            Some(rest) => rest.to_owned(),
            None => name.into_owned(),
        };
        (Cow::Owned(name), value)
    };
    let of_messages = |name: &str| OF_MESSAGES.iter().any(|own| name.starts_with(own));
    mine.map(named).filter(|(name, _)| !of_messages(name)).collect()
}

/// What only messages have.
const OF_MESSAGES: [&str; 5] = ["segments_out", "retransmits", "zerocopy", "skb_", "tcp_"];

/// Figures of one arm in one cell.
pub(super) fn figures(run: &Run, arm: &ArmAnalysis) -> Named {
    let figures = arm.figures.as_ref();
    let call = figures.map(|f| f.ns_per_message);
    let value = |of: fn(&Figures) -> Option<Estimate>| -> Value {
        json!(figures.and_then(of).map(|estimate| estimate.value))
    };
    let rate = call.map(|call| 1e9 / call.value);
    let bytes = bytes_of(run, &arm.arm.primitive).filter(|&bytes| bytes > 0);
    let mib = rate.zip(bytes).map(|(rate, bytes)| rate * f64::from(bytes) / f64::from(1 << 20));
    fixed([
        ("ns_per_call", json!(call.map(|call| call.value))),
        ("ns_per_call_low", low(call.and_then(|call| call.interval))),
        ("ns_per_call_high", high(call.and_then(|call| call.interval))),
        ("calls_per_s", json!(rate)),
        ("mib_per_s", json!(mib)),
        ("system_calls_per_call", value(|f| f.tx_calls_per_message)),
        ("cpu_ns_per_call", value(|f| f.tx_cpu_ns_per_message)),
        ("cycles_per_call", value(|f| f.cycles_per_message)),
        ("instructions_per_call", value(|f| f.instructions_per_message)),
        ("context_switches_per_call", value(|f| f.context_switches_per_message)),
        ("run_delay_ns_per_call", value(|f| f.run_delay_ns_per_message)),
    ])
}
