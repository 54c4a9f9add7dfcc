//! The table of a cell: its models, the cheapest request first.

use iolens_model::arm::Role;
use iolens_model::load::Outcomes;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Estimate, LatencyFigures, Verdict};

use super::metrics::SWITCHES;
use super::{COST, Kind, Kinds, LATENCY, THROUGHPUT, cost_contrast, is_open, models, read};
use crate::figure::metric::Metric;
use crate::number::{NONE, optional, percent, ratio, tasks};
use crate::results::{self, interval_text, percentile};
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// A column of the table. What a narrow terminal has no room for goes in the order of
/// [`Detail::DROPPED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Model,
    Rate,
    Cost,
    Ratio,
    Verdict,
    Switches,
    P50,
    P99,
}

impl Detail {
    const ALL: [Detail; 8] = [
        Detail::Model,
        Detail::Rate,
        Detail::Cost,
        Detail::Ratio,
        Detail::Verdict,
        Detail::Switches,
        Detail::P50,
        Detail::P99,
    ];

    const DROPPED: [Detail; 3] = [Detail::Verdict, Detail::P50, Detail::Switches];

    fn column(self) -> Column {
        match self {
            Detail::Model => Column::left("model", ""),
            Detail::Rate => Column::right("rate", "req/s"),
            Detail::Cost => Column::left("server CPU", "µs/req [95 %]"),
            Detail::Ratio => Column::right("ratio", ""),
            Detail::Verdict => Column::left("verdict", ""),
            Detail::Switches => Column::decimal("switches", "per req"),
            Detail::P50 => Column::right("p50", "µs"),
            Detail::P99 => Column::right("p99", "µs"),
        }
    }

    fn entry(self, arm: &ArmAnalysis) -> Entry {
        let value = |metric: &Metric| read(metric, arm).map(|estimate| estimate.value);
        match self {
            Detail::Model if arm.status != Status::Ok => Entry::toned(label(arm), Tone::Faint),
            Detail::Model => {
                Entry::toned(label(arm), crate::figure::style::tone(&arm.arm.primitive))
            }
            Detail::Rate => optional(value(&THROUGHPUT)).into(),
            Detail::Cost => interval_text(read(&COST, arm), 1.0).into(),
            Detail::Ratio => ratio_entry(arm),
            Detail::Verdict => verdict(arm),
            Detail::Switches => optional(value(&SWITCHES)).into(),
            Detail::P50 => optional(value(&LATENCY[0])).into(),
            Detail::P99 => optional(value(&LATENCY[1])).into(),
        }
    }
}

fn label(arm: &ArmAnalysis) -> String {
    match arm.arm.role {
        Role::SelfCheck => "A/A copy".to_owned(),
        _ => arm.arm.label.clone(),
    }
}

fn ratio_entry(arm: &ArmAnalysis) -> Entry {
    match (cost_contrast(arm), arm.arm.role) {
        (Some(contrast), _) if arm.status == Status::Ok => ratio(contrast.ratio).into(),
        (_, Role::Baseline) => Entry::toned("1", Tone::Faint),
        _ => Entry::toned(NONE, Tone::Faint),
    }
}

fn verdict(arm: &ArmAnalysis) -> Entry {
    if arm.status != Status::Ok {
        return crate::remarks::status(arm.status);
    }
    match cost_contrast(arm) {
        Some(contrast) => crate::remarks::verdict(judged(contrast.verdict), contrast.verdict),
        None => Entry::default(),
    }
}

/// A verdict about what a request costs.
pub(crate) fn judged(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "CHEAPER",
        Verdict::Slower => "DEARER",
        other => other.word(),
    }
}

/// The models of a cell by what a request costs them, those without numbers last; kinds
/// that were offered rates of their own under each other.
pub(crate) fn by_cost(run: &Run, kinds: &Kinds<'_>, cell: &CellAnalysis, width: usize) -> Table {
    let is_full = |detail: &Detail| !(run.header.plan.quick && *detail == Detail::Verdict);
    let mut details: Vec<Detail> = Detail::ALL.into_iter().filter(is_full).collect();
    let mut table = fill(run, kinds, cell, &details);
    for dropped in Detail::DROPPED {
        if table.width() <= width {
            break;
        }
        details.retain(|detail| *detail != dropped);
        table = fill(run, kinds, cell, &details);
    }
    table
}

fn fill(run: &Run, kinds: &Kinds<'_>, cell: &CellAnalysis, details: &[Detail]) -> Table {
    let columns = details.iter().map(|detail| detail.column()).collect();
    let mut table = Table::new(words::subject(&run.header, &cell.cell), columns);
    let views = kinds.cells(cell);
    for (kind, view) in &views {
        let mut arms: Vec<&ArmAnalysis> = view.arms.iter().collect();
        let cost = |arm: &ArmAnalysis| read(&COST, arm).map_or(f64::INFINITY, |e| e.value);
        arms.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        if kind.is_some() {
            // Who has no numbers was offered no rate.
            arms.retain(|arm| arm.status == Status::Ok);
        }
        push(&mut table, &arms, details);
    }
    if views.iter().any(|(kind, _)| kind.is_some()) {
        let without: Vec<&ArmAnalysis> =
            cell.arms.iter().filter(|arm| arm.status != Status::Ok).collect();
        push(&mut table, &without, details);
    }
    table
}

/// Rows of a group.
fn push(table: &mut Table, arms: &[&ArmAnalysis], details: &[Detail]) {
    for (i, arm) in arms.iter().enumerate() {
        let remark = results::remark_on(arm, cost_contrast(arm)).map(|remark| table.note(&remark));
        let entry = |detail: &Detail| match detail {
            Detail::Model => Entry { note: remark, ..detail.entry(arm) },
            other => other.entry(arm),
        };
        let row = details.iter().map(entry).collect();
        if i == 0 { table.push_group(row) } else { table.push(row) }
    }
}

/// How the table is read.
pub(crate) fn reading(run: &Run) -> String {
    let plan = &run.header.plan;
    let baseline = &plan.baseline;
    format!(
        "server CPU: user and kernel time of all threads and children of the server over the \
         requests that it answered. ratio: that of {baseline} over the model's; above 1 the model \
         is cheaper; the CPU time and the rate of a model are those of {baseline} and its ratio, \
         but rates that were offered. p50, p99: from when a request was due to its reply."
    )
}

/// What was offered in a cell, a line for each kind; nothing in a closed loop.
pub(crate) fn offered(kinds: &Kinds<'_>, cell: &CellAnalysis) -> Vec<String> {
    if !is_open(cell) {
        return Vec::new();
    }
    let line = |(kind, _): &(Option<Kind>, CellAnalysis)| {
        let rate = rate_words(kinds.offered(cell, *kind)?);
        Some(match kind {
            Some(kind) => format!("{}: {rate} requests/s offered", kind.name()),
            None => format!("{rate} requests/s offered"),
        })
    };
    kinds.cells(cell).iter().filter_map(line).collect()
}

/// `12300`, or `12300 to 12900` where it was not the same in every trial.
pub(crate) fn rate_words((least, most): (f64, f64)) -> String {
    let (least, most) = (optional(Some(least)), optional(Some(most)));
    if least == most { least } else { format!("{least} to {most}") }
}

/// What is said of one model besides its row.
pub(crate) fn lines(arm: &ArmAnalysis) -> Vec<String> {
    let Some(server) = &arm.server else { return Vec::new() };
    let mut lines = vec![format!(
        "requests: {} per second; {}",
        interval_text(Some(server.requests_per_s), 1.0),
        ended(&server.outcomes)
    )];
    let busy = |share: Option<Estimate>| {
        share.map_or_else(|| NONE.to_owned(), |share| percent(share.value))
    };
    let saturated = server.saturated.map_or(NONE, |saturated| saturated.word());
    lines.push(format!(
        "busy: server {}, busiest thread of the client {}; saturated: {saturated}; at most {} at \
         the server at once",
        busy(server.server_busy),
        busy(server.client_busy),
        tasks(server.tasks_max),
    ));
    let limits = &server.limits;
    let all = [limits.client_busy, limits.client_late, limits.rate_not_kept];
    let said = |limit| format!("limit: {}", crate::remarks::limited(&limit));
    lines.extend(all.into_iter().flatten().map(said));
    lines
}

/// `120000 ok, 3 reset`.
pub(crate) fn ended(outcomes: &Outcomes) -> String {
    let all = [
        (outcomes.ok, "ok"),
        (outcomes.timeout, "timed out"),
        (outcomes.refused, "refused"),
        (outcomes.reset, "reset"),
        (outcomes.invalid, "with a wrong reply"),
        (outcomes.abandoned, "abandoned"),
    ];
    let said = all.iter().enumerate().filter(|(i, (count, _))| *i == 0 || *count > 0);
    said.map(|(_, (count, word))| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Latency of a cell's models with intervals, from when requests were due and from when
/// they were sent; null without any.
pub(crate) fn further(cell: &CellAnalysis) -> Option<Table> {
    let columns = vec![
        Column::left("model", ""),
        Column::left("mean", "µs [95 %]"),
        Column::left("p50", "µs [95 %]"),
        Column::left("p99", "µs [95 %]"),
        Column::left("p99.9", "µs [95 %]"),
        Column::left("p99 from sent", "µs [95 %]"),
        Column::left("client late, p99", "µs [95 %]"),
        Column::right("requests timed", ""),
    ];
    let mut table = Table::new("Latency, from when a request was due to its reply", columns);
    for arm in models(cell) {
        let Some(times) = &arm.latency else { continue };
        let server = arm.server.as_ref();
        let p99 = |times: Option<&LatencyFigures>| {
            times.map_or_else(|| NONE.to_owned(), |times| percentile(times, times.p99_ns, 0.99))
        };
        table.push(vec![
            Entry::toned(label(arm), crate::figure::style::tone(&arm.arm.primitive)),
            interval_text(Some(times.mean_ns), 1e3).into(),
            percentile(times, times.p50_ns, 0.5).into(),
            p99(Some(times)).into(),
            percentile(times, times.p999_ns, 0.999).into(),
            p99(server.and_then(|server| server.from_sent.as_ref())).into(),
            p99(server.and_then(|server| server.lag.as_ref())).into(),
            times.samples.to_string().into(),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
