//! A flame graph, hanging: the stacks of an arm as boxes under their callers,
//! as wide as their share of its samples (Gregg, "The Flame Graph", CACM 59(6),
//! 2016). Of a pair that was explained both arms are drawn, one below the
//! other at the same scale, so that what one has and the other has not is
//! seen. Boxes have the colour of the class of work that most of their samples
//! are.

use std::collections::{BTreeMap, BTreeSet};

use iolens_document::table::{Table, decimal, left};
use iolens_model::outcome::Status;
use iolens_model::profile::ProfileTrial;
use iolens_stats::attribution::Class;

use super::bars::class_of;
use super::sheet::{Drawing, Medium, Said, Sheet};
use super::svg;
use crate::number;

/// Boxes narrower than this share of an arm's samples are left out.
const SHARE_MIN: f64 = 0.002;
/// Functions below each other that are drawn.
const DEPTH_MAX: usize = 40;
const ROW: f64 = 16.0;
/// Rows of an arm in the table, and functions of a row: the innermost ones say
/// what was done, those around them are in the figure and in `--folded`.
const TABLE_ROWS: usize = 15;
const TABLE_FRAMES: usize = 4;

/// The look of a function of a class, or of one that no class has to itself.
fn look(class: Option<Class>) -> String {
    class.map_or_else(|| "rule mixed".to_owned(), |class| format!("f {} flame", class_of(class)))
}

/// What ran in a function below its callers.
#[derive(Default)]
pub(super) struct Frame {
    by_class: BTreeMap<Class, u64>,
    /// Samples of the function itself.
    own: u64,
}

/// The functions of an arm by their callers, outermost first: in the order in which they stand.
pub(super) type Frames<'a> = BTreeMap<Vec<&'a str>, Frame>;

/// A function is coloured as what most of its samples did where they are at least so many of
/// them: a caller of everything would have the colour of whatever was the most.
const MOSTLY: f64 = 0.8;

impl Frame {
    fn samples(&self) -> f64 {
        self.by_class.values().sum::<u64>() as f64
    }

    fn most(&self) -> (Class, u64) {
        let most = self.by_class.iter().max_by_key(|(_, samples)| **samples);
        most.map_or((Class::Unattributed, 0), |(class, samples)| (*class, *samples))
    }

    /// The class that it is drawn as; none where no class has it to itself.
    fn drawn(&self) -> Option<Class> {
        let (class, samples) = self.most();
        (samples as f64 >= MOSTLY * self.samples()).then_some(class)
    }
}

/// The stacks of an arm at both ends; outermost is the end.
pub(super) fn frames<'a>(trials: impl Iterator<Item = &'a ProfileTrial>, arm: &str) -> Frames<'a> {
    let mut frames = Frames::new();
    let good = trials.filter(|trial| trial.status == Status::Ok);
    for end in good.flat_map(|trial| &trial.ends).filter(|end| end.arm == arm) {
        for stack in &end.samples.stacks {
            let mut path = vec![end.side()];
            path.extend(stack.frames().map(|frame| frame.symbol));
            path.truncate(DEPTH_MAX);
            for depth in 1..=path.len() {
                let frame = frames.entry(path[..depth].to_vec()).or_default();
                *frame.by_class.entry(Class::of(stack)).or_default() += stack.samples;
                frame.own += if depth == path.len() { stack.samples } else { 0 };
            }
        }
    }
    frames
}

fn total(frames: &Frames<'_>) -> f64 {
    frames.values().map(|frame| frame.own).sum::<u64>() as f64
}

/// The stacks of an arm as boxes.
pub(crate) struct Stacks {
    arm: String,
    boxes: Vec<StackBox>,
}

/// A function below its callers.
struct StackBox {
    name: String,
    /// Where it begins and how wide it is, in shares of the arm's samples.
    start: f64,
    share: f64,
    depth: usize,
    class: Option<Class>,
}

/// The stacks of arms.
pub(super) fn stacks(arms: &[(String, Frames<'_>)]) -> Vec<Stacks> {
    arms.iter().map(|(arm, own)| Stacks { arm: arm.clone(), boxes: boxes(own) }).collect()
}

/// Those that are wide enough to be drawn.
fn boxes(frames: &Frames<'_>) -> Vec<StackBox> {
    let total = total(frames);
    // Where the next function of each depth begins.
    let mut next = [0.0; DEPTH_MAX + 2];
    let mut boxes = Vec::new();
    for (path, frame) in frames {
        let (depth, samples) = (path.len(), frame.samples());
        let (start, share) = (next[depth], samples / total);
        (next[depth], next[depth + 1]) = (start + share, start);
        if samples >= (SHARE_MIN * total).floor().max(1.0) {
            let (name, class) = (path[depth - 1].to_owned(), frame.drawn());
            boxes.push(StackBox { name, start, share, depth, class });
        }
    }
    boxes
}

pub(super) fn draw(said: &Said, stacks: &[Stacks], medium: Medium) -> Drawing {
    let mut sheet = Sheet::new(said, medium, medium.width());
    // What the colours say, as they are here.
    let boxes = stacks.iter().flat_map(|stacks| &stacks.boxes);
    let found: BTreeSet<Class> = boxes.filter_map(|of| of.class).collect();
    let tiles = found.into_iter().map(|class| (look(Some(class)), class.word()));
    sheet.tiles(tiles.chain([(look(None), "several classes")]));
    for Stacks { arm, boxes } in stacks {
        sheet.y += 18.0;
        sheet.svg.text(0.0, sheet.y, "tp", arm);
        sheet.y += 6.0;
        for StackBox { name, start, share, depth, class } in boxes {
            let (x, width) = (start * sheet.width, share * sheet.width);
            let y = sheet.y + ROW * (*depth as f64 - 1.0);
            let hover = format!("{name}: {}", number::percent(*share));
            let size = ((width - 0.6).max(0.4), ROW - 1.0);
            sheet.svg.tile((x, y), size, &look(*class), &hover);
            if svg::width(name, 11.0) + 4.0 < width {
                sheet.svg.text(x + 3.0, y + 11.5, "to", name);
            }
        }
        let deepest = boxes.iter().map(|of| of.depth).max().unwrap_or(0);
        sheet.y += ROW * deepest as f64 + 4.0;
    }
    sheet.finish()
}

/// Every stack with the samples that ended in it.
pub(super) fn table(title: &str, stacks: &[(String, Frames<'_>)]) -> Table {
    let mut table = Table::of(title, []);
    for (arm, frames) in stacks {
        let ended = frames.iter().filter(|(_, frame)| frame.own > 0);
        let mut ended: Vec<_> = ended.map(|(path, frame)| (in_words(path), frame)).collect();
        ended.sort_by(|a, b| b.1.own.cmp(&a.1.own).then_with(|| a.0.cmp(&b.0)));
        let rows = ended.into_iter().take(TABLE_ROWS).map(|(stack, frame)| {
            let share = format!("{:.1}", 100.0 * frame.own as f64 / total(frames));
            vec![
                left("arm", "", arm),
                left("end, and the innermost functions", "callers first", stack),
                left("class of work", "", frame.most().0.word()),
                decimal("share", "% of samples", share),
            ]
        });
        table.fill_group(rows);
    }
    table
}

fn in_words(path: &[&str]) -> String {
    let inner = path.len().saturating_sub(TABLE_FRAMES).max(1);
    let between = if inner > 1 { "… › " } else { "" };
    format!("{}: {between}{}", path[0], path[inner..].join(" › "))
}
