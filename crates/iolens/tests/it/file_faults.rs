//! What happens to files while a run is at it: they grow, shrink and are truncated
//! under a mapping, their file system fills up or may not be written to. Each is a
//! failed trial or a refusal that says so.

use std::os::unix::fs::FileExt;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Place, a_child_has_mapped, finished, may_mount, started};
use crate::skip;

/// A run of somebody's file that goes on until it is interrupted.
fn long_run(place: &Place, engines: &str) -> crate::harness::Running {
    place.write("theirs", vec![7; 4 << 20]);
    let mut run = place.start(&format!("run file --file PLACE/theirs --block-sizes 4KiB --engines {engines} --threads 1 --cache warm \
         --rounds 3 --passes 4000 --progress plain"));
    run.wait_for("committed: pass 1");
    run
}

#[test]
fn a_file_that_grows_is_read_as_far_as_it_was() {
    let place = Place::new();
    let mut run = long_run(&place, "read");
    let path = place.path("theirs");
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8 << 20).unwrap();
    for _ in 0..3 {
        let line = run.wait_for("committed: ");
        assert!(line.contains(": ok,"), "{line}");
    }
    run.interrupted();
}

#[test]
fn a_file_that_shrinks_fails_trials_until_it_is_whole_again() {
    let place = Place::new();
    let mut run = long_run(&place, "read,pread");
    let path = place.path("theirs");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(3 << 20).unwrap();
    run.wait_for("theirs was truncated: it had 4 MiB when the run began and has 3 MiB now");
    file.write_all_at(&[7; 1 << 20], 3 << 20).unwrap();
    run.wait_for(": ok,");
    run.interrupted();
    let arms = place.exported("arms");
    let failed = arms.iter().filter(|arm| arm["status"] == "failed");
    assert!(failed.clone().count() > 0, "{arms:?}");
    for arm in failed {
        let reason = arm["reason"].as_str().unwrap();
        assert!(reason.contains("has become shorter") || reason.contains("truncated"), "{reason}");
    }
}

/// How often one looks for a mapping before the file is truncated at any moment, and how many runs
/// are tried: one ends when the file was cut twice under `read`, its baseline.
const LOOKS: usize = 1000;
const TRIES: usize = 20;

#[test]
fn a_file_that_is_truncated_under_a_mapping_fails_the_arm_that_maps_it() {
    let place = Place::new();
    let path = place.path("theirs");
    let mut lost = Vec::new();
    // The slice may end before the file does, and then nobody touches what is gone.
    let hit = (0..TRIES).find_map(|_| {
        let mut run = long_run(&place, "read,mmap");
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        // The output of a run that is looked at for too long fills its pipe, and the run stands.
        let _ = (0..LOOKS).any(|_| a_child_has_mapped(run.child.id(), &path));
        file.set_len(0).unwrap();
        let line = run.wait_for("failed: ");
        file.write_all_at(&[7; 4 << 20], 0).unwrap();
        if line.contains("SIGBUS") {
            return Some((run, line));
        }
        run.killed();
        lost.push(line);
        None
    });
    let Some((mut run, failed)) = hit else { panic!("no SIGBUS in {TRIES} runs: {lost:#?}") };
    let why = "while `mmap` ran: the file was truncated while it was mapped (SIGBUS)";
    assert!(failed.contains(why), "{failed}");
    run.wait_for(": ok,");
    run.interrupted();
    let arms = place.exported("arms");
    let blamed = |arm: &&Value| arm["reason"].to_string().contains("SIGBUS");
    assert!(arms.iter().filter(blamed).all(|arm| arm["primitive"] == "mmap"), "{arms:?}");
}

/// A run in a folder of 2 GiB of memory, which is given so few bytes as soon as a trial
/// has ended; what the trials say that fail then. Null where that cannot be done.
fn fills_up(place: &Place, run: &str, left: &str) -> Option<String> {
    let folder = place.make_folder("small");
    let mount = format!("mount -t tmpfs -o size=2G tmpfs {}", folder.display());
    if !may_mount(&mount) {
        return None;
    }
    let line = format!(
        "{run} --threads 1 --quick --passes 40 --rounds 3 --budget 5m --progress plain --dir {}",
        folder.display()
    );
    let mut running = started(place.in_a_mount_namespace(&mount, &line));
    running.wait_for("committed: pass 1");
    // What is written may be more than that for the moment, which the kernel refuses.
    let pid = running.child.id().to_string();
    let shrinks = || {
        let mut shrink = Command::new("nsenter");
        shrink.args(["--mount", "--target", &pid, "mount", "-o"]);
        let done = shrink.arg(format!("remount,size={left}")).arg(&folder).output();
        done.unwrap().status.success()
    };
    while !shrinks() {}
    running.wait_for("failed:");
    running.finish();
    let arms = place.exported("arms");
    let failed = arms.iter().filter(|arm| arm["status"] == "failed");
    Some(failed.map(|arm| format!("{}: {}\n", arm["primitive"], arm["reason"])).collect())
}

#[test]
fn a_disk_that_is_full_in_mid_trial_is_a_failed_trial_that_says_so() {
    const TEST: &str =
        "file_faults::a_disk_that_is_full_in_mid_trial_is_a_failed_trial_that_says_so";
    let written = "run write --file-size 4MiB --block-sizes 64KiB --engines write,mmap \
                   --target new";
    let Some(said) = fills_up(&Place::new(), written, "128k") else {
        return skip::note(TEST, "needs a mount namespace with a tmpfs");
    };
    let full = "ENOSPC (no space left on device): its file system (tmpfs) is full";
    let written = format!("\"write\": \"cannot write to the run's own file: {full}");
    let mapped = "\"mmap\": \"there was no room for a page of the mapped file (SIGBUS)";
    assert!(said.contains(&written) || said.contains(mapped), "{said}");
    assert!(said.lines().all(|line| line.contains("ENOSPC") || line.contains(mapped)), "{said}");
    // Beside its source there is no room for a copy any more.
    let copied = "run copy --file-sizes 1MiB --engines read_write,dd";
    let said = fills_up(&Place::new(), copied, "1200k").expect("as before");
    assert!(said.contains(full) || said.contains("No space left on device"), "{said}");
}

#[test]
fn a_folder_that_takes_no_files_is_refused_by_every_run() {
    const TEST: &str = "file_faults::a_folder_that_takes_no_files_is_refused_by_every_run";
    let place = Place::new();
    let folder = place.make_folder("locked");
    let dir = folder.display();
    let locked = format!("mount --bind {dir} {dir} && mount -o remount,bind,ro {dir}");
    if !may_mount(&locked) {
        return skip::note(TEST, "needs a mount namespace");
    }
    for run in
        ["run file --dir", "run write --dir", "run copy --dir", "file size --block-size 4KiB"]
    {
        let mut command = place.in_a_mount_namespace(&locked, &format!("{run} {dir}"));
        let done = finished(command.output().unwrap()).ended(4);
        let expect = format!(
            "cannot create a file in {dir}: EROFS (read-only file system): its file system is \
             mounted read-only"
        );
        done.says(&expect);
    }
}
