//! What a terminal shows: the answer of a run, one cell in detail, the list of
//! runs. Colour repeats what the words say and is never needed.

use std::collections::BTreeSet;

use iolens_model::axes::Study;
use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::{Nanos, three_digits};
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, LatencyFigures, Quantity, Verdict,
};

use crate::alone;
use crate::answers::{self, Kind, Sentence};
use crate::arm_facts;
use crate::number::{self, NONE};
use crate::parts;
use crate::results;
use crate::screen::After;
use crate::servers::Kinds;
use crate::table::{Column, Entry, Ink, Table};
use crate::words;
use crate::wrap;

mod calls;
mod files;
mod grouped;
mod servers;

pub use iolens_document::Style;
pub(crate) use iolens_document::terminal::{BOLD, DIM, RED, YELLOW};

/// The first screen of a run that has just been measured, or of a stored one.
#[must_use]
pub fn first(run: &Run, analysis: &Analysis, after: Option<After<'_>>, style: &Style) -> String {
    let screen = crate::screen::screen(run, analysis, after);
    iolens_document::terminal::draw(&screen, style)
}

/// The answer of `iolens run`: of a run with more arms than one table is read
/// for the families and the main questions, else all of [`whole`].
#[must_use]
pub fn run(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let analysis = &analysis.shown();
    if run.header.plan.syscall().is_some() {
        return calls::run(run, analysis, style);
    }
    if crate::words::is_of_files(&run.header.plan) {
        return files::whole(run, analysis, style);
    }
    if run.header.plan.server().is_some() {
        return servers::whole(run, analysis, style);
    }
    match parts::is_grouped(analysis) {
        true => grouped::run(run, analysis, style),
        false => whole(run, analysis, style),
    }
}

/// Everything: sentences, then one table per curve.
#[must_use]
pub fn whole(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let analysis = &analysis.shown();
    if run.header.plan.syscall().is_some() {
        return calls::whole(run, analysis, style);
    }
    if crate::words::is_of_files(&run.header.plan) {
        return files::whole(run, analysis, style);
    }
    if run.header.plan.server().is_some() {
        return servers::whole(run, analysis, style);
    }
    let mut out = String::new();
    let sentences = answers::sentences(run, analysis);
    let after = push_answers(&mut out, &sentences, style);
    for (curve, cells) in results::curves(analysis) {
        let table = results::results(&run.header.plan, &cells, style.columns());
        out.push('\n');
        let title = results::heading(&run.header.plan, &curve);
        out.push_str(&heading(&title, style));
        out.push('\n');
        out.push_str(&painted(&table, style));
        push_in_flight(&mut out, &cells, analysis, style);
    }
    let beside = results::receivers(run, analysis);
    for table in &beside {
        out.push('\n');
        out.push_str(&heading(&table.caption, style));
        out.push('\n');
        out.push_str(&table.text(style.columns()));
    }
    if !beside.is_empty() {
        let reading = wrap::hanging(results::RECEIVERS_READ, style.columns(), 0);
        out.push_str(&style.paint(DIM, &reading));
        out.push('\n');
    }
    out.push('\n');
    let reading = reading(run, analysis);
    out.push_str(&style.paint(DIM, &wrap::hanging(&reading, style.columns(), 0)));
    out.push('\n');
    for sentence in after {
        push_sentence(&mut out, sentence, style);
    }
    out
}

/// What zero-copy arms have under way, below the table with their rows.
fn push_in_flight(out: &mut String, cells: &[&CellAnalysis], analysis: &Analysis, style: &Style) {
    if let Some(said) = results::in_flight(cells, &analysis.told) {
        out.push_str(&style.paint(DIM, &wrap::hanging(&said, style.columns(), 0)));
        out.push('\n');
    }
}

/// How the table is to be read.
fn reading(run: &Run, analysis: &Analysis) -> String {
    if alone::is_alone(&analysis.cells) {
        return "goodput: over all of a cell's trials, with its interval.".to_owned();
    }
    let ratio = |baseline: &str| {
        format!(
            "ratio: time per message of {baseline} over the arm's, in the typical slice; above 1 \
             the arm is faster. Goodput and time of an arm are those of {baseline} and the ratio, CPU \
             time by the ratio of CPU times; exports have the totals of each, which rare long \
             slices change too."
        )
    };
    match run.header.plan.quick {
        true => ratio("the baseline"),
        false => format!(
            "{} Intervals are pointwise; verdicts use simultaneous ones over all {} contrasts, \
             which are wider.",
            ratio(&run.header.plan.baseline),
            analysis.contrasts
        ),
    }
}

/// What stands above a table.
pub(crate) fn heading(text: &str, style: &Style) -> String {
    style.paint(BOLD, &wrap::hanging(text, style.columns(), 2))
}

/// The sentences that answer, with a line between those of different kinds; returns
/// the others, which stand behind the tables.
pub(crate) fn push_answers<'a>(
    out: &mut String,
    sentences: &'a [Sentence],
    style: &Style,
) -> Vec<&'a Sentence> {
    let (before, after): (Vec<&Sentence>, Vec<&Sentence>) = sentences.iter().partition(|s| {
        matches!(
            s.kind,
            Kind::Alarm | Kind::Headline | Kind::Crossover | Kind::Answer | Kind::Search
        )
    });
    for (i, sentence) in before.iter().enumerate() {
        if i > 0 && before[i - 1].kind != sentence.kind {
            out.push('\n');
        }
        push_sentence(out, sentence, style);
    }
    after
}

pub(crate) fn push_sentence(out: &mut String, sentence: &Sentence, style: &Style) {
    let folded = wrap::hanging(&sentence.text, style.columns(), 2);
    let painted = match sentence.kind {
        Kind::Alarm => style.paint(RED, &folded),
        Kind::Headline => style.paint(BOLD, &folded),
        Kind::Turns | Kind::Caution => style.paint(YELLOW, &folded),
        Kind::NoiseFloor | Kind::Harness | Kind::Scope => style.paint(DIM, &folded),
        Kind::Crossover | Kind::Answer | Kind::Search => folded,
    };
    out.push_str(&painted);
    out.push('\n');
}

/// A table with its verdicts in colour.
pub(crate) fn painted(table: &Table, style: &Style) -> String {
    let paint = |ink: Ink, text: &str| {
        let escape = match ink {
            Ink::Rule => DIM,
            Ink::Verdict(Verdict::Faster) => "32",
            Ink::Verdict(Verdict::Slower) => "35",
            Ink::Verdict(Verdict::Equivalent) => "36",
            Ink::Verdict(Verdict::Inconclusive) => YELLOW,
            Ink::Verdict(Verdict::Invalid) => RED,
            Ink::Verdict(Verdict::Small | Verdict::Unranked) => return text.to_owned(),
        };
        style.paint(escape, text)
    };
    table.painted(style.columns(), &paint)
}

/// One cell in detail: every arm with its contrast and all its trials.
#[must_use]
pub fn show(run: &Run, analysis: &Analysis, cell: &CellAnalysis, style: &Style) -> String {
    let cell = &cell.shown();
    let plan = &run.header.plan;
    let mut out = heading(&cell.cell.to_string(), style);
    out.push('\n');
    out.push_str(&format!(
        "{} of {} used, δ = {}\n",
        number::count(cell.trials_used, "trial"),
        cell.trials_started,
        number::percent(analysis.delta)
    ));
    for sentence in results::decided(cell, &analysis.told) {
        out.push_str(&wrap::hanging(&sentence, style.columns(), 2));
        out.push('\n');
    }
    for fact in arm_facts::of(&analysis.told, Some(&cell.cell)) {
        let line = format!("{}: {} {}", fact.arm, fact.name, fact.values.join(", "));
        out.push_str(&wrap::hanging(&line, style.columns(), 2));
        out.push('\n');
    }
    for note in crate::remarks::of_cell(cell) {
        out.push_str(&wrap::hanging(&format!("note: {note}"), style.columns(), 2));
        out.push('\n');
    }
    out.push('\n');
    let table = match plan.study() {
        Study::Net => results::results(plan, &[cell], style.columns()),
        Study::File | Study::Write | Study::Copy => {
            results::files::curve(run, &analysis.told, &[cell], style.columns())
        }
        Study::Syscall => crate::calls::by_cost(run, cell, false),
        Study::Server => crate::servers::by_cost(run, &Kinds::of(analysis), cell, style.columns()),
    };
    out.push_str(&painted(&table, style));
    for arm in &cell.arms {
        out.push('\n');
        show_arm(&mut out, plan, cell, arm, style);
    }
    out
}

/// What is judged of a server besides its time, and is what the table above shows.
fn besides<'a>(cell: &CellAnalysis, arm: &'a ArmAnalysis) -> Option<&'a Contrast> {
    let is_closed = cell.cell.server().is_some() && cell.compared == Quantity::Time;
    arm.cpu_contrast.as_ref().filter(|_| is_closed)
}

fn show_arm(out: &mut String, plan: &Plan, cell: &CellAnalysis, arm: &ArmAnalysis, style: &Style) {
    out.push_str(&style.paint(BOLD, &arm.shown_label()));
    out.push('\n');
    let mut line = |text: String| {
        out.push_str(&wrap::hanging(&format!("  {text}"), style.columns(), 4));
        out.push('\n');
    };
    if let Some(reason) = &arm.reason {
        line(format!("{}: {reason}", arm.status.word()));
    }
    if let Some(cost) = besides(cell, arm) {
        let judged = format!(
            "{}: {}",
            crate::servers::judged(cost.verdict),
            crate::remarks::reason(&cost.reason)
        );
        let quick = format!("{}× as cheap as the baseline", number::ratio(cost.ratio));
        line(format!("by server CPU time: {}", if plan.quick { quick } else { judged }));
        line("by time:".to_owned());
    }
    if let Some(contrast) = &arm.contrast {
        if !plan.quick {
            let is_cost = cell.compared == Quantity::ServerCpu;
            let word = if is_cost { crate::servers::judged } else { Verdict::word };
            line(format!(
                "{}: {}",
                word(contrast.verdict),
                crate::remarks::reason(&contrast.reason)
            ));
        }
        if let Some(interval) = contrast.simultaneous {
            let words = |i| format!("simultaneous 95 % interval {}", number::bracket(i));
            line(number::interval(interval, contrast.n, words));
        }
        if let Some(sd) = contrast.sd_ln {
            line(format!("sd of trials {} of the ratio", number::percent(sd.exp() - 1.0)));
        }
    }
    if let Some(times) = &arm.latency {
        line(round_trips(times, plan.study()));
    }
    if arm.server.is_some() {
        crate::servers::lines(arm).into_iter().for_each(line);
        return;
    }
    let Some(figures) = &arm.figures else { return };
    let (unit, scale) = match figures.goodput_bits_per_s {
        Some(_) => ("goodput of each trial, Gbit/s", 1e9),
        None => ("", 1.0),
    };
    let unit = match unit {
        "" => format!("time of each trial, ns/{}", plan.study().unit()),
        unit => unit.to_owned(),
    };
    let values: Vec<String> =
        figures.trial_values.iter().map(|value| three_digits(value / scale)).collect();
    line(format!("{unit}: {}", values.join("  ")));
    let unit = plan.study().unit();
    let calls = if unit == "call" { "system calls" } else { "calls" };
    line(format!(
        "{} {calls}/{unit}, {} context switches/{unit}",
        number::optional(figures.tx_calls_per_message.map(|e| e.value)),
        number::optional(figures.context_switches_per_message.map(|e| e.value))
    ));
}

/// `round trip, µs: mean 13.2 [12.9, 13.5], p50 …; 1200 of them`.
fn round_trips(times: &LatencyFigures, study: Study) -> String {
    let what = match study {
        Study::Server => "from when due to the reply",
        _ => "round trip",
    };
    format!(
        "{what}, µs: mean {}, p50 {}, p99 {}, p99.9 {}; {} of them",
        results::interval_text(Some(times.mean_ns), 1e3),
        results::percentile(times, times.p50_ns, 0.5),
        results::percentile(times, times.p99_ns, 0.99),
        results::percentile(times, times.p999_ns, 0.999),
        times.samples
    )
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The label of the machine that measured it; null where it is not known.
    pub host: Option<String>,
    /// The run's id.
    pub id: String,
    /// The user's name for it.
    pub name: Option<String>,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// End, likewise; null while it runs, or if it was killed.
    pub finished_unix_ns: Option<u64>,
    /// What was studied.
    pub study: String,
    /// Cells with at least one trial.
    pub cells: u64,
    /// Trials that are stored.
    pub trials: u64,
    /// How it ended, in words.
    pub ended: String,
}

/// The list of runs, in the order given; which host measured each where there are several.
#[must_use]
pub fn runs(rows: &[RunRow], style: &Style) -> String {
    let hosts: BTreeSet<Option<&str>> = rows.iter().map(|row| row.host.as_deref()).collect();
    let mut columns = vec![
        Column::left("run", ""),
        Column::left("started", ""),
        Column::right("took", ""),
        Column::left("study", ""),
        Column::right("cells", ""),
        Column::right("trials", ""),
        Column::left("ended by", ""),
        Column::left("name", ""),
    ];
    if hosts.len() > 1 {
        columns.insert(1, Column::left("host", ""));
    }
    let mut table = Table::new("", columns);
    for row in rows {
        let took = row.finished_unix_ns.map(|end| end.saturating_sub(row.started_unix_ns));
        let mut entries: Vec<String> = vec![
            row.id.clone(),
            iolens_model::moment::utc(row.started_unix_ns),
            took.map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string()),
            row.study.clone(),
            row.cells.to_string(),
            row.trials.to_string(),
            row.ended.clone(),
            one_line(row.name.as_deref().unwrap_or_default()),
        ];
        if hosts.len() > 1 {
            entries.insert(1, row.host.clone().unwrap_or_else(|| NONE.to_owned()));
        }
        table.push(entries.into_iter().map(Entry::from).collect());
    }
    table.text(style.columns())
}

/// Where a run came from that was imported, as one line; null for others.
#[must_use]
pub fn origin(header: &RunHeader) -> Option<String> {
    let origin = header.origin.as_ref()?;
    Some(format!("Measured on {}.", words::imported(origin)))
}

/// A name as one line of a table: no control characters, and no more of them
/// than a name may have, which in files of older builds was any text.
pub(crate) fn one_line(name: &str) -> String {
    const LONGEST: usize = 60;
    let plain = name.replace(char::is_control, " ");
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

    const PLAIN: Style = Style { colour: false, width: 100 };

    #[test]
    fn the_answer_is_sentences_then_tables() {
        let (run, analysis) = fixture::run();
        let text = super::run(&run, &analysis, &PLAIN);
        let tables: Vec<&str> = text
            .lines()
            .skip_while(|l| !l.starts_with("4 threads,"))
            .take_while(|l| !l.starts_with("Harness"))
            .collect();
        insta::assert_snapshot!(tables.join("\n"), @"
        4 threads, net, loopback, stream, hot working set, 8 fields, received with recv
            size  arm              goodput     time  ratio                 verdict        n  copies      CPU
                                    Gbit/s   ns/msg  [95 %]                                  tx/end     ns/B
         ───────────────────────────────────────────────────────────────────────────────────────────────────
            64 B  send_staged        1.03     498    baseline                            12  2/3     12.3
                  send               1.11     462    1.08 [1.04, 1.11]     SMALL         12  1/2     11.4
                  send_per_field     0.181   2842    0.175 [0.172, 0.179]  SLOWER        12  1/2     70.1
                  sendmsg_iov        0.919    559    0.89 [0.86, 0.92]     SLOWER        12  1/2     13.8
                  A/A copy           1.03     498    1.00 [0.97, 1.03]     EQUIVALENT    12  2/3     12.3
                  memcpy             –         11.4  –                     control       12  1/1      0.172

           4 KiB  send_staged       36.9      891    baseline                            12  2/3      0.344
                  send              44.1      745    1.20 [1.18, 1.22]     FASTER        12  1/2      0.287
                  send_per_field    10.1     3243    0.275 [0.267, 0.283]  SLOWER        12  1/2      1.25
                  sendmsg_iov       39.1      840    1.06 [0.97, 1.16]     INCONCLUSIVE  12  1/2      0.328
                  A/A copy          37.1      885    1.01 [0.99, 1.03]     EQUIVALENT    12  2/3      0.341
                  memcpy             –        114    –                     control       12  1/1      0.0270

         256 KiB  send_staged       84.8    24850    baseline                            12  2/3      0.150
                  send             120      17606    1.41 [1.36, 1.47]     FASTER        12  1/2      0.106
                  send_per_field¹    –          –    –                     failed         –  1/2      –
                  sendmsg_iov      123      17187    1.45 [1.41, 1.49]     FASTER        12  1/2      0.104
                  A/A copy          84.1    25079    0.99 [0.96, 1.02]     INCONCLUSIVE  12  2/3      0.151
                  memcpy             –       6647    –                     control       12  1/1      0.0246

         ¹ failed: 2 trials failed while its slice ran: recv: ECONNRESET (connection reset by peer)

        ratio: time per message of send_staged over the arm's, in the typical slice; above 1 the arm is
        faster. Goodput and time of an arm are those of send_staged and the ratio, CPU time by the ratio of
        CPU times; exports have the totals of each, which rare long slices change too. Intervals are
        pointwise; verdicts use simultaneous ones over all 18 contrasts, which are wider.
        With 4 threads at each end there are more threads than CPUs: the threads of an end share 1 CPU and
          take turns. Such a cell compares the arms under more connections and more switching between
          threads, not on more CPUs. Ratios between the arms of a cell stand; differences between thread
          counts are of that kind.
        Noise floor: ±1.9 % (median half-width of send_staged against its hidden second copy, 6 cells;
          widest ±2.7 %). In 6 comparisons that copy was judged FASTER or SLOWER in 0, and its pointwise
          interval excludes 1 in 0; chance allows 2.
        256 KiB, 4 threads: sharing a process matters: sendmsg_iov is 1.45× as fast as send_staged where
          arms alternate in one process, 1.31× where each has its own, and the intervals do not overlap.
        The run ended because its time budget was spent, with one precision target unmet: 4 KiB × 4 threads,
          sendmsg_iov: ±9.1 % > 3 %.
        12 complete passes of at least 20 planned: intervals over few trials cover less often than they say.
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for (run, analysis) in [fixture::large(), findings()] {
            for width in [80, 100, 140] {
                let style = Style { colour: false, width };
                let mut text = super::run(&run, &analysis, &style);
                text.extend(analysis.cells.last().map(|cell| show(&run, &analysis, cell, &style)));
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(width.min(100)), "{widest:?} > {width}");
            }
        }
    }

    #[test]
    fn crossings_and_copied_sends_are_said() {
        let (run, analysis) = findings();
        let text = super::run(&run, &analysis, &Style { colour: false, width: 80 });
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("between 64 B and 4 KiB on loopback"));
        assert!(text.contains("sendmsg_zerocopy (copied)"));
        assert!(text.contains("copy was judged FASTER or SLOWER in 0"));
        let cell = analysis.cells.last().expect("a cell");
        let text = show(&run, &analysis, cell, &PLAIN);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("n/a (1200 of 3700 needed)") && text.contains("100 % of them"));
    }

    #[test]
    fn colour_adds_nothing_but_escapes() {
        let (run, analysis) = fixture::run();
        let colour = super::run(&run, &analysis, &Style { colour: true, width: 100 });
        let mut plain = String::new();
        for (i, part) in colour.split('\x1b').enumerate() {
            plain.push_str(if i == 0 { part } else { part.split_once('m').map_or("", |p| p.1) });
        }
        assert_eq!(plain, super::run(&run, &analysis, &PLAIN));
    }

    #[test]
    fn a_quick_table_has_no_verdict_column() {
        let (run, analysis) = fixture::quick();
        let text = super::run(&run, &analysis, &PLAIN);
        assert!(!text.contains("verdict") && !text.contains("FASTER"));
    }

    #[test]
    fn a_cell_shows_all_trials() {
        let (run, analysis) = fixture::run();
        let text = show(&run, &analysis, &analysis.cells[0], &PLAIN);
        let staged: Vec<&str> = text.lines().skip_while(|l| *l != "send").take(6).collect();
        insta::assert_snapshot!(staged.join("\n"), @r"
        send
          FASTER: simultaneous 95 % interval 1.046 to 1.079 is above 1.030
          simultaneous 95 % interval [1.05, 1.08]
          sd of trials 1.6 % of the ratio
          goodput of each trial, Gbit/s: 0.481 0.558 0.456 0.484 0.491 0.510 0.509 0.456 0.474 0.524 0.476
            0.487
        ");
    }

    #[test]
    fn runs_are_listed_one_per_line() {
        let (run, _) = fixture::run();
        let row = RunRow {
            host: Some("here".to_owned()),
            id: run.header.id.clone(),
            name: run.header.name.clone(),
            started_unix_ns: run.header.started_unix_ns,
            finished_unix_ns: run.header.end.map(|end| end.finished_unix_ns),
            study: "net".to_owned(),
            cells: 6,
            trials: 72,
            ended: "budget".to_owned(),
        };
        insta::assert_snapshot!(runs(std::slice::from_ref(&row), &PLAIN), @r"
        run       started                   took  study  cells  trials  ended by  name
        ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        4f1c09ab  2026-09-21 14:13 UTC  2.33 min  net        6      72  budget    before <script>alert(1)</script> & after
        ");
        let other = RunRow { host: Some("node7".to_owned()), name: None, ..row.clone() };
        let unknown = RunRow { host: None, ..other.clone() };
        let row = RunRow { name: None, ..row };
        insta::assert_snapshot!(runs(&[row, other, unknown], &PLAIN), @"
        run       host   started                   took  study  cells  trials  ended by  name
        ─────────────────────────────────────────────────────────────────────────────────────
        4f1c09ab  here   2026-09-21 14:13 UTC  2.33 min  net        6      72  budget
        4f1c09ab  node7  2026-09-21 14:13 UTC  2.33 min  net        6      72  budget
        4f1c09ab  –      2026-09-21 14:13 UTC  2.33 min  net        6      72  budget
        ");
    }
}
