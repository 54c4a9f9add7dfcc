//! Bars in parts. Where the CPU time of a message went: a bar per arm and end, as long as its
//! CPU time per message, in parts by class of work. And the use of the processors in a cell of
//! servers: a bar for those of the server and one for those of the client, before the servers
//! were there, when they stood, and in the slices of each.

use iolens_stats::analysis::{CpuOf, CpuShares};
use iolens_stats::attribution::{ArmAttribution, Class, ClassShare, Scope, ScopeAttribution};

use super::*;
use crate::explain;
use crate::number::{OrDash, percent};
use crate::studies::server::{self, CPU_KINDS, Watched};

/// Bars one below the other.
pub(crate) struct Bars {
    pub(crate) lengths: Lengths,
    pub(crate) bars: Vec<Bar>,
}

/// How long a value is drawn.
pub(crate) enum Lengths {
    /// As its part of this one.
    Of(f64),
    /// On this scale, whose ticks are drawn.
    On(Scale),
}

/// A bar and what stands around it.
#[derive(Default)]
pub(crate) struct Bar {
    /// What it has in common with others: beside the first of them, or above where it is narrow.
    pub(crate) group: String,
    pub(crate) before: String,
    pub(crate) behind: String,
    pub(crate) parts: Vec<BarPart>,
    pub(crate) hover: String,
    pub(crate) interval: Option<Interval>,
}

pub(crate) struct BarPart {
    pub(crate) length: f64,
    pub(crate) class: String,
    /// What all of that class are, for the legend.
    pub(crate) word: &'static str,
}

/// Height of a bar with what parts it from the next.
const HEIGHT: f64 = 20.0;
/// Room above a group.
const APART: f64 = 8.0;

pub(crate) fn draw(plate: &Plate, Bars { lengths, bars }: &Bars, medium: Medium) -> Drawing {
    let mut sheet = Sheet::new(plate, medium, medium.width());
    let parts = bars.iter().flat_map(|bar| &bar.parts);
    let legend = first_of_each(parts.map(|part| (part.word, part)));
    sheet.tiles(legend.into_iter().map(|part| (format!("f {}", part.class), part.word)));
    let widest = |of: fn(&Bar) -> &str, size| svg::widest(bars.iter().map(of), size);
    let groups = widest(|bar| &bar.group, 12.0);
    // Where it is narrow, a group has a line of its own.
    let beside = if medium.is_narrow() { 0.0 } else { groups };
    let left = beside + widest(|bar| &bar.before, 12.0) + 10.0;
    let room = sheet.width - left - widest(|bar| &bar.behind, 11.0) - 10.0;
    let x = |value: f64| match lengths {
        Lengths::On(scale) => left + room * scale.position(value).clamp(0.0, 1.0),
        Lengths::Of(all) => left + room * value / all,
    };
    let (top, mut last) = (sheet.y, "");
    for Bar { group, before, behind, parts, hover, interval } in bars {
        if group != last {
            sheet.y += APART;
            sheet.svg.text(0.0, sheet.y + 14.0, "tl", group);
            sheet.y += if beside < groups { HEIGHT } else { 0.0 };
            last = group;
        }
        let (middle, below) = (sheet.y + (HEIGHT - 3.0) / 2.0, sheet.y + 14.0);
        let class = if group.is_empty() { "tl ae" } else { "td ae" };
        sheet.svg.text(left - 6.0, below, class, before);
        let mut end = 0.0;
        let stretches = parts.iter().map(|BarPart { length, class, .. }| {
            let from = x(end);
            end += length;
            (x(end) - from, &**class)
        });
        sheet.svg.bar((left, middle), HEIGHT - 3.0, stretches, hover);
        let [low, high] = interval.map_or([end; 2], |ends| [ends.low, ends.high]).map(x);
        if low < high {
            sheet.svg.line((low, middle), (high, middle), "s c-ink whisker");
        }
        sheet.svg.text(high.max(x(end)) + 6.0, below, "td", behind);
        sheet.y += HEIGHT;
    }
    if let Lengths::On(scale) = lengths {
        for (value, label) in scale.spaced(room, 60.0) {
            sheet.svg.line((x(*value), top), (x(*value), sheet.y), "grid");
            sheet.svg.text(x(*value), sheet.y + 15.0, "tk am", label);
        }
        sheet.y += 18.0;
    }
    sheet.y += 6.0;
    sheet.finish()
}

/// The name of a figure of one cell that was explained.
pub(crate) fn stem(plan: &Plan, cell: &Cell, metric: &str) -> String {
    let stem = super::stem(plan, cell, metric);
    format!("{stem}{}-{}-threads", size_stem(cell), cell.threads)
}

/// `-64kib`; empty where a cell has no size.
pub(crate) fn size_stem(cell: &Cell) -> String {
    let size = cell.own_size().map(|size| size.to_string().replace(' ', "").to_lowercase());
    size.map_or_else(String::new, |size| format!("-{size}"))
}

/// An arm and one of its ends.
type End<'a> = (&'a ArmAttribution, &'static str, &'a ScopeAttribution);

/// The figure of a cell that was explained.
pub(crate) fn of_classes(run: &Run, explanation: &Explanation) -> Option<Plate> {
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
            format!("{} {share}, {ns} per message", class.words())
        });
        let parts = of.classes.iter().map(|ClassShare { class, share, .. }| BarPart {
            length: share.value * total(of),
            class: class_of(*class).to_owned(),
            word: class.words(),
        });
        Bar {
            group: arm.shown(),
            before: (*end).to_owned(),
            behind: explain::time(total(of)),
            parts: parts.collect(),
            hover: format!("{}, {end}: {}", arm.shown(), words.collect::<Vec<_>>().join("; ")),
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

/// The look of a class: there are more classes than hues, and what is rarely large is pale.
pub(crate) fn class_of(class: Class) -> &'static str {
    match class {
        Class::User => "c-grey part",
        Class::SyscallEntry => "c-sky part",
        Class::CopyFromUser => "c-vermilion part",
        Class::PagePinning => "c-purple part",
        Class::LateCopy => "c-orange part",
        Class::Socket => "c-blue part",
        Class::SoftirqReceive => "c-green part",
        Class::CopyToUser => "c-ink part",
        Class::Memory => "c-blue tile",
        Class::PageFault => "c-purple tile",
        Class::PageCache => "c-sky tile",
        Class::IoUring => "c-orange tile",
        Class::Scheduler => "c-green tile",
        Class::Unattributed => "c-grey tile",
    }
}

fn table_of_classes(title: &str, of: &str, ends: &[End<'_>]) -> Table {
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
    for (arm, end, of) in ends {
        let rows = of.classes.iter().map(|ClassShare { class, share, ns_per_message, samples }| {
            let percents = |i: Interval| format!("{:.1} to {:.1}", 100.0 * i.low, 100.0 * i.high);
            vec![
                arm.shown().into(),
                (*end).into(),
                class.words().into(),
                format!("{:.1}", 100.0 * share.value).into(),
                share.interval.or_dash(percents).into(),
                number::optional(Some(ns_per_message.value)).into(),
                samples.to_string().into(),
            ]
        });
        chart::push_group(&mut table, rows);
    }
    table
}

/// The use of the processors in a cell; `None` where nothing could be read.
pub(crate) fn of_processors(run: &Run, cell: &CellAnalysis) -> Option<Plate> {
    let subject = words::subject(&run.header, &cell.cell);
    let title = format!("Use of the processors (% of their time): {subject}");
    let how = "length: the share of the time in which they were not idle, with the number; of \
               everybody on the machine, by /proc/stat; softirq moves the packets of both ends";
    let table = server::use_of_cpus(cell, &title)?;
    let server = cell.cell.server()?;
    let stem = super::stem(&run.header.plan, &cell.cell, "processors");
    let load = server.load.to_string().replace('%', "-percent");
    let stem = format!("{stem}-{load}-{}", server.connections);
    let bars = server::watched(cell).into_iter().flat_map(|Watched { when, cpus }| {
        let ends = server::by_end(cpus).into_iter();
        ends.map(move |(of, cpus)| bar_of_processors(&when, of, &cpus))
    });
    let marks = Marks::Bars(Bars { lengths: Lengths::Of(1.0), bars: bars.collect() });
    let (place, said) = ((Group::Processors, stem), [title, how.to_owned()]);
    Some(Plate::new(run, &cell.cell, place, said, marks, table))
}

fn bar_of_processors(when: &str, of: CpuOf, cpus: &CpuShares) -> Bar {
    // What has a width when it is drawn.
    const SHARE_MIN: f64 = 2e-4;
    let whose = match of {
        CpuOf::Server => "server’s",
        CpuOf::Client => "client’s",
        CpuOf::Both => "both’s",
        CpuOf::Neither => "others",
    };
    let parts = CPU_KINDS.iter().map(|(word, hue, share)| BarPart {
        length: share(cpus),
        class: format!("c-{hue} part"),
        word,
    });
    let parts: Vec<BarPart> = parts.filter(|part| part.length >= SHARE_MIN).collect();
    let words = parts.iter().map(|part| format!("{} {}", part.word, percent(part.length)));
    Bar {
        group: when.to_owned(),
        before: whose.to_owned(),
        behind: percent(1.0 - cpus.idle),
        hover: format!("{when}, {whose}: {}", words.collect::<Vec<_>>().join(", ")),
        parts,
        interval: None,
    }
}
