//! What the first screens of all studies are, and their budgets.

use iolens_document::Style;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::After;
use crate::{calls, copying, files, fixture, fixture_findings, servers, text, writes};

fn drawn((run, analysis): &(Run, Analysis), width: usize) -> String {
    let style = Style { colour: false, width };
    let after = After { page: Some("/tmp/u/reports/4f1c09ab.html") };
    text::first(run, analysis, Some(after), &style)
}

/// The screens of every study, by name.
fn all() -> Vec<(&'static str, (Run, Analysis))> {
    vec![
        ("net", fixture_findings::findings()),
        ("net_quick", fixture::quick()),
        ("net_whole", fixture::whole()),
        ("net_one_size", fixture::one_size()),
        ("net_classic", fixture::classic()),
        ("net_families", fixture::families()),
        ("file", files::tests::run()),
        ("copy", copying::tests::run()),
        ("write", writes::tests::run()),
        ("syscall", calls::tests::run()),
        ("server", servers::tests::run()),
    ]
}

#[test]
fn the_first_screens_of_all_studies() {
    for (name, run) in all() {
        insta::assert_snapshot!(format!("{name}_100"), drawn(&run, 100));
        insta::assert_snapshot!(format!("{name}_80"), drawn(&run, 80));
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
    let small = ["net_quick", "net_classic", "copy", "syscall"];
    let style = Style { colour: false, width: 100 };
    for (name, (run, analysis)) in all().into_iter().filter(|(name, _)| small.contains(name)) {
        let after = After { page: Some("/tmp/u/reports/4f1c09ab.html") };
        let mut screen = super::screen(&run, &analysis, Some(after));
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
