//! A comparison for a pull request, in the Markdown of GitHub: what differs, the answer,
//! what changed; the rest is folded.

use super::tables::{self, Rows};
use super::{Compared, sentences};
use crate::answers::{Kind, Sentence};
use iolens_document::markdown::{escaped, folded};

/// The whole comment.
#[must_use]
pub fn markdown(compared: &Compared<'_>) -> String {
    let sentences = sentences::all(compared);
    let mut out = format!("{}\n", escaped(&compared.title()));
    let inputs = tables::inputs(compared);
    match inputs.rows.is_empty() {
        true => out.push_str("\nNo input differs that the runs have recorded.\n"),
        false => out.push_str(&format!("\n**Inputs that differ**\n\n{}", inputs.markdown())),
    }
    out.push('\n');
    for sentence in sentences.iter().filter(|sentence| is_answer(sentence)) {
        let text = escaped(&sentence.text);
        match sentence.kind {
            Kind::Headline | Kind::Alarm => out.push_str(&format!("**{text}**\n\n")),
            _ => out.push_str(&format!("- {text}\n")),
        }
    }
    for table in tables::tables(compared, usize::MAX, Rows::Changed) {
        let caption = escaped(&table.caption);
        out.push_str(&format!(
            "\n{caption}, what is not shown to be the same:\n\n{}",
            table.markdown()
        ));
    }
    let mut all = String::new();
    for table in tables::changes(compared, usize::MAX) {
        all.push_str(&format!("{}\n\n{}\n", escaped(&table.caption), table.markdown()));
    }
    out.push_str(&folded("Every arm in every cell", &all));
    let missing = tables::missing(compared);
    let lines: String = missing.iter().map(|line| format!("- {}\n", escaped(line))).collect();
    out.push_str(&folded("What one run alone has", &lines));
    let others = sentences.iter().filter(|sentence| !is_answer(sentence));
    let lines: String = others.map(|s| format!("- {}\n", escaped(&s.text))).collect();
    out.push_str(&folded("How to read it", &lines));
    out
}

fn is_answer(sentence: &Sentence) -> bool {
    !matches!(sentence.kind, Kind::NoiseFloor | Kind::Scope)
}
