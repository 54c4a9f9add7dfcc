//! The machine, and how to get the numbers again.

use iolens_document::{Fact, Joined, Node, Section, Text};
use iolens_model::axes::Topology;
use iolens_model::doctor::{Finding, State};
use iolens_model::file::{Destination, DestinationFacts, WriteAxes};
use iolens_model::host::{Calibration, Fact as HostFact, HostFacts, SwitchCost};
use iolens_model::plan::{NetAxes, NetworkOptions};
use iolens_model::reading::Reading;
use iolens_model::run::{FarFacts, Run, RunHeader};
use iolens_model::units::{Bytes, Nanos, three_digits};
use iolens_model::{command_line, parse, units};
use iolens_stats::analysis::{Analysis, Told};

use super::Form;
use crate::groups::grouped;
use crate::number::rate;
use crate::number::{count, nanoseconds};
use crate::{arms, words};

pub(crate) fn section(run: &Run, analysis: &Analysis, form: Form) -> Section {
    let header = &run.header.without_secrets();
    let command = format!("{}{}", pinned(header), command_line::join(&header.command));
    let mut nodes = Vec::new();
    match form {
        Form::Terminal { .. } => {
            let mut facts = vec![
                Fact::new("Command", Text::code(command)),
                Fact::new("Seed, build", format!("{}, {}", header.plan.seed, header.build)),
            ];
            facts.extend(origin(header).map(|said| Fact::new("Imported", said)));
            facts.extend(of_files(run));
            nodes.push(Node::Facts(facts));
        }
        Form::Page => {
            nodes.push(Node::Code(command));
            nodes.push(Node::Facts(reproduce(header)));
            // Programs of the user's have a table of their own.
            nodes.extend(header.plan.ab().is_none().then(|| plan(header)));
            nodes.push(Node::Groups(groups(run, &analysis.told)));
            nodes.extend(header.far.as_ref().map(other).into_iter().flatten());
        }
    }
    Section::new("machine", "Machine and command", nodes)
}

/// `taskset -c 0,2 `, where whoever started the process had pinned it and the plan does not
/// say so.
fn pinned(header: &RunHeader) -> String {
    let used = &header.host.cpus;
    let online = parse::cpus(&header.host.fact("cpu", "online")).unwrap_or_default();
    let is_pinned = online.iter().any(|cpu| !used.contains(cpu));
    match is_pinned && header.plan.cpus.is_none() && !used.is_empty() {
        true => {
            let cpus = used.iter().map(u32::to_string).joined(",");
            format!("taskset -c {cpus} ")
        }
        false => String::new(),
    }
}

/// Where a run came from that was imported.
fn origin(header: &RunHeader) -> Option<String> {
    let origin = header.origin.as_ref()?;
    let on = units::utc(origin.imported_unix_ns);
    Some(format!("measured on {}, from {} on {on}", origin.host, origin.path))
}

fn reproduce(header: &RunHeader) -> Vec<Fact> {
    let plan = &header.plan;
    let mut facts = vec![
        Fact::new("run", Text::code(&header.id)),
        Fact::new("build", header.build.clone()),
        Fact::new("seed", plan.seed.to_string()),
        Fact::new("schedule", words::schedule(plan)),
    ];
    let warm_up = plan.ab().and_then(|axes| axes.warm_up);
    facts.extend(
        warm_up.map(|time| Fact::new("warm-up", format!("{time} of each process in each trial"))),
    );
    facts.extend(plan.net().map(|NetAxes { congestion, tuning, .. }| {
        let sockets = format!(
            "{congestion}, buffers {}, TCP_NODELAY on, recv asks for {}",
            words::values(&tuning.socket_buffer_bytes),
            words::values(tuning.receive_size_bytes.iter().flatten())
        );
        Fact::new("sockets", sockets)
    }));
    facts.extend(origin(header).map(|said| Fact::new("imported", said)));
    facts
}

fn plan(header: &RunHeader) -> Node {
    let stored = serde_json::to_string_pretty(&header.plan).unwrap_or_default();
    Node::fold("The plan as stored", vec![Node::Code(stored)])
}

/// What is known of the machine, by what it is about.
fn groups(run: &Run, told: &Told) -> Vec<(String, Vec<Node>)> {
    let file = Node::facts(of_files(run)).map(|node| ("file".to_owned(), vec![node]));
    let facts = |name: &str, facts| (name.to_owned(), vec![Node::Facts(facts)]);
    let mut all: Vec<(String, Vec<Node>)> = file.into_iter().collect();
    all.push(facts("in effect in this run", in_effect(run, told)));
    all.extend(host_groups(&run.header.host));
    all.extend(run.header.calibration.as_ref().map(|c| facts("calibration", calibration(c))));
    all
}

fn host_groups(host: &HostFacts) -> Vec<(String, Vec<Node>)> {
    let facts = host.facts.iter().map(|fact| (fact.group.clone(), fact));
    grouped(facts).into_iter().map(|(name, facts)| (name, host_facts(facts))).collect()
}

/// What is known, and folded what is not, with the reasons.
fn host_facts(facts: Vec<&HostFact>) -> Vec<Node> {
    let (known, unknown): (Vec<&HostFact>, Vec<&HostFact>) =
        facts.into_iter().partition(|fact| matches!(fact.value, Reading::Exact(_)));
    let one = |fact: &&HostFact| match &fact.value {
        Reading::Exact(value) => Fact::new(&fact.name, value.clone()),
        Reading::NotMeasured { why } => {
            Fact { is_faint: true, ..Fact::new(&fact.name, format!("not known: {why}")) }
        }
    };
    let listed = |facts: &[&HostFact]| Node::facts(facts.iter().map(one).collect());
    let folded = |list| Node::fold(format!("{} not known", unknown.len()), vec![list]);
    listed(&known).into_iter().chain(listed(&unknown).map(folded)).collect()
}

/// What is known of the files of a run; nothing in a run without files.
fn of_files(run: &Run) -> Vec<Fact> {
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
                "no slice writes more than {bytes}, above which the kernel starts writing back \
                 by itself"
            ),
            None => "when the kernel starts writing back by itself is not known".to_owned(),
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
    let over = |axes: &WriteAxes| axes.destination.contains(&Destination::Existing);
    is_direct && run.header.plan.write().is_some_and(over)
}

/// The settings under which this run was measured, as it asked for them.
fn in_effect(run: &Run, told: &Told) -> Vec<Fact> {
    let plan = &run.header.plan;
    let cpus = plan.cpus.as_ref().unwrap_or(&run.header.host.cpus);
    let cpus = cpus.iter().map(ToString::to_string);
    let mut facts = vec![Fact::new("CPUs", cpus.joined(", "))];
    if let Some(net) = plan.net() {
        facts.push(Fact::new("TCP congestion control", net.congestion.clone()));
        let of_veth = words::values(net.tuning.mtu_bytes.iter().flatten());
        for (topology, bytes) in [
            (Topology::Veth, of_veth),
            (Topology::Sink, NetworkOptions::SINK_MTU_BYTES.to_string()),
        ] {
            if net.topologies.contains(&topology) {
                facts.push(Fact::new(format!("MTU of {topology}"), format!("{bytes} bytes")));
            }
        }
    }
    facts.extend(arms::facts(told, None).into_iter().map(|fact| {
        let name = format!("{} ({})", fact.name, fact.arms.join(", "));
        Fact::new(name, fact.values.join(", "))
    }));
    facts
}

/// What is handed over: a bare CPU, or one whose caches the other has filled.
fn handover(switch: &SwitchCost) -> String {
    match switch.working_set {
        Bytes(0) => "handing a CPU to another thread".to_owned(),
        set => format!("the same, each thread reading {set}"),
    }
}

fn calibration(c: &Calibration) -> Vec<Fact> {
    let (costs, all) = (&c.costs, words::threads(c.threads));
    let one = "1 thread";
    let rates = [
        ("memcpy in cache", one, c.memcpy_hot_bytes_per_s),
        ("memcpy in cache", &all, c.memcpy_hot_all_bytes_per_s),
        ("memcpy out of cache", one, c.memcpy_cold_bytes_per_s),
        ("memcpy out of cache", &all, c.memcpy_cold_all_bytes_per_s),
        ("read in cache", one, costs.scan_hot_bytes_per_s),
        ("read in cache", &all, costs.scan_hot_all_bytes_per_s),
        ("read out of cache", one, costs.scan_cold_bytes_per_s),
        ("read out of cache", &all, costs.scan_cold_all_bytes_per_s),
    ];
    let mut facts: Vec<Fact> = rates
        .map(|(what, by, bytes_per_s)| {
            let rate = three_digits(bytes_per_s / 1e9);
            Fact::new(format!("{what}, {by}"), format!("{rate} GB/s"))
        })
        .into();
    let start = costs.thread_start_ns.map(nanoseconds);
    facts.extend(start.map(|ns| Fact::new("starting and joining a thread", ns)));
    let counted = costs.counted_handover_ns.map(nanoseconds);
    let name = "handing a CPU to another thread, counters open";
    facts.extend(counted.map(|ns| Fact::new(name, ns)));
    facts.extend(costs.switches.iter().map(|switch| {
        let alone = nanoseconds(switch.alone_ns);
        let took = nanoseconds(switch.handover_ns);
        Fact::new(handover(switch), format!("{took}, without the switch {alone}"))
    }));
    facts.push(Fact::new("fixed loop", Nanos(c.loop_ns).to_string()));
    facts.push(Fact::new("took", Nanos(c.duration_ns).to_string()));
    facts
}

/// The machine at the other end.
fn other(far: &FarFacts) -> Vec<Node> {
    let [here, there] = far.direction.words();
    let reached = command_line::redacted(std::slice::from_ref(&far.launcher)).concat();
    let mut groups = vec![(
        "in effect in this run".to_owned(),
        vec![Node::Facts(vec![
            Fact::new("reached with", reached),
            Fact::new("this machine", format!("{} ({here})", far.near_address)),
            Fact::new("the other machine", format!("{} ({there})", far.address)),
            Fact::new("build there", far.build.clone()),
        ])],
    )];
    groups.extend(host_groups(&far.host));
    for (machine, found) in [("there", &far.findings), ("here", &far.near_findings)] {
        if !found.is_empty() {
            groups.push((format!("what doctor found {machine}"), findings(found)));
        }
    }
    vec![Node::Heading("The other machine".to_owned()), Node::Groups(groups)]
}

/// What limits numbers on a machine, and folded what does not.
fn findings(found: &[Finding]) -> Vec<Node> {
    let (fine, limiting): (Vec<&Finding>, Vec<&Finding>) =
        found.iter().partition(|finding| finding.state == State::Ok);
    let limits = |f: &&Finding| Fact::new(f.name.clone(), format!("{}; {}", f.found, f.effect));
    let found = |f: &&Finding| Fact::new(f.name.clone(), f.found.clone());
    let summary = format!("{} that limit nothing", count(fine.len(), "finding"));
    let fine = fine.iter().map(found).collect();
    vec![
        Node::Facts(limiting.iter().map(limits).collect()),
        Node::fold(summary, vec![Node::Facts(fine)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::pinned;
    use crate::fixture;
    use iolens_model::host::Fact;
    use iolens_model::reading::Reading;

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
