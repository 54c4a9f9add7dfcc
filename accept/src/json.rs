//! What lines read from the JSON of the tool and of others: the one place that knows the shape
//! of ours.

use serde_json::Value;

use crate::check::Res;

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
    /// A number that has to be there.
    fn need(&self, path: &str) -> Res<f64> {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let found = self.at(path).as_f64();
        found.ok_or_else(|| format!("no {path} in {:.300}", self.at(parent).to_string()))
    }
    /// The first one in a list whose `key` is this word.
    fn find(&self, path: &str, key: &str, word: &str) -> &Value {
        self.list(path).iter().find(|one| one.word(key) == word).unwrap_or(&Value::Null)
    }
    /// An estimate by the paths of its value and of its ends: `0.999 [0.995, 1.004]`.
    fn interval(&self, paths: [&str; 3]) -> String {
        let [value, low, high] = paths.map(|path| self.num(path));
        format!("{value:.4} [{low:.4}, {high:.4}]")
    }
    /// The rows of all cells.
    fn rows(&self) -> &[Value] {
        self.list("cells")
    }
    /// Rows whose `key` is this word.
    fn rows_where<'a>(&'a self, key: &str, word: &str) -> Vec<&'a Value> {
        self.rows().iter().filter(|row| row[key] == word).collect()
    }
    fn row_of(&self, arm: &str) -> Res<&Value> {
        let row = Some(self.find("cells", "arm", arm)).filter(|row| !row.is_null());
        row.ok_or_else(|| format!("no row of {arm}"))
    }
    /// The first row of a method that is not the baseline's copy.
    fn own_row(&self, method: &str) -> Res<&Value> {
        let own = self.rows_where("primitive", method).into_iter();
        let mut own = own.filter(|row| row["role"] != "self_check");
        own.next().ok_or_else(|| format!("no row of {method}"))
    }
    /// Names of what `iolens list` lists under a heading.
    fn names(&self, heading: &str, is_meant: impl Fn(&Value) -> bool) -> Vec<&str> {
        self.list(heading).iter().filter(|e| is_meant(e)).map(|entry| entry.word("name")).collect()
    }
}

impl Json for Value {
    fn at(&self, path: &str) -> &Value {
        self.pointer(&format!("/{path}")).unwrap_or(&Value::Null)
    }
}

/// Whether one of these words is the verdict of a row, or of a change between runs.
pub fn is_judged(row: &Value, verdicts: &[&str]) -> bool {
    verdicts.contains(&row.word("verdict"))
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
        assert!(json.num("cells/1").is_nan() && json.need("none").is_err());
        assert!(json.row_of("send").is_ok() && json.row_of("write").is_err());
    }
}
