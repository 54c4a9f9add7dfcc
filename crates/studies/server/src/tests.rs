//! Servers as a program drives them. Models that fork are tried with the binary,
//! which has nothing else in its process.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::models::{MODELS, Makes};
use super::services::Spec;
use super::*;

fn options(model: &'static models::Entry, workers: u32) -> ServeOptions {
    ServeOptions {
        model,
        service: Spec::parse("echo").unwrap(),
        address: ([127, 0, 0, 1], 0).into(),
        backlog: 64,
        workers,
        close: Close::Client,
        stall_limit: Duration::from_secs(10),
        cpus: None,
    }
}

/// What a model is run with, without a thread of its own, and a listener.
pub(super) fn context(
    model: &'static models::Entry,
    workers: u32,
    begun: SyncSender<()>,
) -> (Arc<Context>, OwnedFd) {
    let mut server = Server::open(options(model, workers)).unwrap();
    let context = Context::of(server.options, server.address, begun).unwrap();
    (Arc::new(context), server.listeners.remove(0))
}

/// Asks once, on a connection of its own.
fn ask(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"1 a\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn counts_are_there_while_it_serves_and_add_up_at_the_end() {
    for model in MODELS.iter().filter(|model| model.makes != Makes::Process) {
        if model.id == "uring" && model.try_here().is_err() {
            crate::skip::note(
                "tests::counts_are_there_while_it_serves_and_add_up_at_the_end",
                "io_uring is not allowed here",
            );
            continue;
        }
        let server = Server::open(options(model, 2)).unwrap();
        let running = server.start().unwrap();
        for asked in 1..=5 {
            assert_eq!(ask(running.address()), "1 a\n", "{}", model.id);
            let counted: u64 = running.tasks().iter().map(|task| task.requests).sum();
            assert_eq!(counted, asked, "{}", model.id);
        }
        assert!(running.mishaps().is_empty());
        let address = running.address();
        let served = running.stop();
        assert_eq!((served.requests, served.connections), (5, 5), "{}", model.id);
        assert_eq!(served.requests_by_task.iter().sum::<u64>(), 5);
        assert_eq!((served.failure, served.model.as_str()), (None, model.id));
        assert!(TcpStream::connect(address).is_err(), "{}", model.id);
    }
}

#[test]
fn a_server_that_was_not_started_answers_nobody_and_leaves_nothing() {
    let model = models::find("epoll_lt").unwrap();
    let server = Server::open(options(model, 1)).unwrap();
    let address = server.address();
    // It listens: who connects waits.
    let waiting = TcpStream::connect(address).unwrap();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    drop(waiting);
}

#[test]
fn a_model_that_cannot_begin_says_why_and_stops_listening() {
    let model = models::find("poll").unwrap();
    let cpus = Some(vec![affinity::CPU_MAX]);
    let server = Server::open(ServeOptions { cpus, ..options(model, 1) }).unwrap();
    let address = server.address();
    let why = server.start().map(drop).unwrap_err();
    assert!(why.contains("cannot run on these processors"), "{why}");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn entries_are_sorted_and_say_what_they_need() {
    assert!(MODELS.is_sorted_by_key(|entry| entry.id));
    for entry in MODELS {
        assert!(!entry.summary.is_empty() && !entry.needs.is_empty(), "{}", entry.id);
        assert_eq!(models::find(entry.id).map(|found| found.id), Some(entry.id));
        // Calls that never wait are made by those who look after many.
        assert!(entry.makes == Makes::Nothing || entry.waiting == BLOCKING, "{}", entry.id);
    }
}
