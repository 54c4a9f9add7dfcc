//! A flame graph, hanging: the stacks of an arm as boxes under their callers,
//! as wide as their share of its samples (Gregg, "The Flame Graph", CACM 59(6),
//! 2016). Of a pair that was explained both arms are drawn, one below the
//! other at the same scale, so that what one has and the other has not is
//! seen. Boxes have the colour of the class of work that most of their samples
//! are.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::outcome::Status;
use iolens_model::profile::ProfileTrial;
use iolens_model::run::Run;
use iolens_stats::attribution::{Class, Explanation};

use super::attribution::{stem, tile_class};
use super::paper::Medium;
use super::sheet::{Drawing, Sheet};
use super::svg;
use super::{Figure, Group, Paper};
use crate::table::{Column, Entry, Table};
use crate::{number, words};

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
    class.map_or_else(|| "rule mixed".to_owned(), |class| format!("{} flame", tile_class(class)))
}

/// A function below its caller.
#[derive(Default)]
struct Node {
    samples: u64,
    by_class: BTreeMap<Class, u64>,
    callees: BTreeMap<String, Node>,
}

/// A function is coloured as what most of its samples did where they are at least so many of
/// them: a caller of everything would have the colour of whatever was the most.
const MOSTLY: f64 = 0.8;

impl Node {
    fn most(&self) -> (Class, u64) {
        let most = self.by_class.iter().max_by_key(|(_, samples)| **samples);
        most.map_or((Class::Unattributed, 0), |(class, samples)| (*class, *samples))
    }

    fn class(&self) -> Class {
        self.most().0
    }

    /// The class that it is drawn as; none where no class has it to itself.
    fn drawn(&self) -> Option<Class> {
        let (class, samples) = self.most();
        (samples as f64 >= MOSTLY * self.samples as f64).then_some(class)
    }

    /// Adds the classes that what it calls is drawn as.
    fn classes(&self, least: u64, found: &mut BTreeSet<Class>) {
        for callee in self.callees.values().filter(|callee| callee.samples >= least) {
            found.extend(callee.drawn());
            callee.classes(least, found);
        }
    }

    /// The fewest samples of a function that is drawn, where this is the root.
    fn least(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounds down")]
        let least = (SHARE_MIN * self.samples as f64) as u64;
        least.max(1)
    }

    fn depth(&self, least: u64) -> usize {
        let wide = self.callees.values().filter(|node| node.samples >= least);
        wide.map(|node| 1 + node.depth(least)).max().unwrap_or(0)
    }
}

/// The stacks of an arm at both ends; the first row is the end.
fn tree(trials: &[ProfileTrial], arm: &str) -> Node {
    let mut root = Node::default();
    let good = trials.iter().filter(|trial| trial.status == Status::Ok);
    for end in good.flat_map(|trial| &trial.ends).filter(|end| end.arm == arm) {
        for stack in &end.samples.stacks {
            let class = Class::of(stack);
            let side = end.side();
            let names = std::iter::once(side).chain(stack.frames().map(|frame| frame.symbol));
            let mut node = &mut root;
            node.samples += stack.samples;
            for name in names.take(DEPTH_MAX) {
                node = node.callees.entry(name.to_owned()).or_default();
                node.samples += stack.samples;
                *node.by_class.entry(class).or_default() += stack.samples;
            }
        }
    }
    root
}

/// The figure of an explained cell: the arm that differs most from the one it was set against,
/// and that one.
pub(super) fn figure(paper: Paper, run: &Run, explanation: &Explanation) -> Option<Figure> {
    let cell = &explanation.attribution.cell;
    let of_cell: Vec<ProfileTrial> =
        run.profiles.iter().filter(|trial| trial.cell == *cell).cloned().collect();
    let pair = explanation.against.iter().max_by(|a, b| {
        let size = |x: &iolens_stats::attribution::Against| x.cpu_ns_per_message.value.abs();
        size(a).total_cmp(&size(b))
    });
    let arms: Vec<String> = match pair {
        Some(pair) => vec![pair.other.clone(), pair.arm.clone()],
        None => explanation.attribution.arms.iter().map(|arm| arm.arm.clone()).take(1).collect(),
    };
    let attributed = &explanation.attribution.arms;
    let shown = |label: &str| attributed.iter().find(|a| a.arm == label).map(|arm| arm.shown());
    let trees: Vec<(String, Node)> = arms
        .iter()
        .filter_map(|arm| Some((shown(arm)?, tree(&of_cell, arm))))
        .filter(|(_, tree)| tree.samples > 0)
        .collect();
    if trees.is_empty() {
        return None;
    }
    let subject = words::subject(&run.header, cell);
    let title = format!("Stacks by share of samples (%): {subject}");
    let draw = |medium| draw(run, explanation, &trees, medium, &title);
    let stem = stem(&run.header, cell, "stacks");
    Some(Figure::new(paper, Group::Time, stem, draw, table(&title, &trees)))
}

fn draw(
    run: &Run,
    explanation: &Explanation,
    trees: &[(String, Node)],
    medium: Medium,
    title: &str,
) -> Drawing {
    let how = "callers above callees; width: share of the arm's samples at both ends; colours: \
               class of work of four fifths of the samples at least; narrow boxes are left out; of \
               the arms that differ most";
    let mut sheet = Sheet::new(medium, medium.width(), title, how);
    legend(&mut sheet, trees);
    for (arm, tree) in trees {
        sheet.y += 18.0;
        sheet.svg.text(0.0, sheet.y, "tp", arm);
        sheet.y += 6.0;
        let top = sheet.y;
        let per_sample = sheet.width / tree.samples as f64;
        let scale = Scale { per_sample, least: tree.least(), total: tree.samples };
        boxes(&mut sheet, tree, (0.0, top), &scale);
        sheet.y = top + ROW * tree.depth(scale.least) as f64 + 4.0;
    }
    sheet.finish(&words::footer(&run.header, &explanation.attribution.cell))
}

/// What the colours say, as they are here.
fn legend(sheet: &mut Sheet, trees: &[(String, Node)]) {
    let mut found = BTreeSet::new();
    for (_, tree) in trees {
        tree.classes(tree.least(), &mut found);
    }
    let tile = |class: Class| (look(Some(class)), class.words());
    let mut tiles: Vec<(String, &str)> = found.into_iter().map(tile).collect();
    tiles.push((look(None), "several classes"));
    sheet.tiles(&tiles);
}

struct Scale {
    per_sample: f64,
    least: u64,
    total: u64,
}

fn boxes(sheet: &mut Sheet, node: &Node, (left, top): (f64, f64), scale: &Scale) {
    let mut x = left;
    for (name, callee) in &node.callees {
        let width = callee.samples as f64 * scale.per_sample;
        if callee.samples >= scale.least {
            let share = callee.samples as f64 / scale.total as f64;
            let hover = format!("{name}: {}", number::percent(share));
            let size = ((width - 0.6).max(0.4), ROW - 1.0);
            sheet.svg.tile((x, top), size, &look(callee.drawn()), &hover);
            if svg::width(name, 11.0) + 4.0 < width {
                sheet.svg.text(x + 3.0, top + 11.5, "to", name);
            }
            boxes(sheet, callee, (x, top + ROW), scale);
        }
        x += width;
    }
}

fn table(title: &str, trees: &[(String, Node)]) -> Table {
    let columns = vec![
        Column::left("arm", ""),
        Column::left("end, and the innermost functions", "callers first"),
        Column::left("class of work", ""),
        Column::decimal("share", "% of samples"),
    ];
    let mut table = Table::new(title, columns);
    for (arm, tree) in trees {
        let mut leaves: Vec<(String, &Node, u64)> = Vec::new();
        own(tree, &mut Vec::new(), &mut leaves);
        leaves.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        for (i, (stack, node, samples)) in leaves.into_iter().take(TABLE_ROWS).enumerate() {
            let share = 100.0 * samples as f64 / tree.samples as f64;
            let row: Vec<Entry> = vec![
                arm.clone().into(),
                stack.into(),
                node.class().words().into(),
                format!("{share:.1}").into(),
            ];
            if i == 0 { table.push_group(row) } else { table.push(row) }
        }
    }
    table
}

/// Every stack with the samples that ended in it.
fn own<'a>(node: &'a Node, path: &mut Vec<&'a str>, found: &mut Vec<(String, &'a Node, u64)>) {
    let below: u64 = node.callees.values().map(|callee| callee.samples).sum();
    if node.samples > below && !path.is_empty() {
        let inner = path.len().saturating_sub(TABLE_FRAMES).max(1);
        let between = if inner > 1 { "… › " } else { "" };
        let functions = path.get(inner..).unwrap_or_default().join(" › ");
        found.push((format!("{}: {between}{functions}", path[0]), node, node.samples - below));
    }
    for (name, callee) in &node.callees {
        path.push(name);
        own(callee, path, found);
        path.pop();
    }
}
