//! Goodput by message size, with the bandwidths of a plain copy and of mere
//! reading as the bounds.

use iolens_model::axes::WorkingSet;
use iolens_model::host::Calibration;
use iolens_model::run::Run;

use super::metric::GOODPUT;
use super::{Figure, Group, Sweep, by_size, chart};
use crate::words;

/// The figure of one sweep.
pub(super) fn figure(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    GOODPUT.is_in(&sweep.cells()).then(|| {
        let mut panels = by_size::panels(run, sweep, &GOODPUT);
        for (panel, (threads, _)) in panels.iter_mut().zip(&sweep.curves) {
            let set = sweep.setting.working_set();
            panel.bounds =
                set.map_or_else(Vec::new, |set| bounds(&run.header.calibration, set, *threads));
        }
        chart::share_scales(&mut panels);
        let title = "Throughput by message size (Gbit/s)";
        let dashed = "; dashed: the same bytes copied once, and only read, without a kernel";
        let chart = by_size::chart(run, sweep, title, dashed, panels);
        sweep.figure(run, Group::Main, "goodput-by-size", chart)
    })
}

/// What one copy of the bytes allows, and what reading them once does, Gbit/s.
/// Measured with one thread and with as many as the calibration had; for a
/// number between there is none.
fn bounds(calibration: &Calibration, set: WorkingSet, threads: u32) -> Vec<(f64, String)> {
    let all = threads >= calibration.threads;
    if threads > 1 && !all {
        return Vec::new();
    }
    let c = calibration;
    let pick = |[hot, cold]: [f64; 2]| match set {
        WorkingSet::Hot => hot,
        WorkingSet::Cold => cold,
    };
    let one = threads == 1;
    let copied = match one {
        true => [c.memcpy_hot_bytes_per_s, c.memcpy_cold_bytes_per_s],
        false => [c.memcpy_hot_all_bytes_per_s, c.memcpy_cold_all_bytes_per_s],
    };
    let read = match one {
        true => [c.costs.scan_hot_bytes_per_s, c.costs.scan_cold_bytes_per_s],
        false => [c.costs.scan_hot_all_bytes_per_s, c.costs.scan_cold_all_bytes_per_s],
    };
    let place = match set {
        WorkingSet::Hot => "in cache",
        WorkingSet::Cold => "out of cache",
    };
    let by = words::threads(if one { 1 } else { c.threads });
    let bound = |what: &str, bytes_per_s: f64| {
        let bits = bytes_per_s * 8e-9;
        let label = format!("{what} {place}, {by}: {bits:.0} Gbit/s");
        (bits.is_finite() && bits > 0.0).then_some((bits, label))
    };
    let copied = bound("memcpy", pick(copied));
    copied.into_iter().chain(bound("read only", pick(read))).collect()
}
