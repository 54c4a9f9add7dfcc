//! The answers, first.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::answers::{Kind, Sentence, sentences};
use crate::parts;
use crate::results::{self, Each};
use crate::table::Table;

/// Curves up to which each has a row for every family.
const CURVES: usize = 4;

/// Curves at one glance, the noise floor and the cautions in the open, the
/// sentence of every cell behind a fold where there are many.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let all = sentences(run, analysis);
    let of = |kind: Kind| all.iter().filter(move |s| s.kind == kind).collect::<Vec<_>>();
    let (headlines, cells) = (of(Kind::Headline), of(Kind::Answer));
    super::block(
        "answers",
        "Answers",
        html! {
            @for sentence in of(Kind::Alarm) { p.alarm { (prose(run, &sentence.text)) } }
            @if headlines.is_empty() {
                (list(run, "lead", &cells))
                (turns(run, &of(Kind::Turns)))
            } @else {
                (takeaways(run, &headlines))
                (families(run, analysis))
                (turns(run, &of(Kind::Turns)))
                (crossings(run, analysis))
                details open[cells.len() <= 8] {
                    summary { "Size by size" }
                    (list(run, "answers", &cells))
                }
            }
            ul.remarks {
                @for sentence in of(Kind::NoiseFloor).iter().chain(&of(Kind::Caution)) {
                    li { (prose(run, &sentence.text)) }
                }
            }
        },
    )
}

/// What thread counts mean where threads share CPUs.
fn turns(run: &Run, sentences: &[&Sentence]) -> Markup {
    html! { @for sentence in sentences { p.flag { (prose(run, &sentence.text)) } } }
}

/// One line per stretch of sizes, who leads it in bold.
pub(super) fn takeaways(run: &Run, headlines: &[&Sentence]) -> Markup {
    html! {
        dl.lead { @for sentence in headlines {
            dt { (sentence.subject.as_deref().unwrap_or("")) }
            dd {
                @if sentence.indicative { span.faint { "Indicative: " } }
                ul.takeaways { @for point in &sentence.points {
                    li {
                        b { (prose(run, &point.lead)) }
                        @if !point.detail.is_empty() { ", " (prose(run, &point.detail)) }
                    }
                } }
            }
        } }
    }
}

/// Where one arm overtakes another; the ratios stand with the questions.
fn crossings(run: &Run, analysis: &Analysis) -> Markup {
    let main = results::crossovers(run, analysis, false);
    let all = results::crossovers(run, analysis, true);
    let more = all.rows.len() > main.rows.len();
    let bare = |table: Table| Table { caption: String::new(), ..table };
    html! {
        @if !main.rows.is_empty() {
            h3 { (main.caption) }
            (bare(main).html())
            @if more {
                details {
                    summary { "Every arm against " (run.header.plan.baseline) }
                    (bare(all).html())
                }
            }
            p.aside {
                "Bands, ratios and intervals: "
                a href="#q-one-copy" { "one copy against two" } ", "
                a href="#q-zero-copy" { "zero-copy" } "."
            }
        }
    }
}

/// Who is cheapest of each family; nothing in a run that one figure shows.
fn families(run: &Run, analysis: &Analysis) -> Markup {
    let curves = results::curves(analysis).len();
    let each = if curves > CURVES { Each::Message } else { Each::Family };
    html! {
        @if parts::is_grouped(analysis) {
            (results::cheapest(&run.header.plan, analysis, each).html())
            p.aside { "Every ratio, family by family: " a href="#families" { "by family" } "." }
        }
    }
}

pub(super) fn list(run: &Run, class: &str, sentences: &[&Sentence]) -> Markup {
    html! {
        dl.(class) { @for (i, sentence) in sentences.iter().enumerate() {
            @let subject = sentence.subject.as_deref();
            @let said = i > 0 && sentences[i - 1].subject.as_deref() == subject;
            dt { @if !said { (subject.unwrap_or("")) } }
            dd {
                @if sentence.indicative { span.faint { "Indicative: " } }
                (prose(run, &sentence.claim))
            }
        } }
    }
}

/// A sentence with the names of arms set apart and units kept with their
/// numbers.
pub(super) fn prose(run: &Run, text: &str) -> Markup {
    let is_arm = |word: &str| run.header.plan.primitives.iter().any(|primitive| primitive == word);
    let words: Vec<&str> = text.split(' ').collect();
    html! {
        @for (i, word) in words.iter().enumerate() {
            @let name = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            @if i > 0 { (space(words[i - 1], word)) }
            @if is_arm(name) {
                @let (before, after) = word.split_once(name).unwrap_or((word, ""));
                (before) code { (name) } (after)
            } @else { (word) }
        }
    }
}

/// The space between two words: unbroken between a number and its unit.
fn space(before: &str, word: &str) -> &'static str {
    const UNITS: [&str; 6] = ["%", "B", "KiB", "MiB", "GiB", "thread"];
    let number = before.ends_with(|c: char| c.is_ascii_digit());
    if number && UNITS.iter().any(|unit| word.starts_with(unit)) { "\u{a0}" } else { " " }
}
