//! System calls by number and by name.

/// The architecture of calls of this machine's own kind: `AUDIT_ARCH_…`, <linux/audit.h>.
const OWN_ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

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
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let number = usize::try_from(self.number).ok()?;
        let is_own = self.architecture == OWN_ARCHITECTURE;
        is_own.then(|| syscalls::Sysno::new(number)).flatten().map(|call| call.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_this_machine_has_a_name() {
        let name = |architecture, number| TracedCall { architecture, number }.name();
        let read = u64::try_from(libc::SYS_read).unwrap();
        assert_eq!(name(OWN_ARCHITECTURE, read), Some("read"));
        assert_eq!(name(OWN_ARCHITECTURE, u64::MAX), None);
        assert_eq!(name(OWN_ARCHITECTURE + 1, read), None);
    }
}
