//! The sending end of a program's slice: starts the program, waits for what the receiving end
//! says of it, and ends it.

use std::fs::File;
use std::io::Seek;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use iolens_model::external::External;
use iolens_model::transport::SenderTask;
use iolens_programs::{TreeCharged, spawn};
use iolens_sys::errno::Errno;
use iolens_sys::launch::Begun;
use iolens_sys::{affinity, clock, file, poll};

use super::{ENDED, Portion};
use crate::worker::facts::socket_facts;
use iolens_harness::op::{Budget, Children, Fact, Sender, Span, Tally, Trouble};
use iolens_net::lane;
use iolens_net::lane::Lane;

/// How long a program may take to end behind its last message, ns.
const ENDING_NS: u64 = 5_000_000_000;

/// One wait of several for the other end, ns.
const HEARING_NS: u64 = 1_000_000_000;

/// Time between two looks whether it has, ns.
const LOOK_NS: u64 = 1_000_000;

/// A program that is an arm, as the first thread has it.
pub(crate) struct SendingProgram<'a> {
    external: &'a External,
    /// The messages of the next slice are in it.
    task: SenderTask,
    /// On which the ends keep step.
    lane: &'a Lane,
    /// Where it may run; the thread that starts it is bound to the first of them.
    cpus: Vec<u32>,
    portion: Portion,
    /// What it says of its errors.
    errors: File,
    /// What its socket was like in the first slice.
    facts: Option<Vec<Fact>>,
    begun: Option<Begun>,
    trouble: Option<Trouble>,
    tally: Tally,
}

impl<'a> SendingProgram<'a> {
    /// A program that is started with each slice.
    ///
    /// Errors: it cannot be found, or there is no file for its errors.
    pub(crate) fn new(
        external: &'a External,
        task: SenderTask,
        lane: &'a Lane,
        cpus: Vec<u32>,
    ) -> Result<SendingProgram<'a>, Trouble> {
        let name = external.argv.first().map_or("", String::as_str);
        let found = iolens_programs::find_program(name).map_err(Trouble::refused)?;
        iolens_programs::may_start(&found).map_err(|errno| {
            Trouble::refused(format!("cannot start {}: {errno}", found.display()))
        })?;
        let errors = file::in_folder(&std::env::temp_dir()).map_err(|errno| {
            Trouble::failed(format!("cannot create a file for errors: {errno}"))
        })?;
        Ok(SendingProgram {
            external,
            task,
            lane,
            cpus,
            portion: Portion::of(0, task.size.0),
            errors,
            facts: None,
            begun: None,
            trouble: None,
            tally: Tally { children: Some(Children::default()), ..Tally::default() },
        })
    }

    /// Starts it on all of its processors.
    fn start(&self) -> Result<Begun, Trouble> {
        let name = &self.external.name;
        let cannot = |what: &str, errno: Errno| {
            Trouble::failed(format!("cannot {what} for `{name}`: {errno}"))
        };
        let copy = self.errors.try_clone().map_err(|e| cannot("duplicate a file", e.into()))?;
        let argv = self.external.with_task(&self.task);
        let mut program = spawn::program(&argv, copy).map_err(Trouble::refused)?;
        affinity::restrict_thread(&self.cpus).map_err(|e| cannot("give up a CPU", e))?;
        let begun = program.begin();
        affinity::pin_thread(self.cpus[0]).map_err(|e| cannot("take a CPU again", e))?;
        begun.map_err(|errno| Trouble::failed(format!("cannot start `{name}`: {errno}")))
    }

    /// Waits until the receiving end says something, or hangs up, and tells it if the program has
    /// ended. It gives up if nothing comes.
    ///
    /// Errors: the program has failed; of the calls.
    fn hear(&mut self, begun: &Begun) -> Result<(), Errno> {
        let ended = begun.watch()?;
        let (back, mut is_told) = (self.lane.back(), false);
        loop {
            let ready = match is_told {
                true => poll::some_readable([back], HEARING_NS).map(|[back]| [back, false]),
                false => poll::some_readable([back, ended.as_fd()], HEARING_NS),
            };
            match ready {
                Ok([true, _]) => return Ok(()),
                Ok([false, true]) => {
                    self.must_have_succeeded(begun)?;
                    lane::send(self.lane.forth(), ENDED)?;
                    is_told = true;
                }
                Ok([false, false]) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn must_have_succeeded(&mut self, begun: &Begun) -> Result<(), Errno> {
        let status = ExitStatus::from_raw(begun.peek()?.unwrap_or_default());
        if status.success() {
            return Ok(());
        }
        let how = spawn::obituary(status, &self.errors);
        self.trouble = Some(Trouble::failed(format!("`{}` {how}", self.external.name)));
        Err(Errno::EIO)
    }

    /// From when on what counts comes, ns.
    fn hear_begin(&mut self, begun: &Begun) -> Result<u64, Errno> {
        self.hear(begun)?;
        let mut time = [0; 8];
        let mut filled = 0;
        while filled < time.len() {
            match iolens_sys::socket::recv(self.lane.back(), &mut time[filled..]) {
                Ok(0) => return Err(Errno::ENODATA),
                Ok(n) => filled += n,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(u64::from_le_bytes(time))
    }

    fn send(&mut self, begun: &Begun) -> Result<Span, Errno> {
        let first_call_ns = self.hear_begin(begun)?;
        let is_first = self.facts.is_none();
        if is_first {
            self.facts = Some(socket_facts(begun.id(), self.task.receiver, self.lane.data()));
        }
        let before = TreeCharged::of(begun.id());
        // Every thread reads its receipt later.
        self.hear(begun)?;
        let after = TreeCharged::of(begun.id());
        // The kernel lets a send buffer grow while there is much to send (tcp(7)).
        let later = if is_first {
            socket_facts(begun.id(), self.task.receiver, self.lane.data())
        } else {
            Vec::new()
        };
        if later.len() > 1 {
            self.facts = Some(later);
        }
        let spent = after.zip(before).and_then(|(after, before)| after.since(&before));
        let cpu_ns = spent.map(|spent| spent.cpu_ns);
        self.tally.children.get_or_insert_default().add(&Children::of_cpu(cpu_ns));
        self.tally.messages += self.portion.messages;
        self.tally.bytes += self.portion.counted_bytes();
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    /// Waits until it has ended by itself.
    fn ends(&mut self, begun: &Begun) -> Result<(), Trouble> {
        let name = &self.external.name;
        let watch = || -> Result<bool, Errno> {
            let (ended, deadline_ns) = (begun.watch()?, clock::monotonic_ns() + ENDING_NS);
            while poll::is_readable(ended.as_fd(), LOOK_NS) != Ok(true) {
                if clock::monotonic_ns() >= deadline_ns {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match watch() {
            Ok(true) => {}
            Ok(false) => {
                return Err(Trouble::failed(format!(
                    "`{name}` has not ended within {} s of its last message",
                    ENDING_NS / 1_000_000_000
                )));
            }
            Err(errno) => {
                return Err(Trouble::failed(format!("cannot wait for `{name}`: {errno}")));
            }
        }
        self.must_have_succeeded(begun).map_err(|errno| {
            let cannot = || Trouble::failed(format!("cannot wait for `{name}`: {errno}"));
            self.trouble.take().unwrap_or_else(cannot)
        })
    }

    fn kill(&mut self) {
        if let Some(begun) = self.begun.take() {
            begun.kill();
            let _ = begun.wait();
        }
    }
}

impl Drop for SendingProgram<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Sender for SendingProgram<'_> {
    fn prepare(&mut self, messages: u64) -> Result<(), Trouble> {
        self.portion = Portion::of(messages, self.task.size.0);
        self.task.messages = self.portion.all();
        // What it said of earlier slices is not what it will say of this one.
        let emptied = self.errors.set_len(0).and_then(|()| (&self.errors).rewind());
        emptied.map_err(|e| {
            Trouble::failed(format!("cannot empty the file for errors: {}", Errno::from(e)))
        })?;
        self.begun = Some(self.start()?);
        Ok(())
    }

    fn run(&mut self, _budget: &Budget) -> Result<Span, Errno> {
        let begun = self.begun.take().ok_or(Errno::ESRCH)?;
        let done = self.send(&begun);
        self.begun = Some(begun);
        done
    }

    /// One that would send for ever is ended before the next slice.
    fn idle(&mut self) -> Result<bool, Errno> {
        if !self.external.counts_messages() {
            self.kill();
        }
        Ok(true)
    }

    fn conclude(&mut self) -> Result<(), Trouble> {
        let Some(begun) = self.begun.take() else { return Ok(()) };
        let ended = self.ends(&begun);
        self.begun = Some(begun);
        self.kill();
        ended
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn explain(&mut self) -> Option<Trouble> {
        self.trouble.take()
    }

    fn facts(&self) -> Vec<Fact> {
        self.facts.clone().unwrap_or_default()
    }
}

/// What the other threads of the sending end do while a program sends: nothing.
pub(crate) struct Bystander;

impl Sender for Bystander {
    fn run(&mut self, _budget: &Budget) -> Result<Span, Errno> {
        Ok(Span::none())
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(true)
    }

    fn tally(&self) -> Tally {
        Tally { children: Some(Children::default()), ..Tally::default() }
    }
}
