//! One self-contained page: no network, no script, light and dark, printable.
//! Sections in the order in which a reader needs them, one file each.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::number;
use crate::words;

mod answers;
mod cells;
mod copies;
mod decision;
mod figures;
mod machine;
mod reproduce;
mod validity;

const STYLE: &str = include_str!("html/style.css");

/// The page.
#[must_use]
pub fn page(run: &Run, analysis: &Analysis) -> String {
    let style = format!("{STYLE}\n{}", crate::figure::page_style());
    let sections = [
        answers::section(run, analysis),
        decision::section(run, analysis),
        figures::section(run, analysis),
        copies::section(run, analysis),
        validity::section(run, analysis),
        machine::section(run),
        cells::section(run, analysis),
        reproduce::section(run),
    ];
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(run.header.build);
                title { (title(run)) }
                style { (PreEscaped(style)) }
            }
            body {
                (header(run, analysis))
                main { @for section in &sections { (section) } }
                footer { (scope(run, analysis)) }
            }
        }
    };
    page.into_string()
}

fn title(run: &Run) -> String {
    let name = run.header.name.as_deref().unwrap_or(&run.header.id);
    format!("{name} · iolens {}", run.header.plan.study)
}

fn header(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    let setting = analysis.cells.first().map(|cell| words::setting(plan, &cell.cell));
    html! {
        header {
            p.mark { b { "iolens" } " " (plan.study) " run " code { (run.header.id) } }
            h1 { (run.header.name.as_deref().unwrap_or("What moving a message costs")) }
            p.meta {
                (number::utc(run.header.started_unix_ns))
                @if let Some(setting) = setting { " · " (setting) }
                " · " (number::count(analysis.passes, "complete pass").replace("passs", "passes"))
                " · δ = " (number::percent(analysis.delta).replace(' ', "\u{a0}"))
            }
            @if plan.quick {
                p.flag { b { "Indicative." } " A quick run gives a first look; verdicts need a full one." }
            }
            nav {
                @for (id, name) in CONTENTS { a href={ "#" (id) } { (name) } }
            }
        }
    }
}

/// Sections by id and heading.
const CONTENTS: [(&str, &str); 8] = [
    ("answers", "Answers"),
    ("decision", "What to use"),
    ("figures", "Figures"),
    ("copies", "Copies"),
    ("validity", "Validity"),
    ("machine", "Machine"),
    ("cells", "All cells"),
    ("reproduce", "Reproduce"),
];

/// A section with its heading.
fn block(id: &str, heading: &str, content: Markup) -> Markup {
    html! { section id=(id) { h2 { (heading) } (content) } }
}

fn scope(run: &Run, analysis: &Analysis) -> Markup {
    let sentences = crate::answers::sentences(run, analysis);
    let scope = sentences.iter().filter(|s| s.kind == crate::answers::Kind::Scope);
    html! { @for sentence in scope { p { (sentence.text) } } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn pages() -> Vec<String> {
        [fixture::run(), fixture::large(), fixture::quick(), fixture::classic()]
            .iter()
            .map(|(run, analysis)| page(run, analysis))
            .collect()
    }

    #[test]
    fn a_page_fetches_nothing() {
        for page in pages() {
            // The name of the SVG language is no fetch.
            let page = page.replace(r#"xmlns="http://www.w3.org/2000/svg""#, "");
            for forbidden in ["http:", "https:", "src=", "url(", "@import", "<link", "<script"] {
                assert!(!page.contains(forbidden), "{forbidden}");
            }
            let links = page.split("href=\"").skip(1);
            assert!(links.into_iter().all(|link| link.starts_with('#')));
        }
    }

    #[test]
    fn a_page_is_under_two_megabytes() {
        assert!(pages().iter().all(|page| page.len() < 2 << 20));
    }

    #[test]
    fn every_figure_has_a_table_twin_and_a_title_with_a_unit() {
        for page in pages() {
            let figures: Vec<&str> = page.split("<figure").skip(1).collect();
            assert!(!figures.is_empty());
            for figure in figures {
                let figure = figure.split("</figure>").next().unwrap_or_default();
                assert!(figure.contains("<table"));
                let label = figure.split("aria-label=\"").nth(1).and_then(|l| l.split('"').next());
                assert!(label.is_some_and(|label| label.contains('(') && label.contains(')')));
            }
        }
    }

    #[test]
    fn what_users_and_machines_write_is_escaped() {
        let hostile = "<script>alert(1)</script>\"'&";
        let (mut run, mut analysis) = fixture::run();
        run.header.name = Some(hostile.into());
        run.header.command.push(hostile.into());
        run.header.host.facts[0].value = iolens_model::reading::Reading::Exact(hostile.into());
        analysis.warnings.push(hostile.into());
        analysis.rejected[0].reason = hostile.into();
        analysis.cells[0].arms[1].arm.label = hostile.into();
        let page = page(&run, &analysis);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(1)"));
    }

    #[test]
    fn every_entry_of_the_contents_leads_somewhere() {
        let page = &pages()[0];
        assert!(CONTENTS.iter().all(|(id, _)| page.contains(&format!("<section id=\"{id}\""))));
    }
}
