//! The pages of all made-up runs keep to the rules; a page that breaks one is caught.

use std::sync::LazyLock;

use super::*;
use crate::studies::server;
use crate::studies::syscall;
use crate::studies::tests::studies;
use crate::{fixture, fixture_findings, html};

/// A page of each study, and of `net` those that differ in what they draw.
fn pages() -> Vec<(&'static str, String)> {
    let runs = [
        ("net", fixture::run()),
        ("net, quick", fixture::quick()),
        ("net, classic", fixture::classic()),
        ("net, whole", fixture::whole()),
        ("net, all families", fixture::families()),
        ("net, findings", fixture_findings::findings()),
        ("net, 500 cells", fixture_findings::many(500)),
        ("server, searches", server::searches_tests::searched()),
        ("syscall, sizes", syscall::tests::sized()),
    ];
    let runs = runs.into_iter().chain(studies());
    runs.map(|(name, (run, analysis))| (name, html::page(&run, &analysis))).collect()
}

#[test]
fn the_pages_of_all_studies_keep_to_the_rules() {
    let mut found = Vec::new();
    for (name, page) in pages() {
        assert!(markup::figures(&page).len() > 1, "{name} has no figures");
        found.extend(faults(&page).into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A page that is right: of `net`, with all kinds of figures.
static RIGHT: LazyLock<String> = LazyLock::new(|| {
    let (run, analysis) = fixture::whole();
    html::page(&run, &analysis)
});

/// A right page in which something is replaced breaks this rule.
fn broken(from: &str, to: &str, rule: &str) {
    assert!(RIGHT.contains(from), "the page has no {from:?} to replace");
    let found = faults(&RIGHT.replace(from, to));
    assert!(found.iter().any(|fault| fault.starts_with(rule)), "{rule}: {found:?}");
}

#[test]
fn a_page_that_is_too_large_is_caught() {
    broken("</main>", &format!("{}</main>", " ".repeat(BYTES_MAX)), "size:");
}

#[test]
fn a_page_that_loads_something_is_caught() {
    broken("</main>", "<img src=\"https://example.org/a.png\"></main>", "network:");
    broken("</style>", "a { background: url(b.png) }</style>", "network:");
    broken("</main>", "<script src='a.js'></script></main>", "network:");
}

#[test]
fn a_figure_without_a_table_or_a_unit_is_caught() {
    broken("<table", "<div", "twin:");
    broken("(ratio)", "of messages", "title:");
}

#[test]
fn a_curve_that_nothing_names_is_caught() {
    let legend = r#"class="tl f c-vermilion""#;
    broken(legend, r#"class="t2 f c-vermilion""#, "labels:");
}

#[test]
fn too_many_curves_and_curves_that_look_alike_are_caught() {
    let curve = r#"class="s c-green curve""#;
    let more: String = (0..7)
        .map(|i| format!("class=\"s c-green curve\" stroke-dasharray=\"{i} 9\"/>\n<path d=\"\" "))
        .collect();
    broken(curve, &format!("{more}{curve}"), "curves:");
    // An arm gets the hue and the marker of another.
    let circle = "a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z";
    let page = RIGHT.replace("c-vermilion", "c-blue").replace("l4.6 7.8h-9.2Z", circle);
    let found = faults(&page);
    assert!(found.iter().any(|fault| fault.starts_with("looks:")), "{found:?}");
}

#[test]
fn a_second_hue_for_an_arm_is_caught() {
    broken(r#"<b class="c-vermilion">sendmsg_iov"#, r#"<b class="c-sky">sendmsg_iov"#, "hue:");
}

#[test]
fn ticks_that_are_no_sizes_or_stand_elsewhere_are_caught() {
    broken(">1 KiB</text>", ">1 kB</text>", "ticks:");
    broken(">1 KiB</text>", ">1000 B</text>", "ticks:");
    broken(">1 KiB</text>", ">2 KiB</text>", "ticks:");
}

#[test]
fn a_hover_without_n_interval_or_verdict_is_caught() {
    broken(", n = 12", "", "hover: n ");
    broken(" [", " (", "hover: an interval");
    broken(", FASTER</title>", "</title>", "hover: a verdict");
}

#[test]
fn colours_that_some_cannot_tell_apart_or_see_are_caught() {
    // As Okabe and Ito have it, and an orange that is dark enough for white paper.
    broken("#bb4d00", "#d55e00", "palette: orange and vermilion in light, deuteranopia");
    broken("#2a98de", "#56b4e9", "palette: sky in light has a contrast of");
    broken("--faint: #98a1aa", "--faint: #50565c", "palette: text faint in dark");
}

#[test]
fn a_mode_that_is_missing_is_caught() {
    broken("@media print", "@media speech", "modes: no @mediaprint");
    broken("(prefers-color-scheme:dark){.c-ink", "(prefers-color-scheme:light){.c-ink", "modes:");
    broken("color: var(--text)", "color: var(--ink)", "modes: --ink is used");
}

#[test]
fn differences_are_those_of_the_published_examples() {
    // Sharma, Wu & Dalal (2005), table 1.
    let check = |first, second, expect: f64| {
        let found = colours::difference(first, second);
        assert!((found - expect).abs() < 5e-5, "{found} is not {expect}");
    };
    check([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425);
    check([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669);
    check([50.0, 2.5, 0.0], [50.0, 0.0, -2.5], 4.3065);
    check([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644);
}
