//! A conversation with the keeper on another machine, from the launcher's start to its end:
//! first lines, with a shell that finds the program or receives it, then frames.
//!
//! Every wait is a poll over the launcher's output and the user's interrupt, and has an end.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::{clock, poll, process};
use serde::Serialize;

use super::cksum::Sum;
use super::launcher::Launcher;
use super::launcher::{Lines, Odd};
use super::wire::{self, FarEnd, Frames, FromKeeper, ToKeeper};
use crate::trial::Trouble;
use crate::worker::protocol::{BUILD, PROTOCOL_VERSION};
use iolens_programs::spawn::{self, Spawned};

/// What the shell at the other end is told to do. It is the same for everybody: what differs
/// is read by it as data.
const SCRIPT: &str = include_str!("start.sh");

/// Without a byte in either direction for so long, nothing comes of it any more.
const SILENCE_LIMIT_NS: u64 = 60_000_000_000;

/// How long a launcher may take to end when its output has ended.
const LAST_WORDS_NS: u64 = 1_000_000_000;

const PIECE_BYTES: usize = 64 << 10;

/// How the other end is reached, and with which program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// What starts programs there.
    pub launcher: Launcher,
    /// The program there: a path, or a name that its `PATH` finds; where there is none, a copy
    /// of this program.
    pub program: Option<String>,
    /// The file of this program.
    pub own: PathBuf,
    /// Whether a program of another build will do.
    pub any_build: bool,
}

/// What is to be written to the launcher.
enum Order {
    Bytes(Vec<u8>),
    /// All of it.
    File(File),
    /// Nothing; from here on the other side is a keeper, which is told that we are still here.
    Beat,
}

/// The conversation. The launcher is killed and reaped when it is dropped; what it had started
/// ends with its input.
pub(super) struct Session {
    name: String,
    child: Child,
    orders: Option<Sender<Order>>,
    /// Bytes that were written.
    written: Arc<AtomicU64>,
    /// Whether a line of ours has come.
    is_through: bool,
    stdout: ChildStdout,
    errors: File,
    lines: Lines,
    frames: Frames,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a keeper at the other end: the conversation with it, its build, and its machine.
pub(super) fn open(
    way: &Way,
    interrupts: Option<&Interrupts>,
) -> Result<(Session, String, FarEnd), Trouble> {
    let mut session = Session::start(&way.launcher)?;
    session.find_program(way, interrupts)?;
    let (protocol, build) = match session.word(interrupts)? {
        FromKeeper::Hello { protocol, build } => (protocol, build),
        _ => return Err(session.trouble("does not say which build it is")),
    };
    check_build(way, protocol, &build).map_err(Trouble::failed)?;
    session.say(&ToKeeper::Hello { protocol: PROTOCOL_VERSION, boot: wire::boot() });
    session.order(Order::Beat);
    match session.word(interrupts)? {
        FromKeeper::Here { end } => Ok((session, build, *end)),
        FromKeeper::Refused { what } => {
            Err(Trouble::failed(format!("the other end behind `{}`: {what}", way.launcher)))
        }
        _ => Err(session.trouble("does not say what its machine is")),
    }
}

/// Refuses another build.
fn check_build(way: &Way, protocol: u32, build: &str) -> Result<(), String> {
    let launcher = &way.launcher;
    if protocol != PROTOCOL_VERSION {
        return Err(format!(
            "the iolens behind `{launcher}` (build {build}) speaks protocol {protocol}, this one \
             (build {BUILD}) speaks {PROTOCOL_VERSION}: install this one there, or leave \
             --peer-binary out and it is copied there for the run"
        ));
    }
    if build != BUILD && !way.any_build {
        return Err(format!(
            "the iolens behind `{launcher}` is build {build}, this one is build {BUILD}: leave \
             --peer-binary out and this one is copied there for the run, or take the other one \
             as it is with --peer-any-build"
        ));
    }
    Ok(())
}

impl Session {
    fn start(launcher: &Launcher) -> Result<Session, Trouble> {
        let errors = Launcher::errors().map_err(Trouble::failed)?;
        let copy = errors.try_clone().map_err(|e| Trouble::failed(Errno::from(e).to_string()))?;
        let Spawned { child, stdin, stdout } = launcher.start(copy).map_err(Trouble::failed)?;
        let written = Arc::new(AtomicU64::new(0));
        let orders = writer(stdin, Arc::clone(&written));
        Ok(Session {
            name: launcher.to_string(),
            child,
            orders: Some(orders),
            written,
            is_through: false,
            stdout,
            errors,
            lines: Lines::default(),
            frames: Frames::default(),
        })
    }

    /// From the shell at the other end to the program that speaks our protocol.
    fn find_program(&mut self, way: &Way, interrupts: Option<&Interrupts>) -> Result<(), Trouble> {
        self.order(Order::Bytes(SCRIPT.into()));
        let machine = self.line(interrupts)?;
        if way.program.is_none() {
            check_machine(&machine).map_err(Trouble::failed)?;
        }
        let program = way.program.as_deref().unwrap_or_default();
        self.order(Order::Bytes(format!("{program}\n").into_bytes()));
        let mut answer = self.line(interrupts)?;
        if answer == "send" {
            self.send_own(way).map_err(Trouble::failed)?;
            answer = self.line(interrupts)?;
        }
        match answer.as_str() {
            "go" => Ok(()),
            "missing" => Err(Trouble::failed(format!(
                "there is no program `{program}` behind `{}`: give its path there with \
                 --peer-binary, or leave that out and this one is copied there for the run",
                self.name
            ))),
            "cut off" => Err(self.trouble(
                "got another copy of this program than was sent: try again, or name one that is \
                 there already with --peer-binary",
            )),
            "no room" => Err(self.trouble(
                "found no room for a copy of this program there: name one that is there \
                 already with --peer-binary",
            )),
            _ => Err(self.trouble("did not understand its orders")),
        }
    }

    /// Sends this program.
    fn send_own(&mut self, way: &Way) -> Result<(), String> {
        let cannot =
            |e: io::Error| format!("cannot read {}: {}", way.own.display(), Errno::from(e));
        let mut file = File::open(&way.own).map_err(cannot)?;
        let mut sum = Sum::default();
        each_piece(&file, &mut |piece| {
            sum.add(piece);
            Ok(())
        })
        .map_err(cannot)?;
        file.rewind().map_err(cannot)?;
        self.order(Order::Bytes(format!("{} {}\n", sum.bytes(), sum.crc()).into_bytes()));
        self.order(Order::File(file));
        Ok(())
    }

    /// The next line that is ours, without its mark.
    fn line(&mut self, interrupts: Option<&Interrupts>) -> Result<String, Trouble> {
        loop {
            match self.lines.take() {
                Ok(Some(said)) => {
                    self.is_through = true;
                    return Ok(said);
                }
                Ok(None) => {}
                Err(Odd::Terminal) => return Err(self.trouble(
                    "has a terminal in its way, which changes bytes: leave out what asks for one, \
                     such as -t",
                )),
                Err(Odd::Much) => {
                    return Err(self.trouble("printed a lot, and nothing from iolens"));
                }
            }
            self.wait(interrupts)?;
            let mut piece = vec![0; PIECE_BYTES];
            let read = self.read(&mut piece)?;
            self.lines.extend(&piece[..read]);
        }
    }

    /// The next word of the keeper.
    fn word(&mut self, interrupts: Option<&Interrupts>) -> Result<FromKeeper, Trouble> {
        loop {
            if let Some((_, body)) = self.frame()? {
                return wire::word(&body).map_err(|e| self.nonsense(&e));
            }
            self.wait(interrupts)?;
            self.hear()?;
        }
    }

    /// The next frame, if it is here.
    pub(super) fn frame(&mut self) -> Result<Option<(u32, Vec<u8>)>, Trouble> {
        // What came behind the last line.
        let rest = self.lines.rest();
        self.frames.extend(&rest);
        self.frames.take().map_err(|e| self.nonsense(&e))
    }

    /// Reads what is there.
    ///
    /// Errors: it has ended, and how.
    pub(super) fn hear(&mut self) -> Result<(), Trouble> {
        let mut piece = vec![0; PIECE_BYTES];
        let read = self.read(&mut piece)?;
        self.frames.extend(&piece[..read]);
        Ok(())
    }

    fn read(&mut self, piece: &mut [u8]) -> Result<usize, Trouble> {
        match self.stdout.read(piece) {
            Ok(0) => Err(self.obituary()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(e) => Err(self.trouble(&format!("cannot be heard: {}", Errno::from(e)))),
            Ok(read) => Ok(read),
        }
    }

    /// Waits until something can be read. It may take as long as bytes are still written.
    fn wait(&mut self, interrupts: Option<&Interrupts>) -> Result<(), Trouble> {
        let mut since = (clock::monotonic_ns(), self.written.load(Ordering::Relaxed));
        loop {
            if interrupts.is_some_and(Interrupts::came) {
                return Err(Trouble::Interrupted);
            }
            let mut fds: Vec<BorrowedFd<'_>> = vec![self.stdout.as_fd()];
            fds.extend(interrupts.map(AsFd::as_fd));
            match poll::readable(&fds, SILENCE_LIMIT_NS / 60) {
                Ok(ready) if ready[0] => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(e) => return Err(self.trouble(&format!("cannot be waited for: {e}"))),
            }
            let now = (clock::monotonic_ns(), self.written.load(Ordering::Relaxed));
            if now.1 > since.1 {
                since = now;
            }
            if now.0 - since.0 > SILENCE_LIMIT_NS {
                return Err(self.trouble(
                    "has said nothing for 60 s: it may wait for an answer that nobody can give, \
                     or in a queue",
                ));
            }
        }
    }

    /// Says a word to the keeper.
    pub(super) fn say(&self, word: &impl Serialize) {
        self.order(Order::Bytes(said(word)));
    }

    /// Passes bytes on to a worker.
    pub(super) fn pass_on(&self, worker: u32, body: &[u8]) {
        for piece in body.chunks(PIECE_BYTES) {
            let mut bytes = Vec::with_capacity(piece.len() + 8);
            let _ = wire::write(&mut bytes, worker, piece);
            self.order(Order::Bytes(bytes));
        }
    }

    /// If the launcher has gone, its output has ended too, which is where that is noticed.
    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// What can be waited for.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }

    /// How the launcher ended, and the last that it said.
    fn obituary(&mut self) -> Trouble {
        let how = match self.wait_for_end() {
            Ok(status) => spawn::obituary(status, &self.errors),
            Err(e) => format!("cannot be waited for: {}", Errno::from(e)),
        };
        let hint = match self.is_through {
            true => "",
            false => " (it has no terminal to ask for a password on)",
        };
        Trouble::failed(format!("the launcher `{}` {how}{hint}", self.name))
    }

    /// The end of a launcher whose output has ended. It may have something to say yet; one that
    /// stays is killed.
    fn wait_for_end(&mut self) -> io::Result<ExitStatus> {
        let begin_ns = clock::monotonic_ns();
        while clock::monotonic_ns() - begin_ns < LAST_WORDS_NS {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            let _ = poll::readable(&[], LAST_WORDS_NS / 100);
        }
        self.child.kill()?;
        self.child.wait()
    }

    /// What the launcher does that it ought not to, with the last that it said.
    fn trouble(&self, what: &str) -> Trouble {
        let said = spawn::last_line(&self.errors).map(|line| format!(" ({line})"));
        Trouble::failed(format!("the launcher `{}` {what}{}", self.name, said.unwrap_or_default()))
    }

    fn nonsense(&self, error: &io::Error) -> Trouble {
        self.trouble(&format!("sent what is not our protocol: {error}"))
    }
}

/// Whether this program runs on a machine that says this of itself: `Linux x86_64`.
fn check_machine(said: &str) -> Result<(), String> {
    let [system, _, _, machine] = process::uname();
    let own = format!("{system} {machine}");
    match said == own {
        true => Ok(()),
        false => Err(format!(
            "the other end is {said}, and this program is for {own}: install one for it there, \
             and name it with --peer-binary"
        )),
    }
}

/// A thread that writes to the launcher, so that nobody is held up by one that does not read.
/// Dropping the sender closes the pipe.
fn writer(mut stdin: ChildStdin, written: Arc<AtomicU64>) -> Sender<Order> {
    let (orders, to_write) = channel();
    let mut write = move |bytes: &[u8]| -> io::Result<()> {
        stdin.write_all(bytes)?;
        written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    };
    std::thread::spawn(move || {
        let mut beats = false;
        loop {
            let done = match to_write.recv_timeout(Duration::from_nanos(wire::BEAT_NS)) {
                Ok(Order::Bytes(bytes)) => write(&bytes),
                Ok(Order::File(file)) => each_piece(&file, &mut write),
                Ok(Order::Beat) => {
                    beats = true;
                    Ok(())
                }
                Err(RecvTimeoutError::Timeout) if beats => write(&said(&ToKeeper::Alive)),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if done.is_err() {
                return;
            }
        }
    });
    orders
}

/// A word to the keeper as bytes.
fn said(word: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Memory takes all of it.
    let _ = wire::say(&mut bytes, word);
    bytes
}

/// Shows a file to `see`, piece by piece.
fn each_piece(mut file: &File, see: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => see(&piece[..n])?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::time::{Duration, SystemTime};

    use super::{Launcher, SCRIPT, Session, Sum, Way};

    /// A shell that reads the script, and makes its folder in `place`.
    struct Shell {
        child: Child,
        orders: ChildStdin,
        answers: BufReader<ChildStdout>,
    }

    impl Shell {
        fn start(place: &Path) -> Shell {
            let mut child = Command::new("/bin/sh")
                .env("TMPDIR", place)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut orders = child.stdin.take().unwrap();
            let answers = BufReader::new(child.stdout.take().unwrap());
            orders.write_all(SCRIPT.as_bytes()).unwrap();
            let mut shell = Shell { child, orders, answers };
            // A shell may read ahead: what is data is sent when it asks.
            shell.hear("iolens-far: Linux");
            shell.orders.write_all(b"\n").unwrap();
            shell.hear("iolens-far: send");
            shell
        }

        fn hear(&mut self, what: &str) {
            let mut line = String::new();
            while !line.contains(what) {
                line.clear();
                let read = self.answers.read_line(&mut line).unwrap();
                assert!(read > 0, "it ended before `{what}`");
            }
        }

        /// Nothing more is said to it.
        fn end(self) {
            let Shell { mut child, orders, answers } = self;
            drop((orders, answers));
            child.wait().unwrap();
        }
    }

    fn sum(bytes: &[u8]) -> u32 {
        let mut sum = Sum::default();
        sum.add(bytes);
        sum.crc()
    }

    #[test]
    fn a_program_that_came_in_part_or_changed_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("ran");
        let program = format!("#!/bin/sh\ntouch {}\n", mark.display());
        let (len, crc) = (program.len(), sum(program.as_bytes()));
        for (announced, comes, expect) in [
            (format!("{} {crc}", len + 1), program.clone(), "iolens-far: cut off"),
            (format!("{len} {crc}"), program.replace("touch", "tauch"), "iolens-far: cut off"),
            (format!("{len} {crc}"), program.clone(), "iolens-far: go"),
        ] {
            let Shell { mut child, mut orders, answers } = Shell::start(folder.path());
            assert!(!mark.exists(), "another program was run than was sent");
            write!(orders, "{announced}\n{comes}").unwrap();
            drop(orders);
            let said: Vec<String> = answers.lines().map(Result::unwrap).collect();
            assert_eq!(said, [expect], "{announced}");
            child.wait().unwrap();
        }
        assert!(mark.exists(), "what came whole is run");
    }

    #[test]
    fn that_another_program_came_than_was_sent_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::write(&own, "a program").unwrap();
        let answers = "printf 'iolens-far: %s\\n' \"$(uname -sm)\" send 'cut off'; cat >/dev/null";
        let words = ["sh", "-c", answers].map(str::to_owned);
        let launcher = Launcher::new(words.into()).unwrap();
        let mut session = Session::start(&launcher).unwrap();
        let way = Way { launcher, program: None, own, any_build: false };
        let trouble = format!("{:?}", session.find_program(&way, None).unwrap_err());
        assert!(trouble.contains("another copy of this program than was sent"), "{trouble}");
        assert!(trouble.contains("--peer-binary"), "{trouble}");
    }

    #[test]
    fn a_start_that_was_killed_long_ago_is_swept_and_nothing_else() {
        let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
        let age = |path: &Path| File::open(path).unwrap().set_modified(long_ago).unwrap();
        let plant = |name: &str| {
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("iolens"), "a part").unwrap();
            folder
        };
        for name in ["iolens.oldold", "iolens.another", "other.oldold"] {
            let folder = plant(name);
            age(&folder.join("iolens"));
            age(&folder);
        }
        // A folder of the user's that is called so.
        for (name, file) in [("iolens.backup", "results.db"), ("iolens.master", "Cargo.toml")] {
            let folder = plant(name);
            let files = [folder.join(file), folder.join("iolens")];
            std::fs::write(&files[0], "precious").unwrap();
            files.iter().for_each(|file| age(file));
            age(&folder);
        }
        plant("iolens.young1");
        // Its folder is old, and something still comes.
        age(&plant("iolens.slow12"));
        let theirs = elsewhere.path().join("iolens");
        std::fs::write(&theirs, "theirs").unwrap();
        age(&theirs);
        age(elsewhere.path());
        std::os::unix::fs::symlink(elsewhere.path(), place.path().join("iolens.linked")).unwrap();
        Shell::start(place.path()).end();
        let names =
            std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = names.collect();
        left.sort();
        let expect = [
            "iolens.another",
            "iolens.backup",
            "iolens.linked",
            "iolens.master",
            "iolens.slow12",
            "iolens.young1",
            "other.oldold",
        ];
        assert_eq!(left, expect);
        for kept in ["iolens.backup/results.db", "iolens.backup/iolens", "iolens.master/Cargo.toml"]
        {
            assert!(place.path().join(kept).exists(), "{kept}");
        }
        assert!(theirs.exists());
    }
}
