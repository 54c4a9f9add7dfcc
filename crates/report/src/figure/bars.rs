//! Bars in parts. Where the CPU time of a message went: a bar per arm and end, as long as its
//! CPU time per message, in parts by class of work. And the use of the processors in a cell of
//! servers: a bar for those of the server and one for those of the client, before the servers
//! were there, when they stood, and in the slices of each.

use iolens_model::run::RunHeader;
use iolens_stats::analysis::CpuOf;
use iolens_stats::attribution::{ArmAttribution, Class, ClassShare, Scope, ScopeAttribution};

use super::*;
use crate::explain;
use crate::number::percent;
use crate::servers::{self, CPU_KINDS, Watched};

/// The name of a figure of one cell that was explained.
pub(super) fn stem(header: &RunHeader, cell: &Cell, metric: &str) -> String {
    let stem = super::stem(&header.plan, cell, metric);
    format!("{stem}{}-{}-threads", size_stem(cell), cell.threads)
}

/// `-64kib`; empty where a cell has no size.
pub(crate) fn size_stem(cell: &Cell) -> String {
    let size = cell.own_size().map(|size| size.to_string().replace(' ', "").to_lowercase());
    size.map_or_else(String::new, |size| format!("-{size}"))
}

/// An end of an arm.
type Bar<'a> = (&'a ArmAttribution, &'static str, &'a ScopeAttribution);

/// The figure of a cell that was explained.
pub(super) fn of_classes(paper: Paper, run: &Run, explanation: &Explanation) -> Option<Figure> {
    let ends = [(Scope::Sender, "sender"), (Scope::Receiver, "receiver")];
    let arms = explanation.attribution.arms.iter();
    let bars: Vec<Bar> = arms
        .flat_map(|arm| ends.map(|(scope, end)| Some((arm, end, arm.scope(scope)?))))
        .flatten()
        .collect();
    let cell = &explanation.attribution.cell;
    let what = if explanation.attribution.kernel { "CPU time" } else { "User time" };
    let title = format!(
        "{what} per {} by class of work (ns): {}",
        explain::unit_of(explanation),
        words::subject(&run.header, cell)
    );
    let draw = |medium| draw_classes(&run.header, explanation, &bars, medium, &title);
    let stem = stem(&run.header, cell, "attribution");
    let table = table_of_classes(&title, explain::time_of(explanation), &bars);
    (!bars.is_empty()).then(|| Figure::new(paper, Group::Time, stem, draw, table))
}

/// The look of a class: there are more classes than hues, and what is rarely large is pale.
pub(super) fn class_of(class: Class) -> &'static str {
    match class {
        Class::User => "f c-grey part",
        Class::SyscallEntry => "f c-sky part",
        Class::CopyFromUser => "f c-vermilion part",
        Class::PagePinning => "f c-purple part",
        Class::LateCopy => "f c-orange part",
        Class::Socket => "f c-blue part",
        Class::SoftirqReceive => "f c-green part",
        Class::CopyToUser => "f c-ink part",
        Class::Memory => "f c-blue tile",
        Class::PageFault => "f c-purple tile",
        Class::PageCache => "f c-sky tile",
        Class::IoUring => "f c-orange tile",
        Class::Scheduler => "f c-green tile",
        Class::Unattributed => "f c-grey tile",
    }
}

const NAMES: f64 = 215.0;

fn draw_classes(
    header: &RunHeader,
    explanation: &Explanation,
    bars: &[Bar<'_>],
    medium: Medium,
    title: &str,
) -> Drawing {
    const HEIGHT: f64 = 20.0;
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
    let classes = Class::ALL.into_iter();
    let classes = classes.filter(|class| bars.iter().any(|(.., of)| of.class(*class).is_some()));
    sheet.tiles(classes.map(|class| (class_of(class).to_owned(), class.words())));
    let longest = bars.iter().map(|(.., of)| of.cpu_ns_per_message.value).fold(1e-9, f64::max);
    let per_ns = (sheet.width - NAMES - 70.0) / longest;
    for (i, (arm, end, of)) in bars.iter().enumerate() {
        let name = arm.shown();
        if i == 0 || bars[i - 1].0.arm != arm.arm {
            sheet.y += if i == 0 { 0.0 } else { 12.0 };
            sheet.svg.text(0.0, sheet.y + 14.0, "tl", &name);
        }
        let (mut x, total) = (NAMES, of.cpu_ns_per_message.value);
        for ClassShare { class, share, ns_per_message, .. } in &of.classes {
            let width = share.value * total * per_ns;
            let (part, ns) = (percent(share.value), explain::time(ns_per_message.value));
            let hover = format!("{name}, {end}: {} {part}, {ns} per message", class.words());
            let size = (width.max(0.3) - 0.6_f64.min(width / 2.0), HEIGHT - 3.0);
            sheet.svg.tile((x, sheet.y), size, class_of(*class), &hover);
            x += width;
        }
        around(&mut sheet, (NAMES, x), 14.0, end, &explain::time(total));
        sheet.y += HEIGHT;
    }
    sheet.y += 6.0;
    sheet.finish(&words::footer(header, &attribution.cell))
}

/// What stands before and behind a bar.
fn around(sheet: &mut Sheet, (left, right): (f64, f64), down: f64, before: &str, behind: &str) {
    let y = sheet.y + down;
    sheet.svg.text(left - 6.0, y, "td ae", before);
    sheet.svg.text(right + 6.0, y, "td", behind);
}

fn table_of_classes(title: &str, of: &str, bars: &[Bar<'_>]) -> Table {
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
    for (arm, end, of) in bars {
        let rows = of.classes.iter().map(|share| {
            let interval = share.share.interval;
            let interval =
                interval.map(|i| format!("{:.1} to {:.1}", 100.0 * i.low, 100.0 * i.high));
            vec![
                arm.shown().into(),
                (*end).into(),
                share.class.words().into(),
                format!("{:.1}", 100.0 * share.share.value).into(),
                interval.unwrap_or(NONE.to_owned()).into(),
                number::optional(Some(share.ns_per_message.value)).into(),
                share.samples.to_string().into(),
            ]
        });
        chart::push_group(&mut table, rows);
    }
    table
}

/// The use of the processors in a cell; null where nothing could be read.
pub(super) fn of_processors(paper: Paper, run: &Run, cell: &CellAnalysis) -> Option<Figure> {
    let subject = words::subject(&run.header, &cell.cell);
    let title = format!("Use of the processors (% of their time): {subject}");
    let table = servers::use_of_cpus(cell, &title)?;
    let draw = |medium| draw_processors(run, cell, medium, &title);
    let stem = super::stem(&run.header.plan, &cell.cell, "processors");
    let server = cell.cell.server()?;
    let load = server.load.to_string().replace('%', "-percent");
    let stem = format!("{stem}-{load}-{}", server.connections);
    let narrow = Some(draw(Medium::Narrow).inline());
    Some(Figure { narrow, ..Figure::new(paper, Group::Processors, stem, draw, table) })
}

fn draw_processors(run: &Run, cell: &CellAnalysis, medium: Medium, title: &str) -> Drawing {
    const HEIGHT: f64 = 18.0;
    let how = "length: the share of the time in which they were not idle, with the number; of \
               everybody on the machine, by /proc/stat; softirq moves the packets of both ends";
    let mut sheet = Sheet::new(medium, medium.width(), title, how);
    sheet.tiles(CPU_KINDS.iter().map(|(word, hue, _)| (format!("f c-{hue} part"), *word)));
    // Where it is narrow a model's name has a line of its own.
    let (left, below) = if medium.is_narrow() { (56.0, HEIGHT) } else { (NAMES, 0.0) };
    let room = sheet.width - left - 64.0;
    for Watched { when, cpus } in servers::watched(cell) {
        sheet.y += 8.0;
        sheet.svg.text(0.0, sheet.y + 12.0, "tl", &when);
        sheet.y += below;
        for (of, cpus) in servers::by_end(cpus) {
            let kinds = CPU_KINDS.iter().map(|(word, hue, share)| (word, *hue, share(&cpus)));
            let seen = || kinds.clone().filter(|(.., share)| share * room >= 0.2);
            let words: Vec<String> =
                seen().map(|(word, _, share)| format!("{word} {}", percent(share))).collect();
            let hover = format!("{when}, {}: {}", whose(of), words.join(", "));
            let stretches: Vec<_> = seen().map(|(_, hue, share)| (share * room, hue)).collect();
            sheet.svg.bar((left, sheet.y), HEIGHT - 3.0, &stretches, &hover);
            let right = left + stretches.iter().map(|(width, _)| width).sum::<f64>();
            around(&mut sheet, (left, right), 12.0, whose(of), &percent(1.0 - cpus.idle));
            sheet.y += HEIGHT;
        }
    }
    sheet.finish(&words::footer(&run.header, &cell.cell))
}

fn whose(of: CpuOf) -> &'static str {
    match of {
        CpuOf::Server => "server’s",
        CpuOf::Client => "client’s",
        CpuOf::Both => "both’s",
        CpuOf::Neither => "others",
    }
}
