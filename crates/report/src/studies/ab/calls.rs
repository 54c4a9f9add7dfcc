//! System calls of the arms, and the bytes that they move: the sentence of the screen, the table
//! of the page and the form for programs.

use iolens_document::Joined;
use iolens_document::table::{Filled, Table, left, right};
use iolens_model::ab::{AbByteWay, AbCallsBy};
use iolens_stats::ab::{AbArmFigures, AbCallRate, AbCell};
use serde_json::{Value, json};

use super::words::{Said, per_operation, place};
use crate::number::list;

/// Calls that a sentence names; the page has all of them.
const CALLS_MAX: usize = 5;

/// The call by which a program lets the kernel work, with what is no call.
const RING: &str = "io_uring_enter";

/// In place of a number that each trial has another of.
const VARIES: &str = "varies";

/// Rates that lie closer are the same.
const SAME: f64 = 5e-5;

/// Ways of bytes, in the order in which they are told.
const WAYS: [AbByteWay; 3] = [AbByteWay::Read, AbByteWay::Written, AbByteWay::Between];

/// The calls of one name in the baseline and in an arm, in both of which they are exact.
struct Pair<'a> {
    name: &'a str,
    calls: [f64; 2],
    /// `None` where they are not exact.
    bytes: Option<[f64; 2]>,
}

impl<'a> Pair<'a> {
    fn of(base: &AbArmFigures, arm: &AbArmFigures, name: &'a str) -> Option<Pair<'a>> {
        let [base, arm] = [base, arm].map(|arm| find(arm, name));
        let calls = |call: Option<&AbCallRate>| match call {
            Some(call) => call.is_exact.then_some(call.per_operation),
            None => Some(0.0),
        };
        let bytes = |call: Option<&AbCallRate>| match call.and_then(|call| call.bytes) {
            Some(bytes) => bytes.is_exact.then_some(bytes.per_operation),
            None => Some(0.0),
        };
        let both = |of: [Option<f64>; 2]| Some([of[0]?, of[1]?]);
        let calls = both([calls(base), calls(arm)])?;
        Some(Pair { name, calls, bytes: both([bytes(base), bytes(arm)]) })
    }

    fn has_other_calls(&self) -> bool {
        differ(self.calls)
    }

    fn way(&self) -> Option<AbByteWay> {
        AbByteWay::of(self.name)
    }
}

fn differ([before, after]: [f64; 2]) -> bool {
    (before - after).abs() >= SAME
}

fn find<'a>(arm: &'a AbArmFigures, name: &str) -> Option<&'a AbCallRate> {
    arm.calls.iter().find(|call| call.name == name)
}

/// Names of the calls of some arms.
fn names<'a>(arms: impl Iterator<Item = &'a AbArmFigures>) -> Vec<&'a str> {
    let mut names: Vec<&str> =
        arms.flat_map(|arm| &arm.calls).map(|call| call.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// How the system calls of an arm differ. Those of which every trial has other numbers are told
/// roughly if they were counted without holding the program up, and else named alone: ptrace(2)
/// makes it slower, so that what its runtime does by the clock is too much for an operation.
pub(super) fn told(said: &Said<'_>, base: &AbArmFigures, arm: &AbArmFigures) -> String {
    let (name, other) = (&arm.name, said.name(0));
    let names = names([base, arm].into_iter());
    let pairs: Vec<Pair<'_>> = names.iter().filter_map(|name| Pair::of(base, arm, name)).collect();
    let is_exact = |name: &&&str| pairs.iter().any(|pair| pair.name == **name);
    let varying: Vec<&str> = names.iter().filter(|name| !is_exact(name)).copied().collect();
    let mut changed: Vec<&Pair<'_>> = pairs.iter().filter(|pair| pair.has_other_calls()).collect();
    if changed.len() > CALLS_MAX {
        let by = |pair: &Pair<'_>| (pair.calls[1] - pair.calls[0]).abs();
        changed.sort_by(|a, b| by(b).total_cmp(&by(a)));
    }
    let difference: f64 = changed.iter().map(|pair| pair.calls[1] - pair.calls[0]).sum();
    let changes =
        changed.iter().take(CALLS_MAX).map(|Pair { name, calls: [before, after], .. }| {
            format!("{name} {} → {}", per_operation(*before), per_operation(*after))
        });
    let more = changed.len().saturating_sub(CALLS_MAX);
    let more = (more > 0).then(|| format!("{more} others"));
    let changes = changes.chain(more).joined(", ");
    let n = per_operation(difference.abs());
    let noun = if n == "1" { "system call" } else { "system calls" };
    let more = if difference < 0.0 { "fewer" } else { "more" };
    let bytes = moved(&pairs);
    let counted = match (changed.is_empty(), n.as_str()) {
        (true, _) if pairs.is_empty() && !varying.is_empty() => None,
        (true, _) => {
            let bytes = other_bytes(&pairs, &bytes).unwrap_or_default();
            Some(format!("{name} makes the same system calls as {other}{bytes}"))
        }
        (false, "0") => Some(format!(
            "{name} makes as many system calls as {other}, but different ones: {changes}"
        )),
        (false, _) => {
            Some(format!("{name} makes exactly {n} {noun} {more} per operation: {changes}"))
        }
    };
    let bytes = beside_changes(&changed, &bytes, other);
    let [often, seldom] = roughly([base, arm], &varying, counted.is_some());
    let ring = names
        .contains(&RING)
        .then(|| "what the kernel does for it in an io_uring is not among them".to_owned());
    [counted, bytes, often, seldom, ring].into_iter().flatten().joined("; ")
}

/// Calls that vary: those that are made often, and those that are made now and then. `it` of whom
/// something was said before.
fn roughly(
    [base, arm]: [&AbArmFigures; 2],
    varying: &[&str],
    said_before: bool,
) -> [Option<String>; 2] {
    let it = if said_before { "it" } else { &arm.name };
    let (often, seldom): (Vec<&str>, Vec<&str>) =
        varying.iter().partition(|name| is_often(base, name) || is_often(arm, name));
    // Of which nothing was said, these are not others.
    let others = |said_before: bool| if said_before { "others" } else { "calls" };
    let rates = often.iter().map(|call| {
        let [before, after] = [base, arm].map(|arm| find(arm, call).map_or(0.0, rate));
        format!("{call} {} → {}", about(before), about(after))
    });
    let rates = rates.joined(", ");
    [
        (!often.is_empty()).then(|| {
            format!("{it} makes {} that vary per operation: {rates}", others(said_before))
        }),
        (!seldom.is_empty()).then(|| {
            let others = others(said_before || !often.is_empty());
            format!("{it} makes {others} now and then ({})", seldom.join(", "))
        }),
    ]
}

/// Calls per operation that are worth a number though it varies.
const OFTEN: f64 = 0.05;

/// Whether an arm often makes calls of this name, which vary, as far as that is known.
fn is_often(arm: &AbArmFigures, name: &str) -> bool {
    arm.calls_by == Some(AbCallsBy::Tracepoints)
        && find(arm, name).is_some_and(|call| !call.is_exact && call.per_operation >= OFTEN)
}

fn rate(call: &AbCallRate) -> f64 {
    call.per_operation.max(0.0)
}

/// `~2.4`, `0`.
fn about(n: f64) -> String {
    match n {
        n if n < OFTEN => "0".to_owned(),
        n if n < 9.95 => format!("~{n:.1}"),
        n => format!("~{n:.0}"),
    }
}

/// Calls per operation of an arm: exactly, or roughly if calls that vary are known to be many.
pub(super) fn shown(arm: &AbArmFigures) -> String {
    let exact = || arm.calls.iter().filter(|call| call.is_exact).map(rate).sum::<f64>();
    let all = || arm.calls.iter().map(rate).sum::<f64>();
    let varies = arm.calls.iter().any(|call| !call.is_exact && call.per_operation >= OFTEN);
    match arm.calls_by {
        // Of one that never ran nothing was counted.
        _ if arm.trials == 0 => String::new(),
        _ if !varies => per_operation(exact()),
        Some(AbCallsBy::Tracepoints) => about(all()),
        // And more.
        _ if exact() > 0.0 => format!("{}+", per_operation(exact())),
        _ => VARIES.to_owned(),
    }
}

/// `, but reads exactly 4096 bytes more per operation: pread64 81920 → 86016`, where calls are as
/// many.
fn other_bytes(pairs: &[Pair<'_>], all: &Moved) -> Option<String> {
    let is_known = |pair: &&Pair<'_>| {
        WAYS.iter().zip(all).any(|(way, bytes)| pair.way() == Some(*way) && bytes.is_some())
    };
    let changed = pairs.iter().filter(is_known).filter_map(|pair| Some((pair.name, pair.bytes?)));
    let changes = changed.filter(|(_, bytes)| differ(*bytes)).map(|(name, [before, after])| {
        format!("{name} {} → {}", shown_bytes(before), shown_bytes(after))
    });
    let changes = changes.joined(", ");
    let what = match &differences(all, "exactly ")[..] {
        [] => "splits its bytes between them differently:".to_owned(),
        all => format!("{} per operation:", list(all)),
    };
    (!changes.is_empty()).then(|| format!(", but {what} {changes}"))
}

/// `it reads 64 bytes more`, or that it reads as many where other calls do so.
fn beside_changes(changed: &[&Pair<'_>], all: &Moved, other: &str) -> Option<String> {
    if changed.is_empty() {
        return None;
    }
    let differences = differences(all, "");
    if !differences.is_empty() {
        return Some(format!("it {}", list(&differences)));
    }
    let is_touched = |way| changed.iter().any(|pair| pair.way() == Some(way));
    let same = WAYS.iter().zip(all).filter(|(way, bytes)| {
        is_touched(**way) && bytes.is_some_and(|[before, _]| before >= SAME)
    });
    let same: Vec<&str> = same.map(|(way, _)| verb(*way)).collect();
    (!same.is_empty()).then(|| format!("it {} as many bytes as {other}", list(&same)))
}

/// Bytes that go each of the [`WAYS`], in the baseline and in an arm; `None` where they are not
/// exact.
type Moved = [Option<[f64; 2]>; 3];

/// What all calls move that are as many in each trial. Others are named, and not counted.
fn moved(pairs: &[Pair<'_>]) -> Moved {
    WAYS.map(|way| {
        let mut own = pairs.iter().filter(|pair| pair.way() == Some(way));
        own.try_fold([0.0; 2], |sum, pair| {
            let bytes = pair.bytes?;
            Some([sum[0] + bytes[0], sum[1] + bytes[1]])
        })
    })
}

/// `reads 64 bytes more`, of each of the [`WAYS`] in which as many are not moved.
fn differences(all: &Moved, exactly: &str) -> Vec<String> {
    let of = WAYS.iter().zip(all).filter_map(|(way, bytes)| Some((*way, (*bytes)?)));
    let one = |(way, [before, after]): (AbByteWay, [f64; 2])| {
        let bytes = shown_bytes((after - before).abs());
        let noun = if bytes == "1" { "byte" } else { "bytes" };
        let more = if after < before { "less" } else { "more" };
        let place = if way == AbByteWay::Between { " within the kernel" } else { "" };
        format!("{} {exactly}{bytes} {noun} {more}{place}", verb(way))
    };
    of.filter(|(_, bytes)| differ(*bytes)).map(one).collect()
}

fn verb(way: AbByteWay) -> &'static str {
    match way {
        AbByteWay::Read => "reads",
        AbByteWay::Written => "writes",
        AbByteWay::Between => "moves",
    }
}

/// `4096`, `1344.02`: all that is exact.
fn shown_bytes(bytes: f64) -> String {
    let shown = format!("{bytes:.4}");
    shown.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// System calls of each arm by name, and the bytes that they move.
pub(super) fn table(cell: &AbCell) -> Option<Table> {
    let arms = || cell.arms.iter().filter(|arm| !arm.calls.is_empty());
    let calls = |arm: &AbArmFigures, name: &str| match find(arm, name) {
        Some(call) if !call.is_exact => VARIES.to_owned(),
        call => per_operation(call.map_or(0.0, |call| call.per_operation)),
    };
    let bytes = |arm: &AbArmFigures, name: &str| {
        let moves = arms().any(|arm| find(arm, name).is_some_and(|call| call.bytes.is_some()));
        match find(arm, name).and_then(|call| call.bytes) {
            Some(bytes) if !bytes.is_exact => VARIES.to_owned(),
            Some(bytes) => shown_bytes(bytes.per_operation),
            None if moves => "0".to_owned(),
            None => String::new(),
        }
    };
    let has_bytes = arms().flat_map(|arm| &arm.calls).any(|call| call.bytes.is_some());
    let unit = if has_bytes { "calls" } else { "" };
    let row = |name: &&str| -> Vec<Filled> {
        let calls = arms().map(|arm| right(&arm.name, unit, calls(arm, name)));
        let bytes = arms().map(|arm| right(&arm.name, "bytes", bytes(arm, name)));
        let bytes = bytes.filter(|_| has_bytes);
        std::iter::once(left("call", "", *name)).chain(calls).chain(bytes).collect()
    };
    Table::of(place(cell), names(cell.arms.iter()).iter().map(row)).with_rows()
}

/// Calls of one name; its bytes are `null` where it moves none.
pub(super) fn json(call: &AbCallRate) -> Value {
    json!({
        "name": call.name,
        "per_operation": call.per_operation,
        "is_exact": call.is_exact,
        "bytes_per_operation": call.bytes.map(|bytes| bytes.per_operation),
        "bytes_are_exact": call.bytes.map(|bytes| bytes.is_exact),
    })
}
