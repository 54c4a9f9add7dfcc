//! Searches with known ends, in every form that is shown.

use std::slice::from_ref;

use iolens_model::arm::Arm;
use iolens_model::cell::Cell;
use iolens_model::load::{ClientThread, Outcomes};
use iolens_model::outcome::{Environment, Status};
use iolens_model::plan::Axes;
use iolens_model::reading::Histogram;
use iolens_model::run::Run;
use iolens_model::run::SearchPhase;
use iolens_model::server::{LoadLevel, OfferedSlice, ServerArm};
use iolens_model::units::Nanos;
use iolens_stats::analysis::Analysis;
use iolens_stats::search;

use super::searches::{self, found};
use super::tests::run;
use crate::arms::methods as models;
use crate::export::Rows;
use crate::{csv, html, json, studies, text};
use iolens_document::Style;

/// Requests per second of every model in a closed loop.
const CLOSED: f64 = 100_000.0;

/// The step of the low rate: a tenth.
const LOW: i32 = -47;

/// A phase of a model in which every request took so long.
fn phase(arm: &Arm, cell: &Cell, step: Option<i32>, us: u64) -> SearchPhase {
    let rate = CLOSED * 1.05f64.powi(step.unwrap_or(0));
    let due = crate::fixture::alone::whole(rate * 1.5);
    let latency = Histogram { buckets: vec![(us * 1_000, due)] };
    let seen = OfferedSlice {
        scheduled: due,
        outcomes: Outcomes { ok: due, ..Outcomes::default() },
        replies_in_window: due,
        window: Nanos(1_500_000_000),
        ..OfferedSlice::default()
    };
    SearchPhase {
        number: 1,
        cell: cell.clone(),
        arm: arm.clone(),
        step,
        rate: step.map(|_| rate),
        phase: Nanos(2_000_000_000),
        dropped: Nanos(500_000_000),
        started_unix_ns: 0,
        duration_ns: 2_100_000_000,
        status: Status::Ok,
        reason: None,
        latency: Some(latency.clone()),
        server: Some(Box::new(ServerArm {
            offered: vec![seen],
            from_sent: latency,
            ..ServerArm::default()
        })),
        slice: None,
        environment: Environment::unknown("made up"),
    }
}

/// The client worked all the time.
fn client_limited(mut phase: SearchPhase) -> SearchPhase {
    let busy = ClientThread {
        cpu: Nanos(1_450_000_000),
        wall: Nanos(1_500_000_000),
        ..ClientThread::default()
    };
    let server = phase.server.as_mut().expect("it was served");
    server.offered[0].threads = vec![busy];
    phase
}

/// One cell: a clear end, a noisy one, one at the client's limit, and one that was cut
/// short. Only the first has a low rate, and so a knee.
pub(crate) fn searched() -> (Run, Analysis) {
    let (mut run, _) = run();
    if let Axes::Server(axes) = &mut run.header.plan.axes {
        (axes.loads, axes.connections) = (vec![LoadLevel::Closed], vec![16]);
        (axes.slo, axes.knee) = (vec!["p99<2ms".parse().expect("a limit")], true);
    }
    let cells = run.header.plan.cells();
    run.trials.retain(|trial| cells.contains(&trial.cell));
    let analysis = iolens_stats::analyse(&run);
    let cell = search::cells(&run.header.plan).remove(0);
    let arms: Vec<Arm> = models(&analysis.cells[0]).map(|arm| arm.arm.clone()).collect();
    let of = |id: &str| arms.iter().find(|arm| arm.label == id).expect("a model");
    let mut phases = Vec::new();
    let mut add = |id: &str, step: Option<i32>, us: &[u64]| {
        phases.extend(us.iter().map(|&us| phase(of(id), &cell, step, us)));
    };
    add("epoll_lt", None, &[160]);
    add("epoll_lt", Some(LOW), &[50; 3]);
    add("epoll_lt", Some(-5), &[80, 81, 82, 83, 84]);
    add("epoll_lt", Some(-4), &[2_100, 2_200, 2_300, 2_400, 2_500]);
    add("poll", None, &[160]);
    add("poll", Some(-14), &[90]);
    add("poll", Some(-9), &[1_200, 1_300, 2_900, 1_400, 2_800]);
    add("poll", Some(-8), &[2_500, 1_900, 2_600, 2_700, 2_800]);
    add("poll", Some(-2), &[9_000]);
    add("uring", None, &[160]);
    add("uring", Some(2), &[900; 5]);
    add("prefork", None, &[160]);
    add("prefork", Some(-14), &[100]);
    let beyond = phase(of("uring"), &cell, Some(3), 3_000);
    phases.extend((0..6).map(|_| client_limited(beyond.clone())));
    for (number, phase) in (1..).zip(&mut phases) {
        phase.number = number;
    }
    run.searches = phases;
    (run, analysis)
}

#[test]
fn what_was_found_is_shown() {
    let (run, analysis) = searched();
    insta::assert_snapshot!("show", text::whole(&run, &analysis, &Style::plain(100)));
    let tried = found(&run, &analysis)[0].answers.iter().find_map(searches::tried);
    insta::assert_snapshot!("every_rate_of_a_search", tried.expect("it was tried").text(120));
}

#[test]
fn a_figure_has_every_rate_and_the_limit() {
    let (run, analysis) = searched();
    let figures = studies::figures(&run, &analysis);
    let of = |stem: &str| figures.iter().find(|figure| figure.file_stem.contains(stem));
    let figure = of("search-p99-2ms").expect("a figure of the limit");
    assert!(figure.svg.contains("p99 &lt; 2 ms"), "the limit has a label");
    let tried: usize = found(&run, &analysis)
        .iter()
        .filter(|found| found.goal != iolens_model::slo::Goal::Knee)
        .flat_map(|found| &found.answers)
        .map(|answer| answer.levels.len())
        .sum();
    let of_parts = figures.iter().filter(|figure| figure.file_stem.contains("search-p99-2ms"));
    assert!(of_parts.map(|figure| figure.table.rows.len()).sum::<usize>() >= tried);
    assert!(of("search-knee").is_some());
    let page = html::page(&run, &analysis);
    assert!(page.contains("Highest rates") && page.contains("Every rate that was tried"));
}

#[test]
fn programs_read_phases_and_answers() {
    let (run, analysis) = searched();
    let value: serde_json::Value =
        serde_json::from_str(&json::run(&run, &analysis)).expect("our own JSON");
    let answers = value["searches"].as_array().expect("answers");
    let of = |id: &str| answers.iter().find(|a| a["arm"]["label"] == id).expect("an answer");
    let ended = ["epoll_lt", "poll", "uring", "prefork"].map(|id| of(id)["ended"].clone());
    assert_eq!(ended, ["found", "found", "at_least", "cut_short"]);
    let kept = of("epoll_lt")["kept_per_s"].as_f64().expect("a rate");
    assert!((kept / CLOSED - 1.05f64.powi(-5)).abs() < 1e-9, "{kept}");
    assert!(of("uring")["why"].as_str().is_some_and(|why| why.starts_with("client-limited: ")));
    let rows = csv::all(Rows::Phases(from_ref(&run)));
    assert_eq!(rows.lines().count(), 1 + run.searches.len());
    insta::assert_snapshot!("columns_of_phases", rows.lines().next().unwrap_or_default());
    let phases: serde_json::Value =
        serde_json::from_str(&json::all(Rows::Phases(from_ref(&run)))).expect("our own JSON");
    assert!(phases["phases"][0]["latency_histogram"]["buckets"].is_array());
}
