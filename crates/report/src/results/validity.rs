//! Tables that say which numbers to believe.

use std::collections::BTreeMap;

use iolens_document::table::{Table, decimal, left, prose, right};
use iolens_model::outcome::PmuCounts;
use iolens_model::run::Run;
use iolens_stats::analysis::{
    Analysis, CellAnalysis, Contrast, GroupCheck, PmuPlace, Rejected, Told,
};

use super::ArmRow;
use crate::figure::style::toned;
use crate::number::{self, InWords, NONE};
use crate::{arms, remarks, words};

/// What was rejected, and why.
pub(crate) fn rejected(analysis: &Analysis) -> Table {
    let row = |rejected: &Rejected| {
        vec![
            left("pass", "", rejected.pass.to_string()),
            prose("setting", rejected.cell.as_str()),
            left("arm", "", rejected.arm.as_deref().unwrap_or("all")),
            left("status", "", remarks::status(rejected.status)),
            prose("reason", rejected.reason.as_str()),
        ]
    };
    Table::of("Trials that are kept and not used", analysis.rejected.iter().map(row))
}

/// What each kind of cores counted, where threads of one end ran on several.
pub(crate) fn by_pmu(run: &Run, told: &Told) -> Table {
    let row = |(place, (cpu_ns, counts)): ([String; 4], (Option<u64>, PmuCounts))| {
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        let cycles = both(counts.cycles_user, counts.cycles_kernel);
        let instructions = both(counts.instructions_user, counts.instructions_kernel);
        let shown = |count: Option<u64>| count.or_dash(|n| n.to_string());
        let clock = cycles.zip(cpu_ns).filter(|&(_, ns)| ns > 0);
        let clock = clock.map(|(cycles, ns)| cycles as f64 / ns as f64);
        let [cell, arm, end, pmu] = place;
        vec![
            left("setting", "", cell),
            left("arm", "", arm),
            left("end", "", end),
            left("PMU", "", pmu),
            right("cycles", "", shown(cycles)),
            right("instructions", "", shown(instructions)),
            decimal("clock", "GHz", number::optional(clock)),
        ]
    };
    Table::of("Counts by kind of core", sums_by_pmu(run, told).into_iter().map(row))
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
    let row = |(cell, check): (&CellAnalysis, &GroupCheck)| {
        let contrast = check.contrast.as_ref();
        let out = contrast.and_then(|c| c.pointwise).map(|interval| !interval.contains(1.0));
        let half = contrast.and_then(|c| c.half_width());
        let mut row = vec![
            left("setting", "", words::subject(&run.header, &cell.cell)),
            left("A/A ratio", "[95%]", contrast.or_dash(number::contrast)),
            right("half-width", "", half.or_dash(number::either_way)),
            right("n", "", contrast.or_dash(|c| c.n.to_string())),
            left("excludes 1", "", yes_or_no(out)),
        ];
        row.extend(has_groups.then(|| prose("in the trials of", check.arms.join(", "))));
        row
    };
    let cells = analysis.cells.iter();
    let checks = cells.flat_map(|cell| cell.checks.iter().map(move |check| (cell, check)));
    Table::of("The baseline against its hidden second copy", checks.map(row))
}

/// The same ratio from arms that share a process and from isolated trials.
pub(crate) fn isolated(run: &Run, analysis: &Analysis) -> Table {
    let row = |(cell, arm): ArmRow<'_>| {
        let (shared, alone) = (arm.contrast.as_ref(), arm.isolated.as_ref()?);
        let overlaps = shared.and_then(|shared| overlap(shared, alone));
        Some(vec![
            left("setting", "", words::subject(&run.header, &cell.cell)),
            left("arm", "", toned(&arm.arm.label, &arm.arm.primitive)),
            left("alternating in one process", "ratio [95%]", shared.or_dash(number::contrast)),
            left("each in its own", "ratio [95%]", number::contrast(alone)),
            right("n", "isolated", alone.n.to_string()),
            left("intervals overlap", "", yes_or_no(overlaps)),
        ])
    };
    let rows = arms::in_cells(analysis).filter_map(row);
    Table::of("Does sharing a process change the ratio?", rows)
}

/// Whether the pointwise intervals of two contrasts meet; `None` without two that say something.
pub(crate) fn overlap(a: &Contrast, b: &Contrast) -> Option<bool> {
    let (a, b) = number::usable(a.pointwise).zip(number::usable(b.pointwise))?;
    Some(a.0 <= b.1 && b.0 <= a.1)
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
