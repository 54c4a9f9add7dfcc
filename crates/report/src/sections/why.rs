//! The questions that a run of `net` can answer besides which method is fastest: each a claim
//! and a line of evidence, or what the run would need.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use iolens_document::{Joined, Node, Section, Text, change, change_interval};
use iolens_model::axes::{Topology, WorkingSet};
use iolens_model::cell::Cell;
use iolens_model::data_path::{DataPath, Hop, Movement, Mover};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, CostModel, Crossover, Estimate, Figures, Interval,
    Plateau, PlateauAxis, RemovedCopy, ZerocopyFigures,
};

use super::setting;
use crate::arms::{self, CLASSIC, Multiple, Shares, curves};
use crate::groups::{distinct, grouped};
use crate::number::{InWords, count, list, percent};
use crate::screen::effort;
use crate::{crossing, words};

const STAGED: &str = "send_staged";
const IOV: &str = "sendmsg_iov";
const ZERO: &str = "sendmsg_zerocopy";

/// A claim, and the numbers behind it.
type Answer = (String, Vec<String>);

/// What a run answers to a question, where it can be asked.
type Ask = fn(&Run, &Analysis) -> Option<Answer>;

const QUESTIONS: [(&str, Ask); 9] = [
    ("Where are the copies?", copies),
    ("From which size does one copy beat two?", |run, analysis| {
        overtaking(run, analysis, &[STAGED], IOV)
    }),
    ("From which size does zero-copy pay?", |run, analysis| {
        overtaking(run, analysis, &[STAGED, IOV], ZERO)
    }),
    ("What does zero-copy cost?", zero_copy_cost),
    ("What does the removed copy cost?", removed_copy),
    ("Which cache level gains from fewer copies?", caches),
    ("What does memory outside the caches cost?", cold),
    ("Do more threads help?", threads),
    ("What is surprising?", surprising),
];

/// The questions that this run can be asked.
pub(crate) fn section(run: &Run, analysis: &Analysis) -> Section {
    let mut nodes = Vec::new();
    for (question, ask) in QUESTIONS {
        let Some((claim, evidence)) = ask(run, analysis) else { continue };
        nodes.extend([Node::heading(question), Node::say(claim)]);
        nodes.extend(shown(evidence));
    }
    Section::new("why", "Why", nodes)
}

/// One line of evidence stands in the open, more behind a fold.
fn shown(evidence: Vec<String>) -> Option<Node> {
    match evidence.as_slice() {
        [] => None,
        [one] => Some(Node::aside(one.as_str())),
        _ => Some(Node::fold(
            "Numbers",
            vec![Node::List(evidence.into_iter().map(Text::from).collect())],
        )),
    }
}

/// `0.0620 ns per byte [0.058–0.066]`.
fn measured(estimate: &Estimate, unit: &str) -> String {
    let value = three_digits(estimate.value);
    match estimate.interval.filter(Interval::is_usable) {
        Some(i) => format!("{value} {unit} [{}]", iolens_document::ends((i.low, i.high))),
        None => format!("{value} {unit} (no interval)"),
    }
}

/// How often each byte is copied, and by whom.
fn copies(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let receiver = arms::receiver(run);
    let of = |id| {
        let shares = Shares::of(arms::received_with(analysis, receiver), id);
        Some((id, arms::path(run, id, receiver)?, shares))
    };
    let mut all: Vec<(&str, DataPath, Shares)> = CLASSIC.into_iter().filter_map(of).collect();
    if all.is_empty() {
        all = run.header.primitives.iter().filter_map(|facts| of(&facts.id)).collect();
    }
    let total = |(id, path, shares): &(&str, DataPath, Shares)| match shares.copies(path) {
        None => format!("{id} as often as the kernel decides (not measured)"),
        Some([_, all]) => format!("{id} {}", times(all)),
    };
    let totals: Vec<String> = all.iter().map(total).collect();
    let line = |(id, path, shares): &(&str, DataPath, Shares)| {
        let made: Vec<String> = path.hops.iter().filter_map(|hop| made_by(hop, *shares)).collect();
        match made.is_empty() {
            true => format!("{id}: no CPU copies a byte"),
            false => format!("{id}: {}", made.join(", ")),
        }
    };
    let received = match effort::is_on(run, Topology::Sink) {
        true => "",
        false => ", the receiver's copy included",
    };
    let claim = format!("Each byte is copied by {}{received}.", list(&totals));
    (!totals.is_empty()).then(|| (claim, all.iter().map(line).collect()))
}

fn times(span: (f64, f64)) -> String {
    match arms::copies_range(span).as_str() {
        "1" => "once".to_owned(),
        "2" => "twice".to_owned(),
        many => format!("{many} times"),
    }
}

/// `program → staging (memcpy)`; nothing where only a reference moves.
fn made_by(hop: &Hop, shares: Shares) -> Option<String> {
    let when = match (hop.movement, hop.mover) {
        (Movement::Reference | Movement::Discarded, _) | (_, Mover::Device) => return None,
        (Movement::Copy, _) => String::new(),
        (Movement::LateCopy, _) => match shares.late {
            Some(share) => format!(", late, {} of sends", arms::share(share)),
            None => ", late, share not measured".to_owned(),
        },
        (Movement::Mapped, _) => match shares.mapped {
            Some(share) => format!(", {} mapped instead", arms::share(share)),
            None => ", or mapped, share not measured".to_owned(),
        },
    };
    Some(format!("{} → {} ({}{when})", hop.from, hop.to, hop.function))
}

/// Where `second` overtakes each of `firsts`, each place once with the curves where it is so.
fn overtaking(run: &Run, analysis: &Analysis, firsts: &[&str], second: &str) -> Option<Answer> {
    if run.header.plan.sizes.len() < 2 {
        return None;
    }
    let wanted = |c: &&Crossover| {
        let (a, b) = (c.first.as_str(), c.second.as_str());
        (firsts.contains(&a) && b == second) || (a == second && firsts.contains(&b))
    };
    let found: Vec<&Crossover> = analysis.crossovers.iter().filter(wanted).collect();
    let curve = |crossover: &Crossover| words::curve_brief(&run.header.plan, &crossover.curve);
    let said = |crossover: &&Crossover| {
        let name = |label: &str| crossing::shown(analysis, crossover, label);
        let (from, to) = (name(&crossover.first), name(&crossover.second));
        let text = format!("{to} against {from}: {}", crossing::place(analysis, crossover));
        (text, curve(crossover))
    };
    let is_one = curves(analysis).len() < 2;
    let sentence = |(text, curves): (String, Vec<String>)| match is_one {
        true => text,
        false => format!("{text} ({})", curves.join("; ")),
    };
    let claim = grouped(found.iter().map(said)).into_iter().map(sentence);
    let line = |crossover: &&Crossover| {
        let Crossover { first, second, .. } = crossover;
        format!("{}: {second} against {first}: {}", curve(crossover), crossing::sizes(crossover))
    };
    let evidence = found.iter().map(line).collect();
    (!found.is_empty()).then(|| (format!("{}.", claim.joined(". ")), evidence))
}

/// The figures of a method of a cell, where they may be held against those of others.
fn figures<'a>(cell: &'a CellAnalysis, id: &str) -> Option<&'a Figures> {
    arms::of(cell, id).filter(|arm| arm.is_ranked())?.figures.as_ref()
}

/// Two methods of a cell, where both have such figures.
fn both<'a>(cell: &'a CellAnalysis, a: &str, b: &str) -> Option<(&'a Figures, &'a Figures)> {
    figures(cell, a).zip(figures(cell, b))
}

/// Why zero-copy does not always pay: where the copy is made instead, and what comes on top.
fn zero_copy_cost(run: &Run, analysis: &Analysis) -> Option<Answer> {
    analysis.cells.iter().find_map(|cell| both(cell, ZERO, IOV))?;
    let mut cells: Vec<&CellAnalysis> = analysis.cells.iter().collect();
    cells.sort_by_key(|cell| (cell.cell.threads, cell.cell.size));
    // Sends are counted where the arm is not ranked, too: no ratio is in them.
    let usable = |arm: &&ArmAnalysis| arm.status == Status::Ok;
    let zerocopy = || cells.iter().filter_map(|cell| arms::of(cell, ZERO).filter(usable)?.zerocopy);
    let sends: u64 = zerocopy().map(|counts| counts.sends).sum();
    let refused: u64 = zerocopy().map(|counts| counts.enobufs).sum();
    let claim = match arms::copied(cells.iter().copied(), ZERO) {
        Some((_, 0.0)) => "The kernel copied none of the sends: the copy is gone.".to_owned(),
        Some(shares) => {
            let copied = format!("{} of {}", arms::share(shares), count(sends, "send"));
            match shares.1 > ZerocopyFigures::COPIED_SHARE_MAX {
                true => format!(
                    "The copy was postponed, not avoided: the kernel copied {copied} after all."
                ),
                false => format!("The kernel copied {copied}; of the others the copy is gone."),
            }
        }
        None => "The kernel did not say which sends it copied.".to_owned(),
    };
    let mut evidence: Vec<String> = cells.iter().filter_map(|cell| extra(run, cell)).collect();
    evidence.extend(fixed(analysis));
    evidence.extend(
        (refused > 0)
            .then(|| format!("refused with ENOBUFS and made again: {}", count(refused, "send"))),
    );
    Some((claim, evidence))
}

/// `1 KiB: time +33% [+30, +36], sender CPU +40%, …` against the copying method.
fn extra(run: &Run, cell: &CellAnalysis) -> Option<String> {
    let (zero, copying) = both(cell, ZERO, IOV)?;
    let time = arms::multiple(cell, ZERO, IOV).map(|found| format!("time {}", changed(&found)));
    let part = |what: &str, of: fn(&Figures) -> Option<Estimate>| {
        let (zero, copying) = (of(zero)?.value, of(copying)?.value);
        (copying > 0.0).then(|| format!("{what} {}", change(zero / copying)))
    };
    let parts = [
        time,
        part("sender CPU", |f| f.tx_cpu_ns_per_byte),
        part("receiver CPU", |f| f.rx_cpu_ns_per_byte),
        part("context switches", |f| f.context_switches_per_message),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let at = setting(run, &cell.cell);
    (!parts.is_empty()).then(|| format!("{at}, against {IOV}: {}", parts.join(", ")))
}

/// What a message costs whatever its size: where pinning and notification show.
fn fixed(analysis: &Analysis) -> Option<String> {
    let models = || analysis.cost_models.iter().filter(|model| model.is_affine());
    let zero = models().find(|model| model.label == ZERO)?;
    let copying = models().find(|m| m.label == IOV && m.curve == zero.curve)?;
    let (zero, copying) = (fixed_cost(zero), fixed_cost(copying));
    Some(format!("whatever the size, {ZERO} costs {zero}, {IOV} {copying}"))
}

fn fixed_cost(model: &CostModel) -> String {
    let bound = if model.fixed_is_upper_bound { "at most " } else { "" };
    format!("{bound}{}", measured(&model.fixed_ns, "ns per message"))
}

/// What the copy costs that an iovec removes, where bytes cost most: the largest size.
fn removed_copy(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let key = |copy: &&RemovedCopy| (copy.cell.size, Reverse(copy.cell.threads));
    let most = analysis.removed_copies.iter().max_by_key(key)?;
    let saved = &most.staged_less_iov_ns_per_byte;
    let doubt = match saved.interval {
        Some(i) if i.contains(0.0) => "; a saving is not shown",
        Some(i) if i.high < 0.0 => "; the iovec costs more than the copy it removes",
        _ => "",
    };
    let line = |copy: &RemovedCopy| {
        format!(
            "{}: {STAGED} less {IOV} {}; memcpy {}",
            setting(run, &copy.cell),
            measured(&copy.staged_less_iov_ns_per_byte, "ns per byte"),
            measured(&copy.memcpy_ns_per_byte, "ns per byte")
        )
    };
    let claim = format!(
        "{} at {}; a memcpy of the same bytes alone takes {}{doubt}.",
        measured(saved, "ns per byte"),
        setting(run, &most.cell),
        measured(&most.memcpy_ns_per_byte, "ns per byte")
    );
    Some((claim, analysis.removed_copies.iter().map(line).collect()))
}

/// Misses per KiB at one level of the caches: its name, its metric, and where it is read.
type Level = (&'static str, &'static str, fn(&Figures) -> Option<Estimate>);

const LEVELS: [Level; 2] = [
    ("L1d", "l1d_misses", |f| f.l1d_misses_per_kib),
    ("LLC", "llc_misses", |f| f.llc_misses_per_kib),
];

/// Misses of the staged method and of the iovec at a level.
type Gain = (&'static str, Estimate, Estimate);

/// Which cache level gains most when a copy is left out.
fn caches(run: &Run, analysis: &Analysis) -> Option<Answer> {
    fn gains(cell: &CellAnalysis) -> Option<(&CellAnalysis, Vec<Gain>)> {
        let (staged, iov) = both(cell, STAGED, IOV)?;
        let gain = |(name, _, of): &Level| Some((*name, of(staged)?, of(iov)?));
        Some((cell, LEVELS.iter().map(gain).collect::<Option<_>>()?))
    }
    analysis.cells.iter().find_map(|cell| both(cell, STAGED, IOV))?;
    let mut cells: Vec<_> = analysis.cells.iter().filter_map(gains).collect();
    cells.sort_by_key(|(cell, _)| (Reverse(cell.cell.size), cell.cell.threads));
    let Some((cell, largest)) = cells.first() else {
        let missing = words::not_measured(&analysis.told);
        let reasons: BTreeSet<&str> = LEVELS
            .iter()
            .filter_map(|(_, metric, _)| Some(missing.get(metric)?.as_str()))
            .collect();
        let why = Vec::from_iter(reasons).join("; ");
        let why = if why.is_empty() { "cache misses were not counted".to_owned() } else { why };
        return Some((format!("Unknown: {why}."), Vec::new()));
    };
    let fewer = |(_, from, to): &Gain| from.value - to.value;
    let sure = largest.iter().filter(|gain| fewer(gain) > 0.0 && apart(&gain.1, &gain.2));
    let at = setting(run, &cell.cell);
    let claim = match sure.max_by(|a, b| fewer(a).total_cmp(&fewer(b))) {
        Some(gain) => format!(
            "{}: {IOV} misses {} times less per KiB than {STAGED} at {at}.",
            gain.0,
            three_digits(fewer(gain))
        ),
        None => format!("None shown at {at}."),
    };
    let line = |(cell, gains): &(&CellAnalysis, Vec<Gain>)| {
        let one = |(name, from, to): &Gain| {
            let [from, to] = [from, to].map(|misses| measured(misses, "per KiB"));
            format!("{name} {IOV} {to}, {STAGED} {from}")
        };
        let gains = gains.iter().map(one);
        format!("{}: {}", setting(run, &cell.cell), gains.joined("; "))
    };
    Some((claim, cells.iter().map(line).collect()))
}

/// Whether the intervals of two estimates leave no doubt about their order.
fn apart(a: &Estimate, b: &Estimate) -> bool {
    a.interval.zip(b.interval).is_some_and(|(a, b)| a.high < b.low || b.high < a.low)
}

/// What a working set larger than the last-level cache costs.
fn cold(_: &Run, analysis: &Analysis) -> Option<Answer> {
    let is_cold = |cell: &&CellAnalysis| cell.cell.working_set() == Some(WorkingSet::Cold);
    let twin = |cold: &'_ CellAnalysis| {
        let twin = cold.cell.with_net(|net| net.working_set = WorkingSet::Hot);
        analysis.cells.iter().find(move |cell| cell.cell == twin)
    };
    let pairs = analysis.cells.iter().filter(is_cold).filter_map(|cold| Some((twin(cold)?, cold)));
    let (hot, cold) = pairs.max_by_key(|(hot, _)| (hot.cell.size, Reverse(hot.cell.threads)))?;
    let per_byte = |cell: &CellAnalysis, id: &str| figures(cell, id)?.ns_per_byte;
    let one = |id: &str| {
        let (hot, cold) = (per_byte(hot, id)?, per_byte(cold, id)?);
        Some(format!("{id} {}", change(cold.value / hot.value)))
    };
    let all: Vec<String> = CLASSIC.into_iter().filter_map(one).collect();
    let claim = format!(
        "Time per byte against hot at {}, {}: {}; from different trials, so drift is in it.",
        hot.cell.size,
        words::threads(hot.cell.threads),
        list(&all)
    );
    (!all.is_empty()).then(|| (claim, Vec::new()))
}

/// A method at one size over the thread counts.
struct Row<'a> {
    label: &'a str,
    /// The first cell.
    cell: &'a Cell,
    points: Vec<(u32, Estimate)>,
}

/// Whether more threads help.
fn threads(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let rows = by_threads(analysis);
    let ends = |row: &Row| Some((row.points.first()?.1, row.points.last()?.1));
    let apart_ends = |up: bool| {
        let is_so =
            |row: &&Row| ends(row).is_some_and(|(a, b)| apart(&a, &b) && (b.value > a.value) == up);
        rows.iter().filter(is_so).count()
    };
    let most = rows.iter().filter_map(|row| row.points.last()).map(|(n, _)| *n).max()?;
    let least = rows.iter().filter_map(|row| row.points.first()).map(|(n, _)| *n).min()?;
    let crowded = words::crowded(run).map_or("", |_| ", on shared CPUs");
    let several =
        distinct(rows.iter().map(|row| Cell { threads: 0, ..row.cell.curve() })).len() > 1;
    let line = |row: &Row| {
        let point = |(threads, rate): &(u32, Estimate)| {
            format!("{} with {threads}", crate::number::bits(rate.value))
        };
        let points = row.points.iter().map(point);
        let limit = plateau(analysis, row);
        let setting = words::joined(words::setting(&run.header.plan, row.cell));
        let setting = if several { format!(", {setting}") } else { String::new() };
        format!("{}, {}{setting}: {}{limit}", row.label, row.cell.size, points.joined(", "))
    };
    let claim = format!(
        "From {least} to {most} threads, throughput rises in {} of {} settings and falls in \
         {}{crowded}.",
        apart_ends(true),
        rows.len(),
        apart_ends(false)
    );
    Some((claim, rows.iter().map(line).collect()))
}

/// From which count on more bring no more, where that is shown.
fn plateau(analysis: &Analysis, row: &Row) -> String {
    let here = |p: &&Plateau| {
        p.axis == PlateauAxis::Threads
            && p.label == row.label
            && Cell { threads: p.from.threads, ..row.cell.clone() } == p.from
    };
    let found = analysis.plateaus.iter().find(here);
    found.or_empty(|p| format!("; no gain beyond {}", p.from.threads))
}

/// Every method at every size that has at least two thread counts.
fn by_threads<'a>(analysis: &'a Analysis) -> Vec<Row<'a>> {
    let points = analysis.cells.iter().flat_map(|cell| {
        usable(cell).filter_map(move |arm| {
            let goodput = cell.across(arm, |arm| arm.figure(|f| f.goodput_bits_per_s))?;
            let key = (arm.arm.label.as_str(), Cell { threads: 0, ..cell.cell.clone() });
            Some((key, (&cell.cell, goodput)))
        })
    });
    let row = |((label, _), found): ((_, _), Vec<(&'a Cell, Estimate)>)| {
        let mut points: Vec<_> = found.iter().map(|(cell, rate)| (cell.threads, *rate)).collect();
        points.sort_by_key(|(threads, _)| *threads);
        (points.len() > 1).then_some(Row { label, cell: found[0].0, points })
    };
    grouped(points).into_iter().filter_map(row).collect()
}

/// What is unlike the rest, beside what the sizes cost.
fn surprising(run: &Run, analysis: &Analysis) -> Option<Answer> {
    let claims = contradictions(run, analysis);
    let line = |model: &CostModel| cost_model(run, model);
    let evidence = analysis.cost_models.iter().map(line).collect();
    (!claims.is_empty()).then(|| (claims.join(" "), evidence))
}

/// `1 thread: send_staged takes 1100 ns per message plus 0.200 ns per byte …`.
fn cost_model(run: &Run, model: &CostModel) -> String {
    let curve = words::curve_brief(&run.header.plan, &model.curve);
    let off = format!("at most {} off, at {}", percent(model.worst_residual.abs()), model.worst_at);
    if !model.is_affine() {
        return format!("{curve}: {} is no fixed cost plus a cost per byte ({off})", model.label);
    }
    format!(
        "{curve}: {} takes {} plus {} ({off})",
        model.label,
        fixed_cost(model),
        measured(&model.per_byte_ns, "ns per byte")
    )
}

/// A method that is behind another by more than the threshold, against what copies and calls say.
struct Behind<'a> {
    cell: &'a CellAnalysis,
    ahead: &'a str,
    behind: &'a str,
    by: Multiple,
}

/// What contradicts the account by which time follows copies, or the trend along the sizes.
fn contradictions(run: &Run, analysis: &Analysis) -> Vec<String> {
    let ahead = farthest(analysis, copied_yet_ahead).map(|found| {
        format!(
            "At {}, {} is fastest although the kernel copied its sends; the next, {}, takes {}.",
            setting(run, &found.cell.cell),
            found.ahead,
            found.behind,
            longer(&found)
        )
    });
    let apart = farthest(analysis, alike_yet_apart).map(|found| {
        let (at, longer) = (setting(run, &found.cell.cell), longer(&found));
        format!("At {at}, {} takes {longer}, with equal copies and calls.", found.behind)
    });
    let mut claims: Vec<String> = ahead.into_iter().chain(apart).collect();
    claims.extend(saves_more_than_a_copy(run, analysis));
    claims.extend(off_the_trend(run, analysis, claims.is_empty()));
    claims
}

/// `12% longer than send`, `6.2× as long as send`.
fn longer(found: &Behind) -> String {
    match found.by.0 {
        ratio if ratio < 2.0 => {
            format!("{} longer than {}", changed(&found.by).trim_start_matches('+'), found.ahead)
        }
        ratio => format!("{}× as long as {}", three_digits(ratio), found.ahead),
    }
}

/// The most striking of what is found in the cells.
fn farthest<'a>(
    analysis: &'a Analysis,
    find: fn(&Analysis, &'a CellAnalysis) -> Option<Behind<'a>>,
) -> Option<Behind<'a>> {
    let found = analysis.cells.iter().filter_map(|cell| find(analysis, cell));
    found.max_by(|a, b| a.by.0.total_cmp(&b.by.0))
}

/// How far `behind` is behind `ahead`, where that is surely more than the threshold.
fn surely<'a>(
    analysis: &Analysis,
    cell: &'a CellAnalysis,
    ahead: &'a str,
    behind: &'a str,
) -> Option<Behind<'a>> {
    let by = arms::multiple(cell, behind, ahead)?;
    (by.1.low > 1.0 + analysis.delta).then_some(Behind { cell, ahead, behind, by })
}

/// Methods of a cell that can be used.
fn usable(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    arms::methods(cell).filter(|arm| arm.is_ranked())
}

/// Zero-copy that the kernel copied, and that is ahead of every copying method.
fn copied_yet_ahead<'a>(analysis: &Analysis, cell: &'a CellAnalysis) -> Option<Behind<'a>> {
    let copied = |arm: &&ArmAnalysis| arm.zerocopy.is_some_and(|z| z.is_copied());
    let arm = usable(cell).find(copied)?;
    let others = usable(cell).filter(|other| other.zerocopy.is_none());
    let behind: Option<Vec<Behind>> =
        others.map(|other| surely(analysis, cell, &arm.arm.label, &other.arm.label)).collect();
    behind?.into_iter().min_by(|a, b| a.by.0.total_cmp(&b.by.0))
}

/// Two methods that make as many copies and calls, and take different times.
fn alike_yet_apart<'a>(analysis: &Analysis, cell: &'a CellAnalysis) -> Option<Behind<'a>> {
    let arms: Vec<&ArmAnalysis> = usable(cell).filter(|arm| arm.zerocopy.is_none()).collect();
    let calls = |arm: &ArmAnalysis| Some(arm.figure(|f| f.tx_calls_per_message)?.value);
    let alike = |a: &ArmAnalysis, b: &ArmAnalysis| {
        let as_many = calls(a).zip(calls(b)).is_some_and(|(a, b)| (a / b - 1.0).abs() < 0.01);
        let copies = a.copies_sender.zip(b.copies_sender);
        as_many && copies.is_some_and(|(a, b)| (a - b).abs() < 0.01)
    };
    let pairs = arms.iter().flat_map(|a| arms.iter().map(move |b| (*a, *b)));
    let pairs = pairs.filter(|(a, b)| a.arm.label != b.arm.label && alike(a, b));
    let found = pairs.filter_map(|(a, b)| surely(analysis, cell, &a.arm.label, &b.arm.label));
    found.max_by(|a, b| a.by.0.total_cmp(&b.by.0))
}

/// An iovec that saves surely more than the `memcpy` that it removes takes.
fn saves_more_than_a_copy(run: &Run, analysis: &Analysis) -> Option<String> {
    let surely = |copy: &&RemovedCopy| copy.beyond_memcpy_ns_per_byte.is_some_and(|i| i.low > 0.0);
    let multiple =
        |copy: &RemovedCopy| copy.staged_less_iov_ns_per_byte.value / copy.memcpy_ns_per_byte.value;
    let found = analysis.removed_copies.iter().filter(surely);
    let copy = found.max_by(|a, b| multiple(a).total_cmp(&multiple(b)))?;
    Some(format!(
        "At {}, the iovec saves {}× what a memcpy of the same bytes takes.",
        setting(run, &copy.cell),
        three_digits(multiple(copy))
    ))
}

/// The measurement that is farthest from its neighbours along the sizes.
fn off_the_trend(run: &Run, analysis: &Analysis, is_alone: bool) -> Option<String> {
    let found = analysis.unexpected.as_ref()?;
    let interval = found
        .simultaneous
        .filter(Interval::is_usable)
        .or_empty(|i| format!(" {}", change_interval((i.low, i.high))));
    let facts = format!(
        "{} at {}, {}{interval} against the trend",
        found.label,
        setting(run, &found.cell),
        change(found.ratio)
    );
    match found.beyond_interval {
        true => Some(format!("Off its own curve: {facts}.")),
        false if is_alone => {
            Some(format!("Nothing. The largest deviation is within noise: {facts}."))
        }
        false => None,
    }
}

/// `+33% [+30, +36]`.
fn changed(found: &Multiple) -> String {
    let &(ratio, interval) = found;
    match interval.is_usable() {
        true => format!("{} {}", change(ratio), change_interval((interval.low, interval.high))),
        false => change(ratio),
    }
}
