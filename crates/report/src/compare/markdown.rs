//! A comparison for a pull request, in the Markdown of GitHub: what changed first, the rest
//! folded.

use iolens_document::markdown::{escaped, folded};
use iolens_document::{Answer, Label, Text};

use super::tables::{self, Rows};
use super::{Compared, reading, screen};

/// The whole comment.
#[must_use]
pub fn markdown(compared: &Compared<'_>) -> String {
    let screen = screen::screen(compared);
    let line = |parts: &[Text]| {
        let parts: Vec<String> = parts.iter().map(|part| escaped(&part.words())).collect();
        parts.join(" · ")
    };
    let mut out = format!("**{}**\n\n{}\n\n", line(&screen.header), line(&screen.effort));
    if let Some(alarm) = &screen.alarm {
        out.push_str(&format!("**{}**\n\n", escaped(&alarm.words())));
    }
    let is_told = |answer: &&Answer| answer.label != Label::Next;
    for answer in screen.answers.iter().filter(is_told) {
        out.push_str(&format!("- **{}**: {}\n", answer.label.word(), line(&answer.said)));
    }
    for table in tables::tables(compared, usize::MAX, Rows::Changed) {
        let caption = escaped(&table.caption);
        out.push_str(&format!("\n{caption}, not shown to be the same:\n\n{}", table.markdown()));
    }
    let mut all = String::new();
    for table in tables::tables(compared, usize::MAX, Rows::All) {
        all.push_str(&format!("{}\n\n{}\n", escaped(&table.caption), table.markdown()));
    }
    out.push_str(&folded("Every method in every setting", &all));
    out.push_str(&folded("Inputs that differ", &tables::inputs(compared).markdown()));
    out.push_str(&folded("How to read it", &escaped(&reading(compared))));
    out
}
