//! Sampled trials beside the timed ones: where an arm needed more or less CPU
//! time, its shares are those of another state of the machine.

use iolens_model::cell::Cell;
use iolens_stats::analysis::{Analysis, Estimate, Figures, Interval};
use iolens_stats::attribution::{ArmAttribution, Explanation};

use super::time;

/// A difference is worth a word from this part of the timed value on.
const WORTH_SAYING: f64 = 0.1;

/// A line for each arm whose CPU time per message was another one.
pub(super) fn differences(explanation: &Explanation, analysis: &Analysis) -> Vec<String> {
    let attribution = &explanation.attribution;
    let Some(cell) = analysis.cells.iter().find(|cell| cell.cell == attribution.cell) else {
        return Vec::new();
    };
    let line = |arm: &ArmAttribution| {
        let of_run = cell.arms.iter().find(|found| found.arm.label == arm.arm)?;
        let timed = cpu_ns(&cell.cell, of_run.figures.as_ref()?)?;
        difference(arm, super::unit_of(explanation), timed)
    };
    // User time alone is no CPU time.
    attribution.arms.iter().filter(|_| attribution.kernel).filter_map(line).collect()
}

/// Of both ends; the sum's interval is not wider than the sum of the parts'.
fn cpu_ns(cell: &Cell, figures: &Figures) -> Option<Interval> {
    let bounds =
        |part: Estimate| part.interval.unwrap_or(Interval { low: part.value, high: part.value });
    if cell.is_alone() {
        return figures.tx_cpu_ns_per_message.map(bounds);
    }
    let bytes = cell.size.0 as f64;
    let tx = figures.tx_cpu_ns_per_byte.map(bounds)?;
    let rx = figures.rx_cpu_ns_per_byte.map_or(Interval { low: 0.0, high: 0.0 }, bounds);
    Some(Interval { low: bytes * (tx.low + rx.low), high: bytes * (tx.high + rx.high) })
}

fn difference(arm: &ArmAttribution, unit: &str, timed: Interval) -> Option<String> {
    let sampled = arm.both.cpu_ns_per_message;
    let of_sampled =
        sampled.interval.unwrap_or(Interval { low: sampled.value, high: sampled.value });
    let apart = of_sampled.low > timed.high * (1.0 + WORTH_SAYING)
        || of_sampled.high < timed.low * (1.0 - WORTH_SAYING);
    apart.then(|| {
        format!(
            "{} took {} of CPU time per {unit} while it was sampled, and {} to {} in the timed \
             trials: the machine was in another state then, and the shares are of that one.",
            arm.arm,
            time(sampled.value),
            time(timed.low),
            time(timed.high)
        )
    })
}

#[cfg(test)]
mod tests {
    use iolens_stats::attribution;

    use super::*;
    use crate::fixture;

    #[test]
    fn another_state_of_the_machine_is_told() {
        let (run, mut analysis) = fixture::whole();
        let explanation = attribution::explain(&run.profiles, "send_staged").remove(0);
        let cell = explanation.attribution.cell.clone();
        let place = analysis.cells.iter().position(|found| found.cell == cell).unwrap();
        let sampled = explanation.attribution.arms[0].both.cpu_ns_per_message.value;
        let mut told = |ratio: f64| {
            let arms = &mut analysis.cells[place].arms;
            let arm = arms.iter_mut().find(|arm| arm.arm.label == "send_staged").unwrap();
            let half = sampled * ratio / 2.0 / cell.size.0 as f64;
            let estimate = Estimate { value: half, interval: None, n: 12 };
            let figures = arm.figures.as_mut().unwrap();
            figures.tx_cpu_ns_per_byte = Some(estimate);
            figures.rx_cpu_ns_per_byte = Some(estimate);
            let lines = differences(&explanation, &analysis);
            lines.into_iter().filter(|line| line.starts_with("send_staged took")).count()
        };
        assert_eq!([told(0.5), told(0.95), told(1.05), told(2.0)], [1, 0, 0, 1]);
    }
}
