//! Bars in parts, one below the other.

use iolens_stats::analysis::Interval;
use iolens_stats::attribution::Class;

use super::scale::Scale;
use super::sheet::{Drawing, Medium, Said, Sheet};
use super::svg;
use crate::groups::first_of_each;

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

pub(crate) fn draw(said: &Said, Bars { lengths, bars }: &Bars, medium: Medium) -> Drawing {
    let mut sheet = Sheet::new(said, medium, medium.width());
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

/// The look of a class: there are more classes than hues, and what is rarely large is pale.
pub(crate) fn class_of(class: Class) -> &'static str {
    match class {
        Class::User => "c-grey part",
        Class::SyscallEntry => "c-sky part",
        Class::CopyFromUser => "c-vermilion part",
        Class::PagePinning => "c-purple part",
        Class::LateCopy => "c-orange part",
        Class::Socket => "c-blue part",
        Class::Pipe => "c-vermilion tile",
        Class::SoftirqReceive => "c-green part",
        Class::CopyToUser => "c-ink part",
        Class::Memory => "c-blue tile",
        Class::PageFault => "c-purple tile",
        Class::PageCache => "c-sky tile",
        Class::IoUring => "c-orange tile",
        Class::Scheduler => "c-green tile",
        Class::Unattributed => "c-grey tile",
        Class::Unsampled => "c-ink tile",
    }
}
