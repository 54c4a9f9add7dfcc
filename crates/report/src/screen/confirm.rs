//! What fresh trials at sizes inside the bands of a run's crossovers have shown.

use iolens_document::{Align, Answer, Block, Column, Grid, Label, Row, Screen, Text, change};
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, Crossover, CrossoverPoint};

use super::{effort, show, trust};
use crate::crossing::{crossing, size};
use crate::findings::{self, Finding};
use crate::number::{self, usable};
use crate::studies;

/// Pairs that are told on the screen.
const TOLD: usize = 2;

/// The screen of a run that was made to confirm the crossovers of another on one curve. `of` has
/// been told what it found ([`Analysis::confirm`]). With its page it ends with what to type next.
pub(crate) fn confirmed(
    of: (&Run, &Analysis),
    fresh: (&Run, &Analysis),
    page: Option<&str>,
) -> Screen {
    let ((run, analysis), (fresh, of_fresh)) = (of, fresh);
    let (own, of_fresh) = (studies::of(fresh.header.plan.study()), &of_fresh.shown());
    let pairs: Vec<Pair<'_>> = pairs(analysis, of_fresh);
    let mut screen = Screen {
        header: [Text::plain("confirm"), Text::plain(format!("run {}", run.header.id))]
            .into_iter()
            .chain(effort::header(fresh, own))
            .collect(),
        effort: effort::effort(fresh, of_fresh),
        alarm: trust::alarm(of_fresh),
        problems: trust::problems(fresh, of_fresh),
        ..Screen::default()
    };
    screen.effort.push(format!("stored as run {}", fresh.header.id).into());
    let told = || pairs.iter().take(TOLD);
    screen.blocks = told().map(|pair| Block::Grid(pair.grid())).collect();
    if screen.alarm.is_none() {
        screen.answers = told().flat_map(|pair| pair.answers(analysis, fresh)).collect();
    }
    let more = pairs.len().saturating_sub(TOLD);
    let rest = (more > 0).then(|| {
        let said = Text::plain(format!("{}: ", number::count(more, "further pair")));
        Answer::one(Label::Notes, said.and_code(show(run)))
    });
    screen.answers.extend(rest);
    let mut cautions = findings::cautions(fresh, of_fresh);
    cautions.retain(|finding| !matches!(finding, Finding::Confirms { .. }));
    screen.answers.extend(trust::told(fresh, &cautions));
    screen.answers.push(trust::trust(fresh, of_fresh));
    if let Some(page) = page {
        screen.answers.push(Answer::one(Label::Next, Text::code(show(run))));
        screen.answers.push(Answer::one(Label::Report, Text::file(page)));
    }
    screen
}

/// Two methods of which one overtakes the other.
struct Pair<'a> {
    /// As the first run has them.
    of: &'a Crossover,
    /// What fresh trials show of them, in either order.
    fresh: &'a Crossover,
}

/// Those that the fresh trials were made for.
fn pairs<'a>(analysis: &'a Analysis, of_fresh: &'a Analysis) -> Vec<Pair<'a>> {
    let meant = analysis.crossovers.iter().filter(|of| of.band().is_some());
    let both = meant.filter_map(|of| {
        let pair = [&of.first, &of.second];
        let is_it = |fresh: &&Crossover| {
            fresh.curve == of.curve
                && pair.iter().all(|label| [&fresh.first, &fresh.second].contains(label))
        };
        Some(Pair { of, fresh: of_fresh.crossovers.iter().find(is_it)? })
    });
    both.collect()
}

impl Pair<'_> {
    /// How much faster the second is at each size inside the band.
    fn grid(&self) -> Grid {
        let [low, high] = self.of.band().unwrap_or_default();
        let as_first = |point: &CrossoverPoint| match self.fresh.first == self.of.first {
            true => *point,
            false => point.turned(),
        };
        let points = self.fresh.points.iter().map(as_first);
        let inside = points.filter(|point| (low..=high).contains(&point.size));
        let (mut columns, mut changes, mut halves) = (Vec::new(), Vec::new(), Vec::new());
        for point in inside {
            columns.push(Column::of(point.size.to_string(), &[Align::Left]));
            changes.push(vec![change(point.ratio)]);
            let half = usable(point.simultaneous).map(|(low, high)| (high - low) * 50.0);
            halves.push(vec![half.map_or_else(|| "?".to_owned(), |half| format!("±{half:.1}"))]);
        }
        Grid {
            title: format!(
                "speed of {} against {} [95%, all sizes together] (+ is faster)",
                self.of.second, self.of.first
            ),
            columns,
            rows: vec![Row::Cells(changes), Row::Cells(halves)],
        }
    }

    /// Which is faster at every size, on average or beyond doubt.
    fn ahead(&self) -> String {
        let Crossover { first, second, points, .. } = self.fresh;
        let is_second = points.first().is_some_and(|point| point.ratio > 1.0);
        let ahead = if is_second { second } else { first };
        let excludes = |point: &&CrossoverPoint| {
            point.simultaneous.is_some_and(|interval| !interval.contains(1.0))
        };
        match points.iter().filter(excludes).count() {
            shown if shown == points.len() => format!("{ahead} is faster at every one of these"),
            shown => format!(
                "{ahead} is faster on average at every one of these, which is shown at {shown} of {}",
                points.len()
            ),
        }
    }

    /// Where the one passes the other, and what follows.
    fn answers(&self, analysis: &Analysis, fresh: &Run) -> Vec<Answer> {
        let Crossover { first, second, .. } = self.of;
        let found = crossing(analysis, self.of).filter(|found| found.run == fresh.header.id);
        let Some(at) = found.and_then(|found| found.at_bytes) else {
            let is_above = |point: &CrossoverPoint| point.ratio > 1.0;
            let above = self.fresh.points.iter().filter(|point| is_above(point)).count();
            let reason = found.and_then(|found| found.reason.clone());
            let why = match reason {
                _ if above == 0 || above == self.fresh.points.len() => self.ahead(),
                Some(reason) => reason,
                None => "no pass has both at every size".to_owned(),
            };
            let said = format!("no single size at which {second} passes {first}: {why}");
            return vec![Answer::one(Label::Crossover, said)];
        };
        let said = format!("{second} passes {first} at {}", size(at));
        let used = usable(at.interval).map(|(low, high)| {
            let [low, high] = [low, high].map(number::bytes);
            Answer::of(
                Label::Use,
                [
                    format!("{first} below {low}"),
                    format!("{second} above {high}"),
                    "either in between".to_owned(),
                ],
            )
        });
        std::iter::once(Answer::one(Label::Crossover, said)).chain(used).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings;
    use crate::text::Style;
    use iolens_model::units::Bytes;
    use iolens_stats::analysis::{Crossing, Estimate, Interval};

    /// A run with a crossover, and one that has measured seven sizes inside its band.
    fn both(at_bytes: Option<Estimate>) -> [(Run, Analysis); 2] {
        let (run, mut analysis) = fixture_findings::findings();
        let curve = analysis.cells[0].cell.curve();
        analysis.crossovers.retain(|own| own.curve == curve && own.band().is_some());
        let of = analysis.crossovers[0].clone();
        let (mut fresh, mut of_fresh) = (run.clone(), analysis.clone());
        fresh.header.id = "5c1d77e0".to_owned();
        fresh.header.confirms = Some(run.header.id.clone());
        // Fresh trials are of the pair alone.
        for cell in &mut of_fresh.cells {
            cell.arms.retain(|arm| [&of.first, &of.second].contains(&&arm.arm.label));
        }
        let [low, _] = of.band().unwrap();
        let point = |nth: i32| {
            let ratio = 0.92 + 0.03 * f64::from(nth);
            let size = Bytes(low.0 << nth);
            let simultaneous = Some(Interval { low: ratio - 0.02, high: ratio + 0.02 });
            CrossoverPoint { size, ratio, simultaneous }
        };
        // Fresh trials may have the pair in the other order.
        let points: Vec<CrossoverPoint> = (0..7).map(|nth| point(nth).turned()).collect();
        let sizes = points.iter().map(|point| point.size).collect();
        let (first, second) = (of.second.clone(), of.first.clone());
        of_fresh.crossovers = vec![Crossover { first, second, points, ..of.clone() }];
        analysis.crossings.push(Crossing {
            curve,
            first: of.first,
            second: of.second,
            run: fresh.header.id.clone(),
            sizes,
            passes: 14,
            at_bytes,
            reason: at_bytes.is_none().then(|| "the ratio jumps".to_owned()),
        });
        [(run, analysis), (fresh, of_fresh)]
    }

    fn drawn([of, fresh]: &[(Run, Analysis); 2]) -> String {
        let screen = confirmed((&of.0, &of.1), (&fresh.0, &fresh.1), Some("/data/a.html"));
        let drawn = iolens_document::terminal::draw(&screen, &Style::plain(100));
        assert!(drawn.lines().count() <= 24, "{drawn}");
        assert!(drawn.lines().all(|line| line.chars().count() <= 100), "{drawn}");
        drawn
    }

    #[test]
    fn a_crossing_is_a_size_with_its_interval_and_what_follows() {
        let interval = Some(Interval { low: 1200.0, high: 2100.0 });
        insta::assert_snapshot!(drawn(&both(Some(Estimate { value: 1600.0, interval, n: 14 }))));
    }

    #[test]
    fn many_pairs_keep_to_one_screen() {
        let mut both = both(None);
        for analysis in both.iter_mut().map(|(_, analysis)| analysis) {
            let again = analysis.crossovers[0].clone();
            analysis.crossovers.extend(vec![again; 5]);
        }
        assert!(drawn(&both).contains("4 further pairs: iolens show 4f1c09ab"));
    }

    #[test]
    fn one_that_is_ahead_throughout_is_named() {
        let mut both = both(None);
        both[0].1.crossings.clear();
        // In the other order, in which the first is the faster one.
        let points = &mut both[1].1.crossovers[0].points;
        let count = points.len();
        for point in points {
            point.ratio = 0.9;
            point.simultaneous = Some(Interval { low: 0.85, high: 0.95 });
        }
        let said = drawn(&both);
        assert!(said.contains("passes send_staged: sendmsg_iov is faster at every"), "{said}");
        both[1].1.crossovers[0].points[0].simultaneous = Some(Interval { low: 0.8, high: 1.01 });
        let said = drawn(&both).split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = format!("on average at every one of these, which is shown at {} of", count - 1);
        assert!(said.contains(&shown), "{said}");
    }

    #[test]
    fn a_size_that_another_run_has_found_is_not_this_ones() {
        let mut both = both(Some(Estimate { value: 1600.0, interval: None, n: 14 }));
        both[0].1.crossings[0].run = "0000000a".to_owned();
        let said = drawn(&both);
        assert!(said.contains("no single size") && !said.contains("1.56 KiB"), "{said}");
    }

    #[test]
    fn without_a_crossing_it_is_said_why() {
        let drawn = drawn(&both(None));
        assert!(drawn.contains("Crossover  no single size at which"), "{drawn}");
        assert!(drawn.contains("the ratio jumps") && !drawn.contains("\nUse"), "{drawn}");
    }
}
