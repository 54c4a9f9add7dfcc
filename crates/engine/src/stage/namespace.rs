//! What the topologies of our own namespaces have in common: how a worker gets
//! into one, the addresses there, and a device switched on. Nothing of it has a
//! name outside: it goes when the workers do, whatever ends them.

use iolens_sys::netns::{self, Owner, Setting};
use iolens_sys::process;

use super::device::refused;
use super::{sink, veth};
use crate::worker::protocol::{Failure, StageStep};

/// Sysctls of our own namespaces; see ip-sysctl.rst of the kernel.
pub(super) const SETTINGS: &[Setting] = &[
    // An arm that waits while others run keeps its congestion window.
    ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
    // Connections whose workers were killed would otherwise retransmit for
    // minutes and hold the namespace.
    ("/proc/sys/net/ipv4/tcp_orphan_retries", "1"),
    // No link-local address, so no search for doubles and routers crosses the
    // pair while a trial runs.
    ("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1"),
];

/// Takes one step towards the topology; on the main thread of a worker, before
/// there is another one. Returns whether a user namespace had to be made.
///
/// Errors: what was tried, what the system said, what would change it.
pub(crate) fn take(step: &StageStep) -> Result<bool, Failure> {
    match *step {
        StageStep::Enter { beside } => enter(beside),
        StageStep::Join { pid, user_namespace } => join(pid, user_namespace),
        StageStep::Pair { far_pid, network } => veth::pair(far_pid, network).map(|()| false),
        StageStep::Open { side, network } => veth::open(side, network).map(|()| false),
        StageStep::Sink { network, queues } => sink::open(network, queues).map(|()| false),
    }
}

fn enter(beside: Option<u32>) -> Result<bool, Failure> {
    let owner = match beside {
        Some(pid) => netns::enter_beside(pid, SETTINGS).map(|()| Owner::Before),
        None => netns::enter(SETTINGS),
    };
    die_with_parent_again()?;
    owner.map(|owner| owner == Owner::Own).map_err(|refusal| refused(&refusal))
}

fn join(pid: u32, user_namespace: bool) -> Result<bool, Failure> {
    let joined = netns::join(pid, if user_namespace { Owner::Own } else { Owner::Before });
    die_with_parent_again()?;
    joined.map(|()| false).map_err(|refusal| refused(&refusal))
}

fn die_with_parent_again() -> Result<(), Failure> {
    // A security module that gave us other credentials has cleared it
    // (kernel/cred.c, commit_creds). Had the parent died since, the end of the
    // control pipe still ends us.
    process::die_with_parent()
        .map_err(|e| Failure::cause(format!("cannot set PR_SET_PDEATHSIG again: {e}")))
}
