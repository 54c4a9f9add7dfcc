//! Filters of jq(1) over JSON: what is asked of a run, and what has to come out.

use std::fmt::Debug;

use anyhow::anyhow;

use crate::prelude::*;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data::JustLut, unwrap_valr};
use jaq_json::{Val, read};

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
