//! Names for cells, curves and the machine, in words: the same in sentences,
//! tables, figures and file names.

use iolens_document::Joined;
use std::collections::{BTreeMap, BTreeSet};

use iolens_model::ab::AbMode;
use iolens_model::axes::Topology;
use iolens_model::cell::{Cell, Setting};
use iolens_model::file::CacheState;
use iolens_model::host::HostFacts;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::run::{Run, RunHeader};
use iolens_model::server::ServerSetting;
use iolens_stats::analysis::Told;
use iolens_stats::remark::Event;

use crate::number::count;

/// What tells a cell from the others of the run: `64 KiB, 1 thread`, with the
/// axes behind it of which the plan has more than one value.
pub(crate) fn subject(header: &RunHeader, cell: &Cell) -> String {
    joined(as_found(header, cell, subject_parts(&header.plan, cell)))
}

/// The same of a plan, whatever the machine.
pub(crate) fn subject_in(plan: &Plan, cell: &Cell) -> String {
    joined(subject_parts(plan, cell))
}

fn subject_parts(plan: &Plan, cell: &Cell) -> Vec<String> {
    let size = cell.own_size().map(|size| size.to_string());
    size.into_iter().chain(curve_parts(plan, cell)).collect()
}

pub(crate) fn joined(parts: Vec<String>) -> String {
    parts.join(", ")
}

/// What tells a curve from the others of the run: `1 thread`.
pub(crate) fn curve(header: &RunHeader, cell: &Cell) -> String {
    joined(as_found(header, cell, curve_parts(&header.plan, cell)))
}

/// The same, each by itself and whatever the machine.
pub(crate) fn curve_parts(plan: &Plan, cell: &Cell) -> Vec<String> {
    if let Some(server) = cell.server() {
        let load = server.load_in_words();
        return load_in(plan, cell, vec![server.connections_in_words(), load]);
    }
    let mut parts = vec![threads(cell.threads)];
    parts.extend(plan.told_apart(cell));
    parts
}

/// These words of a load on a server, with what else tells it from others of the plan.
fn load_in(plan: &Plan, cell: &Cell, mut parts: Vec<String>) -> Vec<String> {
    let connections = cell.server().map(ServerSetting::connections_in_words);
    for word in plan.told_apart(cell) {
        if Some(&word) != connections.as_ref() && !parts.contains(&word) {
            parts.push(word);
        }
    }
    if plan.threads.len() > 1 {
        parts.push(count(cell.threads, "worker"));
    }
    parts
}

/// What the cells of a load on a server have in common that differ in their connections:
/// `closed loop`.
pub(crate) fn load(plan: &Plan, cell: &Cell) -> String {
    let load = cell.server().map(ServerSetting::load_in_words);
    joined(load_in(plan, cell, load.into_iter().collect()))
}

/// Cold in a virtual machine is what the guest has evicted and its host may
/// have still.
pub(crate) const GUEST_COLD: &str = "guest-cold";

/// Parts of a cell's name with what this machine makes of its cache state.
pub(crate) fn as_found(header: &RunHeader, cell: &Cell, parts: Vec<String>) -> Vec<String> {
    let is_state = |part: &str| cell.cache().is_some_and(|cache| part == cache.word());
    let own = |part: String| if is_state(&part) { state(header, cell) } else { part };
    parts.into_iter().map(own).collect()
}

/// What of a file is in the page cache, as this machine makes it.
pub(crate) fn state(header: &RunHeader, cell: &Cell) -> String {
    let Some(cache) = cell.cache() else { return String::new() };
    let is_guest = cache == CacheState::Cold && is_guest(&header.host);
    if is_guest { GUEST_COLD.to_owned() } else { cache.word().to_owned() }
}

/// In which state a file is when a slice begins: what is in the page cache of one that
/// is read, what is there already of one that is written. Figures show both beside each
/// other.
pub(crate) fn file_state(cell: &Cell) -> Option<&'static str> {
    match &cell.setting {
        Setting::File(file) => Some(file.cache.word()),
        Setting::Write(write) => Some(write.destination.word()),
        Setting::Copy(copy) => Some(copy.cache.word()),
        _ => None,
    }
}

/// Whether the machine is a virtual one, as far as it says.
pub(crate) fn is_guest(host: &HostFacts) -> bool {
    fact(host, &["virtualization"]).is_some_and(|name| name != "no hypervisor")
}

/// What tells the panels of a figure apart: the thread count, in a run of `file` with
/// what else tells its curve apart.
pub(crate) fn panel(header: &RunHeader, cell: &Cell) -> String {
    if is_of_files(&header.plan) { curve(header, cell) } else { threads(cell.threads) }
}

/// Whether a plan is about files.
pub(crate) fn is_of_files(plan: &Plan) -> bool {
    plan.study().has_blocks() || plan.copy().is_some()
}

/// What the sizes of a study are: `message size`, `block size`, `file size`.
pub(crate) fn size_of(plan: &Plan) -> String {
    // Whole files are copied.
    let of = if plan.copy().is_some() { "file" } else { plan.study().unit() };
    format!("{of} size")
}

/// The same for a narrow column, whose heading says what it is.
pub(crate) fn curve_brief(plan: &Plan, cell: &Cell) -> String {
    joined(curve_parts(plan, cell).into_iter().map(|part| brief(cell, part)).collect())
}

/// A receiver by its name alone.
pub(crate) fn brief(cell: &Cell, part: String) -> String {
    let receiver = cell.net().filter(|net| net.receiver_in_words().as_ref() == Some(&part));
    receiver.map_or(part, |net| net.receiver.clone())
}

/// `1 thread`, `4 threads`.
pub(crate) fn threads(n: u32) -> String {
    count(n, "thread")
}

/// What stands behind a time per unit of work where several threads work: it is the wall time over
/// the units of all, which is no thread's time for one.
pub(crate) fn together(threads: u32) -> &'static str {
    if threads > 1 { ", of all threads together" } else { "" }
}

/// Thread counts of a run that are more than an end has processors, and how many it has; `None`
/// where there are none, or models of servers choose their threads.
pub(crate) fn crowded(run: &Run) -> Option<(Vec<u32>, u32)> {
    let plan = &run.header.plan;
    if plan.server().is_some() {
        // Some models have a thread for each connection, whatever is asked for.
        return None;
    }
    let cpus = plan.cpus.as_ref().unwrap_or(&run.header.host.cpus).len();
    let per_end = u32::try_from((cpus / ends_of(plan)).max(1)).unwrap_or(u32::MAX);
    let crowded: Vec<u32> =
        plan.threads.iter().copied().filter(|&threads| threads > per_end).collect();
    (!crowded.is_empty() && cpus > 0).then_some((crowded, per_end))
}

/// Ends that have processors of their own.
fn ends_of(plan: &Plan) -> usize {
    if plan.net().is_some() { 2 } else { 1 }
}

/// `4`, `3 or 4`, `2, 4 or 8`, `3 to 10`.
pub(crate) fn one_of(counts: &[u32]) -> String {
    let is_run = counts.len() > 2 && counts.is_sorted_by(|a, b| a + 1 == *b);
    let words: Vec<String> = counts.iter().map(ToString::to_string).collect();
    match words.as_slice() {
        [first, .., last] if is_run => format!("{first} to {last}"),
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        words => words.concat(),
    }
}

/// What all cells of a family have in common: `net, loopback, stream, hot,
/// 8 fields, received with recv`, and what else tells it apart or is not as it
/// is where a plan states nothing.
pub(crate) fn setting(plan: &Plan, cell: &Cell) -> Vec<String> {
    let mut parts = vec![plan.study().to_string()];
    match &cell.setting {
        Setting::Net(net) => parts.extend([
            net.topology.to_string(),
            net.mode.to_string(),
            format!("{} working set", net.working_set),
            net.fields_in_words(),
            received(&[net.topology], std::slice::from_ref(&net.receiver)),
        ]),
        Setting::Syscall(_) => {}
        _ => {
            parts.extend(cell.words());
        }
    }
    parts.extend(plan.told_further(cell));
    parts
}

/// `ipv4 and ipv6`.
pub(crate) fn values(values: impl IntoIterator<Item: ToString>) -> String {
    crate::number::list(values.into_iter().map(|value| value.to_string()))
}

/// Who receives, in these topologies.
fn received(topologies: &[Topology], receivers: &[String]) -> String {
    let receiver = crate::number::list(receivers);
    let has = |receiver: bool| topologies.iter().any(|t| t.has_receiver() == receiver);
    match (has(true), has(false)) {
        (false, true) => "received by nobody".to_owned(),
        (true, true) => format!("received with {receiver}, on {} by nobody", Topology::Sink),
        (_, false) => format!("received with {receiver}"),
    }
}

/// How the trials were laid out, one clause.
pub(crate) fn schedule(plan: &Plan) -> String {
    if let Some(axes) = plan.ab() {
        // How long their slices became is no wish but was found out.
        return match axes.mode {
            AbMode::Loop => "programs take turns in slices".to_owned(),
            AbMode::Command => "commands take turns".to_owned(),
        };
    }
    match plan.schedule {
        Schedule::Slices { slice, discarded_rounds, rounds } => format!(
            "arms alternate in slices of about {slice}, {rounds} rounds after {discarded_rounds} discarded"
        ),
        Schedule::Window { window } => format!("one arm after another, {window} each"),
        Schedule::Messages { messages } => {
            format!("one arm after another, {messages} messages each")
        }
    }
}

/// The value of a fact of the machine: the first of these names that is known.
/// Names are the kernel's, so they are looked for without regard to case.
pub(crate) fn fact<'a>(host: &'a HostFacts, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        let named = |fact: &&iolens_model::host::Fact| fact.name.eq_ignore_ascii_case(name);
        let found = host.facts.iter().filter(named).find_map(|fact| fact.value.value())?;
        Some(found.as_str())
    })
}

/// Why metrics are null, by metric: the reasons of both ends over all trials.
pub(crate) fn not_measured(told: &Told) -> BTreeMap<&str, String> {
    let joined = |whys: &BTreeSet<String>| Vec::from_iter(whys.iter().cloned()).join("; ");
    let all = told.not_measured.iter();
    all.map(|(metric, whys)| (metric.as_str(), joined(whys))).collect()
}

/// Two lines under every figure: the machine, then the software and the run.
pub(crate) fn footer(header: &RunHeader, cell: &Cell) -> [String; 2] {
    let host = &header.host;
    let cache = |name: &str, reading: &iolens_model::reading::Reading<_>| {
        reading.value().map(|bytes: &iolens_model::units::Bytes| format!("{name} {bytes}"))
    };
    let known = |names: &[&str]| fact(host, names).map(String::from);
    let machine = [
        known(&["model", "model name", "cpu model"]),
        Some(count(host.cpus.len(), "CPU")),
        cache("L1d", &host.l1d),
        cache("L2", &host.l2),
        cache("LLC", &host.llc),
        cache("memory", &host.memory),
    ];
    let software = [
        known(&["os", "distribution", "pretty_name"]),
        known(&["kernel", "release", "osrelease"]).map(|k| format!("Linux {k}")),
        cell.topology().map(|topology| topology.to_string()),
        Some(header.build.clone()),
        Some(format!("run {}", header.id)),
    ];
    let join = |parts: &[Option<String>]| parts.iter().flatten().cloned().joined(" · ");
    [join(&machine), join(&software)]
}

/// What should not happen and did, in the plural: a number follows.
pub(crate) fn event(what: Event) -> &'static str {
    match what {
        Event::Retransmits => "retransmitted segments",
        Event::MajorFaults => "major page faults",
        Event::Stolen => "ticks stolen by the hypervisor",
        Event::StolenThere => "ticks stolen by the hypervisor at the other end",
        Event::ZeroCopyRefused => "zero-copy sends refused with ENOBUFS and made again",
        Event::AccountsDisagree => "switches and faults on which getrusage and perf disagree",
        Event::Timeouts => "requests timed out",
        Event::Resets => "requests whose connection ended before the reply",
        Event::RefusedConnections => "requests whose connection could not be made",
        Event::Abandoned => "requests that the client gave up at a limit of its own",
        Event::ListenOverflows => "connections dropped because the accept queue was full",
        Event::ListenDrops => "connections dropped by a listening socket with room in its queue",
        Event::Throttled => "periods in which a cgroup held an end back (cpu.max)",
        Event::ThrottledThere => "periods in which a cgroup held the other end back (cpu.max)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_in_few_words() {
        assert_eq!(one_of(&[4]), "4");
        assert_eq!(one_of(&[3, 4]), "3 or 4");
        assert_eq!(one_of(&[2, 4, 8]), "2, 4 or 8");
        assert_eq!(one_of(&[3, 4, 5, 6, 7, 8, 9, 10]), "3 to 10");
    }
}
