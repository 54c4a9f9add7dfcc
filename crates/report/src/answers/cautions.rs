//! Sentences around the answers: what spoils a run, how noisy it was, what
//! its numbers hold for.

use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::plan::Schedule;
use iolens_model::run::{Run, StoppedBy};
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, CellAnalysis, Drift, GroupCheck, SelfCheck};

use super::{Kind, Sentence};
use crate::number::{self, count, percent, ratio};
use crate::results::overlap;
use crate::words;

/// That nothing came of the run, and why most often.
pub(super) fn nothing_usable(analysis: &Analysis) -> Option<Sentence> {
    if analysis.is_usable() {
        return None;
    }
    let arms = analysis.arms();
    let mut reasons: Vec<(&str, u64)> = Vec::new();
    for reason in arms.filter_map(|arm| arm.reason.as_deref()) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, times)) => *times += 1,
            None => reasons.push((reason, 1)),
        }
    }
    // Of reasons that are as frequent, the one that came first.
    let most = reasons.iter().rev().max_by_key(|(_, times)| times);
    let why = match most {
        None => "nothing was measured.".to_owned(),
        Some((reason, _)) if reasons.len() == 1 => format!("{reason}."),
        Some((reason, times)) => format!("most often ({}): {reason}.", count(*times, "row")),
    };
    let text = format!("Nothing in this run can be used: {why}");
    Some(Sentence::plain(Kind::Alarm, text))
}

/// A self-check that fails more often than by chance.
pub(super) fn untrustworthy(analysis: &Analysis) -> Option<Sentence> {
    let check = &analysis.self_check;
    let text = if check.untrustworthy() {
        format!(
            "This run is not trustworthy: {} of {} self-checks exclude 1, and chance allows {}; \
             do not use its ratios.",
            check.excluding_one, check.counted, check.bound
        )
    } else if check.judged > 0 {
        format!(
            "This run is not trustworthy: {} of a second copy of the baseline called it faster \
             or slower than itself; do not use its ratios.",
            count(check.judged, "self-check")
        )
    } else {
        return None;
    };
    Some(Sentence::plain(Kind::Alarm, text))
}

/// That a run looks at another one's crossovers, which is where its answer stands.
pub(super) fn confirms(run: &Run) -> Option<Sentence> {
    let other = run.header.confirms.as_ref()?;
    let text = format!(
        "This run measures sizes inside the crossovers of run {other} anew: `iolens show {other}` \
         has what comes of it."
    );
    Some(Sentence::plain(Kind::Caution, text))
}

/// How far a second copy of the baseline strays.
pub(super) fn noise_floor(run: &Run, analysis: &Analysis) -> Sentence {
    let check = &analysis.self_check;
    let baseline = &run.header.plan.baseline;
    let text = match (check.floor_median, check.floor_widest) {
        (Some(median), Some(widest)) => {
            let enough = if median > analysis.delta {
                format!(
                    " That is too noisy to call arms equivalent at δ = {}.",
                    percent(analysis.delta)
                )
            } else {
                String::new()
            };
            format!(
                "Noise floor: {} (median half-width of {baseline} against its hidden second copy, \
                 {}; widest {}).{enough}{}",
                number::either_way(median),
                places(analysis),
                number::either_way(widest),
                copies(run, check)
            )
        }
        _ => format!(
            "Noise floor: not known; no A/A copy of {baseline} has an interval in this run."
        ),
    };
    Sentence::plain(Kind::NoiseFloor, text)
}

/// `6 cells`, or `4 groups of arms in 1 cell`: where the copy has an interval.
fn places(analysis: &Analysis) -> String {
    let has = |check: &&GroupCheck| check.contrast.as_ref().is_some_and(|c| c.pointwise.is_some());
    let cells = analysis.cells.iter().filter(|cell| cell.checks.iter().any(|c| has(&c)));
    let cells = u32::try_from(cells.count()).unwrap_or(u32::MAX);
    match analysis.self_check.checks {
        checks if checks == cells => count(cells, "cell"),
        checks => format!("{} of arms in {}", count(checks, "group"), count(cells, "cell")),
    }
}

/// What the copies say of the run, those that count.
fn copies(run: &Run, check: &SelfCheck) -> String {
    if check.counted == 0 {
        return " With fewer than five trials that copy says nothing of the run.".to_owned();
    }
    format!(
        " In {} that copy was {} in {}, and its pointwise interval excludes 1 in {}; chance allows \
         {}.",
        count(check.counted, "comparison"),
        if run.header.plan.quick { "told apart from it" } else { "judged FASTER or SLOWER" },
        check.judged,
        check.excluding_one,
        check.bound
    )
}

/// That both ends of a transfer, or a server and its client, have but one CPU.
pub(super) fn one_cpu(run: &Run) -> Option<Sentence> {
    let plan = &run.header.plan;
    let [cpu] = plan.cpus.as_ref().unwrap_or(&run.header.host.cpus).as_slice() else { return None };
    let topologies = plan.topologies();
    let has_two_ends = topologies.iter().any(|t| t.has_receiver() && !t.is_apart());
    let text = format!(
        "Both ends share CPU {cpu}: they take turns on it, so that each time is that of both, with \
         the switches between them. Two CPUs (--cpus, taskset) give each end its own."
    );
    has_two_ends.then(|| Sentence::plain(Kind::Caution, text))
}

/// What thread counts mean where threads share CPUs.
pub(super) fn turns(run: &Run) -> Option<Sentence> {
    let text = words::turns(run)?;
    let stands = "Ratios between the arms of a cell stand; differences between thread counts are \
                  of that kind";
    Some(Sentence::plain(Kind::Turns, format!("{text}. {stands}.")))
}

/// What the classic way of running costs in precision.
pub(super) fn classic(run: &Run) -> Option<Sentence> {
    let text = "Arms ran one after another, not in alternating slices: whatever the machine did \
                between one arm and the next is in the ratios. On a two-CPU virtual machine, ten \
                repetitions of this kind gave half-widths of 4 to 46 %, alternating slices ±2.5 % \
                (median) in less time.";
    (!run.header.plan.schedule.is_sliced()).then(|| Sentence::plain(Kind::Caution, text))
}

/// So many are told one by one; more of them would hide the answer.
const TAILS_MAX: usize = 2;

/// Arms whose total time says something else than their typical slice.
pub(super) fn tails(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let of_cell = |cell: &'_ CellAnalysis| {
        let arms = cell.arms.iter();
        let arms = arms.filter_map(|arm| Some((arm, arm.contrast.as_ref().filter(|c| c.tail)?)));
        arms.map(|(arm, contrast)| {
            let typical = format!("{}× in the typical slice", ratio(contrast.ratio));
            let totals = ratio(contrast.total_ratio.value);
            (
                arm.arm.label.clone(),
                cell.cell.clone(),
                format!("{typical}, {totals}× by total times"),
            )
        })
        .collect::<Vec<_>>()
    };
    let found: Vec<_> = analysis.cells.iter().flat_map(of_cell).collect();
    let baseline = &run.header.plan.baseline;
    if found.len() <= TAILS_MAX {
        let one = |(label, cell, ratios): &(String, Cell, String)| {
            let claim = format!(
                "something rare and long happens to {label} or {baseline}: against each other {ratios}."
            );
            Sentence::about(run, Kind::Caution, words::subject(&run.header, cell), &claim)
        };
        return found.iter().map(one).collect();
    }
    let one = |(label, cell, ratios): &(String, Cell, String)| {
        format!("{label}, {}: {ratios}", words::subject(&run.header, cell))
    };
    let told: Vec<String> = found.iter().take(TAILS_MAX).map(one).collect();
    let text = format!(
        "Something rare and long happens to an arm or to {baseline} in {} places, so that their \
         ratio is another by totals than in the typical slice: {}; and {} more.",
        found.len(),
        told.join("; "),
        found.len() - TAILS_MAX
    );
    vec![Sentence::plain(Kind::Caution, text)]
}

/// Ratios that depend on whether the arms share a process.
pub(super) fn isolated(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let mut out = Vec::new();
    for cell in &analysis.cells {
        for arm in &cell.arms {
            let Some((shared, alone)) = arm.contrast.as_ref().zip(arm.isolated.as_ref()) else {
                continue;
            };
            if overlap(shared, alone) != Some(false) {
                continue;
            }
            let claim = format!(
                "sharing a process matters: {} is {}× as fast as {} where arms alternate in one \
                 process, {}× where each has its own, and the intervals do not overlap.",
                arm.arm.label,
                ratio(shared.ratio),
                run.header.plan.baseline,
                ratio(alone.ratio)
            );
            let subject = words::subject(&run.header, &cell.cell);
            out.push(Sentence::about(run, Kind::Caution, subject, &claim));
        }
    }
    out
}

/// How the run ended, where that leaves something open.
pub(super) fn ending(run: &Run) -> Option<Sentence> {
    // A run goes on where it was measured, and nowhere else.
    let go_on = match run.header.origin {
        None => format!(" `iolens resume {}` goes on with it.", run.header.id),
        Some(_) => String::new(),
    };
    let Some(end) = &run.header.end else {
        let text = "The run has not ended, or was killed; these are the trials stored so far.";
        return Some(Sentence::plain(Kind::Caution, format!("{text}{go_on}")));
    };
    let why = match end.stopped_by {
        StoppedBy::Interrupted => "The run was interrupted",
        StoppedBy::Lost => "The run ended because the other machine was lost",
        StoppedBy::NothingUsable => "The run ended because no cell could be measured",
        StoppedBy::Stalled => "The run ended because more passes no longer made intervals narrower",
        StoppedBy::Budget => "The run ended because its time budget was spent",
        StoppedBy::Passes => "The run ended after its number of passes",
        StoppedBy::Precision => return None,
    };
    let open = match end.unmet.as_slice() {
        [] if end.stopped_by == StoppedBy::Passes => return None,
        [] => String::new(),
        [one] => format!(", with one precision target unmet: {one}"),
        [widest, rest @ ..] => {
            format!(", with {} precision targets unmet, widest: {widest}", rest.len() + 1)
        }
    };
    let go_on = if end.stopped_by.is_cut_short() { &*go_on } else { "" };
    Some(Sentence::plain(Kind::Caution, format!("{why}{open}.{go_on}")))
}

/// Whether the machine changed its speed while the run lasted.
pub(super) fn drift(run: &Run, analysis: &Analysis) -> Option<Sentence> {
    let drift = analysis.drift.filter(|drift| drift.matters)?;
    Some(Sentence::plain(Kind::Caution, format!("{}.", drift_words(run, &drift))))
}

/// The slope with its interval, and what it means for the numbers.
pub(crate) fn drift_words(run: &Run, drift: &Drift) -> String {
    // The analysis has the slope per hour; a run of minutes is told its own.
    let hours = match drift.per_hour {
        0.0 => 0.0,
        per_hour => drift.over_run.ln_1p() / per_hour.ln_1p(),
    };
    let over_run = |per_hour: f64| (per_hour.ln_1p() * hours).exp_m1();
    let over = format!(
        "by {} from start to end (95 % interval {} to {}, n = {})",
        signed(drift.over_run),
        signed(over_run(drift.interval.low)),
        signed(over_run(drift.interval.high)),
        count(drift.n, "trial")
    );
    let unit = run.header.plan.study().unit();
    match drift.matters {
        true => format!(
            "The time per {unit} changed during the run, {over}. Figures of single arms carry \
             that, ratios do not, since their arms alternate"
        ),
        false => format!("The time per {unit} changed during the run {over}"),
    }
}

fn signed(fraction: f64) -> String {
    let sign = if fraction < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(fraction.abs()))
}

/// What the harness costs beside what it measures.
pub(super) fn harness(run: &Run) -> Sentence {
    let calibration = &run.header.calibration;
    let topologies = run.header.plan.topologies();
    // The receipt was timed on this machine; of another one each cell's slices know their own.
    let here = |t: &Topology| t.has_receiver() && !t.is_apart();
    let received = run.header.plan.net().is_some() && topologies.iter().any(here);
    let receipt = calibration.receipt_round_trip_ns.filter(|_| received);
    let receipt = receipt.map_or_else(String::new, |ns| {
        let slice = match run.header.plan.schedule {
            Schedule::Slices { slice, .. } => format!(" of {slice}"),
            Schedule::Window { .. } | Schedule::Messages { .. } => String::new(),
        };
        format!(", and a slice{slice} holds one receipt ({:.1} µs there and back)", ns / 1e3)
    });
    let text = format!(
        "Harness: {} ns per {} and {} ns per slice by the null arm{receipt}; the same for \
         every arm, not subtracted.",
        three_digits(calibration.harness_message_ns),
        run.header.plan.study().unit(),
        three_digits(calibration.harness_slice_ns),
    );
    Sentence::plain(Kind::Harness, text)
}

/// What the numbers hold for.
pub(super) fn scope(run: &Run, analysis: &Analysis) -> Sentence {
    let compared = analysis.cells.iter().map(|cell| cell.compared_trials().unwrap_or((0, 0)));
    let trials = match compared.reduce(|(least, most), (a, b)| (least.min(a), most.max(b))) {
        Some((least, most)) if least == most => count(most, "trial") + " per cell and arm",
        Some((least, most)) => format!("{least} to {most} trials per cell and arm"),
        None => "no trials".to_owned(),
    };
    let release = |host: &HostFacts| {
        let kernel = words::fact(host, &["kernel", "release", "osrelease"]);
        let release = kernel.and_then(|kernel| kernel.split_ascii_whitespace().next());
        release.map_or_else(String::new, |release| format!(" (Linux {release})"))
    };
    let here = release(&run.header.host);
    let machines = match &run.header.far {
        None => format!("one machine, one boot, one kernel{here}"),
        Some(far) => format!(
            "two machines and the way between them, one boot of each, one kernel here{here} and \
             one there{}",
            release(&far.host)
        ),
    };
    let between = match run.header.plan.study().has_sizes() {
        true => " What is said of a size is said of that size, not of those between.",
        false => "",
    };
    let text = format!(
        "Scope: {machines}, {trials}; the variance between boots and hosts is not in the \
         intervals.{between}"
    );
    Sentence::plain(Kind::Scope, text)
}

/// A warning of the analysis as a sentence: capital first, full stop last.
pub(super) fn warning(text: &str) -> Sentence {
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let stop = if text.ends_with('.') { "" } else { "." };
    Sentence::plain(Kind::Caution, format!("{first}{}{stop}", chars.as_str()))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use iolens_model::axes::Direction;
    use iolens_model::outcome::Status;
    use iolens_model::plan::Axes;
    use iolens_model::run::FarFacts;

    use super::*;
    use crate::{answers, fixture, html, text};

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
        let scope = scope(&run, &analysis).text;
        let expect = "Scope: two machines and the way between them, one boot of each, one kernel \
                      here (Linux 6.12.43) and one there (Linux 6.12.43), ";
        assert!(scope.starts_with(expect), "{scope}");
        assert!(!harness(&run).text.contains("receipt"), "{}", harness(&run).text);
    }

    /// A run whose arms have all failed, for one reason or for two.
    fn failed(reasons: [&str; 2]) -> (Run, Analysis) {
        let (mut run, _) = fixture::classic();
        for (index, trial) in run.trials.iter_mut().enumerate() {
            for arm in &mut trial.arms {
                arm.status = Status::Failed;
                arm.reason = Some(reasons[usize::from(index == 0)].to_owned());
            }
        }
        let analysis = iolens_stats::analyse(&run);
        (run, analysis)
    }

    #[test]
    fn a_run_of_which_nothing_can_be_used_says_so_first() {
        let (run, analysis) = failed(["it broke"; 2]);
        let said = "Nothing in this run can be used: it broke.";
        assert_eq!(answers::sentences(&run, &analysis)[0], Sentence::plain(Kind::Alarm, said));
        let style = text::Style { colour: false, width: 100 };
        assert!(text::first(&run, &analysis, None, &style).contains("No result. it broke"));
        let page = html::page(&run, &analysis);
        let at = |part: &str| page.find(part).unwrap_or(usize::MAX);
        let said = at("No result. it broke");
        assert!(said < at("Noise floor") && said < at("<table"), "{said}");
        let (run, analysis) = failed(["it broke", "it broke too"]);
        let first = &answers::sentences(&run, &analysis)[0].text;
        assert!(first.starts_with("Nothing in this run can be used: most often ("), "{first}");
        assert!(first.ends_with(" rows): it broke."), "{first}");
        let (run, analysis) = fixture::run();
        assert!(nothing_usable(&analysis).is_none(), "{}", run.header.id);
    }
}
