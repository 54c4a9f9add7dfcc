//! Goodput by message size, with the bandwidth of a plain copy as the bound.

use iolens_model::axes::WorkingSet;
use iolens_model::host::Calibration;
use iolens_model::run::Run;

use super::metric::GOODPUT;
use super::{Family, Figure, Group, by_size, chart};
use crate::words;

/// The figure of one family of curves.
pub(super) fn figure(run: &Run, family: &Family<'_>) -> Option<Figure> {
    GOODPUT.is_in(&family.cells()).then(|| {
        let mut panels = by_size::panels(run, family, &GOODPUT);
        for (panel, (threads, _)) in panels.iter_mut().zip(&family.curves) {
            panel.bound = bound(&run.header.calibration, family.setting.working_set, *threads);
        }
        chart::share_scales(&mut panels);
        let title = "Goodput by message size (Gbit/s of received payload)";
        let dashed = "; dashed: the same bytes copied once, without a kernel";
        let chart = by_size::chart(run, family, title, dashed, panels);
        family.figure(run, Group::Main, "goodput-by-size", &chart)
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
