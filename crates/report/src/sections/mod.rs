//! What stands below the first screen, for `iolens show` and on pages: one section for each
//! question, in the order in which a reader asks them. A fact has one home.

pub(crate) mod machine;
pub(crate) mod paths;
mod trust;
pub(crate) mod why;

use std::cmp::Reverse;

use iolens_document::{Node, Page, Section, Text};
use iolens_model::cell::{Cell, Setting};
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_stats::analysis::{Analysis, Quantity};

use crate::figure::{self, Figure, Group};
use crate::findings::{self, Outcome, Ranking};
use crate::groups::grouped;
use crate::studies::{StudyReport, files};
use crate::{screen, words};

/// Where sections are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In a terminal, without figures.
    Terminal {
        /// Its columns.
        columns: usize,
        /// Whether everything is asked for that a run of very many methods leaves out.
        is_whole: bool,
    },
    /// On a page.
    Page,
}

impl Form {
    /// Columns that a table may take.
    pub(crate) fn columns(self) -> usize {
        match self {
            Form::Terminal { columns, .. } => columns,
            Form::Page => usize::MAX,
        }
    }

    /// Whether a run of very many methods leaves something out.
    pub(crate) fn is_short(self) -> bool {
        matches!(self, Form::Terminal { is_whole: false, .. })
    }
}

/// What the study asks.
pub(crate) fn question(run: &Run) -> &'static str {
    StudyReport::of(run.header.plan.study()).question
}

/// The sections of a run.
pub(crate) fn all(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    let own = StudyReport::of(run.header.plan.study());
    let mut sections = (own.sections)(run, analysis, form);
    sections.extend(common(run, analysis, form));
    if form == Form::Page {
        sections.extend((own.last)(run, analysis));
    }
    sections
}

/// What every study has.
pub(crate) fn common(run: &Run, analysis: &Analysis, form: Form) -> [Section; 2] {
    [trust::section(run, analysis, form), machine::section(run, analysis, form)]
}

/// The page of a run.
pub(crate) fn page(run: &Run, analysis: &Analysis) -> Page {
    let plan = &run.header.plan;
    let mut first = screen::screen(run, analysis, None);
    let rankings = findings::rankings(run, &files::sections::ranked(run, analysis));
    let own = StudyReport::of(plan.study());
    let claim = (own.claim)(analysis, &rankings).filter(|_| first.alarm.is_none());
    let mut figures = figure::all(run, analysis);
    let best = by_settings(&rankings).first().map(|(name, _)| *name);
    first.figure = main_figure(run, analysis, best, &mut figures);
    let mut meta: Vec<Text> = vec![iolens_model::units::utc(run.header.started_unix_ns).into()];
    meta.extend(run.header.host_label().map(|host| Text::plain(format!("on {host}"))));
    meta.extend(first.header.iter().chain(&first.effort).cloned());
    let mut mark = vec![
        Text::strong("iolens").and(format!(" {} run ", plan.study())).and_code(&run.header.id),
    ];
    mark.extend(run.header.name.as_deref().map(Text::from));
    let answer = Section::new("answer", "Answer", vec![Node::Screen(Box::new(first))]);
    let mut sections = vec![answer];
    sections.extend(all(run, analysis, Form::Page));
    let room = FIGURES_BYTES.min(BYTES_MAX.saturating_sub(bytes(&sections)));
    if !figures.is_empty() {
        let nodes = (own.figures)(run, analysis, figures, room);
        let before = sections.iter().position(|section| section.id == own.after);
        let at = before.map_or(1, |at| at + 1);
        sections.insert(at, Section::new("figures", "Figures", nodes));
    }
    Page {
        generator: run.header.build.clone(),
        title: title(run),
        mark,
        heading: claim.unwrap_or_else(|| own.question.to_owned()),
        meta,
        style: crate::figure::page_style(),
        sections,
        footer: format!("{} · run {}", run.header.build, run.header.id),
    }
}

/// The longest claim that is a heading.
const CLAIM_MAX: usize = 70;

/// Who wins at which sizes, or in how many settings, in a few words; `None` where that takes more
/// words, or nobody does.
pub(crate) fn who_wins(_: &Analysis, rankings: &[Ranking]) -> Option<String> {
    let is_by_cpu = rankings.iter().any(|ranking| ranking.quantity != Quantity::Time);
    let verb = if is_by_cpu { "needs least CPU per request" } else { "wins" };
    let claims = [by_size(rankings), Some(by_settings(rankings))];
    let worded = claims.into_iter().flatten().filter_map(|won| {
        let ((first, place), rest) = won.split_first()?;
        let rest: String = rest.iter().map(|(name, place)| format!(", {name} {place}")).collect();
        Some(format!("{first} {verb} {place}{rest}").trim_end().to_owned())
    });
    worded.into_iter().find(|claim| claim.chars().count() <= CLAIM_MAX)
}

/// Who wins in a ranking.
fn winner(ranking: &Ranking) -> Option<&str> {
    match &ranking.outcome {
        Outcome::Fastest { method, .. } => Some(method),
        _ => None,
    }
}

/// Winners, each with the sizes of its stretch; `None` of several curves.
fn by_size(rankings: &[Ranking]) -> Option<Vec<(&str, String)>> {
    let first = rankings.first()?;
    if rankings.iter().any(|own| own.setting.curve() != first.setting.curve()) {
        return None;
    }
    let stretches = rankings.chunk_by(|a, b| winner(a) == winner(b));
    let won = stretches.filter_map(|own| {
        let (first, last) = (own.first()?, own.last()?);
        let place = match (own.len(), first.setting.own_size()) {
            (_, None) => String::new(),
            (1, Some(size)) => format!("at {size}"),
            (n, _) if n == rankings.len() => "at every size".to_owned(),
            _ => format!("from {}", screen::span_of(first.setting.size, last.setting.size)),
        };
        Some((winner(first)?, place))
    });
    Some(won.collect())
}

/// Winners, the most frequent first, each with the number of settings.
fn by_settings(rankings: &[Ranking]) -> Vec<(&str, String)> {
    let all = rankings.len();
    let mut won = grouped(rankings.iter().filter_map(winner).map(|name| (name, ())));
    won.sort_by_key(|(_, settings)| Reverse(settings.len()));
    let place = |(nth, (name, own)): (usize, (_, Vec<()>))| {
        let place = match own.len() {
            n if n == all => format!("in all {all} settings"),
            n if nth == 0 => format!("in {n} of {all} settings"),
            n => format!("in {n}"),
        };
        (name, place)
    };
    won.into_iter().enumerate().map(place).collect()
}

/// The figure that shows the answer, with the best method in it: of a run of one curve it is taken
/// from the others, of more the first curve has one of its own.
fn main_figure(
    run: &Run,
    analysis: &Analysis,
    best: Option<&str>,
    figures: &mut Vec<Figure>,
) -> Option<iolens_document::Figure> {
    let curve = |cell: &Cell| match cell.curve() {
        Cell { setting: Setting::Server(own), threads, size } => {
            let setting = Setting::Server(ServerSetting { connections: 0, ..own });
            Cell { setting, threads, size }
        }
        other => other,
    };
    let first = curve(&analysis.cells.first()?.cell);
    let mut own = analysis.clone();
    own.cells.retain(|cell| curve(&cell.cell) == first);
    let is_whole = own.cells.len() == analysis.cells.len();
    let shows = |figure: &Figure| {
        let is_ratio = figure.file_stem.contains("-ratio-by-");
        let has_best = figure.table.columns.iter().any(|column| Some(&*column.name) == best);
        (!is_ratio, figure.group != Group::Main, !has_best)
    };
    let main = match is_whole {
        true => figures.iter().min_by_key(|figure| shows(figure))?.clone(),
        false => figure::all(run, &own).into_iter().min_by_key(shows)?,
    };
    let before = figures.len();
    figures.retain(|figure| figure.inline != main.inline);
    let mut figure = shown(main);
    if figures.len() == before {
        figure.id = format!("main-{}", figure.id);
    }
    Some(figure)
}

/// For the tab of a browser.
pub(crate) fn title(run: &Run) -> String {
    let name = run.header.name.as_deref().unwrap_or(&run.header.id);
    let host = run.header.origin.as_ref().map(|origin| format!(" on {}", origin.host));
    format!("{name} · iolens {}{}", run.header.plan.study(), host.unwrap_or_default())
}

/// Figures as parts of a section.
pub(crate) fn drawn(figures: Vec<Figure>) -> Vec<Node> {
    figures.into_iter().map(|figure| Node::Figure(shown(figure))).collect()
}

fn shown(figure: Figure) -> iolens_document::Figure {
    iolens_document::Figure {
        id: figure.file_stem,
        caption: Text::default(),
        wide: figure.inline,
        narrow: figure.narrow,
        lines: figure.lines,
        twin: Some(figure.table),
        sum: String::new(),
    }
}

/// Bytes that a page may have, without its style and headings.
const BYTES_MAX: usize = 1_930_000;

/// Bytes that these sections take.
fn bytes(sections: &[Section]) -> usize {
    sections.iter().map(|section| iolens_document::html::section(section).0.len()).sum()
}

/// Bytes that the figures of a run may have together: more than that nobody scrolls through.
const FIGURES_BYTES: usize = 1_400_000;

/// The figures that fit a page, those first that say most, and how many do not. The ratios of
/// all families are always among them, where there are families.
pub(crate) fn within(
    room: usize,
    figures: Vec<Figure>,
    has_families: bool,
) -> (Vec<Figure>, usize) {
    const ORDER: [&str; 6] =
        ["ratio", "crossovers", "cheapest", "goodput-by-size", "ns-per-message", "latency-by-size"];
    let rank = |figure: &Figure| {
        let place =
            ORDER.iter().position(|metric| figure.file_stem.contains(&format!("-{metric}-")));
        place.unwrap_or(ORDER.len() + usize::from(figure.group >= Group::Threads))
    };
    let bytes = |figure: &Figure| figure.inline.len() + figure.table.html().into_string().len();
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by_key(|&i| rank(&figures[i]));
    let (mut used, mut kept) = (0, vec![false; figures.len()]);
    for i in order {
        let own = bytes(&figures[i]);
        if used + own <= room || (has_families && rank(&figures[i]) == 0) {
            (used, kept[i]) = (used + own, true);
        }
    }
    let left_out = kept.iter().filter(|kept| !**kept).count();
    let kept = figures.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(figure, _)| figure);
    let kept: Vec<Figure> = kept.collect();
    // Where all have room once only, narrow screens scroll.
    let narrow: usize =
        kept.iter().map(|figure| figure.narrow.as_ref().map_or(0, String::len)).sum();
    let kept = match used + narrow <= room {
        true => kept,
        false => kept.into_iter().map(|figure| Figure { narrow: None, ..figure }).collect(),
    };
    (kept, left_out)
}

/// Where figures are that have no room on a page.
pub(crate) fn more_figures(run: &Run, left_out: usize) -> Node {
    let said = format!("{left_out} more figures would make the page too large: ");
    Node::aside(
        Text::plain(said).and_code(format!("iolens report {} --figures DIR", run.header.id)),
    )
}

/// `4 KiB, 2 threads`: what tells a setting from the others.
pub(crate) fn setting(run: &Run, cell: &Cell) -> String {
    words::subject(&run.header, cell)
}
