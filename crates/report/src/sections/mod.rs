//! What stands below the first screen, for `iolens show` and on pages: one section for each
//! question, in the order in which a reader asks them. A fact has one home.

pub(crate) mod files;
mod machine;
mod net;
mod paths;
pub(crate) mod servers;
mod surprising;
mod syscalls;
mod trust;
mod why;

use iolens_document::{Node, Page, Section, Text};
use iolens_model::axes::Study;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::figure::{Figure, Group};
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
    fn is_short(self) -> bool {
        matches!(self, Form::Terminal { is_whole: false, .. })
    }
}

/// What the study asks.
pub(crate) fn question(run: &Run) -> &'static str {
    match run.header.plan.study() {
        Study::Net => "Which way to send is fastest?",
        Study::File => "Which way to read a file is fastest?",
        Study::Write => "Which way to write a file is fastest?",
        Study::Copy => "Which way to copy a file is fastest?",
        Study::Syscall => "What does a system call cost?",
        Study::Server => "What does a request cost?",
    }
}

/// The sections of a run.
pub(crate) fn all(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    let mut sections = match run.header.plan.study() {
        Study::File | Study::Write | Study::Copy => files::sections(run, analysis, form),
        Study::Net => net::sections(run, analysis, form),
        Study::Syscall => syscalls::sections(run, analysis, form),
        Study::Server => servers::sections(run, analysis, form),
    };
    sections.extend(common(run, analysis, form));
    if (form, run.header.plan.study()) == (Form::Page, Study::Net) {
        sections.push(net::last(run, analysis));
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
    let first = screen::screen(run, analysis, None);
    let mut meta: Vec<Text> = vec![iolens_model::moment::utc(run.header.started_unix_ns).into()];
    meta.extend(run.header.host_label().map(|host| Text::plain(format!("on {host}"))));
    meta.extend(first.header.iter().chain(&first.effort).cloned());
    let name = run.header.name.as_deref();
    let answer = Section::new("answer", "Answer", vec![Node::Screen(Box::new(first))]);
    let mut sections = vec![answer];
    sections.extend(all(run, analysis, Form::Page));
    // Of files and calls there are few, which stand among the answers.
    let room = || FIGURES_BYTES.min(BYTES_MAX.saturating_sub(bytes(&sections)));
    let figures = match plan.study() {
        Study::Net => Some(net::figures(run, analysis, room())),
        Study::Server => Some(servers::figures(run, analysis, room())),
        Study::File | Study::Write | Study::Copy | Study::Syscall => None,
    };
    if let Some(figures) = figures {
        let before = sections.iter().position(|s| ["path", "counters"].contains(&s.id));
        sections.insert(before.map_or(1, |at| at + 1), figures);
    }
    Page {
        generator: run.header.build.clone(),
        title: title(run),
        mark: vec![
            Text::strong("iolens").and(format!(" {} run ", plan.study())).and_code(&run.header.id),
        ],
        heading: name.unwrap_or(question(run)).to_owned(),
        meta,
        style: crate::figure::page_style(),
        sections,
        footer: format!("{} · run {}", run.header.build, run.header.id),
    }
}

/// For the tab of a browser.
pub(crate) fn title(run: &Run) -> String {
    let name = run.header.name.as_deref().unwrap_or(&run.header.id);
    let host = run.header.origin.as_ref().map(|origin| format!(" on {}", origin.host));
    format!("{name} · iolens {}{}", run.header.plan.study(), host.unwrap_or_default())
}

/// Figures as parts of a section.
fn drawn(figures: Vec<Figure>) -> Vec<Node> {
    let one = |figure: Figure| {
        Node::Figure(iolens_document::Figure {
            id: figure.file_stem,
            caption: Text::default(),
            wide: figure.inline,
            narrow: figure.narrow,
            lines: figure.lines,
            twin: Some(figure.table),
            sum: String::new(),
        })
    };
    figures.into_iter().map(one).collect()
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
fn within(room: usize, figures: Vec<Figure>, has_families: bool) -> (Vec<Figure>, usize) {
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
fn more_figures(run: &Run, left_out: usize) -> Node {
    let said = format!("{left_out} more figures would make the page too large: ");
    Node::aside(
        Text::plain(said).and_code(format!("iolens report {} --figures DIR", run.header.id)),
    )
}

/// `4 KiB, 2 threads`: what tells a setting from the others.
fn setting(run: &Run, cell: &iolens_model::cell::Cell) -> String {
    words::subject(&run.header, cell)
}
