//! Everything about one cell: each arm with every figure that was measured,
//! its round trips and its zero-copy sends.

use iolens_document::table::{Table, left, right};
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::MultishotCounts;
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::{
    ArmAnalysis, CellAnalysis, Estimate, Figures, LatencyFigures, Told, ZerocopyFigures,
};

use super::{Of, name, remark};
use crate::arms::span;
use crate::number::Unit;
use crate::number::{InWords, count, interval_text, percent};

const FIGURES: [(&str, &str, Of); 16] = [
    ("CPU sender", "ns/B", |f| f.tx_cpu_ns_per_byte),
    ("CPU receiver", "ns/B", |f| f.rx_cpu_ns_per_byte),
    ("softirq", "ns/B", |f| f.softirq_ns_per_byte),
    ("calls", "per msg", |f| f.tx_calls_per_message),
    ("segments", "per msg", |f| f.tx_segments_per_message),
    ("waits", "per msg", |f| f.voluntary_switches_per_message),
    ("preempted", "per msg", |f| f.involuntary_switches_per_message),
    ("cycles", "per B", |f| f.cycles_per_byte),
    ("L1d misses", "per KiB", |f| f.l1d_misses_per_kib),
    ("LLC references", "per KiB", |f| f.llc_references_per_kib),
    ("LLC misses", "per KiB", |f| f.llc_misses_per_kib),
    ("dTLB misses", "per KiB", |f| f.dtlb_misses_per_kib),
    ("branch misses", "per KiB", |f| f.branch_misses_per_kib),
    ("front end stalled", "per cycle", |f| f.stalled_frontend_per_cycle),
    ("back end stalled", "per cycle", |f| f.stalled_backend_per_cycle),
    ("run delay", "ns/msg", |f| f.run_delay_ns_per_message),
];

/// The arms of a cell, every figure that at least one of them has.
pub(crate) fn cell(cell: &CellAnalysis, quick: bool) -> Table {
    const MAIN: [&str; 7] =
        ["method", "throughput", "per message", "speed", "95% interval", "n", "copies"];
    let unit = super::goodput_unit(&[cell]);
    let mut rates = cell.arms.iter().filter_map(|arm| arm.figures.as_ref());
    let rate = rates.any(|f| f.goodput_bits_per_s.is_some()).then_some(unit);
    let of_trials = format!("least to most, {}", rate.map_or("ns/msg", |unit| unit.name));
    let row = |(_, arm): &super::ArmRow<'_>| {
        let main = super::main(arm, unit, quick);
        let at = |name: &str| main.iter().find(|(column, _)| column.name == name).cloned();
        let mut row: super::Row = MAIN.into_iter().filter_map(at).collect();
        row.extend(super::figures(cell, arm, &FIGURES));
        row.push(left("trials", &of_trials, least_to_most(arm, rate)));
        row
    };
    super::filled(None, &super::by_size(&[cell], false), false, |(_, arm)| remark(arm), row)
}

/// The least and the most of the trials behind the number; nothing for an arm
/// whose trials have another unit than the column.
fn least_to_most(arm: &ArmAnalysis, rate: Option<Unit>) -> String {
    let own = |f: &&Figures| f.goodput_bits_per_s.is_some() == rate.is_some();
    let figures = arm.figures.as_ref().filter(own);
    let scale = rate.map_or(1.0, |unit| unit.size);
    figures.and_then(|figures| span(figures.trial_values.iter().copied())).or_dash(|(low, high)| {
        format!("{} to {}", three_digits(low / scale), three_digits(high / scale))
    })
}

/// Round trips of a cell; `None` in modes without requests.
pub(crate) fn latency(cell: &CellAnalysis) -> Option<Table> {
    let row = |arm: &ArmAnalysis| {
        let times = arm.latency.as_ref()?;
        Some(vec![
            left("arm", "", name(arm)),
            left("mean", "µs [95%]", interval_text(Some(times.mean_ns), 1e3)),
            left("p50", "µs [95%]", percentile(times, times.p50_ns, 0.5)),
            left("p99", "µs [95%]", percentile(times, times.p99_ns, 0.99)),
            left("p99.9", "µs [95%]", percentile(times, times.p999_ns, 0.999)),
            right("round trips", "", times.samples.to_string()),
        ])
    };
    let arms = cell.arms.iter().filter(|arm| arm.arm.role != Role::Control);
    Table::of("Round trips, from request to the last byte of its response", arms.filter_map(row))
        .with_rows()
}

/// A percentile, or why it is not shown.
pub(crate) fn percentile(times: &LatencyFigures, value: Option<Estimate>, q: f64) -> String {
    match value {
        Some(_) => interval_text(value, 1e3),
        None => format!("n/a ({} of {:.0} needed)", times.samples, (3.7 / (1.0 - q)).ceil()),
    }
}

/// What the kernel did with the bytes of a cell where it decides that itself,
/// one sentence per arm and end.
pub(crate) fn decided(cell: &CellAnalysis, told: &Told) -> Vec<String> {
    let receiver = cell.cell.receiver();
    let mapped = |arm: &ArmAnalysis| {
        Some(format!("{} mapped {} of its bytes", receiver?, percent(arm.mapped_share?)))
    };
    let armed_again = |arm: &ArmAnalysis| {
        let MultishotCounts { rearms, enobufs } = arm.multishot?;
        Some(format!(
            "{} was armed again {rearms} times, its provided buffers ran out (ENOBUFS) {enobufs} \
             times",
            receiver?
        ))
    };
    let mut sentences = of_each(cell, |arm| Some(sends(arm.zerocopy.as_ref()?)));
    if !sentences.is_empty() {
        sentences.extend(under_way(cell, told));
    }
    sentences.extend(of_each(cell, mapped));
    sentences.extend(of_each(cell, armed_again));
    sentences
}

/// A sentence for each arm of which there is something to say.
fn of_each(cell: &CellAnalysis, said: impl Fn(&ArmAnalysis) -> Option<String>) -> Vec<String> {
    let sentence = |arm: &ArmAnalysis| Some(format!("{}: {}.", arm.shown_label(), said(arm)?));
    cell.arms.iter().filter_map(sentence).collect()
}

/// How many messages zero-copy arms of a cell can have under way, which bounds them where the
/// way to the receiver is long: a message is sent from again once it was released.
fn under_way(cell: &CellAnalysis, told: &Told) -> Option<String> {
    let (messages, ring) = most_under_way(cell, told)?;
    Some(format!(
        "Zero-copy arms have at most {} of {} under way in each thread, {ring} in all.",
        count(messages, "message"),
        cell.cell.size
    ))
}

/// Messages of each thread, and bytes of all threads together.
fn most_under_way(cell: &CellAnalysis, told: &Told) -> Option<(u64, Bytes)> {
    let Cell { size, threads, .. } = &cell.cell;
    let of_cell = told.rings.iter().filter(|(of, with, _)| (of, with) == (size, threads));
    let ring = of_cell.map(|&(.., bytes)| bytes).max()?;
    Some((ring / size.0.max(1) / u64::from((*threads).max(1)), Bytes(ring)))
}

/// The same of the cells of a curve, beside the table that has their rows; `None` where none of
/// them has a zero-copy arm.
pub(crate) fn in_flight(cells: &[&CellAnalysis], told: &Told) -> Option<String> {
    let has_any = |cell: &&&CellAnalysis| cell.arms.iter().any(|arm| arm.zerocopy.is_some());
    let of_cell = |cell: &&CellAnalysis| {
        let (messages, _) = most_under_way(cell, told)?;
        Some(format!("{messages} of {}", cell.cell.size))
    };
    let all: Vec<String> = cells.iter().filter(has_any).filter_map(of_cell).collect();
    (!all.is_empty()).then(|| {
        format!(
            "Zero-copy arms have at most so many messages under way in each thread: {}.",
            all.join(", ")
        )
    })
}

/// What became of zero-copy sends.
pub(crate) fn sends(found: &ZerocopyFigures) -> String {
    let copied = found.copied_share.map_or_else(
        || "the kernel did not say which of them it copied".to_owned(),
        |share| format!("{} of them reported as copied", percent(share)),
    );
    let notifications = found
        .notifications_per_send
        .or_empty(|per_send| format!(" in {per_send:.2} notifications per send"));
    format!(
        "{} zero-copy sends, {} completions read back{notifications}, {copied}, {} sends refused \
         with ENOBUFS or ENOMEM and repeated",
        found.sends, found.completions, found.enobufs
    )
}

#[cfg(test)]
mod tests {
    use iolens_stats::analysis::Analysis;
    use iolens_stats::remark::UnequalSlices;

    use super::*;
    use crate::fixture;
    use crate::fixture_findings::findings;

    #[test]
    fn a_cell_has_the_columns_that_were_measured_and_no_other() {
        let (_, analysis) = findings();
        let mut first = analysis.cells[0].clone();
        for figures in first.arms.iter_mut().filter_map(|arm| arm.figures.as_mut()) {
            figures.cycles_per_byte = None;
        }
        let names = |table: Table| table.columns.into_iter().map(|c| c.name).collect::<Vec<_>>();
        assert!(!names(cell(&first, false)).contains(&"cycles".to_owned()));
        first.arms[0].figures.as_mut().expect("the baseline ran").cycles_per_byte =
            Some(crate::fixture_findings::estimate(1.0, 0.1));
        assert!(names(cell(&first, false)).contains(&"cycles".to_owned()));
    }

    #[test]
    fn too_few_round_trips_are_said_and_copied_sends_counted() {
        let (_, analysis) = findings();
        let rr = analysis.cells.last().expect("a cell");
        let table = latency(rr).expect("round trips").text(200);
        assert!(table.contains("n/a (1200 of 3700 needed)"), "{table}");
        assert_eq!(
            of_each(rr, |arm| Some(sends(arm.zerocopy.as_ref()?))),
            [
                "sendmsg_zerocopy (copied): 24000 zero-copy sends, 24000 completions read back in 0.25 \
              notifications per send, 100% of them reported as copied, 3 sends refused with ENOBUFS or ENOMEM and \
              repeated."
            ]
        );
    }

    #[test]
    fn messages_under_way_stand_beside_zero_copy_sends_alone() {
        let (_, analysis) = findings();
        let rr = analysis.cells.last().expect("a cell");
        let Cell { size, threads, .. } = rr.cell;
        let mut told = Told::default();
        told.rings.insert((size, threads, size.0 * 64 * u64::from(threads)));
        let said = decided(rr, &told);
        let ring = Bytes(size.0 * 64 * u64::from(threads));
        let expect = format!(
            "Zero-copy arms have at most 64 messages of {size} under way in each thread, {ring} in all."
        );
        assert!(said.contains(&expect), "{said:?}");
        let mut copying = rr.clone();
        copying.arms.iter_mut().for_each(|arm| arm.zerocopy = None);
        assert!(!decided(&copying, &told).iter().any(|said| said.contains("under way")));
    }

    #[test]
    fn messages_under_way_stand_below_the_tables_of_a_run() {
        let style = crate::text::Style::plain(200);
        let told = |(run, mut analysis): (_, Analysis)| {
            let mut told = Told::default();
            for Cell { size, threads, .. } in analysis.cells.iter().map(|cell| &cell.cell) {
                let ring = (1 << 20).max(2 * size.0) * u64::from(*threads);
                told.rings.insert((*size, *threads, ring));
            }
            analysis.told = std::sync::Arc::new(told);
            crate::text::run(&run, &analysis, &style)
        };
        let said = "Zero-copy arms have at most so many messages under way in each thread: 16384 of \
                    64 B, ";
        assert!(told(fixture::whole()).contains(said), "one table for all arms");
        let (run, mut families) = fixture::families();
        let first = families.cells[0].cell.curve();
        families.cells.retain(|cell| cell.cell.curve() == first);
        assert!(told((run, families)).contains(said), "a table for each family");
        assert!(!told(fixture::run()).contains("under way"), "no zero-copy arm");
    }

    /// What is too little for a verdict to fall and too much to be silent about.
    #[test]
    fn what_a_ratio_may_be_off_by_stands_in_its_row() {
        let (run, mut analysis) = fixture::run();
        let slices =
            UnequalSlices { arm_ns: 2.51e6, baseline_ns: 5.02e6, overhead_ns: 2e4, bias: 0.004 };
        let said = "slices of 2.51 ms beside the baseline's 5.02 ms";
        let cell = &mut analysis.cells[2];
        cell.arms[1].unequal = Some(slices);
        assert!(cell.arms[1].is_ranked());
        for table in
            [crate::results::results(&run.header.plan, &[cell], 200), super::cell(cell, false)]
        {
            let text = table.text(200);
            assert!(text.contains("send¹"), "{text}");
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn a_request_that_was_armed_again_is_said() {
        let (_, mut analysis) = findings();
        let cell = &mut analysis.cells[0];
        cell.cell.net_mut().unwrap().receiver = "uring_recv_multishot".to_owned();
        cell.arms[0].multishot = Some(MultishotCounts { rearms: 7, enobufs: 5 });
        let said = "send_staged: uring_recv_multishot was armed again 7 times, its provided buffers \
                    ran out (ENOBUFS) 5 times.";
        assert_eq!(decided(cell, &Told::default()).last().map(String::as_str), Some(said));
    }
}
