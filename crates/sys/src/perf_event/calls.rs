//! Every system call of a process and of all that it starts, by the tracepoints
//! `raw_syscalls:sys_enter` and `raw_syscalls:sys_exit`: one ring for each CPU, as perf-trace(1)
//! has it. The process is not held up, as it is by ptrace(2): a call costs it some 0.2 µs more.
//!
//! # Safety
//! ioctl(2) is given the number of a descriptor that is open.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use perf_event_open_sys::{self as perf, bindings as abi};

use super::ring::Ring;
use super::{Event, Kind, Mode, Options};
use crate::clock::monotonic_ns;
use crate::errno::Errno;
use crate::proc::Root;

/// Bytes of all rings together at most, as long as each can have [`RING_PAGES_MIN`].
const RINGS_BYTES_MAX: usize = 64 << 20;
const RING_PAGES_MIN: usize = 16;
const RING_PAGES_MAX: usize = 256;

/// The numbers of both tracepoints, in events/raw_syscalls/NAME/id of tracefs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTracepoints {
    /// Of `sys_enter`.
    pub enter: u64,
    /// Of `sys_exit`.
    pub exit: u64,
}

/// One side of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRecord {
    /// When, on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The id of the thread.
    pub task: u32,
    /// The number of the call.
    pub number: u64,
    /// Which side.
    pub side: CallSide,
}

/// The way into the kernel, or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallSide {
    /// With its arguments.
    Enters([u64; 6]),
    /// With what it returns: from -4095 to -1 an error.
    Returns(i64),
}

/// What records the calls of a process.
#[derive(Debug)]
pub struct CallRecorder {
    cpus: Vec<OfCpu>,
    tracepoints: CallTracepoints,
    /// Told next, in the order of their times.
    ready: VecDeque<CallRecord>,
    /// Of a time at which rings that were looked at before may have more.
    later: Vec<CallRecord>,
    lost: u64,
}

/// Events that write into one ring.
#[derive(Debug)]
struct OfCpu {
    enter: OwnedFd,
    _exit: OwnedFd,
    ring: Ring,
}

impl CallRecorder {
    /// Of a process, and of all that it starts, from its next execve(2) on.
    ///
    /// Errors: see [`super::Refusal`]; of mmap(2): `EPERM` where `kernel.perf_event_mlock_kb` and
    /// `RLIMIT_MEMLOCK` are used up; `ENODEV` where sysfs names no CPU; `EMFILE` where two
    /// descriptors for each CPU are too many.
    pub fn of(process: u32, tracepoints: CallTracepoints) -> Result<CallRecorder, Errno> {
        let all = cpus();
        let pages = RINGS_BYTES_MAX / rustix::param::page_size() / all.len().max(1);
        let pages = pages.clamp(RING_PAGES_MIN, RING_PAGES_MAX);
        // The largest power of two that is no larger.
        let pages = 1 << pages.ilog2();
        let mut cpus = Vec::new();
        for cpu in all {
            match OfCpu::of(process, cpu, tracepoints, pages) {
                // It is not there, or off.
                Err(errno) if errno == Errno::from_raw(libc::ENODEV) => {}
                opened => cpus.push(opened?),
            }
        }
        if cpus.is_empty() {
            return Err(Errno::from_raw(libc::ENODEV));
        }
        let (ready, later) = (VecDeque::new(), Vec::new());
        Ok(CallRecorder { cpus, tracepoints, ready, later, lost: 0 })
    }

    /// Descriptors that are readable when a quarter of their ring is filled.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.iter().map(|cpu| cpu.enter.as_fd())
    }

    /// The next record; `None` where there is none yet. Those of a thread come in the order in
    /// which they were made, also from several CPUs.
    ///
    /// Errors: how many records were lost so far, because a ring was full.
    pub fn next_record(&mut self) -> Result<Option<CallRecord>, u64> {
        if self.ready.is_empty() {
            self.drain();
        }
        if self.lost > 0 { Err(self.lost) } else { Ok(self.ready.pop_front()) }
    }

    /// What was written after the first ring was looked at waits for the next time: a thread may
    /// have moved from a CPU that was looked at to one that was not.
    fn drain(&mut self) {
        let begin_ns = monotonic_ns();
        let CallRecorder { cpus, tracepoints, later, lost, .. } = self;
        for cpu in cpus {
            cpu.ring.drain(|words| match parse(words, *tracepoints) {
                Some(Parsed::Call(record)) => later.push(record),
                Some(Parsed::Lost(records)) => *lost += records,
                None => {}
            });
        }
        // It keeps the order of those of one time, which one ring has in the right one.
        self.later.sort_by_key(|record| record.at_ns);
        let ready = self.later.partition_point(|record| record.at_ns <= begin_ns);
        self.ready.extend(self.later.drain(..ready));
    }
}

impl OfCpu {
    fn of(
        process: u32,
        cpu: u32,
        tracepoints: CallTracepoints,
        pages: usize,
    ) -> Result<OfCpu, Errno> {
        let open = |id| super::open_on(attributes(id, pages), process.cast_signed(), Some(cpu), -1);
        let (enter, exit) = (open(tracepoints.enter)?, open(tracepoints.exit)?);
        let ring = Ring::of(&enter, pages)?;
        // SAFETY: both descriptors are open.
        let result = unsafe { perf::ioctls::SET_OUTPUT(exit.as_raw_fd(), enter.as_raw_fd()) };
        if result != 0 {
            return Err(Errno::last());
        }
        Ok(OfCpu { enter, _exit: exit, ring })
    }
}

fn attributes(id: u64, pages: usize) -> abi::perf_event_attr {
    let kind = Kind::Tracepoint { name: "raw_syscalls", id };
    let event = Event { kind, mode: Mode::Any, pmu: None };
    let options = Options { inherit: true, ..Options::default() };
    let mut attributes = super::attributes(&event, options, true);
    attributes.read_format = 0;
    attributes.sample_type =
        u64::from(abi::PERF_SAMPLE_TID | abi::PERF_SAMPLE_TIME | abi::PERF_SAMPLE_RAW);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    attributes.set_use_clockid(1);
    attributes.set_enable_on_exec(1);
    attributes.set_watermark(1);
    attributes.__bindgen_anon_1.sample_period = 1;
    let quarter = pages * rustix::param::page_size() / 4;
    attributes.__bindgen_anon_2.wakeup_watermark = u32::try_from(quarter).unwrap_or(u32::MAX);
    attributes
}

/// What a record says.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Call(CallRecord),
    Lost(u64),
}

/// A record from its words; `None` for what is of no interest or is cut off. The body of a sample
/// is process and thread (32 bits each), time, and behind 32 bits of its size what the tracepoint
/// has: eight bytes that all have, which begin with its number (16 bits), and then the call's
/// number and its arguments or its value (include/trace/events/syscalls.h).
fn parse(words: &[u64], tracepoints: CallTracepoints) -> Option<Parsed> {
    let half = |word: u64, at: u32| (word >> (32 * at)) & u64::from(u32::MAX);
    let own_kind = half(*words.first()?, 0);
    if own_kind == u64::from(abi::PERF_RECORD_LOST) {
        return Some(Parsed::Lost(*words.get(2)?));
    }
    if own_kind != u64::from(abi::PERF_RECORD_SAMPLE) {
        return None;
    }
    // Fields begin in the middle of a word.
    let field = |at: usize| Some(half(*words.get(at)?, 1) | half(*words.get(at + 1)?, 0) << 32);
    let tracepoint = half(*words.get(3)?, 1) & u64::from(u16::MAX);
    let side = if tracepoint == tracepoints.enter {
        let mut arguments = [0; 6];
        for (at, argument) in arguments.iter_mut().enumerate() {
            *argument = field(5 + at)?;
        }
        CallSide::Enters(arguments)
    } else if tracepoint == tracepoints.exit {
        CallSide::Returns(field(5)?.cast_signed())
    } else {
        return None;
    };
    let task = u32::try_from(half(*words.get(1)?, 1)).ok()?;
    Some(Parsed::Call(CallRecord { at_ns: *words.get(2)?, task, number: field(4)?, side }))
}

/// The numbers of all CPUs, in which there may be gaps.
fn cpus() -> Vec<u32> {
    let names = Root::real().names("sys/devices/system/cpu");
    names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEPOINTS: CallTracepoints = CallTracepoints { enter: 380, exit: 379 };

    /// A sample as the kernel writes it, from the tracepoint's own fields.
    fn sample(task: u32, at_ns: u64, tracepoint: u16, fields: &[u64]) -> Vec<u64> {
        let raw: Vec<u8> = [u64::from(tracepoint)]
            .iter()
            .chain(fields)
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let mut body = u32::try_from(raw.len()).unwrap().to_ne_bytes().to_vec();
        body.extend(raw);
        body.resize(body.len().next_multiple_of(8), 0);
        let body = body.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        let ids = u64::from(task) << 32 | 7;
        [u64::from(abi::PERF_RECORD_SAMPLE), ids, at_ns].into_iter().chain(body).collect()
    }

    #[test]
    fn both_sides_of_a_call_are_read() {
        let far = u64::MAX - 2;
        let enter = sample(9, 1000, 380, &[17, 3, far, 4096, 0, 5, 6]);
        let arguments = [3, far, 4096, 0, 5, 6];
        let entered =
            CallRecord { at_ns: 1000, task: 9, number: 17, side: CallSide::Enters(arguments) };
        assert_eq!(parse(&enter, TRACEPOINTS), Some(Parsed::Call(entered)));
        let exit = sample(9, 1001, 379, &[17, (-9i64).cast_unsigned()]);
        let returned = CallRecord { at_ns: 1001, side: CallSide::Returns(-9), ..entered };
        assert_eq!(parse(&exit, TRACEPOINTS), Some(Parsed::Call(returned)));
    }

    #[test]
    fn what_is_cut_off_or_another_is_none_and_what_is_lost_is_counted() {
        let enter = sample(9, 1000, 380, &[17, 1, 2, 3, 4, 5, 6]);
        for words in 0..enter.len() - 1 {
            assert_eq!(parse(&enter[..words], TRACEPOINTS), None, "{words}");
        }
        assert_eq!(parse(&sample(9, 1000, 12, &[1, 2]), TRACEPOINTS), None);
        assert_eq!(parse(&[u64::from(abi::PERF_RECORD_EXIT), 1, 2], TRACEPOINTS), None);
        let lost = [u64::from(abi::PERF_RECORD_LOST), 5, 12];
        assert_eq!(parse(&lost, TRACEPOINTS), Some(Parsed::Lost(12)));
    }
}
