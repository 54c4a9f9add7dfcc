//! The machine.

use iolens_model::axes::Topology;
use iolens_model::doctor::{Finding, State};
use iolens_model::host::{Fact, HostFacts, SwitchCost};
use iolens_model::plan::{NetAxes, NetworkOptions};
use iolens_model::reading::Reading;
use iolens_model::run::{FarFacts, Run, RunHeader};
use iolens_model::secret;
use iolens_model::units::{Bytes, Nanos, three_digits};
use iolens_stats::analysis::{Analysis, Told};
use maud::{Markup, html};

use crate::{arm_facts, number, words};

/// Facts by group, then what its building blocks cost.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let host = &run.header.host;
    super::block(
        "machine",
        "The machine",
        html! {
            div.columns {
                (super::files::facts(run))
                (origin(&run.header))
                (in_effect(run, &analysis.told))
                @for group in groups(host) {
                    div.group {
                        h3 { (group) }
                        (facts(host.facts.iter().filter(|f| f.group == group).collect()))
                    }
                }
                (calibration(run))
            }
            @if let Some(far) = &run.header.far { (other(far)) }
        },
    )
}

/// Where a run came from that was imported.
fn origin(header: &RunHeader) -> Markup {
    html! {
        @if let Some(origin) = &header.origin {
            div.group {
                h3 { "origin" }
                dl.facts {
                    dt { "host" } dd { (origin.host) }
                    dt { "imported from" } dd { (origin.path) }
                    dt { "imported on" } dd { (iolens_model::moment::utc(origin.imported_unix_ns)) }
                }
            }
        }
    }
}

/// The machine at the other end.
fn other(far: &FarFacts) -> Markup {
    let [here, there] = far.direction.words();
    let rows = [
        ("reached with", secret::redacted(std::slice::from_ref(&far.launcher)).concat()),
        ("this machine", format!("{} ({here})", far.near_address)),
        ("the other machine", format!("{} ({there})", far.address)),
        ("build there", far.build.clone()),
    ];
    html! {
        h3 #other-machine { "The other machine" }
        div.columns {
            div.group {
                h4 { "in effect in this run" }
                dl.facts { @for (name, value) in rows { dt { (name) } dd { (value) } } }
            }
            @for group in groups(&far.host) {
                div.group {
                    h4 { (group) }
                    (facts(far.host.facts.iter().filter(|f| f.group == group).collect()))
                }
            }
            @for (machine, found) in [("there", &far.findings), ("here", &far.near_findings)] {
                @if !found.is_empty() {
                    div.group { h4 { "what doctor found " (machine) } (findings(found)) }
                }
            }
        }
    }
}

/// What limits numbers on a machine, and folded what does not.
fn findings(found: &[Finding]) -> Markup {
    let (fine, limiting): (Vec<&Finding>, Vec<&Finding>) =
        found.iter().partition(|finding| finding.state == State::Ok);
    html! {
        dl.facts {
            @for finding in limiting {
                dt { (finding.name) } dd { (finding.found) "; " (finding.effect) }
            }
        }
        details {
            summary { (fine.len()) " that limit nothing" }
            dl.facts { @for finding in fine { dt { (finding.name) } dd { (finding.found) } } }
        }
    }
}

/// The headings of facts, in their order.
fn groups(host: &HostFacts) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for fact in &host.facts {
        if !groups.contains(&fact.group.as_str()) {
            groups.push(&fact.group);
        }
    }
    groups
}

fn reading(value: &Reading<String>) -> Markup {
    html! {
        @match value {
            Reading::Exact(value) => { (value) }
            Reading::NotMeasured { why } => { span.faint { "not known: " (why) } }
        }
    }
}

/// What is known, and folded what is not, with the reasons.
fn facts(facts: Vec<&Fact>) -> Markup {
    let (known, unknown): (Vec<&Fact>, Vec<&Fact>) =
        facts.into_iter().partition(|fact| matches!(fact.value, Reading::Exact(_)));
    let listed = |facts: &[&Fact]| {
        html! {
            dl.facts { @for fact in facts { dt { (fact.name) } dd { (reading(&fact.value)) } } }
        }
    };
    html! {
        @if !known.is_empty() { (listed(&known)) }
        @if !unknown.is_empty() {
            details {
                summary { (unknown.len()) " not known" }
                (listed(&unknown))
            }
        }
    }
}

/// The settings under which this run was measured, as it asked for them.
fn in_effect(run: &Run, told: &Told) -> Markup {
    let plan = &run.header.plan;
    let cpus = plan.cpus.as_ref().unwrap_or(&run.header.host.cpus);
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    html! {
        div.group {
            h3 { "in effect in this run" }
            dl.facts {
                dt { "CPUs" } dd { (cpus.join(", ")) }
                @if let Some(net) = plan.net() { (network_in_effect(net)) }
                @for fact in arm_facts::of(told, None) {
                    dt { (fact.arm) ", " (fact.name) } dd { (fact.values.join(", ")) }
                }
            }
        }
    }
}

fn network_in_effect(net: &NetAxes) -> Markup {
    html! {
        dt { "TCP congestion control" } dd { (net.socket.congestion) }
        @if net.topologies.contains(&Topology::Veth) {
            dt { "MTU of veth" } dd { (words::values(&net.network.mtu_bytes)) " bytes" }
        }
        @if net.topologies.contains(&Topology::Sink) {
            dt { "MTU of sink" } dd { (NetworkOptions::SINK_MTU_BYTES) " bytes" }
        }
        dt { "socket buffers asked for" }
        dd { (words::values(&net.socket.buffer_bytes)) }
        dt { "TCP_NODELAY" } dd { (if net.socket.nodelay { "on" } else { "off" }) }
    }
}

/// What is handed over: a bare CPU, or one whose caches the other has filled.
fn handover(switch: &SwitchCost) -> String {
    match switch.working_set {
        Bytes(0) => "handing a CPU to another thread".to_owned(),
        set => format!("the same, each thread reading {set}"),
    }
}

fn calibration(run: &Run) -> Markup {
    let c = &run.header.calibration;
    let rate = |bytes_per_s: f64| format!("{} GB/s", three_digits(bytes_per_s / 1e9));
    let all = crate::words::threads(c.threads);
    let costs = &c.costs;
    let scans = [
        ("read in cache, ", "1 thread", costs.scan_hot_bytes_per_s),
        ("read in cache, ", &all, costs.scan_hot_all_bytes_per_s),
        ("read out of cache, ", "1 thread", costs.scan_cold_bytes_per_s),
        ("read out of cache, ", &all, costs.scan_cold_all_bytes_per_s),
    ];
    html! {
        div.group {
            h3 { "calibration" }
            dl.facts {
                dt { "memcpy in cache, 1 thread" } dd { (rate(c.memcpy_hot_bytes_per_s)) }
                dt { "memcpy in cache, " (&all) } dd { (rate(c.memcpy_hot_all_bytes_per_s)) }
                dt { "memcpy out of cache, 1 thread" } dd { (rate(c.memcpy_cold_bytes_per_s)) }
                dt { "memcpy out of cache, " (&all) } dd { (rate(c.memcpy_cold_all_bytes_per_s)) }
                @for (what, by, bytes_per_s) in scans {
                    dt { (what) (by) } dd { (rate(bytes_per_s)) }
                }
                @if let Some(ns) = costs.thread_start_ns {
                    dt { "starting and joining a thread" } dd { (number::nanoseconds(ns)) }
                }
                @if let Some(ns) = costs.counted_handover_ns {
                    dt { "handing a CPU to another thread, counters open" }
                    dd { (number::nanoseconds(ns)) }
                }
                @for switch in &costs.switches {
                    dt { (handover(switch)) }
                    dd {
                        (number::nanoseconds(switch.handover_ns)) ", without the switch "
                        (number::nanoseconds(switch.alone_ns))
                    }
                }
                dt { "fixed loop" } dd { (Nanos(c.loop_ns)) }
                dt { "took" } dd { (Nanos(c.duration_ns)) }
            }
        }
    }
}
