//! Sessions that take turns, and connections that did not stay.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iolens_model::load::{Arrivals, Connects};
use iolens_model::outcome::Status;
use iolens_sys::poll;

use super::tests::{beside, check_all_ok, echo, lines, requests};
use super::*;
use crate::services::Spec;
use crate::{Close, Running, ServeOptions, Server, models};

fn epoll_server() -> Running {
    let options = ServeOptions {
        model: models::find("epoll_lt").unwrap(),
        service: Spec::parse("echo").unwrap(),
        address: ([127, 0, 0, 1], 0).into(),
        backlog: 64,
        workers: 1,
        close: Close::Client,
        stall_limit: Duration::from_secs(10),
        cpus: None,
    };
    Server::open(options).unwrap().start().unwrap()
}

fn open(settings: Settings) -> Session {
    settings.check().unwrap();
    Session::open(settings, &Stop::default()).unwrap()
}

fn offer(session: &mut Session, portion: &Portion) -> Offered {
    session.offer(portion, &Stop::default(), None)
}

/// Waits until something, or an end, has come over so many connections of the
/// first thread.
fn until_ready(session: &Session, n: usize) {
    let descriptors = session.hands[0].links.descriptors();
    let ready = || poll::readable(&descriptors, u64::MAX).unwrap();
    while ready().into_iter().filter(|&ready| ready).count() < n {}
}

#[test]
fn two_sessions_take_turns_over_connections_that_stay() {
    let servers = [epoll_server(), epoll_server()];
    let settings = |server: &Running| Settings {
        connections: 6,
        in_flight: 2,
        threads: 2,
        form: Form::Line { text: b"turn".into() },
        expected: Expected::Text(b"turn".into()),
        ..requests(300, server.address())
    };
    let mut sessions = servers.each_ref().map(|server| open(settings(server)));
    let opened = sessions.each_ref().map(Session::connects);
    for connects in &opened {
        assert_eq!((connects.made, connects.failed), (6, 0));
    }
    let mut ids = [const { BTreeSet::new() }; 2];
    let (mut before_ns, mut answered) = (0, [0, 0]);
    for turn in 0..6_u64 {
        let open_loop = Pace::Open { rate: 20_000.0, arrivals: Arrivals::Poisson };
        for (at, session) in sessions.iter_mut().enumerate() {
            let portion = match turn % 2 {
                0 => Portion { warmup: Nanos(1_000_000), ..settings(&servers[at]).portion() },
                _ => Portion {
                    pace: open_loop,
                    count: Count::Time(Nanos(10_000_000)),
                    warmup: Nanos(0),
                    seed: turn,
                },
            };
            let seen = Mutex::new(Vec::new());
            let watch = |answer: &Answer<'_>| {
                seen.lock().unwrap().push((answer.id, answer.sent_ns, answer.received_ns));
            };
            let offered = session.offer(&portion, &Stop::default(), Some(&watch));
            let (seen, load) = (seen.into_inner().unwrap(), &offered.load);
            let n = load.scheduled;
            assert!(if turn % 2 == 0 { n == 300 } else { (100..400).contains(&n) }, "{n}");
            assert_eq!((load.pace, load.outcomes.ok), (portion.pace, n), "{:?}", load.failures);
            assert_eq!((load.status, load.outcomes.total()), (Status::Ok, n));
            assert_eq!((load.from_due.total(), seen.len() as u64), (n, n + load.warmup));
            assert_eq!((load.threads.len(), load.connects), (2, opened[at]), "they stay");
            // What is said of time and bytes is of this turn.
            assert_eq!(offered.first_sent_ns, seen.iter().map(|seen| seen.1).min());
            assert_eq!(offered.last_right_ns, seen.iter().map(|seen| seen.2).max());
            assert!(offered.first_sent_ns.unwrap() > before_ns, "nothing is under way");
            before_ns = offered.last_right_ns.unwrap();
            let bytes: usize = seen.iter().map(|(id, ..)| id.to_string().len() + 6).sum();
            assert_eq!((load.sent_bytes, load.received_bytes), (bytes as u64, bytes as u64));
            assert_eq!(offered.calls.sends, n + load.warmup);
            assert!(offered.calls.waits > 0 && offered.calls.receives > 0);
            answered[at] += seen.len() as u64;
            for (id, ..) in seen {
                assert!(ids[at].insert(id), "{id} is used twice");
            }
        }
    }
    drop(sessions);
    for (server, answered) in servers.into_iter().zip(answered) {
        let served = server.stop();
        assert_eq!((served.connections, served.requests), (6, answered));
        assert_eq!(served.mishaps, []);
    }
}

#[test]
fn connections_that_ended_between_two_portions_are_made_again() {
    let kept = Mutex::new(Vec::new());
    let service = |connection: TcpStream| {
        kept.lock().unwrap().push(connection.try_clone()?);
        lines(echo)(connection)
    };
    beside(&service, |address| {
        let mut session = open(Settings { connections: 3, ..requests(30, address) });
        let portion = session.settings().portion();
        check_all_ok(&offer(&mut session, &portion).load, 30);
        {
            let mut kept = kept.lock().unwrap();
            assert_eq!(kept.len(), 3);
            kept[0].shutdown(Shutdown::Both).unwrap();
            kept[1].write_all(b"1 x\n").unwrap();
        }
        until_ready(&session, 2);
        let load = offer(&mut session, &portion).load;
        assert_eq!((load.outcomes.ok, load.outcomes.total()), (30, 30), "{:?}", load.failures);
        assert_eq!((load.connects.made, load.connects.failed), (5, 0));
        assert_eq!(load.failures.len(), 2, "it says what became of them");
        for what in ["the server closed an idle", "something came over an idle"] {
            let found = load.failures.iter().find(|(text, _)| text.contains(what));
            assert_eq!(found.map(|(_, count)| *count), Some(1), "{:?}", load.failures);
        }
        check_all_ok(&offer(&mut session, &portion).load, 30);
        assert_eq!(session.connects(), load.connects, "the ramp is the first one's");
    });
    assert_eq!(kept.into_inner().unwrap().len(), 5);
}

/// The first connection answers its second request, and its first one when it is
/// of no use any more.
#[test]
fn a_reply_to_an_earlier_portion_is_not_taken_for_one_to_a_later() {
    for gives_up in [None, Some(Insistence::Insists)] {
        let (taken, stop) = (AtomicU64::new(0), Stop::default());
        let service = |connection: TcpStream| {
            if taken.fetch_add(1, Ordering::SeqCst) > 0 {
                return lines(echo)(connection);
            }
            let mut out = connection.try_clone()?;
            let mut input = BufReader::new(connection).lines();
            let (Some(first), Some(second)) = (input.next(), input.next()) else { return Ok(()) };
            writeln!(out, "{} ", second?)?;
            if let Some(insistence) = gives_up {
                stop.ask(insistence);
            }
            let _ = input.next();
            writeln!(out, "{} ", first?)
        };
        beside(&service, |address| {
            let timeout = Nanos(if gives_up.is_none() { 30_000_000 } else { 60_000_000_000 });
            let mut session = open(Settings { in_flight: 2, timeout, ..requests(2, address) });
            let portion = session.settings().portion();
            let load = session.offer(&portion, &stop, None).load;
            match gives_up {
                None => assert_eq!((load.outcomes.ok, load.outcomes.timeout), (1, 1)),
                Some(_) => {
                    assert_eq!(load.status, Status::Interrupted);
                    // The one that was answered may have come too late for this.
                    assert!(load.outcomes.abandoned >= 1, "{:?}", load.outcomes);
                }
            }
            let ids = Mutex::new(Vec::new());
            let watch = |answer: &Answer<'_>| ids.lock().unwrap().push(answer.id);
            let more = Portion { count: Count::Requests(10), ..portion };
            let load = session.offer(&more, &Stop::default(), Some(&watch)).load;
            check_all_ok(&load, 10);
            assert_eq!((load.connects.made, load.late_replies), (2, 0));
            let mut ids = ids.into_inner().unwrap();
            ids.sort_unstable();
            assert_eq!(ids[0], 3, "{ids:?}");
        });
    }
}

#[test]
fn short_connections_are_made_when_they_are_needed() {
    let server = epoll_server();
    let short =
        Settings { connections: 4, length: Length::Short, ..requests(20, server.address()) };
    let mut session = open(short);
    assert_eq!(session.connects(), Connects::default());
    let portion = session.settings().portion();
    for made in [20, 40] {
        let load = offer(&mut session, &portion).load;
        check_all_ok(&load, 20);
        assert_eq!(load.connects, Connects { made, ..Connects::default() });
    }
    assert_eq!(server.stop().connections, 40);
}

#[test]
fn where_nobody_listens_no_session_is_opened() {
    let address: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = Settings { connections: 3, threads: 2, ..requests(5, address) };
    let why = Session::open(settings, &Stop::default()).err().unwrap();
    assert!(why.contains("is the server running?") && why.contains("ECONNREFUSED"), "{why}");
}

#[test]
fn where_the_server_has_gone_nothing_is_offered() {
    let server = epoll_server();
    let mut session = open(Settings { connections: 3, ..requests(5, server.address()) });
    let portion = session.settings().portion();
    server.stop();
    until_ready(&session, 3);
    let offered = offer(&mut session, &portion);
    let load = offered.load;
    assert_eq!((load.status, load.scheduled, load.connects.failed), (Status::Failed, 0, 3));
    assert!(load.reason.unwrap().contains("is the server running?"));
    assert_eq!((offered.first_sent_ns, offered.last_right_ns), (None, None));
}

/// What a thread does after the last request could become due is waiting for others.
#[test]
fn a_straggler_makes_no_thread_look_idle() {
    let kept = Mutex::new(Vec::new());
    let silent = |connection: TcpStream| {
        kept.lock().unwrap().push(connection);
        Ok(())
    };
    beside(&silent, |address| {
        let timeout = Nanos(60_000_000);
        let mut session = open(Settings { timeout, ..requests(1, address) });
        let count = Count::Time(Nanos(20_000_000));
        let portion = Portion { count, warmup: Nanos(0), ..session.settings().portion() };
        let load = session.offer(&portion, &Stop::default(), None).load;
        assert_eq!(load.outcomes.timeout, 1);
        assert_eq!(load.threads[0].wall, Nanos(20_000_000));
    });
}
