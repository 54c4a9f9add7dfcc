//! What a run says while it goes on, on stderr: a bar on a terminal, a line
//! per trial elsewhere. Nothing is drawn while a trial runs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::search::SearchPhase;
use iolens_model::units::{Nanos, three_digits};

use self::news::News;
use crate::args::ProgressKind;
use crate::output;

pub(crate) mod news;

/// How progress is shown.
pub(crate) enum Progress {
    /// Not at all.
    None,
    /// One line per trial.
    Plain,
    /// A bar.
    Terminal(ProgressBar),
}

impl Progress {
    /// As asked; by default a bar on a terminal and lines elsewhere.
    pub(crate) fn new(asked: Option<ProgressKind>, trials: usize) -> Progress {
        match asked {
            Some(ProgressKind::None) => Progress::None,
            Some(ProgressKind::Plain) => Progress::Plain,
            None | Some(ProgressKind::Bar) if output::stderr_redraws() => {
                Progress::Terminal(bar(trials))
            }
            None | Some(ProgressKind::Bar) => Progress::Plain,
        }
    }

    /// Says a line, or on a terminal what stands behind the bar, and there the line too where it
    /// is bad news; returns the bar.
    fn tell(&self, line: &str, shown: &str, is_bad: bool) -> Option<&ProgressBar> {
        match self {
            Progress::None => None,
            Progress::Plain => {
                output::note(line);
                None
            }
            Progress::Terminal(bar) => {
                if is_bad {
                    bar.suspend(|| output::note(line));
                }
                bar.set_message(output::for_terminal(shown).into_owned());
                Some(bar)
            }
        }
    }

    /// The slice work of `cells` cells is being found.
    pub(crate) fn calibrating(&self, cells: usize) {
        let line = format!("finding the slice work of {cells} cells");
        self.tell(&line, "finding the slice work", false).into_iter().for_each(ProgressBar::tick);
    }

    /// A trial was stored.
    pub(crate) fn trial(&self, outcome: &TrialOutcome, elapsed_ns: u64) {
        let (line, cell) = (line(outcome, elapsed_ns), outcome.cell.to_string());
        let bar = self.tell(&line, &cell, outcome.status != Status::Ok);
        bar.into_iter().for_each(|bar| bar.inc(1));
    }

    /// A pass is over: how precise the run is, what it goes on for, and how long at most.
    pub(crate) fn pass(&self, news: &News) {
        match self {
            Progress::None => {}
            Progress::Plain => output::note(&news.line()),
            Progress::Terminal(bar) => {
                bar.set_prefix(output::for_terminal(&news.brief()).into_owned());
                let done = bar.position();
                let a_pass = done.div_ceil(u64::from(news.passes_here.max(1)));
                bar.set_length(done + a_pass.saturating_mul(u64::from(news.passes_left())));
            }
        }
    }

    /// So many searches are to come.
    pub(crate) fn searching(&self, searches: usize) {
        if searches > 0 {
            self.tell(&format!("{searches} searches take turns"), "searching", false);
        }
    }

    /// A phase of a search was stored.
    pub(crate) fn search_phase(&self, phase: &SearchPhase, elapsed_ns: u64) {
        let line = searched(phase, elapsed_ns);
        let bar = self.tell(&line, &line, phase.status != Status::Ok);
        bar.into_iter().for_each(ProgressBar::tick);
    }

    /// The run is over.
    pub(crate) fn finish(&self) {
        if let Progress::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn bar(trials: usize) -> ProgressBar {
    let bar =
        ProgressBar::with_draw_target(Some(trials as u64), ProgressDrawTarget::stderr_with_hz(10));
    // The template is a constant of ours; the default is as good as a bad one.
    let style = ProgressStyle::with_template("{bar:10} {pos}/{len} {prefix}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style.progress_chars(&output::for_terminal("█░")))
}

/// `committed: phase 7, poll, …, 20000 requests/s: ok, 2.1 s, at 12.1 s`.
fn searched(phase: &SearchPhase, elapsed_ns: u64) -> String {
    let asked = phase.rate.map_or_else(
        || "closed loop".to_owned(),
        |rate| format!("{} requests/s", three_digits(rate)),
    );
    let how = match &phase.reason {
        Some(reason) => format!("{}: {reason}", phase.status.word()),
        None => phase.status.word().to_owned(),
    };
    format!(
        "committed: phase {}, {}, {}, {asked}: {how}, {}, at {}",
        phase.number,
        phase.arm.label,
        phase.cell,
        Nanos(phase.duration_ns),
        Nanos(elapsed_ns),
    )
}

/// `committed: pass 2, trial 3, 16 KiB × 1 thread, …: ok, 0.62 s, at 12.1 s`.
fn line(outcome: &TrialOutcome, elapsed_ns: u64) -> String {
    let refused = outcome.arms.iter().filter(|arm| arm.status == Status::Invalid).count();
    let how = match (&outcome.reason, refused) {
        _ if outcome.status == Status::Interrupted => "interrupted, not used".to_owned(),
        (Some(reason), _) => format!("{}: {reason}", outcome.status.word()),
        (None, 0) => outcome.status.word().to_owned(),
        (None, 1) => "1 arm invalid".to_owned(),
        (None, n) => format!("{n} arms invalid"),
    };
    let isolated = if outcome.isolated { ", isolated" } else { "" };
    format!(
        "committed: pass {}, trial {}, {}{isolated}: {how}, {}, at {}",
        outcome.pass,
        outcome.position + 1,
        outcome.cell,
        Nanos(outcome.duration_ns),
        Nanos(elapsed_ns),
    )
}
