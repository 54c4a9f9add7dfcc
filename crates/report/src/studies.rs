//! What reports have of each study: a folder each, and an entry each. This is the only list of
//! studies here, with what is composed from an entry: a first screen, the sections below it, and
//! figures. Nothing in a folder of a study knows of the list.

pub mod ab;
pub(crate) mod entry;
pub(crate) mod files;
pub(crate) mod net;
pub(crate) mod server;
pub(crate) mod syscall;
#[cfg(test)]
pub(crate) mod tests;

use iolens_document::{Answer, Label, Screen, Section, Text};
use iolens_model::axes::Study;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use self::entry::StudyReport;
use crate::figure::explained::printed;
use crate::figure::{Figure, Paper};
use crate::screen::{After, effort, trust};
use crate::sections::{self, Form, machine};

/// The entry of a study.
pub(crate) fn of(study: Study) -> &'static StudyReport {
    match study {
        Study::Net => &net::NET,
        Study::File => &files::FILE,
        Study::Write => &files::WRITE,
        Study::Copy => &files::COPY,
        Study::Syscall => &syscall::SYSCALL,
        Study::Server => &server::SERVER,
        Study::Ab => &ab::AB,
    }
}

/// Kinds of answers of a study that stand on the screen at most; the others are in `iolens show`.
const ANSWERS_MAX: usize = 4;

/// The first screen of a run: one that has just been measured ends with what to type next and
/// with its page, a stored one does not.
pub(crate) fn screen(run: &Run, analysis: &Analysis, after: Option<After<'_>>) -> Screen {
    let (own, analysis) = (of(run.header.plan.study()), &analysis.shown());
    let mut screen = Screen {
        header: effort::header(run, own),
        effort: effort::effort(run, analysis),
        alarm: trust::alarm(analysis),
        problems: trust::problems(run, analysis),
        ..Screen::default()
    };
    (own.screen)(&mut screen, run, analysis);
    if screen.alarm.is_some() {
        // What must not be used is not concluded from.
        screen.answers.clear();
    }
    let mut labels: Vec<Label> = screen.answers.iter().map(|answer| answer.label).collect();
    labels.dedup();
    labels.truncate(ANSWERS_MAX);
    screen.answers.retain(|answer| labels.contains(&answer.label));
    screen.answers.extend(trust::cautions(run, analysis));
    screen.answers.push(trust::trust(run, analysis));
    if let Some(After { page, full_run }) = after {
        screen.answers.extend(effort::next(run, analysis, full_run, own));
        screen.answers.extend(page.map(|page| Answer::one(Label::Report, Text::file(page))));
    }
    screen
}

/// The sections of a run.
pub(crate) fn sections(run: &Run, analysis: &Analysis, form: Form) -> Vec<Section> {
    let own = of(run.header.plan.study());
    let mut sections = (own.sections)(run, analysis, form);
    sections.push(sections::trust::section(run, analysis, form, own.nothing));
    sections.push(machine::section(run, analysis, form));
    if form == Form::Page {
        sections.extend((own.last)(run, analysis));
    }
    sections
}

/// Every figure of a run, in the order of [`Group`](crate::figure::Group); within a group the
/// first topology and mode first. Their files are as wide as a page.
pub fn figures(run: &Run, analysis: &Analysis) -> Vec<Figure> {
    figures_on(Paper::Page, run, analysis)
}

/// The same with files of another size.
pub fn figures_on(paper: Paper, run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let plates = (of(run.header.plan.study()).plates)(run, &analysis.shown());
    printed(paper, run, plates)
}
