//! docs/export.md: the columns of every export, as runs of each study that are
//! made up have them. There is no other list of them that could be printed.

use iolens_document::Joined;
use std::fmt::Write;
use std::path::PathBuf;

use iolens_model::metrics::METRICS;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::export::Rows;
use crate::studies::ab;
use crate::studies::server;
use crate::studies::tests::studies;
use crate::{csv, fixture};

const HEAD: &str = "\
# Columns of exports

What `iolens export RUN… --format csv|json --rows arms|slices|cells|phases` writes, by study.
Without `--format` the name of `--output` decides; without both, it is CSV. JSON has every column.
CSV has a short set, listed below as *short*: which row it is, its result, its cost; and `host` and
each axis in which rows differ. `--columns all` writes every column, `--columns arm,ratio` only
these, in this order.
A test of `crates/report` compares this file with what is written, and rewrites it if
`IOLENS_DOCS=write` is set (`cargo xtask docs` does so).

- A row is an arm in a trial (**arms**), a slice (**slices**), an arm in a cell with its contrast
  (**cells**, not for `ab`), or a phase of a search (**phases**, `run server --slo`, `--knee`).
- All runs of one export belong to one study. **`host`**, the last column, is the label of
  the machine that measured the run: its host name, or the name given to `iolens import --host`;
  null where the name could not be read.
- Read columns by name: new ones may be added, and studies have different ones.
- CSV is RFC 4180 with line feeds; an empty field is null: not measured, never 0. JSON has
  the same names as keys, `not_measured` with the reasons, and whole histograms
  (`latency_histogram`), which have no column.
- With `--output FILE.csv` the known reasons for empty fields go to **`FILE.reasons.csv`**:
  `first_row` and `last_row` (counted from 1, without the header), `column`, `reason`.
  The reason why an arm failed is in its own column `reason`.
- Units are part of the names: `_ns`, `_bytes`, `_bits_per_s`, `_per_byte`; a name without one is a
  count, a ratio, a word, or a share from 0 to 1. `_low` and `_high` mark the ends of the 95%
  interval of the column named without them. They are empty where the upper end is over ten times
  the lower: such an interval says nothing. `tx_` is the sending end, `rx_` the receiving end; names
  with neither cover both ends together.
- An analysis uses the slices of `kind` `measured` whose **`unused`** is null; otherwise `unused`
  says why not: a check, a pass that was cut short, a trial that was run again.
  `witness/recompute.py` recomputes contrasts, verdicts and figures from them.
- A name in *italics* is a metric: [metrics.md](metrics.md) says what it is, its source, and where
  it is null. The others identify the row or are computed from metrics (METHOD, From a trial to a
  ratio).

## A whole run

`iolens export RUN --format json --rows all` writes everything that is stored of a run, without
loss, and `iolens import FILE` adds it to another database; an export from there is the same, byte
for byte. It consists of lines of JSON, each an object:

- **first** `{\"format\":\"iolens-run\",\"version\":2,\"schema\":1,\"run\":{…},\"run_end\":[…],
  \"shared\":[…],\"run_count\":[…]}`: the run, each of its ends, what its trials share (cells, and
  what the ends report about themselves), and the names of its counts;
- **for each trial** `{\"trial\":{…},\"arm\":[…],\"slice\":[…]}`, in the order in which they ran;
- **for each phase of a search** `{\"search_phase\":{…}}`;
- **for each sampled trial** `{\"profile\":{…}}`;
- **last** `{\"end\":{\"run\":ID,\"trial\":n,\"arm\":n,\"slice\":n,…}}`: how many there were of each.
  A file without it was cut off, and nothing of it is imported.

`version` is the version of these lines; it is raised when a line is removed or changes its meaning.
`schema` is the version of the columns, which are those of the tables of a database
(`crates/store/src/schema.sql`). A build reads only its own version of each. NULL columns are left
out. So are the row numbers of the database and where the run came from: the importing database sets
these itself. Lines of several runs may follow one another.
";

/// The whole file.
fn export() -> String {
    let net = ("net", fixture::whole());
    let of_searches = ("server", server::searches_tests::searched());
    let studies =
        std::iter::once(net).chain(studies().into_iter().filter(|(study, _)| *study != "server"));
    let of_programs = ("ab", ab::tests::analysed_run());
    let studies: Vec<(&str, (Run, Analysis))> = studies.chain([of_searches, of_programs]).collect();
    let mut text = HEAD.to_owned();
    for (study, (run, analysis)) in &studies {
        assert_eq!(run.header.plan.study().word(), *study);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n## {study}");
        let (runs, analyses) = (std::slice::from_ref(run), std::slice::from_ref(analysis));
        let analysed = [Rows::Cells(runs, analyses), Rows::Phases(runs)];
        let analysed = analysed.into_iter().filter(|_| *study != "ab");
        for rows in [Rows::Arms(runs), Rows::Slices(runs)].into_iter().chain(analysed) {
            let table = csv::all(rows);
            let Some(header) = table.lines().next() else { continue };
            let all = header.split(',').map(shown);
            let short: Vec<String> = rows.short().iter().map(|column| shown(column)).collect();
            let _ = writeln!(text, "\n**{}**: {}.", rows.word(), all.joined(", "));
            let _ = writeln!(text, "\n*short*: {}.", short.join(", "));
        }
    }
    text
}

/// A column, set so that metrics are told from the others.
fn shown(column: &str) -> String {
    let is = |name: &str| METRICS.iter().any(|metric| metric.name == name);
    let without_end = column.strip_prefix("tx_").or_else(|| column.strip_prefix("rx_"));
    match is(column) || without_end.is_some_and(is) {
        true => format!("*`{column}`*"),
        false => format!("`{column}`"),
    }
}

#[test]
fn the_columns_in_the_docs_are_those_that_are_written() {
    let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, PathBuf::from);
    let path = package.join("../../docs/export.md");
    let made = export();
    if std::env::var_os("IOLENS_DOCS").is_some_and(|wish| wish == "write") {
        return std::fs::write(&path, made).expect("the docs are written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == made, "docs/export.md is out of date: run `cargo xtask docs`");
}
