//! Runs of servers with known answers.

use iolens_model::arm::Role;
use iolens_model::outcome::{ArmFact, Status, TrialOutcome};
use iolens_model::plan::Axes;
use iolens_model::run::Run;
use iolens_model::server::{LoadLevel, MAKES, MAKES_NOTHING};
use iolens_model::units::Nanos;

use crate::analyse;
use crate::analysis::{EndMetric, Kind, Quantity, Saturated};
use crate::estimate::Verdict;
use crate::fixture::servers::{self, Served, passes, served};
use crate::fixture::{self, arm, contrast};
use crate::remark::VerdictReason;
use crate::remark::{Limited, Remark, RemarkKind};
use crate::unmet;

const OPEN: LoadLevel = LoadLevel::Percent(50);
const CLOSED: LoadLevel = LoadLevel::Closed;

fn near(value: f64, expect: f64) {
    assert!((value / expect - 1.0).abs() < 1e-3, "{value}, expected {expect}");
}

/// 10 µs of the clock for each request, and this much of the server's CPU.
fn base(cpu_ns: f64) -> Served {
    Served { cpu_ns, ..served("base", 10_000.0) }
}

fn other(request_ns: f64, cpu_ns: f64) -> Served {
    Served { cpu_ns, ..served("arm", request_ns) }
}

fn as_is(_: u32, _: &mut TrialOutcome) {}

/// Makes the client of an arm work for this share of its time.
fn busy(trial: &mut TrialOutcome, label: &str, percent: u64) {
    let arm = trial.arms.iter_mut().find(|arm| arm.arm.label == label).expect("an arm");
    for slice in &mut arm.server.as_mut().expect("a server").offered {
        slice.threads[0].cpu = Nanos(slice.window.0 / 100 * percent);
    }
}

/// The schedule gives every request the same time; the CPU that it costs differs by 1.25.
#[test]
fn at_a_rate_the_cpu_time_of_the_server_is_compared() {
    let run = passes(OPEN, 12, base(5000.0), other(10_000.0, 4000.0), as_is);
    let analysis = analyse(&run);
    assert_eq!(analysis.cells[0].compared, Quantity::ServerCpu);
    let contrast = contrast(&analysis, "arm");
    near(contrast.ratio, 1.25);
    near(contrast.total_ratio.value, 1.25);
    assert_eq!((contrast.verdict, contrast.n), (Verdict::Faster, 12));
    assert_eq!(arm(&analysis, "arm").cpu_contrast.as_ref(), Some(contrast));
    // The noise floor is that of CPU time too: times per request do not stray at all.
    assert!(analysis.self_check.floor_widest.is_some_and(|floor| floor > 1e-4));
}

#[test]
fn at_a_rate_runs_stop_by_the_cpu_time() {
    let run = passes(OPEN, 4, base(5000.0), other(10_000.0, 4000.0), |pass, trial| {
        for slice in trial.slices.iter_mut().filter(|slice| slice.arm == 1) {
            let cpu_ns = slice.tx.task_clock_ns.as_mut().unwrap();
            *cpu_ns += *cpu_ns / 2 * u64::from(pass % 2);
        }
    });
    let analysis = analyse(&run);
    let lines = unmet(&analysis, &run.header.plan);
    // sd of ln is ln(1.5)/√3, half-width exp(3.1824·sd/2) − 1 = 45.1 %.
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with("arm: ±45.1% > 3%"), "{lines:?}");
}

#[test]
fn a_closed_loop_compares_times_and_says_what_they_cost() {
    let run = passes(CLOSED, 12, base(9000.0), other(8000.0, 7500.0), as_is);
    let analysis = analyse(&run);
    assert_eq!(analysis.cells[0].compared, Quantity::Time);
    let found = arm(&analysis, "arm");
    near(found.contrast.as_ref().unwrap().ratio, 1.25);
    near(found.cpu_contrast.as_ref().unwrap().ratio, 1.2);
    assert_eq!(found.cpu_contrast.as_ref().unwrap().verdict, Verdict::Faster);
    let server = found.server.as_ref().unwrap();
    near(server.requests_per_s.value, 125_000.0);
    assert_eq!(server.offered_per_s, None);
    near(server.server.value(EndMetric::TaskClock).unwrap().value, 7500.0);
    near(server.client.value(EndMetric::TaskClock).unwrap().value, 4000.0);
    near(server.server_busy.unwrap().value, 0.9375);
    near(server.client_busy.unwrap().value, 0.5);
    assert_eq!(server.saturated, Some(Saturated::Server));
    assert_eq!(server.outcomes.ok, 12 * 40_000);
    assert!(server.from_sent.as_ref().unwrap().p99_ns.is_some());
    // Two voluntary ones in a slice of 10 000 requests, at the server alone.
    near(server.server.value(EndMetric::ContextSwitches).unwrap().value, 2.0 / 10_000.0);
    let check = arm(&analysis, "base (A/A)").cpu_contrast.as_ref().unwrap();
    assert_eq!(check.verdict, Verdict::Equivalent);
}

/// Polling is four fifths of the client's CPU time here: 4000 ns for each request.
#[test]
fn what_a_client_polls_is_no_cost_of_a_request() {
    let polls = |_: u32, trial: &mut TrialOutcome| {
        let servers = trial.arms.iter_mut().filter_map(|arm| arm.server.as_mut());
        let slices = servers.flat_map(|server| &mut server.offered);
        for thread in slices.flat_map(|slice| &mut slice.threads) {
            thread.spinning.0 = thread.cpu.0 / 5 * 4;
        }
    };
    let run = passes(CLOSED, 12, base(9000.0), other(8000.0, 7500.0), polls);
    let analysis = analyse(&run);
    let server = arm(&analysis, "arm").server.as_ref().unwrap();
    near(server.client.value(EndMetric::TaskClock).unwrap().value, 800.0);
    near(server.client.value(EndMetric::CpusUtilized).unwrap().value, 0.5);
    near(server.server.value(EndMetric::TaskClock).unwrap().value, 7500.0);
}

#[test]
fn where_the_client_has_no_time_left_times_are_not_ranked_and_costs_are() {
    let limited = |label: &'static str, trials: u32| {
        let run = passes(CLOSED, 12, base(9000.0), other(8000.0, 7500.0), |pass, trial| {
            if pass <= trials {
                busy(trial, label, 95);
            }
        });
        analyse(&run)
    };
    for label in ["arm", "base"] {
        let analysis = limited(label, 7);
        let found = arm(&analysis, "arm");
        let contrast = found.contrast.as_ref().unwrap();
        assert_eq!((contrast.verdict, found.status), (Verdict::Unranked, Status::Ok), "{label}");
        let VerdictReason::Limited { limited, of_baseline } = contrast.reason else {
            panic!("{:?}", contrast.reason)
        };
        assert!(matches!(limited, Limited::ClientBusy { .. }), "{limited:?}");
        assert_eq!(of_baseline, label == "base");
        assert_eq!(found.cpu_contrast.as_ref().unwrap().verdict, Verdict::Faster);
        let server = arm(&analysis, label).server.as_ref().unwrap();
        let busy = Limited::ClientBusy { busy_share: 0.95, trials: 7, of: 12 };
        assert_eq!(server.limits.client_busy, Some(busy));
    }
    // In half of the trials it is not the rule, and only remarked on.
    let analysis = limited("arm", 6);
    assert_eq!(contrast(&analysis, "arm").verdict, Verdict::Faster);
    let remarks = &analysis.cells[0].remarks;
    let is_busy = |remark: &Remark| {
        remark.arm.as_deref() == Some("arm")
            && matches!(remark.kind, RemarkKind::Limited(Limited::ClientBusy { .. }))
    };
    assert!(remarks.iter().any(is_busy), "{remarks:?}");
}

#[test]
fn a_client_that_is_late_spoils_no_cost_and_a_rate_that_is_not_kept_does() {
    let late = passes(OPEN, 12, base(5000.0), other(10_000.0, 4000.0), |_, trial| {
        let arm = &mut trial.arms[1];
        arm.server.as_mut().unwrap().lag.buckets = vec![(1_400_000_000, 40_000)];
        arm.latency.as_mut().unwrap().buckets = vec![(1_400_000_000, 40_000)];
    });
    let analysis = analyse(&late);
    let found = arm(&analysis, "arm");
    assert_eq!(found.contrast.as_ref().unwrap().verdict, Verdict::Faster);
    let limits = &found.server.as_ref().unwrap().limits;
    let late = limits.client_late.unwrap();
    assert!(matches!(late, Limited::ClientLate { late_p99_ns: 1_400_000_000.0, .. }), "{late:?}");
    let behind = passes(OPEN, 12, base(5000.0), other(10_000.0, 4000.0), |_, trial| {
        let arm = trial.arms[1].server.as_mut().unwrap();
        arm.offered.iter_mut().for_each(|slice| slice.replies_in_window = 9000);
    });
    let contrast = arm(&analyse(&behind), "arm").contrast.clone().unwrap();
    assert_eq!(contrast.verdict, Verdict::Unranked);
    let VerdictReason::Limited { limited: Limited::RateNotKept { answered_share, .. }, .. } =
        contrast.reason
    else {
        panic!("{:?}", contrast.reason)
    };
    assert!((answered_share - 0.9).abs() < 1e-9);
}

/// Two arms that cannot stand ready together, each with a baseline beside it: the machine
/// is slower by half in the second trial of each pass.
fn apart(load: LoadLevel, second_rate: f64) -> Run {
    let mut run = fixture::run(servers::plan(&[load]));
    let plan = &mut run.header.plan;
    plan.primitives.push("third".to_owned());
    let cell = plan.cells().remove(0);
    for pass in 1..=4u32 {
        let stray = 1.0 + f64::from(pass % 2) / 1000.0;
        for (position, label, cpu_ns, mood) in
            [(0, "arm", 4000.0 * stray, 1.0), (1, "third", 3200.0, 1.5)]
        {
            let one =
                |label, cpu_ns| Served { cpu_ns: cpu_ns * mood, ..served(label, 10_000.0 * mood) };
            let arms = [one("base", 5000.0), one(label, cpu_ns)];
            let mut trial = servers::trial(pass, &cell, &arms);
            trial.position = position;
            for arm in &mut trial.arms {
                let server = arm.server.as_mut().unwrap();
                server.rate = server.rate.map(|_| if position == 0 { 1e5 } else { second_rate });
            }
            run.trials.push(trial);
        }
    }
    run
}

#[test]
fn servers_of_several_trials_are_compared_through_the_baseline() {
    let pairs = |run: &Run| analyse(run).cells.remove(0).cpu_pairs;
    for run in [apart(CLOSED, 0.0), apart(OPEN, 1e5)] {
        let found = pairs(&run);
        assert_eq!((found.len(), found[0].n), (1, 4));
        // `third` costs 3200 ns where `arm` costs 4000, in moods that do not matter.
        near(found[0].ratio, 0.8);
        assert!(found[0].simultaneous.is_some_and(|interval| interval.contains(0.8)));
    }
    assert!(pairs(&apart(OPEN, 5e4)).is_empty(), "another rate is another cost");
}

/// The same servers, each in a trial of its own, the second baseline at the rate of another
/// kind than its own.
fn alone() -> Run {
    let mut run = apart(OPEN, 5e4);
    let Axes::Server(axes) = &mut run.header.plan.axes else { panic!("a plan of servers") };
    axes.alone_services = axes.services.clone();
    run.trials = run.trials.iter().flat_map(fixture::alone).collect();
    for trial in &mut run.trials {
        let is_second_baseline = trial.position == 2;
        trial.arms[0].server.as_mut().unwrap().at_others_rate = is_second_baseline;
    }
    run
}

/// Where the only model of a kind is left out, what is left in its trial is the baseline at its
/// own rate.
#[test]
fn a_trial_is_about_the_kind_whose_rate_it_was_offered() {
    let mut run = apart(OPEN, 5e4);
    for trial in &mut run.trials {
        for (index, arm) in trial.arms.iter_mut().enumerate() {
            let makes = if arm.arm.label == "third" { "a process" } else { MAKES_NOTHING };
            let value = makes.to_owned();
            let fact = ArmFact { arm: index, name: MAKES.to_owned(), value };
            trial.tx.as_mut().unwrap().arm_facts.push(fact);
            arm.server.as_mut().unwrap().at_others_rate = trial.position == 1 && index == 0;
        }
        if trial.position == 1 && trial.pass > 1 {
            let left_out = &mut trial.arms[1];
            (left_out.status, left_out.server) = (Status::Skipped, None);
            let baseline = trial.arms[0].server.as_mut().unwrap();
            (baseline.rate, baseline.at_others_rate) = (Some(1e5), false);
            trial.slices.retain(|slice| slice.arm == 0);
        }
    }
    let analysis = analyse(&run);
    let cell = &analysis.cells[0].cell;
    let rates = [Kind::Shared, Kind::Alone].map(|kind| analysis.kinds.offered(cell, Some(kind)));
    assert_eq!(rates, [Some((1e5, 1e5)), Some((5e4, 5e4))]);
}

#[test]
fn servers_measured_alone_meet_the_baseline_of_their_own_rate() {
    let analysis = analyse(&alone());
    assert_eq!((analysis.passes, analysis.cells[0].trials_used), (4, 16));
    for (label, ratio) in [("arm", 1.25), ("third", 1.5625)] {
        let found = contrast(&analysis, label);
        assert!((found.ratio / ratio - 1.0).abs() < 2e-3, "{label}: {}", found.ratio);
        assert_eq!((found.n, found.verdict), (4, Verdict::Faster), "{label}");
    }
    // What it cost at the rate of the others is no figure of its own.
    let base = arm(&analysis, "base").server.as_ref().unwrap();
    let cpu = base.server.get(EndMetric::TaskClock).unwrap();
    near(cpu.value.value, 5000.0);
    assert_eq!((cpu.value.n, base.rates_asked.as_slice()), (4, &[1e5][..]));
}

#[test]
fn what_bounds_the_baseline_at_one_rate_leaves_those_at_another_ranked() {
    for at_others_rate in [false, true] {
        let mut run = alone();
        let all = run.trials.iter_mut().flat_map(|trial| &mut trial.arms);
        let baselines = all.filter(|arm| arm.arm.role == Role::Baseline);
        let servers = baselines.filter_map(|arm| arm.server.as_mut());
        for server in servers.filter(|server| server.at_others_rate == at_others_rate) {
            server.offered.iter_mut().for_each(|slice| slice.replies_in_window -= 1000);
        }
        let analysis = analyse(&run);
        let is_ranked = |label: &str| {
            let contrast = arm(&analysis, label).cpu_contrast.as_ref().unwrap();
            contrast.verdict != Verdict::Unranked
        };
        assert_eq!(["arm", "third"].map(is_ranked), [at_others_rate, !at_others_rate]);
    }
}
