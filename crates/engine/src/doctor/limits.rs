//! What a process may have, where results go, and who else measures.

use iolens_model::doctor::{Area, Finding};
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;

use super::Patient;
use iolens_harness::ring_refusal;
use iolens_harness::sysctl::{self, Leftover};

/// Name of the finding that says how many descriptors there can be.
pub(super) const DESCRIPTORS: &str = "descriptors";
/// Name of the finding that says whether rings can be made.
pub(super) const IO_URING: &str = "io_uring";

/// The source of what is said where results have no place.
pub(super) const NO_PLACE: &str = "XDG_DATA_HOME, HOME";

pub(super) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    vec![
        descriptors(patient),
        io_uring(patient),
        database(patient),
        stored(patient),
        others(patient),
        sysctls(patient),
    ]
}

fn ok(name: &str, found: impl Into<String>, source: &str) -> Finding {
    Finding::ok(Area::Limits, name, found, source)
}

/// Connections that servers are compared at, each a descriptor on both sides,
/// and what a process needs besides.
pub(super) const CONNECTIONS: u64 = 10_000;
const DESCRIPTORS_BESIDES: u64 = 64;

fn descriptors(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "getrlimit(2) RLIMIT_NOFILE";
    let hard = patient.tried.descriptors;
    let words = if hard == u64::MAX { "unlimited".to_owned() } else { hard.to_string() };
    let found = ok(DESCRIPTORS, words, SOURCE);
    if hard >= CONNECTIONS + DESCRIPTORS_BESIDES {
        return found;
    }
    let remedy = patient.started_with("--ulimit nofile=20000:20000").unwrap_or_else(|| {
        "sudo prlimit --pid $$ --nofile=20000:20000, in the shell that starts iolens".to_owned()
    });
    found.limits("servers get fewer than 10 000 connections", remedy)
}

fn io_uring(patient: &Patient<'_>) -> Finding {
    const CALL: &str = "io_uring_setup(2)";
    let Err(errno) = patient.tried.io_uring else {
        return ok(IO_URING, "rings can be created", CALL);
    };
    let effect = "no io_uring methods, engines or servers";
    if let Some(level) = ring_refusal::denied_by_sysctl(errno, patient.root) {
        let found = format!("refused: kernel.io_uring_disabled is {level}");
        let source = format!("/{}", ring_refusal::SYSCTL);
        return ok(IO_URING, found, &source).lacks(effect, ring_refusal::SYSCTL_REMEDY);
    }
    let without = match errno {
        Errno::EPERM => "none: a seccomp filter or a security module forbids it",
        _ => "none: this kernel has no io_uring, or no memory for a ring",
    };
    let remedy = patient.started_with("--security-opt seccomp=unconfined");
    let remedy = remedy.unwrap_or_else(|| without.to_owned());
    ok(IO_URING, format!("refused: {errno}"), CALL).lacks(effect, remedy)
}

/// Less room than this may not hold a full run, and a full disk ends one.
const ROOM_LIMITED: Bytes = Bytes(256 * Bytes::MIB);
const ROOM_MISSING: Bytes = Bytes(16 * Bytes::MIB);

const ELSEWHERE: &str = "choose another place: --db FILE";

fn database(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "database";
    let storage = match &patient.tried.storage {
        Ok(storage) => storage,
        Err(why) => {
            return ok(NAME, why.as_str(), NO_PLACE).lacks("no run can be stored", ELSEWHERE);
        }
    };
    let source = format!("statvfs(3) {}", storage.place);
    if let Err(errno) = storage.writable {
        let source = format!("faccessat(2) {}", storage.place);
        return ok(NAME, format!("not writable: {errno}"), &source)
            .lacks("no run can be stored", ELSEWHERE);
    }
    match storage.free {
        Ok(free) if free < ROOM_MISSING => {
            ok(NAME, format!("{free} free"), &source).lacks("no full run can be stored", ELSEWHERE)
        }
        Ok(free) if free < ROOM_LIMITED => ok(NAME, format!("{free} free"), &source)
            .limits("a long run may end when the disk is full", ELSEWHERE),
        Ok(free) => ok(NAME, format!("{free} free"), &source),
        Err(errno) => ok(NAME, format!("free space unknown: {errno}"), &source)
            .limits("a long run may end when the disk is full", ELSEWHERE),
    }
}

fn stored(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "stored runs";
    let Ok(storage) = &patient.tried.storage else {
        return ok(NAME, "none: there is no place for them", NO_PLACE);
    };
    let source = storage.database.as_str();
    match &storage.stored {
        Ok(None) => ok(NAME, "none yet", source),
        Ok(Some(extent)) => {
            let free = extent.free_bytes;
            ok(NAME, format!("{} in {} ({free} of it free)", extent.runs, extent.total()), source)
        }
        Err(why) => ok(NAME, why.as_str(), source).lacks("no run can be stored", ELSEWHERE),
    }
}

fn others(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "other runs";
    let (source, seen) = &patient.tried.lock;
    match seen {
        Ok(None) => ok(NAME, "none", source),
        Ok(Some(holder)) => ok(NAME, format!("one is measuring: {holder}"), source)
            .limits("no run can start until it ends", "iolens run … --wait"),
        Err(why) => ok(NAME, why.as_str(), source)
            .lacks("no run can start", format!("sudo rm {source}, if nothing is measuring")),
    }
}

fn sysctls(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "changed sysctls";
    let (source, seen) = &patient.tried.journal;
    match seen {
        Ok(Leftover::Nothing) => ok(NAME, "none left over", source),
        Ok(Leftover::InUse(changes)) => {
            ok(NAME, format!("changed until a run ends: {}", sysctl::list(changes)), source)
        }
        Ok(Leftover::Left(changes)) => {
            ok(NAME, format!("left by a killed run: {}", sysctl::list(changes)), source).limits(
                "everything on this machine runs with that setting",
                format!("{}; or run any iolens command with sudo", sysctl::remedy(changes)),
            )
        }
        Err(why) => ok(NAME, why.as_str(), source).limits(
            "what a killed run changed is unknown",
            format!("sudo rm {source}, once the sysctls are as they should be"),
        ),
    }
}
