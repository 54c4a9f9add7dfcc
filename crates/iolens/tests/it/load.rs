//! Load on a server, as a user starts it, against servers of the test's own.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::harness::{Finished, Place};

/// Echoes lines on a free port for as long as the test runs; returns the address.
fn echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // It ends with the process of the tests.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            std::thread::spawn(move || echo(&connection.unwrap()));
        }
    });
    address
}

fn echo(connection: &TcpStream) {
    let mut out = connection;
    for line in BufReader::new(connection).lines() {
        let Ok(line) = line else { return };
        let blank = if line.contains(' ') { "" } else { " " };
        if out.write_all(format!("{line}{blank}\n").as_bytes()).is_err() {
            return;
        }
    }
}

fn json(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stderr))
}

#[test]
fn a_closed_loop_and_an_open_one_end_with_every_request_answered() {
    let (place, address) = (Place::new(), echo_server());
    for (flags, n) in [
        ("--connections 4 --in-flight 2 --threads 2 --requests 500 --payload 30", 500),
        ("--connections 3 --short --requests 60 --sources 127.0.0.5-127.0.0.6", 60),
        ("--connections 4 --rate 2k --arrivals fixed --requests 200", 200),
        ("--connections 4 --rate 2000/s --seed 3 --requests 200 --warmup 20ms", 200),
    ] {
        let done = place.run(&format!("load {address} {flags} --service echo --json"));
        assert_eq!(done.code, Some(0), "{flags}: {}", done.stderr);
        let value = json(&done);
        assert_eq!((&value["status"], &value["scheduled"]), (&"ok".into(), &n.into()), "{flags}");
        assert_eq!(value["outcomes"]["ok"], n, "{flags}: {value}");
        assert_eq!(value["from_due"]["samples"], n);
        assert_eq!(value["lag"]["samples"], if flags.contains("rate") { n } else { 0 });
        assert_eq!(value["seed"].is_u64(), flags.contains("2000/s"), "{flags}");
        assert!(!flags.contains("warmup") || value["warmup"].as_u64() > Some(0));
    }
}

#[test]
fn replies_are_printed_with_the_number_of_their_connection() {
    let (place, address) = (Place::new(), echo_server());
    let done = place.run(&format!("load {address} --connections 3 --payload 5 --print"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    for connection in 1..=3 {
        let expect = format!("connection {connection}: {connection} abcde [");
        assert_eq!(done.stdout.lines().filter(|line| line.starts_with(&expect)).count(), 1);
    }
    assert!(done.stdout.contains("  requests    3, all ok\n"), "{}", done.stdout);
}

#[test]
fn too_few_descriptors_are_refused_with_the_arithmetic() {
    let (place, address) = (Place::new(), echo_server());
    let command =
        format!("ulimit -Sn 128; ulimit -Hn 200; exec \"$0\" load {address} --connections 150");
    let tool = place.command("").get_program().to_owned();
    let refused =
        std::process::Command::new("sh").args(["-c", &command]).arg(tool).output().unwrap();
    let refused = crate::harness::finished(refused);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("150 connections need 215 descriptors"), "{}", refused.stderr);
    assert!(refused.stderr.contains("ulimit -Hn 215"), "{}", refused.stderr);
}

#[test]
fn a_reply_that_is_not_the_services_is_invalid() {
    let (place, address) = (Place::new(), echo_server());
    let done = place.run(&format!("load {address} --requests 5 --service burn:10"));
    assert_eq!(done.code, Some(4));
    assert!(done.stdout.contains("5: 0 ok, 5 invalid"), "{}", done.stdout);
    assert!(
        done.stderr.contains("no request had a right reply: a wrong reply: ``"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let done = place.run(&format!("load {address} --connections 2"));
    assert_eq!(done.code, Some(4));
    let expect = format!("cannot connect to {address}: ECONNREFUSED (connection refused)\n  no");
    assert!(done.stderr.contains(&expect), "{}", done.stderr);
    assert!(done.stderr.contains("is the server running?"), "{}", done.stderr);
}

#[test]
fn an_interrupt_ends_it_with_what_there_is() {
    let (place, address) = (Place::new(), echo_server());
    let mut command = place.command(&format!("load {address} --time 1h --print"));
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("connection 1: 1 "), "{first}");
    crate::harness::send_signal(child.id(), "INT");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let headline = rest.iter().find(|line| line.starts_with("load on ")).unwrap();
    assert!(headline.ends_with("; interrupted"), "{headline}");
    assert!(rest.iter().any(|line| line.contains(", all ok")), "{rest:?}");
}

#[test]
fn flags_that_make_no_sense_together_are_refused() {
    let place = Place::new();
    let check = |flags: &str, expect: &str| {
        let done = place.run(&format!("load 127.0.0.1:9 {flags}"));
        assert_eq!(done.code, Some(2), "{flags}: {}", done.stdout);
        assert!(done.stderr.contains(expect), "{flags}: {}", done.stderr);
    };
    check("--rate 0", "is not a rate");
    check("--rate 5 --think 1ms", "cannot be used with");
    check("--arrivals fixed", "--rate");
    check("--short --in-flight 2", "carries one request");
    check("--short --long", "cannot be used with");
    check("--threads 2", "2 threads for 1 connections");
    check("--service ehco", "unknown service `ehco`");
    check("--short --rate 40000 --connections 9", "--sources 127.0.0.1-127.0.0.2");
    check("--cpus 1023", "cannot use CPU 1023");
}
