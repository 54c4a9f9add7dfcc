//! The files of a run.

use iolens_document::Fact;
use iolens_model::file::{Destination, DestinationFacts};
use iolens_model::run::Run;

use crate::number::count;
use crate::rates::rate;

/// What is known of them; nothing in a run without files.
pub(in crate::sections) fn facts(run: &Run) -> Vec<Fact> {
    let Some(file) = &run.header.file else { return Vec::new() };
    let why = match file.size_reason.as_str() {
        "" => String::new(),
        why => format!(" ({why})"),
    };
    let said = match file.is_ours {
        true => format!("{}{why}, made for this run in {}", file.bytes, file.place),
        false => format!("{} ({}), the user's, only read", file.place, file.bytes),
    };
    let said = format!("{said}, on {}", file.file_system);
    let mut facts = vec![Fact::new("File", said)];
    if let Some(writing) = &file.writing {
        let regions = format!("{} of {}", count(writing.regions, "region"), writing.region);
        let said = match is_evicted(run) {
            true => format!(
                "{regions}, one for each engine; a direct engine's is evicted before each slice, \
                 as direct writes drop what is cached, the others' are cached and clean"
            ),
            false => format!("{regions}, one for each engine"),
        };
        facts.push(Fact::new("Regions", said));
        let said = match writing.dirty_background {
            Some(bytes) => format!(
                "no slice writes more than {bytes}, the dirty memory from which on the kernel \
                 writes back by itself"
            ),
            None => "from how much dirty memory on is not known".to_owned(),
        };
        facts.push(Fact::new("Write-back", said));
    }
    if let Some(destination) = &file.destination {
        let DestinationFacts { place, file_system } = destination;
        let said = format!(
            "a folder of ours in {place}, on {file_system}; each copy was compared with its source \
             by size, the first of each method in each trial by content, and all were removed, \
             with what was not on the device yet, before the next slice"
        );
        facts.push(Fact::new("Copied to", said));
    }
    if let Some(first) = file.first_pass {
        let bytes_per_s = file.bytes.0 as f64 / (first.0.max(1) as f64 / 1e9);
        let said = format!(
            "{first} from end to end, evicted, {}; compared with nothing, as a host or a device \
             may have cached the bytes from then on",
            rate(bytes_per_s)
        );
        facts.push(Fact::new("First pass", said));
    }
    facts
}

/// Whether direct engines write over what was there.
fn is_evicted(run: &Run) -> bool {
    let is_direct = run.header.engines.iter().any(|engine| engine.is_direct);
    let over =
        |axes: &iolens_model::file::WriteAxes| axes.destination.contains(&Destination::Existing);
    is_direct && run.header.plan.write().is_some_and(over)
}
