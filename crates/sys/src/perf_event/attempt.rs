//! Whether the kernel gives this process an event: it is opened disabled, and
//! closed again before it counts anything. Samples would have nowhere to go:
//! nothing is mapped.

use std::os::fd::{FromRawFd, OwnedFd};

use perf_event_open_sys::{self as perf, bindings as abi};

use super::{Event, Kind, Mode, Options, attributes};
use crate::errno::Errno;

/// Samples per second that are asked for.
const SAMPLES_PER_S: u64 = 1000;

/// An event whose owner wants to know whether he may have it. They differ in
/// the rights they need; see perf_event_open(2), EACCES and EPERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// Counts this thread while it is in the program.
    CountUser,
    /// Counts this thread in the kernel too.
    CountKernel,
    /// Counts everything that happens on CPU 0, whoever runs there.
    CountCpu,
    /// Takes samples of this thread while it is in the program.
    SampleUser,
    /// Takes samples of this thread in the kernel too, with call chains.
    SampleKernel,
    /// Counts how often this thread passes the tracepoint of this id.
    Tracepoint(u64),
}

impl Attempt {
    /// Opens and closes the event.
    ///
    /// Errors: see [`super::Refusal`].
    pub fn make(self) -> Result<(), Errno> {
        let mut attributes = self.attributes();
        let (pid, cpu) = if self == Attempt::CountCpu { (-1, 0) } else { (0, -1) };
        let flags = libc::c_ulong::from(abi::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes are a live, complete struct of the size that
        // they state; the numbers mean this thread anywhere, or CPU 0.
        let fd = unsafe { perf::perf_event_open(&raw mut attributes, pid, cpu, -1, flags) };
        if fd < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the kernel has just made this descriptor, for nobody else.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(())
    }

    fn attributes(self) -> abi::perf_event_attr {
        let mode = match self {
            Attempt::CountUser | Attempt::SampleUser => Mode::User,
            _ => Mode::Any,
        };
        let event = Event { kind: Kind::TaskClock, mode, pmu: None };
        let mut attributes = attributes(&event, Options::default(), true);
        match self {
            Attempt::CountUser | Attempt::CountKernel | Attempt::CountCpu => {}
            Attempt::SampleUser | Attempt::SampleKernel => {
                attributes.config = u64::from(abi::PERF_COUNT_SW_CPU_CLOCK);
                attributes.read_format = 0;
                attributes.set_freq(1);
                attributes.__bindgen_anon_1.sample_freq = SAMPLES_PER_S;
                attributes.sample_type = u64::from(abi::PERF_SAMPLE_IP)
                    | u64::from(abi::PERF_SAMPLE_TID)
                    | u64::from(abi::PERF_SAMPLE_CALLCHAIN);
            }
            Attempt::Tracepoint(id) => {
                attributes.type_ = abi::PERF_TYPE_TRACEPOINT;
                attributes.config = id;
            }
        }
        attributes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_sample_the_kernel_may_sample_the_program() {
        let may = |attempt: Attempt| attempt.make().is_ok();
        assert!(!may(Attempt::SampleKernel) || may(Attempt::SampleUser));
        assert!(!may(Attempt::CountKernel) || may(Attempt::CountUser));
        assert!(!may(Attempt::CountCpu) || may(Attempt::CountKernel));
    }

    #[test]
    fn there_is_no_such_tracepoint() {
        assert!(Attempt::Tracepoint(u64::MAX).make().is_err());
    }
}
