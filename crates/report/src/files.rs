//! What a run of `file` says besides what every study says: of its file, and what the
//! page cache and the device had to do with its times.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::answers::{Kind, Sentence};

/// The sentences about the file.
pub(crate) fn sentences(run: &Run, _analysis: &Analysis) -> Vec<Sentence> {
    let Some(file) = &run.header.file else { return Vec::new() };
    let whose = if file.is_ours { "made for this run in" } else { "the user's" };
    let text = format!(
        "The file: {}, {whose} {}, on {} ({}).",
        file.bytes, file.place, file.file_system, file.size_reason
    );
    vec![Sentence { kind: Kind::Scope, text, indicative: false, subject: None }]
}
