//! How to get these numbers again.

use iolens_model::parse;
use iolens_model::plan::NetAxes;
use iolens_model::run::{Run, RunHeader};
use iolens_model::shell;
use maud::{Markup, html};

use crate::words;

/// Its id and heading.
pub(super) const NAMED: (&str, &str) = ("reproduce", "How to reproduce");

/// `taskset -c 0,2 `, where whoever started the process had pinned it and the plan does not
/// say so.
fn pinned(header: &RunHeader) -> String {
    let used = &header.host.cpus;
    let online = parse::cpus(&header.host.fact("cpu", "online")).unwrap_or_default();
    let is_pinned = online.iter().any(|cpu| !used.contains(cpu));
    match is_pinned && header.plan.cpus.is_none() && !used.is_empty() {
        true => {
            let cpus = used.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            format!("taskset -c {cpus} ")
        }
        false => String::new(),
    }
}

/// Command line, seed, build and plan.
pub(super) fn section(run: &Run) -> Markup {
    let header = &run.header.without_secrets();
    let plan = &header.plan;
    let stored = serde_json::to_string_pretty(plan).unwrap_or_default();
    let (id, heading) = NAMED;
    super::block(
        id,
        heading,
        html! {
            pre.command { code { (pinned(header)) (shell::join(&header.command)) } }
            dl.facts {
                dt { "run" } dd { code { (header.id) } }
                dt { "build" } dd { (header.build) }
                dt { "seed" } dd { (plan.seed) }
                dt { "schedule" } dd { (words::schedule(plan)) }
                @if let Some(NetAxes { socket, .. }) = plan.net() {
                    dt { "sockets" } dd {
                        (socket.congestion) ", buffers " (words::values(&socket.buffer_bytes))
                        ", TCP_NODELAY " (if socket.nodelay { "on" } else { "off" })
                        ", recv asks for " (words::values(&socket.receive_bytes))
                    }
                }
                dt { "ended by" }
                dd { (header.end.as_ref().map_or("not ended", |end| end.stopped_by.word())) }
            }
            details {
                summary { "The plan as stored" }
                pre { code { (stored) } }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use iolens_model::host::Fact;
    use iolens_model::reading::Reading;

    use super::pinned;
    use crate::fixture;

    #[test]
    fn who_was_pinned_is_pinned_again() {
        let mut header = fixture::run().0.header;
        let mut check = |online: &str, cpus: &[u32], asked: Option<Vec<u32>>, expect: &str| {
            header.host.facts = vec![Fact {
                group: "cpu".to_owned(),
                name: "online".to_owned(),
                value: Reading::Exact(online.to_owned()),
            }];
            (header.host.cpus, header.plan.cpus) = (cpus.to_vec(), asked);
            assert_eq!(pinned(&header), expect);
        };
        check("0-3", &[0, 2], None, "taskset -c 0,2 ");
        check("0-1", &[0, 1], None, "");
        check("0-1", &[0], Some(vec![0]), "");
        check("who knows", &[0], None, "");
    }
}
