//! System calls by number and by name, and the files that they are given.

use rustix::fs::{major, minor, stat};

use crate::file::create::Identity;

/// The architecture of calls of this machine's own kind: `AUDIT_ARCH_…`, <linux/audit.h>.
pub(super) const OWN_ARCHITECTURE: u32 =
    if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// A system call by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TracedCall {
    /// `AUDIT_ARCH_…` of <linux/audit.h>: a program of 32 bits has other numbers.
    pub architecture: u32,
    /// Its number there.
    pub number: u64,
}

impl TracedCall {
    /// Its name; `None` for one of another architecture and for one that is newer than iolens.
    pub fn name(self) -> Option<&'static str> {
        let number = usize::try_from(self.number).ok()?;
        let is_own = self.architecture == OWN_ARCHITECTURE;
        is_own.then(|| syscalls::Sysno::new(number)).flatten().map(|call| call.name())
    }
}

/// A system call that a task has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallInTask {
    /// Which.
    pub call: TracedCall,
    /// Who made it: the id of a thread.
    pub task: u32,
    /// What it was given.
    pub arguments: [u64; 6],
}

impl CallInTask {
    /// The file behind the argument at this place, by its number in the task, which must not have
    /// gone on from the stop. `None` where that is no descriptor, or the task may not be looked at.
    pub fn file(&self, place: usize) -> Option<Identity> {
        // A descriptor is an int: the kernel does not look at the rest of the register.
        let [a, b, c, d, ..] = self.arguments.get(place)?.to_le_bytes();
        let descriptor = i32::from_le_bytes([a, b, c, d]);
        let found = stat(format!("/proc/{}/fd/{descriptor}", self.task)).ok()?;
        let device = (major(found.st_dev), minor(found.st_dev));
        Some(Identity { device, inode: found.st_ino })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsFd, AsRawFd};

    use super::*;
    use crate::file::about::about;

    #[test]
    fn a_call_of_this_machine_has_a_name() {
        let name = |architecture, number| TracedCall { architecture, number }.name();
        let read = u64::try_from(libc::SYS_read).unwrap();
        assert_eq!(name(OWN_ARCHITECTURE, read), Some("read"));
        assert_eq!(name(OWN_ARCHITECTURE, u64::MAX), None);
        assert_eq!(name(OWN_ARCHITECTURE + 1, read), None);
    }
    #[test]
    fn the_file_of_a_descriptor_is_found() {
        let file = File::open("/proc/self/exe").unwrap();
        let descriptor = u64::from(file.as_raw_fd().unsigned_abs());
        let made = |descriptor: u64| CallInTask {
            call: TracedCall { architecture: OWN_ARCHITECTURE, number: 0 },
            task: std::process::id(),
            arguments: [0, descriptor, 0, 0, 0, 0],
        };
        let own = Identity::of(&about(file.as_fd()).unwrap());
        assert_eq!(made(descriptor).file(1), Some(own));
        assert_eq!(made(1 << 32 | descriptor).file(1), Some(own), "the rest is no part of it");
        assert_eq!(made(u64::MAX).file(1), None);
        assert_eq!(made(descriptor).file(6), None);
    }
}
