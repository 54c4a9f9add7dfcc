//! What lines read from the JSON of the tool and of others: the one place that knows the shape
//! of ours.

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_found_by_their_path() {
        let json = json!({"cells": [{"arm": "send", "n": {"a": [1, 2.5]}}]});
        assert_eq!((json.num("cells/0/n/a/1"), json.int("cells/0/n/a/0")), (2.5, 1));
        assert!(json.num("cells/1").is_nan() && json.number(".none").is_err());
        assert_eq!(json.number(".cells[0].n.a | add").ok(), Some(3.5));
    }
}
