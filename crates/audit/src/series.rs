//! The gates that look at several rows at once: 4 (a latency made from the
//! rate), 7, 8 (labels swapped), 11 and 13. Rows are compared that differ in
//! their size alone.

use std::collections::HashMap;

use iolens_stats::physics::{self, Flow, Switching};

use crate::bounds::Bounds;
use crate::checks::{Case, short};
use crate::finding::{Found, Gate, Ledger};
use crate::quantity::Quantity as Q;
use crate::table::Row;

/// One check of a whole table: how many groups it could look at, and what it
/// found with the lines.
type Series = (usize, Vec<(Found, Vec<usize>)>);

/// Makes every check.
pub(crate) fn judge(rows: &[Row], bounds: &Bounds, ledger: &mut Ledger) {
    type Check = fn(&[Row], &Bounds) -> Series;
    let checks: [(Gate, Check); 5] = [
        ((4, "latency measured, not derived"), derived_latency),
        ((7, "size applied"), flat_throughput),
        ((8, "cold is slower than warm"), swapped_labels),
        ((11, "every kind of core counted"), kinds_of_core),
        ((13, "switches follow the work"), steady_switching),
    ];
    for (gate, check) in checks {
        let (judged, found) = check(rows, bounds);
        ledger.judged(gate, judged);
        for (found, lines) in found {
            ledger.find(gate, found, format!("{} rows", lines.len()), lines);
        }
    }
}

/// Rows that agree in these quantities and in their labels, in the order of their first ones.
fn groups<'a>(rows: &'a [Row], same: &[Q]) -> Vec<Vec<&'a Row>> {
    let mut at = HashMap::new();
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let next = groups.len();
        let index = *at.entry((&row.labels, numbers(row, same))).or_insert(next);
        match groups.get_mut(index) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Numbers that can be looked up.
fn numbers(row: &Row, of: &[Q]) -> Vec<Option<u64>> {
    of.iter().map(|q| row.number(*q).map(|n| n.value.to_bits())).collect()
}

/// Latency × message rate that is one number in every row.
fn derived_latency(rows: &[Row], bounds: &Bounds) -> Series {
    const REQUESTS: [&str; 5] = ["rr", "ping", "request", "closed", "sync"];
    let mut judged = 0;
    let mut found = Vec::new();
    // Over all messages of a thread, or over those of all threads.
    let mut by_threads = groups(rows, &[Q::Threads]);
    by_threads.push(rows.iter().collect());
    for quantity in [Q::LatencyMean, Q::LatencyP50] {
        for group in &by_threads {
            let flows: Vec<(Flow, &Row)> = group
                .iter()
                .filter_map(|row| {
                    let latency_ns = row.above_zero(quantity)?;
                    let messages_per_s = Case { row, bounds }.messages_per_s()?.0;
                    Some((Flow { latency_ns, messages_per_s }, *row))
                })
                .collect();
            judged += usize::from(flows.len() >= 3);
            let numbers: Vec<Flow> = flows.iter().map(|(flow, _)| *flow).collect();
            let Some(in_flight) = physics::derived_latency(&numbers) else { continue };
            let says_requests = flows.iter().all(|(_, row)| row.says(&REQUESTS));
            let is = |q: Q| {
                let expect = |row: &Row| row.positive(q).unwrap_or(f64::NAN);
                flows.iter().all(|(_, row)| (expect(row) / in_flight - 1.0).abs() < 0.01)
            };
            // As many as there are connections is Little's law, and right.
            if is(Q::Connections) || (says_requests && is(Q::Threads)) {
                continue;
            }
            let what = if is(Q::Threads) { " (the threads)" } else { "" };
            let text = format!(
                "{} × message rate is {}{what} in each of these rows, within 0.5%: elapsed time \
                 over messages is no latency, unless one request was in flight",
                quantity.name(),
                short(in_flight)
            );
            let lines: Vec<usize> = flows.iter().map(|(_, row)| row.line).collect();
            let is_new = |(_, known): &(Found, Vec<usize>)| lines.iter().all(|l| known.contains(l));
            if !found.iter().any(is_new) {
                found.push((Found::suspicious(text), lines));
            }
        }
    }
    (judged, found)
}

/// Throughput that does not care for the size.
fn flat_throughput(rows: &[Row], _: &Bounds) -> Series {
    let mut judged = 0;
    let mut found = Vec::new();
    for group in groups(rows, &[Q::Threads, Q::Connections]) {
        let points: Vec<(f64, f64)> = group
            .iter()
            .filter_map(|row| Some((row.positive(Q::MessageBytes)?, row.positive(Q::Throughput)?)))
            .collect();
        judged += usize::from(points.len() >= 2);
        if let Some((least, most)) = physics::flat_throughput(&points) {
            let text = format!(
                "throughput is {} to {} Gbit/s from under 1 KiB to over 64 KiB: was the size not \
                 applied, or does a link bound it?",
                short(least * 8.0 / 1e9),
                short(most * 8.0 / 1e9)
            );
            found.push((Found::suspicious(text), group.iter().map(|row| row.line).collect()));
        }
    }
    (judged, found)
}

/// Rows that are called cold and are faster than those called warm.
fn swapped_labels(rows: &[Row], _: &Bounds) -> Series {
    const COLD: [&str; 2] = ["cold", "uncached"];
    const WARM: [&str; 3] = ["warm", "hot", "cached"];
    const FASTER: f64 = 1.25;
    let is_cold = |row: &Row| row.says(&COLD);
    let rate = |row: &Row| row.positive(Q::Throughput);
    let of = |row: &Row| numbers(row, &[Q::BlockBytes, Q::FileBytes, Q::Threads]);
    let is_warm = |row: &&Row| !is_cold(row) && row.says(&WARM);
    // The first warm row of its kind: the last that is put in stays.
    let warm: HashMap<_, &Row> =
        rows.iter().rev().filter(is_warm).map(|row| (of(row), row)).collect();
    let mut judged = 0;
    let mut found = Vec::new();
    for cold in rows.iter().filter(|row| is_cold(row) && row.get(Q::BlockBytes).is_some()) {
        let pair = warm.get(&of(cold)).and_then(|w| Some((*w, rate(cold)?, rate(w)?)));
        let Some((warm, fast, slow)) = pair else {
            continue;
        };
        judged += 1;
        if fast > slow * FASTER {
            let text = format!(
                "the cold row is {} times as fast as the warm one: are the labels swapped, or \
                 was another cache still warm?",
                short(fast / slow)
            );
            found.push((Found::suspicious(text), vec![cold.line, warm.line]));
        }
    }
    (judged, found)
}

/// A machine with two kinds of core has counters on both.
fn kinds_of_core(rows: &[Row], _: &Bounds) -> Series {
    let kinds = |row: &Row| {
        let mut kinds: Vec<String> =
            row.every(Q::Cycles).filter_map(|value| value.pmu.clone()).collect();
        kinds.sort();
        kinds
    };
    let hybrid = || rows.iter().filter(|row| !kinds(row).is_empty());
    let lone: Vec<&Row> = hybrid().filter(|row| kinds(row).len() == 1).collect();
    let found = lone.first().map(|row| {
        let text = format!(
            "cycles of {} alone: what ran on the other kind of core is missing",
            kinds(row).join(", ")
        );
        (Found::suspicious(text), lone.iter().map(|row| row.line).collect())
    });
    (hybrid().count(), found.into_iter().collect())
}

/// Context switches by the clock.
fn steady_switching(rows: &[Row], bounds: &Bounds) -> Series {
    let mut judged = 0;
    let mut found = Vec::new();
    let mut lists = groups(rows, &[Q::Threads]);
    // Labels aside, where the labels make a group of each row.
    lists.push(rows.iter().collect());
    for group in lists {
        let cells: Vec<(Switching, usize)> = group
            .iter()
            .filter_map(|row| {
                let counted = || {
                    let ns = row.positive(Q::Elapsed)?;
                    Some(row.positive(Q::Switches)? / ns * 1e9)
                };
                let per_s = row.positive(Q::SwitchRate).or_else(counted)?;
                let messages_per_s = Case { row, bounds }.messages_per_s()?.0.value;
                Some((Switching { per_s, messages_per_s }, row.line))
            })
            .collect();
        judged += usize::from(cells.len() >= 4);
        let numbers: Vec<Switching> = cells.iter().map(|(cell, _)| *cell).collect();
        let lines: Vec<usize> = cells.iter().map(|(_, line)| *line).collect();
        if let Some(rate) = physics::steady_switching(&numbers)
            && !found.iter().any(|(_, known): &(Found, Vec<usize>)| {
                known.iter().any(|line| lines.contains(line))
            })
        {
            let text = format!(
                "{} to {} context switches a second in all of them, while message rates differ \
                 {} times: a polling loop is suspected",
                short(rate.least),
                short(rate.most),
                short(rate.rates_apart)
            );
            found.push((Found::suspicious(text), lines));
        }
    }
    (judged, found)
}

#[cfg(test)]
mod tests {
    use iolens_stats::physics::Rounded;
    use proptest::prelude::*;

    use super::*;
    use crate::table::Value;

    fn row(line: usize, label: &str, threads: Option<f64>) -> Row {
        let value = |threads| Value {
            quantity: Q::Threads,
            name: "threads",
            number: Rounded::exact(threads),
            shown: String::new(),
            pmu: None,
        };
        let labels = vec![("mode".to_owned(), label.to_owned())];
        Row { line, labels, values: threads.map(value).into_iter().collect() }
    }

    proptest! {
        #[test]
        fn rows_that_agree_are_one_group(
            all in prop::collection::vec(("[ab]", prop::option::of(0_u8..3)), 0..40)
        ) {
            let rows = (1..).zip(&all).map(|(line, (label, threads))| {
                row(line, label, threads.map(f64::from))
            });
            let rows: Vec<Row> = rows.collect();
            // Each row is held against the first of each group.
            let key = |row: &Row| (row.labels.clone(), numbers(row, &[Q::Threads]));
            let mut expect: Vec<Vec<&Row>> = Vec::new();
            for row in &rows {
                match expect.iter_mut().find(|group| key(group[0]) == key(row)) {
                    Some(group) => group.push(row),
                    None => expect.push(vec![row]),
                }
            }
            prop_assert_eq!(groups(&rows, &[Q::Threads]), expect);
        }
    }
}
