//! Why namespaces or a veth pair were refused, in words, with what would
//! change it. The errno alone does not say: the same EPERM comes from three
//! sysctls and from any sandbox.

use iolens_sys::errno::Errno;
use iolens_sys::netns::{Refusal, Step};
use iolens_sys::proc::Root;

/// Sysctls that forbid user namespaces: file, name, the value that does, and
/// what would be better.
const FORBIDDING: [(&str, &str, &str, &str); 3] = [
    ("proc/sys/user/max_user_namespaces", "user.max_user_namespaces", "0", "raise it"),
    // A patch of Debian's.
    (
        "proc/sys/kernel/unprivileged_userns_clone",
        "kernel.unprivileged_userns_clone",
        "0",
        "set it to 1",
    ),
    // Ubuntu since 23.10: namespaces are made, but grant nothing.
    (
        "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
        "set it to 0",
    ),
];

/// The refusal as one clause with its remedy.
pub(super) fn clause(refusal: &Refusal, root: &Root) -> String {
    let Refusal { step, errno } = *refusal;
    match (step, errno) {
        (Step::VethPair, Errno::EOPNOTSUPP) => {
            "this kernel has no veth devices: load the module (`modprobe veth`), or use a kernel \
             built with CONFIG_VETH"
                .to_owned()
        }
        (Step::VethPair, Errno::EPERM) => format!(
            "network devices may not be made even in a namespace of our own: {errno}: run \
             outside the sandbox that forbids it"
        ),
        (Step::NetworkNamespace, Errno::EINVAL) => {
            "this kernel has no network namespaces: use one built with CONFIG_NET_NS".to_owned()
        }
        (Step::NetworkNamespace, Errno::ENOSPC) => network_namespaces_used_up(root),
        (Step::UserNamespace, Errno::EINVAL) => {
            "this kernel has no user namespaces: run as root, or use one built with \
             CONFIG_USER_NS"
                .to_owned()
        }
        (Step::UserNamespace | Step::Root, _) => user_namespaces_refused(errno, root),
        // Entered by way of a user namespace that grants nothing.
        (Step::NetworkNamespace, Errno::EPERM | Errno::EACCES) => {
            user_namespaces_refused(errno, root)
        }
        _ => refusal.to_string(),
    }
}

fn user_namespaces_refused(errno: Errno, root: &Root) -> String {
    let forbids = |(file, _, value, _): &&(&str, &str, &str, &str)| {
        root.read(file).is_ok_and(|now| now == *value)
    };
    match FORBIDDING.iter().find(forbids) {
        Some((_, name, value, remedy)) => format!(
            "user namespaces are refused (sysctl {name} = {value}): run as root, or {remedy}"
        ),
        None => format!(
            "user namespaces are refused: {errno}: run as root, or outside the sandbox or \
             container that forbids them"
        ),
    }
}

fn network_namespaces_used_up(root: &Root) -> String {
    let limit = root.read("proc/sys/user/max_net_namespaces");
    let limit = limit.unwrap_or_else(|_| "unknown".to_owned());
    format!(
        "no more network namespaces may be made (sysctl user.max_net_namespaces = {limit}): \
         raise it"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A machine with these files, as far as it matters here.
    fn check(files: &[(&str, &str)], refusal: (Step, Errno), expect: &str) {
        let machine = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = machine.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (step, errno) = refusal;
        assert_eq!(clause(&Refusal { step, errno }, &Root::at(machine.path())), expect);
    }

    #[test]
    fn the_sysctl_that_forbids_is_named() {
        check(
            &[("proc/sys/user/max_user_namespaces", "0\n")],
            (Step::UserNamespace, Errno::ENOSPC),
            "user namespaces are refused (sysctl user.max_user_namespaces = 0): run as root, \
             or raise it",
        );
        check(
            &[
                ("proc/sys/user/max_user_namespaces", "9000\n"),
                ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n"),
            ],
            (Step::Root, Errno::EPERM),
            "user namespaces are refused (sysctl \
             kernel.apparmor_restrict_unprivileged_userns = 1): run as root, or set it to 0",
        );
    }

    #[test]
    fn without_such_a_sysctl_the_system_is_quoted() {
        check(
            &[("proc/sys/user/max_user_namespaces", "9000\n")],
            (Step::UserNamespace, Errno::EPERM),
            "user namespaces are refused: EPERM (operation not permitted): run as root, or \
             outside the sandbox or container that forbids them",
        );
    }

    #[test]
    fn what_the_kernel_lacks_is_named() {
        check(
            &[],
            (Step::VethPair, Errno::EOPNOTSUPP),
            "this kernel has no veth devices: load the module (`modprobe veth`), or use a \
             kernel built with CONFIG_VETH",
        );
        check(
            &[("proc/sys/user/max_net_namespaces", "4\n")],
            (Step::NetworkNamespace, Errno::ENOSPC),
            "no more network namespaces may be made (sysctl user.max_net_namespaces = 4): \
             raise it",
        );
    }
}
