//! The study `server`: what its tables and figures have in common. A request costs a server CPU
//! time; how many there are per second comes second.

use std::borrow::Cow;

use iolens_document::table::{Column, Entry, Table};
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_model::units::three_digits;
pub(crate) use iolens_stats::analysis::Kind;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, CpuOf, CpuShares, Estimate,
};

use super::{OfSetting, StudyReport};
pub(crate) use crate::arms::methods as models;
use crate::figure::chart;
use crate::figure::metric::Metric;
use crate::groups::distinct;
use crate::parts::{self, Part};
use crate::records::columns::{Ends, StudyColumns};
use crate::sections::who_wins;
use crate::{number, words};

pub(crate) mod counters;
pub(crate) mod figures;
#[cfg(test)]
mod group_tests;
pub(crate) mod screen;
pub(crate) mod searches;
#[cfg(test)]
pub(crate) mod searches_tests;
pub(crate) mod sections;
pub(crate) mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::counters::{COST, COUNTERS, LATENCY, THROUGHPUT};

pub(super) static SERVER: StudyReport = StudyReport {
    per: " each",
    nothing: "request by a client that does nothing",
    common: iolens_model::cell::Cell::words,
    screen: screen::fill,
    next: |_, _| vec![iolens_document::Text::code("iolens run server --slo 'p99<2ms'")],
    question: "What does a request cost?",
    claim: who_wins,
    sections: sections::sections,
    last: |_, _| None,
    setting: OfSetting::Section(sections::one),
    plates: figures::all,
    sizes: chart::MESSAGES,
    leads: false,
    figures: sections::figures,
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

/// Models under one load that can be ranked together.
pub(crate) struct View {
    /// What they make for each connection; `None` where all are together.
    pub(crate) kind: Option<Kind>,
    /// With the baseline at their rate.
    pub(crate) cell: CellAnalysis,
    /// `16 connections, offered 50% of the slowest: 32800 requests/s`.
    pub(crate) load: String,
    pub(crate) is_open: bool,
}

impl View {
    /// Its load, and its kind where the kinds have rates of their own.
    pub(crate) fn heading(&self) -> String {
        format!("{}{}", self.load, self.of_kind())
    }

    /// What follows the words for its load.
    pub(crate) fn of_kind(&self) -> String {
        let kind = self.one_per_connection().map(kind_words);
        kind.map_or_else(String::new, |words| format!(", {words}"))
    }

    pub(crate) fn one_per_connection(&self) -> Option<bool> {
        self.kind.map(|kind| kind == Kind::Alone)
    }
}

/// What is said of models that make a process or a thread for each connection, and of others.
pub(crate) fn kind_words(one_per_connection: bool) -> &'static str {
    if one_per_connection { "one process or thread per connection" } else { "shared threads" }
}

/// Every load of a run, first those at a fixed rate, where all models do the same work.
pub(crate) fn views(run: &Run, analysis: &Analysis) -> Vec<View> {
    let (open, closed): (Vec<&CellAnalysis>, Vec<&CellAnalysis>) =
        analysis.cells.iter().partition(|cell| is_open(cell));
    let all = open.into_iter().chain(closed);
    all.flat_map(|cell| views_of(run, analysis, cell)).collect()
}

/// Those of one setting.
pub(crate) fn views_of(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Vec<View> {
    let setting = words::subject(&run.header, &cell.cell);
    let view = |(kind, own): (Option<Kind>, CellAnalysis)| {
        let rate = analysis.kinds.offered(&cell.cell, kind).filter(|_| is_open(cell));
        let load = match rate {
            Some((least, most)) => {
                let rate = number::extent(three_digits(least), three_digits(most));
                format!("{setting}: {rate} requests/s")
            }
            None => format!("{setting}: each as fast as it can"),
        };
        View { kind, cell: own, load, is_open: is_open(cell) }
    };
    ranked_together(analysis, cell).into_iter().map(view).collect()
}

/// The models of a cell that can be ranked together, cost against cost: all, or where
/// kinds were offered rates of their own each kind with the baseline at its rate.
fn ranked_together(analysis: &Analysis, cell: &CellAnalysis) -> Vec<(Option<Kind>, CellAnalysis)> {
    let of_kind = &analysis.kinds.of_kind;
    if of_kind.is_empty() || !is_open(cell) {
        return vec![(None, cell.shown())];
    }
    let split = |(kind, _): &(Kind, Analysis)| {
        let own = at_rate(analysis, cell, *kind);
        let has = |arm: &ArmAnalysis| arm.arm.role == Role::Compared && arm.status == Status::Ok;
        own.arms.iter().any(has).then_some((Some(*kind), own))
    };
    of_kind.iter().filter_map(split).collect()
}

/// The models of one kind in a cell that offers a rate, with the baseline at the rate of the kind.
fn at_rate(analysis: &Analysis, cell: &CellAnalysis, kind: Kind) -> CellAnalysis {
    let alone = analysis.kinds.of_kind.iter().find(|(known, _)| *known == kind);
    let found = alone.and_then(|(_, own)| own.cells.iter().find(|own| own.cell == cell.cell));
    let of = |arm: &ArmAnalysis| -> Option<ArmAnalysis> {
        match arm.arm.role {
            Role::Compared => (analysis.kinds.kind(&arm.arm) == kind).then(|| arm.clone()),
            _ => found?.arms.iter().find(|own| own.arm.label == arm.arm.label).cloned(),
        }
    };
    let arms = cell.arms.iter().filter_map(of).collect();
    CellAnalysis { arms, ..cell.clone() }.shown()
}

/// The parts of a run that have figures of their own, each with its analysis.
pub(crate) fn shown(analysis: &Analysis) -> Vec<(Option<Part>, Cow<'_, Analysis>)> {
    let parts = parts::of_models(analysis, |arm| analysis.kinds.kind(arm) == Kind::Alone);
    if parts.is_empty() {
        return vec![(None, Cow::Borrowed(analysis))];
    }
    let of = |part: Part| {
        let kind = if part.id == parts::ALONE { Kind::Alone } else { Kind::Shared };
        let mut own = part.of(analysis);
        if !analysis.kinds.of_kind.is_empty() {
            for cell in own.cells.iter_mut().filter(|cell| is_open(cell)) {
                *cell = at_rate(analysis, cell, kind);
            }
        }
        (Some(part), Cow::Owned(own))
    };
    parts.into_iter().map(of).collect()
}

/// Whether the client was the limit of a rate.
pub(crate) fn is_bounded(arm: &ArmAnalysis) -> bool {
    arm.server.as_ref().is_some_and(|server| server.limits.client_busy.is_some())
}

/// Whether a cell offers a rate.
pub(crate) fn is_open(cell: &CellAnalysis) -> bool {
    cell.cell.server().is_some_and(ServerSetting::is_open_loop)
}

/// The contrast of what a request costs, server CPU time against server CPU time.
pub(crate) fn cost_contrast(arm: &ArmAnalysis) -> Option<&Contrast> {
    arm.cpu_contrast.as_ref()
}

/// A metric of a model in the unit that is shown.
pub(crate) fn read(metric: &Metric, arm: &ArmAnalysis) -> Option<Estimate> {
    metric.of(arm)
}

// Use of every processor of the machine in a cell: before its servers were started, when they
// stood and nobody asked, and in the slices of each. Softirq stands apart: on loopback and veth it
// moves the packets of both ends, whoever is charged for it.

/// A kind of a processor's time: its word, its hue, and its share.
type KindOfTime = (&'static str, &'static str, fn(&CpuShares) -> f64);

/// The kinds that are told apart.
pub(crate) const CPU_KINDS: [KindOfTime; 5] = [
    ("user", "blue", |cpu| cpu.user),
    ("kernel", "orange", |cpu| cpu.system),
    ("interrupts", "purple", |cpu| cpu.irq),
    ("softirq", "green", |cpu| cpu.softirq),
    ("steal", "vermilion", |cpu| cpu.steal),
];

/// When processors were watched.
pub(crate) struct Watched<'a> {
    /// `before`, `idle`, or the model in whose slices.
    pub(crate) when: String,
    pub(crate) cpus: &'a [CpuShares],
}

/// Every time in a cell; none where nothing could be read. What was before any server
/// stood, and idle, is that of the first model: all stand ready at the same time, but for
/// those that are measured by themselves.
pub(crate) fn watched(cell: &CellAnalysis) -> Vec<Watched<'_>> {
    let servers = || models(cell).filter_map(|arm| Some((arm, arm.server.as_ref()?)));
    let mut all: Vec<Watched<'_>> = Vec::new();
    if let Some((_, first)) = servers().next() {
        all.push(Watched { when: "before the servers".to_owned(), cpus: &first.cpus_before });
        all.push(Watched { when: "idle, all connected".to_owned(), cpus: &first.cpus_idle });
    }
    all.extend(servers().map(|(arm, server)| Watched {
        when: arm.arm.label.clone(),
        cpus: &server.cpus_in_slices,
    }));
    all.retain(|watched| !watched.cpus.is_empty());
    all
}

/// The processors of one end taken together, in the order of [`CpuOf`].
pub(crate) fn by_end(cpus: &[CpuShares]) -> Vec<(CpuOf, CpuShares)> {
    let mut ends = distinct(cpus.iter().map(|cpu| cpu.of));
    ends.sort_unstable();
    let of_end = |end: CpuOf| {
        let own = || cpus.iter().filter(move |cpu| cpu.of == end);
        let ticks: u64 = own().map(|cpu| cpu.ticks).sum();
        let mean = |kind: fn(&CpuShares) -> f64| {
            own().map(|cpu| kind(cpu) * cpu.ticks as f64).sum::<f64>() / ticks as f64
        };
        let (user, system, irq) = (mean(|c| c.user), mean(|c| c.system), mean(|c| c.irq));
        let (softirq, steal, idle) = (mean(|c| c.softirq), mean(|c| c.steal), mean(|c| c.idle));
        let cpu = own().map(|cpu| cpu.cpu).min().unwrap_or(0);
        (end, CpuShares { cpu, of: end, user, system, irq, softirq, steal, idle, ticks })
    };
    ends.into_iter().map(of_end).collect()
}

/// A row for each processor at each time; `None` where nothing could be read.
pub(crate) fn use_of_cpus(cell: &CellAnalysis, caption: &str) -> Option<Table> {
    let mut columns = vec![
        Column::left("when", "or in whose slices"),
        Column::right("CPU", ""),
        Column::left("of", ""),
    ];
    columns.extend(CPU_KINDS.map(|(name, ..)| Column::right(name, "%")));
    columns.push(Column::right("idle", "%"));
    columns.push(Column::right("watched for", "ticks of 10 ms"));
    let mut table = Table::new(caption, columns);
    for Watched { when, cpus } in watched(cell) {
        for (i, cpu) in cpus.iter().enumerate() {
            let share = |share: f64| Entry::from(number::percent(share).trim_end_matches('%'));
            let mut row: Vec<Entry> =
                vec![when.as_str().into(), cpu.cpu.to_string().into(), cpu.of.word().into()];
            row.extend(CPU_KINDS.map(|(_, _, of)| share(of(cpu))));
            row.extend([share(cpu.idle), cpu.ticks.to_string().into()]);
            table.push_row(i == 0, row);
        }
    }
    table.with_rows()
}
