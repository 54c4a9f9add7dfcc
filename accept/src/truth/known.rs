//! Programs that speak the loop protocol, as arms: what each does is known.

use std::collections::BTreeMap;

use super::run_id;
use crate::prelude::*;

const PROGRAM: &str = include_str!("looped.c");

/// How far a program may be from the method that does the same, as a factor of time.
const SAME: f64 = 1.03;

/// How far what was planted may be from itself, as a factor.
const PLANTED: f64 = 1.05;

/// A run, the method that the program does the same as, and the program that does it once and
/// twice in an operation.
const WAYS: [(&str, &str, &str); 3] = [
    ("syscall --calls getppid --bursts full", "getppid", "call TIMES"),
    (
        "file --engines pread --baseline pread --cache warm --consumer none \
         --block-sizes 4KiB,64KiB --file-size 64MiB",
        "pread",
        "read TIMES {file} {block}",
    ),
    (
        "net --loop --network loopback --methods send --baseline send --sizes 4KiB,64KiB",
        "send",
        "send TIMES {host} {port} {size}",
    ),
];

/// How long a planted operation lasts, ns.
const SPIN_NS: u64 = 20_000;

fn measured(bench: &Bench, run: &str, programs: &[(&str, String)]) -> Res<Value> {
    // Half of an interval is to be less than what is asked.
    let run = format!("run {run} --threads 1 --precision 1% --budget 60s");
    let mut job = bench.at_home(bench.iolens(&run));
    for (name, command) in programs {
        job = job.args(["--external", &format!("{name}=./looped {command}")]);
    }
    job.minutes(10).run()?;
    bench.json("show last --json")
}

/// The rows of an arm, one for each size.
fn rows<'a>(result: &'a Value, id: &str) -> Res<Vec<&'a Value>> {
    let rows = result["cells"].as_array().context("no cells")?;
    let own: Vec<&Value> = rows.iter().filter(|row| row["arm"] == id).collect();
    ensure!(!own.is_empty(), "no row of {id}");
    Ok(own)
}

/// By how much an arm is faster than the baseline.
fn ratio(row: &Value) -> Res<f64> {
    row["ratio"].as_f64().with_context(|| format!("{} failed: {}", row["arm"], row["reason"]))
}

/// Programs cost what our methods cost that do the same; twice the work and a stated time are read
/// as what they are.
pub fn looped(bench: &Bench) -> Res {
    bench.write("looped.c", PROGRAM)?;
    bench.at_home(Job::of("cc -O2 -pthread -o looped looped.c")).success()?;
    for (run, method, command) in WAYS {
        let times = |times: u32| command.replace("TIMES", &times.to_string());
        let mut programs = vec![("once", times(1))];
        // More bytes would not be what a message was told to have.
        if method != "send" {
            programs.extend([("ten", times(10)), ("twenty", times(20))]);
        }
        let result = measured(bench, run, &programs)?;
        let ratios = |name| rows(&result, name)?.into_iter().map(ratio).collect::<Res<Vec<_>>>();
        for (nth, once) in ratios("once")?.into_iter().enumerate() {
            bench.within(format!("once over {method}, size {nth}"), once, 1.0 / SAME..=SAME);
        }
        if method == "send" {
            continue;
        }
        for (nth, (ten, twenty)) in ratios("ten")?.into_iter().zip(ratios("twenty")?).enumerate() {
            let what = format!("20 of {method} take so many times as long as 10, size {nth}");
            bench.within(what, ten / twenty, 2.0 / PLANTED..=2.0 * PLANTED);
        }
    }
    let spin = ("spin", format!("spin {SPIN_NS}"));
    let result = measured(bench, "syscall --calls getppid --bursts full", &[spin])?;
    let took_ns = rows(&result, "spin")?[0]["ns_per_call"].as_f64().context("no time of spin")?;
    bench.within("an operation of 20 µs", took_ns / SPIN_NS as f64, 0.99..=PLANTED);
    Ok(())
}

// Cells with several groups of arms, which are more than one trial holds: known answers, and what
// runs print. That the numbers of their copies are right is what `recompute` shows.

/// Runs, and the ratio by which the table of their first cell is ordered.
const RUNS: [(&str, &str); 2] = [
    (
        "run server --quick --connections 16 --load closed --passes 6 --budget 60s --json",
        "cpu_ratio",
    ),
    ("run syscall --quick --threads 1 --passes 6 --budget 60s --json", "ratio"),
];

pub fn groups(bench: &Bench) -> Res {
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
