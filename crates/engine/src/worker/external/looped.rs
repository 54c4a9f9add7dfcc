//! A program of the user's that speaks the loop protocol, as an arm of `net`, `file` or `syscall`:
//! set up once in a trial, it does the operations of each slice when it is asked to.
//!
//! The clock of a slice runs from before the request is written until its answer is read, or until
//! the receiving end has all that was sent. What it was charged is read behind it.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use iolens_model::ab::AB_IDLE_SHARE_MAX;
use iolens_model::external::External;
use iolens_model::file::{FileCounts, PROGRAM_READ_BYTES};
use iolens_model::trial::Trial;
use iolens_programs::{
    Answered, Around, BeforeSlice, Beside, Conversation, ProgramFile, ProgramLimits, ProgramPlace,
    Request, Seed, UserProgram,
};
use iolens_sys::affinity;
use iolens_sys::errno::Errno;
use iolens_sys::proc::{ProcFile, io_number};

use crate::worker::facts::socket_facts;
use crate::worker::link;
use iolens_file::part::stir;
use iolens_harness::op::{Budget, Children, Fact, Sender, Span, Tally, Trouble};

/// Slices after which a program that works between them is told from one that was not done yet.
const SLICES_BEFORE_JUDGING: u64 = 8;

/// CPU time between slices that tells nothing, ns.
const IDLE_NS_MIN: u64 = 1_000_000;

/// Room for the text of /proc/PID/io.
const IO_BYTES: usize = 1024;

/// What a program that is an arm is to do, and where.
pub(crate) struct Looping<'a> {
    pub(crate) trial: &'a Trial,
    pub(crate) arm: usize,
    pub(crate) thread: usize,
    pub(crate) external: &'a External,
    /// Its words without placeholders.
    pub(crate) argv: Vec<Vec<u8>>,
    /// Where it may run. The thread that starts it is bound to the first of them.
    pub(crate) cpus: Vec<u32>,
    /// Processes among which the operations of a slice are divided.
    pub(crate) processes: u32,
    /// The program's connections lead there, and the lane goes beside them; `None` in studies
    /// without a network.
    pub(crate) far: Option<(SocketAddr, BorrowedFd<'a>)>,
}

/// Bytes that a program has read.
#[derive(Debug, Clone, Copy)]
struct ReadSoFar {
    by_calls: u64,
    from_device: u64,
}

/// A program that is an arm, as a thread has it.
pub(crate) struct LoopedProgram<'a> {
    name: &'a str,
    talk: Conversation,
    far: Option<(SocketAddr, BorrowedFd<'a>)>,
    /// Its place among the processes of the arm.
    place: (u32, u32),
    operations: u64,
    operation_bytes: u64,
    request: Request,
    limit_ns: u64,
    /// What it has read; `None` where that is not asked or not told.
    io: Option<ProcFile>,
    read_before: Option<ReadSoFar>,
    /// By its system calls, in all slices.
    read_bytes: Option<u64>,
    before: Option<BeforeSlice>,
    answered: Option<Answered>,
    slices: u64,
    cpu_ns: u64,
    idle_ns: u64,
    facts: Vec<Fact>,
    trouble: Option<Trouble>,
    tally: Tally,
}

impl<'a> LoopedProgram<'a> {
    /// Starts a program and waits until it is set up.
    ///
    /// Errors: why it is not.
    pub(crate) fn start(looping: Looping<'a>) -> Result<LoopedProgram<'a>, Trouble> {
        let Looping { trial, external, cpus, thread, arm, .. } = looping;
        let name = &*external.name;
        let failed = |what: String| Trouble::failed(format!("`{name}` {what}"));
        let program = user_program(name, &looping.argv)?;
        let seed = [u64::from(trial.pass), u64::from(trial.position), arm as u64, thread as u64];
        let seed = Seed::of(seed.into_iter().fold(0, |seed, part| stir(seed.wrapping_add(part))));
        let beside = if cpus.len() > 1 { Beside::OtherCpus } else { Beside::SameCpu };
        let cannot = |errno: Errno| failed(format!("cannot be given its CPUs: {errno}"));
        affinity::restrict_thread(&cpus).map_err(cannot)?;
        let talk = Conversation::start(&program, ProgramPlace::FreshCopy, seed, beside, None);
        affinity::pin_thread(cpus[0]).map_err(cannot)?;
        let fault = |fault: iolens_programs::ProgramFault| failed(fault.to_string());
        let mut talk = talk.map_err(fault)?;
        talk.wait_until_ready(&ProgramLimits::USUAL, &|| false).map_err(fault)?;
        let operation_bytes = trial.cell.size.0;
        if let Some(bytes) = talk.ready().bytes.filter(|&bytes| bytes != operation_bytes) {
            return Err(failed(format!(
                "says that an operation moves {bytes} bytes, and was told {operation_bytes}"
            )));
        }
        let io = trial
            .cell
            .file()
            .and_then(|_| ProcFile::open(&format!("/proc/{}/io", talk.id()), IO_BYTES).ok());
        let read_bytes = io.as_ref().map(|_| 0);
        let limit_ns = u64::try_from(link::stall_limit(trial).as_nanos()).unwrap_or(u64::MAX);
        let thread = u32::try_from(thread).unwrap_or(u32::MAX);
        Ok(LoopedProgram {
            name,
            talk,
            far: looping.far,
            place: (thread, looping.processes.max(1)),
            operations: 0,
            operation_bytes,
            request: Request::of(1),
            limit_ns: limit_ns.max(ProgramLimits::USUAL.slice_ns),
            io,
            read_before: None,
            read_bytes,
            before: None,
            answered: None,
            slices: 0,
            cpu_ns: 0,
            idle_ns: 0,
            facts: Vec::new(),
            trouble: None,
            tally: Tally {
                children: Some(Children::default()),
                file: trial.cell.file().map(|_| FileCounts::default()),
                ..Tally::default()
            },
        })
    }

    fn failed(&self, what: impl std::fmt::Display) -> Trouble {
        Trouble::failed(format!("`{}` {what}", self.name))
    }

    fn read_so_far(&mut self) -> Option<ReadSoFar> {
        let text = self.io.as_mut()?.read()?;
        let number = |name| io_number(text, name);
        Some(ReadSoFar { by_calls: number("rchar")?, from_device: number("read_bytes")? })
    }

    /// Notes what it has read in the slice.
    fn note_reading(&mut self) {
        let Some(file) = self.tally.file else { return };
        let slice = self.read_so_far().zip(self.read_before);
        let slice = slice.map(|(now, then)| ReadSoFar {
            by_calls: now.by_calls.saturating_sub(then.by_calls),
            from_device: now.from_device.saturating_sub(then.from_device),
        });
        self.read_bytes = self.read_bytes.zip(slice).map(|(all, slice)| all + slice.by_calls);
        let device_bytes = slice.map(|slice| slice.from_device);
        self.tally.file = Some(FileCounts { device_bytes, ..file });
    }

    /// Notes what it spent in the slice, and between this one and the one before.
    fn note_cpu(&mut self, idle_ns: Option<u64>, cpu_ns: Option<u64>) -> Result<(), Trouble> {
        self.tally.children.get_or_insert_default().add(&Children::of_cpu(cpu_ns));
        self.slices += 1;
        self.cpu_ns += cpu_ns.unwrap_or_default();
        self.idle_ns += idle_ns.unwrap_or_default();
        let share = self.idle_ns as f64 / (self.cpu_ns as f64).max(1.0);
        let is_known = self.slices >= SLICES_BEFORE_JUDGING && cpu_ns.is_some();
        match is_known && self.idle_ns >= IDLE_NS_MIN && share > AB_IDLE_SHARE_MAX {
            true => Err(self.failed(format!(
                "works when it was not asked to: {:.0}% of its CPU time lies between its slices",
                share * 100.0
            ))),
            false => Ok(()),
        }
    }
}

/// When a program worked. One that has timed itself did so in the middle of the exchange, as far as
/// is known: asking comes before, answering behind. `None` if it says that it took longer.
fn span_of(answered: &Answered) -> Option<Span> {
    let Answered { begin_ns, took_ns, answer } = answered;
    let own_ns = answer.own_ns.unwrap_or(*took_ns);
    let first_call_ns = begin_ns + took_ns.checked_sub(own_ns)? / 2;
    Some(Span { first_call_ns, last_call_ns: first_call_ns + own_ns })
}

/// The file that a program runs.
fn user_program(name: &str, argv: &[Vec<u8>]) -> Result<UserProgram, Trouble> {
    let words = argv.iter().map(|word| String::from_utf8(word.clone()));
    let argv: Vec<String> = words.collect::<Result<_, _>>().map_err(|_| {
        Trouble::refused(format!("`{name}` cannot be told of a file whose name is not UTF-8"))
    })?;
    let file = ProgramFile::of(&argv).map_err(|why| Trouble::refused(why.to_string()))?;
    Ok(UserProgram { name: name.to_owned(), argv, file })
}

impl Sender for LoopedProgram<'_> {
    fn prepare(&mut self, messages: u64) -> Result<(), Trouble> {
        let (thread, processes) = (u64::from(self.place.0), u64::from(self.place.1));
        let own = messages / processes + u64::from(thread < messages % processes);
        if self.operations != own {
            (self.operations, self.request) = (own, Request::of(own));
        }
        if own == 0 {
            return Ok(());
        }
        let ready = self.talk.prepare(&self.request, Around::Tree, self.limit_ns, &|| false);
        self.before = Some(ready.map_err(|fault| self.failed(fault))?);
        self.talk.trim_errors();
        self.read_before = self.read_so_far();
        Ok(())
    }

    fn run(&mut self, _budget: &Budget) -> Result<Span, Errno> {
        if self.operations == 0 {
            return Ok(Span::none().end());
        }
        match self.talk.ask(&self.request, self.limit_ns, &|| false) {
            Ok(answered) => {
                let Some(span) = span_of(&answered) else {
                    self.trouble = Some(self.failed(format!(
                        "says ns={} of a slice that took {} ns",
                        answered.answer.own_ns.unwrap_or_default(),
                        answered.took_ns
                    )));
                    return Err(Errno::EIO);
                };
                self.answered = Some(answered);
                self.tally.messages += self.operations;
                self.tally.bytes += self.operations.saturating_mul(self.operation_bytes);
                Ok(span)
            }
            Err(fault) => {
                self.trouble = Some(self.failed(fault));
                Err(Errno::EIO)
            }
        }
    }

    /// As [`Bystander`](super::Bystander) has it, with which it keeps step.
    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(true)
    }

    fn conclude(&mut self) -> Result<(), Trouble> {
        let done = self.before.take().zip(self.answered.take());
        let Some((before, answered)) = done else { return Ok(()) };
        let reading = self.talk.account(before, answered);
        self.note_reading();
        if let Some((receiver, lane)) = self.far.filter(|_| self.slices < 2) {
            // The kernel lets a send buffer grow while there is much to send (tcp(7)).
            self.facts = socket_facts(self.talk.id(), receiver, lane);
        }
        self.note_cpu(reading.own_idle_cpu_ns, reading.cpu_ns)
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn explain(&mut self) -> Option<Trouble> {
        self.trouble.take()
    }

    fn facts(&self) -> Vec<Fact> {
        let read = self.read_bytes.map(|bytes| bytes as f64 / self.tally.messages.max(1) as f64);
        let read = read.map(|each| (PROGRAM_READ_BYTES, format!("{each:.0}")));
        self.facts.iter().cloned().chain(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use iolens_programs::protocol::Answer;

    use super::*;

    #[test]
    fn a_program_that_timed_itself_worked_in_the_middle() {
        let span = |own_ns| {
            let answer = Answer { own_ns, ..Answer::default() };
            let span = span_of(&Answered { begin_ns: 1000, took_ns: 500, answer })?;
            Some((span.first_call_ns, span.last_call_ns))
        };
        assert_eq!(span(None), Some((1000, 1500)));
        assert_eq!(span(Some(400)), Some((1050, 1450)));
        assert_eq!(span(Some(0)), Some((1250, 1250)));
        assert_eq!(span(Some(501)), None);
    }
}
