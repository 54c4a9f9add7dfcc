//! What the first screens of all studies are, and their budgets.

use iolens_document::Style;
use iolens_model::host::{COUNTERS, Fact, PMU_NOT_VERIFIED};
use iolens_model::outcome::Status;
use iolens_model::reading::Reading;
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_stats::analysis::Analysis;

use super::After;
use crate::studies::syscall;
use crate::studies::tests::studies;
use crate::{fixture, fixture_findings, html, text};

const AFTER: After<'_> =
    After { page: Some("/tmp/u/reports/4f1c09ab.html"), full_run: Some(Nanos(600_000_000_000)) };

fn drawn((run, analysis): &(Run, Analysis), width: usize) -> String {
    text::first(run, analysis, Some(AFTER), &Style::plain(width))
}

/// The screens of every study, by name.
fn all() -> Vec<(&'static str, (Run, Analysis))> {
    let of_net = [
        ("net", fixture_findings::findings()),
        ("net_quick", fixture::quick()),
        ("net_whole", fixture::whole()),
        ("net_one_size", fixture::one_size()),
        ("net_classic", fixture::classic()),
        ("net_families", fixture::families()),
        ("syscall_sizes", syscall::tests::sized()),
    ];
    of_net.into_iter().chain(studies()).collect()
}

#[test]
fn the_first_screens_of_all_studies() {
    for (name, run) in all() {
        insta::assert_snapshot!(format!("{name}_100"), drawn(&run, 100));
        insta::assert_snapshot!(format!("{name}_80"), drawn(&run, 80));
    }
}

#[test]
fn counts_of_a_path_that_nobody_verified_are_marked() {
    const MARK: &str = "hardware counters never checked against another tool";
    let value = Reading::Exact(PMU_NOT_VERIFIED.to_owned());
    let fact = Fact { group: COUNTERS.to_owned(), name: "PMU path".to_owned(), value };
    for (mut run, is_counted) in [(fixture::whole(), true), (fixture::without_pmu(), false)] {
        run.0.header.host.facts.retain(|fact| fact.group != COUNTERS);
        assert!(!drawn(&run, 400).contains(MARK));
        run.0.header.host.facts.push(fact.clone());
        assert_eq!(drawn(&run, 400).contains(MARK), is_counted);
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, run) in all() {
        for width in [60, 80, 100, 200] {
            let text = drawn(&run, width);
            let wide: Vec<&str> =
                text.lines().filter(|line| line.chars().count() > width.min(100)).collect();
            assert!(wide.is_empty(), "{name} in {width} columns: {wide:#?}");
        }
    }
}

/// Up to four sizes and five methods, on a terminal of 100 columns.
#[test]
fn a_screen_has_24_lines_at_most() {
    let small = ["net_quick", "net_classic", "copy", "syscall", "syscall_sizes"];
    let style = Style::plain(100);
    for (name, (run, analysis)) in all().into_iter().filter(|(name, _)| small.contains(name)) {
        let mut screen = crate::studies::screen(&run, &analysis, Some(AFTER));
        // What went wrong comes on top.
        screen.problems.clear();
        let text = iolens_document::terminal::draw(&screen, &style);
        assert!(text.lines().count() <= 24, "{name}: {text}");
    }
}

/// WORDS, H: what no reader is to meet.
#[test]
fn no_screen_has_a_banned_word() {
    const BANNED: [&str; 16] = [
        "surely",
        "told apart",
        "not separated",
        "Indicative",
        "dearest",
        "dearer",
        "for want of",
        "whoever",
        "as cheap as",
        "looked at anew",
        "at the door",
        "by hand",
        "mood",
        "restless",
        "±",
        "FASTER",
    ];
    for (name, run) in all() {
        let text = drawn(&run, 100);
        let found: Vec<&&str> = BANNED.iter().filter(|word| text.contains(**word)).collect();
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// A run whose methods have all failed, for one reason or for two.
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
    let page = html::page(&run, &analysis);
    let at = |part: &str| page.find(part).unwrap_or(usize::MAX);
    let said = at("No result. it broke");
    assert!(said < at("Noise floor") && said < at("<table"), "{said}");
    assert!(drawn(&(run, analysis), 100).contains("No result. it broke"));
    let said = drawn(&failed(["it broke", "it broke too"]), 100);
    assert!(said.contains("No result. Most often: it broke"), "{said}");
    assert!(!drawn(&fixture::run(), 100).contains("No result"));
}

/// Thresholds are the user's.
#[test]
fn what_is_the_same_is_the_same_within_the_threshold() {
    let (_, (mut run, _)) = all().into_iter().find(|(name, _)| *name == "file").unwrap();
    run.header.plan.delta = 0.04;
    let analysis = iolens_stats::analyse(&run);
    let screen = drawn(&(run, analysis), 100);
    assert!(screen.contains("= same within 4% (90% interval)"), "{screen}");
    assert!(screen.contains("mmap or read (same within 4%)"), "{screen}");
}

#[test]
fn an_untrustworthy_run_says_so() {
    let (run, mut analysis) = fixture::run();
    analysis.self_check.excluding_one = 4;
    let drawn = text::first(&run, &analysis, None, &Style::plain(100));
    assert!(drawn.contains("Do not use these numbers: 4 of 6 self-checks"), "{drawn}");
}
