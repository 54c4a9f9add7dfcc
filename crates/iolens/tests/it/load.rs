//! Load on a server, as a user starts it, against servers of the test's own.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use crate::harness::{Place, finished, send_signal, started_by};

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

#[test]
fn a_closed_loop_and_an_open_one_end_with_every_request_answered() {
    let (place, address) = (Place::new(), echo_server());
    for (flags, n) in [
        ("--connections 4 --in-flight 2 --threads 2 --requests 500 --payload 30", 500),
        ("--connections 3 --short --requests 60 --sources 127.0.0.5-127.0.0.6", 60),
        ("--connections 4 --rate 2k --arrivals fixed --requests 200", 200),
        ("--connections 4 --rate 2000/s --seed 3 --requests 200 --warmup 20ms", 200),
    ] {
        let done = place.run(&format!("load {address} {flags} --service echo --json")).ended(0);
        let value = done.json();
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
    let done = place.run(&format!("load {address} --connections 3 --payload 5 --print")).ended(0);
    for connection in 1..=3 {
        let expect = format!("connection {connection}, request {connection}: abcde [");
        assert_eq!(done.stdout.lines().filter(|line| line.starts_with(&expect)).count(), 1);
    }
    done.prints("  requests    3, all ok\n");
}

#[test]
fn too_few_descriptors_are_refused_with_the_arithmetic() {
    let (place, address) = (Place::new(), echo_server());
    let words = ["sh", "-c", "ulimit -Sn 128; ulimit -Hn 200; exec \"$@\"", "sh"];
    let load = place.command(&format!("load {address} --connections 150"));
    finished(started_by(&words, &load).output().unwrap())
        .ended(2)
        .says("150 connections need 215 descriptors")
        .says("ulimit -Hn 215");
}

#[test]
fn a_reply_that_is_not_the_services_is_invalid() {
    let (place, address) = (Place::new(), echo_server());
    place
        .run(&format!("load {address} --requests 5 --service burn:10"))
        .ended(4)
        .prints("5: 0 ok, 5 invalid")
        .says("no request had a right reply: a wrong reply: ``");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let done = place.run(&format!("load {address} --connections 2")).ended(4);
    let expect = format!("cannot connect to {address}: ECONNREFUSED (connection refused)\n  no");
    done.says(&expect);
    done.says("is the server running?");
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
    assert!(first.starts_with("connection 1, request 1: "), "{first}");
    send_signal(child.id(), "INT");
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
        place.fails(&format!("load 127.0.0.1:9 {flags}"), 2, expect);
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
