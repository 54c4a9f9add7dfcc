//! Where the two ends of a connection can stand, and how they can send.

use iolens_model::doctor::{Area, Finding};
use iolens_model::units::Bytes;
use iolens_sys::netns::Step;

use super::Patient;
use crate::stage;

/// Name of the finding that says whether a veth pair can be made.
pub(super) const VETH: &str = "veth pair";
/// Name of the finding that says whether a device that drops can be made.
pub(super) const SINK: &str = "sink device";
/// Name of the finding that says whether sockets take zero-copy sends.
pub(super) const ZEROCOPY: &str = "MSG_ZEROCOPY";
/// Name of the finding that says how much memory may be locked.
pub(super) const LOCKED_MEMORY: &str = "locked memory";

pub(super) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    vec![
        namespaces(patient),
        veth(patient),
        sink(patient),
        zerocopy(patient),
        locked_memory(patient),
        notifications(patient),
        congestion(patient),
        taps(patient),
    ]
}

fn ok(name: &str, found: impl Into<String>, source: &str) -> Finding {
    Finding::ok(Area::Network, name, found, source)
}

const CALL: &str = "unshare(2)";
const NO_VETH: &str = "no veth: both ends share one network stack over lo";

fn namespaces(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "namespaces";
    let how = match patient.tried.user {
        0 => "network, as root",
        _ => "user and network",
    };
    match &patient.tried.veth {
        // What comes after the namespaces.
        Err(refused) if !matches!(refused.step, Step::VethPair | Step::Setting) => {
            ok(NAME, refused.why.as_str(), CALL).lacks(NO_VETH, in_container(patient, refused))
        }
        _ => ok(NAME, how, CALL),
    }
}

fn veth(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "rtnetlink(7)";
    match &patient.tried.veth {
        Ok(()) => ok(VETH, "can be created in a namespace", SOURCE),
        Err(refused) if matches!(refused.step, Step::VethPair | Step::Setting) => {
            ok(VETH, refused.why.as_str(), SOURCE).lacks(NO_VETH, in_container(patient, refused))
        }
        Err(_) => ok(VETH, "not tried: needs a namespace", SOURCE).lacks(NO_VETH, "see namespaces"),
    }
}

fn sink(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "rtnetlink(7)";
    const NO_SINK: &str = "no sink: every zero-copy send on this machine is copied anyway";
    match &patient.tried.sink {
        Ok(()) => ok(SINK, "can be created in a namespace", SOURCE),
        Err(refused) if matches!(refused.step, Step::SinkDevice | Step::Setting) => {
            ok(SINK, refused.why.as_str(), SOURCE).lacks(NO_SINK, in_container(patient, refused))
        }
        Err(_) => ok(SINK, "not tried: needs a namespace", SOURCE).lacks(NO_SINK, "see namespaces"),
    }
}

/// What to do about a refusal, also where the runtime of a container does it.
fn in_container(patient: &Patient<'_>, refused: &stage::Refused) -> String {
    if refused.remedy.contains("sysctl") {
        return refused.remedy.clone();
    }
    let flags = "--cap-add=SYS_ADMIN --cap-add=NET_ADMIN --security-opt seccomp=unconfined \
                 --security-opt apparmor=unconfined";
    patient.started_with(flags).unwrap_or_else(|| refused.remedy.clone())
}

fn zerocopy(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "setsockopt(2) SO_ZEROCOPY";
    match patient.tried.zerocopy {
        Ok(()) => ok(ZEROCOPY, "supported by TCP", SOURCE),
        Err(errno) => ok(ZEROCOPY, format!("refused: {errno}"), SOURCE)
            .lacks("no sendmsg_zerocopy", "none: needs Linux 4.14 or later"),
    }
}

/// The largest message of the default plan, and threads at once.
const MESSAGE_MAX: Bytes = Bytes(Bytes::MIB);
const THREADS: u64 = 4;

fn locked_memory(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "getrlimit(2) RLIMIT_MEMLOCK";
    let limits = patient.tried.locked_memory;
    let (Some(locked), Some(largest)) = (limits.locked, limits.largest_message()) else {
        return ok(LOCKED_MEMORY, "unlimited", SOURCE);
    };
    let found = ok(LOCKED_MEMORY, locked.to_string(), SOURCE);
    if largest.0 >= MESSAGE_MAX.0 * THREADS {
        return found;
    }
    let remedy = patient.started_with("--ulimit memlock=-1").unwrap_or_else(|| {
        "sudo prlimit --pid $$ --memlock=unlimited, in the shell that starts iolens".to_owned()
    });
    found.limits(
        &format!("zero-copy messages above {largest} are not run (less with several threads)"),
        remedy,
    )
}

/// The default of Linux 6.9 on; it was 20 KiB before.
const NOTIFICATIONS: Bytes = Bytes(128 * Bytes::KIB);
/// Less than this holds a handful of notifications.
const NOTIFICATIONS_MIN: Bytes = Bytes(64 * Bytes::KIB);

fn notifications(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "optmem_max";
    const SOURCE: &str = "/proc/sys/net/core/optmem_max";
    match patient.tried.locked_memory.optmem {
        None => ok(NAME, "not reported", SOURCE).limits(
            "the limit on zero-copy sends in flight is unknown",
            "none: the kernel does not report it",
        ),
        Some(bytes) if bytes < NOTIFICATIONS_MIN => ok(NAME, bytes.to_string(), SOURCE).limits(
            "few zero-copy sends can be in flight: some are refused and sent again",
            format!("sudo sysctl net.core.optmem_max={}", NOTIFICATIONS.0),
        ),
        Some(bytes) => ok(NAME, bytes.to_string(), SOURCE),
    }
}

fn congestion(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "congestion";
    const SOURCE: &str = "setsockopt(2) TCP_CONGESTION";
    let tried = &patient.tried.congestion;
    let usable: Vec<&str> =
        tried.iter().filter(|(_, result)| result.is_ok()).map(|(name, _)| name.as_str()).collect();
    let refused: Vec<&str> =
        tried.iter().filter(|(_, result)| result.is_err()).map(|(name, _)| name.as_str()).collect();
    match (usable.is_empty(), refused.is_empty()) {
        (true, _) => ok(NAME, "none available", SOURCE).lacks(
            "no runs over TCP: every plan sets one",
            "sudo sysctl net.ipv4.tcp_allowed_congestion_control=reno",
        ),
        (false, true) => ok(NAME, usable.join(", "), SOURCE),
        (false, false) => {
            let (usable, refused) = (usable.join(", "), refused.join(", "));
            ok(NAME, format!("{usable}; not {refused}"), SOURCE).limits(
                &format!("plans that name {refused} are refused; the default is reno"),
                format!(
                    "sudo sysctl net.ipv4.tcp_allowed_congestion_control=\"{} {}\"",
                    usable.replace(", ", " "),
                    refused.replace(", ", " ")
                ),
            )
        }
    }
}

fn taps(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "packet taps";
    const SOURCE: &str = "/proc/net/packet";
    match stage::packet_taps(patient.root) {
        Some(0) => ok(NAME, "none", SOURCE),
        Some(taps) => ok(NAME, format!("{taps} in this namespace"), SOURCE).limits(
            "over loopback they get every packet too, so zero-copy sends are copied",
            "sudo ss --packet --processes, and stop what it shows; or --network veth",
        ),
        None => ok(NAME, "not reported", SOURCE).limits(
            "unknown whether something captures packets",
            "none: the kernel does not report it",
        ),
    }
}
