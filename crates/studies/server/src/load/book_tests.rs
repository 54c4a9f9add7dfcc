//! The books against queues whose waiting times are known, in virtual time: no
//! clock is read and nothing waits.

use iolens_model::load::Arrivals;
use iolens_model::reading::Histogram;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn terms(slots: u32, limit: Limit) -> Terms {
    Terms {
        slots,
        all_slots: u64::from(slots),
        first_slot: 0,
        rounds: 0,
        start_ns: 1_000,
        count_from_ns: 1_000,
        limit,
        timeout_ns: 3600 * SECOND_NS,
    }
}

fn open(rate: f64, arrivals: Arrivals, seed: u64) -> Demand {
    Demand::Open(Schedule::new(rate, arrivals, seed, 0, 1))
}

/// A server that does one request after the other, in the order they come, each
/// in the time that `service` gives for the moment it begins, and a client that
/// is never late. Returns what the books say and when the last reply came.
fn simulate(mut book: Book, mut service: impl FnMut(u64) -> u64) -> (Results, u64) {
    let (mut queue, mut free_ns, mut now_ns) = (VecDeque::new(), 0, 0);
    while !book.is_done() {
        let reply_ns = queue.front().map(|&(_, at_ns)| at_ns);
        now_ns = book.next_ns().into_iter().chain(reply_ns).min().unwrap().max(now_ns);
        if reply_ns == Some(now_ns) {
            let (slot, _) = queue.pop_front().unwrap();
            book.end(slot, Ending::Ok, now_ns);
        }
        book.advance(now_ns);
        while let Some(request) = book.take() {
            book.sent(request.slot, now_ns);
            let begin_ns = now_ns.max(free_ns);
            free_ns = begin_ns + service(begin_ns);
            queue.push_back((request.slot, free_ns));
        }
    }
    (book.results(), now_ns)
}

/// Mean wait in units of the service time: ρ / (2 (1 − ρ)) by Pollaczek and
/// Khinchine. The queue stands in the client with one slot, in the server with
/// very many.
#[test]
fn the_mean_wait_is_that_of_an_m_d_1_queue() {
    const SERVICE_NS: u64 = 1_000_000;
    const ARRIVALS: u64 = 1_000_000;
    for (load, slots, seed) in [(0.5, 1, 1), (0.5, 1000, 2), (0.8, 1, 3), (0.8, 1000, 4)] {
        let rate = load * 1e9 / SERVICE_NS as f64;
        let book =
            Book::new(terms(slots, Limit::Requests(ARRIVALS)), open(rate, Arrivals::Poisson, seed));
        let (results, _) = simulate(book, |_| SERVICE_NS);
        assert_eq!((results.outcomes.ok, results.outcomes.total()), (ARRIVALS, ARRIVALS));
        let mean = |times: &Times| times.histogram().mean_ns().unwrap() / SERVICE_NS as f64 - 1.0;
        let (wait, expect) = (mean(&results.from_due), load / (2.0 * (1.0 - load)));
        println!(
            "figure: M/D/1, ρ {load}, {ARRIVALS} arrivals, {slots} slots: mean wait {wait:.5} \
             service times, {expect:.5} by Pollaczek and Khinchine ({:+.2}%)",
            100.0 * (wait / expect - 1.0)
        );
        assert!((wait / expect - 1.0).abs() < 0.01, "{load} × {slots}: {wait}, {expect}");
        // With one slot nobody waits once it is sent, which says nothing of the load.
        let sent = mean(&results.from_sent);
        assert!(if slots == 1 { sent.abs() < 0.001 } else { (sent - wait).abs() < 0.001 });
        assert_eq!(results.lag.histogram().quantile_ns(1.0), Some(0), "the client is never late");
    }
}

/// Times of requests at equal gaps to a server that does one after the other
/// and stands still once, computed from the schedule alone.
fn stalled(gap_ns: u64, n: u64, service_ns: u64, stall: (u64, u64)) -> Vec<u64> {
    let mut free_ns = 0;
    let mut times: Vec<u64> = (0..n)
        .map(|request| {
            let due_ns = request * gap_ns;
            let begin_ns = free_ns.max(due_ns);
            let stalls = begin_ns >= stall.0 && begin_ns < stall.0 + gap_ns;
            free_ns = begin_ns + if stalls { stall.1 } else { service_ns };
            free_ns - due_ns
        })
        .collect();
    times.sort_unstable();
    times
}

fn at(times: &Histogram, q: f64) -> f64 {
    times.quantile_ns(q).unwrap() as f64
}

#[test]
fn a_stall_of_the_server_is_in_the_times_from_due_and_hidden_in_those_from_sent() {
    const STALL_NS: u64 = 1_400_000_000;
    const GAP_NS: u64 = SECOND_NS / 1000;
    const SERVICE_NS: u64 = 100_000;
    const N: u64 = 30_000;
    let when_ns = 5 * SECOND_NS;
    let expected = stalled(GAP_NS, N, SERVICE_NS, (when_ns, STALL_NS));
    let expected_p99 = expected[usize::try_from(N * 99 / 100).unwrap() - 1] as f64;
    for slots in [1, 4] {
        let demand = open(1000.0, Arrivals::Fixed, 0);
        let book = Book::new(terms(slots, Limit::Requests(N)), demand);
        let mut stalls = true;
        let (results, _) = simulate(book, |begin_ns| {
            let stall = stalls && begin_ns >= when_ns + 1_000;
            stalls &= !stall;
            if stall { STALL_NS } else { SERVICE_NS }
        });
        let (due, sent) = (results.from_due.histogram(), results.from_sent.histogram());
        let maximum = at(&due, 1.0);
        assert!((maximum / STALL_NS as f64 - 1.0).abs() < 0.05, "{maximum}");
        let p99 = at(&due, 0.99);
        assert!((p99 / expected_p99 - 1.0).abs() < 0.05, "{p99}, {expected_p99}");
        assert!(p99 > 1e9, "a stall of 1.4 s in 30 s is in p99");
        println!(
            "figure: stall of 1.4 s, {slots} slots: from due at most {:.4} s, p99 {:.4} s (from the \
             schedule {:.4} s), from sent p99 {:.6} s",
            maximum / 1e9,
            p99 / 1e9,
            expected_p99 / 1e9,
            at(&sent, 0.99) / 1e9
        );
        // Who measures from sent sees as many slow requests as there are slots.
        assert!(at(&sent, 0.99) < 1.01 * f64::from(slots) * SERVICE_NS as f64, "{slots}");
        let slow = sent.buckets.iter().filter(|(ns, _)| *ns > SECOND_NS / 2).map(|(_, n)| n);
        assert_eq!(slow.sum::<u64>(), u64::from(slots));
        assert_eq!(at(&results.lag.histogram(), 1.0), 0.0, "it was not the client");
    }
}

#[test]
fn a_stall_of_the_client_is_its_own_lag_and_no_request_is_left_out() {
    const STALL_NS: u64 = 1_400_000_000;
    let demand = open(1000.0, Arrivals::Fixed, 0);
    let mut book = Book::new(terms(10_000, Limit::Until(1_000 + 10 * SECOND_NS)), demand);
    let mut now_ns = 0;
    while !book.is_done() {
        // Its thread does not run from 4 s on.
        let next_ns = book.next_ns().unwrap();
        let away = (4 * SECOND_NS..4 * SECOND_NS + STALL_NS).contains(&next_ns);
        now_ns = if away { 4 * SECOND_NS + STALL_NS } else { next_ns };
        book.advance(now_ns);
        while let Some(request) = book.take() {
            book.sent(request.slot, now_ns);
            book.end(request.slot, Ending::Ok, now_ns);
        }
    }
    let results = book.results();
    assert_eq!(results.outcomes.ok, 10_000);
    let lag = results.lag.histogram();
    assert!((at(&lag, 1.0) / STALL_NS as f64 - 1.0).abs() < 0.002);
    assert_eq!(lag.buckets.iter().filter(|(ns, _)| *ns > 0).map(|(_, n)| n).sum::<u64>(), 1400);
    assert_eq!(lag, results.from_due.histogram(), "all of the latency is the client's");
    assert_eq!(at(&results.from_sent.histogram(), 1.0), 0.0);
    assert_eq!(now_ns, 10 * SECOND_NS - SECOND_NS / 1000 + 1_000);
}

#[test]
fn a_closed_loop_asks_again_when_it_has_thought() {
    // One slot: 1 ms of service and 3 ms of thought are 250 requests per second.
    let demand = Demand::Closed { think_ns: 3_000_000, stagger_ns: 0 };
    let book = Book::new(terms(1, Limit::Until(1_000 + SECOND_NS)), demand);
    let (results, _) = simulate(book, |_| 1_000_000);
    assert_eq!((results.outcomes.ok, results.scheduled, results.per_second), (250, 250, vec![250]));
    // Without thought the server is never idle, whatever the slots.
    let demand = Demand::Closed { think_ns: 0, stagger_ns: 0 };
    let book = Book::new(terms(4, Limit::Until(1_000 + 2 * SECOND_NS)), demand);
    let (results, end_ns) = simulate(book, |_| 1_000_000);
    assert_eq!((results.outcomes.ok, &results.per_second[..]), (2003, &[999, 1000][..]));
    assert_eq!(results.replies_in_window, 1999, "the last ones come after the end");
    assert_eq!(end_ns, 1_000 + 2 * SECOND_NS + 3_000_000);
    assert_eq!(at(&results.from_sent.histogram(), 0.5).round(), 4_001_791.0);
    assert_eq!(results.lag.histogram().total(), 0);
}

/// 40 ms for each request, however many there are: as many are under way when the window
/// begins as when it ends.
#[test]
fn the_rate_of_replies_is_that_of_requests_whatever_a_reply_takes() {
    const LATENCY_NS: u64 = 40_000_000;
    let (from_ns, until_ns) = (1_000 + SECOND_NS / 2, 1_000 + 2 * SECOND_NS);
    let terms = Terms { count_from_ns: from_ns, ..terms(1_000, Limit::Until(until_ns)) };
    let mut book = Book::new(terms, open(1000.0, Arrivals::Fixed, 0));
    let (mut queue, mut now_ns) = (VecDeque::new(), 0);
    while !book.is_done() {
        let reply_ns = queue.front().map(|&(_, at_ns)| at_ns);
        now_ns = book.next_ns().into_iter().chain(reply_ns).min().unwrap().max(now_ns);
        while let Some((slot, _)) = queue.pop_front_if(|&mut (_, at_ns)| at_ns <= now_ns) {
            book.end(slot, Ending::Ok, now_ns);
        }
        book.advance(now_ns);
        while let Some(request) = book.take() {
            book.sent(request.slot, now_ns);
            queue.push_back((request.slot, now_ns + LATENCY_NS));
        }
    }
    let results = book.results();
    assert_eq!(results.replies_in_window, 1500);
    assert_eq!(results.per_second, [1000, 500]);
    // How requests ended, and when, is still told of those due in the window.
    assert_eq!((results.scheduled, results.outcomes.ok, results.warmup), (1500, 1500, 500));
    assert_eq!(results.from_due.histogram().total(), 1500);
}

#[test]
fn a_number_of_requests_is_exactly_that() {
    for demand in [
        Demand::Closed { think_ns: 0, stagger_ns: 7 },
        Demand::Closed { think_ns: 1_000, stagger_ns: 0 },
        open(1000.0, Arrivals::Poisson, 3),
    ] {
        let mut terms = terms(5, Limit::Requests(17));
        // The first ones do not count, and are made beside them.
        terms.count_from_ns += 5_000_000;
        let (results, _) = simulate(Book::new(terms, demand), |_| 500_000);
        assert_eq!((results.scheduled, results.outcomes.ok), (17, 17));
        assert!(results.warmup > 0);
        assert_eq!(results.replies_in_window, 17, "those to the first ones do not count");
        assert_eq!(results.from_due.histogram().total(), 17);
    }
}

#[test]
fn what_waits_too_long_times_out_sent_or_not() {
    let mut terms = terms(2, Limit::Requests(5));
    terms.timeout_ns = 10_000_000;
    let mut book = Book::new(terms, open(1000.0, Arrivals::Fixed, 0));
    book.advance(4_001_000);
    let first = book.take().unwrap();
    book.sent(first.slot, 4_001_000);
    let second = book.take().unwrap();
    book.sent(second.slot, 4_001_000);
    assert_eq!(book.take(), None, "no slot is left");
    let mut held = Vec::new();
    book.expire(10_000_999, &mut held);
    assert!(held.is_empty());
    // Those of 0 and 1 ms were sent, that of 2 ms was not, the others wait on.
    book.expire(12_001_000, &mut held);
    assert_eq!(held, [first.slot, second.slot]);
    assert_eq!((book.find(first.id), book.find(second.id)), (Found::Late(0), Found::Late(1)));
    assert_eq!(book.take(), None, "a slot is held until its connection is known to be free");
    book.late(first.slot, 12_500_000);
    assert_eq!(book.find(first.id), Found::Unknown);
    let third = book.take().unwrap();
    assert_eq!(third.slot, first.slot);
    book.end(third.slot, Ending::Reset, 12_600_000);
    book.release(second.slot, 12_600_000);
    let fourth = book.take().unwrap();
    book.end(fourth.slot, Ending::Invalid, 12_700_000);
    let results = book.results();
    let expect = Outcomes { timeout: 3, reset: 1, invalid: 1, ..Outcomes::default() };
    assert_eq!((results.outcomes, results.unsent, results.late_replies), (expect, 1, 1));
    // What timed out stands in the tail; what was never sent has no time from sent.
    assert_eq!(results.from_due.histogram().total(), 3);
    assert_eq!(results.from_sent.histogram().total(), 2);
}

#[test]
fn ids_are_distinct_over_threads_and_name_their_slot() {
    let mut seen = std::collections::BTreeSet::new();
    // The third goes on where the first one ended.
    let mut rounds = 0;
    for first_slot in [0, 3, 0] {
        let before = if first_slot == 0 { rounds } else { 0 };
        let of_slots = terms(2, Limit::Requests(6));
        let terms = Terms { all_slots: 5, first_slot, rounds: before, ..of_slots };
        let mut book = Book::new(terms, Demand::Closed { think_ns: 0, stagger_ns: 0 });
        book.advance(1_000);
        while let Some(request) = book.take() {
            assert!(seen.insert(request.id), "{request:?}");
            assert_eq!(book.find(request.id), Found::InFlight(request.slot));
            for wrong in [request.id + 5, request.id + 2, 0, u64::MAX] {
                assert_eq!(book.find(wrong), Found::Unknown);
            }
            book.end(request.slot, Ending::Ok, 2_000);
        }
        let results = book.results();
        assert_eq!((results.outcomes.ok, results.rounds - before), (6, 3));
        rounds = results.rounds;
    }
    assert_eq!(seen.len(), 18);
}

#[test]
fn what_is_cut_short_adds_up_too() {
    for demand in [
        Demand::Closed { think_ns: 0, stagger_ns: 0 },
        Demand::Closed { think_ns: 5, stagger_ns: 1 },
        open(1e6, Arrivals::Poisson, 1),
    ] {
        let mut book = Book::new(terms(3, Limit::Until(u64::MAX)), demand);
        book.advance(1_000_000);
        for _ in 0..2 {
            book.take().unwrap();
        }
        book.end(0, Ending::Ok, 1_100_000);
        book.stop(1_200_000);
        assert!(!book.is_done());
        book.abandon(1_300_000);
        let results = book.results();
        assert_eq!(results.outcomes.ok, 1);
        assert_eq!(results.outcomes.abandoned, results.scheduled - 1);
    }
}

/// One connection is served and the other two wait until they are given up: the time goes on
/// for as long as a request is outstanding, so that rate × mean time is what is in flight.
#[test]
fn the_time_in_which_requests_are_outstanding_is_in_the_window() {
    let terms = Terms { timeout_ns: 10 * SECOND_NS, ..terms(3, Limit::Requests(30)) };
    let mut book = Book::new(terms, Demand::Closed { think_ns: 0, stagger_ns: 0 });
    book.advance(1_000);
    let requests: Vec<Request> = std::iter::from_fn(|| book.take()).collect();
    assert_eq!(requests.len(), 3);
    let mut now_ns = 1_000;
    let mut served = requests[0];
    loop {
        now_ns += 60_000;
        book.end(served.slot, Ending::Ok, now_ns);
        match book.take() {
            Some(next) => served = next,
            None => break,
        }
    }
    let mut held = Vec::new();
    book.expire(10 * SECOND_NS + 1_000, &mut held);
    held.into_iter().for_each(|slot| book.release(slot, 10 * SECOND_NS + 1_000));
    let results = book.results();
    assert_eq!((results.outcomes.ok, results.outcomes.timeout), (28, 2));
    let window_ns = results.end_ns() - 1_000;
    assert_eq!(window_ns, 10 * SECOND_NS, "the longest time is not longer than the whole");
    let times = results.from_due.histogram();
    let in_flight = 30.0 * times.mean_ns().unwrap() / window_ns as f64;
    assert!((2.0..2.01).contains(&in_flight), "{in_flight} in flight");
}
