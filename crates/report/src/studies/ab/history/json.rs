//! A history for programs.

use iolens_model::secret;
use iolens_stats::ab::{AbHistory, AbNamed, AbRow, AbSeries, AbStep, AbVerdict};
use serde_json::{Value, json};

use super::super::compare::with_judged;
use super::super::json::pair;

/// Names the form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "iolens-ab-history/1";

/// JSON. Changes are fractions: 0.02 is 2 % more. `interval` covers a change by itself,
/// `simultaneous` all `claims` together, by which steps are judged.
#[must_use]
pub fn json(history: &AbHistory) -> String {
    let result = json!({
        "schema": SCHEMA,
        "claims": history.claims,
        "series": history.series.iter().map(series).collect::<Vec<_>>(),
        "left_out": history.left_out,
    });
    serde_json::to_string_pretty(&result).unwrap_or_default()
}

fn series(series: &AbSeries) -> Value {
    let values = series.setting.values.iter().map(|(name, value)| (name.clone(), json!(value)));
    json!({
        "chain": series.is_chain,
        "baseline": program(&series.baseline),
        "arm": program(&series.arm),
        "mode": series.setting.mode,
        "values": Value::Object(values.collect()),
        "quantity": series.quantity.word(),
        "threshold": series.delta,
        "older": series.older,
        "runs": series.rows.iter().map(|one| row(series, one)).collect::<Vec<_>>(),
        "overall": series.overall.as_ref().map(|overall| step(series, overall)),
    })
}

fn program(program: &AbNamed) -> Value {
    json!({
        "name": program.name,
        "sha256": program.sha256,
        "command": secret::redacted(&program.command),
    })
}

fn row(series: &AbSeries, row: &AbRow) -> Value {
    let standing = &row.standing;
    json!({
        "id": row.run,
        "name": row.name,
        "started_unix_ns": row.started_unix_ns,
        "host": row.host,
        "arm": row.arm.name,
        "sha256": row.arm.sha256,
        "units": standing.units,
        "change": standing.change,
        "interval": standing.pointwise.map(pair),
        "verdict": standing.verdict.map(AbVerdict::word),
        "unusable": row.unusable,
        "step": row.step.as_ref().map(|one| step(series, one)),
    })
}

fn step(series: &AbSeries, step: &AbStep) -> Value {
    let runs = json!({
        "since": step.since.and_then(|since| series.rows.get(since)).map(|row| &row.run),
        "same_file": step.is_one_file,
    });
    with_judged(runs, &step.judged)
}
