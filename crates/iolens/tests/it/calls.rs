//! The study `syscall` from outside: measured, shown, exported, gone on with, and
//! what is not of it refused.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{Place, list};

const RUN: &str = "run syscall --calls getppid,function,read_zero,open_close,close,fsync \
                   --threads 1 --bursts full,1,100 --quick --passes 2 --rounds 3 --progress none";

#[test]
fn calls_are_measured_and_told() {
    let place = Place::new();
    place
        .run(RUN)
        .ended(0)
        .prints("into the kernel and back (getppid)")
        .prints("ns per call in a tight loop (getppid's × ratio)");

    let names = ["arm", "calls_in_a_row", "status", "calls", "system_calls", "bytes", "slices"];
    let rows = place.rows("arms", names);
    let measured: Vec<_> = rows.iter().filter(|row| row[2] == "ok").collect();
    for [arm, in_a_row, _, calls, system_calls, bytes, slices] in &measured {
        let number = |text: &str| text.parse::<u64>().expect("a count");
        let (calls, system_calls) = (number(calls), number(system_calls));
        let (per_call, of_bytes) = match arm.as_str() {
            "function" => (0, 0),
            "open_close" => (2, 0),
            "read_zero" => (1, 1),
            "fsync" => (2, 1),
            _ => (1, 0),
        };
        assert_eq!((system_calls, number(bytes)), (calls * per_call, calls * of_bytes), "{arm}");
        if let Ok(in_a_row) = in_a_row.parse::<u64>() {
            assert_eq!(calls, in_a_row * number(slices), "{arm}");
        }
    }
    // What cannot be so many in a row says so, and everything else is measured.
    let refused: Vec<_> = rows.iter().filter(|row| row[2] == "skipped").collect();
    assert!(refused.iter().all(|row| row[0] == "fsync" && row[1] == "100"), "{refused:?}");
    assert!(!refused.is_empty() && measured.len() > refused.len());

    let json = place.json("show last --json");
    assert_eq!(json["run"]["plan"]["study"], "syscall");
    assert!(json["run"]["plan"].get("topologies").is_none());
    assert_eq!(json["run"]["calls"][0]["id"], "getppid");
    let shown = place.run("show last 1").stdout;
    assert!(shown.contains("ns/call") && !shown.contains("message"), "{shown}");
    place.run("report last -o PLACE/page.html").ended(0);
    let page = place.read("page.html");
    assert!(page.contains("getppid") && page.contains("ns per call"));
    let runs = place.json("runs --json");
    assert_eq!((&runs[0]["study"], &runs[0]["cells"]), (&"syscall".into(), &3.into()));
}

/// Thirteen calls beside the baseline are three groups, each with a trial of its own in every pass:
/// what the machine does in the course of a visit falls on none of them in particular.
#[test]
fn groups_of_calls_take_turns_in_random_order() {
    let place = Place::new();
    let line = "run syscall --calls getppid,clock_gettime,close,dup,fstat,futex_wake,read_bad,\
                read_zero,read_file,read_pipe,write_null,write_file,write_pipe,open_close --threads 1 --quick \
                --bursts full --passes 8 --rounds 2 --progress none";
    place.run(line).assert_ended();
    let mut passes: BTreeMap<String, BTreeMap<u32, String>> = BTreeMap::new();
    for [arm, role, pass, position] in place.rows("arms", ["arm", "role", "pass", "position"]) {
        let groups = passes.entry(pass).or_default();
        if role == "compared" {
            // Any of its arms stands for a group.
            groups.entry(position.parse().expect("a number")).or_insert(arm);
        }
    }
    let orders: Vec<Vec<&String>> = passes.values().map(|p| p.values().collect()).collect();
    assert!(orders.len() == 8 && orders.iter().all(|order| order.len() == 3), "{orders:?}");
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
}

#[test]
fn two_threads_share_the_work_of_a_slice() {
    let place = Place::new();
    let line = "run syscall --calls getppid,close,read_pipe,fault_file --threads 2 \
                --bursts 5 --quick --passes 1 --rounds 3 --progress none";
    // Slices so short that a gate may not believe that both threads were at work.
    place.run(line).assert_ended();
    let rows = place.rows("slices", ["arm", "threads", "calls"]);
    assert!(rows.len() >= 4 * 3, "{rows:?}");
    assert!(rows.iter().all(|row| row[1] == "2" && row[2] == "10"), "{rows:?}");
}

#[test]
fn a_run_of_calls_that_was_cut_short_goes_on() {
    let place = Place::new();
    let mut run = place.start(
        "run syscall --calls getppid,read_zero --threads 1 --bursts full,10 --passes 6 \
         --rounds 3 --progress plain --precision 0.1%",
    );
    run.wait_for("committed: pass 3");
    run.killed();
    place.run("resume last --progress none").ended(0);
    let runs = place.json("runs --json");
    assert_eq!(runs[0]["end"]["stopped_by"], "passes");
    let rows = place.rows("slices", ["arm", "calls_in_a_row", "isolated", "calls"]);
    // Calls in a row are so many, and the baseline's work stays; that of another arm which fills a
    // slice follows the baseline's time.
    for row in rows.iter().filter(|row| !row[1].is_empty() || row[0] == "getppid") {
        let same = rows.iter().filter(|other| other[..3] == row[..3]);
        assert!(same.clone().all(|other| other[3] == row[3]), "{row:?}: the work was fixed");
    }
}

#[test]
fn calls_move_blocks_of_each_size() {
    let place = Place::new();
    let line = "run syscall --calls lseek,read_zero,pread,write_pipe --sizes 1,16KiB --quick \
                --bursts full --passes 2 --rounds 3 --progress none";
    place
        .run(line)
        .ended(0)
        .prints("ns per call by block size")
        .says("--sizes measures calls that move bytes; left out: lseek");
    let rows = place.rows("arms", ["arm", "block_bytes", "status", "calls", "bytes"]);
    assert_eq!(rows.iter().map(|row| &row[1]).collect::<BTreeSet<_>>().len(), 2, "{rows:?}");
    for [arm, block, status, calls, bytes] in &rows {
        let number = |text: &str| text.parse::<u64>().expect("a count");
        let moved = if arm.starts_with("getppid") { 0 } else { number(calls) * number(block) };
        assert_eq!((status.as_str(), number(bytes)), ("ok", moved), "{arm} of {block}");
    }
    place.printed_plan(line);
}

#[test]
fn calls_on_a_file_of_the_users_leave_it_as_it_is() {
    let place = Place::new();
    let content: Vec<u8> = (0..100_000u32).map(|n| n.to_le_bytes()[0]).collect();
    place.write("theirs", &content);
    let path = place.path("theirs");
    let changed = || std::fs::metadata(&path).and_then(|about| about.modified()).expect("a file");
    let before = changed();
    let line = "run syscall --file PLACE/theirs --bursts full --quick --passes 2 --rounds 3 \
                --progress none";
    place
        .run(line)
        .ended(0)
        .prints("fsync, pwrite and write_file not run: it would write, and --file is only read");
    assert!(std::fs::read(&path).expect("the file") == content && changed() == before);
    let rows = place.rows("arms", ["arm", "status", "role"]);
    let of = |status: &str| -> BTreeSet<&str> {
        let own = rows.iter().filter(|row| row[1] == status && row[2] == "compared");
        own.map(|row| row[0].as_str()).collect()
    };
    let listed = place.json("list calls --json");
    let on_a_file = |how: &str| -> BTreeSet<&str> {
        let calls = listed["calls"].as_array().expect("calls").iter();
        calls.filter(|call| call["file"] == how).filter_map(|call| call["name"].as_str()).collect()
    };
    assert_eq!(of("skipped"), on_a_file("writes"));
    assert_eq!(of("ok"), on_a_file("reads"));
    place.fail_each(
        2,
        [
            (
                "run syscall --file PLACE/theirs --sizes 1,1MiB",
                "has 97.7 KiB, less than one block of 1 MiB",
            ),
            (
                "run syscall --file PLACE/theirs --baseline pwrite",
                "`pwrite` cannot be the baseline",
            ),
            ("run syscall --file PLACE/theirs --calls read_zero", "you named read_zero"),
            ("run syscall --file PLACE", "it is a directory"),
        ],
    );
}

#[test]
fn what_is_of_another_study_is_refused() {
    let place = Place::new();
    place.fail_each(
        2,
        [
            (
                "run syscall --network veth",
                "run syscall has no --network; it belongs to run net and server",
            ),
            ("run server --sizes 64", "run server has no --sizes; it belongs to run net, file"),
            ("run syscall --sizes 128MiB", "64 MiB"),
            (
                "run syscall --sizes 4KiB --calls stat,lseek",
                "--sizes measures calls that move bytes; you named stat, lseek",
            ),
            ("run syscall --file PLACE/none", "/none: ENOENT"),
            (
                "run syscall --allow-sysctl",
                "run syscall has no --allow-sysctl; it belongs to run net",
            ),
            ("run net --bursts 1", "run net has no --bursts; it belongs to run syscall"),
            ("run syscall --calls opne", "unknown call `opne`, did you mean `open`?"),
            ("run syscall --calls send", "unknown call `send`"),
            ("run net --methods getppid", "unknown method `getppid`"),
            ("run syscall --baseline function", "it is a control"),
            (
                "run syscall --sequential-time 1s --bursts 10",
                "--bursts does not apply to --sequential-time",
            ),
            ("run syscall --bursts ten", "'--bursts <LIST>'"),
        ],
    );
}

#[test]
fn the_plan_is_printed_and_read_back() {
    let place = Place::new();
    let line = "run syscall --calls floors,close --threads 1,2 --bursts full,7 --seed 3";
    let printed = place.printed_plan(line);
    assert!(
        printed.starts_with("study = \"syscall\"\n") && !printed.contains("network"),
        "{printed}"
    );
    let look = place.json(&format!("{line} --dry-run --json"));
    let cells: Vec<&str> = list(&look["cells"]).iter().filter_map(|c| c.as_str()).collect();
    assert_eq!(cells, ["1 thread", "2 threads", "1 thread, 7 calls in a row"]);
    assert_eq!(look["arms"][0], "getppid");
}

#[test]
fn every_call_is_listed_with_its_state_here() {
    let place = Place::new();
    let calls = place.listed("calls");
    assert!(calls.len() >= 30, "{}", calls.len());
    for call in calls {
        let explained = call["available"] == true || call["unavailable_reason"].is_string();
        assert!(explained && call["summary"].is_string(), "{call}");
    }
}
