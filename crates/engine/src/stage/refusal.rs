//! Why namespaces or a veth pair were refused, in words, with what would
//! change it. The errno alone does not say: the same EPERM comes from three
//! sysctls and from any sandbox.

use std::fmt;

use iolens_sys::errno::Errno;
use iolens_sys::netns::{Refusal, Step};
use iolens_sys::proc::Root;
use iolens_sys::process;

/// Sysctls that forbid user namespaces: the value that does, and a better one.
const FORBIDDING: [Sysctl; 3] = [
    Sysctl { name: "user.max_user_namespaces", forbids: "0", allows: "10000" },
    // A patch of Debian's.
    Sysctl { name: "kernel.unprivileged_userns_clone", forbids: "0", allows: "1" },
    // Ubuntu since 23.10: namespaces are made, but grant nothing.
    Sysctl { name: "kernel.apparmor_restrict_unprivileged_userns", forbids: "1", allows: "0" },
];

struct Sysctl {
    name: &'static str,
    forbids: &'static str,
    allows: &'static str,
}

impl Sysctl {
    fn is_forbidding(&self, root: &Root) -> bool {
        let file = format!("proc/sys/{}", self.name.replace('.', "/"));
        root.read(&file).is_ok_and(|now| now == self.forbids)
    }
}

/// A topology that cannot be made, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What was refused on the way.
    pub(crate) step: Step,
    /// Why, one clause.
    pub(crate) why: String,
    /// What to do.
    pub(crate) remedy: String,
}

/// Both in one clause.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.why, self.remedy)
    }
}

/// What a refusal means on this machine, for this user.
pub(super) fn explain(refusal: &Refusal, root: &Root, user: User) -> Refused {
    let Refusal { step, errno } = *refusal;
    let (why, remedy) = match (step, errno) {
        (Step::VethPair, Errno::EOPNOTSUPP) => (
            "this kernel has no veth devices".to_owned(),
            "load the module (`sudo modprobe veth`), or use a kernel built with CONFIG_VETH"
                .to_owned(),
        ),
        (Step::SinkDevice, Errno::EOPNOTSUPP) => (
            "this kernel has neither dummy nor ifb devices".to_owned(),
            "load a module (`sudo modprobe dummy`), or use a kernel built with CONFIG_DUMMY or \
             CONFIG_IFB"
                .to_owned(),
        ),
        (Step::VethPair | Step::SinkDevice, Errno::EPERM) => (
            format!("network devices may not be made even in a namespace of our own: {errno}"),
            "run outside the sandbox that forbids it".to_owned(),
        ),
        (Step::NetworkNamespace, Errno::EINVAL) => (
            "this kernel has no network namespaces".to_owned(),
            "use one built with CONFIG_NET_NS".to_owned(),
        ),
        (Step::NetworkNamespace, Errno::ENOSPC) => network_namespaces_used_up(root),
        (Step::UserNamespace, Errno::EINVAL) => (
            "this kernel has no user namespaces".to_owned(),
            "run as root, or use one built with CONFIG_USER_NS".to_owned(),
        ),
        (Step::UserNamespace | Step::Root, _) => user_namespaces_refused(errno, root, user),
        // Entered by way of a user namespace that grants nothing.
        (Step::NetworkNamespace, Errno::EPERM | Errno::EACCES) => {
            user_namespaces_refused(errno, root, user)
        }
        _ => (
            refusal.to_string(),
            "run outside the sandbox or container, if that forbids it".to_owned(),
        ),
    };
    Refused { step, why, remedy }
}

/// Who was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    /// Root in name: it needed a user namespace, so it has not the rights.
    Root,
    Ordinary,
}

impl User {
    /// This process's.
    pub(super) fn here() -> User {
        if process::effective_uid() == 0 { User::Root } else { User::Ordinary }
    }
}

fn user_namespaces_refused(errno: Errno, root: &Root, user: User) -> (String, String) {
    let sysctl = FORBIDDING.iter().find(|sysctl| sysctl.is_forbidding(root));
    let why = match sysctl {
        Some(Sysctl { name, forbids, .. }) => {
            format!("user namespaces are refused (sysctl {name} = {forbids})")
        }
        None => format!("user namespaces are refused: {errno}"),
    };
    let instead = match user {
        User::Root => "run with CAP_SYS_ADMIN and CAP_NET_ADMIN",
        User::Ordinary => "run as root",
    };
    let remedy = match sysctl {
        Some(Sysctl { name, allows, .. }) => format!("{instead}, or `sudo sysctl {name}={allows}`"),
        None => format!("{instead}, or outside the sandbox or container that forbids them"),
    };
    (why, remedy)
}

fn network_namespaces_used_up(root: &Root) -> (String, String) {
    let limit = root.read("proc/sys/user/max_net_namespaces");
    let limit = limit.unwrap_or_else(|_| "unknown".to_owned());
    (
        format!(
            "no more network namespaces may be made (sysctl user.max_net_namespaces = {limit})"
        ),
        "`sudo sysctl user.max_net_namespaces=10000`".to_owned(),
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
        let refusal = Refusal { step, errno };
        let explained = explain(&refusal, &Root::at(machine.path()), User::Ordinary);
        assert_eq!(explained.to_string(), expect);
    }

    #[test]
    fn the_sysctl_that_forbids_is_named() {
        check(
            &[("proc/sys/user/max_user_namespaces", "0\n")],
            (Step::UserNamespace, Errno::ENOSPC),
            "user namespaces are refused (sysctl user.max_user_namespaces = 0): run as root, \
             or `sudo sysctl user.max_user_namespaces=10000`",
        );
        check(
            &[
                ("proc/sys/user/max_user_namespaces", "9000\n"),
                ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n"),
            ],
            (Step::Root, Errno::EPERM),
            "user namespaces are refused (sysctl \
             kernel.apparmor_restrict_unprivileged_userns = 1): run as root, or `sudo sysctl \
             kernel.apparmor_restrict_unprivileged_userns=0`",
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
    fn root_in_name_is_not_told_to_be_root() {
        let machine = tempfile::tempdir().unwrap();
        let refusal = Refusal { step: Step::UserNamespace, errno: Errno::EPERM };
        let explained = explain(&refusal, &Root::at(machine.path()), User::Root);
        assert!(!explained.remedy.contains("as root"), "{explained}");
        assert!(explained.remedy.contains("CAP_SYS_ADMIN and CAP_NET_ADMIN"), "{explained}");
    }

    #[test]
    fn what_the_kernel_lacks_is_named() {
        check(
            &[],
            (Step::VethPair, Errno::EOPNOTSUPP),
            "this kernel has no veth devices: load the module (`sudo modprobe veth`), or use a \
             kernel built with CONFIG_VETH",
        );
        check(
            &[],
            (Step::SinkDevice, Errno::EOPNOTSUPP),
            "this kernel has neither dummy nor ifb devices: load a module (`sudo modprobe \
             dummy`), or use a kernel built with CONFIG_DUMMY or CONFIG_IFB",
        );
        check(
            &[("proc/sys/user/max_net_namespaces", "4\n")],
            (Step::NetworkNamespace, Errno::ENOSPC),
            "no more network namespaces may be made (sysctl user.max_net_namespaces = 4): \
             `sudo sysctl user.max_net_namespaces=10000`",
        );
    }
}
