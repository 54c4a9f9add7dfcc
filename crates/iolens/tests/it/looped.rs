//! Programs of the user's that speak the loop protocol, as arms of `net`, `file` and `syscall`.

use serde_json::Value;

use crate::harness::{Place, finished, list};

/// A program in `bash` that does something for each operation.
fn looping(set_up: &str, operation: &str) -> String {
    let each = format!("for ((; n > 0; n--)); do {operation}; done");
    format!("bash -c '{set_up}; echo ready; while read n; do {each}; echo ok; done'")
}

const SHORT: &str = "--threads 1 --passes 2 --rounds 2 --progress none";

fn run(place: &Place, study: &str, options: &str, program: &str) -> Value {
    let mut command = place.command(&format!("run {study} {SHORT} {options}"));
    command.arg("--external").arg(format!("mine={program}"));
    finished(command.output().unwrap());
    place.json("show last --json")
}

/// The rows of the program.
fn rows(json: &Value) -> Vec<&Value> {
    list(&json["cells"]).iter().filter(|row| row["primitive"] == "mine").collect()
}

fn must_be_ok(json: &Value) {
    let rows = rows(json);
    assert!(!rows.is_empty(), "{json}");
    for row in rows {
        assert_eq!(row["status"], "ok", "{row}");
        assert!(row["trials_used"].as_u64().is_some_and(|used| used > 0), "{row}");
    }
}

const CALLS: &str = "--calls getppid,read_file --bursts full";

/// Small enough for a test.
const READS: &str =
    "--engines read --cache warm --consumer none --block-sizes 4KiB --file-size 1MiB";

const SENDS: &str = "--loop --network loopback --methods send_staged --sizes 4KiB";

fn reader(block: &str) -> String {
    let set_up = "exec 5<\"$0\"";
    // `read` of bash reads a file byte by byte, and as much as it is told at once.
    let operation = format!("LC_ALL=C read -r -N {block} -u 5 x || {{ exec 5<\"$0\"; }}");
    format!("{} {{file}} {{block}}", looping(set_up, &operation))
}

fn sender(set_up: &str, bytes: &str) -> String {
    let set_up =
        format!("exec 5>/dev/tcp/$0/$1; m=$(head -c $2 /dev/zero | tr \"\\\\0\" x){set_up}");
    format!(
        "{} {{host}} {{port}} {{size}}",
        looping(&set_up, &format!("printf %s \"{bytes}\" >&5"))
    )
}

#[test]
fn a_program_is_an_arm_of_each_study() {
    let place = Place::new();
    must_be_ok(&run(&place, "syscall", CALLS, &looping(":", ":")));
    must_be_ok(&run(&place, "net", SENDS, &sender("", "$m")));
    must_be_ok(&run(&place, "file", READS, &reader("$1")));
}

#[test]
fn a_reader_that_reads_nothing_is_told() {
    let place = Place::new();
    let mut command = place.command(&format!("run file {SHORT} {READS}"));
    let program = format!("{} {{file}} {{block}}", looping(":", ":"));
    command.arg("--external").arg(format!("mine={program}"));
    finished(command.output().unwrap()).prints("mine reads nothing with system calls");
}

#[test]
fn what_loops_cannot_do_is_refused() {
    let place = Place::new();
    let check = |options: &str, program: &str, expect: &str| {
        let mut command = place.command(&format!("run {options} --dry-run"));
        command.arg("--external").arg(format!("mine={program}"));
        finished(command.output().unwrap()).ended(2).says(expect);
    };
    check("file", "true {file}", "the command of mine lacks {block}");
    check("file --pattern random", "true {file} {block}", "write {pattern} into the command");
    check("syscall --sizes 64", "true", "the command of mine lacks {size}");
    check("syscall --bursts full --sequential-time 1s", "true", "programs take turns");
    let loops = place.command("run net --dry-run --loop").output().unwrap();
    finished(loops).ended(2).says("and there is none");
}

#[test]
fn what_a_program_does_wrong_is_named() {
    let place = Place::new();
    let check = |study: &str, options: &str, program: &str, expect: &str| {
        let json = run(&place, study, options, program);
        let rows = rows(&json);
        let (status, why) = (&rows[0]["status"], rows[0]["reason"].as_str().unwrap_or_default());
        assert!(status == "failed" && why.contains(expect), "{status}: {why}");
    };
    check(
        "syscall",
        CALLS,
        "bash -c 'echo why >&2; exit 3'",
        "before `ready`: it exited with status 3",
    );
    check("syscall", CALLS, &looping(":", "exit 4"), "exited with status 4");
    check("net", SENDS, &sender("", "${m}1234567890"), "4106.0 each");
}
