//! The columns of every export, in their order: the only list of them.
//!
//! `{name}` stands for the columns of [`part`] or [`counted`], `{prefix:name}` for the same with
//! the prefix before each.

use iolens_model::axes::Study;
use iolens_model::outcome::{KernelCounts, PmuCounts};
use iolens_model::tuning::Tuning;
use iolens_stats::analysis::EndMetric;

use crate::studies;
use crate::studies::entry::{Ends, StudyColumns};
use crate::totals::Count;

/// What rows are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Arms,
    Slices,
    Cells,
    Phases,
    Pairs,
}

/// What rows of a study have.
pub(crate) struct Columns {
    pub(super) named: Vec<Column>,
    /// What has no place in a column, so that only JSON has it.
    pub(super) whole: Vec<Column>,
}

/// A column, and where its value is.
pub(super) struct Column {
    pub(super) name: String,
    /// The end of an interval that it is.
    pub(super) end: Option<&'static str>,
    /// The estimate whose end it is, or itself.
    pub(super) whole: String,
    /// What that is called in what it is made from.
    pub(super) key: String,
    /// Of what is counted in slices.
    pub(super) count: Option<Count>,
}

impl Column {
    fn new(study: Study, name: String) -> Column {
        let (end, whole) = of_end(&name).unzip();
        let whole = whole.unwrap_or_else(|| name.clone());
        let key = key(study, &whole);
        // What is found of a file around several slices is no sum.
        let count = Count::named(&key).filter(|_| !names(study, "{file}").contains(&name));
        Column { name, end, whole, key, count }
    }
}

/// The end of an interval that such a column is, and what the interval is of.
pub(crate) fn of_end(column: &str) -> Option<(&'static str, String)> {
    let end = ["low", "high"].into_iter().find(|end| column.contains(&format!("_{end}")))?;
    Some((end, column.replacen(&format!("_{end}"), "", 1)))
}

fn columns_of(study: Study) -> &'static StudyColumns {
    &studies::of(study).columns
}

/// The columns of such rows in a study.
pub(crate) fn of(kind: Kind, study: Study) -> Columns {
    let own = columns_of(study);
    let [of_arms, of_cells] = own.whole;
    let (template, whole) = match kind {
        Kind::Arms => (own.arms, of_arms),
        Kind::Slices => (SLICES, ""),
        Kind::Cells => (CELLS, of_cells),
        Kind::Phases => (PHASES, "latency_histogram from_sent_histogram"),
        Kind::Pairs => (PAIRS, ""),
    };
    let columns = |template| {
        names(study, template).into_iter().map(|name| Column::new(study, name)).collect()
    };
    Columns { named: columns(template), whole: columns(whole) }
}

/// What a column is called in what it is made from.
fn key(study: Study, column: &str) -> String {
    let own = columns_of(study);
    if let Some((_, key)) = own.keys.iter().find(|(name, _)| *name == column) {
        return (*key).to_owned();
    }
    let whole = match (own.ends, column) {
        (_, "arm") => "label",
        (Ends::Both, _) => column,
        (Ends::ServerAndClient, _) => {
            return column.replacen("server_", "tx_", 1).replacen("client_", "rx_", 1);
        }
        (Ends::One, "write_bytes_per_s" | "copied_bytes_per_s") => "read_bytes_per_s",
        (Ends::One, "bytes") => "tx_bytes",
        (Ends::One, units) if units == study.units() => "tx_messages",
        (Ends::One, _) => {
            let column = column.replacen(&format!("per_{}", study.unit()), "per_message", 1);
            return match (column.strip_prefix("system_calls"), column.strip_prefix("cpu_ns")) {
                (Some(per), _) => format!("tx_calls{per}"),
                (_, Some(per)) => format!("tx_cpu_ns{per}"),
                (None, None) => column,
            };
        }
    };
    whole.to_owned()
}

pub(super) fn names(study: Study, template: &str) -> Vec<String> {
    let one = |word: &str| -> Vec<String> {
        let Some((before, (name, after))) =
            word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        else {
            return vec![word.to_owned()];
        };
        let (prefix, name) = name.split_once(':').unwrap_or(("", name));
        let found = counted(study, name).unwrap_or_else(|| names(study, part(study, name)));
        found.iter().map(|name| format!("{before}{prefix}{name}{after}")).collect()
    };
    template.split_ascii_whitespace().flat_map(one).collect()
}

const SLICES: &str = "run pass position seq round kind arm primitive {axes} isolated time_ns
    all_active_ns {slice} role unused {at_rate} host";

const PHASES: &str = "run phase arm primitive {axes} step rate_per_s achieved_per_s phase_ns
    dropped_ns duration_ns status reason {client} {ends} {latency_:times} {server} steal_ticks
    host";

const CELLS: &str = "run study arm primitive role {axes} status reason baseline trials_started
    trials_used n {:ratio} ratio_sd_ln total_ratio tail delta indicative verdict verdict_reason
    trials_needed isolated_ratio {figures} host";

const PAIRS: &str = "{axes} {pair_tuning} by first second n ratio ratio_simultaneous_low
    ratio_simultaneous_high";

/// Columns that not all studies have, or have under names of their own.
fn part(study: Study, name: &str) -> &'static str {
    let own = columns_of(study);
    if let Some((_, template)) = own.parts.iter().find(|(part, _)| *part == name) {
        return template;
    }
    match name {
        "unit" => study.unit(),
        "units" => study.units(),
        "axes" => own.axes,
        "slice" => own.slice,
        "figures" => own.figures,
        "arm" => {
            "run pass position study arm primitive role isolated slices {axes} status reason unit
             time_ns"
        }
        "rate" => "{bytes}_bytes_per_s",
        "accounts" => {
            "cpu_ns voluntary_switches involuntary_switches migrations minor_faults major_faults
             retransmits softirq_ticks"
        }
        "times" => "samples mean_ns p50_ns p99_ns p999_ns",
        "ratio" => "ratio ratio_low ratio_high ratio_simultaneous_low ratio_simultaneous_high",
        "shares" => {
            "busy_before_share busy_idle_share user_share kernel_share interrupts_share
             softirq_share steal_share idle_share"
        }
        "end" => "{:spent}",
        "client" => {
            "requests_due window_ns replies_in_window requests_ok requests_timeout requests_refused
             requests_reset requests_invalid requests_abandoned late_replies listen_overflows
             listen_drops processes server_throttled_periods server_throttled_ns
             client_throttled_periods client_throttled_ns client_polling_ns"
        }
        "ends" => {
            "server_requests {server_:accounts} client_replies client_bytes client_system_calls
             {client_:accounts} {server_:pmu} {client_:pmu} server_cycles client_cycles
             {server_:later} {client_:later}"
        }
        "server" => {
            "{from_sent_:times} {lag_:times} connections_made connections_failed connections_slow
             ramp_ns tasks_max failures"
        }
        "percentiles" => {
            "latency_samples latency_mean_ns latency_p50_ns latency_p50_low_ns latency_p50_high_ns
             latency_p99_ns latency_p99_low_ns latency_p99_high_ns latency_p999_ns"
        }
        _ => "",
    }
}

/// Counts of the PMU whose columns stand where they were promised; the others
/// came later and stand at the end.
const PROMISED: usize = 8;

/// Columns of what the model has lists of, and of what has several columns each.
fn counted(study: Study, name: &str) -> Option<Vec<String>> {
    let (promised, later) = PmuCounts::NAMES.split_at(PROMISED);
    let words = match name {
        "interval" => vec!["", "_low", "_high"],
        "pmu" => promised.to_vec(),
        "tuning" => Tuning::FIELDS.to_vec(),
        of @ ("later" | "sums") => {
            let is_own = |name: &&str| {
                let is_of_messages = name.starts_with("skb_") || name.starts_with("tcp_");
                // Of each CPU: left to the slices, since both ends may count the same one.
                let is_of_cpu = name.starts_with("cpu_");
                (columns_of(study).ends == Ends::Both || !is_of_messages)
                    && (of == "later" || !is_of_cpu)
            };
            let kernel = KernelCounts::NAMES.into_iter().filter(is_own);
            std::iter::once("run_delay_ns").chain(later.iter().copied()).chain(kernel).collect()
        }
        "spent" => return Some(EndMetric::ALL.iter().flat_map(|&metric| spent(metric)).collect()),
        _ => return None,
    };
    Some(words.into_iter().map(str::to_owned).collect())
}

/// What an end of a server's connections spent, in all and per request.
fn spent(metric: EndMetric) -> Vec<String> {
    let parts: &[&str] = match metric.is_per_request() {
        true => &["", "_per_request", "_per_request_low", "_per_request_high"],
        false => &[""],
    };
    parts.iter().map(|part| format!("{}{part}", metric.name())).collect()
}

/// The columns of a table where none are asked for: those that most readers need. Of these each
/// study has some.
pub(super) fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Arms => {
            "run pass arm message_bytes block_bytes file_bytes calls_in_a_row connections threads
             workers status reason time_ns messages blocks copies calls requests_ok
             goodput_bits_per_s read_bytes_per_s write_bytes_per_s copied_bytes_per_s calls_per_s
             ns_per_message ns_per_block ns_per_copy ns_per_call operations ns_per_operation
             tx_cpu_ns rx_cpu_ns cpu_ns server_cpu_ns client_cpu_ns cycles server_cycles"
        }
        Kind::Slices => {
            "run pass round kind arm message_bytes block_bytes file_bytes calls_in_a_row connections
             threads workers time_ns tx_messages rx_bytes blocks copies calls operations bytes
             requests_ok
             tx_cpu_ns rx_cpu_ns cpu_ns server_cpu_ns client_cpu_ns tx_cycles rx_cycles cycles
             server_cycles unused"
        }
        Kind::Cells => {
            "run arm message_bytes block_bytes file_bytes calls_in_a_row connections threads workers
             status reason n ratio ratio_simultaneous_low ratio_simultaneous_high verdict
             goodput_bits_per_s read_bytes_per_s write_bytes_per_s copied_bytes_per_s calls_per_s
             ns_per_message ns_per_block ns_per_copy ns_per_call requests_per_s tx_cpu_ns_per_byte
             rx_cpu_ns_per_byte cpu_ns_per_byte cpu_ns_per_call server_cpu_ns_per_request
             cycles_per_byte cycles_per_call server_cycles_per_request"
        }
        Kind::Phases => {
            "run phase arm connections workers step rate_per_s achieved_per_s duration_ns status
             reason requests_ok server_cpu_ns client_cpu_ns server_cycles"
        }
        Kind::Pairs => "",
    }
}
