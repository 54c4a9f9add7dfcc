//! What is shown of costs beside ratios: the baseline's mean times the ratio. Totals of arms
//! that share no trial met the machine in different moods, and rare long slices change totals
//! and not the typical ratio; so a table of totals may contradict its own ratios. Exports have
//! the totals as they were counted.

use std::sync::Arc;

use iolens_model::cell::Cell;
use iolens_model::outcome::Status;

use crate::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, EndMetric};
use crate::estimate::{Estimate, Interval};
use crate::extremes;
use crate::quantity::Quantity;
use crate::told::TimeSpent;

impl Analysis {
    /// The same with the costs that are shown.
    pub fn shown(&self) -> Analysis {
        let cells: Vec<CellAnalysis> = self.cells.iter().map(CellAnalysis::shown).collect();
        Analysis { extremes: extremes::of(&cells), cells, ..self.clone() }
    }

    /// The same of these cells alone, for a summary of them: what is said of curves stays where
    /// all of a curve does.
    pub fn narrowed(&self, is_meant: impl Fn(&Cell) -> bool) -> Analysis {
        let mut own = self.clone();
        let is_whole = |curve: &Cell| {
            let of_curve = self.cells.iter().filter(|cell| cell.cell.curve() == *curve);
            of_curve.into_iter().all(|cell| is_meant(&cell.cell))
        };
        own.cells.retain(|cell| is_meant(&cell.cell));
        // The time of trials is known for all settings together only.
        Arc::make_mut(&mut own.told).spent = TimeSpent::default();
        own.crossovers.retain(|found| is_whole(&found.curve));
        own.crossings.retain(|found| is_whole(&found.curve));
        own
    }
}

impl CellAnalysis {
    /// The same with what is compared of each arm as the baseline's mean times its ratio, and
    /// the ratio's interval around it. Arms without a ratio keep their totals.
    pub fn shown(&self) -> CellAnalysis {
        let Some(baseline) = self.baseline().filter(|arm| arm.status == Status::Ok) else {
            return self.clone();
        };
        let arm = |arm: &ArmAnalysis| match arm.status {
            Status::Ok => self.arm_shown(arm, baseline),
            _ => arm.clone(),
        };
        CellAnalysis { arms: self.arms.iter().map(arm).collect(), ..self.clone() }
    }

    /// What is shown of an arm, to be compared with that of another cell. The interval of a ratio
    /// holds within its cell alone: outside of it what is not known of the baseline counts too.
    pub fn across(
        &self,
        arm: &ArmAnalysis,
        of: impl Fn(&ArmAnalysis) -> Option<Estimate>,
    ) -> Option<Estimate> {
        let own = of(arm)?;
        let baseline = self.baseline().filter(|_| arm.contrast.is_some()).and_then(of);
        Some(baseline.map_or(own, |baseline| own.with(baseline, own.value)))
    }

    fn arm_shown(&self, arm: &ArmAnalysis, baseline: &ArmAnalysis) -> ArmAnalysis {
        let mut shown = arm.clone();
        if let Some(contrast) = &arm.contrast {
            by(self.compared, contrast, baseline, &mut shown);
        }
        if let Some((cpu, contrast)) = Quantity::cpu_of(&self.cell).zip(arm.cpu_contrast.as_ref()) {
            by(cpu, contrast, baseline, &mut shown);
        }
        shown
    }
}

/// Sets what follows from one contrast.
fn by(quantity: Quantity, contrast: &Contrast, baseline: &ArmAnalysis, shown: &mut ArmAnalysis) {
    let cost = |own: &mut Estimate, base: Estimate| *own = times(base, contrast, Sense::Cost);
    let rate = |own: &mut Estimate, base: Estimate| *own = times(base, contrast, Sense::Rate);
    let servers = shown.server.as_mut().zip(baseline.server.as_ref());
    let figures = shown.figures.as_mut().zip(baseline.figures.as_ref());
    match quantity {
        Quantity::Time => {
            if let Some((own, base)) = figures {
                cost(&mut own.ns_per_message, base.ns_per_message);
                let both = own.ns_per_byte.as_mut().zip(base.ns_per_byte);
                both.into_iter().for_each(|(own, base)| cost(own, base));
                let goodput = own.goodput_bits_per_s.as_mut().zip(base.goodput_bits_per_s);
                let read = own.read_bytes_per_s.as_mut().zip(base.read_bytes_per_s);
                goodput.into_iter().chain(read).for_each(|(own, base)| rate(own, base));
            }
            if let Some((own, base)) = servers {
                rate(&mut own.requests_per_s, base.requests_per_s);
            }
        }
        Quantity::Cpu => {
            let Some((own, base)) = figures else { return };
            let Some((all, base)) = own.cpu_ns_per_message.as_mut().zip(base.cpu_ns_per_message)
            else {
                return;
            };
            let total = all.value;
            cost(all, base);
            // The ends have the shares of it that they had of the total.
            let factor = all.value / total;
            let ends = [
                &mut own.tx_cpu_ns_per_message,
                &mut own.tx_cpu_ns_per_byte,
                &mut own.rx_cpu_ns_per_byte,
            ];
            ends.into_iter().flatten().for_each(|end| *end = end.map(|value| value * factor));
        }
        Quantity::ServerCpu => {
            let cpu = EndMetric::TaskClock;
            let both = servers.and_then(|(own, base)| {
                own.server.0[cpu as usize].as_mut().zip(base.server.value(cpu))
            });
            both.into_iter().for_each(|(own, base)| cost(&mut own.value, base));
        }
    }
}

/// Whether less or more is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    Cost,
    Rate,
}

fn times(base: Estimate, contrast: &Contrast, sense: Sense) -> Estimate {
    let of = |ratio: f64| match sense {
        Sense::Cost => base.value / ratio,
        Sense::Rate => base.value * ratio,
    };
    let interval = contrast.pointwise.map(|Interval { low, high }| match sense {
        Sense::Cost => Interval { low: of(high), high: of(low) },
        Sense::Rate => Interval { low: of(low), high: of(high) },
    });
    Estimate { value: of(contrast.ratio), interval, n: contrast.n }
}
