//! What a run says while it goes on, on stderr: a bar on a terminal, a line per pass elsewhere,
//! and with both a line for each trial that went wrong. Nothing is drawn while a trial runs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iolens_model::arm::ArmOutcome;
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::SearchPhase;
use iolens_model::units::{Nanos, three_digits};

use self::news::News;
use crate::args::ProgressKind;
use crate::output;

pub(crate) mod news;

/// How progress is shown.
pub(crate) enum Progress {
    None,
    /// A line per pass.
    Passes,
    /// The same, and a line per trial.
    Plain,
    Terminal(ProgressBar),
}

/// What a line is about, which decides where it is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    /// A part of the run that begins.
    Stage,
    /// A trial or a phase that went well.
    Work,
    /// One that did not.
    Trouble,
}

impl About {
    fn work(status: Status) -> About {
        if status == Status::Ok { About::Work } else { About::Trouble }
    }

    fn trial(outcome: &TrialOutcome) -> About {
        let arms = invalid(outcome).map(|arm| arm.status);
        About::work(arms.last().unwrap_or(outcome.status))
    }
}

impl Progress {
    /// As asked; by default a bar on a terminal and a line per pass elsewhere.
    pub(crate) fn new(asked: Option<ProgressKind>, trials: usize) -> Progress {
        match asked {
            Some(ProgressKind::None) => Progress::None,
            Some(ProgressKind::Plain) => Progress::Plain,
            None | Some(ProgressKind::Bar) if output::stderr_redraws() => {
                Progress::Terminal(bar(trials))
            }
            None | Some(ProgressKind::Bar | ProgressKind::Passes) => Progress::Passes,
        }
    }

    /// Says a line, or on a terminal what stands behind the bar, and there the line too where it
    /// is bad news; returns the bar.
    fn tell(&self, about: About, line: &str, shown: &str) -> Option<&ProgressBar> {
        match self {
            Progress::None => None,
            Progress::Passes | Progress::Plain => {
                if about != About::Work || matches!(self, Progress::Plain) {
                    output::note(line);
                }
                None
            }
            Progress::Terminal(bar) => {
                if about == About::Trouble {
                    bar.suspend(|| output::note(line));
                }
                bar.set_message(output::for_terminal(shown).into_owned());
                Some(bar)
            }
        }
    }

    /// The slice work of `cells` cells is being found.
    pub(crate) fn calibrating(&self, cells: usize) {
        let line = format!("calibrating {cells} setting{}", if cells == 1 { "" } else { "s" });
        let bar = self.tell(About::Stage, &line, "calibrating");
        bar.into_iter().for_each(ProgressBar::tick);
    }

    /// A trial was stored.
    pub(crate) fn trial(&self, outcome: &TrialOutcome, elapsed_ns: u64) {
        let (line, cell) = (line(outcome, elapsed_ns), outcome.cell.to_string());
        let bar = self.tell(About::trial(outcome), &line, &cell);
        bar.into_iter().for_each(|bar| bar.inc(1));
    }

    /// A trial of the user's programs was stored: what went wrong with one of them is said by the
    /// screen, which comes as soon as nothing is left to compare.
    pub(crate) fn program_trial(&self, outcome: &TrialOutcome, elapsed_ns: u64) {
        let (line, cell) = (line(outcome, elapsed_ns), outcome.cell.to_string());
        let bar = self.tell(About::Work, &line, &cell);
        bar.into_iter().for_each(|bar| bar.inc(1));
    }

    /// A look at a comparison of programs has not decided it.
    pub(crate) fn undecided(&self, passes: u32, elapsed_ns: u64, left_ns: u64) {
        if matches!(self, Progress::Passes | Progress::Plain) {
            let (spent, left) = (Nanos(elapsed_ns), Nanos(left_ns));
            output::note(&format!("{passes} trials · {spent}: undecided, at most {left} left"));
        }
    }

    /// A pass is over: how precise the run is, what it goes on for, and how long at most.
    pub(crate) fn pass(&self, news: &News) {
        match self {
            Progress::None => {}
            Progress::Passes | Progress::Plain => output::note(&news.line()),
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
            self.tell(About::Stage, &format!("{searches} searches take turns"), "searching");
        }
    }

    /// A phase of a search was stored.
    pub(crate) fn search_phase(&self, phase: &SearchPhase, elapsed_ns: u64) {
        let line = searched(phase, elapsed_ns);
        let bar = self.tell(About::work(phase.status), &line, &line);
        bar.into_iter().for_each(ProgressBar::tick);
    }

    /// Every search that was still open had a turn.
    pub(crate) fn search_turn(&self, phases: usize, elapsed_ns: u64) {
        if matches!(self, Progress::Passes) {
            output::note(&format!("searches · {}, {phases} phases", Nanos(elapsed_ns)));
        }
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

/// Arms whose numbers a gate refused.
fn invalid(outcome: &TrialOutcome) -> impl Iterator<Item = &ArmOutcome> {
    outcome.arms.iter().filter(|arm| arm.status == Status::Invalid)
}

/// `committed: pass 2, trial 3, 16 KiB × 1 thread, …: ok, 0.62 s, at 12.1 s`.
fn line(outcome: &TrialOutcome, elapsed_ns: u64) -> String {
    let refused = invalid(outcome).map(|arm| match &arm.reason {
        Some(reason) => format!("{} invalid: {reason}", arm.arm.label),
        None => format!("{} invalid", arm.arm.label),
    });
    let how = match &outcome.reason {
        _ if outcome.status == Status::Interrupted => "interrupted, not used".to_owned(),
        Some(reason) => format!("{}: {reason}", outcome.status.word()),
        None => refused
            .reduce(|one, more| format!("{one}; {more}"))
            .unwrap_or_else(|| outcome.status.word().to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::again::sample;

    #[test]
    fn a_trial_that_went_wrong_says_why() {
        let said = |status, arm, reason: Option<&str>| {
            let mut outcome = sample::trial(2, 0);
            let reason = reason.map(str::to_owned);
            (outcome.arms[0].status, outcome.arms[0].reason) = (arm, reason.clone());
            (outcome.status, outcome.reason) = (status, reason.filter(|_| arm == Status::Ok));
            let line = line(&outcome, 12_100_000_000);
            let how = line.strip_prefix(&format!("committed: pass 2, trial 1, {}: ", outcome.cell));
            let how = how.and_then(|how| how.strip_suffix(", 400 ms, at 12.1 s"));
            (About::trial(&outcome) == About::Trouble, how.unwrap_or(&line).to_owned())
        };
        let check =
            |said: (bool, String), is_bad, how: &str| assert_eq!(said, (is_bad, how.into()));
        check(said(Status::Ok, Status::Ok, None), false, "ok");
        check(said(Status::Ok, Status::Skipped, None), false, "ok");
        check(said(Status::Failed, Status::Ok, Some("EIO")), true, "failed: EIO");
        check(said(Status::Interrupted, Status::Ok, None), true, "interrupted, not used");
        let arm = said(Status::Ok, Status::Invalid, Some("cut short"));
        check(arm, true, "send_staged invalid: cut short");
    }
}
