//! The first screen of a run of `net`.

use std::collections::BTreeSet;

use iolens_document::{Answer, Block, Joined, Label, Screen, Text};
use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Crossover, Estimate};

use crate::arms;
use crate::crossing::{Ahead, ahead};
use crate::findings::{self, Outcome, Passing, ZeroCopy};
use crate::groups::grouped;
use crate::number::{self, Unit, list, percent};
use crate::screen::effort::command;
use crate::screen::table::{self, Better, Marks, Measure};
use crate::screen::{choices, effort, more, short, told, two_sizes};

/// Rows of a table up to which CPU time stands below it.
const ROWS_WITH_CPU: usize = 4;

/// Curves that are shown; the others are in `iolens show`.
const CURVES_MAX: usize = 4;

/// Methods of which so many curves are shown; of more it is one.
const METHODS_MAX: usize = 8;

/// What settings may have in common.
pub(crate) fn common(cell: &Cell) -> Vec<String> {
    let Some(net) = cell.net() else { return Vec::new() };
    let fields = format!("{} per message", net.fields_in_words());
    let receiver = net.receiver_in_words().filter(|_| net.receiver != "recv");
    let place = match net.topology {
        Topology::Sink => "sink (drops everything)".to_owned(),
        place => place.to_string(),
    };
    let words = [place, fields, net.working_set.to_string()];
    words.into_iter().chain([net.mode.to_string()]).chain(receiver).collect()
}

/// What to type next.
pub(crate) fn next(analysis: &Analysis, is_cut_short: bool) -> Vec<Text> {
    if is_cut_short {
        return Vec::new();
    }
    let mut said = Vec::new();
    if analysis.crossovers.iter().any(|crossover| crossover.band().is_some()) {
        let is_told = !findings::crossovers(analysis).is_empty();
        let why = if is_told { "the exact size" } else { "where a lead ends" };
        said.push(command("iolens confirm last", why));
    }
    said.push(command("iolens explain last", "why"));
    said
}

pub(crate) fn fill(screen: &mut Screen, run: &Run, analysis: &Analysis) {
    let curves = arms::curves(analysis);
    let mut marks = Marks::default();
    let all: Vec<&CellAnalysis> = analysis.cells.iter().collect();
    let methods = table::methods(&all);
    let most = if methods.len() > METHODS_MAX { 1 } else { CURVES_MAX };
    let shown: Vec<&CellAnalysis> =
        curves.iter().take(most).flat_map(|(_, cells)| cells.iter().copied()).collect();
    for kind in [Kind::Stream, Kind::Requests, Kind::Sink] {
        let own: Vec<&CellAnalysis> =
            shown.iter().copied().filter(|cell| Kind::of(&cell.cell) == kind).collect();
        if !own.is_empty() {
            let block = block(run, analysis, (kind, &own), &methods, &mut marks);
            screen.blocks.push(block);
        }
    }
    screen.legend = table::legend(marks, analysis.delta, &run.header.plan.baseline, &methods);
    if !copied(analysis).is_empty() {
        let said = format!("{} copied by the kernel here: no zero-copy", table::COPIED);
        screen.legend.push(said.into());
    }
    screen.legend.extend(more(run, curves.len(), most, " settings"));
    screen.answers = answers(run, analysis, &methods);
}

/// What travels decides what is shown of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stream,
    Requests,
    Sink,
}

impl Kind {
    fn of(cell: &Cell) -> Kind {
        match (cell.has_receiver(), cell.is_rr()) {
            (false, _) => Kind::Sink,
            (true, true) => Kind::Requests,
            (true, false) => Kind::Stream,
        }
    }
}

fn goodput(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.figure(|figures| figures.goodput_bits_per_s)
}

fn p99(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.latency.as_ref()?.p99_ns
}

fn cpu_per_message(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.figure(|figures| figures.cpu_ns_per_message)
}

fn cpu_per_byte(arm: &ArmAnalysis) -> Option<Estimate> {
    let cpu = cpu_per_message(arm)?;
    let figures = arm.figures.as_ref()?;
    let bytes = figures.ns_per_message.value / figures.ns_per_byte?.value;
    Some(Estimate { value: cpu.value / bytes, interval: None, n: cpu.n })
}

/// What is compared, and what stands below it.
fn measures(kind: Kind, unit: Unit) -> [Measure; 2] {
    let throughput = format!("throughput, {}", unit.name);
    let time = |what: &str| {
        let title = format!("{what}, µs, lower is better");
        Measure::compared(title, ArmAnalysis::time, 1e3, Better::Less)
    };
    match kind {
        Kind::Stream => [
            Measure::compared(throughput, goodput, unit.size, Better::More),
            Measure::beside("CPU of both ends, ns per byte", cpu_per_byte, 1.0),
        ],
        Kind::Requests => [
            time("mean round trip").of_each_thread(),
            Measure::beside("p99 of round trips, µs", p99, 1e3),
        ],
        Kind::Sink => {
            [time("time per message"), Measure::beside("CPU, µs per message", cpu_per_message, 1e3)]
        }
    }
}

fn block(
    run: &Run,
    analysis: &Analysis,
    (kind, cells): (Kind, &[&CellAnalysis]),
    methods: &[&ArmAnalysis],
    marks: &mut Marks,
) -> Block {
    let rates = arms::of_cells(cells).filter_map(goodput);
    let unit = Unit::of(number::BITS, rates.map(|rate| rate.value));
    let is_told = |measure: &&Measure| measure.is_compared() || cells.len() <= ROWS_WITH_CPU;
    let section = |measure: &Measure| table::section(run, cells, methods, measure, marks);
    let sections = measures(kind, unit).iter().filter(is_told).map(section).collect();
    table::matrix(run, table::heads(methods, &copied(analysis)), sections)
}

fn answers(run: &Run, analysis: &Analysis, methods: &[&ArmAnalysis]) -> Vec<Answer> {
    let curve = |ranking: &findings::Ranking| short(run, &ranking.setting);
    let mut out = choices(Label::Use, run, &findings::rankings(run, analysis), curve);
    out.extend(crossover(run, analysis, methods));
    out.extend(zero_copy(run, analysis));
    out
}

/// Methods that ask the kernel not to copy, which it did.
fn copied(analysis: &Analysis) -> Vec<String> {
    let all = findings::zero_copies(analysis).into_iter();
    all.filter(|sends| sends.is_copied).map(|sends| sends.method).collect()
}

/// Where one method passes another, of those that can send any message.
fn crossover(run: &Run, analysis: &Analysis, methods: &[&ArmAnalysis]) -> Option<Answer> {
    /// Passings that are told.
    const TOLD: usize = 2;
    let copied = copied(analysis);
    let is_free = |label: &String| {
        let own = methods.iter().find(|arm| arm.arm.label == *label);
        own.is_some_and(|arm| arm.condition.is_none()) && !copied.contains(label)
    };
    let all: Vec<Passing> = findings::crossovers(analysis)
        .into_iter()
        .filter(|passing| is_free(&passing.from) && is_free(&passing.to))
        .collect();
    if all.is_empty() {
        return no_crossover(run, analysis, methods);
    }
    let several = arms::curves(analysis).len() > 1;
    let one = |passing: &Passing| {
        let at = match passing.at_bytes {
            Some(at) => format!("at {}", crate::crossing::size(at)),
            None => format!("between {}", two_sizes(passing.above, passing.below, "and")),
        };
        let curve = short(run, &passing.curve);
        let curve = if several { format!("{curve}: ") } else { String::new() };
        Text::plain(format!("{curve}{} passes {} {at}", passing.to, passing.from))
    };
    let said = told(all.iter().map(one).collect(), TOLD);
    Some(Answer { label: Label::Crossover, said })
}

/// That no method passes another, and why that is so where the fastest one changes.
fn no_crossover(run: &Run, analysis: &Analysis, methods: &[&ArmAnalysis]) -> Option<Answer> {
    let sizes = &run.header.plan.sizes;
    let (first, last) = (*sizes.iter().min()?, *sizes.iter().max()?);
    let compares = methods.iter().filter(|arm| arm.condition.is_none()).count() > 1;
    if first == last || !compares {
        return None;
    }
    let span = crate::screen::span_of(first, last);
    let said = match within_threshold(run, analysis) {
        None => format!("none shown from {span}"),
        Some(small) if small.is_empty() => return None,
        Some(small) => {
            let leads = if small.len() == 1 { "the lead at" } else { "leads at" };
            let small = small.iter().map(ToString::to_string);
            let threshold = percent(analysis.delta).replace(' ', "");
            format!("not shown: {leads} {} may be under {threshold}", list(small))
        }
    };
    Some(Answer::one(Label::Crossover, said))
}

/// Where the fastest method changes along a curve, the sizes at which its lead over the other one
/// is not shown to be beyond the threshold, as a crossover asks; `None` where it stays the same.
fn within_threshold(run: &Run, analysis: &Analysis) -> Option<BTreeSet<Bytes>> {
    let rankings = findings::rankings(run, analysis).into_iter();
    let fastest = rankings.filter_map(|own| match own.outcome {
        Outcome::Fastest { method, .. } => Some((own.setting.curve(), (own.setting.size, method))),
        _ => None,
    });
    let mut changing = grouped(fastest);
    changing.retain(|(_, won)| won.iter().any(|(_, method)| *method != won[0].1));
    let on_curve = |(curve, won): &(Cell, Vec<(Bytes, String)>)| {
        let open = |pair: &Crossover| {
            let wins = |label: &String| won.iter().any(|(_, method)| method == label);
            let changes = pair.curve == *curve && wins(&pair.first) && wins(&pair.second);
            let leads = |size, method| {
                let point = pair.points.iter().find(|point| point.size == size);
                let is_open = point.is_some_and(|p| ahead(p, analysis.delta) == Ahead::Nobody);
                is_open && (method == &pair.first || method == &pair.second)
            };
            let own = won.iter().filter(|(size, method)| changes && leads(*size, method));
            own.map(|(size, _)| *size).collect::<Vec<_>>()
        };
        analysis.crossovers.iter().flat_map(open).collect::<Vec<_>>()
    };
    (!changing.is_empty()).then(|| changing.iter().flat_map(on_curve).collect())
}

/// Whether sends pay that ask the kernel not to copy.
fn zero_copy(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let all = findings::zero_copies(analysis);
    let share = |sends: &ZeroCopy| sends.copied_share.unwrap_or(0.0);
    let least = all.iter().map(share).reduce(f64::min)?;
    if all.iter().all(|sends| sends.is_copied) {
        let place = run.header.plan.topologies().iter().map(ToString::to_string);
        let mut said = vec![Text::plain(format!(
            "not testable on {}: its sends were copied ({})",
            place.joined(" and "),
            percent(least).replace(' ', "")
        ))];
        if !effort::is_on(run, Topology::Sink) {
            said.push(
                Text::plain("to test it: ").and_code("iolens run net --quick --network sink"),
            );
        }
        return Some(Answer { label: Label::ZeroCopy, said });
    }
    let interval = |sends: &ZeroCopy| sends.against.and_then(|against| against.interval);
    let tested = || all.iter().filter(|sends| !sends.is_copied);
    let ahead = tested().filter(|sends| interval(sends).is_some_and(|own| own.low > 1.0));
    let is_behind = |sends: &ZeroCopy| interval(sends).is_some_and(|own| own.high < 1.0);
    let baseline = &run.header.plan.baseline;
    let said = match ahead.map(|sends| sends.setting.size).min() {
        Some(from) => format!("beats {baseline} at {from}, the smallest size at which it does"),
        None if tested().all(is_behind) => format!("never beats {baseline} here"),
        None => format!("not shown to beat {baseline} here"),
    };
    Some(Answer::one(Label::ZeroCopy, said))
}

#[cfg(test)]
mod tests {
    use iolens_document::Cell as Entry;
    use iolens_stats::analysis::{CrossoverShape, Interval};

    use super::*;
    use crate::fixture_findings;
    use crate::number::InWords;

    /// The fastest method changes on this curve.
    fn told(change: impl Fn(&mut Analysis)) -> String {
        let (run, mut analysis) = fixture_findings::findings();
        let curve = analysis.cells[0].cell.curve();
        analysis.cells.retain(|cell| cell.cell.curve() == curve);
        change(&mut analysis);
        let all: Vec<&CellAnalysis> = analysis.cells.iter().collect();
        let answer = crossover(&run, &analysis, &table::methods(&all));
        answer.or_empty(|answer| format!("{:?}", answer.said))
    }

    #[test]
    fn a_round_trip_is_that_of_one_connection() {
        let (run, analysis) = fixture_findings::findings();
        let rr = analysis.cells.iter().find(|cell| cell.cell.is_rr()).expect("one of mode rr");
        let [round_trip, _] = measures(Kind::Requests, Unit::of(number::BITS, []));
        let shown = |threads: u32| {
            let mut cell = rr.clone();
            cell.cell.threads = threads;
            let methods = table::methods(&[&cell]);
            table::section(&run, &[&cell], &methods[..1], &round_trip, &mut Marks::default()).rows
        };
        let time = rr.arms[0].time().expect("it was measured").value / 1e3;
        assert_eq!(shown(1)[0].cells, [Entry::Plain(time)]);
        assert_eq!(shown(4)[0].cells, [Entry::Plain(time * 4.0)]);
    }

    #[test]
    fn a_lead_too_small_for_a_crossover_is_named() {
        let said = told(|_| ());
        assert!(said.contains("sendmsg_iov passes send_staged between"), "{said}");
        let open = |analysis: &mut Analysis| {
            for crossover in &mut analysis.crossovers {
                crossover.shape = CrossoverShape::FirstThenUnknown;
                let last = crossover.points.last_mut().expect("points");
                last.simultaneous = Some(Interval { low: 1.01, high: 1.05 });
            }
        };
        let said = told(open);
        assert!(said.contains("not shown: the lead at 256 KiB may be under 3%"), "{said}");
        assert_eq!(told(|analysis| analysis.crossovers.clear()), "");
    }
}
