//! Network namespaces without names: a process enters a new one and it goes
//! with the last process and socket in it. Who lacks the right to make one
//! makes a user namespace first, in which he has it. See
//! network_namespaces(7), user_namespaces(7), unshare(2).
//!
//! # Safety
//! unshare(2) is unsafe for `CLONE_FILES` only, which is never asked for. What
//! runs between fork(2) and the end of the child makes system calls on memory
//! that was prepared before, and allocates nothing.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;

use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space,
    unshare_unsafe,
};

use crate::errno::Errno;
use crate::netlink::{NewDevice, Route};

/// A sysctl of a network namespace: its file and what is written to it.
pub type Setting = (&'static str, &'static str);

/// What was refused on the way into a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A process of its own in which to try.
    Child,
    /// A user namespace.
    UserNamespace,
    /// Being root in it.
    Root,
    /// Entering the namespaces of another process.
    Join,
    /// A network namespace.
    NetworkNamespace,
    /// A sysctl in it.
    Setting,
    /// A veth pair in it.
    VethPair,
    /// A device in it that drops what is sent.
    SinkDevice,
}

impl Step {
    const ALL: [Step; 8] = [
        Step::Child,
        Step::UserNamespace,
        Step::Root,
        Step::Join,
        Step::NetworkNamespace,
        Step::Setting,
        Step::VethPair,
        Step::SinkDevice,
    ];

    /// What was tried, as in "cannot …".
    pub fn tried(self) -> &'static str {
        match self {
            Step::Child => "start a process",
            Step::UserNamespace => "make a user namespace",
            Step::Root => "become root in a user namespace of our own",
            Step::Join => "enter the namespaces of the other worker",
            Step::NetworkNamespace => "make a network namespace",
            Step::Setting => "change a sysctl in a network namespace of our own",
            Step::VethPair => "make a veth pair",
            Step::SinkDevice => "make a device that drops what is sent",
        }
    }
}

/// A step that was refused, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What was tried.
    pub step: Step,
    /// What the system said.
    pub errno: Errno,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.step.tried(), self.errno)
    }
}

impl std::error::Error for Refusal {}

/// Names the step in the error of a call.
fn at<T, E: Into<Errno>>(step: Step, result: Result<T, E>) -> Result<T, Refusal> {
    result.map_err(|e| Refusal { step, errno: e.into() })
}

/// Who owns a network namespace, which decides who may configure it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user namespace this process was in before.
    Before,
    /// A user namespace that this process made.
    Own,
}

/// Moves the calling process into a new network namespace, by right if it has
/// CAP_SYS_ADMIN and CAP_NET_ADMIN, else by way of a new user namespace. Only
/// the calling thread moves, and only a process of one thread may make a user
/// namespace: to be called before there is a second one. May undo
/// `PR_SET_PDEATHSIG` (where a security module changes the credentials).
///
/// Errors: the step that was refused; the process may then be in the user
/// namespace already.
pub fn enter(settings: &[Setting]) -> Result<Owner, Refusal> {
    Entry::prepare().enter(settings)
}

/// Moves the calling process into a new network namespace that belongs to the
/// user namespace of the process `pid`, which must be the same user's.
/// Otherwise as [`enter`].
///
/// Errors: the step that was refused; `ESRCH` or `ENOENT` if the process has
/// gone.
pub fn enter_beside(pid: u32, settings: &[Setting]) -> Result<(), Refusal> {
    let user = at(Step::Join, File::open(format!("/proc/{pid}/ns/user")))?;
    at(Step::Join, move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User)))?;
    enter_network(settings)
}

/// Moves the calling process into the network namespace of the process `pid`,
/// which must be the same user's, and into its user namespace first if that
/// process made it for the purpose. Otherwise as [`enter`].
///
/// Errors: the step that was refused; `ESRCH` or `ENOENT` if the process has
/// gone.
pub fn join(pid: u32, owner: Owner) -> Result<(), Refusal> {
    let open = |name: &str| at(Step::Join, File::open(format!("/proc/{pid}/ns/{name}")));
    let (user, network) = (open("user")?, open("net")?);
    let enter =
        |file: &File, kind| at(Step::Join, move_into_link_name_space(file.as_fd(), Some(kind)));
    if owner == Owner::Own {
        enter(&user, LinkNameSpaceType::User)?;
    }
    enter(&network, LinkNameSpaceType::Network)
}

/// Makes the first of these devices that the kernel has the kind of. Allocates
/// nothing.
///
/// Errors: `EOPNOTSUPP` where it has none of them; else as [`Route::add`].
pub fn add_first(devices: &[NewDevice]) -> Result<(), Errno> {
    let route = Route::open()?;
    let mut result = Err(Errno::EOPNOTSUPP);
    for device in devices {
        result = route.add(device);
        if result != Err(Errno::EOPNOTSUPP) {
            break;
        }
    }
    result
}

/// Tries in a child process what [`enter`] does, and `step`, the first of
/// these devices that the kernel has. The child ends before it becomes any
/// program.
///
/// Errors: the step that was refused.
pub fn try_in_child(
    settings: &[Setting],
    step: Step,
    devices: Vec<NewDevice>,
) -> Result<(), Refusal> {
    let entry = Entry::prepare();
    // The name is never used: the attempt ends every child before that.
    let mut command = std::process::Command::new("/");
    let settings: Vec<Setting> = settings.to_vec();
    let attempt = move || {
        let result = entry.enter(&settings).and_then(|_| at(step, add_first(&devices)));
        Err(std::io::Error::from_raw_os_error(told(result)))
    };
    // SAFETY: the closure makes system calls on memory prepared above and
    // allocates nothing: paths are constants short enough for rustix's stack.
    unsafe { command.pre_exec(attempt) };
    match command.spawn() {
        Err(error) => heard(Errno::from(error).raw()),
        Ok(_) => Err(Refusal { step: Step::Child, errno: Errno::EINVAL }),
    }
}

/// The result of an attempt as the one number that a child which does not
/// become a program can give its parent: the step above the error number.
fn told(result: Result<(), Refusal>) -> i32 {
    let Err(Refusal { step, errno }) = result else { return SUCCESS };
    Step::ALL
        .iter()
        .position(|&s| s == step)
        .map_or(errno.raw(), |index| errno.raw() | i32::try_from(index).unwrap_or(0) << ERRNO_BITS)
}

/// What [`told`] said; a number without a step is of the child itself.
fn heard(number: i32) -> Result<(), Refusal> {
    if number == SUCCESS {
        return Ok(());
    }
    let index = usize::try_from(number >> ERRNO_BITS).unwrap_or(0);
    let step = Step::ALL.get(index).copied().unwrap_or(Step::Child);
    Err(Refusal { step, errno: Errno::from_raw(number & ((1 << ERRNO_BITS) - 1)) })
}

/// Error numbers are below 4096 (`MAX_ERRNO`).
const ERRNO_BITS: u32 = 12;
/// No step and no error has this number.
const SUCCESS: i32 = i32::MAX;

/// What [`enter`] needs to know before it begins: inside a new user namespace
/// a process no longer sees its number, and a forked child must not allocate.
struct Entry {
    privileged: bool,
    user_map: String,
    group_map: String,
}

impl Entry {
    fn prepare() -> Entry {
        let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Entry {
            privileged: capabilities(None).is_ok_and(|held| held.effective.contains(needed)),
            user_map: format!("0 {user} 1"),
            group_map: format!("0 {group} 1"),
        }
    }

    fn enter(&self, settings: &[Setting]) -> Result<Owner, Refusal> {
        let owner = if self.privileged {
            Owner::Before
        } else {
            self.enter_user()?;
            Owner::Own
        };
        enter_network(settings)?;
        Ok(owner)
    }

    /// A user namespace in which this user is root, so that programs that are
    /// brought in with nsenter(1) have its rights too. `setgroups` must be
    /// given up before a group may be mapped (user_namespaces(7)).
    fn enter_user(&self) -> Result<(), Refusal> {
        // Else root owns our files in /proc, if this program's file has
        // capabilities: then the maps could not be written.
        at(Step::Root, set_dumpable_behavior(DumpableBehavior::Dumpable))?;
        unshare(Step::UserNamespace, UnshareFlags::NEWUSER)?;
        let maps: [(&str, &str); 3] = [
            ("/proc/self/setgroups", "deny"),
            ("/proc/self/uid_map", &self.user_map),
            ("/proc/self/gid_map", &self.group_map),
        ];
        maps.into_iter().try_for_each(|(path, text)| at(Step::Root, write(path, text)))
    }
}

/// A network namespace with these settings, for the calling thread. A kernel
/// that lacks a setting lacks what it sets.
fn enter_network(settings: &[Setting]) -> Result<(), Refusal> {
    unshare(Step::NetworkNamespace, UnshareFlags::NEWNET)?;
    settings.iter().try_for_each(|(path, value)| match write(path, value) {
        Err(Errno::ENOENT) => Ok(()),
        result => at(Step::Setting, result),
    })
}

fn unshare(step: Step, flags: UnshareFlags) -> Result<(), Refusal> {
    // SAFETY: the flags do not hold `CLONE_FILES`.
    at(step, unsafe { unshare_unsafe(flags) })
}

/// Writes a file of /proc whole. Allocates nothing.
fn write(path: &str, text: &str) -> Result<(), Errno> {
    let fd = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&fd, text.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_survives_its_way_from_the_child() {
        assert_eq!(heard(told(Ok(()))), Ok(()));
        for step in Step::ALL {
            let refusal = Refusal { step, errno: Errno::EPERM };
            assert_eq!(heard(told(Err(refusal))), Err(refusal));
        }
        let no_child = Refusal { step: Step::Child, errno: Errno::EAGAIN };
        assert_eq!(heard(Errno::EAGAIN.raw()), Err(no_child));
    }
}
