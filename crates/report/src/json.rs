//! The exports as JSON. `schema` names the layout; a null is what was not
//! measured, and `not_measured` says why where the run knows. Histograms of
//! round trips are there whole, as pairs of a time in ns and its count.

use iolens_document::Joined;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, Told};
use iolens_stats::search;
use serde_json::{Value, json};

use crate::export::{Columns, Rows, UnknownColumn};
use crate::groups::{fields, named, object};
use crate::records::{Record, cells};
use crate::{findings, remarks, words};

/// Version of the layout: raised when a key changes its meaning or goes.
pub const SCHEMA: &str = "iolens/2";

/// One object per row, with these columns.
///
/// Errors: a column that the rows do not have.
pub fn of(rows: Rows<'_>, columns: Columns<'_>) -> Result<String, UnknownColumn> {
    Ok(listed(rows, rows.records(columns)?))
}

/// The whole answer: header, findings, self-check, cells, what is derived
/// from whole curves, rejected trials.
pub fn run(run: &Run, analysis: &Analysis) -> String {
    let cells: Vec<Value> = cells::cells(run, analysis).map(Record::object).collect();
    let mut own = fields!(Some(analysis);
        passes contrasts self_check crossovers crossings cost_models removed_copies extremes
        plateaus unexpected drift neighbours rejected
    );
    own.extend(named! {
        schema: SCHEMA,
        host: run.header.host_label(),
        run: run.header.without_secrets(),
        findings: findings::all(run, &analysis.shown()),
        cells: cells,
        pairs: cells::pairs(analysis),
        warnings: analysis.warnings.iter().map(remarks::warning).collect::<Vec<_>>(),
        not_measured: words::not_measured(&analysis.told),
        spent: object(fields!(Some(&analysis.told.spent); reading_ns slices_ns trials_ns)),
    });
    let plan = &run.header.plan;
    if words::is_of_files(plan) {
        own.extend(fields!(Some(analysis); read_plateaus));
    }
    if plan.server().is_some_and(|axes| !axes.goals().is_empty()) {
        own.extend(named! { searches: search::answers(plan, &run.searches, analysis) });
    }
    let whole = object(own);
    print(&whole)
}

/// One row per line: a run has tens of thousands of slices. What is said of one run beside
/// its rows is said of several in a list, `runs`.
fn listed(rows: Rows<'_>, records: impl Iterator<Item = Record>) -> String {
    let mut out = format!("{{\n\"schema\": {},\n", json!(SCHEMA));
    match rows.runs() {
        [run] => out.push_str(&about(run)),
        several => {
            let all = several.iter().map(about);
            out.push_str(&format!("\"runs\": [\n{{{}}}\n]", all.joined("},\n{")));
        }
    }
    out.push_str(&format!(",\n\"{}\": [", rows.word()));
    for (i, record) in records.enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.push_str(&record.object().to_string());
    }
    out.push_str("\n]\n}\n");
    out
}

/// Which run it is, and why metrics of it are `None`.
fn about(run: &Run) -> String {
    let missing = json!(words::not_measured(&Told::of(&run.trials)));
    let (id, host) = (json!(run.header.id), json!(run.header.host_label()));
    format!("\"run\": {id},\n\"host\": {host},\n\"not_measured\": {missing}")
}

pub(crate) fn print(value: &Value) -> String {
    format!("{value:#}\n")
}

/// All columns, for tests.
#[cfg(test)]
pub(crate) fn all(rows: Rows<'_>) -> String {
    of(rows, Columns::All).expect("every column")
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::fixture;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).expect("our own JSON parses")
    }

    /// A finding has names and numbers; a sentence would have blanks in it. What a kernel or a
    /// program said stands under `reason`.
    fn no_prose(finding: &Value) -> bool {
        match finding {
            Value::String(text) => text.split(' ').count() <= 2,
            Value::Array(all) => all.iter().all(no_prose),
            Value::Object(all) => all.iter().all(|(key, v)| key == "reason" || no_prose(v)),
            _ => true,
        }
    }

    #[test]
    fn a_run_carries_schema_findings_and_reasons_for_nulls() {
        let (run, analysis) = fixture::run();
        let value = parse(&super::run(&run, &analysis));
        assert_eq!(value["schema"], "iolens/2");
        assert_eq!(value["run"]["id"], "4f1c09ab");
        assert_eq!(value["findings"][0]["finding"], "ranking");
        assert_eq!(value["findings"][0]["outcome"], "fastest");
        assert_eq!(value["findings"][0]["method"], "send_staged");
        assert!(
            value["findings"].as_array().is_some_and(|all| all.iter().all(no_prose)),
            "{value:#}"
        );
        assert_eq!(value["cells"].as_array().map(Vec::len), Some(36));
        assert!(value["not_measured"]["cycles_user"].is_string());
        let ends = run.trials.iter().filter(|trial| trial.tx.is_some()).count() as u64;
        assert_eq!(value["spent"]["reading_ns"], 8_100_000 * ends);
    }

    #[test]
    fn an_arm_that_failed_has_nulls_and_a_reason() {
        let (run, _) = fixture::run();
        let value = parse(&all(Rows::Arms(from_ref(&run))));
        let failed = value["arms"]
            .as_array()
            .and_then(|arms| arms.iter().find(|arm| arm["status"] == "failed").cloned());
        let failed = failed.expect("the fixture has one");
        assert!(failed["time_ns"].is_null() && failed["cycles_user"].is_null());
        assert!(failed["reason"].as_str().is_some_and(|why| why.contains("ECONNRESET")));
    }

    #[test]
    fn histograms_are_whole() {
        let (run, analysis) = fixture::whole();
        for (text, name, count) in [
            (all(Rows::Arms(from_ref(&run))), "arms", 400),
            (all(Rows::Cells(from_ref(&run), from_ref(&analysis))), "cells", 12 * 400),
        ] {
            let value = parse(&text);
            let rows = value[name].as_array().expect("rows");
            let with = rows.iter().find(|row| !row["latency_histogram"].is_null());
            let histogram = &with.expect("mode rr has them")["latency_histogram"]["buckets"];
            let counts = histogram.as_array().into_iter().flatten().filter_map(|b| b[1].as_u64());
            assert_eq!(counts.sum::<u64>(), count);
            assert!(rows.iter().any(|row| row["latency_histogram"].is_null()));
        }
    }

    #[test]
    fn a_run_carries_what_is_derived_from_whole_curves() {
        let (run, analysis) = fixture::whole();
        let value = parse(&super::run(&run, &analysis));
        for key in ["crossovers", "cost_models", "removed_copies", "extremes", "plateaus"] {
            assert!(value[key].as_array().is_some_and(|all| !all.is_empty()), "{key}");
        }
        assert!(value["drift"]["per_hour"].is_number() && value["unexpected"].is_object());
    }

    #[test]
    fn slices_are_one_object_per_line() {
        let (run, _) = fixture::run();
        let text = all(Rows::Slices(from_ref(&run)));
        let count: usize = run.trials.iter().map(|trial| trial.slices.len()).sum();
        assert_eq!(parse(&text)["slices"].as_array().map(Vec::len), Some(count));
        assert_eq!(
            text.lines().filter(|line| line.starts_with('{') && line.len() > 1).count(),
            count
        );
    }

    #[test]
    fn a_quick_run_has_no_verdicts() {
        let (run, analysis) = fixture::quick();
        let value = parse(&all(Rows::Cells(from_ref(&run), from_ref(&analysis))));
        let cells = value["cells"].as_array().expect("cells");
        assert!(cells.iter().all(|cell| cell["verdict"].is_null() && cell["indicative"] == true));
    }
}
