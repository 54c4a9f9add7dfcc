//! What a load prints, whole.

use iolens_model::load::{Arrivals, ClientThread, Connects, Length, NetworkCounts, Outcomes, Pace};
use iolens_model::transfer::Cpu;

use super::*;

const PLAIN: Style = Style::plain(100);

/// Times of `n` requests, from `least` on and evenly up to ten times that, and one
/// of a hundred times.
fn times(n: u64, least: u64) -> Histogram {
    let mut buckets: Vec<(u64, u64)> = (1..n).map(|i| (least + 9 * least * i / n, 1)).collect();
    buckets.push((100 * least, 1));
    Histogram { buckets }
}

fn load() -> Load {
    let thread = ClientThread {
        cpu: Nanos(250_000_000),
        spinning: Nanos(50_000_000),
        wall: Nanos(2_000_000_000),
        run_delay: Some(Nanos(3_000_000)),
        involuntary_switches: 2,
    };
    Load {
        address: "127.0.0.1:7001".to_owned(),
        connections: 16,
        in_flight: 1,
        length: Length::Long,
        pace: Pace::Open { rate: 2000.0, arrivals: Arrivals::Poisson },
        seed: Some(7),
        status: Status::Ok,
        reason: None,
        checked: "the id and the text of every reply".to_owned(),
        scheduled: 4000,
        outcomes: Outcomes { ok: 4000, ..Outcomes::default() },
        unsent: 0,
        warmup: 0,
        late_replies: 0,
        failures: Vec::new(),
        connects: Connects { made: 16, ramp: Some(Nanos(160_000)), ..Connects::default() },
        window: Nanos(2_000_000_000),
        replies_in_window: 3998,
        from_due: times(4000, 50_000),
        from_sent: times(4000, 40_000),
        lag: times(4000, 1_000),
        per_second: vec![1990, 2008],
        sent_bytes: 200_000,
        received_bytes: 200_000,
        threads: vec![thread],
        cpu: Some(Cpu { user: Nanos(90_000_000), system: Nanos(161_000_000) }),
        network: Some(NetworkCounts::default()),
    }
}

#[test]
fn a_load_that_went_well_is_figures_and_no_remark() {
    insta::assert_snapshot!(text(&load(), &PLAIN));
}

#[test]
fn what_went_wrong_is_told_with_how_often() {
    let outcomes =
        Outcomes { ok: 3000, timeout: 900, refused: 50, reset: 30, invalid: 20, abandoned: 0 };
    let failures = vec![("no reply in 1.00 s".to_owned(), 900), ("cannot connect".to_owned(), 50)];
    let connects = Connects { made: 120, failed: 50, slow: 3, ramp: None };
    let bad = Load {
        outcomes,
        failures,
        connects,
        length: Length::Short,
        unsent: 400,
        warmup: 12,
        late_replies: 1,
        replies_in_window: 3000,
        network: Some(NetworkCounts { listen_overflows: 4, listen_drops: 5, retransmits: 0 }),
        ..load()
    };
    insta::assert_snapshot!(text(&bad, &PLAIN));
}

#[test]
fn a_client_that_was_the_limit_says_so() {
    let busy = ClientThread { cpu: Nanos(2_000_000_000), spinning: Nanos(0), ..load().threads[0] };
    let closed = Load {
        pace: Pace::Closed { think: Nanos(0) },
        in_flight: 4,
        seed: None,
        lag: Histogram::default(),
        threads: vec![busy],
        ..load()
    };
    insta::assert_snapshot!(text(&closed, &PLAIN));
    let run_delay = Some(Nanos(500_000_000));
    let late = Load {
        lag: times(4000, 50_000),
        threads: vec![ClientThread { run_delay, ..load().threads[0] }],
        ..load()
    };
    let told = text(&late, &PLAIN);
    assert!(told.contains("The client was saturated: it could not keep its schedule"), "{told}");
    assert!(told.contains("ready without one for 500 ms"), "{told}");
    let rare = Load { lag: Histogram { buckets: vec![(1, 3999), (4_000_000, 1)] }, ..load() };
    assert!(text(&rare, &PLAIN).contains("The client itself was late, by 4.00 ms at most"));
}

#[test]
fn what_never_began_divides_by_nothing() {
    let nothing = Load {
        status: Status::Failed,
        reason: Some("nobody was there".to_owned()),
        scheduled: 0,
        outcomes: Outcomes::default(),
        window: Nanos(0),
        replies_in_window: 0,
        from_due: Histogram::default(),
        from_sent: Histogram::default(),
        lag: Histogram::default(),
        per_second: Vec::new(),
        threads: Vec::new(),
        cpu: None,
        network: None,
        ..load()
    };
    insta::assert_snapshot!(text(&nothing, &PLAIN));
    let value: Value = serde_json::from_str(&json(&nothing)).unwrap();
    assert_eq!((&value["rate_per_s"], &value["achieved_share"]), (&Value::Null, &Value::Null));
}

#[test]
fn programs_get_base_units_histograms_and_nulls() {
    let mut short = load();
    short.from_due = times(10, 50_000);
    short.from_sent = Histogram::default();
    short.lag = Histogram { buckets: vec![(1, 4)] };
    insta::assert_snapshot!(json(&short));
    let think = Nanos(5);
    let closed = Load { pace: Pace::Closed { think }, ..short };
    let value: Value = serde_json::from_str(&json(&closed)).unwrap();
    assert_eq!((&value["loop"], &value["think_ns"]), (&"closed".into(), &5.into()));
    assert_eq!((&value["offered_per_s"], &value["achieved_share"]), (&Value::Null, &Value::Null));
}
