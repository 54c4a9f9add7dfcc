//! The words for what should not happen and did.

use iolens_stats::remark::Event;

/// Their plural: a number follows.
pub(super) fn event(what: Event) -> &'static str {
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
