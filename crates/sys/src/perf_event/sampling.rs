//! Where the CPU is: samples of a thread, taken by a timer (or by cycles) and
//! written by the kernel into a ring that is shared with it; see
//! perf_event_open(2), "MMAP layout".
//!
//! # Safety
//! Calls of ioctl(2) alone are given plain numbers.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, OwnedFd};

use perf_event_open_sys::{self as perf, bindings as abi};

use super::Scope;
use super::ring::Ring;
use crate::errno::Errno;

/// What makes the kernel look where the CPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A timer that runs while the thread is on a CPU, every so many ns.
    CpuClock {
        /// From one sample to the next.
        period_ns: u64,
    },
    /// The processor's cycles, every so many of them, wherever they are spent.
    Cycles {
        /// From one sample to the next.
        period_cycles: u64,
    },
}

/// Whether samples are taken in the kernel too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In the program and in the kernel on its behalf.
    Everything,
    /// In the program only; what an ordinary user may always ask for.
    UserOnly,
}

/// One thing that the kernel wrote.
#[derive(Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A look at the thread.
    Sample {
        /// When, on `CLOCK_MONOTONIC`.
        time_ns: u64,
        /// Addresses from where the CPU was outwards to its callers.
        stack: Stack<'a>,
    },
    /// Samples for which the ring had no room, or that were held back.
    Lost {
        /// How many; throttling does not say.
        samples: u64,
    },
}

/// The addresses of a sample, innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack<'a>(&'a [u64]);

/// On which side of the boundary an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// The kernel's.
    Kernel,
    /// The program's.
    User,
}

/// `PERF_CONTEXT_KERNEL`, `_USER` and `_MAX`: marks between addresses.
const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512i64).cast_unsigned();
const CONTEXT_MAX: u64 = (-4095i64).cast_unsigned();

impl Stack<'_> {
    /// Addresses with their side, innermost first; marks are left out.
    pub fn frames(&self) -> impl Iterator<Item = (Space, u64)> {
        let mut space = Space::User;
        self.0.iter().filter_map(move |&word| match word {
            CONTEXT_KERNEL => {
                space = Space::Kernel;
                None
            }
            CONTEXT_USER => {
                space = Space::User;
                None
            }
            CONTEXT_MAX.. => None,
            address => Some((space, address)),
        })
    }
}

/// Pages of a ring besides the one that describes it: a power of two. 200
/// samples with 40 callers each, an order of magnitude more than a slice has.
const RING_PAGES: usize = 16;

/// Samples of the calling thread.
#[derive(Debug)]
pub struct Sampler {
    fd: OwnedFd,
    ring: Ring,
}

impl Sampler {
    /// Samples of the calling thread, wherever it runs, from
    /// [`Self::enable`] on.
    ///
    /// Errors: see [`super::Refusal`]; of mmap(2): `EPERM` where
    /// `kernel.perf_event_mlock_kb` and `RLIMIT_MEMLOCK` are used up.
    pub fn open(trigger: Trigger, reach: Reach) -> Result<Sampler, Errno> {
        let fd = super::open(attributes(trigger, reach), Scope::Thread, -1)?;
        let ring = Ring::of(&fd, RING_PAGES)?;
        Ok(Sampler { fd, ring })
    }

    /// Takes samples from now on.
    ///
    /// Errors: none that are documented; passed on if there is one.
    pub fn enable(&self) -> Result<(), Errno> {
        // SAFETY: the argument is a plain number.
        let result = unsafe { perf::ioctls::ENABLE(self.fd.as_raw_fd(), 0) };
        if result == 0 { Ok(()) } else { Err(Errno::last()) }
    }

    /// Takes none until it is enabled again.
    ///
    /// Errors: as [`Sampler::enable`].
    pub fn disable(&self) -> Result<(), Errno> {
        // SAFETY: the argument is a plain number.
        let result = unsafe { perf::ioctls::DISABLE(self.fd.as_raw_fd(), 0) };
        if result == 0 { Ok(()) } else { Err(Errno::last()) }
    }

    /// Hands over every record since the last call, oldest first. Allocates
    /// nothing.
    pub fn drain(&mut self, mut each: impl FnMut(Record<'_>)) {
        self.ring.drain(|words| {
            if let Some(record) = parse(words) {
                each(record);
            }
        });
    }
}

/// A record from its words; `None` for what is of no interest or is cut off.
/// The header is `type` (32 bits), `misc` (16), `size` (16); the body of a
/// sample is what `sample_type` asks for, in the order of the man page.
fn parse(words: &[u64]) -> Option<Record<'_>> {
    // The header's first half; `as` cuts off the rest on purpose.
    let kind = u32::try_from(words.first()? & u64::from(u32::MAX)).ok()?;
    match kind {
        abi::PERF_RECORD_SAMPLE => {
            let [_, time_ns, count, addresses @ ..] = words else { return None };
            let count = usize::try_from(*count).ok()?;
            Some(Record::Sample { time_ns: *time_ns, stack: Stack(addresses.get(..count)?) })
        }
        abi::PERF_RECORD_LOST => Some(Record::Lost { samples: *words.get(2)? }),
        abi::PERF_RECORD_LOST_SAMPLES => Some(Record::Lost { samples: *words.get(1)? }),
        abi::PERF_RECORD_THROTTLE => Some(Record::Lost { samples: 1 }),
        _ => None,
    }
}

fn attributes(trigger: Trigger, reach: Reach) -> abi::perf_event_attr {
    let (type_, config, period) = match trigger {
        Trigger::CpuClock { period_ns } => {
            (abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_CPU_CLOCK, period_ns)
        }
        Trigger::Cycles { period_cycles } => {
            (abi::PERF_TYPE_HARDWARE, abi::PERF_COUNT_HW_CPU_CYCLES, period_cycles)
        }
    };
    let mut attributes = abi::perf_event_attr {
        type_,
        size: u32::try_from(size_of::<abi::perf_event_attr>()).unwrap_or(u32::MAX),
        config: u64::from(config),
        sample_type: u64::from(abi::PERF_SAMPLE_TIME | abi::PERF_SAMPLE_CALLCHAIN),
        clockid: libc::CLOCK_MONOTONIC,
        ..abi::perf_event_attr::default()
    };
    attributes.__bindgen_anon_1.sample_period = period;
    attributes.set_disabled(1);
    attributes.set_use_clockid(1);
    attributes.set_exclude_hv(1);
    attributes.set_exclude_kernel(u64::from(reach == Reach::UserOnly));
    attributes.set_exclude_callchain_kernel(u64::from(reach == Reach::UserOnly));
    attributes
}

#[cfg(test)]
mod tests;
