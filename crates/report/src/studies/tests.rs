//! Every study in every form that is shown: what holds of all of them.

use iolens_document::{Joined, Style};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use serde_json::Value;

use crate::export::Rows;
use crate::studies::files;
use crate::studies::files::copying_tests;
use crate::studies::files::writes;
use crate::studies::server;
use crate::studies::syscall;
use crate::tests::csv_fields;
use crate::{csv, fixture, html, json, text};

/// A made-up run of each study but `net`, by the name of its snapshots.
pub(crate) fn studies() -> Vec<(&'static str, (Run, Analysis))> {
    vec![
        ("file", files::tests::run()),
        ("write", writes::tests::run()),
        ("copy", copying_tests::run()),
        ("syscall", syscall::tests::run()),
        ("server", server::tests::run()),
    ]
}

/// Words of other studies, in small letters, which have no place in this one.
pub(crate) fn foreign(study: &str) -> &'static [&'static str] {
    match study {
        "copy" => {
            &["message", "goodput", "per block", "gbit/s", "receiver", "thread pairs", "copys"]
        }
        "syscall" => &["message", "goodput", "gbit/s", "receiver", "thread pairs", " 0 b"],
        "server" => &[
            "message",
            "goodput",
            "gbit/s",
            "receiver",
            "per block",
            "block size",
            "ns/msg",
            "0 b,",
            "copies",
            "thread pairs",
            "round trip",
            "zero-copy",
        ],
        _ => &[
            "message",
            "goodput",
            "copies",
            "received by nobody",
            "gbit/s",
            "receiver",
            "thread pairs",
        ],
    }
}

/// The same of columns.
fn foreign_columns(study: &str) -> &'static [&'static str] {
    match study {
        "server" => &["message", "tx_", "rx_", "zerocopy", "mtu", "receiver", "goodput", "copies"],
        _ => &["message", "topology", "rx_", "zerocopy", "mtu", "receiver", "goodput"],
    }
}

/// Sections of a page.
fn sections(study: &str) -> &'static [&'static str] {
    match study {
        "syscall" => &["answer", "figures", "numbers", "trust", "machine"],
        "server" => &["answer", "cheapest", "counters", "figures", "numbers", "trust", "machine"],
        _ => &["answer", "why", "figures", "numbers", "trust", "machine"],
    }
}

/// Within 1 %.
pub(crate) fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.01, "{value} is not {expected}");
}

/// None of these words, which are in small letters.
pub(crate) fn has_none_of(words: &[&str], text: &str) {
    let lower = text.to_lowercase();
    for word in words {
        let at = lower.find(word);
        let near = at.map(|at| lower[..at].chars().rev().take(80).collect::<String>());
        let near = near.map(|near| near.chars().rev().collect::<String>());
        assert!(at.is_none(), "{word} after: {near:?}");
    }
}

/// What `iolens show` prints of a run. No line of it is wider, and one setting of it has no word
/// of other studies.
pub(crate) fn shown(run: &Run, analysis: &Analysis, width: usize) -> String {
    let style = Style::plain(width);
    let study = run.header.plan.study();
    has_none_of(foreign(study.word()), &text::show(run, analysis, &analysis.cells[0], &style));
    let whole = text::run(run, analysis, &style);
    for line in whole.lines() {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
    }
    whole
}

#[test]
fn what_show_prints_is_of_its_study() {
    for (study, (run, analysis)) in studies() {
        let text = shown(&run, &analysis, 100);
        has_none_of(foreign(study), &text);
        shown(&run, &analysis, 80);
        insta::assert_snapshot!(format!("{study}_shown"), text);
    }
}

/// But for the plan as it is stored.
#[test]
fn pages_and_figures_are_of_their_study() {
    for (study, (run, analysis)) in studies() {
        let page = html::page(&run, &analysis);
        let headings = page.split("<h2 id=\"").skip(1).filter_map(|part| part.split('"').next());
        assert_eq!(headings.collect::<Vec<_>>(), sections(study));
        for id in sections(study) {
            assert_eq!(page.matches(&format!("href=\"#{id}\"")).count(), 1, "{id}");
        }
        let end = page.find("The plan as stored").expect("how to reproduce");
        let start = page.find("<body").expect("a body");
        has_none_of(foreign(study), &page[start..end]);
        let figures = super::figures(&run, &analysis);
        for figure in &figures {
            has_none_of(foreign(study), &figure.svg);
            has_none_of(foreign(study), &figure.table.text(200));
            assert!(!figure.table.rows.is_empty(), "{}", figure.file_stem);
        }
        let names = figures.iter().map(|figure| &*figure.file_stem);
        insta::assert_snapshot!(format!("{study}_figures"), names.joined("\n"));
    }
}

#[test]
fn exports_have_the_columns_of_their_study_in_every_row() {
    for (study, (run, analysis)) in studies() {
        let (run, analysis) = (std::slice::from_ref(&run), std::slice::from_ref(&analysis));
        for rows in [Rows::Arms(run), Rows::Slices(run), Rows::Cells(run, analysis)] {
            let name = rows.word();
            let table = csv::all(rows);
            let header = table.lines().next().expect("a header").replace(',', "\n");
            let is_own = |word: &&str| !header.contains(*word);
            assert!(foreign_columns(study).iter().all(is_own), "{header}");
            let columns = header.lines().count();
            let mut rows = table.lines().skip(1).peekable();
            assert!(rows.peek().is_some(), "{study} {name}");
            assert!(rows.all(|line| csv_fields(line).len() == columns), "{study} {name}");
            insta::assert_snapshot!(format!("{study}_columns_of_{name}"), header);
        }
    }
}

/// The rows of cells, for programs.
pub(crate) fn cells_as_json(run: &Run, analysis: &Analysis) -> Vec<Value> {
    let rows = Rows::Cells(std::slice::from_ref(run), std::slice::from_ref(analysis));
    let all: Value = serde_json::from_str(&json::all(rows)).expect("our own JSON");
    all["cells"].as_array().expect("rows").clone()
}

/// Everything that is made of a whole run, in bytes.
fn made(run: &Run, analysis: &Analysis) -> Vec<String> {
    let style = Style { colour: true, ..Style::plain(100) };
    let mut all = vec![
        html::page(run, analysis),
        json::run(run, analysis),
        text::run(run, analysis, &style),
        text::whole(run, analysis, &style),
    ];
    all.extend(analysis.cells.iter().map(|cell| text::show(run, analysis, cell, &style)));
    all.extend(super::figures(run, analysis).into_iter().map(|figure| figure.svg));
    all
}

/// What is shown of a run rests on its analysis: its trials need not be in memory.
#[test]
fn a_page_reads_no_trial() {
    let net = [("net", fixture::run())];
    for (study, (run, analysis)) in studies().into_iter().chain(net) {
        let without = Run { trials: Vec::new(), ..run.clone() };
        assert!(made(&run, &analysis) == made(&without, &analysis), "{study}");
    }
}
