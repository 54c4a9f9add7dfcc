//! Where the CPU time of a message went: a bar per arm and end, as long as its
//! CPU time per message, in parts by class of work.

use iolens_model::cell::Cell;
use iolens_model::run::{Run, RunHeader};
use iolens_stats::attribution::{
    ArmAttribution, Class, ClassShare, Explanation, Scope, ScopeAttribution,
};

use super::paper::Medium;
use super::sheet::{Drawing, Sheet};
use super::{Figure, Group, Paper};
use crate::table::{Column, Entry, Table};
use crate::{explain, number, words};

/// The figure of a cell that was explained.
pub(super) fn figure(paper: Paper, run: &Run, explanation: &Explanation) -> Option<Figure> {
    let bars = bars(explanation);
    if bars.is_empty() {
        return None;
    }
    let cell = &explanation.attribution.cell;
    let title = title(&run.header, explanation);
    let draw = |medium| draw(&run.header, explanation, &bars, medium, &title);
    let stem = stem(&run.header, cell, "attribution");
    let table = table(&title, explain::time_of(explanation), &bars);
    Some(Figure::new(paper, Group::Time, stem, draw, table))
}

/// The name of a figure of one cell.
pub(super) fn stem(header: &RunHeader, cell: &Cell, metric: &str) -> String {
    let stem = super::stem(&header.plan, cell, metric);
    let size = match cell.study().has_sizes() {
        true => format!("-{}", cell.size.to_string().replace(' ', "").to_lowercase()),
        false => String::new(),
    };
    format!("{stem}{size}-{}-threads", cell.threads)
}

fn title(header: &RunHeader, explanation: &Explanation) -> String {
    let what = if explanation.attribution.kernel { "CPU time" } else { "User time" };
    let cell = words::subject(header, &explanation.attribution.cell);
    format!("{what} per {} by class of work (ns): {cell}", explain::unit_of(explanation))
}

/// One bar.
struct Bar<'a> {
    arm: &'a ArmAttribution,
    end: &'static str,
    of: &'a ScopeAttribution,
}

fn bars(explanation: &Explanation) -> Vec<Bar<'_>> {
    let arms = &explanation.attribution.arms;
    let ends = [(Scope::Sender, "sender"), (Scope::Receiver, "receiver")];
    arms.iter()
        .flat_map(|arm| ends.map(|(scope, end)| (arm, scope, end)))
        .filter_map(|(arm, scope, end)| Some(Bar { arm, end, of: arm.scope(scope)? }))
        .collect()
}

/// The hue of a class, and whether it is drawn pale: there are more classes
/// than hues, and what is rarely large is pale.
pub(super) fn look(class: Class) -> (&'static str, bool) {
    match class {
        Class::User => ("grey", false),
        Class::SyscallEntry => ("sky", false),
        Class::CopyFromUser => ("vermilion", false),
        Class::PagePinning => ("purple", false),
        Class::LateCopy => ("orange", false),
        Class::Socket => ("blue", false),
        Class::SoftirqReceive => ("green", false),
        Class::CopyToUser => ("ink", false),
        Class::Memory => ("blue", true),
        Class::PageFault => ("purple", true),
        Class::PageCache => ("sky", true),
        Class::IoUring => ("orange", true),
        Class::Scheduler => ("green", true),
        Class::Unattributed => ("grey", true),
    }
}

pub(super) fn tile_class(class: Class) -> String {
    let (hue, pale) = look(class);
    if pale { format!("f c-{hue} tile") } else { part(hue) }
}

/// The class of a part of a bar in a hue.
pub(super) fn part(hue: &str) -> String {
    format!("f c-{hue} part")
}

const LEFT: f64 = 215.0;
const RIGHT: f64 = 70.0;
const HEIGHT: f64 = 20.0;
const ARM_GAP: f64 = 12.0;

fn draw(
    header: &RunHeader,
    explanation: &Explanation,
    bars: &[Bar<'_>],
    medium: Medium,
    title: &str,
) -> Drawing {
    let attribution = &explanation.attribution;
    let how = format!(
        "length: {} of the end's threads per {}; parts: shares of {} samples in {} \
         trials of their own; on loopback and veth the sender's CPU runs the receive path",
        explain::time_of(explanation),
        explain::unit_of(explanation),
        attribution.arms.iter().map(|arm| arm.both.samples).sum::<u64>(),
        attribution.trials
    );
    let mut sheet = Sheet::new(medium, medium.width(), title, &how);
    legend(&mut sheet, bars);
    let room = sheet.width - LEFT - RIGHT;
    let longest = bars.iter().map(|bar| bar.of.cpu_ns_per_message.value).fold(0.0, f64::max);
    let mut last = "";
    for bar in bars {
        if bar.arm.arm != last {
            sheet.y += if last.is_empty() { 0.0 } else { ARM_GAP };
            let name = bar.arm.shown();
            sheet.svg.text(0.0, sheet.y + 14.0, "tl", &name);
            last = &bar.arm.arm;
        }
        draw_bar(&mut sheet, bar, room / longest.max(1e-9));
    }
    sheet.y += 6.0;
    sheet.finish(&words::footer(header, &attribution.cell))
}

fn draw_bar(sheet: &mut Sheet, bar: &Bar<'_>, per_ns: f64) {
    let y = sheet.y;
    let mut x = LEFT;
    for share in &bar.of.classes {
        let width = share.share.value * bar.of.cpu_ns_per_message.value * per_ns;
        let hover = format!("{}, {}: {}", bar.arm.shown(), bar.end, in_words(share));
        let size = (width.max(0.3) - 0.6_f64.min(width / 2.0), HEIGHT - 3.0);
        sheet.svg.tile((x, y), size, &tile_class(share.class), &hover);
        x += width;
    }
    let end_y = y + 14.0;
    sheet.svg.text(LEFT - 6.0, end_y, "td ae", bar.end);
    let total = explain::time(bar.of.cpu_ns_per_message.value);
    sheet.svg.text(x + 6.0, end_y, "td", &total);
    sheet.y += HEIGHT;
}

fn in_words(share: &ClassShare) -> String {
    let ns = explain::time(share.ns_per_message.value);
    format!("{} {}, {ns} per message", share.class.words(), number::percent(share.share.value))
}

/// A square and a word for each class that is drawn.
fn legend(sheet: &mut Sheet, bars: &[Bar<'_>]) {
    let shown = |class: &Class| bars.iter().any(|bar| bar.of.class(*class).is_some());
    let classes = Class::ALL.into_iter().filter(shown);
    let tiles: Vec<_> = classes.map(|class| (tile_class(class), class.words())).collect();
    sheet.tiles(&tiles);
}

fn table(title: &str, of: &str, bars: &[Bar<'_>]) -> Table {
    let unit = format!("% of {of}");
    let columns = vec![
        Column::left("arm", ""),
        Column::left("end", ""),
        Column::left("class of work", ""),
        Column::decimal("share", &unit),
        Column::left("95% interval", &unit),
        Column::decimal(of, "ns per message"),
        Column::right("samples", "count"),
    ];
    let mut table = Table::new(title, columns);
    for bar in bars {
        for (i, share) in bar.of.classes.iter().enumerate() {
            let interval = share.share.interval.map_or_else(
                || number::NONE.to_owned(),
                |i| format!("{:.1} to {:.1}", 100.0 * i.low, 100.0 * i.high),
            );
            let row: Vec<Entry> = vec![
                bar.arm.shown().into(),
                bar.end.into(),
                share.class.words().into(),
                format!("{:.1}", 100.0 * share.share.value).into(),
                interval.into(),
                number::optional(Some(share.ns_per_message.value)).into(),
                share.samples.to_string().into(),
            ];
            if i == 0 { table.push_group(row) } else { table.push(row) }
        }
    }
    table
}
