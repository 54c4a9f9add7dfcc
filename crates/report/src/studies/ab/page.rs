//! The page of a run, and what goes into a pull request.

use iolens_document::table::{Filled, Table, left, right};
use iolens_document::{Fact, Joined, Node, Section, Style, Text};
use iolens_model::ab::{AbAxes, AbCommand, AbQuantity};
use iolens_model::command_line;
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_stats::ab::{AbAnalysis, AbArmFigures, AbCell};
use iolens_stats::analysis::Interval;

use super::figure::figure;
use super::screen::screen;
use super::words::{Said, Unit, bracket, contrasts, of_setting, place, quantity, signed};
use super::{calls, links};
use crate::figure::Paper;
use crate::figure::explained::printed;
use crate::html;
use crate::number::{InWords, count, percent};
use crate::screen::After;
use crate::sections::{Form, drawn, machine};

/// The page of a run.
pub fn page(run: &Run, analysis: &AbAnalysis) -> String {
    let first = screen(run, analysis, None);
    let heading = heading(run, analysis);
    let meta = html::meta(run, &first);
    let mut sections = vec![Section::new("answer", "Answer", vec![Node::Screen(Box::new(first))])];
    sections.extend(self::sections(run, analysis, Form::Page));
    html::of_run(run, format!("{heading} · iolens ab"), heading, meta, sections)
}

/// What was found, if one sentence says it.
fn heading(run: &Run, analysis: &AbAnalysis) -> String {
    let said = Said::of(run);
    let mut claims: Vec<String> =
        analysis.cells.iter().flat_map(|cell| said.claims(cell)).collect();
    claims.dedup();
    match &claims[..] {
        [one] => one.clone(),
        _ => "Which program is faster?".to_owned(),
    }
}

/// All that is not on the first screen.
pub(crate) fn sections(run: &Run, analysis: &AbAnalysis, form: Form) -> Vec<Section> {
    let said = Said::of(run);
    let copies = analysis.cells.iter().filter_map(|cell| Some(Node::Table(copies(&said, cell)?)));
    let calls = analysis.cells.iter().filter_map(|cell| Some(Node::Table(calls::table(cell)?)));
    let links = analysis.cells.iter().filter_map(|cell| links::table(run, &said, cell));
    let facts = analysis.cells.iter().filter(|cell| !cell.is_own_time);
    let facts = facts.flat_map(|cell| {
        let of = of_setting(analysis, cell);
        let facts = [slices(cell), asking(cell), fixed(cell)].into_iter().flatten();
        facts.map(move |fact| Fact { name: format!("{of}{}", fact.name), ..fact })
    });
    let asking = Node::facts(facts.collect());
    let analysis_of_all = iolens_stats::analyse(run);
    let figures = match form {
        Form::Page => drawn(printed(Paper::Page, run, figure(run).into_iter().collect())),
        Form::Terminal { .. } => Vec::new(),
    };
    let mut sections = vec![
        Section::new("changes", "How sure is that?", figures),
        Section::new(
            "trust",
            "Can I trust it?",
            copies.chain(links.map(Node::Table)).chain(asking).collect(),
        ),
        Section::new("calls", "System calls per operation", calls.collect()),
        Section::new("programs", "Programs", programs(run, form)),
    ];
    sections.retain(|section| !section.nodes.is_empty());
    sections.push(machine::section(run, &analysis_of_all, form));
    sections
}

/// The hidden copies: what is found between equals.
fn copies(said: &Said<'_>, cell: &AbCell) -> Option<Table> {
    let interval = |interval: Option<Interval>| interval.or_empty(bracket);
    let row = |copies: &iolens_stats::ab::AbCopies| -> Vec<Filled> {
        vec![
            left("two copies of", "", said.name(copies.arm)),
            left("differ in", "", quantity(copies.quantity)),
            right("by", "", copies.change.or_empty(signed)),
            right("95%", "", interval(copies.pointwise)),
            right("99.9%", "", interval(copies.gate)),
        ]
    };
    Table::of(place(cell), cell.judgement.copies.iter().map(row)).with_rows()
}

/// How long slices are.
fn slices(cell: &AbCell) -> Option<Fact> {
    of_arms(cell, "A slice is", "", |arm| {
        let time = crate::explain::time(arm.slice_ns().filter(|_| arm.operations > 1.0)?);
        Some(format!("{:.0} operations, {time} ({})", arm.operations, arm.name))
    })
}

/// What there is to say of each arm, and of all of them.
fn of_arms(
    cell: &AbCell,
    name: &str,
    of_all: &str,
    said: impl Fn(&AbArmFigures) -> Option<String>,
) -> Option<Fact> {
    let each: Vec<String> = cell.arms.iter().filter_map(said).collect();
    (!each.is_empty()).then(|| Fact::new(name, each.join("; ") + of_all))
}

/// What the lines of the protocol take, with what the program does for them.
fn asking(cell: &AbCell) -> Option<Fact> {
    of_arms(cell, "Asking takes", "; included in all times", |arm| {
        let share = percent((arm.asking_share()? * 1000.0).round() / 1000.0);
        Some(format!("{}, {share} of a slice ({})", Nanos(arm.asking_ns?), arm.name))
    })
}

/// What does not grow with the work of a slice.
fn fixed(cell: &AbCell) -> Option<Fact> {
    let of_all = " of a slice: asking, and caches that are cold after turns";
    of_arms(cell, "Fixed part", of_all, |arm| {
        let share = percent((arm.fixed_share? * 100.0).round() / 100.0);
        Some(format!("{share} ({})", arm.name))
    })
}

/// The programs: a table on a page, which is as wide as it must be.
fn programs(run: &Run, form: Form) -> Vec<Node> {
    match form {
        Form::Terminal { .. } => vec![Node::Facts(program_facts(run))],
        Form::Page => commands(run).map(Node::Table).into_iter().collect(),
    }
}

/// The command of each program in each bench, and its file.
fn commands(run: &Run) -> Option<Table> {
    let commands = run.header.plan.ab().map(AbAxes::commands).unwrap_or_default();
    let row = |(nth, command): (usize, &AbCommand<'_>)| -> Vec<Filled> {
        let file = run.header.programs.get(nth);
        let path = file.or_empty(|file| match file.links.len() {
            0 => file.path.clone(),
            links => count(links, "link"),
        });
        let digits: String = file.or_empty(|file| file.sha256.chars().take(16).collect());
        let bench = command.bench.map(|bench| left("bench", "", bench));
        let own = [
            left("program", "", command.program),
            left("command", "", command_line::join(command_line::redacted(command.argv))),
            left("file", "", path),
            left("SHA-256", "", digits),
        ];
        bench.into_iter().chain(own).collect()
    };
    Table::of("", commands.iter().enumerate().map(row)).with_rows()
}

fn program_facts(run: &Run) -> Vec<Fact> {
    let commands = run.header.plan.ab().map(AbAxes::commands).unwrap_or_default();
    let fact = |(nth, command): (usize, AbCommand<'_>)| {
        let line = command_line::join(command_line::redacted(command.argv));
        let file = run.header.programs.get(nth);
        let file = file.or_empty(|file| {
            if !file.links.is_empty() {
                return format!(" ({})", count(file.links.len(), "link"));
            }
            let digits: String = file.sha256.chars().take(16).collect();
            format!(" ({}, SHA-256 {digits})", file.path)
        });
        let bench = command.bench.or_empty(|bench| format!("{bench}: "));
        Fact::new(format!("{bench}{}", command.program), Text::code(line).and(file))
    };
    commands.into_iter().enumerate().map(fact).collect()
}

/// A comment for a pull request.
pub fn markdown(run: &Run, analysis: &AbAnalysis) -> String {
    let said = Said::of(run);
    let mut out = String::new();
    for cell in &analysis.cells {
        let title = Some(place(cell)).filter(|title| !title.is_empty());
        let of = title.as_ref().or_empty(|title| format!("{title}: "));
        for verdict in said.verdicts(cell) {
            out.push_str(&format!("**{of}{verdict}**\n\n"));
        }
        out.push_str(&numbers(cell).markdown());
        out.push('\n');
    }
    let screen = screen(run, analysis, None);
    let told =
        screen.answers.iter().filter(|answer| answer.label != iolens_document::Label::Verdict);
    for answer in told {
        let parts = answer.said.iter().map(Text::words);
        out.push_str(&format!("- {}: {}\n", answer.label.word(), parts.joined("; ")));
    }
    let header = &run.header;
    out.push_str(&format!("\n<sub>{} · run {}</sub>\n", header.build, header.id));
    out
}

/// A setting as a table.
fn numbers(cell: &AbCell) -> Table {
    let unit = Unit::of(cell);
    let row = |(nth, arm): (usize, &AbArmFigures)| -> Vec<Filled> {
        let mut row = vec![
            left("", "", arm.name.clone()),
            right("time/op", unit.word, unit.shown(cell.op_ns(nth, AbQuantity::Time))),
            right("CPU/op", unit.word, unit.shown(cell.op_ns(nth, AbQuantity::Cpu))),
        ];
        for judged in [AbQuantity::Time, AbQuantity::Cpu] {
            let all = || contrasts(cell, judged);
            let shown = all().find(|contrast| contrast.arm == nth).map(|contrast| {
                let interval = contrast.pointwise.or_empty(bracket);
                format!("{} {interval}", contrast.change.or_empty(signed))
            });
            let shown = shown.unwrap_or_else(|| "baseline".to_owned());
            let name = format!("{} change", quantity(judged));
            row.extend(all().next().map(|_| right(&name, "", shown)));
        }
        let has_user = cell.arms.iter().any(|arm| arm.user_share.is_some());
        let user = arm.user_share.or_empty(percent);
        row.extend(has_user.then(|| right("user", "", user)));
        row
    };
    Table::of("", cell.arms.iter().enumerate().map(row))
}

/// The first screen, for a terminal.
pub fn first(run: &Run, analysis: &AbAnalysis, after: Option<After<'_>>, style: &Style) -> String {
    iolens_document::terminal::draw(&screen(run, analysis, after), style)
}

/// All that is not on the first screen, for a terminal.
pub fn text(run: &Run, analysis: &AbAnalysis, style: &Style) -> String {
    let form = Form::Terminal { columns: style.columns(), is_whole: false };
    iolens_document::terminal::sections(&sections(run, analysis, form), style)
}
