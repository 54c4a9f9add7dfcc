//! What a terminal shows: the answer of a run, one cell in detail, the list of
//! runs. Colour repeats what the words say and is never needed.

use iolens_document::Joined;
use std::collections::BTreeSet;

use iolens_document::plain;
use iolens_document::table::{Table, left, right};
use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, LatencyFigures};

use crate::arms;
use crate::number::{self, InWords};
use crate::remarks;
use crate::results::detail;
use crate::screen::After;
use crate::sections::Form;
use crate::studies;
use crate::studies::entry::OfSetting;
use iolens_document::sentence;

pub use iolens_document::Style;
pub use iolens_document::plain::is_obeyed;
pub use iolens_document::sentence::hanging;
pub use iolens_document::terminal::ESCAPES;
pub(crate) use iolens_document::terminal::{BOLD, DIM, RED, YELLOW, heading};

/// The first screen of a run that has just been measured, or of a stored one.
pub fn first(run: &Run, analysis: &Analysis, after: Option<After<'_>>, style: &Style) -> String {
    let screen = studies::screen(run, analysis, after);
    iolens_document::terminal::draw(&screen, style)
}

/// What fresh trials on one curve say of the crossovers of a run, which has been told
/// ([`Analysis::confirm`]); with its page it ends with what to type next.
pub fn confirmed(
    of: (&Run, &Analysis),
    fresh: (&Run, &Analysis),
    page: Option<&str>,
    style: &Style,
) -> String {
    iolens_document::terminal::draw(&crate::screen::confirm::confirmed(of, fresh, page), style)
}

/// What stands below the first screen; of a run of very many methods without what only some read.
pub fn run(run: &Run, analysis: &Analysis, style: &Style) -> String {
    below(run, &analysis.shown(), false, style)
}

/// All that stands there.
pub fn whole(run: &Run, analysis: &Analysis, style: &Style) -> String {
    below(run, &analysis.shown(), true, style)
}

fn below(run: &Run, analysis: &Analysis, is_whole: bool, style: &Style) -> String {
    let form = Form::Terminal { columns: style.columns(), is_whole };
    iolens_document::terminal::sections(&studies::sections(run, analysis, form), style)
}

/// One cell in detail: every arm with its contrast and all its trials.
pub fn show(run: &Run, analysis: &Analysis, cell: &CellAnalysis, style: &Style) -> String {
    let cell = &cell.shown();
    let plan = &run.header.plan;
    let table = match studies::of(plan.study()).setting {
        OfSetting::Section(section) => {
            let section = section(run, analysis, cell);
            return iolens_document::terminal::sections(&[section], style);
        }
        OfSetting::Arms(table) => table(run, analysis, cell, style.columns()),
    };
    let mut out = heading(&cell.cell.to_string(), style);
    out.push('\n');
    out.push_str(&format!(
        "{} of {} used, δ = {}\n",
        number::count(cell.trials_used, "trial"),
        cell.trials_started,
        number::percent(analysis.delta)
    ));
    let facts = arms::facts(&analysis.told, Some(&cell.cell)).into_iter();
    let facts = facts
        .map(|fact| format!("{}: {} {}", fact.arms.join(", "), fact.name, fact.values.join(", ")));
    let notes = remarks::of_cell(cell).map(|note| format!("note: {note}"));
    for line in detail::decided(cell, &analysis.told).into_iter().chain(facts).chain(notes) {
        out.push_str(&sentence::hanging(&line, style.columns(), 2));
        out.push('\n');
    }
    out.push('\n');
    out.push_str(&iolens_document::terminal::table(&table, style));
    for arm in &cell.arms {
        out.push('\n');
        show_arm(&mut out, plan, arm, style);
    }
    out
}

fn show_arm(out: &mut String, plan: &Plan, arm: &ArmAnalysis, style: &Style) {
    out.push_str(&style.paint(BOLD, &arm.shown_label()));
    out.push('\n');
    let mut line = |text: String| {
        out.push_str(&sentence::hanging(&format!("  {text}"), style.columns(), 4));
        out.push('\n');
    };
    if let Some(reason) = &arm.reason {
        line(format!("{}: {reason}", arm.status.word()));
    }
    if let Some(contrast) = &arm.contrast {
        if !plan.quick {
            line(format!("{}: {}", contrast.verdict.word(), remarks::reason(&contrast.reason)));
        }
        let interval =
            contrast.simultaneous.filter(|_| plan.quick || !contrast.reason.has_interval());
        if let Some(interval) = interval {
            let words = |i| format!("simultaneous 95% interval {}", number::bracket(i));
            line(number::interval(interval, contrast.n, words));
        }
        if let Some(sd) = contrast.sd_ln {
            line(format!("sd of trials {} of the ratio", number::percent(sd.exp() - 1.0)));
        }
    }
    if let Some(times) = &arm.latency {
        line(round_trips(times));
    }
    let Some(figures) = &arm.figures else { return };
    let (values, scale) = match figures.goodput_bits_per_s {
        Some(_) => ("throughput of each trial, Gbit/s".to_owned(), 1e9),
        None => (format!("time of each trial, ns/{}", plan.study().unit()), 1.0),
    };
    let trials = figures.trial_values.iter().map(|value| three_digits(value / scale));
    line(format!("{values}: {}", trials.joined("  ")));
    let unit = plan.study().unit();
    let calls = if unit == "call" { "system calls" } else { "calls" };
    let counted = [
        (figures.tx_calls_per_message, calls),
        (figures.context_switches_per_message, "context switches"),
    ];
    let counted = counted
        .into_iter()
        .filter_map(|(each, what)| Some(format!("{} {what}/{unit}", three_digits(each?.value))));
    let counted: Vec<String> = counted.collect();
    if !counted.is_empty() {
        line(counted.join(", "));
    }
}

/// `round trip, µs: mean 13.2 [12.9, 13.5], p50 …; 1200 of them`.
fn round_trips(times: &LatencyFigures) -> String {
    format!(
        "round trip, µs: mean {}, p50 {}, p99 {}, p99.9 {}; {} of them",
        number::interval_text(Some(times.mean_ns), 1e3),
        detail::percentile(times, times.p50_ns, 0.5),
        detail::percentile(times, times.p99_ns, 0.99),
        detail::percentile(times, times.p999_ns, 0.999),
        times.samples
    )
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The label of the machine that measured it, where it is known.
    pub host: Option<String>,
    /// The run's id.
    pub id: String,
    /// The user's name for it.
    pub name: Option<String>,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// How long it took, ns; `None` while it runs, or if it was killed.
    pub took_ns: Option<u64>,
    /// What was studied.
    pub study: String,
    /// Settings with at least one trial.
    pub cells: u64,
    /// Trials that are stored.
    pub trials: u64,
    /// How it ended, in words.
    pub ended: String,
}

/// The list of runs, in the order given; which host measured each where there are several.
pub fn runs(rows: &[RunRow], now_unix_ns: u64, style: &Style) -> String {
    let hosts: BTreeSet<Option<&str>> = rows.iter().map(|row| row.host.as_deref()).collect();
    let row = |row: &RunRow| {
        let took = row.took_ns;
        let when = iolens_model::units::relative_utc(row.started_unix_ns, now_unix_ns);
        let words = |name, words: String| left(name, "", words);
        let number = |name, number: u64| right(name, "", number.to_string());
        let mut all = vec![
            words("run", row.id.clone()),
            words("host", row.host.clone().or_dash(|host| host)),
            words("when (UTC)", when),
            words("study", row.study.clone()),
            number("settings", row.cells),
            number("trials", row.trials),
            words("took", took.or_empty(crate::screen::effort::spent)),
            words("state", row.ended.clone()),
            words("name", one_line(row.name.as_deref().unwrap_or_default())),
        ];
        all.retain(|(column, _)| hosts.len() > 1 || column.name != "host");
        all
    };
    Table::of("", rows.iter().map(row)).text(style.columns())
}

/// Where a run came from that was imported, as one line; `None` for others.
pub fn origin(header: &RunHeader) -> Option<String> {
    let origin = header.origin.as_ref()?;
    let when = iolens_model::units::utc(origin.imported_unix_ns);
    Some(format!("Measured on {} (imported from {} on {when}).", origin.host, origin.path))
}

/// A name as one line of a table: no control characters, and no more of them
/// than a name may have: in a file of somebody else it is any text.
pub(crate) fn one_line(name: &str) -> String {
    const LONGEST: usize = 60;
    let plain = plain::shown(name);
    if plain.chars().count() <= LONGEST {
        return plain;
    }
    plain.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture_findings::findings;

    const PLAIN: Style = Style::plain(100);

    #[test]
    fn what_stands_below_the_first_screen() {
        for (name, (run, analysis)) in [
            ("full", fixture::run()),
            ("quick", fixture::quick()),
            ("classic", fixture::classic()),
            ("findings", findings()),
        ] {
            insta::assert_snapshot!(name, super::run(&run, &analysis, &PLAIN));
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for (run, analysis) in [fixture::large(), findings()] {
            for width in [80, 100, 140] {
                let style = Style::plain(width);
                let mut text = super::run(&run, &analysis, &style);
                text.extend(analysis.cells.last().map(|cell| show(&run, &analysis, cell, &style)));
                for line in text.lines() {
                    assert!(line.chars().count() <= width.min(100), "over {width}: {line}");
                }
            }
        }
    }

    #[test]
    fn a_setting_says_what_became_of_its_sends() {
        let (run, analysis) = findings();
        let cell = analysis.cells.last().expect("a cell");
        let text = show(&run, &analysis, cell, &PLAIN);
        let text = text.split_whitespace().joined(" ");
        assert!(text.contains("n/a (1200 of 3700 needed)") && text.contains("100% of them"));
    }

    #[test]
    fn colour_adds_nothing_but_escapes() {
        let (run, analysis) = fixture::run();
        let colour = super::run(&run, &analysis, &Style { colour: true, ..Style::plain(100) });
        let mut plain = String::new();
        for (i, part) in colour.split('\x1b').enumerate() {
            plain.push_str(if i == 0 { part } else { part.split_once('m').map_or("", |p| p.1) });
        }
        assert_eq!(plain, super::run(&run, &analysis, &PLAIN));
    }

    #[test]
    fn a_quick_look_has_no_verdicts() {
        let (run, analysis) = fixture::quick();
        let text = super::run(&run, &analysis, &PLAIN);
        assert!(!text.contains("FASTER") && !text.contains("tie within"), "{text}");
    }

    #[test]
    fn a_cell_shows_all_trials() {
        let (run, analysis) = fixture::run();
        let text = show(&run, &analysis, &analysis.cells[0], &PLAIN);
        let staged = text.lines().skip_while(|l| *l != "send").take(6);
        insta::assert_snapshot!(staged.joined("\n"));
    }

    #[test]
    fn runs_are_listed_one_per_line() {
        let (run, _) = fixture::run();
        let now = run.header.started_unix_ns + 3_600_000_000_000;
        let row = RunRow {
            host: Some("here".to_owned()),
            id: run.header.id.clone(),
            name: run.header.name.clone(),
            started_unix_ns: run.header.started_unix_ns,
            took_ns: run.header.took_ns(),
            study: "net".to_owned(),
            cells: 6,
            trials: 72,
            ended: "budget".to_owned(),
        };
        insta::assert_snapshot!(runs(std::slice::from_ref(&row), now, &PLAIN));
        let other = RunRow { host: Some("node7".to_owned()), name: None, ..row.clone() };
        let unknown = RunRow { host: None, ..other.clone() };
        let row = RunRow { name: None, ..row };
        insta::assert_snapshot!(runs(&[row, other, unknown], now, &PLAIN));
    }
}
