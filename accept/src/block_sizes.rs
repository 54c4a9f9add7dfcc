//! Issue 6, line b: the plan of block sizes, judged by what each slice counted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Bench, Judged, Outcome};

const PLAN: &str = "plans/file-block-sizes.toml";

/// The powers of two from 1 B to 4 MiB.
const SIZES: usize = 23;

const STATES: [&str; 2] = ["warm", "cold"];

/// Share of the file that may be in the page cache, or be missing there, and still be a
/// remainder.
const REMAINDER: f64 = 0.001;

/// Direct reads are of whole sectors, of 512 B at most where this is run.
const SECTOR: u64 = 4096;

/// What was found of an engine in a cell.
#[derive(Default)]
struct Cell {
    slices: u64,
    wrong: Vec<String>,
}

/// Cells by engine, state and block size.
type Cells = BTreeMap<(String, String, u64), Cell>;

pub(crate) fn check(bench: &Bench) -> Judged {
    let plan = crate::root().join(PLAN).display().to_string();
    let run = ["run", &plan, "--progress", "none", "--budget", "5m", "--json"];
    let json = bench.iolens_json("block_sizes", &run, 20)?.json;
    let file_bytes = json["run"]["file"]["bytes"].as_f64().ok_or("the run names no file")?;
    let export = |rows| {
        let args = ["export", "last", "--format", "json", "--rows", rows];
        let json = bench.iolens_json("block_sizes", &args, 3)?.json;
        json[rows].as_array().cloned().ok_or_else(|| format!("the export has no {rows}"))
    };
    let rows = used(&export("arms")?, export("slices")?);
    let is_direct = |engine: &str| engine.contains("direct");
    let cells = cells(&json, &rows, file_bytes, is_direct);
    let engines = engines(&json);
    let mut wrong: Vec<String> = Vec::new();
    for ((engine, state, size), cell) in &cells {
        let about = |why: &String| format!("{engine}, {state}, {size} B: {why}");
        wrong.extend(cell.wrong.iter().take(1).map(about));
    }
    wrong.extend(missing(&json, &cells, &engines));
    wrong.extend(engines.iter().flat_map(|engine| unfitted(&json, engine)));
    let verified: u64 = cells.values().map(|cell| cell.slices).sum();
    let mut evidence = vec![format!(
        "{} cells of {} engines, {verified} slices that count, each with its state before and its \
         bytes from storage",
        cells.len(),
        engines.len()
    )];
    evidence.extend(fits(&json));
    evidence.extend(wrong.iter().take(8).map(|why| format!("WRONG: {why}")));
    let evidence = evidence.join("\n");
    Ok(if wrong.is_empty() { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Every engine of the run.
fn engines(json: &Value) -> Vec<String> {
    let rows = json["cells"].as_array().into_iter().flatten();
    let mut engines: Vec<String> =
        rows.filter_map(|row| row["primitive"].as_str().map(str::to_owned)).collect();
    engines.sort();
    engines.dedup();
    engines
}

/// Whether numbers of an arm in a cell are shown.
fn is_shown(row: &Value) -> bool {
    row["status"] == "ok"
}

/// The slices that count, of arms that no gate refused.
fn used(arms: &[Value], mut slices: Vec<Value>) -> Vec<Value> {
    let trial = |row: &Value| ["pass", "position", "arm"].map(|part| row[part].to_string());
    let ok: BTreeSet<[String; 3]> = arms.iter().filter(|row| is_shown(row)).map(trial).collect();
    slices.retain(|row| row["kind"] == "measured" && ok.contains(&trial(row)));
    slices
}

/// The slices behind what is shown, by cell, and what is wrong with them.
fn cells(json: &Value, rows: &[Value], file_bytes: f64, is_direct: impl Fn(&str) -> bool) -> Cells {
    let mut cells = Cells::new();
    let shown = json["cells"].as_array().into_iter().flatten().filter(|row| is_shown(row));
    for row in shown {
        cells.entry(key(row)).or_default();
    }
    for row in rows {
        let key = key(row);
        let direct = is_direct(&key.0);
        let Some(cell) = cells.get_mut(&key) else { continue };
        cell.slices += 1;
        cell.wrong.extend(wrong_with(row, file_bytes, direct));
    }
    cells
}

fn key(row: &Value) -> (String, String, u64) {
    let word = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    (word("primitive"), word("cache"), row["block_bytes"].as_u64().unwrap_or(0))
}

/// Why a slice is not what its cell says.
fn wrong_with(row: &Value, file_bytes: f64, is_direct: bool) -> Option<String> {
    let number = |name: &str| row[name].as_f64().ok_or_else(|| format!("{name} is null"));
    let found = number("resident_before_bytes").and_then(|resident| {
        let (device, read) = (number("device_bytes")?, number("bytes")?);
        Ok((resident, device, read))
    });
    let (resident, device, read) = match found {
        Ok(found) => found,
        Err(why) => return Some(why),
    };
    let is_cold = row["cache"] == "cold";
    if is_cold && resident > REMAINDER * file_bytes {
        return Some(format!("{resident} bytes were in the page cache before"));
    }
    if !is_cold && resident < (1.0 - REMAINDER) * file_bytes {
        return Some(format!("only {resident} bytes were in the page cache before"));
    }
    if (is_cold || is_direct) && device < read {
        return Some(format!("storage delivered {device} of {read} bytes"));
    }
    (!is_cold && !is_direct && device > REMAINDER * read)
        .then(|| format!("storage delivered {device} bytes"))
}

/// Cells that should be there and are not; direct reads of less than a sector need not.
fn missing(json: &Value, cells: &Cells, engines: &[String]) -> Vec<String> {
    let rows = json["cells"].as_array().into_iter().flatten();
    let mut missing: Vec<String> = Vec::new();
    for row in rows.filter(|row| !is_shown(row)) {
        let (engine, state, size) = key(row);
        let why = row["reason"].as_str().unwrap_or("no reason");
        let is_refused = row["status"] == "skipped" && engine.contains("direct") && size < SECTOR;
        if !is_refused {
            missing.push(format!("{engine}, {state}, {size} B: {}: {why}", row["status"]));
        }
    }
    for engine in engines {
        for state in STATES {
            let all = json["cells"].as_array().into_iter().flatten();
            let mut sizes: Vec<u64> = all
                .map(key)
                .filter(|(other, cache, _)| other == engine && cache == state)
                .map(|(.., size)| size)
                .collect();
            sizes.sort_unstable();
            sizes.dedup();
            if sizes.len() != SIZES {
                missing.push(format!("{engine}, {state}: {} block sizes", sizes.len()));
            }
        }
    }
    let empty = cells.iter().filter(|(_, cell)| cell.slices == 0);
    missing.extend(empty.map(|((engine, state, size), _)| {
        format!("{engine}, {state}, {size} B: numbers without slices")
    }));
    missing
}

/// Fits of an engine that are not there, or have no interval.
fn unfitted(json: &Value, engine: &str) -> Vec<String> {
    let models = || json["cost_models"].as_array().into_iter().flatten();
    let mut unfitted = Vec::new();
    for state in STATES {
        let own = |model: &&Value| model["label"] == engine && model["curve"]["cache"] == state;
        let Some(model) = models().find(own) else {
            unfitted.push(format!("{engine}, {state}: no fit"));
            continue;
        };
        for part in ["fixed_ns", "per_byte_ns", "half_size_bytes"] {
            if !model[part]["interval"]["high"].is_number() {
                unfitted.push(format!("{engine}, {state}: {part} has no interval"));
            }
        }
    }
    unfitted
}

/// The fits, a line each.
fn fits(json: &Value) -> Vec<String> {
    let models = json["cost_models"].as_array().into_iter().flatten();
    let line = |model: &Value| {
        let estimate = |name: &str| {
            let estimate = &model[name];
            let part = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
            let (low, high) = (&estimate["interval"]["low"], &estimate["interval"]["high"]);
            format!("{:.4} [{:.4}, {:.4}]", part(&estimate["value"]), part(low), part(high))
        };
        format!(
            "{}, {}: a {} ns, b {} ns/B, knee {} B; {:+.0} % off at {} B{}",
            model["label"].as_str().unwrap_or("?"),
            model["curve"]["cache"].as_str().unwrap_or("?"),
            estimate("fixed_ns"),
            estimate("per_byte_ns"),
            estimate("half_size_bytes"),
            100.0 * model["worst_residual"].as_f64().unwrap_or(f64::NAN),
            model["worst_at"],
            model["breaks_at"].as_u64().map_or_else(String::new, |at| format!(", below {at} B"))
        )
    };
    models.map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(cache: &str, resident: u64, device: u64) -> Value {
        json!({"primitive": "read", "cache": cache, "block_bytes": 1, "kind": "measured",
               "pass": 1, "position": 2, "arm": "read", "bytes": 100, "resident_before_bytes": resident,
               "device_bytes": device})
    }

    #[test]
    fn a_slice_is_what_its_cell_says_or_says_why_not() {
        let check = |cache, resident, device, is_direct, expect: Option<&str>| {
            let why = wrong_with(&slice(cache, resident, device), 1e6, is_direct);
            assert_eq!(why.is_some(), expect.is_some(), "{why:?}");
            assert!(expect.is_none_or(|part| why.is_some_and(|why| why.contains(part))));
        };
        check("cold", 0, 100, false, None);
        check("cold", 0, 99, false, Some("storage delivered 99 of 100"));
        check("cold", 2000, 100, false, Some("were in the page cache"));
        check("warm", 1_000_000, 0, false, None);
        check("warm", 900_000, 0, false, Some("only 900000 bytes"));
        check("warm", 1_000_000, 50, false, Some("storage delivered 50"));
        check("warm", 1_000_000, 100, true, None);
        check("warm", 1_000_000, 50, true, Some("of 100"));
        let unknown = json!({"cache": "cold", "bytes": 1, "device_bytes": 1});
        let why = wrong_with(&unknown, 1e6, false);
        assert_eq!(why.as_deref(), Some("resident_before_bytes is null"));
    }

    #[test]
    fn slices_of_refused_arms_and_discarded_ones_do_not_count() {
        let arm =
            |pass, status| json!({"pass": pass, "position": 2, "arm": "read", "status": status});
        let mut discarded = slice("cold", 0, 100);
        discarded["kind"] = "discarded".into();
        let mut other = slice("cold", 0, 100);
        other["pass"] = 2.into();
        let slices = vec![slice("cold", 0, 100), discarded, other];
        assert_eq!(used(&[arm(1, "ok"), arm(2, "invalid")], slices).len(), 1);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let json = json!({
            "cells": [
                {"primitive": "read", "cache": "warm", "block_bytes": 1, "status": "ok"},
                {"primitive": "read", "cache": "cold", "block_bytes": 1, "status": "invalid",
                 "reason": "gate 8"},
                {"primitive": "direct", "cache": "cold", "block_bytes": 1, "status": "skipped"},
            ],
            "cost_models": [{"label": "read", "curve": {"cache": "warm"},
                             "fixed_ns": {"value": 1.0, "interval": null}}],
        });
        let found = cells(&json, &[], 1.0, |_| false);
        let missing = missing(&json, &found, &["read".to_owned()]);
        assert!(missing[0].contains("gate 8"), "{missing:?}");
        assert!(missing.iter().any(|why| why.contains("warm: 1 block sizes")), "{missing:?}");
        assert!(missing.iter().any(|why| why.contains("numbers without slices")), "{missing:?}");
        assert!(!missing.iter().any(|why| why.contains("direct")), "{missing:?}");
        let unfitted = unfitted(&json, "read");
        assert!(unfitted[0].contains("fixed_ns has no interval"), "{unfitted:?}");
        assert!(unfitted.iter().any(|why| why.contains("cold: no fit")), "{unfitted:?}");
    }
}
