//! Reading, writing and copying files.

mod by_hand;
mod rivals;

use std::collections::BTreeSet;

use crate::json::measured;
use crate::prelude::*;
use crate::process::process;

pub const FUNCTIONS: Functions = &[
    ("by-hand", by_hand::check),
    ("block-sizes", block_sizes),
    ("fio", rivals::fio),
    ("fio-small", rivals::fio_small),
    ("google-benchmark", rivals::google_benchmark),
    ("memory", memory),
    ("file-systems", file_systems),
];

/// The plan of block sizes, judged by what each slice counted.
fn block_sizes(bench: &Bench) -> Res {
    let plan = crate::root().join("plans/file-block-sizes.toml");
    let run = bench.iolens("run").arg(plan).words("--progress none --budget 5m --json");
    let json = run.json()?;
    bench.ask("the run", &json, &Value::Null);
    let arms = bench.json("export last --format json --rows arms")?;
    bench.ask("slices", &json!(used(&arms, &bench.slices()?)), &json);
    Ok(())
}

/// The slices that count, of arms that no gate refused.
fn used<'a>(arms: &Value, slices: &'a Value) -> Vec<&'a Value> {
    let trial = |row: &Value| ["pass", "position", "arm"].map(|part| row[part].to_string());
    let ok = arms.list("arms").iter().filter(|row| row["status"] == "ok");
    let ok: BTreeSet<_> = ok.map(trial).collect();
    measured(slices).into_iter().filter(|row| ok.contains(&trial(row))).collect()
}

/// What the tool itself may have in memory, beyond the buffers it reads into.
///
/// Anonymous memory, looked at again and again: a mapped file is the page cache's, and
/// the high-water mark of a process that mapped one has all of it. The buffers of what
/// is run here are less than 2 MiB. The bandwidths of memory are measured before the
/// first trial, with buffers larger than every cache: what counts begins behind them.
const LIMIT_KIB: u64 = 64 << 10;

const MEMORY_RUN: &str = "run file --quick --block-sizes 4KiB,64KiB --engines all --threads 1 --consumer \
                   scan --passes 3 --progress plain";

fn memory(bench: &Bench) -> Res {
    bench.run("file write file --block-size 1MiB --count 512")?;
    let reads = "file read file --block-size 64KiB --scan --threads 2 --loops 10";
    for (name, words, calibrates) in [("run file", MEMORY_RUN, true), ("file read", reads, false)] {
        let running = bench.iolens(words).start()?;
        // The command, and all of its workers.
        let (mut looks, mut peaks, mut counts) = (0, [0; 2], !calibrates);
        let done = running.finish_watched(|running| {
            counts = counts || running.has_said("committed: ");
            if counts {
                looks += 1;
                let own = running.id();
                peaks[0] = peaks[0].max(anonymous_kib(own));
                peaks[1] = children(own).into_iter().map(anonymous_kib).fold(peaks[1], u64::max);
            }
        })?;
        done.success()?;
        bench.note(name, format!("{looks} looks"));
        for (who, kib) in ["the command", "a worker"].iter().zip(peaks) {
            bench.within(format!("KiB in {who}"), kib, 1..LIMIT_KIB);
        }
    }
    Ok(())
}

/// The processes that a process has started, from any of its threads.
fn children(parent: u32) -> Vec<u32> {
    let tasks = process(parent).and_then(|parent| parent.tasks().ok()).into_iter().flatten();
    tasks.flatten().flat_map(|task| task.children().unwrap_or_default()).collect()
}

fn anonymous_kib(id: u32) -> u64 {
    process(id).and_then(|process| process.status().ok()?.rssanon).unwrap_or(0)
}

const KINDS: [&str; 8] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse", "failing", "quota"];

/// Mounts, uses the tool, and unmounts.
const SCRIPT: &str = include_str!("files/file_systems.sh");

/// Every plain tool and a run on each file system, in a mount namespace of its own, copies that
/// share blocks and that go on where they were interrupted, a device that fails and a quota that is
/// used up.
fn file_systems(bench: &Bench) -> Res {
    let listed = bench.json("list engines --json")?;
    let of_task = |task: &str| listed.names("engines", |engine| engine["task"] == task).join(" ");
    let engines = ["read", "copy", "write"].map(of_task);
    for kind in KINDS {
        let used = on(&bench.room(&format!("file-systems-{kind}"))?, kind, &engines);
        bench.part(kind, used.map(|()| "used"));
    }
    Ok(())
}

/// Uses the tool on one kind.
fn on(bench: &Bench, kind: &str, engines: &[String; 3]) -> Res {
    let content = (0..1_048_579_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
    bench.write("source", content.collect::<Vec<u8>>())?;
    let job = Job::of("unshare --mount --propagation private sh -c").args([SCRIPT, "sh", kind]);
    let job = job.arg(bench.path("")).arg(&bench.tool).args(engines);
    let finished = bench.at_home(job).minutes(5).run()?;
    // The script's own codes.
    if let Some(code @ (8 | 9)) = finished.status.code() {
        bail!("it cannot be had ({code}): {}", finished.stderr());
    }
    finished.success()?;
    let said = said(bench);
    let left = bench.read("said/left").unwrap_or_default();
    let changed = bench.path("said/changed").exists();
    let shares = matches!(kind, "xfs" | "btrfs");
    let beside = json!({"left": left.trim(), "changed": changed, "shares": shares});
    match kind {
        "failing" => bench.ask("a device that fails", &said, &beside),
        "quota" => bench.ask("a quota that is used up", &said, &beside),
        _ => bench.ask("all works, or says why not", &said, &beside),
    }
    if ["ext4", "xfs", "btrfs"].contains(&kind) {
        bench.ask("a run of copies", &said, &beside);
    }
    Ok(())
}

/// What all commands said, by their names; without a code where one was not started.
fn said(bench: &Bench) -> Value {
    let of = |name: &str| {
        let text = |part: &str| bench.read(&format!("said/{name}.{part}")).unwrap_or_default();
        let code = text("code").trim().parse::<i32>().ok();
        json!({"code": code, "out": text("out"), "err": text("err")})
    };
    let names = names(bench.path("said"));
    let names = names.iter().filter_map(|name| name.strip_suffix(".code"));
    names.map(|name| (name.to_owned(), of(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::asked;

    fn slice(cache: &str, resident: u64, device: u64) -> Value {
        json!({"primitive": "read", "cache": cache, "block_bytes": 1, "kind": "measured",
               "pass": 1, "position": 2, "arm": "read", "bytes": 100,
               "resident_before_bytes": resident, "device_bytes": device})
    }

    #[test]
    fn a_slice_is_what_its_cell_says() {
        let good = |mut slice: Value, engine: &str| {
            slice["primitive"] = engine.into();
            let cells = ["warm", "cold"].map(|cache| {
                json!({"primitive": engine, "cache": cache, "block_bytes": 1, "status": "ok"})
            });
            // The other cell has one that is right.
            let other = if slice["cache"] == "warm" { "cold" } else { "warm" };
            let resident = if other == "warm" { 1_000_000 } else { 0 };
            let stored = other == "cold" || engine == "direct";
            let mut right = self::slice(other, resident, if stored { 100 } else { 0 });
            right["primitive"] = engine.into();
            let run = json!({"cells": cells, "run": {"file": {"bytes": 1_000_000}}});
            asked("files block-sizes", "slices", &json!([slice, right]), &run)
        };
        let read = |cache, resident, device| good(slice(cache, resident, device), "read");
        assert!(read("cold", 0, 100) && read("warm", 1_000_000, 0));
        assert!(!read("cold", 0, 99) && !read("cold", 2000, 100));
        assert!(!read("warm", 900_000, 0) && !read("warm", 1_000_000, 50));
        let direct = |device| good(slice("warm", 1_000_000, device), "direct");
        assert!(direct(100) && !direct(50));
        let mut unknown = slice("cold", 0, 100);
        unknown["resident_before_bytes"] = Value::Null;
        assert!(!good(unknown, "read"));
        let mut of_another = slice("cold", 0, 100);
        of_another["block_bytes"] = 2.into();
        assert!(!good(of_another, "read"), "a cell with numbers has no slices");
    }

    #[test]
    fn slices_of_refused_arms_and_discarded_ones_do_not_count() {
        let arm =
            |pass, status| json!({"pass": pass, "position": 2, "arm": "read", "status": status});
        let mut discarded = slice("cold", 0, 100);
        discarded["kind"] = "discarded".into();
        let mut other = slice("cold", 0, 100);
        other["pass"] = 2.into();
        let slices = json!({"slices": [slice("cold", 0, 100), discarded, other]});
        let arms = json!({"arms": [arm(1, "ok"), arm(2, "invalid")]});
        assert_eq!(used(&arms, &slices).len(), 1);
    }

    #[test]
    fn a_cell_or_a_fit_that_is_missing_is_wrong() {
        let good = |change: fn(&mut Value)| {
            let cells = ["warm", "cold"].map(|cache| {
                let cell = |power: u32| {
                    json!({"primitive": "direct", "cache": cache, "block_bytes": 1_u64 << power,
                           "status": if power < 12 { "skipped" } else { "ok" }})
                };
                (0..23).map(cell).collect::<Vec<_>>()
            });
            let part = json!({"value": 1.0, "interval": {"low": 0.9, "high": 1.1}});
            let fits = ["warm", "cold"].map(|cache| {
                json!({"label": "direct", "curve": {"cache": cache}, "fixed_ns": part,
                       "per_byte_ns": part, "half_size_bytes": part})
            });
            let mut run = json!({"cells": cells.concat(), "cost_models": fits});
            change(&mut run);
            asked("files block-sizes", "the run", &run, &Value::Null)
        };
        assert!(good(|_| ()));
        assert!(!good(|run| run["cells"][20]["status"] = "skipped".into()));
        assert!(!good(|run| run["cells"][3]["status"] = "invalid".into()));
        assert!(!good(|run| run["cells"][3]["block_bytes"] = 1.into()));
        assert!(!good(|run| run["cost_models"][1]["label"] = "read".into()));
        assert!(!good(|run| run["cost_models"][0]["fixed_ns"]["interval"] = Value::Null));
    }
}
