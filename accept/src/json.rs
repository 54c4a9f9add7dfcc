//! What lines read from JSON, of the tool and of others: parts by their paths, and filters of
//! jq(1).

use std::fmt::Debug;

use anyhow::anyhow;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data::JustLut, unwrap_valr};
use jaq_json::{Val, read};

use crate::prelude::*;

/// A part by its path, `run/host/facts/0`; what is not there is an empty list or text, no number
/// (NaN, which is in no range), and a count of 0.
pub trait Json {
    fn at(&self, path: &str) -> &Value;
    fn list(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map_or(&[], Vec::as_slice)
    }
    fn num(&self, path: &str) -> f64 {
        self.at(path).as_f64().unwrap_or(f64::NAN)
    }
    fn int(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or(0)
    }
    fn word(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or("")
    }
    /// A number that a filter makes, and has to.
    fn number(&self, filter: &str) -> Res<f64>;
    /// Names of what `iolens list` lists under a heading.
    fn names(&self, heading: &str, is_meant: impl Fn(&Value) -> bool) -> Vec<&str> {
        self.list(heading).iter().filter(|e| is_meant(e)).map(|entry| entry.word("name")).collect()
    }
}

impl Json for Value {
    fn at(&self, path: &str) -> &Value {
        self.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
    }
    fn number(&self, filter: &str) -> Res<f64> {
        let found = query([self, &Value::Null], filter)?;
        let number = found.first().and_then(Value::as_f64);
        number.with_context(|| format!("no {filter} in {:.300}", self.to_string()))
    }
}

/// The slices that count, of an export.
pub fn measured(export: &Value) -> Vec<&Value> {
    export.list("slices").iter().filter(|slice| slice["kind"] == "measured").collect()
}

/// Names for parts of our JSON.
const DEFINITIONS: &str = include_str!("../lines/defs.jq");

/// What a filter makes of a document, with the one before it as `$before`.
pub fn query([json, before]: [&Value; 2], filter: &str) -> Res<Vec<Value>> {
    let code = format!("{DEFINITIONS}\n{filter}");
    let file = File { code: &*code, path: () };
    let arena = Arena::default();
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let modules = Loader::new(defs).load(&arena, file).map_err(|why| no_filter(filter, why))?;
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let compiler = Compiler::default().with_funs(funs).with_global_vars(["$before"]);
    let compiled = compiler.compile(modules).map_err(|why| no_filter(filter, why))?;
    let value =
        |json: &Value| read::parse_single(json.to_string().as_bytes()).context("it is JSON");
    let context = Ctx::<JustLut<Val>>::new(&compiled.lut, Vars::new([value(before)?]));
    let outputs = compiled.id.run((context, value(json)?)).map(unwrap_valr);
    let output = |output: Result<Val, _>| {
        let text = output.map_err(|why| anyhow!("`{filter}`: {why}"))?.to_string();
        serde_json::from_str(&text).with_context(|| format!("`{filter}` makes {text}"))
    };
    outputs.map(output).collect()
}

fn no_filter<F>(filter: &str, errors: Vec<(F, impl Debug)>) -> anyhow::Error {
    let why: Vec<_> = errors.into_iter().map(|(_, why)| why).collect();
    anyhow!("`{filter}` is no filter: {why:?}")
}

/// The filter that makes each value and whether the condition holds for it.
pub fn judging(filter: &str, condition: &str) -> String {
    format!("({filter}) | [., (. {condition})]")
}

/// Judges every value that a filter makes by a condition as `<= 0.08`, one at least; without a
/// condition they are evidence. What is not there is null, which jq would sort before all numbers.
pub fn ask(check: &Check, documents: [&Value; 2], [name, filter, condition]: [&str; 3]) {
    let judged = match query(documents, &judging(filter, condition)) {
        Ok(judged) => judged,
        Err(why) => return check.judge(name, false, format!("{why:#}")),
    };
    if condition.is_empty() {
        judged.iter().for_each(|one| check.note(name, &one[0]));
        return;
    }
    check.expect(!judged.is_empty(), name, "nothing to be judged");
    for one in judged {
        let good = !one[0].is_null() && one[1] == true;
        check.judge(name, good, format!("{} (asked: {condition})", one[0]));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::passes;

    #[test]
    fn parts_are_found_by_their_path() {
        let json = json!({"cells": [{"arm": "send", "n": {"a": [1, 2.5]}}]});
        assert_eq!((json.num("cells/0/n/a/1"), json.int("cells/0/n/a/0")), (2.5, 1));
        assert!(json.num("cells/1").is_nan() && json.number(".none").is_err());
        assert_eq!(json.number(".cells[0].n.a | add").ok(), Some(3.5));
    }

    #[test]
    fn every_value_is_judged_and_nothing_is_not_enough() {
        let good = |json: Value, filter, condition| {
            passes(|check| ask(check, [&json, &json!({"a": 7})], ["x", filter, condition]))
        };
        assert!(good(json!([1, 2]), ".[]", "<= 2") && !good(json!([1, 3]), ".[]", "<= 2"));
        assert!(good(json!([0.0]), ".", "== [0]"));
        assert!(good(json!(8), ". - $before.a", "== 1"));
        assert!(!good(json!([]), ".[]", "<= 2"), "nothing");
        assert!(!good(json!({}), ".a", "<= 2"), "null");
        assert!(!good(json!([0, 0]), ".[0] / .[1]", "<= 2"), "not a number");
        assert!(!good(json!({}), ".a[]", "== 0") && !good(json!(1), "a b", "== 1"), "errors");
        assert!(!good(json!(1), ".", ""), "evidence shows nothing");
    }
}
