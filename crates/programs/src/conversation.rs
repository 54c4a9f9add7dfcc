//! A process that speaks the loop protocol, and one slice of it.

mod ending;
mod slice;

use std::os::fd::{AsFd, OwnedFd};

use iolens_sys::errno::Errno;
use iolens_sys::launch::StackPlace;
use iolens_sys::proc::Root;
use iolens_sys::{clock, kin, pipe, poll, socket, usage};

pub use self::ending::finish;
pub use self::slice::{Answered, Around, BeforeSlice, Reading};
use crate::charged::TreeCharged;
use crate::charged::{Account, Charged, own_memory_bytes};
use crate::fault::ProgramFault;
use crate::files::{ProgramLimits, ProgramPlace, UserProgram};
use crate::program::{LOOK_NS, Prepared, Process, Seed};
use crate::protocol::{
    self, Answer, LINE_BYTES_MAX, LineFault, LineKind, Lines, Ready, STRAY_BYTES_MAX, quoted,
};

/// What a pipe to or from a program holds.
const PIPE_BYTES: usize = 64 << 10;

/// How long a program that closed its output has to end, before it counts as one that goes on.
const DYING_NS: u64 = 1_000_000_000;

/// Whether the coordinator has one processor with the program, or others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// The same: whoever answered sleeps when the answer is read.
    SameCpu,
    /// Another one: it may still run, and the kernel tells of its time when it sleeps.
    OtherCpus,
}

/// The children of a process. Between two that are equal none of them did anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Children {
    /// Their ids, and the CPU time of each.
    living: Vec<(u32, Option<u64>)>,
    /// Page faults of those that were waited for: whatever was executed has some.
    buried_faults: u64,
}

impl Children {
    /// Whether some are there.
    pub fn are_there(&self) -> bool {
        !self.living.is_empty()
    }
}

/// A request in bytes, made before any clock runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    operations: u64,
    line: Vec<u8>,
    prepare: Vec<u8>,
}

impl Request {
    /// For so many operations.
    pub fn of(operations: u64) -> Request {
        let line = format!("{operations}\n").into_bytes();
        Request { operations, prepare: [b"prepare ", &line[..]].concat(), line }
    }
}

/// Where a program speaks: the place in pairs of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// On its standard input and output.
    Standard = 0,
    /// On the numbers 3 and 4; its standard output is its own.
    Apart = 1,
}

impl Channel {
    const ALL: [Channel; 2] = [Channel::Standard, Channel::Apart];

    /// The one where it does not speak.
    fn other(self) -> Channel {
        match self {
            Channel::Standard => Channel::Apart,
            Channel::Apart => Channel::Standard,
        }
    }
}

/// A process and its pipes.
#[derive(Debug)]
pub struct Conversation {
    process: Process,
    account: Account,
    /// Our ends of its standard input and its number 3, until they are closed.
    inputs: [Option<OwnedFd>; 2],
    /// Our ends of its standard output and its number 4.
    outputs: [OwnedFd; 2],
    channel: Channel,
    /// Outputs from which something is waited for.
    is_open: [bool; 2],
    lines: Lines,
    ready: Ready,
    beside: Beside,
    slices: u64,
    /// Lines of its own in slices.
    stray_lines: u64,
    stray_bytes: u64,
    /// The last of them.
    stray: ([u8; LINE_BYTES_MAX], usize),
    cpu_after_ns: Option<u64>,
    /// Behind the last slice, where slices are charged with its children.
    tree_after: Option<TreeCharged>,
    /// An answer that came when nothing was asked any more.
    late: Option<LineFault>,
}

impl Conversation {
    /// Starts a program, with its stack at this place if one is stated; it is not asked anything
    /// yet.
    ///
    /// Errors: why it cannot be started.
    pub fn start(
        program: &UserProgram,
        place: ProgramPlace,
        seed: Seed,
        beside: Beside,
        stack: Option<StackPlace>,
    ) -> Result<Conversation, ProgramFault> {
        let cannot =
            |errno: Errno| ProgramFault::System(format!("cannot create its pipes: {errno}"));
        let open = || pipe::open(PIPE_BYTES).map_err(cannot);
        let ((in_read, in_write), (out_read, out_write)) = (open()?, open()?);
        let ((read_3, write_3), (read_4, write_4)) = (open()?, open()?);
        let files = [&in_read, &out_write, &read_3, &write_4].map(AsFd::as_fd);
        let process = Prepared::new(program, place, seed, &files)?.begin(&program.file, stack)?;
        let account = Account::of(process.id()).map_err(ProgramFault::System)?;
        Ok(Conversation {
            process,
            account,
            inputs: [Some(in_write), Some(write_3)],
            outputs: [out_read, read_4],
            channel: Channel::Standard,
            is_open: [true, true],
            lines: Lines::new(),
            ready: Ready::default(),
            beside,
            slices: 0,
            stray_lines: 0,
            stray_bytes: 0,
            stray: ([0; LINE_BYTES_MAX], 0),
            cpu_after_ns: None,
            tree_after: None,
            late: None,
        })
    }

    /// Waits until it says that it is set up.
    ///
    /// Errors: it does not.
    pub fn wait_until_ready(
        &mut self,
        limits: &ProgramLimits,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), ProgramFault> {
        let limit_ns = limits.start_ns;
        let deadline_ns = clock::monotonic_ns().saturating_add(limit_ns);
        let (mut lines, mut heard) = ([Lines::new(), Lines::new()], String::new());
        loop {
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            let (readable, ended) = self.listens(left_ns.min(LOOK_NS))?;
            for channel in Channel::ALL {
                let at = channel as usize;
                if readable[at] {
                    self.is_open[at] = read_into(&mut lines[at], &self.outputs[at])?;
                }
                if let Some(ready) = look_for_ready(&mut lines[at], &mut heard)? {
                    self.lines = std::mem::replace(&mut lines[at], Lines::new());
                    return self.is_ready(channel, ready);
                }
            }
            if interrupted() {
                return Err(ProgramFault::Interrupted);
            }
            if ended && readable == [false; 2] {
                return Err(self.died("in its set-up, before `ready`"));
            }
            if left_ns == 0 {
                let rest = lines.iter().map(Lines::rest).find(|rest| !rest.is_empty());
                let heard = rest.map(unfinished).unwrap_or_else(|| heard_in_words(&heard));
                let heard = format!("{heard}{}", self.process.last_words());
                return Err(ProgramFault::NotReady { limit_ns, heard });
            }
        }
    }

    fn is_ready(&mut self, channel: Channel, ready: Ready) -> Result<(), ProgramFault> {
        (self.channel, self.ready) = (channel, ready);
        // What nobody will write to is at its end.
        self.inputs[channel.other() as usize] = None;
        // Number 4 is not looked at any more; its own output must not fill up.
        self.is_open[Channel::Apart as usize] = channel == Channel::Apart;
        self.must_be_quiet("after its `ready`", false)
    }

    /// Which of its outputs can be read, of those that are open, and whether it has ended.
    fn listens(&self, limit_ns: u64) -> Result<([bool; 2], bool), ProgramFault> {
        let [standard, apart] = self.outputs.each_ref().map(AsFd::as_fd);
        let watch = self.process.watch();
        let ready = match self.is_open {
            [true, true] => poll::some_readable([standard, apart, watch], limit_ns),
            [true, false] => poll::some_readable([standard, watch], limit_ns)
                .map(|[standard, ended]| [standard, false, ended]),
            [false, true] => poll::some_readable([apart, watch], limit_ns)
                .map(|[apart, ended]| [false, apart, ended]),
            [false, false] => {
                poll::some_readable([watch], limit_ns).map(|[ended]| [false, false, ended])
            }
        };
        match ready {
            Ok([standard, apart, ended]) => Ok(([standard, apart], ended)),
            Err(Errno::EINTR) => Ok(([false; 2], false)),
            Err(errno) => Err(ProgramFault::System(format!("cannot wait for its answer: {errno}"))),
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it announced.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Lines of its own that it printed in slices.
    pub fn stray_lines(&self) -> u64 {
        self.stray_lines
    }

    /// What its children have done so far.
    pub fn children(&mut self) -> Children {
        let tree = kin::Tree::below(&Root::real(), self.process.id());
        let living = tree.processes.into_iter().filter(|&pid| pid != self.process.id());
        Children {
            living: living.map(|pid| (pid, usage::cpu_ns_of(pid).ok())).collect(),
            buried_faults: self.account.read().children_faults,
        }
    }

    /// What the kernel has charged to it so far.
    pub fn charged(&mut self) -> Charged {
        self.account.read()
    }

    /// Memory that it and its children have for themselves, bytes, as far as the kernel tells.
    pub fn memory_bytes(&self) -> u64 {
        let tree = kin::Tree::below(&Root::real(), self.process.id());
        let each = tree.processes.into_iter().filter_map(|pid| {
            own_memory_bytes(&Root::real().read(&format!("proc/{pid}/status")).ok()?)
        });
        each.fold(0, u64::saturating_add)
    }

    /// Bytes that it has written to stderr.
    pub fn stderr_bytes(&self) -> u64 {
        self.process.stderr_bytes()
    }

    /// Keeps what it wrote to stderr from growing.
    pub fn trim_errors(&self) {
        self.process.trim_errors();
    }

    /// Says something, and the time that it took until the answer was read. Allocates nothing
    /// before that.
    fn exchange(
        &mut self,
        request: &[u8],
        limit_ns: u64,
        interrupted: &dyn Fn() -> bool,
        when: &dyn Fn() -> String,
    ) -> Result<Answered, ProgramFault> {
        let begin_ns = clock::monotonic_ns();
        if !self.say(request, when)? {
            return Err(self.died_or_closed(when, "input", interrupted));
        }
        loop {
            let waited_ns = clock::monotonic_ns() - begin_ns;
            let left_ns = limit_ns.saturating_sub(waited_ns).min(LOOK_NS);
            let (is_readable, has_ended) = self.hear(left_ns)?;
            if is_readable {
                let is_open = read_into(&mut self.lines, &self.outputs[self.channel as usize])?;
                let end_ns = clock::monotonic_ns();
                if let Some(answer) = self.look_for_answer(when)? {
                    return Ok(Answered { begin_ns, took_ns: end_ns - begin_ns, answer });
                }
                if !is_open {
                    return Err(self.died_or_closed(when, "output", interrupted));
                }
                if self.stray_bytes > STRAY_BYTES_MAX {
                    let fault = LineFault::TooMuch(quoted(&self.stray.0[..self.stray.1]));
                    return Err(ProgramFault::said(&when(), &fault));
                }
            } else if has_ended {
                return Err(self.died(&when()));
            }
            if waited_ns >= limit_ns {
                return Err(self.hangs(when(), limit_ns));
            }
            if interrupted() {
                return Err(ProgramFault::Interrupted);
            }
        }
    }

    /// Writes a request; false where nobody reads it any more.
    fn say(&self, request: &[u8], when: &dyn Fn() -> String) -> Result<bool, ProgramFault> {
        let Some(input) = &self.inputs[self.channel as usize] else { return Ok(false) };
        loop {
            match socket::write(input.as_fd(), request) {
                // A pipe takes so little in whole (pipe(7), PIPE_BUF).
                Ok(_) => return Ok(true),
                Err(Errno::EINTR) => {}
                Err(Errno::EPIPE) => return Ok(false),
                Err(errno) => {
                    return Err(ProgramFault::System(format!(
                        "{}: cannot ask it: {errno}",
                        when()
                    )));
                }
            }
        }
    }

    /// Waits for an answer, and lets go what comes from an output that is the program's own.
    fn hear(&mut self, limit_ns: u64) -> Result<(bool, bool), ProgramFault> {
        let (readable, ended) = self.listens(limit_ns)?;
        let own = readable[self.channel.other() as usize];
        if own {
            self.pass_over();
        }
        Ok((readable[self.channel as usize], ended && !own))
    }

    /// Reads what the program prints of its own.
    fn pass_over(&mut self) {
        let (at, mut buffer) = (self.channel.other() as usize, [0; 4096]);
        match socket::read(self.outputs[at].as_fd(), &mut buffer) {
            Ok(0) => self.is_open[at] = false,
            Ok(n) => {
                let lines = buffer[..n].iter().filter(|&&byte| byte == b'\n').count();
                self.stray_lines += lines as u64;
            }
            Err(_) => {}
        }
    }

    /// An answer among the lines that were read.
    fn look_for_answer(
        &mut self,
        when: &dyn Fn() -> String,
    ) -> Result<Option<Answer>, ProgramFault> {
        loop {
            let line = match self.lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(fault) => return Err(ProgramFault::said(&when(), &fault)),
            };
            if protocol::kind(line) != LineKind::Stray {
                let answer = protocol::answer(line);
                return answer.map(Some).map_err(|fault| ProgramFault::said(&when(), &fault));
            }
            self.stray_lines += 1;
            self.stray_bytes += line.len() as u64 + 1;
            let (kept, length) = &mut self.stray;
            *length = line.len().min(kept.len());
            kept[..*length].copy_from_slice(&line[..*length]);
        }
    }

    /// Nothing may have come that nobody has asked for.
    fn must_be_quiet(&mut self, when: &str, has_answered: bool) -> Result<(), ProgramFault> {
        if self.lines.rest().is_empty() {
            let (readable, ended) = self.listens(0)?;
            if readable[self.channel as usize] {
                let is_open = read_into(&mut self.lines, &self.outputs[self.channel as usize])?;
                if !is_open && self.lines.rest().is_empty() {
                    return Err(self.died_or_closed(&|| when.to_owned(), "output", &|| false));
                }
            } else if ended {
                return Err(self.died(when));
            }
        }
        match self.lines.rest() {
            [] => Ok(()),
            rest => Err(ProgramFault::said(when, &protocol::unasked(rest, has_answered))),
        }
    }

    fn hangs(&self, when: String, limit_ns: u64) -> ProgramFault {
        let heard = match self.lines.rest() {
            [] => match quoted(&self.stray.0[..self.stray.1]) {
                line if line.is_empty() => {
                    ", and printed nothing: does it flush its `ok`?".to_owned()
                }
                line => format!("; the last line that it printed is `{line}`, and not `ok`"),
            },
            rest => unfinished(rest),
        };
        let heard = format!("{heard}{}", self.process.last_words());
        ProgramFault::Hangs { when, what: "answer", limit_ns, heard }
    }

    /// Of a program that has closed an end: most that do so are about to end.
    fn died_or_closed(
        &self,
        when: &dyn Fn() -> String,
        which: &'static str,
        interrupted: &dyn Fn() -> bool,
    ) -> ProgramFault {
        let deadline_ns = clock::monotonic_ns() + DYING_NS;
        match self.process.ends_by(deadline_ns, interrupted) {
            true => self.died(&when()),
            false if interrupted() => ProgramFault::Interrupted,
            false => ProgramFault::Closed { when: when(), which },
        }
    }

    fn died(&self, when: &str) -> ProgramFault {
        let ended = self.process.wait().is_ok_and(|ended| ended.status == 0);
        let more = if ended { ", and must answer until its input ends" } else { "" };
        ProgramFault::Died { when: when.to_owned(), how: self.process.obituary_with(more) }
    }

    /// Nothing may have come behind the last answer.
    ///
    /// Errors: something has.
    pub fn must_have_said_all(&mut self) -> Result<(), ProgramFault> {
        self.must_be_quiet("after its last slice", true)
    }
}

fn look_for_ready(lines: &mut Lines, heard: &mut String) -> Result<Option<Ready>, ProgramFault> {
    let when = "in its set-up";
    while let Some(line) = lines.next().map_err(|fault| ProgramFault::said(when, &fault))? {
        match protocol::ready(line).map_err(|fault| ProgramFault::said(when, &fault))? {
            Some(ready) => return Ok(Some(ready)),
            None => *heard = quoted(line),
        }
    }
    Ok(None)
}

/// Reads what there is; false at the end.
fn read_into(lines: &mut Lines, fd: &OwnedFd) -> Result<bool, ProgramFault> {
    loop {
        match socket::read(fd.as_fd(), lines.room()) {
            Ok(0) => return Ok(false),
            Ok(n) => {
                lines.filled(n);
                return Ok(true);
            }
            Err(Errno::EINTR) => {}
            Err(errno) => {
                return Err(ProgramFault::System(format!("cannot read its answer: {errno}")));
            }
        }
    }
}

fn heard_in_words(line: &str) -> String {
    match line {
        "" => ", and printed nothing".to_owned(),
        line => format!("; the last line that it printed is `{line}`"),
    }
}

fn unfinished(rest: &[u8]) -> String {
    format!("; it printed `{}` and no newline behind it", quoted(rest))
}

/// A request is asked for by a number.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_number_in_a_line() {
        let request = Request::of(1 << 40);
        assert_eq!(request.line, b"1099511627776\n");
        assert_eq!(request.prepare, b"prepare 1099511627776\n");
    }
}
