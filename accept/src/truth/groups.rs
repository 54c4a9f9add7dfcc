//! Cells with several groups of arms, which are more than one trial holds: known answers, and what
//! runs print. That the numbers of their copies are right is what `recompute` shows.

use std::collections::BTreeMap;

use super::run_id;
use crate::prelude::*;

/// Runs, and the ratio by which the table of their first cell is ordered.
const RUNS: [(&str, &str); 2] = [
    (
        "run server --quick --connections 16 --load closed --passes 6 --budget 60s --json",
        "cpu_ratio",
    ),
    ("run syscall --quick --threads 1 --passes 6 --budget 60s --json", "ratio"),
];

pub fn check(bench: &Bench) -> Res {
    for (command, ratio) in RUNS {
        let run = bench.json(command)?;
        bench.note("run", command);
        let export = bench.slices()?;
        bench.ask("slices", &export, &Value::Null);
        bench.ask("a run", &run, &export);
        let rows = rows_of_first_cell(&run);
        let table = bench.run(format!("show {} 1", run_id(&run)?))?.stdout();
        bench.part("table", order(rows, &table, ratio));
    }
    Ok(())
}

fn rows_of_first_cell(run: &Value) -> &[Value] {
    let rows = run.list("cells");
    let second = rows.iter().skip(1).position(|row| row["role"] == "baseline");
    &rows[..second.map_or(rows.len(), |at| at + 1)]
}

/// The rows of a table stand in the order of their ratios.
fn order(rows: &[Value], table: &str, key: &str) -> Res<String> {
    let ratio = |row: &Value| match row.word("role") {
        "baseline" => Some(1.0),
        "compared" => row[key].as_f64(),
        _ => None,
    };
    let mut of_label: BTreeMap<&str, f64> =
        rows.iter().filter_map(|row| Some((row.word("arm"), ratio(row)?))).collect();
    let mut shown = Vec::new();
    // What is said of each arm below the table begins with its name alone.
    for line in table.lines().filter(|line| !line.contains(':')) {
        let mut words = line.split_whitespace();
        let label = words.next().unwrap_or_default();
        if words.count() > 1
            && let Some(ratio) = of_label.remove(label)
        {
            shown.push((label, ratio));
        }
    }
    if !of_label.is_empty() {
        bail!("not in the table: {of_label:?}: {table}");
    }
    match shown.is_sorted_by(|a, b| a.1 >= b.1) {
        true => Ok(format!("{} rows in the order of their ratios", shown.len())),
        false => bail!("the table has not the order of its ratios: {shown:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(arm: &str, role: &str, ratio: f64, n: u64) -> Value {
        json!({"arm": arm, "role": role, "status": "ok", "ratio": ratio, "n": n})
    }

    #[test]
    fn a_table_is_held_against_its_ratios() {
        let rows = [
            row("b", "baseline", 1.0, 3),
            row("x", "compared", 2.0, 3),
            row("y", "compared", 0.5, 3),
        ];
        let table = |lines: &[&str]| lines.join("\n");
        assert!(
            order(&rows, &table(&["call ns times", "x 5 2", "b 10 1", "y 20 2"]), "ratio").is_ok()
        );
        assert!(order(&rows, &table(&["b 10 1", "x 12 2", "y 20 2"]), "ratio").is_err());
        assert!(order(&rows, &table(&["x 5 2", "b 10 1"]), "ratio").is_err());
    }
}
