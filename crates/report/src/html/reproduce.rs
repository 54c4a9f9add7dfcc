//! How to get these numbers again.

use iolens_model::plan::NetAxes;
use iolens_model::run::Run;
use maud::{Markup, html};

use crate::words;

/// Its id and heading.
pub(super) const NAMED: (&str, &str) = ("reproduce", "How to reproduce");

/// Command line, seed, build and plan.
pub(super) fn section(run: &Run) -> Markup {
    let header = &run.header;
    let plan = &header.plan;
    let command: Vec<String> = header.command.iter().map(|argument| shell(argument)).collect();
    let stored = serde_json::to_string_pretty(plan).unwrap_or_default();
    let (id, heading) = NAMED;
    super::block(
        id,
        heading,
        html! {
            pre.command { code { (command.join(" ")) } }
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

/// An argument as a POSIX shell reads it back.
fn shell(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments_survive_a_shell() {
        assert_eq!(super::shell("64KiB..1MiB"), "64KiB..1MiB");
        assert_eq!(super::shell("it's & more"), r"'it'\''s & more'");
    }
}
