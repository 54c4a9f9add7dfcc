//! The study `server`, and what `iolens show` and a page say of a run of it. A request costs a
//! server CPU time; how many there are per second comes second.

pub(crate) mod counters;
pub(crate) mod figures;
#[cfg(test)]
mod group_tests;
pub(crate) mod processors;
pub(crate) mod screen;
pub(crate) mod searches;
#[cfg(test)]
pub(crate) mod searches_tests;
pub(crate) mod tables;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod views;

use iolens_document::{Block, Column, Fact, Factor, Fold, Grid, Node, Row, Section, Text, change};
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};

use self::tables::BOUNDED;
use self::views::{View, is_bounded, views, views_of};
use super::entry::{Ends, OfSetting, StudyColumns, StudyReport, who_wins};
use crate::arms::methods as models;
use crate::figure::{Figure, Group};
use crate::findings::{self, Outcome};
use crate::groups::{distinct, grouped};
use crate::number::{self, InWords, list};
use crate::screen::outcome;
use crate::screen::table::{self, Marks};
use crate::sections::{Form, drawn, more_figures, setting, within};
use crate::{arms, parts, remarks, words};

pub(super) static SERVER: StudyReport = StudyReport {
    nothing: "request by a client that does nothing",
    common: Cell::words,
    screen: screen::fill,
    next: |_, _| vec![Text::code("iolens run server --slo 'p99<2ms'")],
    question: "What does a request cost?",
    claim: who_wins,
    sections,
    last: |_, _| None,
    setting: OfSetting::Section(one),
    plates: figures::all,
    figures,
    after: "counters",
    columns: COLUMNS,
};

const COLUMNS: StudyColumns = StudyColumns {
    ends: Ends::ServerAndClient,
    keys: &[
        ("workers", "threads"),
        ("server_requests", "tx_messages"),
        ("client_replies", "rx_messages"),
        ("client_system_calls", "rx_calls"),
    ],
    arms: "{arm} rate_per_s {client} {ends} {latency_:times} {server} host",
    whole: ["latency_histogram from_sent_histogram cpu_ticks facts", ""],
    axes: "service length topology load connections workers",
    slice: "rate_per_s {client} {ends}",
    figures: "{cpu_:ratio} rates_asked_per_s {requests_per_s:interval} {offered_per_s:interval}
        {server_busy:interval} {client_busy:interval} saturated client_was_the_limit
        client_was_late rate_not_kept tasks_max {server_cpus_:shares} {client_cpus_:shares}
        requests_ok requests_timeout requests_refused requests_reset requests_invalid
        requests_abandoned {percentiles} from_sent_p50_ns from_sent_p99_ns from_sent_p999_ns
        lag_p50_ns lag_p99_ns lag_p999_ns {server_:end} {client_:end}",
    parts: &[("at_rate", "at_others_rate")],
};

/// Settings, or figures, up to which all of them are open.
const OPEN: usize = 4;

fn sections(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    let views = views(run, analysis);
    let mut sections = Vec::new();
    if let Some(cheapest) = cheapest(run, &views, analysis.delta) {
        let nodes = vec![grid(cheapest)];
        sections.push(Section::new("cheapest", "Cheapest model by load", nodes));
    }
    if let Some(reading) = searches::reading(run) {
        let nodes = searched(run, analysis, form, reading);
        sections.push(Section::new("searches", "Highest rates", nodes));
    }
    let counted = counted(&views);
    if !counted.is_empty() {
        sections.push(Section::new("counters", "What a request costs the server", counted));
    }
    sections.push(Section::new("numbers", "All numbers", numbers(run, analysis, &views, form)));
    sections
}

/// One setting with all that is known of it.
fn one(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Section {
    let used = format!("{} of {} used", cell.trials_used, cell.trials_started);
    let threshold = number::percent(analysis.delta);
    let mut facts = vec![Fact::new("Trials", used), Fact::new("Threshold", threshold)];
    facts.extend(arms::facts(&analysis.told, Some(&cell.cell)).into_iter().map(|told| {
        let what = format!("{}: {}", told.values.join(", "), told.arms.join(", "));
        Fact::new(told.name, what)
    }));
    facts.extend(remarks::of_cell(cell).map(|note| Fact::new("Note", note)));
    let views = views_of(run, analysis, cell);
    let mut nodes = vec![Node::Facts(facts)];
    for view in &views {
        nodes.extend((views.len() > 1).then(|| Node::Heading(view.heading())));
        nodes.extend(summary(run, analysis, view));
        nodes.extend(tables::side_by_side(view, &[]).map(grid));
        nodes.extend(details(run, view));
    }
    Section::new("setting", setting(run, &cell.cell), nodes)
}

fn grid(grid: Grid) -> Node {
    Node::Block(Block::Grid(grid))
}

/// Which model for which load and how many connections; `None` of a single one, which the first
/// screen has.
fn cheapest(run: &Run, views: &[View], delta: f64) -> Option<Grid> {
    if views.len() < 2 {
        return None;
    }
    let connections = |view: &View| view.cell.cell.server().map_or(0, |s| s.connections);
    let mut all = distinct(views.iter().map(connections));
    all.sort_unstable();
    let quick = run.header.plan.quick;
    let cheapest = |view| {
        let view: &View = view;
        let load = format!("{}{}", words::load(&run.header.plan, &view.cell.cell), view.of_kind());
        let ranking = findings::cheapest(view, delta, quick);
        (load, (connections(view), best(&ranking.outcome, delta)))
    };
    let heads = all.iter().map(|n| Column::left(n.to_string()));
    let row = |(load, found): (String, Vec<(u32, String)>)| {
        let of = |n: &u32| found.iter().rev().find(|(known, _)| known == n);
        let best = all.iter().map(|n| of(n).or_empty(|(_, best)| best.clone()));
        Row::Cells(std::iter::once(load).chain(best).map(|words| vec![words]).collect())
    };
    Some(Grid {
        title: format!(
            "by CPU per request against {}, and number of connections",
            run.header.plan.baseline
        ),
        columns: std::iter::once(Column::left("")).chain(heads).collect(),
        rows: grouped(views.iter().map(cheapest)).into_iter().map(row).collect(),
    })
}

/// `uring −20%`.
fn best(of: &Outcome, delta: f64) -> String {
    let name = outcome(of, delta);
    match of {
        Outcome::NoInterval { .. } => "undecided".to_owned(),
        Outcome::Fastest { against: Some(against), .. } => {
            let cost = Factor { typical: against.ratio, interval: None }.inverse();
            format!("{name} {}", change(cost.typical))
        }
        _ => name,
    }
}

fn fold(summary: impl Into<Text>, is_open: bool, nodes: Vec<Node>) -> Node {
    Node::Fold(Fold { summary: summary.into(), is_open, nodes })
}

/// What was found of each goal, and on a page every rate that was tried.
fn searched(run: &Run, analysis: &Analysis, form: Form, reading: String) -> Vec<Node> {
    let mut nodes = vec![Node::aside(reading)];
    for found in searches::found(run, analysis) {
        nodes.push(Node::Table(searches::table(run, &found)));
        if form == Form::Page {
            let tried = found.answers.iter().filter_map(searches::tried).map(Node::Table);
            let goal = searches::name(found.goal);
            nodes.push(Node::fold(format!("Every rate that was tried: {goal}"), tried.collect()));
        }
    }
    nodes
}

/// The counters of every load.
fn counted(views: &[View]) -> Vec<Node> {
    let never = counters::never(views);
    let of = |view: &View| {
        Some(fold(view.heading(), true, vec![grid(tables::side_by_side(view, &never)?)]))
    };
    let folds: Vec<Node> = views.iter().filter_map(of).collect();
    if folds.is_empty() {
        return folds;
    }
    let mut reading =
        "At the server, per request: all its threads and children, user and kernel.".to_owned();
    if views.iter().any(counters::has_own_cpus) {
        reading.push_str(" Its CPUs: their time while its requests ran, used by anyone.");
    }
    if !never.is_empty() {
        reading.push_str(&format!(" Never: {}.", list(never)));
    }
    if views.iter().any(|view| !counters::going_with_cost(view).is_empty()) {
        reading.push_str(
            " With CPU: rank correlation with CPU per request, over models; 1 means the two always \
             rise together. Correlation, not cause.",
        );
    }
    std::iter::once(Node::aside(reading)).chain(folds).collect()
}

fn numbers(run: &Run, analysis: &Analysis, views: &[View], form: Form) -> Vec<Node> {
    let mut nodes = vec![Node::aside(reading(run, analysis))];
    for view in views {
        let mut own = summary(run, analysis, view);
        if form == Form::Page {
            own.extend(details(run, view));
        }
        nodes.push(fold(view.heading(), views.len() <= OPEN, own));
    }
    nodes
}

/// How the tables are read.
fn reading(run: &Run, analysis: &Analysis) -> String {
    let baseline = &run.header.plan.baseline;
    format!(
        "Changes: 95%, all {} comparisons together. CPU, and in a closed loop req/s, are those of \
         {baseline} and the change. Latency: from when a request was due to its reply. Busy: the \
         server's CPUs, the client's busiest thread; full: the end that had no time left. Tasks: \
         threads and processes of the server at once.",
        analysis.contrasts
    )
}

/// What a request costs, how many there were, and what must not be used.
fn summary(run: &Run, analysis: &Analysis, view: &View) -> Vec<Node> {
    let mut marks = Marks::default();
    let mut nodes: Vec<Node> =
        [tables::cost(run, view, &mut marks), tables::load(run, view, &mut marks)].map(grid).into();
    let mut legend = table::legend(marks, analysis.delta, &run.header.plan.baseline, &[]);
    legend.extend(models(&view.cell).any(is_bounded).then(|| BOUNDED.into()));
    nodes.extend(legend.into_iter().map(Node::Aside));
    let most = findings::throughput(view, analysis.delta, run.header.plan.quick);
    let most = most.map(|ranking| outcome(&ranking.outcome, analysis.delta));
    nodes.extend(most.map(|most| Node::say(format!("Most requests per second: {most}"))));
    let invalid = tables::invalid(view).into_iter().map(|(name, why)| Fact::new(name, why));
    nodes.extend(Node::facts(invalid.collect()));
    nodes
}

/// Each model by itself, each comparison, what limited it, and both ends of it.
fn details(run: &Run, view: &View) -> Vec<Node> {
    let grids = [tables::comparisons(run, view), tables::alone(view)];
    let mut nodes: Vec<Node> = grids.map(grid).into();
    let ends = |arm: &ArmAnalysis| {
        let ends = grid(tables::ends(arm)?);
        Some(Node::fold(format!("{}, server and client", arm.arm.label), vec![ends]))
    };
    nodes.extend(models(&view.cell).filter_map(ends));
    nodes
}

/// The figures by what they are about, that have so much room.
fn figures(run: &Run, analysis: &Analysis, figures: Vec<Figure>, room: usize) -> Vec<Node> {
    let (all, left_out) = within(room, figures, false);
    let mut nodes = Vec::new();
    let are_apart = !analysis.kinds.of_kind.is_empty();
    if are_apart && all.iter().any(|figure| figure.family == Some(parts::ALONE)) {
        let said = "Models that make a process or a thread for each connection have figures of \
                    their own, as they are offered rates of their own.";
        nodes.push(Node::aside(said));
    }
    for group in Group::ALL {
        let own: Vec<_> = all.iter().filter(|figure| figure.group == group).cloned().collect();
        if own.is_empty() {
            continue;
        }
        let (summary, is_open) = (number::count(own.len(), "figure"), own.len() <= OPEN);
        nodes.push(Node::Heading(heading(group).to_owned()));
        match group {
            Group::Crossover | Group::Main => nodes.extend(drawn(own)),
            _ => nodes.push(fold(summary, is_open, drawn(own))),
        }
    }
    nodes.extend((left_out > 0).then(|| more_figures(run, left_out)));
    nodes
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Crossover => "CPU per request against the baseline",
        Group::Main => "CPU per request, and requests per second",
        Group::Time => "What was counted for each request",
        group => group.heading(),
    }
}
