//! Goodput by message size, with the bandwidth of a plain copy as the bound.

use iolens_model::arm::Role;
use iolens_model::axes::WorkingSet;
use iolens_model::host::Calibration;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{CellAnalysis, Interval};

use super::chart::{CURVES_MAX, Chart, Kind, Panel, Point, Series};
use super::scale::Scale;
use super::{Family, Figure, file_stem, finish, hover_lead, style};
use crate::number::NONE;
use crate::results::interval_text;
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// The figure of one family of curves.
pub(super) fn figure(run: &Run, family: &Family<'_>) -> Figure {
    let panels: Vec<Panel> =
        family.curves.iter().map(|(threads, cells)| panel(run, *threads, cells)).collect();
    let extent = Chart::extent(&panels).unwrap_or(Interval { low: 1.0, high: 10.0 });
    let chart = Chart {
        title: "Goodput by message size (Gbit/s of received payload)".to_owned(),
        subtitle: format!(
            "whiskers and bands: 95 % intervals over trials; dashed: the same bytes copied once, \
             without a kernel{}",
            super::chart::omitted(&family.cells(), CURVES_MAX - 1)
        ),
        y_name: "Gbit/s, log scale".to_owned(),
        x: Scale::sizes(&super::chart::sizes(&panels)),
        y: Scale::rates(extent),
        caches: super::chart::caches(&run.header.host),
        band: None,
        panels,
        footer: words::footer(&run.header, &family.setting),
    };
    finish(file_stem(run, &family.setting, "goodput-by-size"), &chart, table(family))
}

fn panel(run: &Run, threads: u32, cells: &[&CellAnalysis]) -> Panel {
    let mut series = Vec::new();
    for arm in super::chart::arms(cells) {
        if series.len() == CURVES_MAX || !matches!(arm.role, Role::Baseline | Role::Compared) {
            continue;
        }
        let points: Vec<Point> =
            cells.iter().filter_map(|cell| point(run, cell, &arm.label)).collect();
        let missing = super::chart::missing(cells, &arm.label, &points);
        let look = style::of(&arm.primitive);
        series.push(Series { label: arm.label.clone(), look, kind: Kind::Curve, points, missing });
    }
    let working_set = cells.first().map(|cell| cell.cell.working_set);
    let bound = working_set.and_then(|set| bound(&run.header.calibration, set, threads));
    Panel { title: words::threads(threads), series, bound }
}

fn point(run: &Run, cell: &CellAnalysis, label: &str) -> Option<Point> {
    let arm = cell.arms.iter().find(|arm| arm.arm.label == label && arm.status == Status::Ok)?;
    let goodput = arm.figures.as_ref()?.goodput_bits_per_s?;
    let scaled = |i: Interval| Interval { low: i.low / 1e9, high: i.high / 1e9 };
    Some(Point {
        bytes: cell.cell.message_bytes.0 as f64,
        value: goodput.value / 1e9,
        interval: goodput.interval.map(scaled),
        open: false,
        hover: format!(
            "{}: {} Gbit/s, n = {}",
            hover_lead(run, &cell.cell, label),
            interval_text(Some(goodput), 1e9),
            goodput.n
        ),
    })
}

/// What one copy of the bytes allows, Gbit/s. Measured with one thread and
/// with as many as the calibration had; for a number between there is none.
fn bound(calibration: &Calibration, set: WorkingSet, threads: u32) -> Option<(f64, String)> {
    let all = threads >= calibration.threads;
    let bytes_per_s = match (set, threads) {
        (WorkingSet::Hot, 1) => calibration.memcpy_hot_bytes_per_s,
        (WorkingSet::Cold, 1) => calibration.memcpy_cold_bytes_per_s,
        (WorkingSet::Hot, _) if all => calibration.memcpy_hot_all_bytes_per_s,
        (WorkingSet::Cold, _) if all => calibration.memcpy_cold_all_bytes_per_s,
        _ => return None,
    };
    let place = match set {
        WorkingSet::Hot => "in cache",
        WorkingSet::Cold => "out of cache",
    };
    let by = words::threads(if threads == 1 { 1 } else { calibration.threads });
    let bits = bytes_per_s * 8e-9;
    let label = format!("memcpy {place}, {by}: {bits:.0} Gbit/s");
    (bits.is_finite() && bits > 0.0).then_some((bits, label))
}

/// One row per size and thread count, one column per arm.
fn table(family: &Family<'_>) -> Table {
    let all = family.cells();
    let arms: Vec<_> = super::chart::arms(&all)
        .into_iter()
        .filter(|arm| matches!(arm.role, Role::Baseline | Role::Compared))
        .collect();
    let mut columns = vec![Column::right("size", ""), Column::right("threads", "")];
    columns.extend(arms.iter().map(|arm| Column::left(&arm.label, "Gbit/s [95 %]")));
    let mut table = Table::new("Goodput, Gbit/s of received payload", columns);
    for (i, cell) in all.iter().enumerate() {
        let mut row: Vec<Entry> =
            vec![cell.cell.message_bytes.to_string().into(), cell.cell.threads.to_string().into()];
        for arm in &arms {
            let found = cell.arms.iter().find(|other| other.arm.label == arm.label);
            let goodput = found.and_then(|arm| arm.figures.as_ref()?.goodput_bits_per_s);
            row.push(match goodput {
                Some(_) => interval_text(goodput, 1e9).into(),
                None => Entry::toned(NONE, Tone::Faint),
            });
        }
        let first = i > 0 && cell.cell.threads != all[i - 1].cell.threads;
        if first { table.push_group(row) } else { table.push(row) }
    }
    table
}
