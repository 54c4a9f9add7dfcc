//! Known answers, and what holds for any two runs.

use iolens_model::arm::Role;
use iolens_model::host::Fact;
use iolens_model::outcome::Status;
use iolens_model::reading::Reading;
use iolens_model::run::Run;
use iolens_model::server::LoadLevel;
use iolens_model::units::Bytes;
use proptest::prelude::*;

use super::{Absolute, ArmChange, Comparison, Refused, Side, compare};
use crate::analyse;
use crate::estimate::{Interval, Verdict};
use crate::fixture::servers::{self, Served, served};
use crate::fixture::{self, rounds, slices_of};
use crate::quantity::Quantity;
use crate::remark::{Unusable, VerdictReason};
use crate::simulation::Normal;
use crate::student::quantile;

/// Sizes of every run.
const SIZES: [u64; 2] = [1024, 4096];

/// A run of twelve passes whose arms take what `ns` says of a label and a size, with trials
/// that stray by half a percent each, and by five together.
fn run(id: &str, seed: u64, ns: impl Fn(&str, u64) -> f64) -> Run {
    let normal = &mut Normal::seeded(seed);
    let plan = fixture::sized(&["base", "arm", "other"], &SIZES);
    let mut run = fixture::run_of(plan, 12, |_, _, cell| {
        let mood = (0.05 * normal.draw()).exp();
        ["base", "arm", "other", "base (A/A)"].map(|label| {
            let own = (0.005 * normal.draw()).exp();
            let primitive = label.trim_end_matches(" (A/A)");
            rounds(label, &[ns(primitive, cell.size.0) * mood * own; 2])
        })
    });
    run.header.id = id.to_owned();
    run
}

/// What every arm takes where nothing is changed, ns.
fn usual(label: &str, size: u64) -> f64 {
    let scale = size as f64 / 1024.0;
    match label {
        "base" => 1000.0 * scale,
        "arm" => 800.0 * scale,
        _ => 1300.0 * scale,
    }
}

/// The same with one arm that takes this much more.
fn handicapped(label: &'static str, factor: f64) -> impl Fn(&str, u64) -> f64 {
    move |one, size| usual(one, size) * if one == label { factor } else { 1.0 }
}

fn compared(a: &Run, b: &Run, absolute: Absolute) -> Result<Comparison, Refused> {
    let analyses = [a, b].map(analyse);
    let asked: [(String, String); 0] = [];
    let of = |i: usize, run| Side { header: run, analysis: &analyses[i], asked: &asked };
    compare(&of(0, &a.header), &of(1, &b.header), absolute)
}

fn arm<'a>(comparison: &'a Comparison, size: u64, label: &str) -> &'a ArmChange {
    let cell = comparison.cells.iter().find(|cell| cell.cell.size.0 == size).unwrap();
    cell.arms.iter().find(|arm| arm.arm.label == label).unwrap()
}

fn verdict(comparison: &Comparison, size: u64, label: &str) -> Verdict {
    arm(comparison, size, label).change.as_ref().unwrap().verdict
}

#[test]
fn a_run_against_itself_is_equivalent_with_a_ratio_of_exactly_one() {
    let run = run("aaaaaaaa", 1, usual);
    let comparison = compared(&run, &run, Absolute::Judged).unwrap();
    let arms = || comparison.cells.iter().flat_map(|cell| &cell.arms);
    assert_eq!(arms().count(), 8);
    for change in arms().filter_map(|arm| arm.change.as_ref()) {
        assert_eq!((change.ratio, change.verdict), (Some(1.0), Verdict::Equivalent), "{change:?}");
    }
    assert!(arms().all(|arm| arm.own.as_ref().unwrap().ratio == 1.0));
    assert_eq!((comparison.slower(), comparison.is_usable()), (0, true));
    assert!(comparison.inputs.is_empty() && comparison.missing.is_empty());
    assert!(comparison.warnings[0].starts_with("Both are run aaaaaaaa"));
    // However wide its own intervals are: the trials are the same.
    let mut wide = self::run("cccccccc", 3, usual);
    for (i, trial) in wide.trials.iter_mut().enumerate() {
        for slice in trial.slices.iter_mut().filter(|slice| slice.arm == i % 4) {
            slice.tx.time_ns *= 2;
        }
    }
    let again = compared(&wide, &wide, Absolute::Judged).unwrap();
    assert!(again.judged().all(|change| change.verdict == Verdict::Equivalent), "{again:#?}");
    // Two arms and a copy in two cells, and three arms by themselves.
    assert_eq!(comparison.contrasts, 12);
}

#[test]
fn a_handicap_of_one_arm_is_found_in_that_arm_alone() {
    let a = run("aaaaaaaa", 1, usual);
    let b = run("bbbbbbbb", 2, handicapped("arm", 1.2));
    let comparison = compared(&a, &b, Absolute::Shown).unwrap();
    for size in SIZES {
        let change = arm(&comparison, size, "arm").change.as_ref().unwrap();
        assert_eq!(change.verdict, Verdict::Slower);
        assert!(change.simultaneous.unwrap().contains(1.0 / 1.2), "{change:?}");
        assert_eq!((change.trials_a, change.trials_b), (12, 12));
        assert_eq!(verdict(&comparison, size, "other"), Verdict::Equivalent);
        assert_eq!(verdict(&comparison, size, "base (A/A)"), Verdict::Equivalent);
        let cell = comparison.cells.iter().find(|cell| cell.cell.size.0 == size).unwrap();
        assert!(cell.baseline_moved.is_empty());
    }
    assert_eq!(comparison.slower(), 2);
    assert_eq!(comparison.contrasts, 6);
}

/// Every arm is then slower against it, and by itself it is the one that moved.
#[test]
fn a_faster_baseline_is_told_as_the_baselines() {
    let a = run("aaaaaaaa", 1, usual);
    let b = run("bbbbbbbb", 2, handicapped("base", 1.0 / 1.25));
    let comparison = compared(&a, &b, Absolute::Shown).unwrap();
    for cell in &comparison.cells {
        let moved = cell.baseline_moved[0];
        assert_eq!((moved.quantity, moved.arms), (Quantity::Time, 2));
        assert!((moved.ratio / 1.25 - 1.0).abs() < 0.1, "{moved:?}");
    }
    assert_eq!(comparison.slower(), 4);
    assert!(compared(&b, &a, Absolute::Shown).unwrap().cells[0].baseline_moved[0].ratio < 0.9);
}

/// One that began while the other was under way, of the same plan on the same boot.
#[test]
fn trials_that_were_measured_in_turn_are_told_from_those_that_were_not() {
    let end = |finished_unix_ns| {
        let stopped_by = iolens_model::run::StoppedBy::Passes;
        Some(iolens_model::run::RunEnd {
            finished_unix_ns,
            stopped_by,
            unmet: Vec::new(),
            paused_ns: 0,
        })
    };
    let during = |id: &str, seed, from: u64, to: u64| {
        let mut run = run(id, seed, usual);
        (run.header.started_unix_ns, run.header.end) = (from, end(to));
        run
    };
    let a = during("aaaaaaaa", 1, 1000, 2000);
    let interleaved = |b: &Run| compared(&a, b, Absolute::Shown).unwrap().interleaved;
    let b = during("bbbbbbbb", 2, 1001, 1999);
    let judged = compared(&a, &b, Absolute::Shown).unwrap();
    assert!(judged.interleaved);
    assert!(arm(&judged, 1024, "base").own.as_ref().unwrap().judged.is_some());
    assert!(!interleaved(&during("bbbbbbbb", 2, 2000, 3000)), "one after the other");
    let mut other_order = b.clone();
    other_order.header.plan.seed += 1;
    assert!(!interleaved(&other_order));
    let mut other_boot = b.clone();
    let boot = Reading::Exact("another".into());
    let (group, name) = ("kernel".to_owned(), "boot id".to_owned());
    other_boot.header.host.facts.push(Fact { group, name, value: boot });
    assert!(!interleaved(&other_boot));
    let mut killed = b;
    killed.header.end = None;
    assert!(!interleaved(&killed));
    assert!(!interleaved(&a), "a run takes no turns with itself");
}

/// A machine that is twice as slow is no news about any arm.
#[test]
fn what_slows_everything_down_cancels() {
    let a = run("aaaaaaaa", 1, usual);
    let b = run("bbbbbbbb", 2, |label, size| 2.0 * usual(label, size));
    let shown = compared(&a, &b, Absolute::Shown).unwrap();
    assert!(shown.judged().all(|change| change.verdict == Verdict::Equivalent));
    assert!(shown.cells.iter().all(|cell| cell.baseline_moved.is_empty()));
    let own = arm(&shown, 1024, "base").own.as_ref().unwrap();
    assert!((own.ratio - 0.5).abs() < 0.05 && own.judged.is_none());
    // By itself each arm is slower, and says so where that is asked for.
    let judged = compared(&a, &b, Absolute::Judged).unwrap();
    let own = |label| arm(&judged, 1024, label).own.as_ref().unwrap().judged.as_ref();
    assert!(own("base").unwrap().simultaneous.unwrap().contains(0.5));
    assert_eq!(own("base").unwrap().verdict, Verdict::Slower);
    assert!(own("base (A/A)").is_none());
    assert_eq!(judged.slower(), 6);
}

#[test]
fn what_one_run_cannot_use_is_invalid_with_the_run_that_it_is() {
    let a = run("aaaaaaaa", 1, usual);
    let mut b = run("bbbbbbbb", 2, usual);
    for trial in &mut b.trials {
        for arm in trial.arms.iter_mut().filter(|arm| arm.arm.label == "arm") {
            (arm.status, arm.reason) = (Status::Skipped, Some("no such thing here".to_owned()));
        }
    }
    let comparison = compared(&a, &b, Absolute::Shown).unwrap();
    let change = arm(&comparison, 1024, "arm").change.as_ref().unwrap();
    assert_eq!((change.verdict, change.ratio), (Verdict::Invalid, None));
    let VerdictReason::InRuns { a: None, b: Some(why) } = &change.reason else {
        panic!("{:?}", change.reason)
    };
    let (status, reason) = (Status::Skipped, "no such thing here".to_owned());
    assert_eq!(**why, VerdictReason::Unusable(Unusable { status, check: None, reason }));
    assert_eq!(verdict(&comparison, 1024, "other"), Verdict::Equivalent);
    // It counts among the changes all the same: their number is fixed before the data.
    assert_eq!(comparison.contrasts, 6);
}

/// Halfway the baseline slows down, in both runs alike.
#[test]
fn trials_that_resemble_their_neighbours_leave_changes_less_freedom() {
    let mut a = run("aaaaaaaa", 1, usual);
    for trial in a.trials.iter_mut().filter(|trial| trial.pass > 6) {
        for slice in trial.slices.iter_mut().filter(|slice| slice.arm == 0) {
            slice.tx.time_ns += slice.tx.time_ns / 10;
        }
    }
    let mut b = a.clone();
    b.header.id = "bbbbbbbb".to_owned();
    let found = analyse(&a).neighbours.unwrap();
    assert!(found.matters && found.inflation > 2.0, "{found:?}");
    let comparison = compared(&a, &b, Absolute::Judged).unwrap();
    let freedom = 2.0 * (12.0 / found.inflation - 1.0);
    let t = |claims: u32| quantile(freedom, 1.0 - 0.025 / f64::from(claims)).unwrap();
    let half = |interval: Option<Interval>| interval.unwrap().half_width().ln_1p();
    for change in comparison.judged() {
        let wider = half(change.simultaneous) / half(change.pointwise);
        let expect = t(comparison.contrasts) / t(1);
        assert!((wider / expect - 1.0).abs() < 1e-6, "{wider}, not {expect}: {change:?}");
    }
}

/// Its own trials are refused, so those of the arms are not, and neither are those of its copy.
#[test]
fn what_stands_against_a_refused_baseline_alone_is_invalid() {
    let alone = |mut run: Run| {
        run.header.plan.isolate = true;
        run.trials = run.trials.iter().flat_map(fixture::alone).collect();
        run
    };
    let a = alone(run("aaaaaaaa", 1, usual));
    let mut b = alone(run("bbbbbbbb", 2, usual));
    let is_usable = |b: &Run| compared(&a, b, Absolute::Shown).unwrap().is_usable();
    assert!(is_usable(&b));
    for trial in b.trials.iter_mut().filter(|trial| trial.pass <= 8) {
        for base in trial.arms.iter_mut().filter(|arm| arm.arm.role == Role::Baseline) {
            (base.status, base.reason) = (Status::Invalid, Some("refused".to_owned()));
        }
    }
    assert!(!is_usable(&b));
    let comparison = compared(&a, &b, Absolute::Shown).unwrap();
    for label in ["arm", "other", "base (A/A)"] {
        let change = arm(&comparison, 1024, label).change.as_ref().unwrap();
        assert_eq!((change.verdict, change.trials_b), (Verdict::Invalid, 4), "{label}");
        let VerdictReason::InRuns { a: None, b: Some(why) } = &change.reason else {
            panic!("{:?}", change.reason)
        };
        assert!(matches!(**why, VerdictReason::BaselineUnusable(_)), "{label}: {why:?}");
    }
}

/// A copy that is no copy in one run spoils its changes.
#[test]
fn a_copy_of_the_baseline_that_changes_is_an_alarm() {
    let a = run("aaaaaaaa", 1, usual);
    let mut b = run("bbbbbbbb", 2, usual);
    for slice in slices_of(&mut b, 3) {
        slice.tx.time_ns += slice.tx.time_ns / 5;
    }
    let comparison = compared(&a, &b, Absolute::Shown).unwrap();
    assert_eq!(verdict(&comparison, 1024, "base (A/A)"), Verdict::Invalid);
    assert_eq!((comparison.slower(), comparison.self_check.judged), (0, 2));
    let warnings = &comparison.warnings;
    assert!(warnings[0].starts_with("Run bbbbbbbb is not trustworthy"), "{warnings:?}");
    assert!(warnings[1].starts_with("This comparison is not trustworthy"), "{warnings:?}");
    // These runs of the test have no end.
    let cut = "has not ended, or was killed, after 12 complete passes";
    assert!(warnings[2].contains(cut) && warnings[3].contains(cut), "{warnings:?}");
}

#[test]
fn cells_and_arms_of_one_run_are_listed() {
    let a = run("aaaaaaaa", 1, usual);
    let mut b = run("bbbbbbbb", 2, usual);
    b.header.plan.sizes[0] = Bytes(512);
    for trial in b.trials.iter_mut().filter(|trial| trial.cell.size.0 == 1024) {
        trial.cell.size = Bytes(512);
    }
    b.header.plan.primitives[2] = "third".to_owned();
    for arm in b.trials.iter_mut().flat_map(|trial| &mut trial.arms) {
        if arm.arm.label == "other" {
            (arm.arm.label, arm.arm.primitive) = ("third".to_owned(), "third".to_owned());
        }
    }
    let comparison = compared(&a, &b, Absolute::Shown).unwrap();
    let missing: Vec<(bool, Option<u64>, Option<&str>)> = comparison
        .missing
        .iter()
        .map(|m| (m.is_b, m.cell.as_ref().map(|cell| cell.size.0), m.arm.as_deref()))
        .collect();
    let expect = [
        (false, Some(1024), None),
        (false, None, Some("other")),
        (true, Some(512), None),
        (true, None, Some("third")),
    ];
    assert_eq!(missing, expect);
    assert_eq!(comparison.cells.len(), 1);
}

#[test]
fn runs_with_nothing_in_common_are_refused_with_advice() {
    let a = run("aaaaaaaa", 1, usual);
    let check = |b: &Run, part: &str| {
        let refused = compared(&a, b, Absolute::Shown).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
        assert!(refused.contains("run aaaaaaaa: ") && refused.lines().count() == 4, "{refused}");
    };
    check(&fixture::run(servers::plan(&[LoadLevel::Closed])), "different studies");
    let mut b = a.clone();
    b.header.plan.baseline = "arm".to_owned();
    check(&b, "baselines differ");
    let mut b = a.clone();
    b.header.plan.sizes = vec![Bytes(7)];
    b.trials.clear();
    check(&b, "no setting in common");
    let mut b = a.clone();
    b.header.plan.primitives = vec!["base".to_owned(), "third".to_owned()];
    b.trials.clear();
    check(&b, "no arm in common");
}

#[test]
fn inputs_that_differ_are_found_and_lists_say_only_where() {
    let fact = |name: &str, value: &str| Fact {
        group: "cpu".to_owned(),
        name: name.to_owned(),
        value: Reading::Exact(value.to_owned()),
    };
    let mut a = run("aaaaaaaa", 1, usual);
    let mut b = run("bbbbbbbb", 2, usual);
    a.header.host.facts = vec![
        fact("model", "one"),
        fact("mitigations", "mds: off; spectre_v2: IBRS"),
        fact("boost", "1"),
    ];
    b.header.host.facts =
        vec![fact("model", "one"), fact("mitigations", "mds: off; spectre_v2: Retpolines")];
    b.header.host.cpus.push(2);
    b.header.plan.delta = 0.05;
    let asked = |delta: &str, seed: &str| {
        [("delta", delta), ("seed", seed)].map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    let (asked_a, asked_b) = (asked("3%", "1"), asked("5%", "2"));
    let analyses = [&a, &b].map(analyse);
    let side_a = Side { header: &a.header, analysis: &analyses[0], asked: &asked_a };
    let side_b = Side { header: &b.header, analysis: &analyses[1], asked: &asked_b };
    let comparison = compare(&side_a, &side_b, Absolute::Shown).unwrap();
    let found: Vec<[&str; 3]> = comparison
        .inputs
        .iter()
        .map(|i| [&*i.name, i.a.as_deref().unwrap_or("–"), i.b.as_deref().unwrap_or("–")])
        .collect();
    let expect = [
        ["mitigations", "spectre_v2: IBRS", "spectre_v2: Retpolines"],
        ["boost", "1", "–"],
        ["number usable by iolens", "2", "3"],
        ["delta", "3%", "5%"],
    ];
    assert_eq!(found, expect);
    // Neither run promised to tell less than 5 % apart.
    assert_eq!(comparison.delta, 0.05);
}

/// A closed loop of servers is compared by time and by what a request costs: here one
/// server answers as fast, and takes a fifth more CPU time for it.
#[test]
fn servers_are_compared_by_what_a_request_costs_too() {
    let served = |cpu: f64| {
        let mut run = fixture::run(servers::plan(&[LoadLevel::Closed]));
        let cell = run.header.plan.cells().remove(0);
        for pass in 1..=12u32 {
            let stray = if pass % 2 == 0 { 1.002 } else { 0.998 };
            let mut arm = served("arm", 9000.0 * stray);
            // Room for a fifth more within the time of its one processor.
            arm.cpu_ns *= 0.8 * cpu;
            let all = [served("base", 10_000.0), arm, served("base (A/A)", 10_000.0 * stray)];
            run.trials.push(servers::trial(pass, &cell, &all));
        }
        run
    };
    let comparison = compared(&served(1.0), &served(1.2), Absolute::Shown).unwrap();
    let of = |quantity: Quantity| {
        let mut arms = comparison.cells[0].arms.iter();
        let found = arms.find(|arm| arm.arm.label == "arm" && arm.quantity == quantity);
        found.and_then(|arm| arm.change.as_ref()).unwrap()
    };
    assert_eq!(of(Quantity::Time).verdict, Verdict::Equivalent);
    assert_eq!(of(Quantity::ServerCpu).verdict, Verdict::Slower);
    assert!((of(Quantity::ServerCpu).ratio.unwrap() * 1.2 - 1.0).abs() < 1e-3);
    assert_eq!(comparison.contrasts, 4);
}

/// Each run finds its own rate, and a request may cost another time at another rate.
#[test]
fn rates_that_differ_are_inputs() {
    let at = |request_ns: f64| {
        let one = |label| Served { cpu_ns: 5000.0, ..served(label, request_ns) };
        let (base, arm) = (one("base"), one("arm"));
        servers::passes(LoadLevel::Percent(50), 12, base, arm, |_, _| {})
    };
    let comparison = compared(&at(10_000.0), &at(8000.0), Absolute::Shown).unwrap();
    let input = &comparison.inputs[0];
    assert_eq!(input.name, "echo, 16 connections, 50% of the slowest's rate");
    assert_eq!((input.a.as_deref(), input.b.as_deref()), (Some("100000/s"), Some("125000/s")));
    assert_eq!(comparison.cells[0].arms[1].quantity, Quantity::ServerCpu);
    assert!(comparison.judged().all(|change| change.verdict == Verdict::Equivalent));
}

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).map_or(a.is_none() && b.is_none(), |(a, b)| (a * b - 1.0).abs() < 1e-9)
}

fn mirrored(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Faster => Verdict::Slower,
        Verdict::Slower => Verdict::Faster,
        same => same,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    })]

    /// Which of two runs comes first turns every ratio over and decides nothing.
    #[test]
    fn swapping_the_runs_mirrors_every_change(
        factors in [0.8..1.25f64, 0.8..1.25, 0.8..1.25],
        seeds in (0..1000u64, 0..1000u64),
        dropped in 0..10usize,
    ) {
        let a = run("aaaaaaaa", seeds.0, usual);
        let mut b = run("bbbbbbbb", seeds.1, |label, size| {
            let which = ["base", "arm", "other"].iter().position(|one| *one == label).unwrap();
            usual(label, size) * factors[which]
        });
        b.trials.truncate(b.trials.len() - 2 * dropped);
        let there = compared(&a, &b, Absolute::Judged).unwrap();
        let back = compared(&b, &a, Absolute::Judged).unwrap();
        prop_assert_eq!(there.contrasts, back.contrasts);
        let changes = |comparison: &Comparison| -> Vec<super::Change> {
            let arms = comparison.cells.iter().flat_map(|cell| cell.arms.clone());
            arms.flat_map(|arm| {
                let own = arm.own.and_then(|own| own.judged);
                arm.change.into_iter().chain(own)
            })
            .collect()
        };
        for (one, other) in changes(&there).iter().zip(&changes(&back)) {
            prop_assert!(near(one.ratio, other.ratio));
            prop_assert_eq!(one.verdict, mirrored(other.verdict));
            let low = one.simultaneous.map(|interval| interval.low);
            prop_assert!(near(low, other.simultaneous.map(|interval| interval.high)));
            prop_assert_eq!(one.trials_needed, other.trials_needed);
            prop_assert_eq!((one.trials_a, one.trials_b), (other.trials_b, other.trials_a));
        }
    }
}
