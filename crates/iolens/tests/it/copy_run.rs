//! The study `copy` from outside: engines and programs, one that fails among them, and
//! what would touch somebody's file refused.

use crate::harness::{Place, entries, finished, list};

/// Small enough for any folder of temporary files.
const RUN: &str = "run copy --block-size 4KiB --quick --passes 2 --rounds 3 --progress none";

#[test]
fn engines_and_programs_copy_files_of_each_size() {
    let place = Place::new();
    let dir = place.make_folder("copies");
    let run =
        format!("{RUN} --engines all --file-sizes 4KiB,70000B --dir {} --verbose", dir.display());
    let mut command = place.command(&run);
    command.arg("--external").arg("bad=sh -c 'test -s \"$0\" || : > \"$1\"; exit 7' {src} {dst}");
    command.arg("--external").arg("own=sh -c 'cat \"$0\" > \"$1\"' {src} {dst}");
    finished(command.output().unwrap()).ended(0).prints("How were programs timed?");
    assert_eq!(entries(&dir), 0, "all of ours is gone");
    let json = place.json("show last --json");
    assert_eq!(json["run"]["plan"]["study"], "copy");
    assert_eq!(json["run"]["plan"]["baseline"], "read_write");
    let cells = list(&json["cells"]);
    let of = |id: &str| -> Vec<&serde_json::Value> {
        let own = cells.iter().filter(|row| row["primitive"] == id && row["role"] != "self_check");
        own.collect()
    };
    for id in ["read_write", "sendfile", "splice", "mmap_write", "dd", "own"] {
        let rows = of(id);
        assert_eq!(rows.len(), 2, "{id}");
        for row in rows {
            assert_eq!(row["status"], "ok", "{row}");
            assert!(row["copied_bytes_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
            let is_program = id == "dd" || id == "own";
            assert_eq!(row["system_calls_per_copy"].is_null(), is_program, "{row}");
            assert_eq!(row["start_median_ns"].is_number(), is_program, "{row}");
        }
    }
    for row in of("bad") {
        assert_eq!(row["status"], "failed", "{row}");
        let reason = row["reason"].as_str().expect("why");
        assert!(reason.contains("exited with status 7"), "{reason}");
    }
    // What shares blocks, or cannot here, is judged by nobody.
    for row in of("reflink") {
        assert!(row["verdict"].is_null() && row["ratio"].is_null(), "{row}");
    }
    for rows in ["arms", "slices", "cells"] {
        let csv = place.run(&format!("export last --format csv --rows {rows}"));
        assert!(csv.stdout.lines().next().is_some_and(|line| line.contains("file_bytes")));
    }
}

#[test]
fn somebodys_file_is_only_read_and_has_its_own_size() {
    let place = Place::new();
    let content: Vec<u8> = (0..300_001_u32).map(|at| (at * 7 % 251) as u8).collect();
    let file = place.write("theirs", &content);
    let run = format!(
        "{RUN} --file {file} --engines read_write,copy_file_range --sync none,fsync \
         --threads 1,2"
    );
    let done = place.run(&run).ended(0);
    let text = done.flat();
    assert!(text.contains("theirs ("), "{text}");
    assert_eq!(std::fs::read(&file).unwrap(), content);
    let json = place.json("show last --json");
    let cells = list(&json["cells"]);
    assert!(!cells.is_empty() && cells.iter().all(|row| row["file_bytes"] == 300_001));
    assert!(cells.iter().any(|row| row["sync"] == "fsync" && row["threads"] == 2));
    // What is printed is a plan of the same file again.
    place.printed_plan(&run);
    place.run("run PLACE/printed.toml --dry-run").ended(0);
}

#[test]
fn what_cannot_be_a_run_of_copies_is_refused() {
    let place = Place::new();
    place.write("theirs", "content");
    place.write("empty", "");
    let refused = |rest: &str, expect: &str| {
        place.fails(&format!("run copy {rest} --dry-run"), 2, expect);
    };
    refused("--file PLACE/theirs --cache cold", "add --allow-evict");
    refused("--file PLACE/theirs --file-sizes 1MiB", "which has its own size");
    refused("--file PLACE/empty", "there is nothing to copy");
    refused("--file /dev/zero", "it is a character device");
    refused("--allow-evict", "needs --file");
    refused(
        "--sequential-time 1s",
        "run copy has no --sequential-time; it belongs to run net, file and syscall",
    );
    refused("--block-size 1GiB", "the largest is 64 MiB");
    refused("--engines sendfil", "did you mean `sendfile`?");
    refused("--baseline reflink", "it moves no bytes");
    refused("--pattern random", "run copy has no --pattern; it belongs to run file and write");
    let program = |study: &str, external: &[&str], expect: &str| {
        let mut command = place.command(&format!("run {study} --dry-run"));
        external.iter().for_each(|text| _ = command.args(["--external", text]));
        finished(command.output().unwrap()).ended(2).says(expect);
    };
    program("copy", &["dd=x {src} {dst}"], "that is an arm already");
    program("copy", &["a=x {src}"], "lacks {dst}");
    program("copy", &["a=x {src} {dst}", "a=y {src} {dst}"], "two programs are named a");
    program(
        "write",
        &["a=x {src} {dst}"],
        "run write has no --external; it belongs to run net, file, copy, syscall and server",
    );
    place.fails(&format!("{RUN} --dir PLACE/nowhere"), 4, "nowhere");
}

#[test]
fn what_a_killed_run_left_is_gone_after_the_next() {
    let place = Place::new();
    let dir = place.make_folder("copies");
    let run = format!(
        "run copy --file-sizes 4MiB --engines read_write,dd --dir {} --passes 1000 --budget 60s \
         --progress plain",
        dir.display()
    );
    let mut running = place.start(&run);
    running.wait_for("committed: ");
    running.killed();
    assert_eq!(entries(&dir), 1, "the killed one had a folder");
    place.fails(
        &format!("{RUN} --file-sizes 4KiB --engines read_write --dir PLACE/copies"),
        0,
        "which a killed iolens left",
    );
    assert_eq!(entries(&dir), 0);
}
