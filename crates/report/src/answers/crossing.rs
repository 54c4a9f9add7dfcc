//! Where one arm overtakes another along the sizes, as a band with its ends.

use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{
    Analysis, CellAnalysis, Crossing, Crossover, CrossoverPoint, CrossoverShape, Estimate, Interval,
};

use super::{Kind, Sentence};
use crate::arms::{self, CLASSIC};
use crate::number::{self, list, percent, range, ratio};
use crate::words;

/// One sentence per curve and pair of the classic three; of all pairs in a run
/// without them.
pub(super) fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let sentence = |crossover: &&Crossover| {
        let subject = words::curve(&run.header, &crossover.curve);
        Sentence::about(run, Kind::Crossover, subject, &claim(run, analysis, crossover))
    };
    chosen(analysis).iter().map(sentence).collect()
}

fn chosen(analysis: &Analysis) -> Vec<&Crossover> {
    let classic = |crossover: &&Crossover| {
        [&crossover.first, &crossover.second].iter().all(|label| CLASSIC.contains(&label.as_str()))
    };
    let mut chosen: Vec<&Crossover> = analysis.crossovers.iter().filter(classic).collect();
    if chosen.is_empty() {
        chosen = analysis.crossovers.iter().collect();
    }
    chosen
}

/// A crossover at one glance.
pub(crate) struct Brief {
    /// Its curve, in words.
    pub(crate) curve: String,
    /// The labels of the pair.
    pub(crate) pair: [String; 2],
    /// The same as they are shown.
    pub(crate) first: String,
    /// Likewise.
    pub(crate) second: String,
    /// Where the second is ahead of the first, as a clause.
    pub(crate) said: String,
}

/// Every crossover of [`sentences`], or of the run.
pub(crate) fn briefs(run: &Run, analysis: &Analysis, all: bool) -> Vec<Brief> {
    let brief = |crossover: &Crossover| brief(run, analysis, crossover);
    match all {
        true => analysis.crossovers.iter().map(brief).collect(),
        false => chosen(analysis).into_iter().map(brief).collect(),
    }
}

/// A crossover at one glance.
pub(crate) fn brief(run: &Run, analysis: &Analysis, crossover: &Crossover) -> Brief {
    let cells = arms::on_curve(analysis, &crossover.curve);
    let shown = |label: &str| match arms::copied(cells.iter().copied(), label) {
        Some((_, high)) if high > 0.0 => format!("{label} (copied)"),
        _ => label.to_owned(),
    };
    let to = crossover.first_ahead_to.unwrap_or(crossover.smallest);
    let from = crossover.second_ahead_from.unwrap_or(crossover.largest);
    let said = match crossover.shape {
        CrossoverShape::Crosses => format!("between {to} and {from}"),
        CrossoverShape::FirstThroughout => "nowhere: behind at every size".to_owned(),
        CrossoverShape::SecondThroughout => "at every size".to_owned(),
        CrossoverShape::FirstThenUnknown => {
            format!("behind up to {to}; above, neither is surely ahead")
        }
        CrossoverShape::UnknownThenSecond => {
            format!("from {from} on; below, neither is surely ahead")
        }
        CrossoverShape::NeitherAnywhere => "neither is surely ahead at any size".to_owned(),
        CrossoverShape::Mixed => mixed(analysis, crossover).to_owned(),
    };
    let at = crossing(analysis, crossover).and_then(|found| found.at_bytes);
    let at = at.map_or(String::new(), |at| format!("; looked at anew: from {} on", size(at)));
    let said = format!("{said}{at}");
    Brief {
        curve: words::curve_brief(&run.header.plan, &crossover.curve),
        pair: [crossover.first.clone(), crossover.second.clone()],
        first: shown(&crossover.first),
        second: shown(&crossover.second),
        said,
    }
}

/// Where the second is ahead, if that is no single stretch.
fn mixed(analysis: &Analysis, crossover: &Crossover) -> &'static str {
    let teller = Teller::new(analysis, crossover);
    match (teller.is_anywhere(Ahead::First), teller.is_anywhere(Ahead::Second)) {
        (true, false) => "nowhere: behind at some sizes, elsewhere neither is surely ahead",
        (false, true) => "at some sizes, elsewhere neither is surely ahead",
        _ => "no single band",
    }
}

/// The claim, which names no thread count.
pub(crate) fn claim(run: &Run, analysis: &Analysis, crossover: &Crossover) -> String {
    let teller = Teller::new(analysis, crossover);
    let (first, second) = (&teller.first, &teller.second);
    let on = format!(" {}", words::on(&crossover.curve));
    let said = match crossover.shape {
        CrossoverShape::Crosses => teller.crosses(),
        CrossoverShape::FirstThroughout => {
            format!(
                "{second} overtakes {first} nowhere in {}{on}: {}",
                teller.sizes(),
                teller.ends()
            )
        }
        CrossoverShape::SecondThroughout => format!(
            "{second} is ahead of {first} at every size in {}{on}, so a crossover could only lie \
             below {}: {}",
            teller.sizes(),
            crossover.smallest,
            teller.ends()
        ),
        CrossoverShape::FirstThenUnknown => teller.open_above(),
        CrossoverShape::UnknownThenSecond => teller.open_below(),
        CrossoverShape::NeitherAnywhere => format!(
            "{first} and {second}: at no size in {}{on} is one surely ahead of the other by more \
             than δ = {}: {}",
            teller.sizes(),
            teller.delta,
            teller.ends()
        ),
        CrossoverShape::Mixed => teller.mixed(),
    };
    let found = crossing(analysis, crossover);
    let point = found.map_or(String::new(), |found| point(&run.header.id, found));
    format!("{said}{} ({}).{point}", teller.without(), teller.basis())
}

/// What fresh trials inside the band of a crossover have shown, the latest first.
pub(crate) fn crossing<'a>(analysis: &'a Analysis, crossover: &Crossover) -> Option<&'a Crossing> {
    analysis.crossings.iter().rev().find(|found| {
        (&found.curve, &found.first, &found.second)
            == (&crossover.curve, &crossover.first, &crossover.second)
    })
}

/// `9.3 KiB (8.8 KiB–9.9 KiB)`.
pub(crate) fn size(at: Estimate) -> String {
    let interval = at.interval.map_or(String::new(), |interval| {
        let words = |i: Interval| format!("{}–{}", number::bytes(i.low), number::bytes(i.high));
        format!(" ({})", number::interval(interval, at.n, words))
    });
    format!("{}{interval}", number::bytes(at.value))
}

/// The point, or why there is none, as a sentence of its own in a run with this id.
fn point(id: &str, found: &Crossing) -> String {
    let (Some(first), Some(last)) = (found.sizes.first(), found.sizes.last()) else {
        return String::new();
    };
    let sizes =
        format!("{} sizes from {first} to {last}, in {} passes", found.sizes.len(), found.passes);
    let from = match found.run == id {
        true => format!("At these {sizes}"),
        false => format!("Looked at anew at {sizes} of fresh trials (run {})", found.run),
    };
    match (&found.at_bytes, &found.reason) {
        (Some(at), _) => {
            format!(" {from}, both take the same time at {}; pointwise 95 % interval.", size(*at))
        }
        (None, Some(why)) => format!(" {from}, no size is named: {why}."),
        (None, None) => String::new(),
    }
}

/// Every point of a crossover, one line each.
pub(crate) fn evidence(run: &Run, crossover: &Crossover) -> Vec<String> {
    let curve = words::curve(&run.header, &crossover.curve);
    let line = |point: &CrossoverPoint| {
        format!(
            "{}, {curve}: {} {}",
            point.size,
            crossover.second,
            against(point, &crossover.first)
        )
    };
    let step = |(below, above): &(Bytes, Bytes)| {
        format!(
            "{curve}: the ratio jumps between {below} and {above} by more than three times the \
             noise there, so nothing is interpolated across"
        )
    };
    let points = crossover.points.iter().map(line);
    points.chain(crossover.steps.iter().map(step)).collect()
}

/// `1.12× as fast as send_staged (1.10–1.14)`.
fn against(point: &CrossoverPoint, first: &str) -> String {
    format!("{}× as fast as {first}{}", ratio(point.ratio), bounds(point))
}

fn bounds(point: &CrossoverPoint) -> String {
    point
        .simultaneous
        .map_or_else(|| " (no interval)".to_owned(), |interval| format!(" ({})", range(interval)))
}

/// Who is ahead at a size by more than δ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    First,
    Second,
    Nobody,
}

/// What the sentences about one crossover have in common.
struct Teller<'a> {
    crossover: &'a Crossover,
    first: String,
    second: String,
    delta: String,
    bound: f64,
    trials: Option<(u32, u32)>,
    /// Sizes of the curve at which one of the two has no numbers, or is not ranked.
    missing: Vec<String>,
}

impl<'a> Teller<'a> {
    fn new(analysis: &Analysis, crossover: &'a Crossover) -> Teller<'a> {
        let cells = arms::on_curve(analysis, &crossover.curve);
        let trials = cells.iter().filter_map(|cell| cell.compared_trials());
        let trials = trials.reduce(|(least, most), (a, b)| (least.min(a), most.max(b)));
        let is_there =
            |cell: &CellAnalysis| crossover.points.iter().any(|p| p.size == cell.cell.size);
        let missing = cells.iter().filter(|cell| !is_there(cell));
        Teller {
            missing: missing.map(|cell| cell.cell.size.to_string()).collect(),
            crossover,
            first: arms::named(&cells, &crossover.first),
            second: arms::named(&cells, &crossover.second),
            delta: percent(analysis.delta),
            bound: 1.0 + analysis.delta,
            trials,
        }
    }

    fn crosses(&self) -> String {
        let c = self.crossover;
        let (Some(below), Some(above)) = (c.first_ahead_to, c.second_ahead_from) else {
            return format!("{} and {}: {}", self.first, self.second, self.segments());
        };
        let is_open = |p: &&CrossoverPoint| self.ahead(p) == Ahead::Nobody;
        let open: Vec<String> =
            c.points.iter().filter(is_open).map(|p| p.size.to_string()).collect();
        let open = match open.as_slice() {
            [] => String::new(),
            open => format!("; at {} neither is surely ahead by more than δ", list(open)),
        };
        format!(
            "{} overtakes {} between {below} and {above} {}: {}, {}{open}",
            self.second,
            self.first,
            words::on(&c.curve),
            self.at(below),
            self.at(above)
        )
    }

    fn open_above(&self) -> String {
        let c = self.crossover;
        let to = c.first_ahead_to.unwrap_or(c.smallest);
        format!(
            "{} does not surely overtake {} in {} {}: {} is ahead up to {to}, and from there \
             on neither is by more than δ = {}, so a crossover could lie above {to}: {}",
            self.second,
            self.first,
            self.sizes(),
            words::on(&c.curve),
            c.first,
            self.delta,
            self.ends()
        )
    }

    fn open_below(&self) -> String {
        let c = self.crossover;
        let from = c.second_ahead_from.unwrap_or(c.largest);
        format!(
            "{} is ahead of {} from {from} on, {}; below that neither is surely ahead by more \
             than δ = {}, so a crossover, if there is one, lies below {from}: {}",
            self.second,
            self.first,
            words::on(&c.curve),
            self.delta,
            self.ends()
        )
    }

    /// One ahead here and there, or both by turns.
    fn mixed(&self) -> String {
        let (first, second) = (&self.first, &self.second);
        let on = words::on(&self.crossover.curve);
        let said = match (self.is_anywhere(Ahead::First), self.is_anywhere(Ahead::Second)) {
            (true, false) => format!("{first} is ahead of {second} wherever one surely is {on}"),
            (false, true) => format!("{second} is ahead of {first} wherever one surely is {on}"),
            _ => format!("{first} and {second} have no single crossover {on}"),
        };
        format!("{said}: {}", self.segments())
    }

    fn is_anywhere(&self, who: Ahead) -> bool {
        self.crossover.points.iter().any(|point| self.ahead(point) == who)
    }

    /// `64 B to 1 MiB`.
    fn sizes(&self) -> String {
        let c = self.crossover;
        match c.smallest == c.largest {
            true => format!("{} alone", c.smallest),
            false => format!("{} to {}", c.smallest, c.largest),
        }
    }

    fn at(&self, size: Bytes) -> String {
        let point = self.crossover.points.iter().find(|point| point.size == size);
        point.map_or_else(
            || format!("no figure at {size}"),
            |p| format!("{}× as fast at {size}{}", ratio(p.ratio), bounds(p)),
        )
    }

    /// The second arm's speed at the smallest and the largest size.
    fn ends(&self) -> String {
        let c = self.crossover;
        let ends = match c.smallest == c.largest {
            true => self.at(c.smallest),
            false => format!("{}, {}", self.at(c.smallest), self.at(c.largest)),
        };
        format!("{} is {ends}", c.second)
    }

    /// Who is ahead from where to where.
    fn segments(&self) -> String {
        let mut parts: Vec<(String, Bytes, Bytes)> = Vec::new();
        for point in &self.crossover.points {
            let who = match self.ahead(point) {
                Ahead::First => format!("{} is ahead", self.crossover.first),
                Ahead::Second => format!("{} is ahead", self.crossover.second),
                Ahead::Nobody => "neither is surely ahead".to_owned(),
            };
            match parts.last_mut() {
                Some((known, _, last)) if *known == who => *last = point.size,
                _ => parts.push((who, point.size, point.size)),
            }
        }
        let part = |(who, from, to): &(String, Bytes, Bytes)| match from == to {
            true => format!("{who} at {from}"),
            false => format!("{who} from {from} to {to}"),
        };
        list(&parts.iter().map(part).collect::<Vec<_>>())
    }

    fn ahead(&self, point: &CrossoverPoint) -> Ahead {
        match point.simultaneous {
            Some(i) if i.low > self.bound => Ahead::Second,
            Some(i) if i.high < 1.0 / self.bound => Ahead::First,
            _ => Ahead::Nobody,
        }
    }

    fn without(&self) -> String {
        match self.missing.as_slice() {
            [] => String::new(),
            missing => format!("; nothing is said of {}", list(missing)),
        }
    }

    fn basis(&self) -> String {
        match self.trials {
            Some((least, most)) if least == most => {
                format!("simultaneous 95 % intervals, n = {most}")
            }
            Some((least, most)) => {
                format!("simultaneous 95 % intervals, n = {least} to {most} by size")
            }
            None => "simultaneous 95 % intervals".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    fn said(shape: CrossoverShape, to: Option<u64>, from: Option<u64>) -> String {
        let (_, analysis) = findings();
        let mut crossover = analysis.crossovers[0].clone();
        crossover.shape = shape;
        crossover.first_ahead_to = to.map(Bytes);
        crossover.second_ahead_from = from.map(Bytes);
        claim(&findings().0, &analysis, &crossover)
    }

    #[test]
    fn a_crossing_is_a_band_with_the_ratio_at_both_ends() {
        assert_eq!(
            said(CrossoverShape::Crosses, Some(64), Some(4096)),
            "sendmsg_iov (1 copy at the sender) overtakes send_staged (2 copies at the sender) \
             between 64 B and 4 KiB on loopback: 0.89× as fast at 64 B (0.88–0.91), 1.05× as fast \
             at 4 KiB (1.04–1.07) (simultaneous 95 % intervals, n = 12)."
        );
    }

    /// The claim about points in this order, from 64 B by factors of 4: `<` the first is ahead,
    /// `>` the second, `~` nobody; at `?` there is none.
    fn said_of(order: &str, to: u64, from: u64) -> String {
        let (run, mut analysis) = findings();
        let mut crossover = analysis.crossovers[0].clone();
        let point = |(nth, ahead): (u32, char)| {
            let ratio = match ahead {
                '<' => 0.8,
                '>' => 1.25,
                _ => 1.0,
            };
            let simultaneous = Some(Interval { low: ratio * 0.98, high: ratio * 1.02 });
            CrossoverPoint { size: Bytes(64 * 4u64.pow(nth)), ratio, simultaneous }
        };
        let all = (0..).zip(order.chars());
        crossover.points = all.clone().filter(|(_, ahead)| *ahead != '?').map(point).collect();
        let like = analysis.cells[0].clone();
        let cell = |(nth, _): (u32, char)| {
            let mut cell = like.clone();
            cell.cell.size = Bytes(64 * 4u64.pow(nth));
            cell
        };
        analysis.cells = all.map(cell).collect();
        crossover.shape = CrossoverShape::Crosses;
        crossover.first_ahead_to = Some(Bytes(to));
        crossover.second_ahead_from = Some(Bytes(from));
        claim(&run, &analysis, &crossover)
    }

    #[test]
    fn only_sizes_that_cannot_be_told_are_said_to_be_so() {
        let check = |order: &str, [to, from]: [u64; 2], ends: &str| {
            let text = said_of(order, to, from);
            let band = format!("between {} and {}", Bytes(to), Bytes(from));
            assert!(text.contains(&band), "{order}: {text}");
            assert!(text.contains(ends), "{order}: {text}");
        };
        check("<>~", [64, 256], "; at 1 KiB neither is surely ahead by more than δ (");
        check("~<>", [256, 1024], "; at 64 B neither is surely ahead by more than δ (");
        check("~<~>", [256, 4096], "; at 64 B and 1 KiB neither is surely ahead by more than δ (");
        // The first is surely ahead at 1 KiB.
        check("<~<~>", [1024, 16384], "; at 256 B and 4 KiB neither is surely ahead");
        check("<>", [64, 256], "at 256 B (1.23–1.27) (");
        // One of the two has no numbers there, or none that are ranked.
        check("<?>?", [64, 1024], "at 1 KiB (1.23–1.27); nothing is said of 256 B and 4 KiB (");
    }

    #[test]
    fn one_that_is_ahead_here_and_there_has_no_rival() {
        let (run, analysis) = findings();
        let mut crossover = analysis.crossovers[0].clone();
        let low = |p: &CrossoverPoint| p.simultaneous.is_some_and(|i| i.high < 0.97);
        crossover.points.retain(low);
        crossover.shape = CrossoverShape::Mixed;
        let text = claim(&run, &analysis, &crossover);
        assert!(text.contains(" wherever one surely is on loopback: "), "{text}");
    }

    #[test]
    fn fresh_trials_name_the_point_or_say_why_there_is_none() {
        let (run, mut analysis) = findings();
        let crossover = analysis.crossovers[0].clone();
        let interval = Some(Interval { low: 1024.0, high: 2000.0 });
        let at = |value| Estimate { value, interval, n: 12 };
        let mut found = Crossing {
            curve: crossover.curve.clone(),
            first: crossover.first.clone(),
            second: crossover.second.clone(),
            run: "0badcafe".to_owned(),
            sizes: [64, 512, 4096].map(Bytes).to_vec(),
            passes: 12,
            at_bytes: Some(at(1431.4)),
            reason: None,
        };
        let mut ends_with = |found: &Crossing, expect: &str| {
            analysis.crossings.push(found.clone());
            let text = claim(&run, &analysis, &crossover);
            assert!(text.ends_with(expect), "{text}");
        };
        ends_with(
            &found,
            "). Looked at anew at 3 sizes from 64 B to 4 KiB, in 12 passes of fresh trials (run \
             0badcafe), both take the same time at 1.40 KiB (1 KiB–1.95 KiB); pointwise 95 % \
             interval.",
        );
        (found.at_bytes, found.reason) = (None, Some("it is a step".to_owned()));
        ends_with(&found, "(run 0badcafe), no size is named: it is a step.");
        found.run.clone_from(&run.header.id);
        ends_with(
            &found,
            "At these 3 sizes from 64 B to 4 KiB, in 12 passes, no size is named: it is a step.",
        );
        let said = brief(&run, &analysis, &crossover).said;
        assert!(!said.contains("anew"), "the latest counts: {said}");
    }

    #[test]
    fn a_claim_about_a_sink_says_what_that_is() {
        let (_, analysis) = findings();
        let mut crossover = analysis.crossovers[0].clone();
        crossover.curve.net_mut().unwrap().topology = iolens_model::axes::Topology::Sink;
        for shape in [CrossoverShape::Crosses, CrossoverShape::FirstThenUnknown] {
            let text = claim(&findings().0, &analysis, &Crossover { shape, ..crossover.clone() });
            assert!(text.contains(" on sink, a device that drops everything: "), "{text}");
        }
    }

    #[test]
    fn open_ends_are_said() {
        use CrossoverShape as S;
        let contains = |shape, to, from, words: &str| {
            let text = said(shape, to, from);
            assert!(text.contains(words), "{text}");
        };
        contains(S::FirstThroughout, Some(262_144), None, "nowhere in 64 B to 256 KiB");
        contains(S::SecondThroughout, None, Some(64), "only lie below 64 B");
        contains(S::FirstThenUnknown, Some(64), None, "could lie above 64 B");
        contains(S::UnknownThenSecond, None, Some(4096), "lies below 4 KiB");
        contains(S::NeitherAnywhere, None, None, "at no size in 64 B to 256 KiB");
        contains(
            S::Mixed,
            None,
            None,
            "send_staged is ahead at 64 B and sendmsg_iov is ahead from",
        );
    }
}
