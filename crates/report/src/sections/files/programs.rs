//! Programs that copy: how they are called, and what starting them takes.

use iolens_document::{Fact, Node, Text};
use iolens_model::copy::ProgramStart;
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_model::{secret, shell};
use iolens_stats::analysis::Analysis;

use crate::copying;
use crate::number::count;

pub(super) fn nodes(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let programs = run.header.engines.iter().filter_map(|facts| {
        let line = shell::join(secret::redacted(facts.program.as_ref()?));
        let own = if line.contains("{block}") { "" } else { ", in blocks of its own choice" };
        let start = copying::start_of(&run.header, &analysis.told, &facts.id);
        let start = start.map_or_else(String::new, |start| {
            let ProgramStart { median_ns, min_ns, max_ns, runs, .. } = start;
            format!(
                "; {} to start ({} to {}, {})",
                Nanos(median_ns),
                Nanos(min_ns),
                Nanos(max_ns),
                count(runs, "start")
            )
        });
        Some(Fact::new(&facts.id, Text::code(line).and(format!("{own}{start}"))))
    });
    let facts: Vec<Fact> = programs.collect();
    if facts.is_empty() {
        return Vec::new();
    }
    let said = "As whole processes, from the call that starts them to the end of waiting, on the \
                CPU of the engine's thread. Engines are timed from their first call to their last, \
                with both files open. Starts were timed with an empty file, apart from the copies.";
    vec![Node::aside(said), Node::Facts(facts)]
}
