//! Programs of the user's, compared: the screen, the page and the forms for programs of a run of
//! `ab`. What is shown is an `AbAnalysis`, so that the entry has figures and exports alone.

mod calls;
pub mod compare;
mod figure;
pub mod history;
mod json;
mod links;
mod page;
mod screen;
#[cfg(test)]
pub(crate) mod tests;
mod words;

pub use json::{SCHEMA, json};
pub use page::{first, markdown, page, text};

use super::entry::{Ends, OfSetting, StudyColumns, StudyReport};

pub(super) static AB: StudyReport = StudyReport {
    nothing: "turn of an empty loop",
    common: |_| Vec::new(),
    screen: |_, _, _| (),
    next: |_, _| Vec::new(),
    question: "Which program is faster?",
    claim: |_, _| None,
    sections: |_, _, _| Vec::new(),
    last: |_, _| None,
    setting: OfSetting::Arms(|_, _, _, _| iolens_document::table::Table::new("", Vec::new())),
    plates: |run, _| figure::figure(run).into_iter().collect(),
    figures: |_, _, _, _| Vec::new(),
    after: "answer",
    columns: StudyColumns {
        ends: Ends::One,
        keys: &[],
        arms: "{arm} ns_per_{unit} {units} cpu_ns voluntary_switches involuntary_switches
            minor_faults major_faults link host",
        whole: ["", ""],
        axes: "values",
        slice: "{units} cpu_ns voluntary_switches involuntary_switches minor_faults major_faults",
        figures: "{ns_per_operation:interval} cpu_ns_per_operation",
        parts: &[],
    },
};
