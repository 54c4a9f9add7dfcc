//! The figures of a run of `copy`: rate, duration and ratio by file size, and the CPU
//! time that each byte takes.

use iolens_model::file::CacheState;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::metric::{COPY_TIME, READ_CPU};
use super::{Figure, Group, Sweep, by_size, files, ratio};
use crate::bounds::copy_limit;
use crate::rates::rate;

/// Every figure of some sweeps, which differ in their settings.
pub(super) fn all(run: &Run, analysis: &Analysis, sweeps: &[Sweep<'_>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for sweep in sweeps {
        figures.extend(ratio::figure(run, analysis, sweep));
        if sweep.by_size().len() > 1 {
            figures.extend(rates(run, sweep));
            figures.extend(durations(run, sweep));
            figures.extend(cpu(run, sweep));
        }
        figures.extend(files::by_threads(run, &[sweep]));
    }
    figures
}

/// Rate by file size, below what memory allows.
fn rates(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    let metric = files::read_rate(&sweep.cells());
    metric.is_in(&sweep.cells()).then(|| {
        let mut panels = by_size::panels(run, sweep, &metric);
        let is_warm = sweep.setting.cache() == Some(CacheState::Warm);
        for (panel, (threads, _)) in panels.iter_mut().zip(&sweep.curves).filter(|_| is_warm) {
            for cell in sweep.cells() {
                let Some(bound) = copy_limit(run, *threads, cell.cell.size) else {
                    continue;
                };
                let said = format!("{}{}: {}", bound.name, bound.mark(), rate(bound.bytes_per_s));
                let line = (bound.bytes_per_s / metric.divisor, said);
                if !panel.bounds.contains(&line) {
                    panel.bounds.push(line);
                }
            }
        }
        super::chart::share_scales(&mut panels);
        let title = format!("Throughput by file size ({})", metric.unit);
        let how = "; dashed: a copy in memory";
        let chart = by_size::chart(run, sweep, &title, how, panels);
        sweep.figure(run, Group::Main, "rate-by-size", chart)
    })
}

/// Time of a copy by file size.
fn durations(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    COPY_TIME.is_in(&sweep.cells()).then(|| {
        let panels = by_size::panels(run, sweep, &COPY_TIME);
        let title = "Time of a copy by file size (ms)";
        let how = "; programs include their start";
        let chart = by_size::chart(run, sweep, title, how, panels);
        sweep.figure(run, Group::Main, "duration-by-size", chart)
    })
}

/// CPU time per byte by file size.
fn cpu(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    READ_CPU.is_in(&sweep.cells()).then(|| {
        let panels = by_size::panels(run, sweep, &READ_CPU);
        let title = "CPU time per byte by file size (ns/B)";
        let how = "; user and kernel, of the copying threads or, as wait4(2) reports, of programs";
        let chart = by_size::chart(run, sweep, title, how, panels);
        sweep.figure(run, Group::Time, "cpu-by-size", chart)
    })
}
