//! The headline of a curve: which arm at which of its sizes, one sentence.

use std::collections::BTreeMap;

use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::{Kind, Point, Sentence, UNEQUAL, conditional, unequal};
use crate::number::{list, ratio};
use crate::standing::{Candidate, Standing, standing};
use crate::{alone, words};

/// One sentence per curve of several sizes.
pub(super) fn headlines(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let curves = crate::results::curves(analysis);
    let several = curves.into_iter().filter(|(_, cells)| cells.len() > 1);
    several.map(|(curve, cells)| headline(run, analysis, &curve, &cells)).collect()
}

fn headline(run: &Run, analysis: &Analysis, curve: &Cell, cells: &[&CellAnalysis]) -> Sentence {
    if let Some(points) = alone::over_sizes(run, analysis, curve, cells) {
        let subject = words::curve(&run.header, curve);
        return Sentence::of_points(run, Kind::Headline, subject, points);
    }
    let mut segments: Vec<Segment> = Vec::new();
    for cell in cells {
        let standing = standing(cell, analysis.delta);
        let segment = Segment::of(&standing, cell.cell.size);
        match segments.last_mut() {
            Some(known) if known.said == segment.said => known.extend(segment),
            _ => segments.push(segment),
        }
    }
    let baseline = &run.header.plan.baseline;
    let mut points: Vec<Point> = segments.iter().map(|segment| segment.point(baseline)).collect();
    points.extend(conditional::over(cells, baseline));
    points.extend(not_ranked(cells));
    Sentence::of_points(run, Kind::Headline, words::curve(&run.header, curve), points)
}

/// `not ranked: writev at 64 B and 4 KiB (slices of unequal length)`; null where all are.
fn not_ranked(cells: &[&CellAnalysis]) -> Option<Point> {
    let mut sizes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in cells {
        for arm in cell.arms.iter().filter_map(unequal) {
            sizes.entry(&arm.arm.label).or_default().push(cell.cell.size.to_string());
        }
    }
    let one = |(label, sizes): (&str, Vec<String>)| match sizes.len() == cells.len() {
        true => label.to_owned(),
        false => format!("{label} at {}", list(&sizes)),
    };
    let arms: Vec<String> = sizes.into_iter().map(one).collect();
    (!arms.is_empty()).then(|| Point {
        lead: format!("not ranked: {} ({UNEQUAL})", arms.join(", ")),
        detail: String::new(),
    })
}

/// `1.06× to 1.20× send_staged`; nothing without ratios.
pub(super) fn effect_over(ratios: &[f64], baseline: &str) -> Option<String> {
    let low = ratios.iter().copied().reduce(f64::min).map(ratio);
    let high = ratios.iter().copied().reduce(f64::max).map(ratio);
    match (low, high) {
        (Some(low), Some(high)) if low != high => Some(format!("{low}× to {high}× {baseline}")),
        (Some(low), _) => Some(format!("{low}× {baseline}")),
        _ => None,
    }
}

/// What can be said of a size, but for who is lowest where that is open.
#[derive(PartialEq)]
enum Said {
    /// One sentence without its sizes.
    Sure(String),
    /// Any of these may be cheapest.
    Open(Vec<String>),
    /// As [`Said::Open`], with more of them than can be read: who is lowest.
    Many(String),
}

/// Arms that a sentence about several sizes names at most as not separated.
const NAMED: usize = 3;

/// Neighbouring sizes of which the same can be said.
struct Segment {
    said: Said,
    first: Bytes,
    last: Bytes,
    /// The arms with the lowest time at these sizes, and their ratios.
    lowest: Vec<String>,
    ratios: Vec<f64>,
    /// How many others are not separated from it.
    others: (usize, usize),
}

impl Segment {
    fn of(standing: &Standing, size: Bytes) -> Segment {
        let said = match standing {
            Standing::Cheapest { best, .. } => Said::Sure(format!("{} is cheapest", best.shown())),
            Standing::Tie { best, others } => {
                Said::Sure(format!("{} tie", labels(best, others).join(" and ")))
            }
            Standing::Unseparated { best, others } if others.len() > NAMED => {
                Said::Many(best.shown())
            }
            Standing::Unseparated { best, others } => Said::Open(labels(best, others)),
            Standing::NoInterval { best, .. } => {
                Said::Sure(format!("{} is lowest (no interval)", best.shown()))
            }
            Standing::Alone(only) => Said::Sure(format!("{} is alone", only.shown())),
            Standing::Nothing(_) => Said::Sure("no comparison".to_owned()),
        };
        let lowest = Vec::from_iter(standing.best().map(|best| best.shown()));
        // Of a tie no ratio is said: which of the two it is of would be chance.
        let tie = matches!(standing, Standing::Tie { .. });
        let contrast = standing.best().and_then(|best| best.contrast).filter(|_| !tie);
        let ratios = Vec::from_iter(contrast.map(|contrast| contrast.ratio));
        let others = match standing {
            Standing::Unseparated { others, .. } => others.len(),
            _ => 0,
        };
        Segment { said, first: size, last: size, lowest, ratios, others: (others, others) }
    }

    fn extend(&mut self, next: Segment) {
        self.last = next.last;
        self.ratios.extend(next.ratios);
        self.others = (self.others.0.min(next.others.0), self.others.1.max(next.others.1));
        for arm in next.lowest {
            if !self.lowest.contains(&arm) {
                self.lowest.push(arm);
            }
        }
    }

    fn point(&self, baseline: &str) -> Point {
        let span = match self.first == self.last {
            true => format!("at {}", self.first),
            false => format!("from {} to {}", self.first, self.last),
        };
        let effect = effect_over(&self.ratios, baseline);
        let (lead, rivals) = match &self.said {
            Said::Sure(text) => (format!("{text} {span}"), None),
            Said::Many(lowest) => {
                let others = match self.others {
                    (least, most) if least == most => most.to_string(),
                    (least, most) => format!("{least} to {most}"),
                };
                (format!("{lowest} is lowest {span}"), Some(format!("{others} others")))
            }
            Said::Open(all) => {
                let rivals = all.iter().filter(|arm| !self.lowest.contains(arm));
                let rivals: Vec<String> = rivals.cloned().collect();
                let none = rivals.is_empty();
                let rivals = if none { "each other".to_owned() } else { list(&rivals) };
                (format!("{} is lowest {span}", self.lowest.join(" or ")), Some(rivals))
            }
        };
        let rivals = rivals.map(|rivals| format!("not separated from {rivals}"));
        let detail = effect.into_iter().chain(rivals).collect::<Vec<_>>().join(", ");
        Point { lead, detail }
    }
}

/// Labels in a fixed order, so that neighbouring sizes can be said together.
fn labels(best: &Candidate, others: &[Candidate]) -> Vec<String> {
    let mut all: Vec<String> = std::iter::once(best).chain(others).map(Candidate::shown).collect();
    all.sort_unstable();
    all
}
