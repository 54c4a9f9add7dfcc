//! Issue 25: cells with several groups of arms. What a run prints is held against its own
//! exported slices, recomputed here without the code of the analysis.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::process::Job;
use super::{Bench, Judged, Outcome, results};

/// A run whose arms do not fit one trial.
struct Grouped {
    command: &'static str,
    /// The cell whose table is read, as `iolens show` counts them.
    cell: &'static str,
    /// What slices count, of which an arm takes so much time for each.
    unit: &'static str,
    /// The ratio by which the table is ordered.
    ratio: &'static str,
}

const RUNS: [Grouped; 2] = [
    Grouped {
        command: "run server --quick --connections 16 --load closed --passes 6 --budget 60s --json",
        cell: "1",
        unit: "server_requests",
        ratio: "cpu_ratio",
    },
    Grouped {
        command: "run syscall --quick --threads 1 --passes 6 --budget 60s --json",
        cell: "1",
        unit: "calls",
        ratio: "ratio",
    },
];

/// Known answers: fixtures of two groups, by package and name.
const TESTS: [(&str, &str); 2] =
    [("iolens-stats", "group_tests"), ("iolens-report", "group_tests")];

pub(crate) fn check(bench: &Bench) -> Judged {
    let (mut evidence, mut passes) = (Vec::new(), true);
    for (package, name) in TESTS {
        let args = ["test", "--package", package, "--lib", name];
        let done = Job::cargo(&args).limit_minutes(15).run()?;
        let said = done.stdout();
        let result = said.lines().find(|line| line.starts_with("test result:")).unwrap_or("none");
        passes &= done.status.success() && !result.contains(" 0 passed");
        evidence.push(format!("{package} {name}: {result}"));
    }
    for grouped in &RUNS {
        let args: Vec<&str> = grouped.command.split_whitespace().collect();
        let run = bench.iolens_json("groups", &args, 4)?.json;
        let id = results::run_id(&run)?;
        let export = ["export", &id, "--format", "json", "--rows", "slices"];
        let slices = bench.iolens_json("groups", &export, 2)?.json;
        let show = bench.iolens("groups", &["show", &id, grouped.cell])?.run()?.success()?;
        let found = held(grouped, &run, &slices, &show.stdout());
        passes &= found.is_ok();
        let (Ok(words) | Err(words)) = found;
        evidence.push(format!("{}: {words}", grouped.command));
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// What a run printed against its slices.
///
/// Errors: what does not agree.
fn held(grouped: &Grouped, run: &Value, slices: &Value, table: &str) -> Result<String, String> {
    let rows: Vec<&Value> = rows_of_first_cell(run);
    let trials = trials(slices, grouped.unit);
    let floors = floors(&trials);
    if floors.len() < 2 {
        return Err(format!("{} group of arms: nothing is shown", floors.len()));
    }
    let passes: BTreeSet<u64> = trials.keys().map(|(pass, _)| *pass).collect();
    let of_passes = numbers(&rows, passes.len(), run)?;
    let floor = floor(&rows, &floors)?;
    let order = order(&rows, table, grouped.ratio)?;
    Ok(format!("{} groups; {of_passes}; {floor}; {order}", floors.len()))
}

fn rows_of_first_cell(run: &Value) -> Vec<&Value> {
    let rows: Vec<&Value> = run["cells"].as_array().into_iter().flatten().collect();
    let baselines = rows.iter().enumerate().filter(|(_, row)| row["role"] == "baseline");
    let second = baselines.map(|(i, _)| i).nth(1).unwrap_or(rows.len());
    rows[..second].to_vec()
}

/// Per trial, by pass and position: the arms in it, and ln(baseline / its copy) typical of its
/// rounds.
type Trials = BTreeMap<(u64, u64), (BTreeSet<String>, Option<f64>)>;

fn trials(slices: &Value, unit: &str) -> Trials {
    let rows = slices["slices"].as_array().into_iter().flatten();
    let first_cell = |row: &&Value| row["calls_in_a_row"].is_null() && row["pass"] != 0;
    let mut times: BTreeMap<(u64, u64), BTreeMap<u64, BTreeMap<String, f64>>> = BTreeMap::new();
    for row in rows.filter(|row| row["kind"] == "measured").filter(first_cell) {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let whole = |key: &str| row[key].as_u64().unwrap_or(0);
        let arm = row["arm"].as_str().unwrap_or("").to_owned();
        let rounds = times.entry((whole("pass"), whole("position"))).or_default();
        let each = number("time_ns") / number(unit);
        rounds.entry(whole("round")).or_default().insert(arm, each);
    }
    let one = |rounds: BTreeMap<u64, BTreeMap<String, f64>>| {
        let arms: BTreeSet<String> = rounds.values().flat_map(BTreeMap::keys).cloned().collect();
        let copy = arms.iter().find(|label| label.ends_with(" (A/A)")).cloned();
        let ln = |round: &BTreeMap<String, f64>| {
            let copy = copy.as_ref()?;
            Some((round.get(copy.strip_suffix(" (A/A)")?)? / round.get(copy)?).ln())
        };
        let lns: Vec<f64> =
            rounds.values().filter_map(ln).filter(|ln: &f64| ln.is_finite()).collect();
        let is_own = |label: &&String| {
            let base = copy.as_ref().and_then(|copy| copy.strip_suffix(" (A/A)"));
            Some(label.as_str()) != base && copy.as_ref() != Some(label)
        };
        (arms.iter().filter(is_own).cloned().collect(), median(lns))
    };
    times.into_iter().map(|(place, rounds)| (place, one(rounds))).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
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
fn numbers(rows: &[&Value], passes: usize, run: &Value) -> Result<String, String> {
    let is_compared = |row: &&&Value| row["role"] == "compared" || row["role"] == "self_check";
    for row in rows.iter().filter(is_compared).filter(|row| row["status"] == "ok") {
        let n = row["n"].as_u64().unwrap_or(0);
        if n == 0 || n > passes as u64 {
            return Err(format!("{} has n = {n} after {passes} passes", row["arm"]));
        }
    }
    let findings = run["findings"].as_array().into_iter().flatten();
    let said = findings.filter_map(|finding| finding["against"]["n"].as_u64());
    if let Some(n) = said.filter(|n| *n > passes as u64).max() {
        return Err(format!("a finding has n = {n} after {passes} passes"));
    }
    Ok(format!("n is at most {passes}, the passes"))
}

/// The copy's row is that of the widest group, to six digits.
fn floor(rows: &[&Value], floors: &[(usize, f64, f64)]) -> Result<String, String> {
    let copy = rows.iter().find(|row| row["role"] == "self_check").ok_or("no copy")?;
    let number = |key: &str| copy[key].as_f64().ok_or(format!("the copy has no {key}"));
    let (ratio, sd) = (number("ratio")?, number("ratio_sd_ln")?);
    let error = |(n, _, sd): &(usize, f64, f64)| sd / (*n as f64).sqrt();
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs().max(1e-3);
    let found = floors.iter().find(|(_, mean, own)| same(*own, sd) && same(*mean, ratio.ln()));
    let found = found.ok_or(format!("ratio {ratio}, sd {sd} is no group's of {floors:?}"))?;
    // With as many trials the widest interval has the largest error.
    let alike = floors.iter().filter(|(n, ..)| *n == found.0);
    match alike.map(error).fold(0.0, f64::max) <= error(found) * (1.0 + 1e-9) {
        true => Ok(format!("the copy of the widest group: sd {:.2} %", 100.0 * sd)),
        false => Err(format!("not the widest of {floors:?}: sd {sd}")),
    }
}

/// The rows of a table stand in the order of their ratios.
fn order(rows: &[&Value], table: &str, key: &str) -> Result<String, String> {
    let ratio = |row: &Value| match row["role"].as_str() {
        Some("baseline") => Some(1.0),
        Some("compared") => row[key].as_f64(),
        _ => None,
    };
    let of_label: BTreeMap<&str, f64> =
        rows.iter().filter_map(|row| Some((row["arm"].as_str()?, ratio(row)?))).collect();
    let mut seen = BTreeSet::new();
    let mut shown = Vec::new();
    for line in table.lines() {
        let Some(label) = line.split_whitespace().next() else { continue };
        // What is said of each arm below the table begins with its name alone.
        let is_row = line.split_whitespace().count() > 2 && !line.contains(':');
        if let Some(ratio) = of_label.get(label).filter(|_| is_row && seen.insert(label)) {
            shown.push((label, *ratio));
        }
    }
    if shown.len() < of_label.len() {
        return Err(format!("{} of {} arms in the table: {table}", shown.len(), of_label.len()));
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
        let rows: Vec<&Value> = rows.iter().collect();
        let table = |lines: &[&str]| lines.join("\n");
        assert!(
            order(&rows, &table(&["call ns times", "x 5 2", "b 10 1", "y 20 2"]), "ratio").is_ok()
        );
        assert!(order(&rows, &table(&["b 10 1", "x 12 2", "y 20 2"]), "ratio").is_err());
        assert!(order(&rows, &table(&["x 5 2", "b 10 1"]), "ratio").is_err());
        let run = json!({"findings": [{"method": "x", "against": {"ratio": 2.0, "n": 6}}]});
        assert!(numbers(&rows, 3, &run).is_err());
        assert!(numbers(&rows, 6, &run).is_ok());
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
        let copy = |of: &(usize, f64, f64)| json!({"arm": "b (A/A)", "role": "self_check", "ratio": of.1.exp(), "ratio_sd_ln": of.2});
        let is_held = |of| floor(&[&copy(of)], &floors).is_ok();
        assert_eq!((is_held(&floors[0]), is_held(&floors[1])), (false, true));
        assert!(!is_held(&(4, 0.0, 0.02)));
    }
}
