//! The answers, first.

use iolens_model::run::Run;
use maud::{Markup, html};

use crate::answers::Sentence;

pub(super) fn list(run: &Run, class: &str, sentences: &[&Sentence]) -> Markup {
    html! {
        dl.(class) { @for (i, sentence) in sentences.iter().enumerate() {
            @let subject = sentence.subject.as_deref();
            @let said = i > 0 && sentences[i - 1].subject.as_deref() == subject;
            dt { @if !said { (subject.unwrap_or("")) } }
            dd {
                @if sentence.indicative { span.faint { "Indicative: " } }
                (prose(run, sentence.claim()))
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
