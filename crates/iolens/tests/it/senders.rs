//! Programs of the user's that send, as arms of `net`.

use serde_json::Value;

use crate::harness::{Place, finished, list};

/// Small enough for a test.
const RUN: &str = "run net --network loopback --sizes 4KiB --threads 1 --methods send_staged --passes 2 \
                   --rounds 2 --progress none";

/// What sends zeros with `bash`, which is told the address.
fn sends(what: &str) -> String {
    format!("bash -c '{what} >/dev/tcp/$0/$1' {{host}} {{port}} {{size}} {{messages}}")
}

/// The rows of an arm.
fn rows(json: &Value, id: &str) -> Vec<Value> {
    let cells = list(&json["cells"]);
    let own = cells.iter().filter(|row| row["primitive"] == id && row["role"] != "self_check");
    own.cloned().collect()
}

#[test]
fn programs_are_measured_beside_our_methods() {
    let place = Place::new();
    let mut command = place.command(RUN);
    command.arg("--external").arg(format!("exact={}", sends("head -c $(($2 * $3)) /dev/zero")));
    command
        .arg("--external")
        .arg("endless=bash -c 'cat /dev/zero >/dev/tcp/$0/$1' {host} {port} {size}");
    finished(command.output().unwrap()).ended(0).prints("without TCP_NODELAY");
    let json = place.json("show last --json");
    for id in ["exact", "endless", "send_staged"] {
        let [row] = &rows(&json, id)[..] else { panic!("{id}: {json}") };
        assert_eq!(row["status"], "ok", "{row}");
        assert!(row["goodput_bits_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
        assert_eq!(row["copies_sender"].is_null(), id != "send_staged", "{row}");
    }
}

#[test]
fn what_a_program_does_wrong_is_named() {
    let place = Place::new();
    let check = |command: String, expect: &str| {
        let mut run = place.command(RUN);
        run.arg("--external").arg(format!("mine={command}"));
        finished(run.output().unwrap()).ended(4).prints("✗ mine failed");
        let json = place.json("show last --json");
        let row = &rows(&json, "mine")[0];
        let why = row["reason"].as_str().unwrap_or_default();
        assert!(row["status"] == "failed" && why.contains(expect), "{row}");
    };
    check(sends("head -c $((($2 + 8) * $3)) /dev/zero"), "4104.0 each");
    check(sends("head -c $(($2 * $3 / 2)) /dev/zero"), "`mine` ended after");
    let broken = "bash -c 'echo why >&2; exit 3' {host} {port} {size}";
    check(broken.to_owned(), "`mine` exited with status 3: why");
}

#[test]
fn what_programs_cannot_do_is_refused() {
    let place = Place::new();
    let check = |options: &str, expect: &str| {
        let mut command = place.command(&format!("run net --dry-run {options}"));
        command.args(["--external", "mine=true {host} {port} {size}"]);
        finished(command.output().unwrap()).ended(2).says(expect);
    };
    check("--mode rr", "nobody asks a program for messages");
    check("--network sink", "its bytes are counted where they arrive");
    check("--sequential-time 1s", "programs take turns");
    check("--receivers recvmsg_iov", "its bytes are received with recv");
    let mut command = place.command("run net --dry-run");
    command.args(["--external", "mine=true {port}"]);
    finished(command.output().unwrap()).ended(2).says("the command of mine lacks {size}");
}
