//! What is shown of two runs: what changed, what did not, what is open, and how sure.

use iolens_document::{
    Align, Answer, Block, Column, Factor, Grid, Label, Screen, Text, change as percents, change_by,
    change_interval,
};
use iolens_model::arm::Role;
use iolens_model::run::RunHeader;
use iolens_stats::analysis::{Quantity, Verdict};
use iolens_stats::compare::{ArmChange, BaselineMoved, CellChange, Change, Input};

use super::tables::{self, Compared, by_quantity, quantities};
use crate::groups::{distinct, grouped};
use crate::number::{InWords, count, list, percent, usable};
use crate::screen::{table::mark, told as told_of};

/// Inputs that are named.
const INPUTS: usize = 3;

/// A change, the ends of its interval, a mark.
const PARTS: [Align; 3] = [Align::Right, Align::Left, Align::Left];

pub(super) fn screen(compared: &Compared<'_>) -> Screen {
    let comparison = compared.comparison;
    let mut screen = Screen {
        header: header(compared),
        effort: effort(compared),
        alarm: comparison.warnings.first().map(|why| Text::plain(why.clone())),
        ..Screen::default()
    };
    let quantities = quantities(comparison).into_iter();
    screen.blocks = quantities.map(|quantity| Block::Grid(grid(compared, quantity))).collect();
    let has = |verdict| changes(compared).any(|(.., change)| change.verdict == verdict);
    if !comparison.indicative && has(Verdict::Equivalent) {
        let delta = percent(comparison.delta);
        screen.legend.push(format!("= unchanged within {delta} (90% interval)").into());
    }
    if !comparison.indicative && has(Verdict::Inconclusive) {
        screen.legend.push("? undecided".into());
    }
    screen.answers = answers(compared);
    screen
}

/// `A: before (4f1c09ab)`.
pub(crate) fn named(letter: &str, header: &RunHeader) -> Text {
    let host = header.origin.as_ref().or_empty(|origin| format!(" on {}", origin.host));
    Text::plain(match &header.name {
        Some(name) => format!("{letter}: {} ({}){host}", crate::text::one_line(name), header.id),
        None => format!("{letter}: {}{host}", header.id),
    })
}

fn header(compared: &Compared<'_>) -> Vec<Text> {
    vec![
        "compare".into(),
        named("A", compared.a),
        named("B", compared.b),
        compared.comparison.study.to_string().into(),
    ]
}

fn effort(compared: &Compared<'_>) -> Vec<Text> {
    let comparison = compared.comparison;
    let span = |of: fn(&Change) -> u32| {
        let all = changes(compared).map(|(.., change)| of(change));
        all.reduce(u32::max).unwrap_or(0)
    };
    let mut parts = vec![format!("{} + {} trials", span(|c| c.trials_a), span(|c| c.trials_b))];
    parts.extend(comparison.indicative.then(|| "quick look: no verdicts".to_owned()));
    parts.push(match comparison.interleaved {
        true => "trials of both took turns".to_owned(),
        false => "runs one after the other".to_owned(),
    });
    Text::parts(parts)
}

/// Changes of methods against the baseline.
fn changes<'a>(
    compared: &Compared<'a>,
) -> impl Iterator<Item = (&'a CellChange, &'a ArmChange, &'a Change)> {
    let cells = compared.comparison.cells.iter();
    let arms = cells.flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    let compared = arms.filter(|(_, arm)| arm.arm.role == Role::Compared);
    compared.filter_map(|(cell, arm)| Some((cell, arm, arm.change.as_ref()?)))
}

/// What became of each method in each setting.
fn grid(compared: &Compared<'_>, quantity: Quantity) -> Grid {
    let comparison = compared.comparison;
    let own = |cell: &'_ CellChange| -> Vec<ArmChange> {
        let arms = by_quantity(cell, quantity);
        arms.filter(|arm| arm.arm.role == Role::Compared).cloned().collect()
    };
    let all = comparison.cells.iter().flat_map(own);
    let labels = distinct(all.map(|arm| arm.arm.label));
    let row = |cell: &CellChange| {
        let arms = own(cell);
        let one = |label: &String| {
            let arm = arms.iter().find(|arm| arm.arm.label == *label);
            let change = arm.and_then(|arm| arm.change.as_ref());
            let shown = change.map(|change| shown(change, comparison.indicative));
            (Column::of(label, &PARTS), shown.unwrap_or_else(|| vec![String::new()]))
        };
        let subject = (Column::left(""), vec![compared.subject(&cell.cell)]);
        std::iter::once(subject).chain(labels.iter().map(one)).collect()
    };
    let what = match quantity {
        Quantity::Time => "speed".to_owned(),
        quantity => format!("economy in {}", quantity.word()),
    };
    let title = format!(
        "change in {what} vs {}, B against A (+ is better in B) [95%, all {} changes together]",
        comparison.baseline, comparison.contrasts
    );
    Grid::filled(title, comparison.cells.iter().map(row))
}

/// `−17%  [−19, −15]`, and a mark.
fn shown(change: &Change, indicative: bool) -> Vec<String> {
    let Some(ratio) = change.ratio.filter(|_| change.verdict.is_ranked()) else {
        return vec![change.verdict.word().to_lowercase()];
    };
    let factor = Factor { typical: ratio, interval: usable(change.simultaneous) };
    let ends = factor.interval.or_empty(change_interval);
    let is_it = |verdict| !indicative && change.verdict == verdict;
    let mark = mark(factor, is_it(Verdict::Equivalent), is_it(Verdict::Inconclusive));
    vec![percents(ratio), ends, mark.to_owned()]
}

fn answers(compared: &Compared<'_>) -> Vec<Answer> {
    let comparison = compared.comparison;
    let mut out = vec![Answer { label: Label::Differs, said: differs(&comparison.inputs) }];
    if !comparison.indicative {
        out.push(changed(compared));
        out.extend(told(compared, Label::Same, |all| {
            all.iter().all(|change| change.verdict == Verdict::Equivalent)
        }));
        out.extend(told(compared, Label::Undecided, |all| {
            all.iter().any(|change| change.verdict == Verdict::Inconclusive)
                && !all.iter().any(|change| is_beyond(change.verdict))
        }));
    }
    if let (true, slower @ 1..) = (comparison.indicative, comparison.slower()) {
        let all = changes(compared).count();
        let said = format!("{slower} of {all} changes seem slower (exit code 1); full runs decide");
        out.push(Answer::one(Label::Changed, said));
    }
    out.extend(comparison.cells.iter().flat_map(|cell| moved(compared, cell)));
    let missing = tables::missing(compared);
    out.extend(missing.into_iter().map(|line| Answer::one(Label::Caution, line)));
    out.push(trust(compared));
    out.push(next(compared.a, compared.b, "every number"));
    out
}

/// What to type next: the same runs with more of it.
pub(crate) fn next(a: &RunHeader, b: &RunHeader, more: &str) -> Answer {
    let command = format!("iolens compare {} {} --verbose", a.id, b.id);
    let said = vec![
        Text::code(command).and(format!(" ({more})")),
        Text::code("--markdown").and(" (for a pull request)"),
    ];
    Answer { label: Label::Next, said }
}

fn is_beyond(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Slower | Verdict::Faster)
}

/// Inputs that differ: `kernel 6.12.43 → 6.13.1`.
pub(crate) fn differs(inputs: &[Input]) -> Vec<Text> {
    let value = |value: &Option<String>| {
        value.as_deref().map_or("not recorded".to_owned(), |value| tables::cut(value, VALUE_MAX))
    };
    let one = |input: &Input| {
        Text::plain(format!("{} {} → {}", input.name, value(&input.a), value(&input.b)))
    };
    match inputs {
        [] => vec!["nothing that the runs have recorded".into()],
        inputs => told_of(inputs.iter().map(one).collect(), INPUTS),
    }
}

/// What a line has room for of a value.
const VALUE_MAX: usize = 24;

/// The changes of each method by each quantity.
fn by_method<'a>(compared: &Compared<'a>) -> Vec<(&'a ArmChange, Vec<&'a Change>)> {
    of_methods(changes(compared).map(|(_, arm, change)| (arm, change)))
}

/// Any of their changes.
fn of_methods<'a>(
    all: impl Iterator<Item = (&'a ArmChange, &'a Change)>,
) -> Vec<(&'a ArmChange, Vec<&'a Change>)> {
    let key = |arm: &ArmChange| (arm.arm.label.clone(), arm.quantity);
    let all = all.map(|(arm, change)| (key(arm), (arm, change)));
    let split = |(_, all): (_, Vec<(&'a ArmChange, &'a Change)>)| {
        (all[0].0, all.into_iter().map(|(_, change)| change).collect())
    };
    grouped(all).into_iter().map(split).collect()
}

/// What a method is called, with the quantity where there are several.
fn name(compared: &Compared<'_>, arm: &ArmChange) -> String {
    match quantities(compared.comparison).len() {
        0 | 1 => arm.arm.label.clone(),
        _ => format!("{} ({})", arm.arm.label, arm.quantity.word()),
    }
}

/// What is not as it was, or that nothing is shown to be.
fn changed(compared: &Compared<'_>) -> Answer {
    let mut said = beyond(compared);
    said.extend(alone(compared));
    if said.is_empty() {
        said.push(nothing_beyond(compared));
    }
    if compared.comparison.slower() > 0 {
        said.push("exit code 1".to_owned());
    }
    Answer::of(Label::Changed, said)
}

/// Methods beyond the threshold, slower ones first.
fn beyond(compared: &Compared<'_>) -> Vec<String> {
    told_beyond(&by_method(compared), "")
}

/// The same of methods by themselves, where that was judged.
fn alone(compared: &Compared<'_>) -> Vec<String> {
    let all = compared.comparison.cells.iter().flat_map(|cell| &cell.arms);
    let judged = all.filter_map(|arm| Some((arm, arm.own.as_ref()?.judged.as_ref()?)));
    told_beyond(&of_methods(judged), " alone")
}

/// Those of these methods that are beyond the threshold, each with a word behind its name.
fn told_beyond(all: &[(&ArmChange, Vec<&Change>)], word: &str) -> Vec<String> {
    let told = |verdict| {
        let one = move |(arm, own): &(&ArmChange, Vec<&Change>)| {
            farthest(&format!("{}{word}", arm.arm.label), arm.quantity, own, verdict)
        };
        all.iter().filter_map(one)
    };
    told(Verdict::Slower).chain(told(Verdict::Faster)).collect()
}

/// By how much something is slower or faster at most, or takes more or less CPU time, and in how
/// many settings.
fn farthest(who: &str, of: Quantity, all: &[&Change], verdict: Verdict) -> Option<String> {
    let own = all.iter().filter(|change| change.verdict == verdict);
    let own: Vec<f64> = own.filter_map(|change| change.ratio).collect();
    let most = own.iter().max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))?;
    let at = match (own.len(), all.len()) {
        (_, 1) => String::new(),
        (n, of) if n == of => format!(", in all {of} settings"),
        (n, of) => format!(", in {n} of {of} settings"),
    };
    let up_to = if own.len() > 1 { "up to " } else { "" };
    let told = match (of, verdict == Verdict::Slower) {
        (Quantity::Time, true) => format!("is {up_to}{} slower", change_by(*most)),
        (Quantity::Time, false) => format!("is {up_to}{} faster", change_by(*most)),
        (_, true) => format!("takes {up_to}{} more {}", change_by(1.0 / most), of.word()),
        (_, false) => format!("takes {up_to}{} less {}", change_by(1.0 / most), of.word()),
    };
    Some(format!("{who} {told} in B{at}"))
}

fn nothing_beyond(compared: &Compared<'_>) -> String {
    let comparison = compared.comparison;
    let delta = percent(comparison.delta);
    // Any other interval reaches beyond the threshold, that of a small one too, or says nothing.
    let is_within = comparison.judged().all(|change| change.verdict == Verdict::Equivalent);
    match (comparison.is_usable(), is_within) {
        (false, _) => "nothing can be compared".to_owned(),
        (true, false) => format!("nothing is shown to differ by more than {delta}"),
        (true, true) => format!("nothing by more than {delta}"),
    }
}

/// Methods of which something holds, in one line.
fn told(
    compared: &Compared<'_>,
    label: Label,
    holds: impl Fn(&[&Change]) -> bool,
) -> Option<Answer> {
    let all = by_method(compared);
    let own = all.iter().filter(|(_, changes)| holds(changes));
    let names: Vec<String> = own.map(|(arm, _)| name(compared, arm)).collect();
    (!names.is_empty()).then(|| Answer::one(label, list(&names)))
}

/// Where it is likelier the baseline that changed.
fn moved(compared: &Compared<'_>, cell: &CellChange) -> Vec<Answer> {
    let baseline = &compared.comparison.baseline;
    let one = |moved: &BaselineMoved| {
        let (word, is_worse) = (moved.quantity.word(), moved.ratio < 1.0);
        let (own, by) = match (moved.quantity, is_worse) {
            (Quantity::Time, true) => ("have become slower".to_owned(), moved.ratio),
            (Quantity::Time, false) => ("have become faster".to_owned(), moved.ratio),
            (_, true) => (format!("take more {word}"), 1.0 / moved.ratio),
            (_, false) => (format!("take less {word}"), 1.0 / moved.ratio),
        };
        let how = match compared.comparison.interleaved {
            true => "what each takes by itself can tell, as both took turns",
            false => "--absolute judges each by itself",
        };
        let said = format!(
            "{}: every method moved the other way, so the baseline {baseline} itself is likelier \
             to {own} ({}): {how}",
            compared.subject(&cell.cell),
            percents(by)
        );
        Answer::one(Label::Caution, said)
    };
    cell.baseline_moved.iter().map(one).collect()
}

fn trust(compared: &Compared<'_>) -> Answer {
    let comparison = compared.comparison;
    let check = &comparison.self_check;
    let mut said = vec![match (check.floor_median, check.floor_widest) {
        (Some(median), Some(widest)) => {
            format!("noise floor ±{}, worst ±{}", percent(median), percent(widest))
        }
        _ => "noise floor unknown: no hidden copy of the baseline in common".to_owned(),
    }];
    if check.checks > 0 {
        let all = count(check.counted, "self-check");
        said.push(match check.excluding_one {
            _ if check.counted == 0 => "too few trials for a self-check".to_owned(),
            0 => format!("{all} clean"),
            off => format!("{off} of {all} off (chance allows {})", check.bound),
        });
    }
    said.push(match comparison.interleaved {
        true => "one boot; relinking alone can change a build's speed by some percent".to_owned(),
        false => "run-to-run variance not included: repeat both if it is close".to_owned(),
    });
    Answer::of(Label::Trust, said)
}
