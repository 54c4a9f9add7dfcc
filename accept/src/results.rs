//! What acceptance lines read from the JSON of the tool: the one place that
//! knows its shape.

use serde_json::Value;

use super::Bench;

/// One arm of one cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArmResult {
    /// The cell, in words.
    pub(crate) cell: String,
    pub(crate) primitive: String,
    /// `baseline`, `compared`, `self_check` or `control`.
    pub(crate) role: String,
    /// Upper-case word, empty without a contrast.
    pub(crate) verdict: String,
    /// Half-width of the pointwise interval of the ratio, as a fraction.
    pub(crate) half_width: Option<f64>,
    pub(crate) goodput_bits_per_s: Option<f64>,
    /// Why there are no numbers.
    pub(crate) reason: Option<String>,
    /// Whether the pointwise interval of the ratio leaves out 1.
    pub(crate) excludes_one: bool,
    /// Zero-copy sends, completions, and the share reported as copied.
    pub(crate) zerocopy: Option<(u64, u64, f64)>,
}

impl ArmResult {
    /// Whether all zero-copy sends completed, and the kernel copied them.
    pub(crate) fn is_copied_and_complete(&self) -> bool {
        self.zerocopy.is_some_and(|(sends, completions, share)| {
            sends > 0 && sends == completions && share > 0.05
        })
    }
}

/// The id of the run whose JSON this is.
pub(crate) fn run_id(json: &Value) -> Result<String, String> {
    Ok(json["run"]["id"].as_str().ok_or("the JSON names no run")?.to_owned())
}

/// What a run says of a setting: which methods are ahead.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) message_bytes: u64,
    /// `time`, `server_cpu`.
    pub(crate) quantity: String,
    pub(crate) methods: Vec<String>,
}

/// Every ranking in the JSON of `iolens run … --json`.
pub(crate) fn rankings(json: &Value) -> Vec<Ranking> {
    let all = json["findings"].as_array().into_iter().flatten();
    let one = |finding: &Value| {
        let names = finding["methods"].as_array().into_iter().flatten();
        let names = names.chain([&finding["method"], &finding["lowest"]]);
        Ranking {
            message_bytes: finding["setting"]["message_bytes"].as_u64().unwrap_or(0),
            quantity: finding["quantity"].as_str().unwrap_or_default().to_owned(),
            methods: names.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    };
    all.filter(|finding| finding["finding"] == "ranking").map(one).collect()
}

/// The changes in what `iolens compare A B --json` prints, which exits with 1 where one is
/// SLOWER.
pub(crate) fn changes(bench: &Bench, home: &str, a: &str, b: &str) -> Result<Vec<Value>, String> {
    let done = bench.iolens(home, &["compare", a, b, "--json"])?.run()?;
    let json: Value = serde_json::from_str(&done.stdout())
        .map_err(|e| format!("`iolens compare {a} {b}` printed no JSON: {e}\n{}", done.stderr()))?;
    Ok(json["changes"].as_array().cloned().unwrap_or_default())
}

/// Every arm of every cell in the JSON of `iolens run … --json`.
pub(crate) fn arms(json: &Value) -> Vec<ArmResult> {
    json["cells"].as_array().into_iter().flatten().map(arm_result).collect()
}

fn arm_result(row: &Value) -> ArmResult {
    let word = |key: &str| row[key].as_str().unwrap_or("").to_owned();
    let (low, high) = (row["ratio_low"].as_f64(), row["ratio_high"].as_f64());
    ArmResult {
        cell: cell_words(row),
        primitive: word("primitive"),
        role: word("role"),
        verdict: word("verdict"),
        half_width: low.zip(high).map(|(low, high)| (high / low).sqrt() - 1.0),
        goodput_bits_per_s: row["goodput_bits_per_s"].as_f64(),
        reason: row["reason"].as_str().map(str::to_owned),
        excludes_one: low.zip(high).is_some_and(|(low, high)| low > 1.0 || high < 1.0),
        zerocopy: row["zerocopy_sends"].as_u64().and_then(|sends| {
            let completions = row["zerocopy_completions"].as_u64()?;
            Some((sends, completions, row["zerocopy_copied_share"].as_f64()?))
        }),
    }
}

/// The size and threads of a row.
pub(crate) fn cell_words(cell: &Value) -> String {
    let size = ["message_bytes", "block_bytes"].into_iter().find_map(|key| cell[key].as_u64());
    let bytes = size.unwrap_or(0);
    let threads = cell["threads"].as_u64().unwrap_or(0);
    let size = if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KiB", bytes / 1024)
    } else {
        format!("{bytes} B")
    };
    format!("{size} × {threads}")
}

/// `4 KiB × 1 EQUIVALENT 0.999 [0.995, 1.004]`.
pub(crate) fn ratio_words(row: &Value) -> String {
    let cell = cell_words(row);
    let number = |key: &str| row[key].as_f64();
    match (number("ratio"), number("ratio_low"), number("ratio_high")) {
        (Some(ratio), Some(low), Some(high)) => {
            let verdict = row["verdict"].as_str().unwrap_or("no verdict");
            format!("{cell} {verdict} {ratio:.3} [{low:.3}, {high:.3}]")
        }
        _ => format!("{cell} {}", row["reason"].as_str().unwrap_or("has no ratio")),
    }
}

/// `SO_SNDBUF` and `SO_RCVBUF` that a run asked for.
pub(crate) fn socket_buffer_bytes(json: &Value) -> Option<u64> {
    json["run"]["plan"]["socket"]["buffer_bytes"][0].as_u64()
}

/// Trials of the run that began last, in the JSON of `iolens runs --json`.
pub(crate) fn trials_of_last_run(json: &Value) -> Option<u64> {
    let latest = json.as_array()?.iter().max_by_key(|run| run["started_unix_ns"].as_u64())?;
    latest["trials"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_read() {
        let json = serde_json::json!({"cells": [
            {"primitive": "send", "role": "baseline", "message_bytes": 4096, "threads": 4,
             "ratio_low": null, "ratio_high": null, "verdict": null, "goodput_bits_per_s": 2.5e9},
            {"primitive": "send", "role": "self_check", "message_bytes": 4096, "threads": 4,
             "ratio_low": 0.81, "ratio_high": 1.0, "verdict": "INCONCLUSIVE",
             "zerocopy_sends": 7, "zerocopy_completions": 7, "zerocopy_copied_share": 1.0},
        ]});
        let arms = arms(&json);
        assert_eq!(arms.len(), 2);
        assert_eq!(arms[0].cell, "4 KiB × 4");
        assert_eq!(arms[0].goodput_bits_per_s, Some(2.5e9));
        assert_eq!(arms[0].half_width, None);
        assert!(!arms[0].is_copied_and_complete() && arms[1].is_copied_and_complete());
        assert!(!arms[1].excludes_one);
        assert_eq!(arms[1].role, "self_check");
        assert_eq!(arms[1].verdict, "INCONCLUSIVE");
        assert!(arms[1].half_width.is_some_and(|width| (width - 1.0 / 9.0).abs() < 1e-9));
    }

    #[test]
    fn the_last_run_is_the_latest() {
        let runs = serde_json::json!([
            {"started_unix_ns": 2, "trials": 7}, {"started_unix_ns": 1, "trials": 9},
        ]);
        assert_eq!(trials_of_last_run(&runs), Some(7));
        assert_eq!(trials_of_last_run(&serde_json::json!([])), None);
    }
}
