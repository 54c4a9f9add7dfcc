//! A run of servers with known costs, in every form that is shown.

use std::collections::BTreeSet;

use iolens_model::arm::{ArmOutcome, Role};
use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::load::{Arrivals, ClientThread, Connects, Length, Outcomes};
use iolens_model::outcome::{ArmFact, Counts, EndFacts, SliceOutcome, Status, TrialOutcome};
use iolens_model::plan::Axes;
use iolens_model::reading::Histogram;
use iolens_model::reading::NotMeasured;
use iolens_model::run::{Run, RunHeader};
use iolens_model::server::{
    CpuTime, CpuUse, LoadLevel, MAKES, OfferedSlice, ServerArm, ServerAxes,
};
use iolens_model::units::Nanos;
use iolens_stats::analysis::{Analysis, CpuShares, Kind};
use iolens_stats::compare::{self, Side};

use super::counters::THROUGHPUT;
use super::processors::{by_end, use_of_cpus, watched};
use super::views::{View, is_open, views};
use crate::compare::Compared;
use crate::findings::Finding;
use crate::fixture::alone;
use crate::studies::tests::{cells_as_json, foreign, has_none_of, near};
use crate::{fixture, html, parts, studies, text};
use iolens_document::{Joined, Style};

/// id, what it makes, ns of server CPU and context switches of a request.
const ARMS: [(&str, &str, f64, f64); 4] = [
    ("epoll_lt", "nothing", 10_000.0, 0.5),
    ("poll", "nothing", 12_500.0, 0.5),
    ("uring", "nothing", 8_000.0, 0.1),
    ("prefork", "process", 20_000.0, 2.0),
];

/// Requests per second that are offered to those that share threads, and to the others.
const RATES: [f64; 2] = [20_000.0, 5_000.0];

fn header() -> RunHeader {
    let axes = Axes::Server(ServerAxes {
        topologies: vec![Topology::Veth],
        services: vec!["echo".to_owned()],
        lengths: vec![Length::Long],
        loads: vec![LoadLevel::Closed, LoadLevel::Percent(25), LoadLevel::Percent(50)],
        connections: vec![1, 16, 256],
        arrivals: Arrivals::Poisson,
        in_flight: 1,
        phase: Nanos::SECOND,
        backlog: 4096,
        client_threads: None,
        server_cpus: None,
        client_cpus: None,
        external: Vec::new(),
        alone_services: Vec::new(),
        alone_connections: Vec::new(),
        slo: Vec::new(),
        knee: false,
    });
    let ids = ARMS.iter().map(|arm| arm.0).chain(["iterative"]);
    let mut header = alone::header(axes, ids, &[], &[1]);
    header.calibration.as_mut().unwrap().receipt_round_trip_ns = None;
    header
}

/// A trial of a kind: the baseline, those of the kind, and the A/A copy.
fn trial(like: &TrialOutcome, cell: &Cell, pass: u32, kind: Kind) -> TrialOutcome {
    let setting = cell.server().expect("a cell of servers");
    let rate = match setting.load {
        LoadLevel::Closed | LoadLevel::Searched => None,
        LoadLevel::Percent(share) => Some(RATES[kind as usize] * f64::from(share) / 50.0),
    };
    let is_own = |makes: &str| (makes == "nothing") == (kind == Kind::Shared);
    let others = ARMS[1..].iter().filter(|arm| is_own(arm.1)).map(|arm| (*arm, Role::Compared));
    let all = std::iter::once((ARMS[0], Role::Baseline))
        .chain(others)
        .chain([(ARMS[0], Role::SelfCheck)]);
    let (mut arms, mut slices, mut facts) = (Vec::new(), Vec::<SliceOutcome>::new(), Vec::new());
    for ((id, makes, cpu, switches), role) in all {
        facts.push(ArmFact { arm: arms.len(), name: MAKES.to_owned(), value: makes.to_owned() });
        // The more connections, the longer `poll` looks.
        let looked = if id == "poll" { f64::from(setting.connections) * 20.0 } else { 0.0 };
        let cpu = (cpu + looked) * (1.0 + 0.002 * f64::from(pass % 3));
        let seq = u32::try_from(slices.len()).unwrap_or(0);
        let requests = rate.map_or(1e9 / cpu, |rate| rate);
        slices.extend([0, 1].map(|round| slice(seq + round, arms.len(), requests, cpu, switches)));
        arms.push(outcome(id, role, rate, setting.connections, seq, requests));
    }
    let mut trial = alone::trial(like, cell, pass, arms, slices);
    let end = trial.tx.as_mut().expect("its end answered");
    end.arm_facts = facts;
    let why = "/sys/bus/event_source/devices/cpu: no such PMU".to_owned();
    end.not_measured = ["cycles_user", "instructions_user", "branches", "branch_misses"]
        .map(|metric| NotMeasured { metric: metric.to_owned(), why: why.clone() })
        .to_vec();
    end.thread_cpus = vec![vec![0]];
    let rx = EndFacts { thread_cpus: vec![vec![1]], arm_facts: Vec::new(), ..end.clone() };
    TrialOutcome { rx: Some(rx), ..trial }
}

/// One second in which so many requests a second are answered.
fn slice(round: u32, arm: usize, requests: f64, cpu: f64, switches: f64) -> SliceOutcome {
    let count = alone::whole;
    let server = Counts {
        messages: count(requests),
        bytes: count(requests * 8.0),
        time_ns: 1_000_000_000,
        task_clock_ns: Some(count(requests * cpu)),
        voluntary_switches: Some(count(requests * switches)),
        involuntary_switches: Some(0),
        minor_faults: Some(3),
        major_faults: Some(0),
        ..Counts::default()
    };
    let client = Counts { task_clock_ns: Some(count(requests * 4_000.0)), ..server };
    let mut slice = alone::slice(&[], round % 2, arm, server);
    slice.seq = round;
    SliceOutcome { rx: Some(client), ..slice }
}

fn outcome(
    id: &str,
    role: Role,
    rate: Option<f64>,
    connections: u32,
    first: u32,
    requests: f64,
) -> ArmOutcome {
    let ok = alone::whole(requests);
    // By Little's law, in a closed loop.
    let each = if rate.is_some() { 4e4 } else { f64::from(connections) / requests * 1e9 };
    let times = Histogram { buckets: vec![(alone::whole(each), 2 * ok)] };
    let seen = |seq: u32| OfferedSlice {
        seq,
        scheduled: ok,
        outcomes: Outcomes { ok, ..Outcomes::default() },
        replies_in_window: ok,
        window: Nanos::SECOND,
        threads: vec![ClientThread {
            cpu: Nanos(4_000 * ok),
            wall: Nanos::SECOND,
            run_delay: Some(Nanos(0)),
            ..ClientThread::default()
        }],
        ..OfferedSlice::default()
    };
    ArmOutcome {
        latency: Some(times.clone()),
        ab: None,
        server: Some(Box::new(ServerArm {
            rate,
            offered: vec![seen(first), seen(first + 1)],
            from_sent: times,
            connects: Connects { made: u64::from(connections), ..Connects::default() },
            requests_by_task: vec![2 * ok],
            tasks_max: 1,
            cpus: CpuUse {
                before: vec![ticks(0, [0, 1, 0, 0, 0, 9]), ticks(1, [0, 0, 0, 0, 0, 10])],
                idle: vec![ticks(0, [1, 1, 0, 0, 0, 8]), ticks(1, [0, 0, 0, 0, 0, 10])],
                slices: vec![ticks(0, [10, 60, 1, 20, 4, 5]), ticks(1, [30, 20, 0, 0, 0, 50])],
            },
            ..ServerArm::default()
        })),
        ..alone::arm(id, role)
    }
}

/// What a processor did: user, system, irq, softirq, steal, idle.
fn ticks(cpu: u32, [user, system, irq, softirq, steal, idle]: [u64; 6]) -> CpuTime {
    CpuTime { cpu, user, system, irq, softirq, steal, idle }
}

pub(crate) fn run() -> (Run, Analysis) {
    let header = header();
    let (mut run, _) =
        fixture::of_trials(header, |like, cell, pass| trial(like, cell, pass, Kind::Shared));
    let alone = run.trials.iter().map(|shared| {
        let alone = trial(shared, &shared.cell, shared.pass, Kind::Alone);
        TrialOutcome { position: 1, ..alone }
    });
    let skipped = run.trials.iter().map(|shared| {
        let mut skipped = trial(shared, &shared.cell, shared.pass, Kind::Alone);
        skipped.slices = Vec::new();
        for arm in &mut skipped.arms {
            (arm.latency, arm.server) = (None, None);
            (arm.status, arm.reason) =
                (Status::Skipped, Some("by design: one connection at a time".to_owned()));
        }
        let only = skipped.arms.swap_remove(1);
        let arm = alone::arm("iterative", Role::Compared).arm;
        skipped.arms = vec![ArmOutcome { arm, ..only }];
        let (status, reason) = (Status::Skipped, skipped.arms[0].reason.clone());
        TrialOutcome { pass: 0, position: 2, status, reason, ..skipped }
    });
    let more: Vec<TrialOutcome> = alone.chain(skipped).collect();
    run.trials.extend(more);
    run.trials.sort_by_key(|trial| trial.pass);
    let analysis = iolens_stats::analyse(&run);
    (run, analysis)
}

#[test]
fn every_model_is_usable_at_each_load_but_the_one_that_cannot_be() {
    let (_, analysis) = run();
    assert_eq!(analysis.cells.len(), 9);
    for arm in analysis.arms() {
        let expect = if arm.arm.label == "iterative" { Status::Skipped } else { Status::Ok };
        assert_eq!(arm.status, expect, "{}: {:?}", arm.arm.label, arm.reason);
    }
}

#[test]
fn the_baseline_of_each_kind_is_that_at_the_rate_of_the_kind() {
    let (run, analysis) = run();
    let views = views(&run, &analysis);
    let is_first = |view: &&View| view.cell.cell == views[0].cell.cell;
    let first: Vec<&View> = views.iter().filter(is_first).collect();
    let kinds = [Some(Kind::Shared), Some(Kind::Alone)];
    assert_eq!(first.iter().map(|view| view.kind).collect::<Vec<_>>(), kinds);
    let rate = |view: &&View| THROUGHPUT.of(&view.cell.arms[0]).expect("measured").value;
    let found: Vec<f64> = first.iter().map(rate).map(f64::round).collect();
    assert_eq!(found, [10_000.0, 2_500.0]);
    assert!(first[1].load.ends_with(": 2500 requests/s"), "{}", first[1].load);
    let closed: Vec<&View> = views.iter().filter(|view| !view.is_open).collect();
    assert_eq!(closed.len(), 3);
    assert!(closed.iter().all(|view| view.kind.is_none()));
}

/// At a rate for each kind the baseline is ranked with each, and in a closed loop all together.
#[test]
fn servers_are_ranked_among_those_that_had_one_rate() {
    let (run, analysis) = run();
    let rankings = crate::findings::rankings(&run, &analysis);
    for cell in &analysis.cells {
        let own = rankings.iter().filter(|ranking| ranking.setting == cell.cell);
        let kinds: Vec<Option<bool>> = own.map(|ranking| ranking.one_per_connection).collect();
        let expected = if is_open(cell) { vec![Some(false), Some(true)] } else { vec![None] };
        assert_eq!(kinds, expected, "{}", cell.cell);
    }
    let of = |kind| {
        let own = rankings.iter().find(|ranking| ranking.one_per_connection == kind);
        crate::screen::outcome(&own.expect("a ranking").outcome, 0.03)
    };
    assert_eq!([of(Some(false)), of(Some(true)), of(None)], ["uring", "epoll_lt", "uring"]);
}

/// Nobody is cheapest beside a baseline that did less than it was offered.
#[test]
fn without_the_baseline_at_its_rate_nobody_is_ranked() {
    let (mut run, _) = run();
    let all = run.trials.iter_mut().flat_map(|trial| &mut trial.arms);
    let baselines = all.filter(|arm| arm.arm.role == Role::Baseline);
    for slice in baselines.filter_map(|arm| arm.server.as_mut()).flat_map(|arm| &mut arm.offered) {
        slice.replies_in_window = slice.replies_in_window / 10 * 9;
    }
    let analysis = iolens_stats::analyse(&run);
    let rankings = crate::findings::rankings(&run, &analysis);
    for ranking in &rankings {
        let is_open = ranking.one_per_connection.is_some();
        let said = format!("{:?}", ranking.outcome);
        assert_eq!(said.contains("epoll_lt is not ranked: the offered rate"), is_open, "{said}");
    }
}

/// Time is the schedule's at a rate: what is compared, and shown, is what a request costs.
#[test]
fn at_a_rate_alone_the_cost_is_compared() {
    let (mut run, _) = run();
    let open = |cell: &Cell| cell.server().is_some_and(|setting| setting.is_open_loop());
    let Axes::Server(axes) = &mut run.header.plan.axes else { panic!("a plan of servers") };
    axes.loads.retain(|load| *load != LoadLevel::Closed);
    run.trials.retain(|trial| open(&trial.cell));
    let analysis = iolens_stats::analyse(&run);
    let mut dearer = run.clone();
    dearer.header.id = "77aa0011".into();
    for trial in &mut dearer.trials {
        let uring: Vec<usize> =
            (0..trial.arms.len()).filter(|&arm| trial.arms[arm].arm.primitive == "uring").collect();
        for slice in trial.slices.iter_mut().filter(|slice| uring.contains(&slice.arm)) {
            slice.tx.task_clock_ns = slice.tx.task_clock_ns.map(|ns| ns / 4 * 5);
        }
    }
    let other = iolens_stats::analyse(&dearer);
    let a = Side { header: &run.header, analysis: &analysis, asked: &[] };
    let b = Side { header: &dearer.header, analysis: &other, asked: &[] };
    let comparison = compare::compare(&a, &b, compare::Absolute::Shown).expect("the same cells");
    let compared = Compared { comparison: &comparison, a: &run.header, b: &dearer.header };
    let said = crate::compare::text(&compared, false, &Style::plain(100));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("change in economy in server CPU time vs epoll_lt"), "{said}");
    assert!(said.contains("uring takes up to 25% more server CPU time in B"), "{said}");
    let page = html::merged(&[(run, analysis), (dearer, other)]);
    assert!(page.contains("the method costs less: server CPU time where a rate is offered"));
}

/// What stands below the first screen, and of one setting.
#[test]
fn what_is_shown_below_the_first_screen() {
    let (run, analysis) = run();
    let style = |width| Style::plain(width);
    insta::assert_snapshot!("show", text::whole(&run, &analysis, &style(100)));
    let closed = analysis.cells.iter().find(|cell| !is_open(cell)).expect("a closed loop");
    insta::assert_snapshot!("one_setting", text::show(&run, &analysis, closed, &style(100)));
    for width in [80, 100] {
        let mut all = vec![text::whole(&run, &analysis, &style(width))];
        let (run, analysis) = super::searches_tests::searched();
        all.push(text::whole(&run, &analysis, &style(width)));
        all.extend(analysis.cells.iter().map(|c| text::show(&run, &analysis, c, &style(width))));
        for text in all {
            has_none_of(foreign("server"), &text);
            let is_wide = |line: &&str| line.chars().count() > width;
            let wide: Vec<&str> = text.lines().filter(is_wide).collect();
            assert!(wide.is_empty(), "{width} columns: {wide:#?}");
        }
    }
}

/// A closed loop is compared by its rate too.
#[test]
fn what_is_judged_of_a_model_stands_under_its_quantity() {
    let (run, analysis) = run();
    let style = Style::plain(200);
    let of = |open: bool| -> Vec<String> {
        let cell = analysis.cells.iter().find(|cell| is_open(cell) == open).expect("a cell");
        let text = text::show(&run, &analysis, cell, &style);
        let is_own = |line: &&str| {
            line.starts_with("poll") && line.ends_with(['r', 'e'])
                || ["CPU per request", "requests/s"].contains(line)
        };
        let words = |line: &str| line.split_whitespace().last().unwrap_or_default().to_owned();
        text.lines().filter(is_own).map(words).collect()
    };
    assert_eq!(of(false), ["request", "costlier", "requests/s", "fewer"]);
    assert_eq!(of(true)[..2], ["request", "costlier"]);
    assert!(!of(true).contains(&"requests/s".to_owned()));
}

#[test]
fn a_quick_run_has_no_verdicts() {
    let (mut run, _) = run();
    run.header.plan.quick = true;
    let analysis = iolens_stats::analyse(&run);
    let style = Style::plain(100);
    let shown = text::whole(&run, &analysis, &style);
    let one = text::show(&run, &analysis, &analysis.cells[0], &style);
    for word in ["FASTER", "SLOWER", "cheaper", "costlier", "verdict\n", " = ", "Indicative"] {
        assert!(!shown.contains(word) && !one.contains(word), "{word}");
    }
}

/// Five models that switch the more, the more they cost.
#[test]
fn what_goes_with_the_cost_is_a_finding_and_a_column() {
    let (mut run, _) = run();
    for trial in &mut run.trials {
        let more = trial.arms.iter().position(|arm| arm.arm.label == "poll");
        if let Some(arm) = more.and_then(|at| Some((at, trial.arms.get(at)?.clone()))) {
            let (at, mut copy) = arm;
            copy.arm.label = "select".to_owned();
            copy.arm.primitive = "select".to_owned();
            let new = trial.arms.len();
            let own = trial.slices.iter().filter(|slice| slice.arm == at).cloned();
            let mut own: Vec<SliceOutcome> = own.collect();
            for slice in &mut own {
                slice.arm = new;
            }
            trial.slices.extend(own);
            trial.arms.push(copy);
        }
    }
    let analysis = iolens_stats::analyse(&run);
    let facts = crate::findings::all(&run, &analysis.shown());
    let of = |counter: &str| {
        facts.iter().find_map(|finding| match finding {
            Finding::GoesWithCost(found) if found.counter == counter => Some(found.clone()),
            _ => None,
        })
    };
    let found = of("context switches").expect("five models have it");
    assert_eq!((found.models, found.one_per_connection), (5, None));
    assert!(found.rank_correlation > 0.5, "{found:?}");
    assert!(of("cycles").is_none(), "nobody counted them");
    let shown = text::whole(&run, &analysis, &Style::plain(100));
    assert!(shown.contains("with CPU") && shown.contains("not cause"), "{shown}");
}

#[test]
fn the_page_says_why_something_is_missing() {
    let (run, analysis) = run();
    let page = html::page(&run, &analysis);
    assert!(page.contains("no such PMU"), "why cycles are null");
    assert!(page.contains("by design: one connection at a time"));
    let figures = studies::figures(&run, &analysis);
    let stems: BTreeSet<&str> = figures.iter().map(|figure| &*figure.file_stem).collect();
    assert!(figures.iter().all(|figure| figure.lines <= parts::LINES_MAX));
    assert_eq!(stems.len(), figures.len(), "{stems:?}");
}

/// A rate divides them into figures; in a closed loop they stand beside each other.
#[test]
fn servers_of_textbooks_have_one_figure_in_a_closed_loop() {
    let (mut run, _) = run();
    let renamed = |id: &mut String| match id.as_str() {
        "poll" => "select".clone_into(id),
        "prefork" => "thread_per_connection".clone_into(id),
        _ => (),
    };
    run.header.plan.primitives.iter_mut().for_each(renamed);
    for arm in run.trials.iter_mut().flat_map(|trial| &mut trial.arms) {
        renamed(&mut arm.arm.label);
        renamed(&mut arm.arm.primitive);
    }
    let found = |run: &Run, what: &str| {
        let figures = studies::figures(run, &iolens_stats::analyse(run)).into_iter();
        let own = figures.filter(|figure| figure.file_stem.contains(what));
        own.map(|figure| (figure.family, figure.lines)).collect::<Vec<_>>()
    };
    assert_eq!(found(&run, "closed-loop-by-connections"), [(Some("textbook"), 3)]);
    assert_eq!(found(&run, "cost-by-connections").len(), 2);
    run.trials.retain(|trial| trial.cell.server().is_some_and(|of| !of.is_open_loop()));
    if let Axes::Server(axes) = &mut run.header.plan.axes {
        axes.loads = vec![LoadLevel::Closed];
    }
    assert_eq!(found(&run, "closed-loop-by-connections"), []);
    assert_eq!(found(&run, "cost-by-connections"), [(None, 4)]);
}

#[test]
fn what_every_processor_did_is_told_by_end_with_softirq_apart() {
    let (_, analysis) = run();
    let table = use_of_cpus(&analysis.cells[0], "").expect("processors were watched");
    let text = table.text(120);
    let rows: Vec<&str> =
        text.lines().skip(3).filter(|line| !line.trim().is_empty()).take(6).collect();
    let rows = rows.iter().map(|row| row.trim());
    insta::assert_snapshot!(rows.joined("\n"));
    let server = by_end(watched(&analysis.cells[0])[2].cpus);
    assert_eq!(server.len(), 2);
    assert!((server[0].1.softirq - 0.2).abs() < 1e-9 && (server[1].1.idle - 0.5).abs() < 1e-9);
    // Two processors of one end are one bar, each by its time.
    let both: Vec<CpuShares> = [1.0, 0.0]
        .map(|user| CpuShares { cpu: 0, user, idle: 1.0 - user, ticks: 10, ..server[0].1 })
        .to_vec();
    assert!((by_end(&both)[0].1.user - 0.5).abs() < 1e-9);
}

#[test]
fn programs_get_what_a_request_costs() {
    let (run, analysis) = run();
    let rows = cells_as_json(&run, &analysis);
    let is_closed = |row: &&serde_json::Value| row["load"] == "closed" && row["connections"] == 16;
    let of =
        |id: &str| rows.iter().filter(is_closed).find(|row| row["primitive"] == id).expect("a row");
    near(of("uring")["server_cpu_ns_per_request"].as_f64().expect("measured"), 8_016.0);
    let ratio = of("uring")["cpu_ratio"].as_f64().expect("compared");
    assert!((ratio - 1.25).abs() < 0.01, "{ratio}");
    assert!(of("uring")["server_cycles"].is_null());
    assert_eq!(of("iterative")["status"], "skipped");
}

/// A closed loop by time and by what a request costs, a rate by its cost alone.
#[test]
fn two_runs_of_servers_are_compared_by_cost_too() {
    let (run, analysis) = run();
    let side = Side { header: &run.header, analysis: &analysis, asked: &[] };
    let comparison = compare::compare(&side, &side, compare::Absolute::Shown).unwrap();
    let both = Compared { a: &run.header, b: &run.header, comparison: &comparison };
    let text = crate::compare::text(&both, true, &Style::plain(100));
    for (heading, is_there) in [
        ("server, 16 connections, closed loop: time per request", true),
        ("server, 16 connections, closed loop: server CPU time per request", true),
        ("server, 16 connections, 25% of the slowest's rate: server CPU time per request", true),
        ("server, 16 connections, 25% of the slowest's rate: time per request", false),
    ] {
        assert_eq!(text.contains(heading), is_there, "{heading}: {text}");
    }
    assert!(text.contains("are run 4f1c09ab, the same trials"), "{text}");
    has_none_of(&["size  ", "message"], &text);
}
