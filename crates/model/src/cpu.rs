//! CPU time that something took.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// CPU time of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

impl Cpu {
    /// Below this the parts say where some few ticks of the kernel's clock found the process.
    const PARTS_MIN: Nanos = Nanos(50 * Nanos::MILLISECOND.0);

    /// All of it, which the kernel counts in ns.
    #[must_use]
    pub fn sum(&self) -> Nanos {
        Nanos(self.user.0.saturating_add(self.system.0))
    }

    /// `12.1 ms`, with `behind` after it, and with its parts where they mean something: the
    /// kernel divides the sum by where the ticks of its clock found the process. A part that no
    /// tick found is not known to be nothing.
    #[must_use]
    pub fn in_words(&self, behind: &str) -> String {
        let Cpu { user, system } = self;
        let sum = self.sum();
        match sum >= Cpu::PARTS_MIN && user.0 > 0 && system.0 > 0 {
            true => format!("{sum}{behind}, {user} of it user and {system} system"),
            false => format!("{sum}{behind}"),
        }
    }
}
