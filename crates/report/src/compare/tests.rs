//! What is printed of two made-up runs.

use iolens_model::arm::Role;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, Interval, Verdict};
use iolens_stats::compare::{Absolute, Comparison, Side, compare};

use super::{Compared, json, markdown, text};
use crate::fixture;
use iolens_document::{Joined, Style};

const PLAIN: Style = Style::plain(100);

/// The ratio of an arm to the baseline, and what it takes by itself, multiplied.
fn changed(analysis: &mut Analysis, label: &str, ratio: f64, own: f64) {
    let times = |interval: &mut Option<Interval>, by: f64| {
        *interval = interval.map(|i| Interval { low: i.low * by, high: i.high * by });
    };
    for arm in analysis.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
        if arm.arm.label == label {
            if let Some(contrast) = &mut arm.contrast {
                contrast.ratio *= ratio;
            }
            if let Some(figures) = &mut arm.figures {
                figures.ns_per_message.value /= own;
                times(&mut figures.ns_per_message.interval, 1.0 / own);
            }
        }
    }
}

/// The made-up run a second time, on another kernel.
fn second() -> (Run, Analysis) {
    let (mut run, analysis) = fixture::run();
    fixture::again(&mut run);
    run.header.started_unix_ns += 3_600_000_000_000;
    (run, analysis)
}

fn asked(delta: &str) -> Vec<(String, String)> {
    [("delta", delta), ("budget", "10m")].map(|(key, value)| (key.into(), value.into())).to_vec()
}

fn compared(
    (run_a, analysis_a): &(Run, Analysis),
    (run_b, analysis_b): &(Run, Analysis),
    absolute: Absolute,
) -> Comparison {
    let (asked_a, asked_b) = (asked("3%"), asked("2%"));
    let a = Side { header: &run_a.header, analysis: analysis_a, asked: &asked_a };
    let b = Side { header: &run_b.header, analysis: analysis_b, asked: &asked_b };
    compare(&a, &b, absolute).expect("common cells")
}

fn with<T>(
    a: &(Run, Analysis),
    b: &(Run, Analysis),
    absolute: Absolute,
    show: impl Fn(&Compared<'_>) -> T,
) -> T {
    let comparison = compared(a, b, absolute);
    show(&Compared { a: &a.0.header, b: &b.0.header, comparison: &comparison })
}

/// All that a person reads.
fn shown(a: &(Run, Analysis), b: &(Run, Analysis)) -> String {
    with(a, b, Absolute::Shown, |compared| text(compared, true, &PLAIN))
}

/// `send` a fifth slower, at one size less than in the first run.
fn slower() -> [(Run, Analysis); 2] {
    let (a, mut b) = (fixture::run(), second());
    changed(&mut b.1, "send", 1.0 / 1.2, 1.0 / 1.2);
    b.1.cells.retain(|cell| cell.cell.size != Bytes(262_144));
    [a, b]
}

#[test]
fn a_person_reads_the_inputs_the_answer_and_every_arm() {
    let [a, b] = slower();
    insta::assert_snapshot!(shown(&a, &b));
}

#[test]
fn arms_by_themselves_are_judged_where_that_is_asked_for() {
    let [a, b] = slower();
    insta::assert_snapshot!(with(&a, &b, Absolute::Judged, |c| text(c, true, &PLAIN)));
}

/// As `compare --rerun` has it: the baseline itself can be judged.
#[test]
fn two_builds_that_took_turns_are_judged_arm_by_arm() {
    let [a, mut b] = slower();
    b.0.header.host = a.0.header.host.clone();
    (b.0.header.plan, b.0.header.build) = (a.0.header.plan.clone(), "0.1.0 (new)".to_owned());
    (b.0.header.started_unix_ns, b.0.header.end) =
        (a.0.header.started_unix_ns, a.0.header.end.clone());
    insta::assert_snapshot!(shown(&a, &b));
    let json = with(&a, &b, Absolute::Shown, json);
    assert!(json.contains("\"interleaved\": true"), "{json}");
    // Which no trial of theirs can tell, and no run that was not of two builds has to.
    let relinked = "relinking alone can change";
    let markdown_of = |b| with(&a, b, Absolute::Shown, markdown);
    assert!(markdown_of(&b).contains(relinked), "{json}");
    assert!(!markdown_of(&second()).contains(relinked));
}

#[test]
fn a_pull_request_reads_what_changed_first() {
    let [a, b] = slower();
    insta::assert_snapshot!(with(&a, &b, Absolute::Shown, markdown));
}

#[test]
fn a_program_reads_every_number() {
    let [mut a, mut b] = slower();
    for (_, analysis) in [&mut a, &mut b] {
        analysis.cells.truncate(1);
        analysis.cells[0].arms.truncate(2);
    }
    insta::assert_snapshot!(with(&a, &b, Absolute::Judged, json));
}

/// A baseline that lost a fifth makes every arm look faster.
#[test]
fn a_slower_baseline_is_told_as_such() {
    let (a, mut b) = (fixture::run(), second());
    for label in ["send", "send_per_field", "sendmsg_iov"] {
        changed(&mut b.1, label, 1.25, 1.0);
    }
    changed(&mut b.1, "send_staged", 1.0, 0.8);
    let text = shown(&a, &b);
    let text = text.split_whitespace().joined(" ");
    let told = "the baseline send_staged itself is likelier to have become slower (−20%)";
    assert!(text.contains(told), "{text}");
}

#[test]
fn first_looks_give_no_verdicts() {
    let (a, mut b) = (fixture::quick(), fixture::quick());
    changed(&mut b.1, "send", 1.0 / 1.5, 1.0);
    b.0.header.id = "77aa0011".into();
    let text = shown(&a, &b);
    assert!(text.contains("quick look: no verdicts"), "{text}");
    assert!(!text.contains("SLOWER") && !text.contains("EQUIVALENT"), "{text}");
    let json = with(&a, &b, Absolute::Judged, json);
    assert!(json.contains("\"indicative\": true") && !json.contains("SLOWER"), "{json}");
}

#[test]
fn nothing_is_called_the_same_that_was_not_shown_to_be() {
    let a = fixture::run();
    let mut b = second();
    let same = shown(&a, &b);
    // One cell of the made-up run is wide.
    assert!(same.contains("nothing is shown to differ by more than 3%"), "{same}");
    for arm in b.1.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
        (arm.contrast, arm.figures) = (None, None);
    }
    let nothing = shown(&a, &b);
    assert!(nothing.contains("nothing can be compared"), "{nothing}");
}

/// As `compare --rerun` of a build that is faster in everything: no ratio changes.
#[test]
fn what_is_faster_by_itself_is_told() {
    let (a, mut b) = (fixture::run(), second());
    for label in ["send_staged", "send", "send_per_field", "sendmsg_iov"] {
        changed(&mut b.1, label, 1.0, 1.25);
    }
    let text = with(&a, &b, Absolute::Judged, |c| text(c, true, &PLAIN));
    let text = text.split_whitespace().joined(" ");
    assert!(text.contains("send_staged alone is up to 25% faster in B"), "{text}");
    assert!(!text.contains("nothing") && !text.contains("exit code 1"), "{text}");
}

/// Only where every interval excludes more is it said that nothing changed by more.
#[test]
fn what_may_be_beyond_the_threshold_is_not_said_to_be_within() {
    let (a, b) = (fixture::run(), second());
    let said = |[ratio, alone]: [Verdict; 2]| {
        let mut comparison = compared(&a, &b, Absolute::Judged);
        for arm in comparison.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
            let change = arm.change.as_mut().filter(|_| arm.arm.role == Role::Compared);
            let own = arm.own.as_mut().and_then(|own| own.judged.as_mut());
            change.into_iter().chain(own).for_each(|one| one.verdict = Verdict::Equivalent);
        }
        let send = &mut comparison.cells[0].arms[1];
        send.change.as_mut().expect("compared").verdict = ratio;
        let own = send.own.as_mut().and_then(|own| own.judged.as_mut());
        own.expect("judged").verdict = alone;
        let of = Compared { a: &a.0.header, b: &b.0.header, comparison: &comparison };
        text(&of, true, &PLAIN)
    };
    let within = Verdict::Equivalent;
    let shown = said([within, within]);
    assert!(shown.contains("nothing by more than 3%"), "{shown}");
    for open in [Verdict::Small, Verdict::Inconclusive, Verdict::Invalid, Verdict::Unranked] {
        for verdicts in [[open, within], [within, open]] {
            let shown = said(verdicts);
            let told = "nothing is shown to differ by more than 3%";
            assert!(shown.contains(told), "{verdicts:?}: {shown}");
        }
    }
}
