//! The study `write` from outside: measured with verified states, gone on with, broken
//! off by SIGKILL, and refused where it cannot be.

use serde_json::Value;

use crate::harness::{Place, entries, finished, list, may_mount};
use crate::skip;

const RUN: &str = "run write --file-size 2MiB --threads 1 --quick --passes 2 --rounds 3 \
                   --progress none";

fn rows(json: &Value) -> &[Value] {
    list(&json["cells"])
}

#[test]
fn every_engine_writes_to_what_is_there_and_to_what_is_new() {
    let place = Place::new();
    let done = place
        .run(&format!("{RUN} --engines all --block-sizes 4KiB --target existing,new --verbose"))
        .ended(0);
    let text = done.flat();
    assert!(text.contains("8 regions of 2 MiB, one for each engine"), "{}", done.stdout);
    assert!(text.contains("What does durability cost?"), "{text}");
    let is_memory = text.contains("has no device: nothing written there lasts");
    assert!(is_memory || text.contains("used as found, not preconditioned"), "{text}");
    let json = place.json("show last --json");
    assert_eq!(json["run"]["plan"]["study"], "write");
    assert_eq!(json["run"]["engines"].as_array().map(Vec::len), Some(9));
    let writing = &json["run"]["file"]["writing"];
    assert_eq!((&writing["region"], &writing["regions"]), (&(2 << 20).into(), &8.into()));
    assert_eq!(writing["flushes"].as_array().map(Vec::len), Some(21));
    for destination in ["existing", "new"] {
        for id in ["write", "pwrite", "writev", "mmap", "write_fsync", "write_dsync"] {
            let own = rows(&json).iter().find(|row| {
                row["primitive"] == id
                    && row["destination"] == destination
                    && row["role"] != "self_check"
            });
            let row = own.unwrap_or_else(|| panic!("{id} {destination}"));
            assert_eq!(row["status"], "ok", "{row}");
            assert!(row["write_bytes_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
            assert!(row["read_bytes_per_s"].is_null(), "{row}");
        }
    }
    for row in rows(&json).iter().filter(|row| row["status"] != "ok") {
        assert!(row["reason"].as_str().is_some_and(|why| !why.is_empty()), "{row}");
    }
    let slices = place.exported("slices");
    let known = slices.iter().filter(|slice| !slice["dirty_before_bytes"].is_null());
    for slice in known {
        assert_eq!(slice["dirty_before_bytes"], 0, "{slice}");
        assert_eq!(slice["size_error_bytes"], 0, "{slice}");
    }
}

#[test]
fn an_interrupted_run_is_gone_on_with() {
    for own in [
        "write --file-size 2MiB --block-sizes 4KiB --engines write,pwrite --target new",
        "copy --file-sizes 4KiB --engines read_write,dd",
    ] {
        let place = Place::new();
        let run = format!(
            "run {own} --threads 1 --quick --passes 40 --rounds 3 --budget 5m --progress plain"
        );
        let mut running = place.start(&run);
        running.wait_for("committed: pass 2");
        running.interrupted();
        let before = place.json("show last --json")["passes"].as_u64().unwrap();
        place.run("resume last --budget 1s --progress none").ended(0);
        let after = place.json("show last --json")["passes"].as_u64().unwrap();
        assert!(after > before, "{own}: {before} passes, then {after}");
    }
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_made() {
    let place = Place::new();
    let refused = |rest: &str, code: i32, expect: &str| {
        place.fails(&format!("run write --progress none {rest}"), code, expect);
    };
    refused("--file x", 2, "run write has no --file; it belongs to run file, copy and syscall");
    refused("--cache warm", 2, "run write has no --cache; it belongs to run file and copy");
    refused("--target old", 2, "choose from: existing, new");
    refused("--engines rite", 2, "unknown engine that writes `rite`, did you mean `write`?");
    refused("--block-sizes 128MiB", 2, "the largest is 64 MiB");
    refused("--sequential-time 1s", 2, "run write has no --sequential-time");
    refused("--file-size 4KiB --block-sizes 64KiB", 4, "is less than a block of 64 KiB");
    refused(&format!("--dir {}", place.path("none").display()), 4, "none");
    place.run("list studies").prints("Write a file, and what fsync costs");
}

#[test]
fn a_plan_reads_back_as_it_was_asked_for() {
    let place = Place::new();
    let asked = "--block-sizes 512,64KiB --target new --pattern random --queue-depth 4 --seed 5 \
                 --engines write,mmap --file-size 4MiB --dir /tmp";
    place.printed_plan(&format!("run write {asked}"));
    place.run(&format!("run write {asked} --dry-run")).ended(0);
}

#[test]
fn a_killed_run_leaves_nothing() {
    let place = Place::new();
    let folder = place.make_folder("data-of-ours");
    let line = format!(
        "run write --file-size 2MiB --threads 1 --quick --passes 40 --rounds 3 --budget 5m \
         --block-sizes 4KiB --engines write,mmap --dir {} --progress plain",
        folder.display()
    );
    let mut running = place.start(&line);
    running.wait_for("committed: pass 2");
    running.killed();
    assert_eq!(entries(&folder), 0);
}

#[test]
fn caches_are_dropped_with_consent_alone_and_everything_is_put_back() {
    const TEST: &str =
        "write_run::caches_are_dropped_with_consent_alone_and_everything_is_put_back";
    let place = Place::new();
    place.fails("run file --cache dropped --quick --progress none", 2, "add --drop-caches 3");
    place.run("run file --drop-caches 4 --dry-run").ended(2);

    let line = "run file --file-size 4MiB --block-sizes 64KiB --threads 1 --quick --passes 2 --rounds 3 \
                --engines read --cache warm --drop-caches 1,2,3 --progress none --verbose";
    // Nobody's caches are dropped: a file stands where the kernel's was.
    let asked = place.path("asked");
    place.write("asked", "");
    let bound = format!("mount --bind {} /proc/sys/vm/drop_caches", asked.display());
    if !may_mount(&bound) {
        return skip::note(TEST, "needs a mount namespace");
    }
    let run = |before: &str| finished(place.in_a_mount_namespace(before, line).output().unwrap());
    run(&bound).ended(0).prints("open, fstat and close of 10,000 files");
    let last = place.read("asked");
    assert!(["1", "2", "3"].contains(&last.trim()), "{last}");
    let json = place.json("show last --json");
    let dropped = list(&json["run"]["file"]["dropped"]);
    assert_eq!(dropped.len(), 4 * 12);

    let read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys";
    run(read_only).ended(4).says("EROFS").says("mounted read-only");
}
