//! The client against a server whose service is known: it says itself when each
//! request was served, and fails in the way it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use iolens_model::load::{Arrivals, Load, Outcomes};
use iolens_model::outcome::Status;
use iolens_sys::clock;

use super::*;

/// What an oracle does with a connection.
type Service<'a> = dyn Fn(TcpStream) -> std::io::Result<()> + Sync + 'a;

/// Serves every connection in a thread of its own while `client` runs, and hands
/// over what that returned. `service` ends when its connection does.
pub(super) fn beside<R>(service: &Service<'_>, client: impl FnOnce(SocketAddr) -> R) -> R {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, over) = (listener.local_addr().unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for connection in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let connection = connection.unwrap();
                connection.set_nodelay(true).unwrap();
                // A client that has gone is not the oracle's business.
                scope.spawn(|| service(connection));
            }
        });
        let done = client(address);
        over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(address);
        done
    })
}

/// A service that answers each line with what `answer` makes of its id and text.
pub(super) fn lines(
    answer: impl Fn(&str, &str) -> String + Sync,
) -> impl Fn(TcpStream) -> std::io::Result<()> + Sync {
    move |connection| {
        let mut out = connection.try_clone()?;
        for line in BufReader::new(connection).lines() {
            let line = line?;
            let (id, text) = line.split_once(' ').unwrap_or((&line, ""));
            out.write_all(answer(id, text).as_bytes())?;
        }
        Ok(())
    }
}

pub(super) fn echo(id: &str, text: &str) -> String {
    format!("{id} {text}\n")
}

pub(super) fn requests(n: u64, address: SocketAddr) -> Settings {
    Settings { count: Count::Requests(n), ..Settings::closed_loop(address) }
}

fn offer(settings: &Settings) -> Load {
    settings.check().unwrap();
    run(settings, &Stop::default(), None)
}

#[track_caller]
pub(super) fn check_all_ok(load: &Load, n: u64) {
    assert_eq!(load.status, Status::Ok, "{:?} {:?}", load.reason, load.failures);
    assert_eq!(load.outcomes, Outcomes { ok: n, ..Outcomes::default() }, "{:?}", load.failures);
    assert_eq!((load.scheduled, load.replies_in_window), (n, n));
    assert_eq!((load.from_due.total(), load.from_sent.total()), (n, n));
    assert_eq!(load.per_second.iter().sum::<u64>(), n);
    assert_eq!(load.failures, []);
}

#[test]
fn every_request_is_answered_once_and_every_byte_is_counted() {
    let received = Mutex::new(BTreeMap::new());
    let load = beside(&lines(echo), |address| {
        let settings = Settings {
            connections: 5,
            in_flight: 3,
            threads: 2,
            form: Form::Line { text: b"twelve bytes".into() },
            expected: Expected::of_service("echo", b"twelve bytes").unwrap(),
            ..requests(2_000, address)
        };
        let watch = |answer: &Answer<'_>| {
            assert!(answer.is_right && answer.text == b"twelve bytes");
            let before = received.lock().unwrap().insert(answer.id, answer.connection);
            assert_eq!(before, None, "ids are not used twice");
        };
        run(&settings, &Stop::default(), Some(&watch))
    });
    check_all_ok(&load, 2_000);
    let received = received.into_inner().unwrap();
    let bytes: u64 = received.keys().map(|id| id.to_string().len() as u64 + 14).sum();
    assert_eq!((load.sent_bytes, load.received_bytes), (bytes, bytes));
    assert_eq!((load.connects.made, load.connects.failed), (5, 0));
    assert_eq!(received.values().collect::<BTreeSet<_>>().len(), 5, "all are used");
    assert!(load.connects.ramp.is_some() && load.threads.len() == 2);
    assert_eq!(load.lag.total(), 0, "nothing but replies makes a request due");
    assert!(load.threads.iter().all(|thread| thread.cpu.0 > 0 && thread.wall.0 > 0));
}

#[test]
fn a_short_connection_carries_one_request_from_the_source_that_is_its_turn() {
    let peers = Mutex::new(BTreeMap::<IpAddr, u64>::new());
    let service = |connection: TcpStream| {
        *peers.lock().unwrap().entry(connection.peer_addr()?.ip()).or_default() += 1;
        lines(echo)(connection)
    };
    // More than there are connections at a time.
    let sources: Vec<IpAddr> = (1..=5).map(|n| IpAddr::from([127, 1, 2, n])).collect();
    let load = beside(&service, |address| {
        offer(&Settings {
            connections: 4,
            length: Length::Short,
            ramp: Nanos(2_000_000),
            sources: sources.clone(),
            ..requests(300, address)
        })
    });
    check_all_ok(&load, 300);
    assert_eq!((load.connects.made, load.connects.ramp), (300, None));
    let peers = peers.into_inner().unwrap();
    assert_eq!(peers.keys().copied().collect::<Vec<_>>(), sources);
    assert!(peers.values().all(|&connections| connections == 60), "{peers:?}");
}

/// What the oracle's own record of each request says is inside of what the client
/// measured, on the same clock.
#[test]
fn no_request_is_answered_sooner_than_its_service_took() {
    const SERVICE: std::time::Duration = std::time::Duration::from_millis(5);
    let service = lines(|id, _| {
        let begin_ns = clock::monotonic_ns();
        #[expect(clippy::disallowed_methods, reason = "this is the service")]
        std::thread::sleep(SERVICE);
        format!("{id} {begin_ns} {}\n", clock::monotonic_ns())
    });
    let checked = Mutex::new(0);
    let load = beside(&service, |address| {
        let settings = Settings {
            connections: 2,
            pace: Pace::Open { rate: 200.0, arrivals: Arrivals::Poisson },
            expected: Expected::Record,
            ..requests(60, address)
        };
        let watch = |answer: &Answer<'_>| {
            let (begin_ns, end_ns) = record(answer.text).unwrap();
            assert!(answer.due_ns <= answer.sent_ns && answer.sent_ns <= begin_ns);
            assert!(end_ns <= answer.received_ns);
            *checked.lock().unwrap() += 1;
        };
        run(&settings, &Stop::default(), Some(&watch))
    });
    check_all_ok(&load, 60);
    assert_eq!(checked.into_inner().unwrap(), 60);
    assert!(load.from_sent.buckets[0].0 >= 5_000_000, "{:?}", load.from_sent);
    assert_eq!(load.lag.total(), 60);
}

#[test]
fn a_stalled_server_is_in_the_times_from_due() {
    // It stands still once; the oracle says for how long.
    let stalled_ns = Mutex::new(0);
    let service = lines(|id, text| {
        if id == "20" {
            let begin_ns = clock::monotonic_ns();
            #[expect(clippy::disallowed_methods, reason = "this is the stall")]
            std::thread::sleep(std::time::Duration::from_millis(150));
            *stalled_ns.lock().unwrap() = clock::monotonic_ns() - begin_ns;
        }
        echo(id, text)
    });
    let load = beside(&service, |address| {
        offer(&Settings {
            pace: Pace::Open { rate: 1000.0, arrivals: Arrivals::Fixed },
            ..requests(400, address)
        })
    });
    check_all_ok(&load, 400);
    let stalled_ns = *stalled_ns.lock().unwrap();
    let over = |times: &iolens_model::reading::Histogram, ns: u64| -> u64 {
        times.buckets.iter().filter(|(time, _)| *time >= ns).map(|(_, count)| count).sum()
    };
    assert!(load.from_due.quantile_ns(1.0).unwrap() >= stalled_ns);
    // 1000 per second were due meanwhile: of the first half of them each waited for
    // more than half of it, if nothing else took long; sent was one.
    assert!(over(&load.from_due, stalled_ns / 2) >= 70, "{:?}", load.from_due);
    assert!(over(&load.from_sent, stalled_ns) >= 1);
    assert!(over(&load.from_sent, stalled_ns / 2) < over(&load.from_due, stalled_ns / 2));
}

#[test]
fn replies_come_in_any_order_and_in_any_pieces() {
    // Four requests at a time, answered last first, a few bytes at a time.
    let service = |connection: TcpStream| {
        let mut out = connection.try_clone()?;
        let mut requests = BufReader::new(connection).lines();
        loop {
            let four: Vec<String> = requests.by_ref().take(4).collect::<Result<_, _>>()?;
            let answer: String = four.iter().rev().map(|id| format!("{id} \n")).collect();
            for piece in answer.as_bytes().chunks(3) {
                out.write_all(piece)?;
            }
            if four.len() < 4 {
                return Ok(());
            }
        }
    };
    let load = beside(&service, |address| {
        offer(&Settings {
            in_flight: 4,
            expected: Expected::Text(Vec::new()),
            ..requests(400, address)
        })
    });
    check_all_ok(&load, 400);
}

#[test]
fn requests_that_find_no_room_are_sent_when_there_is() {
    // 64 requests of 50 KB are more than the sockets hold before one is read.
    let text = vec![b'z'; 50_000];
    let service = lines(echo);
    let load = beside(&service, |address| {
        offer(&Settings {
            in_flight: 64,
            form: Form::Line { text: text.clone() },
            expected: Expected::Text(text.clone()),
            ..requests(200, address)
        })
    });
    check_all_ok(&load, 200);
    assert!(load.sent_bytes > 200 * 50_000);
}

#[test]
fn a_long_payload_is_checked_to_its_last_byte() {
    let payload = |last: char| {
        move |id: &str, _: &str| format!("{id} {}{last}\n", "x".repeat(200_000 - id.len() - 3))
    };
    let load = |last| {
        beside(&lines(payload(last)), |address| {
            let expected = Expected::of_service("payload:200000", b"").unwrap();
            offer(&Settings { expected, ..requests(12, address) })
        })
    };
    check_all_ok(&load('x'), 12);
    let wrong = load('y');
    assert_eq!((wrong.outcomes.invalid, wrong.outcomes.total()), (12, 12));
    assert_eq!(wrong.status, Status::Failed);
}

#[test]
fn what_is_no_answer_is_not_taken_for_one() {
    // By turns: right, wrong, an error behind which the server closes, an id that
    // nobody has.
    let turn = std::sync::atomic::AtomicU64::new(0);
    let service = |connection: TcpStream| {
        let mut out = connection.try_clone()?;
        for line in BufReader::new(connection).lines() {
            let id = line?;
            match turn.fetch_add(1, Ordering::SeqCst) % 4 {
                0 => writeln!(out, "{id} burned")?,
                1 => writeln!(out, "{id} burnt")?,
                2 => return writeln!(out, "{id} error it is Sunday"),
                _ => writeln!(out, "{id}0 burned")?,
            }
        }
        Ok(())
    };
    let load = beside(&service, |address| {
        offer(&Settings { expected: Expected::Burned, ..requests(40, address) })
    });
    let expect = Outcomes { ok: 10, invalid: 30, ..Outcomes::default() };
    assert_eq!(load.outcomes, expect, "{:?}", load.failures);
    assert_eq!(load.status, Status::Ok);
    let text: Vec<&str> = load.failures.iter().map(|(text, _)| text.as_str()).collect();
    for part in ["a wrong reply: `burnt`", "error `it is Sunday`", "answers no request: `burned`"] {
        assert!(text.iter().any(|text| text.contains(part)), "{part}: {text:?}");
    }
    assert!(load.connects.made >= 20, "it connects again: {:?}", load.connects);
}

#[test]
fn a_connection_that_ends_takes_its_requests_with_it() {
    // Every third request is its connection's last.
    let service = |connection: TcpStream| {
        let mut out = connection.try_clone()?;
        for (n, line) in BufReader::new(connection).lines().enumerate() {
            if n == 2 {
                return Ok(());
            }
            writeln!(out, "{} ", line?)?;
        }
        Ok(())
    };
    let load =
        beside(&service, |address| offer(&Settings { connections: 2, ..requests(30, address) }));
    // Of 30 over two connections three may be of two that had not come to their third.
    let (ok, reset) = (load.outcomes.ok, load.outcomes.reset);
    assert!(matches!((ok, reset), (20, 10) | (21, 9)), "{ok}, {reset}: {:?}", load.failures);
    assert_eq!((load.outcomes.total(), load.scheduled), (30, 30));
    assert!(load.failures[0].0.contains("closed") || load.failures[0].0.contains("broke"));
}

#[test]
fn where_nobody_listens_requests_are_refused() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let long = offer(&Settings { connections: 3, ..requests(5, address) });
    assert_eq!((long.status, long.scheduled, long.connects.failed), (Status::Failed, 0, 3));
    let why = long.reason.unwrap();
    assert!(why.contains("is the server running?") && why.contains("ECONNREFUSED"), "{why}");
    let short = offer(&Settings { length: Length::Short, ..requests(5, address) });
    assert_eq!(short.outcomes, Outcomes { refused: 5, ..Outcomes::default() });
    assert_eq!(short.status, Status::Failed);
}

#[test]
fn what_is_never_answered_times_out() {
    let silent = |connection: TcpStream| {
        let mut connection = connection;
        std::io::copy(&mut connection, &mut std::io::sink()).map(|_| ())
    };
    for (in_flight, pace) in [
        (1, Pace::Closed { think: Nanos(0) }),
        (2, Pace::Open { rate: 500.0, arrivals: Arrivals::Poisson }),
    ] {
        let load = beside(&silent, |address| {
            let timeout = Nanos(30_000_000);
            offer(&Settings { in_flight, pace, timeout, connections: 2, ..requests(12, address) })
        });
        let expect = Outcomes { timeout: 12, ..Outcomes::default() };
        assert_eq!(load.outcomes, expect, "{:?}", load.failures);
        assert_eq!(load.from_due.total(), 12, "they stand in the tail");
        assert!(load.from_due.buckets[0].0 >= 30_000_000, "{:?}", load.from_due);
        assert_eq!(load.from_sent.total(), 12 - load.unsent);
        let is_closed = matches!(pace, Pace::Closed { .. });
        assert!(!is_closed || (load.unsent == 0 && load.connects.made > 2), "{load:?}");
    }
}

#[test]
fn a_reply_that_comes_too_late_is_counted_apart() {
    // The first of two requests is answered with the third, which waits for nothing:
    // by then it has timed out.
    let service = |connection: TcpStream| {
        let mut out = connection.try_clone()?;
        let mut first = None;
        for (n, line) in BufReader::new(connection).lines().enumerate() {
            let id = line?;
            match (n, &first) {
                (0, _) => first = Some(id),
                (20, Some(first)) => writeln!(out, "{first} \n{id} ")?,
                _ => writeln!(out, "{id} ")?,
            }
        }
        Ok(())
    };
    let load = beside(&service, |address| {
        let pace = Pace::Open { rate: 100.0, arrivals: Arrivals::Fixed };
        let timeout = Nanos(60_000_000);
        offer(&Settings { in_flight: 2, pace, timeout, ..requests(30, address) })
    });
    assert!(load.outcomes.timeout >= 1 && load.outcomes.total() == 30, "{:?}", load.outcomes);
    assert_eq!(load.late_replies, 1, "{:?}", load.failures);
}

#[test]
fn http_is_spoken_as_far_as_lengths_go() {
    let service = |connection: TcpStream| {
        let mut out = connection.try_clone()?;
        let mut input = BufReader::new(connection);
        loop {
            let mut header = String::new();
            while !header.ends_with("\r\n\r\n") {
                if input.read_line(&mut header)? == 0 {
                    return Ok(());
                }
            }
            assert!(header.starts_with("GET /some/path HTTP/1.1\r\nHost: 127.0.0.1:"), "{header}");
            out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello")?;
            out.write_all(b" world")?;
        }
    };
    for length in [Length::Long, Length::Short] {
        let load = beside(&service, |address| {
            offer(&Settings {
                connections: 2,
                length,
                form: Form::http("/some/path", &address),
                expected: Expected::Http,
                ..requests(50, address)
            })
        });
        check_all_ok(&load, 50);
        assert_eq!(load.connects.made, if length == Length::Long { 2 } else { 50 });
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    for insistence in [Insistence::Asked, Insistence::Insists] {
        let stop = Stop::default();
        let load = beside(&lines(echo), |address| {
            let think = Nanos(1_000_000);
            let settings = Settings {
                connections: 3,
                pace: Pace::Closed { think },
                count: Count::Time(Nanos(3600 * Nanos::SECOND.0)),
                ..Settings::closed_loop(address)
            };
            let watch = |answer: &Answer<'_>| {
                if answer.id > 100 {
                    stop.ask(insistence);
                }
            };
            run(&settings, &stop, Some(&watch))
        });
        assert_eq!(
            (load.status, load.reason.as_deref()),
            (Status::Interrupted, Some("interrupted"))
        );
        assert!(load.outcomes.ok > 30, "{:?}", load.outcomes);
        assert_eq!(load.outcomes.ok + load.outcomes.abandoned, load.scheduled);
        assert!(insistence == Insistence::Insists || load.outcomes.abandoned == 0);
        assert!(load.window < Nanos(3000 * Nanos::SECOND.0), "the window ends with it");
    }
}

#[test]
fn what_cannot_be_is_refused_before_it_begins() {
    let some = Settings::closed_loop("127.0.0.1:9".parse().unwrap());
    let check = |settings: Settings, expect: &str| {
        let why = settings.check().unwrap_err();
        assert!(why.contains(expect), "{why}");
    };
    check(Settings { threads: 2, ..some.clone() }, "2 threads for 1 connections");
    check(Settings { in_flight: 2, length: Length::Short, ..some.clone() }, "carries one request");
    let form = Form::http("/", &some.address);
    check(Settings { in_flight: 2, form, ..some.clone() }, "HTTP have no ids");
    let sources = vec!["::1".parse().unwrap()];
    check(Settings { sources, ..some.clone() }, "127.0.0.1:9 cannot be reached from ::1");
    check(Settings { connections: u32::MAX, ..some.clone() }, "descriptors");
    let timeout = Nanos(TIMEOUT_MAX.0 + 1);
    check(
        Settings { timeout, ..some },
        "cannot record times above 60 s, and --timeout is 1.00 min: use --timeout 60s",
    );
}

#[test]
fn the_longest_timeout_is_a_time_that_is_recorded_as_it_is() {
    let some = Settings::closed_loop("127.0.0.1:9".parse().unwrap());
    assert_eq!(Settings { timeout: TIMEOUT_MAX, ..some }.check(), Ok(()));
    let mut times = iolens_harness::stream::Times::default();
    times.record(TIMEOUT_MAX.0);
    let recorded = times.histogram().quantile_ns(1.0).unwrap() as f64;
    assert!((recorded / TIMEOUT_MAX.0 as f64 - 1.0).abs() < 0.001, "{recorded}");
}
