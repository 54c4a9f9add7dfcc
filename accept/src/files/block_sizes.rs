//! The plan of block sizes, judged by what each slice counted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::json::measured;
use crate::prelude::*;

/// The powers of two from 1 B to 4 MiB.
const SIZES: usize = 23;

const STATES: [&str; 2] = ["warm", "cold"];

/// Share of the file that may be in the page cache, or be missing there, and still be a
/// remainder.
const REMAINDER: f64 = 0.001;

/// Direct reads are of whole sectors, of 512 B at most where this is run.
const SECTOR: u64 = 4096;

/// Engine, state and block size.
type Key = (String, String, u64);

pub fn check(bench: &Bench) -> Res {
    let plan = crate::root().join("plans/file-block-sizes.toml");
    let json = bench.iolens("run --progress none --budget 5m --json").arg(plan).json()?;
    let file_bytes = json.need("run/file/bytes")?;
    let arms = bench.json("export last --format json --rows arms")?;
    let slices = bench.slices()?;
    let (rows, engines) = (used(&arms, &slices), engines(&json));
    let mut counted: BTreeMap<Key, u64> =
        json.rows().iter().filter(|row| is_shown(row)).map(|row| (key(row), 0)).collect();
    let mut wrong = BTreeMap::new();
    for row in rows {
        let key = key(row);
        let Some(count) = counted.get_mut(&key) else { continue };
        *count += 1;
        // Of each cell the first that is wrong.
        if let Some(why) = wrong_with(row, file_bytes, key.0.contains("direct")) {
            wrong.entry(key).or_insert(why);
        }
    }
    wrong.iter().for_each(|(key, why)| bench.judge(format!("{key:?}"), false, why));
    missing(&json, &counted, &engines).iter().for_each(|why| bench.judge("missing", false, why));
    let slices: u64 = counted.values().sum();
    let words = format!(
        "{} cells of {} engines, {slices} slices that count, each with its state before and its \
         bytes from storage",
        counted.len(),
        engines.len()
    );
    bench.judge("verified", slices > 0, words);
    json.list("cost_models").iter().for_each(|model| bench.note("fit", fit(model)));
    Ok(())
}

fn engines(json: &Value) -> BTreeSet<&str> {
    json.rows().iter().map(|row| row.word("primitive")).collect()
}

/// Whether numbers of an arm in a cell are shown.
fn is_shown(row: &Value) -> bool {
    row["status"] == "ok"
}

/// The slices that count, of arms that no gate refused.
fn used<'a>(arms: &Value, slices: &'a Value) -> Vec<&'a Value> {
    let trial = |row: &Value| ["pass", "position", "arm"].map(|part| row[part].to_string());
    let ok: BTreeSet<_> = arms.list("arms").iter().filter(|row| is_shown(row)).map(trial).collect();
    measured(slices).into_iter().filter(|row| ok.contains(&trial(row))).collect()
}

fn key(row: &Value) -> Key {
    (row.word("primitive").to_owned(), row.word("cache").to_owned(), row.int("block_bytes"))
}

/// Why a slice is not what its cell says.
fn wrong_with(row: &Value, file_bytes: f64, is_direct: bool) -> Option<String> {
    let names = ["resident_before_bytes", "device_bytes", "bytes"];
    if let Some(missing) = names.iter().find_map(|name| row.need(name).err()) {
        return Some(missing);
    }
    let [resident, device, read] = names.map(|name| row.num(name));
    let is_cold = row["cache"] == "cold";
    if is_cold && resident > REMAINDER * file_bytes {
        return Some(format!("{resident} bytes were in the page cache before"));
    }
    if !is_cold && resident < (1.0 - REMAINDER) * file_bytes {
        return Some(format!("only {resident} bytes were in the page cache before"));
    }
    let is_stored = if is_cold || is_direct { device >= read } else { device <= REMAINDER * read };
    (!is_stored).then(|| format!("storage delivered {device} of {read} bytes"))
}

/// Cells and fits with their intervals that should be there and are not; direct reads of less than
/// a sector need not.
fn missing(json: &Value, counted: &BTreeMap<Key, u64>, engines: &BTreeSet<&str>) -> Vec<String> {
    let is_refused = |row: &Value| {
        row["status"] == "skipped"
            && row.word("primitive").contains("direct")
            && row.int("block_bytes") < SECTOR
    };
    let rows = json.rows().iter().filter(|row| !is_shown(row) && !is_refused(row));
    let mut missing: Vec<String> =
        rows.map(|row| format!("{:?}: {}: {}", key(row), row["status"], row["reason"])).collect();
    let empty = counted.iter().filter(|(_, slices)| **slices == 0);
    missing.extend(empty.map(|(key, _)| format!("{key:?}: numbers without slices")));
    for (engine, state) in engines.iter().flat_map(|engine| STATES.map(|state| (*engine, state))) {
        let mut find = |what: String| missing.push(format!("{engine}, {state}: {what}"));
        let own = json.rows_where("primitive", engine).into_iter().map(key);
        let sizes = own.filter(|(_, cache, _)| cache == state).map(|(.., size)| size);
        let sizes = sizes.collect::<BTreeSet<_>>().len();
        if sizes != SIZES {
            find(format!("{sizes} block sizes"));
        }
        let own = |model: &&Value| model["label"] == engine && model["curve"]["cache"] == state;
        let Some(model) = json.list("cost_models").iter().find(own) else {
            find("no fit".to_owned());
            continue;
        };
        for part in ["fixed_ns", "per_byte_ns", "half_size_bytes"] {
            if !model[part]["interval"]["high"].is_number() {
                find(format!("{part} has no interval"));
            }
        }
    }
    missing
}

fn fit(model: &Value) -> String {
    let estimate = |name: &str| model[name].interval(["value", "interval/low", "interval/high"]);
    format!(
        "{}, {}: a {} ns, b {} ns/B, knee {} B; {:+.0}% off at {} B; breaks at {}",
        model.word("label"),
        model.word("curve/cache"),
        estimate("fixed_ns"),
        estimate("per_byte_ns"),
        estimate("half_size_bytes"),
        100.0 * model.num("worst_residual"),
        model["worst_at"],
        model["breaks_at"]
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(cache: &str, resident: u64, device: u64) -> Value {
        json!({"primitive": "read", "cache": cache, "block_bytes": 1, "kind": "measured",
               "pass": 1, "position": 2, "arm": "read", "bytes": 100,
               "resident_before_bytes": resident, "device_bytes": device})
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
        check("warm", 1_000_000, 50, false, Some("storage delivered 50 of 100"));
        check("warm", 1_000_000, 100, true, None);
        check("warm", 1_000_000, 50, true, Some("of 100"));
        let unknown = json!({"cache": "cold", "bytes": 1, "device_bytes": 1});
        let why = wrong_with(&unknown, 1e6, false);
        assert!(why.is_some_and(|why| why.contains("no resident_before_bytes")));
    }

    #[test]
    fn slices_of_refused_arms_and_discarded_ones_do_not_count() {
        let arm =
            |pass, status| json!({"pass": pass, "position": 2, "arm": "read", "status": status});
        let mut discarded = slice("cold", 0, 100);
        discarded["kind"] = "discarded".into();
        let mut other = slice("cold", 0, 100);
        other["pass"] = 2.into();
        let slices = json!({"slices": [slice("cold", 0, 100), discarded, other]});
        let arms = json!({"arms": [arm(1, "ok"), arm(2, "invalid")]});
        assert_eq!(used(&arms, &slices).len(), 1);
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
        let counted = BTreeMap::from([(key(&json["cells"][0]), 0)]);
        let missing = missing(&json, &counted, &BTreeSet::from(["read"]));
        let names = |part: &str| missing.iter().any(|why| why.contains(part));
        for part in ["gate 8", "\"warm\", 1): numbers without slices", "warm: 1 block sizes"] {
            assert!(names(part), "{missing:?}");
        }
        assert!(names("warm: fixed_ns has no interval") && names("cold: no fit"), "{missing:?}");
        assert!(!names("direct"), "{missing:?}");
    }
}
