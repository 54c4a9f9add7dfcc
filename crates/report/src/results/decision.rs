//! Which arm to use from which size to which: one row per stretch of sizes of
//! a curve at which the same can be said.

use iolens_model::cell::Cell;
use iolens_model::family::Condition;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, CellAnalysis, Contrast};

use super::interval_text;
use crate::arms::span;
use crate::number::{self, NONE, ratio};
use crate::standing::{self, Candidate, standing};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// The decision table.
pub(crate) fn decision(run: &Run, analysis: &Analysis) -> Table {
    let plan = &run.header.plan;
    let round_trips = analysis.cells.iter().flat_map(|c| &c.arms).any(|a| a.latency.is_some());
    let conditional = standing::conditional_in(&analysis.cells);
    let mut conditions: Vec<Condition> =
        conditional.iter().filter_map(|arm| arm.condition).collect();
    conditions.sort_unstable();
    conditions.dedup();
    let mut columns = vec![
        Column::left("curve", ""),
        Column::left(&words::size_of(plan), ""),
        Column::left(
            "use",
            if conditions.is_empty() { "" } else { "where the fields lie scattered" },
        ),
        Column::left(&format!("speed against {}", plan.baseline), "ratio [95 %]"),
    ];
    for condition in &conditions {
        columns.push(Column::left(condition.heading(), "ratio [95 %]"));
    }
    if round_trips {
        columns.push(Column::left("its round trip, p50 / p99", "µs"));
    }
    let mut table = Table::new(words::cheapest(plan), columns);
    for (curve, cells) in super::curves(analysis) {
        for (i, stretch) in stretches(&cells, analysis.delta).iter().enumerate() {
            let mut row = stretch.entries(if i == 0 {
                words::curve(&run.header, &curve)
            } else {
                String::new()
            });
            row.extend(conditions.iter().map(|condition| stretch.on(*condition).into()));
            if round_trips {
                row.push(stretch.round_trip(&curve).into());
            }
            if i == 0 { table.push_group(row) } else { table.push(row) }
        }
    }
    table
}

/// Neighbouring sizes of a curve with the same choice.
struct Stretch<'a> {
    choice: String,
    primitive: Option<&'a str>,
    cells: Vec<(&'a CellAnalysis, Option<Candidate<'a>>)>,
}

fn stretches<'a>(cells: &[&'a CellAnalysis], delta: f64) -> Vec<Stretch<'a>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for cell in cells {
        let standing = standing(cell, delta);
        let (choice, best) = (standing.brief(), standing.best());
        match stretches.last_mut() {
            Some(last) if last.choice == choice => last.cells.push((cell, best)),
            _ => stretches.push(Stretch {
                choice,
                primitive: best.map(|best| best.primitive),
                cells: vec![(cell, best)],
            }),
        }
    }
    stretches
}

impl Stretch<'_> {
    fn entries(&self, curve: String) -> Vec<Entry> {
        let tone = match self.primitive {
            Some(primitive) => crate::figure::style::tone(&primitive),
            None => Tone::Faint,
        };
        vec![
            curve.into(),
            self.sizes().into(),
            Entry::toned(&self.choice, tone),
            self.effect().into(),
        ]
    }

    fn sizes(&self) -> String {
        let size =
            |cell: Option<&(&CellAnalysis, _)>| cell.map_or(Bytes(0), |(cell, _)| cell.cell.size);
        match (size(self.cells.first()), size(self.cells.last())) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        }
    }

    /// One ratio with its interval, or the range of ratios over the sizes.
    fn effect(&self) -> String {
        let contrasts: Vec<&Contrast> =
            self.cells.iter().filter_map(|(_, best)| best.and_then(|best| best.contrast)).collect();
        match (contrasts.as_slice(), self.primitive) {
            ([], Some(_)) => "1.00 (baseline)".to_owned(),
            ([], None) => NONE.to_owned(),
            (several, _) => over(several),
        }
    }

    /// The arms that need this of a message and are the fastest of these at one
    /// of the sizes.
    fn on(&self, condition: Condition) -> String {
        let groups = self.cells.iter().flat_map(|(cell, _)| standing::by_condition(cell));
        let own = groups.filter(|(known, _)| *known == condition);
        let found: Vec<Candidate> = own.map(|(_, arms)| arms[0]).collect();
        let mut names: Vec<String> = Vec::new();
        for arm in &found {
            if !names.contains(&arm.shown()) {
                names.push(arm.shown());
            }
        }
        let contrasts: Vec<&Contrast> = found.iter().filter_map(|arm| arm.contrast).collect();
        match names.is_empty() || contrasts.is_empty() {
            true => NONE.to_owned(),
            false => format!("{}, {}", names.join(" or "), over(&contrasts)),
        }
    }

    /// Percentiles of the best arm at the first size, and at the last.
    fn round_trip(&self, curve: &Cell) -> String {
        if !curve.is_rr() {
            return NONE.to_owned();
        }
        let of = |(cell, best): &(&CellAnalysis, Option<Candidate>)| {
            let label = best.as_ref()?.label;
            let arm = cell.arms.iter().find(|arm| arm.arm.label == label)?;
            let latency = arm.latency.as_ref()?;
            let p50 = interval_text(latency.p50_ns, 1e3);
            Some(format!("{p50} / {}", interval_text(latency.p99_ns, 1e3)))
        };
        let ends = [self.cells.first(), self.cells.last()].map(|cell| cell.and_then(of));
        match ends {
            [Some(first), Some(last)] if first != last => format!("{first} to {last}"),
            [Some(only), _] => only,
            _ => NONE.to_owned(),
        }
    }
}

/// One ratio with its interval, or the range over the sizes.
fn over(contrasts: &[&Contrast]) -> String {
    if let [one] = contrasts {
        let tail = match one.tail {
            true => format!("; by totals {}", ratio(one.total_ratio.value)),
            false => String::new(),
        };
        return format!("{}{tail}", number::contrast(one));
    }
    span(contrasts.iter().map(|contrast| contrast.ratio)).map_or_else(
        || NONE.to_owned(),
        |(low, high)| format!("{} to {} over the sizes", ratio(low), ratio(high)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn neighbours_with_the_same_choice_share_a_row() {
        let (run, analysis) = fixture::run();
        let table = decision(&run, &analysis);
        let curves = super::super::curves(&analysis);
        let rows: usize = curves.iter().map(|(_, c)| stretches(c, analysis.delta).len()).sum();
        assert_eq!(table.rows.len(), rows);
        assert!(rows < analysis.cells.len());
        let sizes = |stretch: &Stretch| stretch.cells.len();
        let total: usize =
            curves.iter().flat_map(|(_, c)| stretches(c, analysis.delta)).map(|s| sizes(&s)).sum();
        assert_eq!(total, analysis.cells.len());
    }
}
