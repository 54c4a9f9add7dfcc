//! What a user asks for by hand, done by a worker process: a mapped file that
//! shrinks raises SIGBUS where it is read, which ends the process that reads, and
//! the one that asked for it lives to say so. It is also what makes an interrupt
//! simple: the worker is killed, and what it had made has no name.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use iolens_sys::errno::Errno;
use iolens_sys::poll;
use iolens_sys::signal::{self, Interrupts};
use serde::{Deserialize, Serialize};

use crate::copy::by_hand as copy;
use crate::failure::{LOST_PAGE, NO_ROOM_FOR_PAGE};
pub use crate::file_path::FilePath;
use crate::read::by_hand as read;
use crate::size;
use crate::tune::{self, LimitFound, LimitWish, facts, program};
use crate::tune::{CureWish, Cured};
use crate::write::by_hand as write;
use iolens_harness::frames::{FrameBuffer, read_frame, write_frame};
use iolens_programs::describe_end;
use iolens_programs::spawn::{Launch, Spawned, spawn};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Read a file.
    Read(read::Wish),
    /// Find the size of a file whose reading takes a wanted time.
    Size(size::Wish),
    /// Write a file.
    Write(write::Wish),
    /// Copy a file.
    Copy(copy::Wish),
    /// Find out what is known of a file before it is timed.
    Facts(facts::Wish),
    /// Read or copy memory.
    Limit(LimitWish),
    /// Have a program of others read or copy a file.
    Program(program::Wish),
    /// Bring a file into the page cache anew, in large pieces.
    Cure(CureWish),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// A file was read.
    Read(Box<read::Done>),
    /// A size was found.
    Size(Box<size::Done>),
    /// A file was written.
    Write(Box<write::Done>),
    /// A file was copied.
    Copy(Box<copy::Done>),
    /// What is known of a file.
    Facts(Box<facts::Done>),
    /// Memory was read or copied.
    Limit(LimitFound),
    /// A program has ended well.
    Program(program::Done),
    /// A file is in the page cache anew.
    Cure(Cured),
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// How far it is.
    Note(String),
    /// The last word.
    Done(Done),
    /// Why there is no result.
    Failed(String),
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// What was tried and what the system said.
    Failed(String),
    /// The user wanted it to end.
    Interrupted,
}

/// Has a worker do a job; `note` hears how far it is. To be called on the main
/// thread: workers die with the thread that started them.
///
/// Errors: why there is no result.
pub fn run(
    job: &Job,
    launch: &Launch,
    interrupts: &Interrupts,
    mut note: impl FnMut(&str),
) -> Result<Done, Trouble> {
    let Spawned { child, mut stdin, mut stdout } =
        spawn(launch, &[], None).map_err(Trouble::Failed)?;
    let mut worker = Worker(child);
    // One that has gone already is heard of where its answer ends.
    let _ = write_frame(&mut stdin, job);
    let mut buffer = FrameBuffer::default();
    let mut piece = vec![0; 64 << 10];
    loop {
        match buffer.take() {
            Ok(Some(Said::Note(text))) => note(&text),
            Ok(Some(Said::Done(done))) => return Ok(done),
            Ok(Some(Said::Failed(why))) => return Err(Trouble::Failed(why)),
            Ok(None) if interrupts.came() => return Err(Trouble::Interrupted),
            Ok(None) => {
                if !wait([stdout.as_fd(), interrupts.as_fd()])? {
                    continue;
                }
                match stdout.read(&mut piece) {
                    Ok(0) => return Err(Trouble::Failed(worker.obituary(job))),
                    Ok(n) => buffer.extend(&piece[..n]),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(unheard(&e.into())),
                }
            }
            Err(e) => {
                return Err(Trouble::Failed(format!(
                    "the worker sent what is not our protocol: {e}"
                )));
            }
        }
    }
}

fn unheard(errno: &Errno) -> Trouble {
    Trouble::Failed(format!("cannot read from the worker: {errno}"))
}

/// Waits until one of them has something to say; whether it is the first.
fn wait(fds: [BorrowedFd<'_>; 2]) -> Result<bool, Trouble> {
    /// For ever, as far as poll(2) can.
    const LIMIT_NS: u64 = u64::MAX >> 1;
    match poll::readable(&fds, LIMIT_NS) {
        Ok(ready) => Ok(ready[0]),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(unheard(&errno)),
    }
}

/// A process; killed and reaped when dropped.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Worker {
    /// How it ended that said nothing.
    fn obituary(&mut self, job: &Job) -> String {
        match self.0.wait() {
            Ok(status) if status.signal() == Some(signal::BUS) => bus(job),
            Ok(status) => format!("the process that did it {}", describe_end(status)),
            Err(e) => format!("the process that did it cannot be waited for: {}", Errno::from(e)),
        }
    }
}

/// What SIGBUS says of a job.
fn bus(job: &Job) -> String {
    match job {
        Job::Read(_) | Job::Size(_) | Job::Copy(_) | Job::Facts(_) | Job::Cure(_) => {
            format!("{LOST_PAGE}\n  an engine that does not map it, such as `pread`, says which")
        }
        Job::Write(_) => format!(
            "{NO_ROOM_FOR_PAGE}\n  an engine that does not map it, such as `pwrite`, says which; a \
             new file is removed, one that was being written over (--overwrite) is left as it is \
             now"
        ),
        Job::Limit(_) | Job::Program(_) => "memory that it used has failed (SIGBUS)".to_owned(),
    }
}

/// Does the one job that comes over `orders`, as a worker.
///
/// Errors: of the pipes, or what comes is no job.
pub fn serve(mut orders: impl Read, mut answers: impl Write) -> io::Result<()> {
    // A file that may not become so large is an error of a call.
    let _ = signal::ignore_file_size_limit();
    let mut buffer = FrameBuffer::default();
    let Some(job) = read_frame::<Job>(&mut orders, &mut buffer)? else { return Ok(()) };
    let done = match &job {
        Job::Read(wish) => read::read(wish).map(|done| Done::Read(Box::new(done))),
        Job::Size(wish) => {
            let note = |text: &str| {
                // If nobody listens any more, there is nobody to tell.
                let _ = write_frame(&mut answers, &Said::Note(text.to_owned()));
            };
            size::find(wish, note).map(|done| Done::Size(Box::new(done)))
        }
        Job::Write(wish) => write::write(wish).map(|done| Done::Write(Box::new(done))),
        Job::Copy(wish) => copy::copy(wish).map(|done| Done::Copy(Box::new(done))),
        Job::Facts(wish) => facts::find(wish).map(|done| Done::Facts(Box::new(done))),
        Job::Limit(wish) => tune::measure_limit(wish).map(Done::Limit),
        Job::Program(wish) => program::run(wish).map(Done::Program),
        Job::Cure(wish) => tune::cure(wish).map(Done::Cure),
    };
    let last = match done {
        Ok(done) => Said::Done(done),
        Err(why) => Said::Failed(why),
    };
    write_frame(&mut answers, &last)
}
