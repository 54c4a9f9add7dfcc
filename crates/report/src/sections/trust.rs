//! Whether the numbers of a run can be trusted: how small a difference it can see, whether its
//! self-checks are clean, what was not used and not measured, what iolens itself costs, and what
//! the numbers hold for.

use std::collections::BTreeMap;

use iolens_document::table::Table;
use iolens_document::{Fact, Node, Section};
use iolens_model::axes::Topology;
use iolens_model::host::{Calibration, Costs, HostFacts};
use iolens_model::metrics::METRICS;
use iolens_model::plan::Schedule;
use iolens_model::run::Run;
use iolens_model::units::{Nanos, three_digits};
use iolens_stats::analysis::{Analysis, CellAnalysis, Interval, TimeSpent, Told};

use super::{Form, setting};
use crate::groups::grouped;
use crate::number::{self, InWords, NONE, count, nanoseconds, percent};
use crate::results::validity;
use crate::{arms, remarks, words};

pub(crate) fn section(run: &Run, analysis: &Analysis, form: Form, nothing: &str) -> Section {
    let mut nodes = vec![Node::Facts(facts(run, analysis))];
    nodes.extend(folds(run, analysis, form, nothing));
    Section::new("trust", "Can I trust it?", nodes)
}

/// The lines that everybody reads.
fn facts(run: &Run, analysis: &Analysis) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("Noise floor", noise_floor(run, analysis)),
        Fact::new("Self-checks", self_checks(analysis)),
        Fact::new("Trials", trials(run, analysis)),
    ];
    facts.extend(precision(run).map(|said| Fact::new("Precision", said)));
    facts.extend(processes(run, analysis).map(|said| Fact::new("Own processes", said)));
    facts.push(Fact::new("Drift", drift(run, analysis)));
    facts.extend(not_available(run, &analysis.told));
    facts.extend(analysis.warnings.iter().map(|one| Fact::new("Warning", remarks::warning(one))));
    facts.extend(overhead(run).map(|said| Fact::new("Overhead", said)));
    facts.push(Fact::new("Scope", scope(run, analysis)));
    facts
}

/// How far the hidden copy of the baseline strays.
fn noise_floor(run: &Run, analysis: &Analysis) -> String {
    let check = &analysis.self_check;
    let baseline = &run.header.plan.baseline;
    match (check.floor_median, check.floor_widest) {
        (Some(median), Some(_)) if !Interval::is_half_usable(median) => {
            format!("unknown: {} of {baseline}'s hidden copy", number::UNUSABLE)
        }
        (Some(median), Some(widest)) => {
            let coarse = match median > analysis.delta {
                true => format!("; too noisy to show a tie within {}", percent(analysis.delta)),
                false => String::new(),
            };
            format!(
                "{} median, {} worst, from {baseline} against its hidden copy{coarse}",
                number::either_way(median),
                number::either_way(widest)
            )
        }
        _ => format!("unknown: no hidden copy of {baseline} has an interval"),
    }
}

fn self_checks(analysis: &Analysis) -> String {
    let check = &analysis.self_check;
    match check.counted {
        0 => "too few trials: a copy needs five".to_owned(),
        all => format!(
            "{} of {all} judged faster or slower; {} of {all} single intervals exclude a tie \
             (chance allows {})",
            check.judged, check.excluding_one, check.bound
        ),
    }
}

fn trials(run: &Run, analysis: &Analysis) -> String {
    let sum = |of: fn(&CellAnalysis) -> u32| analysis.cells.iter().map(of).sum::<u32>();
    let used = sum(|cell| cell.trials_used);
    let ended = run.header.end.as_ref().map_or("not ended", |end| end.stopped_by.word());
    format!("{used} of {} used; run ended by: {ended}", sum(|cell| cell.trials_started))
}

/// Which comparisons are less precise than the run was asked for.
fn precision(run: &Run) -> Option<String> {
    let end = run.header.end.as_ref()?;
    let widest = end.unmet.first()?;
    let all = end.unmet.len();
    Some(format!("{} wider than asked for; widest: {widest}", count(all, "comparison")))
}

/// Whether results depend on what else runs in the process.
fn processes(run: &Run, analysis: &Analysis) -> Option<String> {
    let pairs = arms::in_cells(analysis).filter_map(|(cell, arm)| {
        let (shared, alone) = arm.contrast.as_ref().zip(arm.isolated.as_ref())?;
        Some((cell, arm, validity::overlap(shared, alone)))
    });
    let pairs: Vec<_> = pairs.collect();
    let known = pairs.iter().filter(|(.., overlaps)| overlaps.is_some()).count();
    let off = pairs.iter().filter(|(.., overlaps)| *overlaps == Some(false));
    let off = off.map(|(cell, arm, _)| format!("{} ({})", arm.arm.label, setting(run, &cell.cell)));
    let off: Vec<String> = off.collect();
    let of = match pairs.len() - known {
        0 => String::new(),
        open => format!("; cannot tell of {open} of {}: no usable interval", pairs.len()),
    };
    match (pairs.len(), known, off.as_slice()) {
        (0, ..) => None,
        (_, 0, _) => Some(format!("cannot tell: {}", number::UNUSABLE)),
        (.., []) => Some(format!("the same result when each method has its own{of}")),
        (.., off) => Some(format!("the result differs for {}{of}", number::list(off))),
    }
}

fn drift(run: &Run, analysis: &Analysis) -> String {
    let Some(drift) = &analysis.drift else {
        return "not tested: needs eight trials over more than a minute".to_owned();
    };
    let hours = match drift.per_hour {
        0.0 => 0.0,
        per_hour => drift.over_run.ln_1p() / per_hour.ln_1p(),
    };
    let over_run = |per_hour: f64| signed((per_hour.ln_1p() * hours).exp_m1());
    let unit = run.header.plan.study().unit();
    let so = match drift.matters {
        true => "; changes are unaffected, as methods take turns, absolute values are not",
        false => "",
    };
    format!(
        "time per {unit} changed by {} over the run ({} to {}){so}",
        signed(drift.over_run),
        over_run(drift.interval.low),
        over_run(drift.interval.high)
    )
}

fn signed(fraction: f64) -> String {
    let sign = if fraction < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(fraction.abs()))
}

/// Metrics without a value, by the reason; those that a flag asks for where it was given, with it.
fn not_available(run: &Run, told: &Told) -> Vec<Fact> {
    let probes = &run.header.plan.probes;
    let flags = [("--tracepoints", probes.tracepoints), ("--software-events", probes.software)];
    let mut by_reason: BTreeMap<String, (String, Vec<&str>)> = BTreeMap::new();
    for (metric, why) in words::not_measured(told) {
        let flag = flags.iter().find(|(flag, _)| is_of(metric, flag));
        if flag.is_some_and(|(_, is_asked)| !is_asked) {
            continue;
        }
        let flag = flag.or_empty(|(flag, _)| format!(" ({flag})"));
        let alike = (format!("{flag}: {why}"), Vec::new());
        by_reason.entry(nameless(&alike.0)).or_insert(alike).1.push(metric);
    }
    let one = |(why, metrics): (String, Vec<&str>)| {
        Fact::new("Not available", format!("{}{why}", metrics.join(", ")))
    };
    by_reason.into_values().map(one).collect()
}

fn is_of(metric: &str, flag: &str) -> bool {
    METRICS.iter().any(|one| one.name == metric && one.source.contains(flag))
}

/// A reason without the first name in it: some differ in a name alone.
fn nameless(why: &str) -> String {
    let mut parts = why.splitn(3, '`');
    let before = parts.next().unwrap_or_default();
    format!("{before}{}", parts.nth(1).unwrap_or_default())
}

/// What iolens costs beside what it measures.
fn overhead(run: &Run) -> Option<String> {
    let calibration = run.header.calibration.as_ref()?;
    let unit = run.header.plan.study().unit();
    // The receipt was timed on this machine; of another one each setting knows its own.
    let here = |topology: &Topology| topology.has_receiver() && !topology.is_apart();
    let is_received = run.header.plan.net().is_some();
    let receipt = calibration
        .receipt_round_trip_ns
        .filter(|_| is_received && run.header.plan.topologies().iter().any(here));
    let receipt = receipt.or_empty(|ns| {
        let slice = match run.header.plan.schedule {
            Schedule::Slices { slice, .. } => format!("each {slice} slice"),
            Schedule::Window { .. } | Schedule::Messages { .. } => "each slice".to_owned(),
        };
        format!("; {slice} includes one receipt ({} there and back)", nanoseconds(ns))
    });
    Some(format!(
        "{} ns per {unit}, {} ns per slice, the same for every method and not subtracted{receipt}",
        three_digits(calibration.harness_message_ns),
        three_digits(calibration.harness_slice_ns)
    ))
}

/// What the numbers hold for.
fn scope(run: &Run, analysis: &Analysis) -> String {
    let kernel = |host: &HostFacts| {
        let release = words::fact(host, &["kernel", "release", "osrelease"]);
        let release = release.and_then(|release| release.split_ascii_whitespace().next());
        release.or_empty(|release| format!(", Linux {release}"))
    };
    let here = kernel(&run.header.host);
    let machines = match &run.header.far {
        None => format!("this machine, this boot{here}."),
        Some(far) => format!(
            "two machines and the way between them; here this boot{here}; there one boot{}.",
            kernel(&far.host)
        ),
    };
    let sizes = match analysis.cells.len() > 1 {
        true => " A statement about a setting holds for that setting only.",
        false => "",
    };
    format!("{machines} No interval covers how other boots or hosts vary.{sizes}")
}

/// The tables behind the lines.
fn folds(run: &Run, analysis: &Analysis, form: Form, nothing: &str) -> Vec<Node> {
    let told = &*analysis.told;
    let fold = |summary: &str, table: Table| {
        let table = table.with_rows()?.without_caption();
        Some(Node::fold(summary, vec![Node::Table(table)]))
    };
    let is_page = form == Form::Page;
    let rejected = match analysis.rejected.len() {
        1 => "A trial, or a part of it, not used".to_owned(),
        all => format!("{all} trials or parts of trials not used"),
    };
    let checks = validity::self_checks(run, analysis);
    let isolated = validity::isolated(run, analysis);
    let costs = || {
        let facts = costs(run.header.calibration.as_ref()?, told, nothing);
        Some(Node::fold("Overhead of iolens", vec![Node::Facts(facts)]))
    };
    let all = [
        fold("Self-check of every setting", checks).filter(|_| is_page || analysis.cells.len() > 1),
        fold(&rejected, validity::rejected(analysis)),
        notes(run, analysis),
        fold("Do results depend on sharing a process?", isolated),
        fold("Kinds of cores", validity::by_pmu(run, told)),
        is_page.then(costs).flatten(),
    ];
    all.into_iter().flatten().collect()
}

/// What checks noticed and let pass: by kind where it is so in several settings, else as it is.
fn notes(run: &Run, analysis: &Analysis) -> Option<Node> {
    let all = analysis.cells.iter().flat_map(|cell| {
        cell.remarks.iter().map(move |remark| {
            let fact = Fact::new(setting(run, &cell.cell), remarks::said(remark));
            (remarks::title(&remark.kind), fact)
        })
    });
    let kinds = grouped(all);
    let all: usize = kinds.iter().map(|(_, facts)| facts.len()).sum();
    let fold = |(title, facts): (&str, Vec<Fact>)| match facts.len() {
        1 => Node::Facts(facts),
        n => Node::fold(format!("{title} ({n})"), vec![Node::Facts(facts)]),
    };
    let summary = format!("{} of checks", count(all, "note"));
    (all > 0).then(|| Node::fold(summary, kinds.into_iter().map(fold).collect()))
}

/// What the parts of iolens cost.
fn costs(calibration: &Calibration, told: &Told, nothing: &str) -> Vec<Fact> {
    let costs = &calibration.costs;
    let one = format!("one {nothing}");
    let rows = [
        (one.as_str(), Some(calibration.harness_message_ns)),
        ("one slice of it", Some(calibration.harness_slice_ns)),
        ("one reading of the clock", Some(calibration.clock_read_ns)),
        ("one empty system call (getppid)", Some(calibration.empty_call_ns)),
        ("readings next to the clock", costs.inner_readings_ns),
        ("slower readings around them", costs.outer_readings_ns),
    ];
    let mut facts: Vec<Fact> =
        rows.map(|(name, ns)| Fact::new(name, ns.or_dash(nanoseconds))).into();
    facts.push(Fact::new("counters at each context switch", at_a_switch(costs)));
    facts.push(Fact::new("reading counters, outside the clock", reading_counters(told)));
    facts
}

/// What open counters add to a hand-over of the CPU.
fn at_a_switch(costs: &Costs) -> String {
    let bare = costs.switches.first().map(|bare| bare.handover_ns);
    costs.counted_handover_ns.zip(bare).or_dash(|(counted, bare)| {
        format!("{} with them, {} without", nanoseconds(counted), nanoseconds(bare))
    })
}

/// The share of the trials' time that went into reading counters.
fn reading_counters(told: &Told) -> String {
    let TimeSpent { reading_ns, trials_ns, .. } = told.spent;
    if trials_ns == 0 {
        return NONE.to_owned();
    }
    let share = percent(reading_ns as f64 / trials_ns as f64);
    format!("{} in {} of trials ({share})", Nanos(reading_ns), Nanos(trials_ns))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use iolens_model::axes::Direction;
    use iolens_model::plan::Axes;
    use iolens_model::run::FarFacts;

    use super::*;
    use crate::fixture;

    #[test]
    fn a_run_between_two_machines_holds_for_both_and_names_no_receipt_of_one() {
        let (mut run, analysis) = fixture::classic();
        let host = run.header.host.clone();
        let Axes::Net(axes) = &mut run.header.plan.axes else { panic!("a run of net") };
        axes.topologies = vec![Topology::Host];
        run.header.far = Some(FarFacts {
            launcher: "ssh far".to_owned(),
            build: String::new(),
            direction: Direction::Tx,
            near_address: Ipv4Addr::LOCALHOST.into(),
            address: Ipv4Addr::LOCALHOST.into(),
            host,
            findings: Vec::new(),
            near_findings: Vec::new(),
        });
        let scope = scope(&run, &analysis);
        let expect = "two machines and the way between them; here this boot, Linux 6.12.43; there \
                      one boot, Linux 6.12.43.";
        assert!(scope.starts_with(expect), "{scope}");
        let said = overhead(&run).unwrap();
        assert!(!said.contains("receipt"), "{said}");
    }
}
