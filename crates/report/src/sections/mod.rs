//! What stands below the first screen, for `iolens show` and on pages: one section for each
//! question, in the order in which a reader asks them. A fact has one home.

mod machine;
pub(crate) mod servers;
mod syscalls;
mod trust;

use iolens_document::{Node, Page, Section, Text};
use iolens_model::axes::Study;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use crate::figure::Figure;
use crate::{number, screen, words};

/// Where sections are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In a terminal of so many columns, without figures.
    Terminal(usize),
    /// On a page.
    Page,
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
        Study::Syscall => syscalls::sections(run, analysis, form),
        Study::Server => servers::sections(run, analysis, form),
        _ => Vec::new(),
    };
    sections.extend(common(run, analysis, form));
    sections
}

/// What every study has.
pub(crate) fn common(run: &Run, analysis: &Analysis, form: Form) -> [Section; 2] {
    [trust::section(run, analysis, form), machine::section(run, analysis, form)]
}

/// Whether the study has moved here.
pub(crate) fn has(run: &Run) -> bool {
    matches!(run.header.plan.study(), Study::Syscall | Study::Server)
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

/// What checks noticed in a setting, and how many trials it lost.
fn remarks(cell: &CellAnalysis) -> Vec<Node> {
    lost(cell)
        .into_iter()
        .chain(cell.notes.iter().map(|said| Node::Aside(Text::plain(said))))
        .collect()
}

/// How many trials a setting lost.
fn lost(cell: &CellAnalysis) -> Option<Node> {
    let (used, started) = (cell.trials_used, cell.trials_started);
    let said = || format!("{used} of {} used", number::count(started, "trial"));
    (used < started).then(|| Node::Aside(said().into()))
}

/// `4 KiB, 2 threads`: what tells a setting from the others.
fn setting(run: &Run, cell: &iolens_model::cell::Cell) -> String {
    words::subject(&run.header, cell)
}
