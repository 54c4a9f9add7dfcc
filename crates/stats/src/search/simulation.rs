//! Searches over simulated queues, whose answers are known: requests at random to one
//! server that takes a fixed time for each (M/D/1) or a random one (M/M/1).

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::Topology;
use iolens_model::cell::{Cell, Setting};
use iolens_model::load::{Length, Outcomes};
use iolens_model::outcome::{Environment, Status};
use iolens_model::plan::{Axes, Plan};
use iolens_model::reading::Histogram;
use iolens_model::run::SearchPhase;
use iolens_model::server::{CpuTime, LoadLevel, OfferedSlice, ServerArm, ServerSetting};
use iolens_model::slo::{Goal, Slo};
use iolens_model::units::{Bytes, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::fixture;

/// So many times of one length.
pub(super) fn flat(ns: u64, times: u64) -> Histogram {
    Histogram { buckets: vec![(ns, times)] }
}

fn cell() -> Cell {
    let setting = ServerSetting {
        topology: Topology::Loopback,
        service: "echo".to_owned(),
        length: Length::Long,
        load: LoadLevel::Searched,
        connections: 16,
    };
    Cell { setting: Setting::Server(setting), threads: 1, size: Bytes(0) }
}

fn arm() -> Arm {
    Arm { label: "poll".to_owned(), primitive: "poll".to_owned(), role: Role::Compared }
}

/// A second in which so many requests were due, all of which were answered and timed.
pub(super) fn phase(rate: f64, latency: Histogram, due: u64) -> SearchPhase {
    let seen = OfferedSlice {
        scheduled: due,
        outcomes: Outcomes { ok: due, ..Outcomes::default() },
        replies_in_window: due,
        window: Nanos::SECOND,
        ..OfferedSlice::default()
    };
    SearchPhase {
        number: 1,
        cell: cell(),
        arm: arm(),
        step: Some(0),
        rate: Some(rate),
        phase: Nanos::SECOND,
        dropped: Nanos(0),
        started_unix_ns: 0,
        duration_ns: 0,
        status: Status::Ok,
        reason: None,
        latency: Some(latency),
        server: Some(Box::new(ServerArm { offered: vec![seen], ..ServerArm::default() })),
        slice: None,
        environment: Environment::unknown("simulated"),
    }
}

/// Time of a request at the server.
#[derive(Debug, Clone, Copy)]
enum Service {
    Fixed,
    Random,
}

/// Requests per second that the server takes.
const CAPACITY: f64 = 4_000.0;

fn exponential(rng: &mut Pcg64Mcg, mean: f64) -> f64 {
    -mean * (1.0 - rng.random::<f64>()).ln()
}

/// Seconds for which a hypervisor takes the server's processor at a time.
const TAKEN_S: f64 = 0.01;

/// Requests at random to an empty server, those of the first quarter thrown away; a hypervisor
/// takes this share of the server's processor.
fn served(
    service: Service,
    rate: f64,
    stolen: f64,
    length: Nanos,
    rng: &mut Pcg64Mcg,
) -> SearchPhase {
    let (end, from) = (length.as_seconds(), length.as_seconds() / DROPPED_SHARE as f64);
    let (mut due, mut free) = (exponential(rng, 1.0 / rate), 0.0f64);
    let mut taken = 0u64;
    let next = |rng: &mut Pcg64Mcg| match stolen > 0.0 {
        true => exponential(rng, TAKEN_S / stolen),
        false => f64::INFINITY,
    };
    let mut taken_at = next(rng);
    let (mut times, mut in_window) = (std::collections::BTreeMap::<u64, u64>::new(), 0);
    while due < end {
        let takes = match service {
            Service::Fixed => 1.0 / CAPACITY,
            Service::Random => exponential(rng, 1.0 / CAPACITY),
        };
        while taken_at < free.max(due) {
            free = free.max(taken_at + TAKEN_S);
            taken_at += TAKEN_S + next(rng);
            taken += 1;
        }
        free = free.max(due) + takes;
        in_window += u64::from(from <= free && free < end);
        if due >= from {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            let us = ((free - due) * 1e6).ceil() as u64;
            *times.entry(us * 1_000).or_default() += 1;
        }
        due += exponential(rng, 1.0 / rate);
    }
    let latency = Histogram { buckets: times.into_iter().collect() };
    let mut phase = phase(rate, latency.clone(), latency.total());
    let server = phase.server.as_mut().expect("it was served");
    // Ticks of a hundredth of a second, as the kernel counts them.
    let (ticks, steal) = ((end * 100.0).round(), taken as f64 * TAKEN_S * 100.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
    let cpu = CpuTime { idle: (ticks - steal) as u64, steal: steal as u64, ..CpuTime::default() };
    server.cpus.slices = vec![cpu];
    let seen = server.offered.last_mut().expect("a slice");
    (seen.replies_in_window, seen.window) = (in_window, Nanos(length.0 - length.0 / DROPPED_SHARE));
    phase
}

fn plan(goals: &[Goal]) -> Plan {
    let mut plan = fixture::servers::plan(&[LoadLevel::Closed]);
    if let Axes::Server(axes) = &mut plan.axes {
        let limit = |goal: &Goal| if let Goal::Slo(slo) = goal { Some(*slo) } else { None };
        axes.slo = goals.iter().filter_map(limit).collect();
        axes.knee = goals.contains(&Goal::Knee);
        axes.phase = Nanos(2 * Nanos::SECOND.0);
    }
    plan.quick = false;
    plan
}

/// Searches to the end; the answers, and how many phases it took.
fn search(goals: &[Goal], service: Service, seed: u64) -> (Vec<Answer>, usize) {
    search_with(goals, service, 0.0, seed)
}

/// The same where a hypervisor takes this share of the processor.
fn search_with(goals: &[Goal], service: Service, stolen: f64, seed: u64) -> (Vec<Answer>, usize) {
    let (plan, mut rng) = (plan(goals), Pcg64Mcg::seed_from_u64(seed));
    let mut phases: Vec<SearchPhase> = Vec::new();
    loop {
        let search = Search::of(&plan, &cell(), &arm(), &phases);
        let next = match search.wanted() {
            Wanted::Nothing => return (search.answers(&cell(), &arm()), phases.len()),
            Wanted::Closed { .. } => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a count"
                )]
                let due = CAPACITY as u64;
                let closed = phase(0.0, flat(250_000, due), due);
                SearchPhase { step: None, rate: None, ..closed }
            }
            Wanted::Rate { step, rate, phase } => {
                SearchPhase { step: Some(step), ..served(service, rate, stolen, phase, &mut rng) }
            }
        };
        phases.push(next);
    }
}

/// The load at which `share` of the requests to M/D/1 take less than `over` services:
/// Erlang's formula for the wait, summed and bisected.
fn fixed_load(share: f64, over: f64) -> f64 {
    let waits_less = |load: f64| {
        let t = over - 1.0;
        let mut sum = 0.0;
        let mut factorial = 1.0;
        #[expect(clippy::cast_possible_truncation, reason = "a few services")]
        for k in 0..=t.floor() as i32 {
            if k > 0 {
                factorial *= f64::from(k);
            }
            let left = load * (t - f64::from(k));
            sum += (-left).powi(k) / factorial * left.exp();
        }
        (1.0 - load) * sum
    };
    let (mut low, mut high) = (0.01, 0.999);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if waits_less(middle) > share { low = middle } else { high = middle }
    }
    low
}

const SEEDS: u64 = 8;

/// Every answer holds the known rate, a step of tolerance to each side, and together they
/// do not stray.
fn check(goal: Goal, service: Service, known: f64) {
    let mut mean = 0.0;
    for seed in 0..SEEDS {
        let (answers, phases) = search(&[goal], service, seed);
        let answer = &answers[0];
        assert_eq!(answer.ended, Ended::Found, "{goal}, {service:?}, seed {seed}: {answer:?}");
        let (kept, broken) = (answer.kept_per_s.unwrap(), answer.broken_per_s.unwrap());
        assert!((broken / kept - 1.0 - STEP).abs() < 1e-9);
        let slack = 1.0 + STEP;
        assert!(
            kept / slack <= known && known <= broken * slack,
            "{goal}, {service:?}, seed {seed}: {known:.0} for [{kept:.0}, {broken:.0}]"
        );
        assert!(phases <= 2 * quiet(&[goal], REPEATS), "{phases} phases");
        mean += (kept * broken).ln() / 2.0 / SEEDS as f64;
    }
    let off = mean.exp() / known - 1.0;
    assert!(off.abs() < STEP, "{goal}, {service:?}: {:.1}% off", 100.0 * off);
}

/// Stolen time makes a phase late, which sets it aside and breaks nothing: what is kept is
/// then the few phases from which little was taken. That lifts no answer by more than two
/// steps; how far it lowers them is what METHOD.md says, in percent.
#[test]
fn stolen_time_lifts_an_answer_by_little_and_lowers_it_by_what_is_stated() {
    const LIFT_STEPS: f64 = 2.0;
    let cases =
        [("p99<5ms", 0.99f64, 5e-3, [3.0, 14.0, 79.0]), ("p50<1ms", 0.5, 1e-3, [3.0, 5.0, 7.0])];
    for (text, share, limit_s, lowered) in cases {
        let known = CAPACITY + (1.0 - share).ln() / limit_s;
        for (stolen, lowered) in [0.002, 0.01, 0.03].into_iter().zip(lowered) {
            let kept: Vec<f64> = (0..2 * SEEDS)
                .filter_map(|seed| {
                    search_with(&[slo(text)], Service::Random, stolen, seed).0[0].kept_per_s
                })
                .collect();
            let off = |rate: f64| 100.0 * (rate / known - 1.0);
            let mean = kept.iter().map(|rate| rate.ln()).sum::<f64>() / kept.len() as f64;
            let most = kept.iter().copied().fold(0.0, f64::max);
            println!(
                "{text}, {:.1}% stolen: kept rates {:+.1}% off on average, {:+.1}% at most, {} \
                 of {} searches with one",
                100.0 * stolen,
                off(mean.exp()),
                off(most),
                kept.len(),
                2 * SEEDS
            );
            assert!(most <= known * (1.0 + STEP).powf(LIFT_STEPS), "{text} {stolen}: {most}");
            let found = -off(mean.exp());
            assert!((found - lowered).abs() < 1.0, "{text} {stolen}: {found:.1} for {lowered}%");
        }
    }
}

fn slo(text: &str) -> Goal {
    Goal::Slo(text.parse::<Slo>().unwrap())
}

/// A request takes less than t with the chance 1 − exp(−(μ − λ) t).
#[test]
fn limits_of_an_m_m_1_queue_are_found() {
    for (text, share, limit_s) in [("p99<5ms", 0.99f64, 5e-3), ("p50<1ms", 0.5, 1e-3)] {
        let known = CAPACITY + (1.0 - share).ln() / limit_s;
        check(slo(text), Service::Random, known);
    }
}

#[test]
fn limits_of_an_m_d_1_queue_are_found() {
    // 1.5 ms are six services.
    check(slo("p99<1500us"), Service::Fixed, CAPACITY * fixed_load(0.99, 6.0));
    check(slo("p90<500us"), Service::Fixed, CAPACITY * fixed_load(0.9, 2.0));
}

/// The load of M/D/1 at which a given share waits less is known from tables: half of the
/// requests wait less than one service at a load of 0.768.
#[test]
fn erlangs_formula_is_the_one_that_is_known() {
    let load = fixed_load(0.5, 2.0);
    assert!(((1.0 - load) * load.exp() - 0.5).abs() < 1e-9, "{load}");
    assert!((load - 0.768).abs() < 1e-3, "{load}");
}

/// The median of M/M/1 is ln 2 / (μ − λ): twice that at a tenth of μ at 0.55 of it, which
/// is half, the load of maximal power, where the low rate is none at all.
#[test]
fn the_knee_of_a_queue_is_where_the_median_is_twice_that_at_the_low_rate() {
    let low = (1.0 + STEP).powi(step(LOW_SHARE));
    check(Goal::Knee, Service::Random, CAPACITY * (1.0 - (1.0 - low) / 2.0));
    check(Goal::Knee, Service::Fixed, CAPACITY * fixed_load(0.5, 2.0));
}

#[test]
fn goals_share_their_phases() {
    let goals = [slo("p99<5ms"), Goal::Knee];
    let (both, phases) = search(&goals, Service::Random, 1);
    let apart: usize = goals.iter().map(|goal| search(&[*goal], Service::Random, 1).1).sum();
    assert!(phases < apart, "{phases} and {apart}");
    assert!(both.iter().all(|answer| answer.ended == Ended::Found));
    assert!(both[1].kept_per_s < both[0].kept_per_s);
}

#[test]
fn a_limit_that_no_rate_keeps_and_one_that_all_keep_are_said_to_be() {
    let (answers, _) = search(&[slo("p50<100us")], Service::Fixed, 1);
    assert_eq!((answers[0].ended, answers[0].kept_per_s), (Ended::Below, None));
    let lowest = answers[0].broken_per_s.unwrap();
    assert!(lowest < CAPACITY / 32.0, "{lowest}");
    let mut easy = Vec::new();
    let (plan, easy_goal) = (plan(&[slo("p99<1s")]), slo("p99<1s"));
    // Every phase answers at once, whatever was asked.
    while let wanted @ (Wanted::Closed { .. } | Wanted::Rate { .. }) =
        Search::of(&plan, &cell(), &arm(), &easy).wanted()
    {
        let (step, rate) = match wanted {
            Wanted::Rate { step, rate, .. } => (Some(step), Some(rate)),
            _ => (None, None),
        };
        easy.push(SearchPhase { step, rate, ..phase(1.0, flat(1_000, 4_000), 4_000) });
    }
    let answer = Search::of(&plan, &cell(), &arm(), &easy).answer_of(easy_goal);
    assert_eq!(answer.ended, Ended::AtLeast);
    assert!(answer.why.is_some_and(|why| why.contains("closed loop")), "{:?}", answer.ended);
}

#[test]
fn a_search_that_is_cut_short_says_how_far_it_came() {
    let (plan, goal) = (plan(&[slo("p99<5ms")]), slo("p99<5ms"));
    let closed = SearchPhase { step: None, rate: None, ..phase(0.0, flat(1, 4_000), 4_000) };
    let start = step(START_SHARE);
    let kept = SearchPhase { step: Some(start), ..phase(2_000.0, flat(250_000, 4_000), 4_000) };
    let none = Search::of(&plan, &cell(), &arm(), &[]).answer_of(goal);
    assert_eq!((none.ended, none.closed_loop_per_s), (Ended::CutShort, None));
    let phases = [closed, kept];
    let some = Search::of(&plan, &cell(), &arm(), &phases).answer_of(goal);
    assert_eq!(
        (some.ended, some.kept_per_s, some.broken_per_s),
        (Ended::CutShort, Some(2_000.0), None)
    );
    assert_eq!(some.closed_loop_per_s, Some(4_000.0));
}

impl Search<'_> {
    fn answer_of(&self, goal: Goal) -> Answer {
        let all = self.answers(&cell(), &arm());
        all.into_iter().find(|answer| answer.goal == goal).expect("it was asked")
    }
}
