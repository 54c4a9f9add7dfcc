//! Tables that say which numbers to believe.

use std::collections::BTreeMap;

use iolens_model::outcome::PmuCounts;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, PmuPlace, Told};

use super::{overlap, toned};
use crate::number::{self, NONE, OrDash};
use crate::table::{Column, Entry, Table};
use crate::words;

/// What was rejected, and why.
pub(crate) fn rejected(analysis: &Analysis) -> Table {
    let columns = vec![
        Column::left("pass", ""),
        Column::prose("cell"),
        Column::left("arm", ""),
        Column::left("status", ""),
        Column::prose("reason"),
    ];
    let mut table = Table::new("Trials that are kept and not used", columns);
    for rejected in &analysis.rejected {
        table.push(vec![
            rejected.pass.to_string().into(),
            rejected.cell.clone().into(),
            rejected.arm.clone().unwrap_or_else(|| "all".to_owned()).into(),
            crate::remarks::status(rejected.status),
            rejected.reason.clone().into(),
        ]);
    }
    table
}

/// What each kind of cores counted, where threads of one end ran on several.
pub(crate) fn by_pmu(run: &Run, told: &Told) -> Table {
    let mut columns = ["cell", "arm", "end", "PMU"].map(|name| Column::left(name, "")).to_vec();
    columns.extend([
        Column::right("cycles", ""),
        Column::right("instructions", ""),
        Column::decimal("clock", "GHz"),
    ]);
    let mut table = Table::new("Counts by kind of core", columns);
    for (place, (cpu_ns, counts)) in sums_by_pmu(run, told) {
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        let cycles = both(counts.cycles_user, counts.cycles_kernel);
        let instructions = both(counts.instructions_user, counts.instructions_kernel);
        let shown = |count: Option<u64>| count.or_dash(|n| n.to_string());
        let clock = cycles.zip(cpu_ns).filter(|&(_, ns)| ns > 0);
        let mut row: Vec<Entry> = place.map(Entry::from).to_vec();
        row.extend([
            shown(cycles).into(),
            shown(instructions).into(),
            number::optional(clock.map(|(cycles, ns)| cycles as f64 / ns as f64)).into(),
        ]);
        table.push(row);
    }
    table
}

/// CPU time and counts by the words of a cell, arm, end and PMU.
fn sums_by_pmu(run: &Run, told: &Told) -> BTreeMap<[String; 4], (Option<u64>, PmuCounts)> {
    let place = |place: &PmuPlace| {
        let cell = words::subject(&run.header, &place.cell);
        [cell, place.arm.clone(), place.end.to_owned(), place.pmu.clone()]
    };
    let mut sums: BTreeMap<[String; 4], (Option<u64>, PmuCounts)> = BTreeMap::new();
    for (at, own) in &told.by_pmu {
        let sum = |(ns, counts): &mut (Option<u64>, PmuCounts)| {
            *ns = ns.zip(own.0).map(|(a, b)| a.saturating_add(b));
            *counts = counts.plus(&own.1);
        };
        sums.entry(place(at)).and_modify(sum).or_insert(*own);
    }
    sums
}

fn yes_or_no(is_so: Option<bool>) -> &'static str {
    is_so.map_or(NONE, |is_so| if is_so { "yes" } else { "no" })
}

/// The A/A arm in every cell, and in each group of arms.
pub(crate) fn self_checks(run: &Run, analysis: &Analysis) -> Table {
    let has_groups = analysis.cells.iter().any(|cell| cell.checks.len() > 1);
    let mut columns = vec![
        Column::left("cell", ""),
        Column::left("A/A ratio", "[95%]"),
        Column::right("half-width", ""),
        Column::right("n", ""),
        Column::left("excludes 1", ""),
    ];
    columns.extend(has_groups.then(|| Column::prose("in the trials of")));
    let mut table = Table::new("The baseline against its hidden second copy", columns);
    for cell in &analysis.cells {
        for check in &cell.checks {
            let contrast = check.contrast.as_ref();
            let out = contrast.and_then(|c| c.pointwise).map(|interval| !interval.contains(1.0));
            let mut row: Vec<Entry> = vec![
                words::subject(&run.header, &cell.cell).into(),
                contrast.or_dash(number::contrast).into(),
                contrast.and_then(|c| c.half_width()).or_dash(number::either_way).into(),
                contrast.or_dash(|c| c.n.to_string()).into(),
                yes_or_no(out).into(),
            ];
            row.extend(has_groups.then(|| Entry::from(check.arms.join(", "))));
            table.push(row);
        }
    }
    table
}

/// The same ratio from arms that share a process and from isolated trials.
pub(crate) fn isolated(run: &Run, analysis: &Analysis) -> Table {
    let columns = vec![
        Column::left("cell", ""),
        Column::left("arm", ""),
        Column::left("alternating in one process", "ratio [95%]"),
        Column::left("each in its own", "ratio [95%]"),
        Column::right("n", "isolated"),
        Column::left("intervals overlap", ""),
    ];
    let mut table = Table::new("Does sharing a process change the ratio?", columns);
    for cell in &analysis.cells {
        for arm in &cell.arms {
            let Some(alone) = &arm.isolated else { continue };
            table.push(vec![
                words::subject(&run.header, &cell.cell).into(),
                toned(&arm.arm.label, &arm.arm.primitive),
                arm.contrast.as_ref().or_dash(number::contrast).into(),
                number::contrast(alone).into(),
                alone.n.to_string().into(),
                yes_or_no(arm.contrast.as_ref().and_then(|shared| overlap(shared, alone))).into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use iolens_model::outcome::CountsByPmu;

    use super::*;
    use crate::fixture;

    #[test]
    fn kinds_of_cores_have_a_row_each_and_a_clock_of_their_own() {
        let (mut run, analysis) = fixture::run();
        assert!(by_pmu(&run, &analysis.told).rows.is_empty(), "one kind of core needs no table");
        let row = |pmu: &str, cycles| CountsByPmu {
            pmu: pmu.to_owned(),
            arm: 0,
            threads: 1,
            task_clock_ns: Some(1_000_000_000),
            counts: PmuCounts {
                cycles_user: Some(cycles),
                cycles_kernel: Some(cycles),
                ..PmuCounts::default()
            },
        };
        let rows = vec![row("cpu_atom", 900_000_000), row("cpu_core", 1_800_000_000)];
        let cell = run.trials[0].cell.clone();
        for trial in run.trials.iter_mut().filter(|trial| trial.cell == cell).take(2) {
            trial.tx.as_mut().expect("a sender").by_pmu = rows.clone();
        }
        let text = by_pmu(&run, &Told::of(&run.trials)).text(200);
        let atom = text.lines().find(|line| line.contains("cpu_atom")).expect("a row");
        assert!(atom.contains("3600000000") && atom.contains("1.80"), "{text}");
        let core = text.lines().find(|line| line.contains("cpu_core")).expect("a row");
        assert!(core.contains("7200000000") && core.contains("3.60"), "{text}");
    }
}
