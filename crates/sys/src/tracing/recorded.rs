//! Tracing by tracepoints: the program runs, and what it does is read from rings.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::Path;

use super::born::{Born, wait};
use super::call::OWN_ARCHITECTURE;
use super::{CallInTask, TraceError, TraceEvent, TracedCall};
use crate::errno::Errno;
use crate::perf_event::calls::{CallRecord, CallRecorder, CallSide};
use crate::poll::readable;

/// How long records lie in a ring that does not fill, ns.
const LOOK_NS: u64 = 1_000_000;

/// Looks that find nothing before that is told.
const LOOKS_MAX: u32 = 100;

/// `ELFCLASS64`, and the `EM_…` of this machine.
const CLASS_64: u8 = 2;
const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

/// The largest error of a system call: `MAX_ERRNO`, include/linux/err.h.
const ERRNO_MAX: i64 = 4095;

/// Whether a program's calls have other numbers than this machine's own: the records do not tell.
pub(super) fn is_of_another_kind(program: &Path) -> bool {
    let mut header = [0u8; 20];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut header));
    // Bytes of e_ident, and e_machine behind e_type: elf(5).
    read.is_ok()
        && header.starts_with(b"\x7fELF")
        && (header[4] != CLASS_64 || header[18..] != MACHINE.to_le_bytes())
}

/// A program whose calls are recorded: the first process of a pid namespace.
#[derive(Debug)]
pub(super) struct Recorded {
    first: u32,
    recorder: CallRecorder,
    /// The call that each task is in.
    calls: HashMap<u32, CallInTask>,
    ended: Option<i32>,
}

impl Recorded {
    pub(super) fn of(first: u32, recorder: CallRecorder) -> Recorded {
        Recorded { first, recorder, calls: HashMap::new(), ended: None }
    }

    /// Lets it execute, from which on its calls are recorded.
    pub(super) fn execute(&mut self, born: &mut Born) -> Result<(), TraceError> {
        born.execute().map_err(TraceError::Start)?;
        born.failure().map_or(Ok(()), |errno| Err(TraceError::Start(errno)))
    }

    /// The next event, in the order of each task's. `program` is readable from its end on.
    pub(super) fn next_event(&mut self, program: BorrowedFd<'_>) -> Result<TraceEvent, TraceError> {
        for _ in 0..LOOKS_MAX {
            let has_ended = self.ended.is_some();
            if let Some(record) = self.recorder.next_record().map_err(TraceError::Lost)? {
                return Ok(self.told(record));
            }
            if let (true, Some(status)) = (has_ended, self.ended) {
                return Ok(TraceEvent::Ended(status));
            }
            let fds: Vec<BorrowedFd<'_>> =
                [program].into_iter().chain(self.recorder.fds()).collect();
            match readable(&fds, LOOK_NS).as_deref() {
                Ok([true, ..]) => self.ended = Some(wait(self.first).map_err(TraceError::Record)?),
                Ok(_) | Err(&Errno::EINTR) => {}
                Err(&errno) => return Err(TraceError::Record(errno)),
            }
        }
        Ok(TraceEvent::Quiet)
    }

    fn told(&mut self, record: CallRecord) -> TraceEvent {
        let CallRecord { task, number, side, .. } = record;
        match side {
            CallSide::Enters(arguments) => {
                let call = TracedCall { architecture: OWN_ARCHITECTURE, number };
                self.calls.insert(task, CallInTask { call, task, arguments });
                TraceEvent::Enters(call)
            }
            CallSide::Returns(value) => {
                let is_error = (-ERRNO_MAX..0).contains(&value);
                let value = (!is_error).then(|| value.cast_unsigned());
                TraceEvent::Returns { call: self.calls.remove(&task), value }
            }
        }
    }

    /// Kills it, and the kernel all that it has started; waits for their end.
    pub(super) fn end(&mut self) {
        if self.ended.is_none() {
            let _ = crate::fork::kill(self.first);
            self.ended = wait(self.first).ok();
        }
    }
}
