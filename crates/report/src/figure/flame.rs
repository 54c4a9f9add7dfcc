//! A flame graph, hanging: the stacks of an arm as boxes under their callers,
//! as wide as their share of its samples (Gregg, "The Flame Graph", CACM 59(6),
//! 2016). Of a pair that was explained both arms are drawn, one below the
//! other at the same scale, so that what one has and the other has not is
//! seen. Boxes have the colour of the class of work that most of their samples
//! are.

use iolens_model::profile::ProfileTrial;
use iolens_stats::attribution::{Against, Attribution, Class};
use std::collections::{BTreeMap, BTreeSet};

use super::bars::{class_of, stem};
use super::*;

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
    class.map_or_else(|| "rule mixed".to_owned(), |class| format!("{} flame", class_of(class)))
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

    /// The class that it is drawn as; none where no class has it to itself.
    fn drawn(&self) -> Option<Class> {
        let (class, samples) = self.most();
        (samples as f64 >= MOSTLY * self.samples as f64).then_some(class)
    }

    /// Those that are drawn among what it calls.
    fn wide(&self, least: u64) -> impl Iterator<Item = &Node> {
        self.callees.values().filter(move |callee| callee.samples >= least)
    }

    /// Adds the classes that what it calls is drawn as.
    fn classes(&self, least: u64, found: &mut BTreeSet<Class>) {
        for callee in self.wide(least) {
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
        self.wide(least).map(|node| 1 + node.depth(least)).max().unwrap_or(0)
    }
}

/// The stacks of an arm at both ends; the first row is the end.
fn tree<'a>(trials: impl Iterator<Item = &'a ProfileTrial>, arm: &str) -> Node {
    let mut root = Node::default();
    let good = trials.filter(|trial| trial.status == Status::Ok);
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
    let Attribution { cell, arms, .. } = &explanation.attribution;
    let of_cell = || run.profiles.iter().filter(|trial| trial.cell == *cell);
    let differs = |pair: &&Against| pair.cpu_ns_per_message.value.abs();
    let pair = explanation.against.iter().max_by(|a, b| differs(a).total_cmp(&differs(b)));
    let labels = match pair {
        Some(pair) => vec![&pair.other, &pair.arm],
        None => arms.iter().map(|arm| &arm.arm).take(1).collect(),
    };
    let attributed = labels.iter().filter_map(|label| arms.iter().find(|arm| arm.arm == **label));
    let trees = attributed.map(|arm| (arm.shown(), tree(of_cell(), &arm.arm)));
    let trees: Vec<(String, Node)> = trees.filter(|(_, tree)| tree.samples > 0).collect();
    let title = format!("Stacks by share of samples (%): {}", words::subject(&run.header, cell));
    let draw = |medium| draw(run, cell, &trees, medium, &title);
    let stem = stem(&run.header, cell, "stacks");
    let table = table(&title, &trees);
    (!trees.is_empty()).then(|| Figure::new(paper, Group::Time, stem, draw, table))
}

fn draw(run: &Run, cell: &Cell, trees: &[(String, Node)], medium: Medium, title: &str) -> Drawing {
    let how = "callers above callees; width: share of the arm's samples at both ends; colours: \
               class of work of four fifths of the samples at least; narrow boxes are left out; of \
               the arms that differ most";
    let mut sheet = Sheet::new(medium, medium.width(), title, how);
    // What the colours say, as they are here.
    let mut found = BTreeSet::new();
    trees.iter().for_each(|(_, tree)| tree.classes(tree.least(), &mut found));
    let tiles = found.into_iter().map(|class| (look(Some(class)), class.words()));
    sheet.tiles(tiles.chain([(look(None), "several classes")]));
    for (arm, tree) in trees {
        sheet.y += 18.0;
        sheet.svg.text(0.0, sheet.y, "tp", arm);
        sheet.y += 6.0;
        let (per_sample, least) = (sheet.width / tree.samples as f64, tree.least());
        let scale = Scale { per_sample, least, total: tree.samples };
        boxes(&mut sheet.svg, tree, (0.0, sheet.y), &scale);
        sheet.y += ROW * tree.depth(least) as f64 + 4.0;
    }
    sheet.finish(&words::footer(&run.header, cell))
}

struct Scale {
    per_sample: f64,
    least: u64,
    total: u64,
}

fn boxes(svg: &mut Svg, node: &Node, (mut x, top): Spot, scale: &Scale) {
    for (name, callee) in &node.callees {
        let width = callee.samples as f64 * scale.per_sample;
        if callee.samples >= scale.least {
            let share = callee.samples as f64 / scale.total as f64;
            let hover = format!("{name}: {}", number::percent(share));
            let size = ((width - 0.6).max(0.4), ROW - 1.0);
            svg.tile((x, top), size, &look(callee.drawn()), &hover);
            if svg::width(name, 11.0) + 4.0 < width {
                svg.text(x + 3.0, top + 11.5, "to", name);
            }
            boxes(svg, callee, (x, top + ROW), scale);
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
        let row = |(stack, node, samples): (String, &Node, u64)| {
            let share = 100.0 * samples as f64 / tree.samples as f64;
            let class = node.most().0.words();
            vec![arm.into(), stack.into(), class.into(), format!("{share:.1}").into()]
        };
        chart::push_group(&mut table, leaves.into_iter().take(TABLE_ROWS).map(row));
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
