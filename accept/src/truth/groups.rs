//! Cells with several groups of arms. What a run prints is held against its own
//! exported slices, recomputed here without the code of the analysis.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::run_id;
use crate::bench::Bench;
use crate::check::{Check, Res};
use crate::json::{Json, measured};
use crate::pairs::Median;
use crate::process::tests;

/// Runs whose arms do not fit one trial; what slices count, of which an arm takes so much time for
/// each; and the ratio by which the table of the first cell is ordered.
const RUNS: [(&str, &str, &str); 2] = [
    (
        "run server --quick --connections 16 --load closed --passes 6 --budget 60s --json",
        "server_requests",
        "cpu_ratio",
    ),
    ("run syscall --quick --threads 1 --passes 6 --budget 60s --json", "calls", "ratio"),
];

pub(super) fn check(bench: &Bench, check: &mut Check) -> Res {
    // Known answers: fixtures of two groups.
    for package in ["iolens-stats", "iolens-report"] {
        tests(check, &format!("--package {package} --lib group_tests"))?;
    }
    for (command, unit, ratio) in RUNS {
        let run = bench.json(command)?;
        let id = run_id(&run)?;
        let slices = bench.json(&format!("export {id} --format json --rows slices"))?;
        let table = bench.run(&format!("show {id} 1"))?.stdout();
        check.note("run", command);
        held(check, &run, &trials(&slices, unit), &table, ratio);
    }
    Ok(())
}

/// What a run printed against its slices.
fn held(check: &mut Check, run: &Value, trials: &Trials, table: &str, ratio: &str) {
    let rows = rows_of_first_cell(run);
    let floors = floors(trials);
    check.within("groups of arms", floors.len(), 2..);
    let passes: BTreeSet<u64> = trials.keys().map(|(pass, _)| *pass).collect();
    numbers(check, rows, passes.len() as u64, run);
    check.part("copy", floor(rows, &floors));
    check.part("table", order(rows, table, ratio));
}

fn rows_of_first_cell(run: &Value) -> &[Value] {
    let rows = run.rows();
    let second = rows.iter().skip(1).position(|row| row["role"] == "baseline");
    &rows[..second.map_or(rows.len(), |at| at + 1)]
}

/// Per trial, by pass and position: the arms in it, and ln(baseline / its copy) typical of its
/// rounds.
type Trials = BTreeMap<(u64, u64), (BTreeSet<String>, Option<f64>)>;

fn trials(slices: &Value, unit: &str) -> Trials {
    let rows = measured(slices).into_iter();
    let first_cell = rows.filter(|row| row["calls_in_a_row"].is_null() && row["pass"] != 0);
    let mut times: BTreeMap<(u64, u64), BTreeMap<u64, BTreeMap<String, f64>>> = BTreeMap::new();
    for row in first_cell {
        let rounds = times.entry((row.int("pass"), row.int("position"))).or_default();
        let each = row.num("time_ns") / row.num(unit);
        rounds.entry(row.int("round")).or_default().insert(row.word("arm").to_owned(), each);
    }
    let one = |rounds: BTreeMap<u64, BTreeMap<String, f64>>| {
        let mut arms: BTreeSet<String> =
            rounds.values().flat_map(BTreeMap::keys).cloned().collect();
        let copy = arms.iter().find(|label| label.ends_with(" (A/A)")).cloned();
        let copy = copy.unwrap_or_default();
        let base = copy.trim_end_matches(" (A/A)");
        let lns = rounds.values().filter_map(|of| Some((of.get(base)? / of.get(&copy)?).ln()));
        let lns: Vec<f64> = lns.filter(|ln| ln.is_finite()).collect();
        arms.retain(|label| label != base && *label != copy);
        (arms, (!lns.is_empty()).then(|| Median::of(lns).value))
    };
    times.into_iter().map(|(place, rounds)| (place, one(rounds))).collect()
}

/// Of each group its copy's trials: how many, the mean and the standard deviation.
fn floors(trials: &Trials) -> Vec<(usize, f64, f64)> {
    let mut groups: BTreeMap<&BTreeSet<String>, Vec<f64>> = BTreeMap::new();
    for (arms, ln) in trials.values() {
        groups.entry(arms).or_default().extend(ln);
    }
    let one = |lns: &Vec<f64>| {
        let n = lns.len() as f64;
        let mean = lns.iter().sum::<f64>() / n;
        let squares: f64 = lns.iter().map(|ln| (ln - mean).powi(2)).sum();
        (lns.len(), mean, (squares / (n - 1.0)).sqrt())
    };
    groups.values().filter(|lns| lns.len() > 1).map(one).collect()
}

/// Every comparison rests on as many trials as there are passes at most, and no finding says
/// more.
fn numbers(check: &mut Check, rows: &[Value], passes: u64, run: &Value) {
    let is_contrast = |row: &&Value| {
        ["compared", "self_check"].contains(&row.word("role")) && row["status"] == "ok"
    };
    let ns: Vec<u64> = rows.iter().filter(is_contrast).map(|row| row.int("n")).collect();
    check.within("least n", ns.iter().min().copied().unwrap_or(1), 1..);
    let said = run.list("findings").iter().map(|finding| finding.int("against/n"));
    check.within("most n", ns.iter().copied().chain(said).max().unwrap_or(0), ..=passes);
}

/// The copy's row is that of the widest group, to six digits.
fn floor(rows: &[Value], floors: &[(usize, f64, f64)]) -> Res<String> {
    let copy = rows.iter().find(|row| row["role"] == "self_check").ok_or("no copy")?;
    let (ratio, sd) = (copy.need("ratio")?, copy.need("ratio_sd_ln")?);
    let error = |(n, _, sd): &(usize, f64, f64)| sd / (*n as f64).sqrt();
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs().max(1e-3);
    let found = floors.iter().find(|(_, mean, own)| same(*own, sd) && same(*mean, ratio.ln()));
    let found = found.ok_or(format!("ratio {ratio}, sd {sd} is no group's of {floors:?}"))?;
    // With as many trials the widest interval has the largest error.
    let alike = floors.iter().filter(|(n, ..)| *n == found.0);
    match alike.map(error).fold(0.0, f64::max) <= error(found) * (1.0 + 1e-9) {
        true => Ok(format!("that of the widest group: sd {:.2} %", 100.0 * sd)),
        false => Err(format!("not the widest of {floors:?}: sd {sd}")),
    }
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
        return Err(format!("not in the table: {of_label:?}: {table}"));
    }
    match shown.is_sorted_by(|a, b| a.1 >= b.1) {
        true => Ok(format!("{} rows in the order of their ratios", shown.len())),
        false => Err(format!("the table has not the order of its ratios: {shown:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::passes;

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
        let run = json!({"findings": [{"method": "x", "against": {"ratio": 2.0, "n": 6}}]});
        let good = |most| passes(|check| numbers(check, &rows, most, &run));
        assert!(!good(3) && good(6));
    }

    #[test]
    fn the_floor_is_the_widest_groups() {
        let slice = |pass: u64, position: u64, arm: &str, ns: f64| {
            json!({"pass": pass, "position": position, "round": 1, "kind": "measured", "arm": arm,
                   "time_ns": ns, "calls": 1})
        };
        let mut slices = Vec::new();
        for (pass, stray) in [(1, 1.01), (2, 0.99)] {
            for (position, own, times) in [(0, "x", 1.0), (1, "y", 3.0)] {
                slices.push(slice(pass, position, "b", 100.0));
                slices.push(slice(pass, position, own, 50.0));
                slices.push(slice(pass, position, "b (A/A)", 100.0 * f64::powf(stray, times)));
            }
        }
        let floors = floors(&trials(&json!({ "slices": slices }), "calls"));
        assert_eq!(floors.len(), 2);
        let copy = |of: &(usize, f64, f64)| {
            json!({"arm": "b (A/A)", "role": "self_check",
                                                        "ratio": of.1.exp(), "ratio_sd_ln": of.2})
        };
        let is_held = |of| floor(&[copy(of)], &floors).is_ok();
        assert_eq!((is_held(&floors[0]), is_held(&floors[1])), (false, true));
        assert!(!is_held(&(4, 0.0, 0.02)));
    }
}
