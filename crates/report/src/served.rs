//! What a server prints when it ends: for a person, a line for each thing; for
//! programs, one object.

use iolens_model::server::{Mishap, Served};
use iolens_model::units::three_digits;

use crate::groups::{fields, named, object};
use crate::json;
use crate::number::{nanoseconds, tasks};
use crate::transfer::{cpu_ns, named_rows, unread};
use iolens_document::Style;

/// What a server did, for a terminal.
pub fn text(served: &Served, style: &Style) -> String {
    let Served { model, service, address, .. } = served;
    let headline = format!("{model}: served {service} at {address}");
    named_rows(&headline, &rows(served), style)
}

/// What a server did, for programs; every kind of mishap has its count.
pub fn json(served: &Served) -> String {
    let count = |mishap: Mishap| {
        served.mishaps.iter().find(|(kind, _)| *kind == mishap).map_or(0, |(_, count)| *count)
    };
    let mishaps = Mishap::ALL.iter().map(|&kind| (kind.word().into(), count(kind).into()));
    let own = fields!(Some(served);
        model service address connections requests requests_by_task tasks tasks_at_once failure
    );
    let more = named! {
        schema: json::SCHEMA,
        time_ns: served.time,
        mishaps: object(mishaps),
    };
    json::print(&object([own, more, cpu_ns(served.cpu)].concat()))
}

fn rows(served: &Served) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("requests", requests(served)),
        ("connections", served.connections.to_string()),
        ("seconds", format!("{:.6}, from when it listened", served.time.as_seconds())),
        ("CPU time", cpu_time(served)),
    ];
    let trouble = served.mishaps.iter().map(|(kind, count)| format!("{count} × {}", kind.text()));
    rows.extend(trouble.map(|text| ("went wrong", text)));
    rows
}

/// `12, 5 to 7 by each of 2 threads or processes`, where each has a count of its own; those
/// that follow one another add to one.
fn requests(served: &Served) -> String {
    let by_task = &served.requests_by_task;
    match (by_task.iter().min(), by_task.iter().max()) {
        (Some(_), Some(_)) if served.tasks > served.tasks_at_once => format!(
            "{}, by {}, at most {} of them at once",
            served.requests,
            tasks(served.tasks),
            served.tasks_at_once
        ),
        (Some(least), Some(most)) if by_task.len() > 1 => format!(
            "{}, {least} to {most} by each of {}",
            served.requests,
            tasks(by_task.len() as u64)
        ),
        _ => served.requests.to_string(),
    }
}

/// All of it, also what it does to begin and to wait.
fn cpu_time(served: &Served) -> String {
    let Some(cpu) = served.cpu else { return unread() };
    let sum_ns = cpu.sum().0 as f64;
    let per_request = match served.requests {
        0 => String::new(),
        requests => format!("; {} per request", nanoseconds(sum_ns / requests as f64)),
    };
    let busy = match served.time.0 {
        0 => String::new(),
        time_ns => format!("; {} CPUs on average", three_digits(sum_ns / time_ns as f64)),
    };
    format!("{}{per_request}{busy}", cpu.in_words(""))
}

#[cfg(test)]
mod tests {
    use iolens_model::transfer::Cpu;
    use iolens_model::units::Nanos;

    use super::*;

    const PLAIN: Style = Style::plain(100);

    fn served() -> Served {
        Served {
            model: "thread_pool".to_owned(),
            service: "echo".to_owned(),
            address: "127.0.0.1:4000".to_owned(),
            time: Nanos(2_500_000_000),
            connections: 3,
            requests: 120,
            mishaps: vec![(Mishap::NotANumber, 2), (Mishap::NoDescriptor, 7)],
            requests_by_task: vec![50, 70],
            tasks: 2,
            tasks_at_once: 2,
            cpu: Some(Cpu { user: Nanos(1_000_000), system: Nanos(5_000_000) }),
            failure: None,
        }
    }

    #[test]
    fn a_person_reads_what_was_done_and_what_went_wrong() {
        insta::assert_snapshot!(text(&served(), &PLAIN));
        let quiet = Served {
            requests: 0,
            mishaps: Vec::new(),
            requests_by_task: Vec::new(),
            cpu: None,
            ..served()
        };
        insta::assert_snapshot!(text(&quiet, &PLAIN));
    }

    #[test]
    fn threads_that_follow_one_another_are_counted_each() {
        let short = Served { requests: 10_000, tasks: 10_000, tasks_at_once: 355, ..served() };
        let expect = "10000, by 10000 threads or processes, at most 355 of them at once";
        assert_eq!(requests(&short), expect);
    }

    #[test]
    fn a_program_reads_every_count() {
        insta::assert_snapshot!(json(&served()));
    }
}
