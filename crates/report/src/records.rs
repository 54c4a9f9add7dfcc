//! The rows of exports, once: CSV writes them as lines, JSON as objects. A
//! column name carries its unit; what was not measured is null.
//!
//! Columns without `tx_` or `rx_` are sums over both ends where both are
//! known, else null: half of a cost is not a cost.

mod arms;
mod cells;
mod servers;
pub(crate) mod short;
mod slices;

use std::borrow::Cow;
use std::fmt;

use iolens_model::arm::ArmOutcome;
use iolens_model::axes::Study;
use iolens_model::cell::{Cell, Setting};
use iolens_model::latency::Histogram;
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::run::Run;
use iolens_model::tuning::Tuning;
use iolens_stats::analysis::LatencyFigures;
use serde_json::{Value, json};

pub(crate) use self::cells::{cells, pairs};
use crate::named::{Named, fields, named, object, prefixed, renamed};
use crate::totals::Counted;

/// A column that is asked for and that the rows do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownColumn {
    /// Its name.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown column `{}`", self.name)
    }
}

impl std::error::Error for UnknownColumn {}

/// One row. All rows of an export have the same names in the same order.
pub(crate) struct Record {
    /// Names with units, and values.
    pub(crate) columns: Named,
    /// What has no place in a column: whole histograms.
    whole: Named,
    /// Id of its run.
    pub(crate) run: String,
}

impl Record {
    /// The columns, and behind them the label of the machine that measured, the last one of all
    /// rows.
    fn new(run: &Run, mut columns: Named, whole: Named) -> Record {
        columns.extend(named! { host: run.header.host_label() });
        Record { columns, whole, run: run.header.id.clone() }
    }

    /// Errors: the first of these that it has no column of.
    pub(crate) fn check(&self, columns: &[String]) -> Result<(), UnknownColumn> {
        let has = |name: &String| self.columns.iter().any(|(own, _)| own == name);
        match columns.iter().find(|name| !has(name)) {
            None => Ok(()),
            Some(name) => Err(UnknownColumn {
                name: name.clone(),
                known: self.columns.iter().map(|(own, _)| own.to_string()).collect(),
            }),
        }
    }

    /// These columns in their order; all of it where none is named.
    pub(crate) fn only(self, columns: &[String]) -> Record {
        if columns.is_empty() {
            return self;
        }
        let find = |name: &String| self.columns.iter().find(|(own, _)| own == name).cloned();
        let columns = columns.iter().filter_map(find).collect();
        Record { columns, whole: Vec::new(), run: self.run }
    }

    /// The row as a JSON object.
    pub(crate) fn object(self) -> Value {
        object(self.columns.into_iter().chain(self.whole))
    }
}

/// One row per arm and trial.
pub(crate) fn arms(run: &Run) -> impl Iterator<Item = Record> {
    run.trials.iter().flat_map(move |trial| {
        (0..trial.arms.len()).map(move |index| match trial.cell.study() {
            Study::Net => arms::of_two_ends(run, trial, index),
            Study::Server => servers::arm_row(run, trial, index),
            _ => arms::of_one_end(run, trial, index),
        })
    })
}

/// One row per slice.
pub(crate) fn slices(run: &Run) -> impl Iterator<Item = Record> {
    run.trials.iter().zip(iolens_stats::unused(run)).flat_map(move |(trial, unused)| {
        let row = move |slice: &SliceOutcome| {
            slices::row(run, trial, slice, unused.get(slice.arm).and_then(Option::as_deref))
        };
        trial.slices.iter().map(row)
    })
}

/// One row per phase of a search.
pub(crate) fn phases(run: &Run) -> impl Iterator<Item = Record> {
    run.searches.iter().map(move |phase| servers::phase_row(run, phase))
}

/// Whose row it is: the run, the trial and the arm.
fn whose(run: &Run, trial: &TrialOutcome, outcome: &ArmOutcome) -> Named {
    named! {
        run: run.header.id,
        pass: trial.pass,
        position: trial.position,
        study: run.header.plan.study().word(),
        arm: outcome.arm.label,
        primitive: outcome.arm.primitive,
    }
}

fn status(trial: &TrialOutcome, outcome: &ArmOutcome) -> Named {
    named! {
        status: outcome.status.word(),
        reason: outcome.reason.as_ref().or(trial.reason.as_ref()),
    }
}

/// The axes of a cell.
fn axes(cell: &Cell) -> Named {
    let size = cell.size.0;
    let own: [Named; 2] = match &cell.setting {
        Setting::Net(net) => [
            fields!(Some(net); receiver fields iovec working_set topology mode),
            named! { message_bytes: size },
        ],
        Setting::Syscall(calls) => {
            let block = cell.own_size().map(|size| size.0);
            [named! { calls_in_a_row: calls.in_a_row }, named! { block_bytes: block }]
        }
        Setting::File(file) => {
            [named! { block_bytes: size }, fields!(Some(file); cache pattern consumer depth)]
        }
        Setting::Write(write) => {
            [named! { block_bytes: size }, fields!(Some(write); destination pattern depth)]
        }
        Setting::Copy(copy) => {
            [named! { file_bytes: size }, fields!(Some(copy); block_bytes cache sync)]
        }
        Setting::Server(server) => [
            fields!(Some(server); service length topology load connections),
            named! { workers: cell.threads },
        ],
    };
    let threads = match cell.setting {
        Setting::Server(_) => Vec::new(),
        _ => named! { threads: cell.threads },
    };
    [own.concat(), threads].concat()
}

/// The axes that most plans leave alone.
fn tuning(cell: &Cell) -> Named {
    let Some(net) = cell.net() else { return Vec::new() };
    let values = json!(net.tuning);
    Tuning::FIELDS.iter().map(|field| (Cow::Borrowed(*field), values[field].clone())).collect()
}

/// Counts by their names.
fn counted<'a>(
    counts: Option<&Counted>,
    names: impl IntoIterator<Item = impl Into<Cow<'static, str>> + 'a>,
) -> Named {
    let column = |name: Cow<'static, str>| {
        let value = json!(counts.and_then(|counts| counts.get(&name)));
        (name, value)
    };
    names.into_iter().map(|name| column(name.into())).collect()
}

/// Counts of the PMU whose columns stand where they were promised; the others
/// came later and stand at the end.
const PROMISED: usize = 8;

/// Columns of an end without those of the end that is not there, under the
/// names that they have in a study of one end, whose units are what net calls
/// messages.
fn in_units(mut columns: Named, study: Study) -> Named {
    const OF_MESSAGES: [&str; 5] = ["segments_out", "retransmits", "zerocopy", "skb_", "tcp_"];
    columns.retain(|(name, _)| {
        let bare = name.strip_prefix("tx_").unwrap_or(name);
        !name.starts_with("rx_") && !OF_MESSAGES.iter().any(|own| bare.starts_with(own))
    });
    renamed(columns, |name| match name.strip_prefix("tx_").unwrap_or(name) {
        "messages" => study.units().to_owned(),
        name => {
            let system = if name.starts_with("calls") { "system_" } else { "" };
            let per_unit = format!("per_{}", study.unit());
            format!("{system}{}", name.replace("per_message", &per_unit))
        }
    })
}

/// What bytes per second are called in a study of files.
fn rate_of(study: Study) -> &'static str {
    match study {
        Study::Write => "write",
        Study::Copy => "copied",
        _ => "read",
    }
}

/// How many times there are, and their percentiles: null where there are too few, as in a cell.
fn times(what: &str, times: Option<&Histogram>) -> Named {
    let quantile = |q| times.and_then(|times| quantile_ns(times, q));
    let columns = named! {
        samples: times.map(Histogram::total),
        mean_ns: times.and_then(Histogram::mean_ns),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
    };
    prefixed(&format!("{what}_"), columns)
}

fn quantile_ns(times: &Histogram, q: f64) -> Option<u64> {
    times.quantile_ns(q).filter(|_| LatencyFigures::enough(times.total(), q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_as_many_times_in_a_trial_as_in_a_cell() {
        let times = |n| Histogram { buckets: vec![(100, n)] };
        assert_eq!(quantile_ns(&times(369), 0.99), None);
        assert_eq!(quantile_ns(&times(370), 0.99), Some(100));
    }
}
