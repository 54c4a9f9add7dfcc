//! What `iolens show` and a page say of runs of `file`, `write` and `copy`.

mod besides;
mod blocks;
pub(crate) mod numbers;

use iolens_document::table::{Column, Entry, Table};
use iolens_document::{Fact, Node, Section, Text};
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use self::numbers::times;
use crate::arms::curves;
use crate::findings::{self, Outcome, Ranking};
use crate::groups::distinct;
use crate::number::InWords;
use crate::sections::{Form, drawn};
use crate::studies::files::facts;
use crate::{figure, number, screen, words};

pub(crate) fn sections(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    let mut sections = Vec::new();
    let why = why(run, analysis);
    if !why.is_empty() {
        sections.push(Section::new("why", "Why", why));
    }
    sections.push(Section::new("numbers", "All numbers", all_numbers(run, analysis, form)));
    sections
}

pub(crate) fn figures(
    run: &Run,
    _: &Analysis,
    figures: Vec<figure::Figure>,
    _: usize,
) -> Vec<Node> {
    let caches = format!("Dotted lines: {} = cache size.", words::size_of(&run.header.plan));
    std::iter::once(Node::aside(caches)).chain(drawn(figures)).collect()
}

/// What the screen has no room for, and what explains it: a question, its numbers.
fn why(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let rankings = findings::rankings(run, &findings::ranked(run, analysis));
    let of_unit = format!("What does a {} cost?", run.header.plan.study().unit());
    let asked: [(&str, Vec<Node>); 9] = [
        ("Which is fastest?", fastest(run, &rankings)),
        ("What is undecided?", undecided(run, &rankings)),
        ("What is the limit?", besides::limits(run, analysis)),
        ("What is caching worth?", caching(run, analysis).map(Node::Table).into_iter().collect()),
        ("What is dropping caches worth?", besides::drops(run)),
        ("What does durability cost?", besides::durable(run, analysis)),
        (&of_unit, blocks::nodes(run, analysis)),
        ("Do more threads help?", blocks::threads(run, analysis)),
        ("How were programs timed?", besides::programs(run, analysis)),
    ];
    let answered = asked.into_iter().filter(|(_, nodes)| !nodes.is_empty());
    answered.flat_map(|(ask, nodes)| std::iter::once(Node::heading(ask)).chain(nodes)).collect()
}

/// Every curve, where the screen names some alone.
fn fastest(run: &Run, rankings: &[Ranking]) -> Vec<Node> {
    let curve = |ranking: &Ranking| screen::short(run, &ranking.setting);
    let all = screen::by_curve(rankings, run.header.plan.delta, curve);
    if all.len() <= screen::CURVES_MAX {
        return Vec::new();
    }
    let facts = all.into_iter().map(|(name, said)| Fact::new(name, said.join("; ")));
    Node::facts(facts.collect()).into_iter().collect()
}

/// Who may be ahead, and how many trials would decide it.
fn undecided(run: &Run, rankings: &[Ranking]) -> Vec<Node> {
    let one = |ranking: &Ranking| {
        let Outcome::Undecided { methods, more_trials } = &ranking.outcome else { return None };
        let more = more_trials
            .or_empty(|more| format!("; about {} would decide", number::count(more, "more trial")));
        let place = screen::place(run, &ranking.setting);
        Some(Fact::new(place, format!("{}{more}", methods.join(", "))))
    };
    Node::facts(rankings.iter().filter_map(one).collect()).into_iter().collect()
}

/// How many times as fast each engine reads warm as cold.
fn caching(run: &Run, analysis: &Analysis) -> Option<Table> {
    let all = findings::caching(run, analysis);
    let engines = distinct(all.iter().map(|worth| worth.method.as_str()));
    let mut columns = vec![Column::left("setting", "")];
    columns.extend(engines.iter().map(|engine| Column::left(engine, "warm over cold [95%]")));
    let caption = "Rate warm over rate cold: different settings, which did not take turns";
    let mut table = Table::new(caption, columns);
    for own in all.chunk_by(|a, b| a.setting == b.setting) {
        let Some(first) = own.first() else { continue };
        let apart = facts::without_cache(run, &first.setting);
        let mut row: Vec<Entry> = vec![format!("{}, {apart}", first.setting.size).into()];
        row.extend(engines.iter().map(|engine| {
            let of = own.iter().find(|worth| worth.method == *engine);
            of.map_or_else(Entry::default, |worth| times(&worth.warm_over_cold).into())
        }));
        table.push(row);
    }
    table.with_rows()
}

/// How numbers are read, and a table for each curve.
fn all_numbers(run: &Run, analysis: &Analysis, form: Form) -> Vec<Node> {
    let mut nodes = numbers::reading(run, analysis);
    let curves = curves(analysis);
    for (curve, cells) in &curves {
        nodes.push(Node::Heading(words::curve(&run.header, curve)));
        nodes.push(Node::Table(numbers::curve(run, &analysis.told, cells, form.columns())));
        if form == Form::Page {
            let every = |cell: &&CellAnalysis| {
                let summary = Text::strong(cell.cell.size.to_string()).and(" every figure");
                Node::fold(summary, vec![Node::Table(numbers::further(run, cell))])
            };
            nodes.extend(cells.iter().map(every));
        }
    }
    let records = figure::extremes::by_method(run, analysis).map(Node::Table);
    nodes.extend(records.map(|table| Node::fold("Records", vec![table])));
    nodes
}
