//! What can be measured on this machine and what not, each with the file or
//! the call that says so, what it does to results, and what would change it.
//!
//! One way: [`Tried`] asks the kernel for what needs a call, the areas read
//! files below a root and judge, each a function to findings, and `studies`
//! says what remains. Nothing here changes the machine or waits.

mod counters;
mod limits;
mod machine;
mod network;
mod processors;
mod rights;
mod studies;
mod tried;

use iolens_model::doctor::{Diagnosis, Finding};
use iolens_sys::proc::Root;
use iolens_sys::process;

use self::rights::Rights;
pub use self::tried::{Storage, Tried};
use iolens_harness::surroundings::{self, Container, Guest, Hypervisor};

/// What every area has to go by.
struct Patient<'a> {
    root: &'a Root,
    tried: &'a Tried,
    guest: Guest,
    container: Container,
    rights: Rights,
}

impl Patient<'_> {
    /// Whether a container's runtime may be what refuses. WSL2 keeps its
    /// distributions in namespaces of their own, and refuses nothing.
    fn is_contained(&self) -> bool {
        let is_wsl2 = self.guest.hypervisor == Hypervisor::Wsl2;
        self.container.is_one() && !(is_wsl2 && self.container.named.is_none())
    }

    /// How this container would be started with `flags` of docker run(1);
    /// nothing if this is none.
    fn started_with(&self, flags: &str) -> Option<String> {
        let name = self.container.named.as_ref().map(|(name, _)| name.as_str());
        self.is_contained().then(|| match name {
            Some("docker") => format!("docker run {flags} …"),
            Some("podman" | "libpod") => format!("podman run {flags} …"),
            _ => format!("start the container with what docker run calls {flags}"),
        })
    }
}

/// What is found on a machine that takes part in a run, by the program that runs: all but of a
/// database, as results may be stored elsewhere.
pub fn findings(root: &Root) -> Vec<Finding> {
    let program = std::env::current_exe().unwrap_or_default();
    let found = diagnose(root, &Tried::on(root, &program, Err("not looked at".to_owned())));
    found.findings.into_iter().filter(|finding| finding.source != limits::NO_PLACE).collect()
}

/// Looks at the machine below `root`, with what was tried on it.
pub fn diagnose(root: &Root, tried: &Tried) -> Diagnosis {
    let patient = Patient {
        root,
        tried,
        guest: surroundings::guest(root, tried.hypervisor.as_deref()),
        container: surroundings::container(root),
        rights: Rights::read(root),
    };
    let findings = [
        machine::findings(&patient),
        processors::findings(&patient),
        counters::findings(&patient),
        network::findings(&patient),
        limits::findings(&patient),
    ]
    .concat();
    let studies = studies::outlooks(&patient, &findings);
    let on = match patient.guest.is_virtual() {
        true => format!("as a guest of {}", patient.guest.words()),
        false => "on hardware, as far as it shows".to_owned(),
    };
    Diagnosis {
        user: match tried.user {
            0 => "root".to_owned(),
            user => format!("uid {user}"),
        },
        machine: format!("Linux {} {on}", tried.kernel),
        findings,
        studies,
        stored: tried.storage.as_ref().ok().and_then(|storage| storage.stored.clone().ok()?),
    }
}

/// Whether the program's own user namespace is the machine's.
fn has_machines_users(root: &Root) -> bool {
    // Unreadable only where there is no such thing.
    root.read("proc/self/uid_map").map_or(true, |map| process::is_machines_uid_map(&map))
}

#[cfg(test)]
mod tests;
