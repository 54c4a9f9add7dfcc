//! Two runs of `ab` against each other: what a terminal, a pull request and a program read of an
//! [`AbComparison`].

use iolens_document::plain::folded;
use iolens_document::table::{Filled, Table, left, right};
use iolens_document::{
    Align, Answer, Block, Column, Grid, Joined, Label, Node, Screen, Section, Style, Text, terminal,
};
use iolens_model::ab::AbMode;
use iolens_model::run::RunHeader;
use iolens_stats::ab::{
    AbChange, AbChangeReason, AbComparison, AbJudgedChange, AbMissingPart, AbMissingWhy, AbReason,
    AbSettingChanges, AbStanding, AbUnit, AbUnusable, AbVerdict, AbWarning,
};
use serde_json::{Value, json};

use super::json::pair;
use super::words::{
    beyond, change_parts, layout, mode, mode_of, quantity, setting_words, signed, with_interval,
};
use crate::compare::screen::{self as of_runs, next};
use crate::compare::{markdown_answers, markdown_head, tables};
use crate::number::{InWords, count, percent};

#[cfg(test)]
mod tests;

/// Names the form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "iolens-ab-compare/1";

/// Two runs with what came of comparing them.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The first run.
    pub a: &'a RunHeader,
    /// The second, which is held against the first.
    pub b: &'a RunHeader,
    /// The comparison.
    pub comparison: &'a AbComparison,
}

impl Compared<'_> {
    fn header(&self, is_b: bool) -> &RunHeader {
        if is_b { self.b } else { self.a }
    }

    /// What an arm of a run is called; 0 is the baseline.
    fn name(&self, is_b: bool, arm: usize) -> &str {
        self.header(is_b).plan.primitives.get(arm).map_or("?", String::as_str)
    }

    /// Loops, or whole commands.
    fn mode(&self) -> AbMode {
        mode_of(self.a)
    }

    /// What is counted of them.
    fn unit(&self) -> AbUnit {
        AbUnit::of(self.mode())
    }

    fn baseline(&self) -> &str {
        self.name(false, 0)
    }
}

/// One screen: how each arm's change against the baseline differs between the runs. `is_verbose`
/// adds every input that differs.
pub fn text(compared: &Compared<'_>, is_verbose: bool, style: &Style) -> String {
    let mut out = terminal::draw(&screen(compared), style);
    let inputs = tables::inputs(&compared.comparison.inputs).filter(|_| is_verbose);
    if let Some(inputs) = inputs {
        let section = Section::new("inputs", "Inputs that differ", vec![Node::Table(inputs)]);
        out.push('\n');
        out.push_str(&terminal::sections(&[section], style));
    }
    out
}

/// A comment for a pull request, in the Markdown of GitHub.
pub fn markdown(compared: &Compared<'_>) -> String {
    let screen = screen(compared);
    let mut out = markdown_head(&screen);
    for setting in &compared.comparison.settings {
        out.push_str(&format!("{}\n", numbers(setting).markdown()));
    }
    out.push_str(&markdown_answers(&screen));
    let inputs = tables::inputs(&compared.comparison.inputs);
    let inputs = inputs.or_empty(|inputs| inputs.markdown());
    out.push_str(&folded("Inputs that differ", &inputs));
    out
}

/// JSON. Changes are fractions: 0.02 is 2 % more against the baseline in the second run.
pub fn json(compared: &Compared<'_>) -> String {
    let comparison = compared.comparison;
    let run = |header: &RunHeader| {
        json!({
            "id": header.id,
            "name": header.name,
            "build": header.build,
            "host": header.host_label(),
            "started_unix_ns": header.started_unix_ns,
        })
    };
    let settings = comparison.settings.iter().map(|setting| {
        json!({
            "values": setting.setting.values.iter().cloned().collect::<Value>(),
            "changes": setting.changes.iter().map(change).collect::<Value>(),
        })
    });
    let result = json!({
        "schema": SCHEMA,
        "a": run(compared.a),
        "b": run(compared.b),
        "baseline": compared.baseline(),
        "threshold": comparison.delta,
        "contrasts": comparison.claims,
        "usable": comparison.is_usable(),
        "inputs": comparison.inputs,
        "settings": settings.collect::<Value>(),
        "missing": comparison.missing,
        "warnings": comparison.warnings,
    });
    format!("{result:#}")
}

fn change(change: &AbChange) -> Value {
    let side = |nth: usize| {
        let side = &change.sides[nth];
        json!({
            "arm": change.arms[nth],
            "units": side.units,
            "change": side.change,
            "interval": side.pointwise.map(pair),
            "verdict": side.verdict.map(AbVerdict::word),
        })
    };
    let runs = json!({ "a": side(0), "b": side(1), "quantity": change.quantity.word() });
    with_judged(runs, &change.judged)
}

/// A change with what is concluded of it.
pub(super) fn with_judged(mut change: Value, judged: &AbJudgedChange) -> Value {
    change["change"] = json!(judged.change);
    change["interval"] = json!(judged.pointwise.map(pair));
    change["simultaneous"] = json!(judged.simultaneous.map(pair));
    change["verdict"] = json!(judged.verdict.word());
    change["reason"] = json!(judged.reason);
    change["layout_allowance"] = json!(judged.layout_allowance);
    change
}

fn screen(compared: &Compared<'_>) -> Screen {
    let comparison = compared.comparison;
    let units =
        |nth: usize| comparison.changes().map(|change| change.sides[nth].units).max().unwrap_or(0);
    let unit = format!("{}s", compared.unit().word());
    let mut screen = Screen {
        header: vec![
            "compare".into(),
            of_runs::named("A", compared.a),
            of_runs::named("B", compared.b),
            mode(compared.mode()).into(),
        ],
        effort: Text::parts([
            format!("{} + {} {unit}", units(0), units(1)),
            "runs one after the other".to_owned(),
        ]),
        alarm: comparison.warnings.first().map(|warning| warned(compared, *warning)),
        ..Screen::default()
    };
    screen.blocks =
        comparison.settings.iter().map(|one| Block::Grid(grid(compared, one))).collect();
    screen.answers = answers(compared);
    screen
}

/// `pr`, or `pr1 → pr2` where it is called so in the second run.
fn arm(change: &AbChange) -> String {
    let [a, b] = &change.arms;
    if a == b { a.clone() } else { format!("{a} → {b}") }
}

/// The change of each arm in both runs, and how it differs.
fn grid(compared: &Compared<'_>, setting: &AbSettingChanges) -> Grid {
    const PARTS: [Align; 3] = [Align::Decimal, Align::Right, Align::Right];
    let base = compared.baseline();
    let claims = compared.comparison.claims;
    let row = |one: &AbChange| {
        let side = |nth: usize| {
            let AbStanding { change, pointwise, .. } = &one.sides[nth];
            change_parts(*change, *pointwise).into()
        };
        let AbJudgedChange { change, simultaneous, .. } = &one.judged;
        let both = match claims {
            1 => "B against A [95%]".to_owned(),
            n => format!("B against A [95%, all {n}]"),
        };
        vec![
            (Column::left(""), vec![format!("{} {}", arm(one), quantity(one.quantity))]),
            (Column::of(format!("run A, vs {base} [95%]"), &PARTS), side(0)),
            (Column::of(format!("run B, vs {base} [95%]"), &PARTS), side(1)),
            (Column::of(both, &PARTS), change_parts(*change, *simultaneous).into()),
        ]
    };
    Grid::filled(setting_words(&setting.setting), setting.changes.iter().map(row))
}

/// The same as a table of Markdown, with the verdicts.
fn numbers(setting: &AbSettingChanges) -> Table {
    let row = |change: &AbChange| -> Vec<Filled> {
        let side =
            |nth: usize| with_interval(change.sides[nth].change, change.sides[nth].pointwise);
        vec![
            left("", "", format!("{} {}", arm(change), quantity(change.quantity))),
            right("A", "", side(0)),
            right("B", "", side(1)),
            right(
                "B against A",
                "",
                with_interval(change.judged.change, change.judged.simultaneous),
            ),
            left("verdict", "", change.judged.verdict.word()),
        ]
    };
    Table::of(setting_words(&setting.setting), setting.changes.iter().map(row))
}

fn answers(compared: &Compared<'_>) -> Vec<Answer> {
    let comparison = compared.comparison;
    let mut out =
        vec![Answer { label: Label::Differs, said: of_runs::differs(&comparison.inputs) }];
    let several = comparison.settings.len() > 1;
    for setting in &comparison.settings {
        let of =
            if several { format!("{}: ", setting_words(&setting.setting)) } else { String::new() };
        for alike in by_verdict(&setting.changes) {
            let said = format!("{of}{}", verdict(compared, &alike));
            out.push(Answer::one(Label::Verdict, said));
        }
    }
    let missing = comparison.missing.iter().map(only_in);
    out.extend(missing.map(|line| Answer::one(Label::Caution, line)));
    let layout = layout(comparison.changes().map(|change| change.judged.layout_allowance));
    out.extend(layout.map(|share| {
        let said = format!("up to {share} of a change may come from code placement");
        Answer::one(Label::Caution, said)
    }));
    out.push(trust(compared));
    out.push(next(compared.a, compared.b, "every input"));
    out
}

/// Changes of an arm, those of one verdict together.
fn by_verdict(changes: &[AbChange]) -> Vec<Vec<&AbChange>> {
    let mut all: Vec<Vec<&AbChange>> = Vec::new();
    for change in changes {
        let is_like = |group: &&mut Vec<&AbChange>| {
            let of = group.first();
            of.is_some_and(|of| {
                of.arms == change.arms && of.judged.verdict == change.judged.verdict
            })
        };
        match all.iter_mut().find(is_like) {
            Some(group) if change.judged.verdict != AbVerdict::Invalid => group.push(change),
            _ => all.push(vec![change]),
        }
    }
    all
}

/// `pr is SLOWER in B by more than 3%: +4.8% time [+4.5, +5.2], +4.9% CPU`.
fn verdict(compared: &Compared<'_>, alike: &[&AbChange]) -> String {
    let Some(first) = alike.first() else { return String::new() };
    let (judged, name) = (&first.judged, arm(first));
    let delta = percent(compared.comparison.delta);
    let direction =
        if judged.change.is_some_and(|change| change < 0.0) { "faster" } else { "slower" };
    let claim = match (&judged.reason, judged.verdict) {
        (AbChangeReason::Unusable { unusable }, verdict) => {
            let why = [false, true].into_iter().zip(unusable);
            let why = why.filter_map(|(is_b, why)| Some((is_b, why.as_ref()?)));
            let why = why.map(|(is_b, why)| self::unusable(compared, is_b, why));
            let of = quantity(first.quantity);
            return format!("{name} is {} in {of}: {}", verdict.word(), why.joined("; "));
        }
        (AbChangeReason::Rule(AbReason::Beyond { bound, .. }), verdict) => {
            let beyond = beyond(*bound, compared.comparison.delta);
            format!("{} in run B {beyond}", verdict.word())
        }
        (_, AbVerdict::Build) => format!("{direction} in run B as it was built (BUILD)"),
        (_, AbVerdict::Equivalent) => format!("the same in both runs: EQUIVALENT within {delta}"),
        (_, AbVerdict::Small) => {
            format!("{direction} in run B, maybe by less than {delta} (SMALL)")
        }
        (_, verdict) => verdict.word().to_owned(),
    };
    let numbers = alike.iter().map(|change| {
        let value = change.judged.change.map_or_else(|| "no number for".to_owned(), signed);
        format!("{value} {}", quantity(change.quantity))
    });
    let noise = match &judged.reason {
        AbChangeReason::Rule(
            AbReason::Open { noise: Some(_), .. } | AbReason::MayBeSmall { noise: Some(_), .. },
        ) => "; copies of one program differ too widely for EQUIVALENT",
        _ => "",
    };
    format!("{name} is {claim}: {}{noise}", numbers.joined(", "))
}

fn unusable(compared: &Compared<'_>, is_b: bool, why: &AbUnusable) -> String {
    let (letter, unit) = (letter(is_b), compared.unit().word());
    match why {
        AbUnusable::CopiesDiffer { of } => {
            format!("two copies of {} differ in {letter}", compared.name(is_b, *of))
        }
        AbUnusable::WorksBetween { of } => {
            format!("{} works between its turns in {letter}", compared.name(is_b, *of))
        }
        AbUnusable::Missing { why } => match why {
            AbMissingWhy::OfBaseline => format!("{letter} has no number of the baseline"),
            AbMissingWhy::OfArm | AbMissingWhy::OfLinks => {
                format!("{letter} has no number of it")
            }
            AbMissingWhy::NeverTogether => {
                format!("{letter} has no round with both it and the baseline")
            }
        },
        AbUnusable::TooFew { units, least } => {
            format!("{letter} has {units} of the {} a verdict needs", count(*least, unit))
        }
        AbUnusable::NoInterval { units } => {
            format!("{letter} has {}, too few for an interval of all changes", count(*units, unit))
        }
    }
}

fn letter(is_b: bool) -> &'static str {
    if is_b { "run B" } else { "run A" }
}

fn only_in(part: &AbMissingPart) -> String {
    let letter = letter(part.is_b);
    match (&part.setting, &part.arm) {
        (Some(setting), _) => format!("only {letter} has {}", setting_words(setting)),
        (None, arm) => {
            format!("only {letter} has the program {}", arm.as_deref().unwrap_or("?"))
        }
    }
}

fn trust(compared: &Compared<'_>) -> Answer {
    let base = compared.baseline();
    Answer::of(
        Label::Trust,
        [
            format!(
                "both ran beside the same {base} (file and arguments); files named in \
                 arguments are not checked"
            ),
            "run-to-run variance not included: repeat both if it is close".to_owned(),
        ],
    )
}

fn warned(compared: &Compared<'_>, warning: AbWarning) -> Text {
    let id = |is_b: bool| &compared.header(is_b).id;
    Text::plain(match warning {
        AbWarning::SameRun => format!(
            "Both are run {}, the same trials: every change is exactly 0, which says nothing of \
             how far two runs would differ",
            id(false)
        ),
        AbWarning::CutShort { is_b } => format!("Run {} was cut short", id(is_b)),
        AbWarning::NotEnded { is_b } => format!("Run {} has not ended, or was killed", id(is_b)),
    })
}
