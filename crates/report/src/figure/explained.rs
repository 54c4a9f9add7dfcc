//! The figures of a run: its own, and of the cells that were explained where their CPU time went.
//! A bar per arm and end, as long as its CPU time per message, in parts by class of work; and the
//! stacks of two arms.

use iolens_document::Joined;
use iolens_document::table::{Table, decimal, left, right};
use iolens_model::cell::Cell;
use iolens_model::plan::Plan;
use iolens_model::run::Run;
use iolens_stats::analysis::Interval;
use iolens_stats::attribution::{
    Against, ArmAttribution, Attribution, ClassShare, Explanation, Scope, ScopeAttribution,
};

use super::bars::{Bar, BarPart, Bars, Lengths, class_of};
use super::flame::{self, Frames};
use super::{Figure, Group, Marks, Paper, Plate, size_stem};
use crate::number::{self, InWords, percent};
use crate::{explain, words};

/// Every figure of a run that has these of its own, in the order of [`Group`].
pub(crate) fn printed(paper: Paper, run: &Run, mut plates: Vec<Plate>) -> Vec<Figure> {
    let explained = iolens_stats::attribution::explain(&run.profiles, &run.header.plan.baseline);
    plates.extend(explained.iter().filter_map(|one| of_classes(run, one)));
    plates.extend(explained.iter().filter_map(|one| stacks(run, one)));
    plates.sort_by_key(|plate| plate.group);
    plates.into_iter().map(|plate| plate.print(paper)).collect()
}

/// The name of a figure of one cell that was explained.
fn stem(plan: &Plan, cell: &Cell, metric: &str) -> String {
    let stem = super::stem(plan, cell, metric);
    format!("{stem}{}-{}-threads", size_stem(cell), cell.threads)
}

/// An arm and one of its ends.
type End<'a> = (&'a ArmAttribution, &'static str, &'a ScopeAttribution);

/// The figure of a cell that was explained.
fn of_classes(run: &Run, explanation: &Explanation) -> Option<Plate> {
    let attribution = &explanation.attribution;
    let scopes = [(Scope::Sender, "sender"), (Scope::Receiver, "receiver")];
    let ends = attribution.arms.iter().flat_map(|arm| {
        scopes.iter().filter_map(move |(scope, end)| Some((arm, *end, arm.scope(*scope)?)))
    });
    let ends: Vec<End> = ends.collect();
    let (cell, unit) = (&attribution.cell, explain::unit_of(explanation));
    let of = explain::time_of(explanation);
    let what = if attribution.kernel { "CPU time" } else { "User time" };
    let subject = words::subject(&run.header, cell);
    let title = format!("{what} per {unit} by class of work (ns): {subject}");
    let how = format!(
        "length: {of} of the end's threads per {unit}; parts: shares of {} samples in {} trials of \
         their own; on loopback and veth the sender's CPU runs the receive path",
        attribution.arms.iter().map(|arm| arm.both.samples).sum::<u64>(),
        attribution.trials
    );
    let total = |of: &ScopeAttribution| of.cpu_ns_per_message.value;
    let bars = ends.iter().map(|(arm, end, of)| {
        let words = of.classes.iter().map(|ClassShare { class, share, ns_per_message, .. }| {
            let (share, ns) = (percent(share.value), explain::time(ns_per_message.value));
            format!("{} {share}, {ns} per message", class.word())
        });
        let parts = of.classes.iter().map(|ClassShare { class, share, .. }| BarPart {
            length: share.value * total(of),
            class: class_of(*class).to_owned(),
            word: class.word(),
        });
        Bar {
            group: arm.shown(),
            before: (*end).to_owned(),
            behind: explain::time(total(of)),
            parts: parts.collect(),
            hover: format!("{}, {end}: {}", arm.shown(), words.joined("; ")),
            interval: None,
        }
    });
    let longest = ends.iter().map(|(.., of)| total(of)).fold(1e-9, f64::max);
    let marks = Marks::Bars(Bars { lengths: Lengths::Of(longest), bars: bars.collect() });
    let stem = stem(&run.header.plan, cell, "attribution");
    let table = table_of_classes(&title, of, &ends);
    (!ends.is_empty())
        .then(|| Plate::new(run, cell, (Group::Time, stem), [title, how], marks, table))
}

fn table_of_classes(title: &str, of: &str, ends: &[End<'_>]) -> Table {
    let unit = format!("% of {of}");
    let mut table = Table::of(title, []);
    for (arm, end, found) in ends {
        table.fill_group(found.classes.iter().map(|one| {
            let ClassShare { class, share, ns_per_message, samples } = one;
            let percents = |i: Interval| format!("{:.1} to {:.1}", 100.0 * i.low, 100.0 * i.high);
            vec![
                left("arm", "", arm.shown()),
                left("end", "", *end),
                left("class of work", "", class.word()),
                decimal("share", &unit, format!("{:.1}", 100.0 * share.value)),
                left("95% interval", &unit, share.interval.or_dash(percents)),
                decimal(of, "ns per message", number::optional(Some(ns_per_message.value))),
                right("samples", "count", samples.to_string()),
            ]
        }));
    }
    table
}

/// The figure of an explained cell: the arm that differs most from the one it was set against,
/// and that one.
fn stacks(run: &Run, explanation: &Explanation) -> Option<Plate> {
    let Attribution { cell, arms, .. } = &explanation.attribution;
    let of_cell = || run.profiles.iter().filter(|trial| trial.cell == *cell);
    let differs = |pair: &&Against| pair.cpu_ns_per_message.value.abs();
    let pair = explanation.against.iter().max_by(|a, b| differs(a).total_cmp(&differs(b)));
    let labels = match pair {
        Some(pair) => vec![&pair.other, &pair.arm],
        None => arms.iter().map(|arm| &arm.arm).take(1).collect(),
    };
    let attributed = labels.iter().filter_map(|label| arms.iter().find(|arm| arm.arm == **label));
    let frames = attributed.map(|arm| (arm.shown(), flame::frames(of_cell(), &arm.arm)));
    let frames: Vec<(String, Frames)> = frames.filter(|(_, frames)| !frames.is_empty()).collect();
    let title = format!("Stacks by share of samples (%): {}", words::subject(&run.header, cell));
    let how = "callers above callees; width: share of the arm's samples at both ends; colours: \
               class of work of four fifths of the samples at least; narrow boxes are left out; of \
               the arms that differ most";
    let marks = Marks::Stacks(flame::stacks(&frames));
    let (stem, table) = (stem(&run.header.plan, cell, "stacks"), flame::table(&title, &frames));
    let said = [title, how.to_owned()];
    (!frames.is_empty()).then(|| Plate::new(run, cell, (Group::Time, stem), said, marks, table))
}
