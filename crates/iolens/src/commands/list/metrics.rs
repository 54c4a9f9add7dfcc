//! The table of metrics as docs/metrics.md.

use std::fmt::Write;

use iolens_model::metrics::METRICS;

const HEAD: &str = "\
# Metrics

What iolens counts and derives, under the names that `iolens list metrics`, exports and
`--json` have for it. This file is made from the table in `crates/model/src/metrics.rs` by
`cargo xtask docs`; a test says when it is out of date.

- A name ends in its unit where it has one. `tx_` is the sending end and `rx_` the
  receiving one; what has neither is of both ends together.
- A count of an arm in a trial is the sum over its slices that count; what a cell says is
  made of its trials (METHOD, From a trial to a ratio).
- **Null where**: what was not measured is null, in CSV an empty field, and never 0.
  `not_measured` in JSON says why in this run. Every metric is null for an arm that failed
  or was skipped, and a sum over both ends where one of them did not count; `-` says
  that no other reason is known.

| metric | unit | what it is | source | null where |
|---|---|---|---|---|
";

/// The whole file.
pub(super) fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for metric in METRICS {
        let null_where = metric.null_when.words().unwrap_or("-");
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {null_where} |",
            metric.name, metric.unit, metric.what, metric.source
        );
    }
    text
}
