//! Tracepoints by their names: tracefs alone tells their numbers.

use iolens_sys::perf_event::Kind;
use iolens_sys::proc::Root;

/// Where it is mounted, and where it was to be found before Linux 4.1.
pub const MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Files of tracefs are closed to all but their group, whatever `mode` says of
/// the folder (fs/tracefs/inode.c, since Linux 5.16).
const READABLE: &str = "mode=750,gid=$(id -g)";

/// The command that mounts it so that the user may read it.
pub fn mount() -> String {
    format!("sudo mount -t tracefs -o {READABLE} nodev /{}", MOUNTS[0])
}

/// The command that opens a mounted one to the user.
pub fn remount(folder: &str) -> String {
    format!("sudo mount -o remount,{READABLE} /{folder}")
}

/// Where it can be seen.
pub fn seen(root: &Root) -> Option<&'static str> {
    MOUNTS.into_iter().find(|folder| !root.names(&format!("{folder}/events")).is_empty())
}

/// The folder of an event, `system:name`, below a mount.
pub fn event(folder: &str, name: &str) -> String {
    format!("{folder}/events/{}", name.replace(':', "/"))
}

/// The text of an event's number below each mount.
///
/// Errors: the path and what the system said.
fn numbers(root: &Root, name: &str) -> [Result<String, String>; MOUNTS.len()] {
    MOUNTS.map(|folder| root.read(&format!("{}/id", event(folder, name))))
}

/// The number of a tracepoint.
///
/// Errors: why it is not known, and what to do about it.
pub fn number(root: &Root, name: &str) -> Result<u64, String> {
    let read = numbers(root, name);
    if let Some(number) = read.iter().flatten().find_map(|text| text.parse().ok()) {
        return Ok(number);
    }
    let errors = || read.iter().flat_map(|text| text.as_ref().err());
    match errors().find(|why| !why.contains("ENOENT")) {
        Some(why) => Err(format!("{why}; run `{}`", remount(MOUNTS[0]))),
        None if seen(root).is_some() => Err(format!("this kernel has no tracepoint `{name}`")),
        None => Err(format!(
            "there is no tracepoint `{name}` without tracefs, which is not mounted; run `{}`",
            mount()
        )),
    }
}

/// The first of these tracepoints whose number is known.
pub fn first(root: &Root, mut names: impl Iterator<Item = &'static str>) -> Option<Kind> {
    names.find_map(|name| Some(Kind::Tracepoint { name, id: number(root, name).ok()? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Machine;

    #[test]
    fn a_tracepoint_has_a_number_or_a_reason() {
        const NAME: &str = "sched:sched_switch";
        const PATH: &str = "sys/kernel/tracing/events/sched/sched_switch/id";
        let machine = Machine::with(&[(PATH, "314")]);
        let root = machine.root();
        assert_eq!(number(&root, NAME), Ok(314));
        let missing = number(&root, "tcp:tcp_retransmit_skb").unwrap_err();
        assert_eq!(missing, "this kernel has no tracepoint `tcp:tcp_retransmit_skb`");
        let machine =
            Machine::with(&[("sys/kernel/debug/tracing/events/sched/sched_switch/id", "7")]);
        let root = machine.root();
        assert_eq!(number(&root, NAME), Ok(7));
        let machine = Machine::with(&[]);
        let root = machine.root();
        let missing = number(&root, NAME).unwrap_err();
        assert!(missing.contains("not mounted; run `sudo mount -t tracefs"), "{missing}");
    }

    #[test]
    fn one_that_is_there_and_cannot_be_read_says_how() {
        // A folder in its place: no mode would keep root from reading it.
        let machine = Machine::with(&[("sys/kernel/tracing/events/a/b/id/x", "1")]);
        let root = machine.root();
        let why = number(&root, "a:b").unwrap_err();
        assert!(why.contains("; run `sudo mount -o remount,mode=750,gid=$(id -g) /sys"), "{why}");
    }
}
