//! On the other machine: starts workers when it is told to, and passes on what they hear and
//! say. It stays for a run, so that a launcher starts one program and not one for each trial.
//!
//! It listens on no port, and ends with its input: when the launcher, the connection or the
//! machine that asked for it is gone, it kills its workers and leaves nothing behind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use iolens_sys::errno::Errno;
use iolens_sys::proc::Root;
use iolens_sys::{addresses, poll};

use super::answers::Answers;
use super::wire::{self, FarEnd, Frames, FromKeeper, NOBODY, PIECE_BYTES, ToKeeper};
use crate::doctor;
use crate::worker::protocol::{BUILD, PROTOCOL_VERSION};
use iolens_harness::environment::Before;
use iolens_harness::host;
use iolens_harness::lock::{LockError, MachineLock};
use iolens_programs::describe_end;
use iolens_programs::spawn::{Launch, Spawned, spawn};

/// Where `sshd` says whence and whereto its client has connected: two addresses, each with
/// a port behind it (sshd(8)).
const SSH_CONNECTION: &str = "SSH_CONNECTION";

/// This program, also where its file has been removed.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How long the last answers may take when the conversation has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A worker of this machine.
struct Kept {
    child: Child,
    orders: Option<Sender<Vec<u8>>>,
    before: Before,
}

/// Keeps workers until `control` ends. `remove` is the folder of this program's own file, which
/// was brought here for it: it goes at once, and the program lives on in memory.
///
/// To be called on the main thread: workers die with the thread that started them.
///
/// # Errors
/// What is said is no protocol, or is of another version.
pub fn keep(
    control: File,
    answers: impl Write + Send + 'static,
    remove: Option<&Path>,
) -> io::Result<()> {
    keep_within(wire::SILENCE_LIMIT_NS, control, answers, remove)
}

/// The same with how long nothing may be heard.
fn keep_within(
    silence_limit_ns: u64,
    control: File,
    answers: impl Write + Send + 'static,
    remove: Option<&Path>,
) -> io::Result<()> {
    if let Some(folder) = remove {
        remove_own(folder);
    }
    let answers = Answers::to(answers);
    let ended = obey_all(silence_limit_ns, control, &answers);
    if !matches!(ended, Ok(Ended::Unheard)) {
        answers.settle(LAST_WORDS);
    }
    ended.and_then(|ended| match ended {
        Ended::Told => Ok(()),
        Ended::Unheard => Err(io::Error::other(format!(
            "nothing was heard for {} s",
            silence_limit_ns / 1_000_000_000
        ))),
    })
}

/// How a conversation ended.
enum Ended {
    Told,
    /// Nothing was heard for too long.
    Unheard,
}

/// Does what is told. It waits for nothing but the next word: nobody who hears none of our
/// answers holds it up. Its workers are gone when it returns.
fn obey_all(silence_limit_ns: u64, control: File, answers: &Answers) -> io::Result<Ended> {
    answers.say(&FromKeeper::Hello { protocol: PROTOCOL_VERSION, build: BUILD.to_owned() })?;
    let mut keeper = Keeper { answers: answers.clone(), workers: BTreeMap::new(), lock: None };
    let (mut control, mut frames) = (control, Frames::default());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        while let Some((worker, body)) = frames.take()? {
            match worker {
                NOBODY => keeper.obey(wire::word(&body)?)?,
                worker => keeper.pass_on(worker, body),
            }
        }
        match poll::is_readable(control.as_fd(), silence_limit_ns) {
            Ok(true) => {}
            Ok(false) => return Ok(Ended::Unheard),
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(io::Error::other(errno.to_string())),
        }
        match control.read(&mut piece) {
            Ok(0) => return Ok(Ended::Told),
            Ok(n) => frames.extend(&piece[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Removes the file of this program and its folder, if it is in there.
fn remove_own(folder: &Path) {
    let own = std::fs::read_link(OWN_PROGRAM).unwrap_or_default();
    if own.parent() == Some(folder) {
        // Whoever started it removes what is left when it has ended.
        let _ = std::fs::remove_file(own).and_then(|()| std::fs::remove_dir(folder));
    }
}

struct Keeper {
    answers: Answers,
    workers: BTreeMap<u32, Kept>,
    /// The lock of this machine, where whoever is at the other end has another one.
    lock: Option<MachineLock>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        for kept in self.workers.values_mut() {
            kept.orders = None;
            let _ = kept.child.kill();
            let _ = kept.child.wait();
        }
    }
}

impl Keeper {
    fn obey(&mut self, word: ToKeeper) -> io::Result<()> {
        match word {
            ToKeeper::Hello { protocol: PROTOCOL_VERSION, boot } => {
                // Before the lock is ours, which would be found too.
                let end = here();
                let end = end.and_then(|end| self.take_machine(boot.as_deref()).map(|()| end));
                let answer = match end {
                    Ok(end) => FromKeeper::Here { end: Box::new(end) },
                    Err(what) => FromKeeper::Refused { what },
                };
                self.answers.say(&answer)
            }
            ToKeeper::Hello { protocol, .. } => Err(io::Error::other(format!(
                "the other machine speaks protocol {protocol}, this iolens (build {BUILD}) speaks \
                 {PROTOCOL_VERSION}"
            ))),
            ToKeeper::Start { worker, environment } => match self.start(worker, &environment) {
                Ok(()) => Ok(()),
                Err(what) => self.answers.say(&FromKeeper::Failed { worker, what }),
            },
            ToKeeper::Alive => Ok(()),
            ToKeeper::End { worker } => match self.workers.remove(&worker) {
                Some(kept) => self.answers.say(&ended(worker, kept)),
                None => Ok(()),
            },
        }
    }

    /// Takes the lock of this machine, which who is at the other end has if that is this
    /// machine too.
    fn take_machine(&mut self, other_boot: Option<&str>) -> Result<(), String> {
        let own = wire::boot();
        if own.is_some() && own.as_deref() == other_boot {
            return Ok(());
        }
        match MachineLock::try_take() {
            Ok(lock) => self.lock = Some(lock),
            Err(LockError::HeldBy(holder)) => {
                return Err(format!("another run is measuring there ({holder})"));
            }
            // Nobody else can take it either.
            Err(LockError::Unusable(_)) => {}
        }
        Ok(())
    }

    fn start(&mut self, worker: u32, environment: &[(String, String)]) -> Result<(), String> {
        let before = Before::read(&Root::real());
        let launch =
            Launch { program: PathBuf::from(OWN_PROGRAM), arguments: vec!["worker".to_owned()] };
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let Spawned { child, mut stdin, mut stdout } = spawn(&launch, &environment, None)?;
        let (orders, to_write) = channel::<Vec<u8>>();
        // A worker that does not read holds nobody up.
        std::thread::spawn(move || {
            for bytes in to_write {
                if stdin.write_all(&bytes).is_err() {
                    return;
                }
            }
        });
        let answers = self.answers.clone();
        std::thread::spawn(move || {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let read = match stdout.read(&mut piece) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.unwrap_or(0),
                };
                // Nothing is the end. If nobody hears it, the control stream has ended too.
                if answers.pass_on(worker, &piece[..read]).is_err() || read == 0 {
                    return;
                }
            }
        });
        self.workers.insert(worker, Kept { child, orders: Some(orders), before });
        Ok(())
    }

    /// Gives a worker what it is told. One that has gone has ended its output, which is
    /// where that is noticed.
    fn pass_on(&mut self, worker: u32, bytes: Vec<u8>) {
        if let Some(orders) = self.workers.get(&worker).and_then(|kept| kept.orders.as_ref()) {
            let _ = orders.send(bytes);
        }
    }
}

/// Ends a worker; what became of it.
fn ended(worker: u32, mut kept: Kept) -> FromKeeper {
    kept.orders = None;
    // One that has ended by itself is not there to be killed.
    let _ = kept.child.kill();
    let how = match kept.child.wait() {
        Ok(status) => describe_end(status),
        Err(e) => format!("cannot be waited for: {}", Errno::from(e)),
    };
    let environment = Box::new(kept.before.after(&Root::real()));
    FromKeeper::Ended { worker, how, environment }
}

/// What this machine is, or why it cannot be an end.
fn here() -> Result<FarEnd, String> {
    let root = Root::real();
    Ok(FarEnd {
        host: host::read(&root)?,
        findings: doctor::findings(&root),
        reached_at: std::env::var(SSH_CONNECTION).ok().and_then(|text| reached_at(&text)),
        addresses: addresses::of_this_machine().unwrap_or_default(),
    })
}

/// The address of this machine in what `sshd` says.
fn reached_at(connection: &str) -> Option<IpAddr> {
    let address = connection.split_whitespace().nth(2)?;
    // Of a link, it says of which one.
    address.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_a_client_of_ssh_reached_is_the_third_word() {
        let at = |text: &str| reached_at(text).map(|ip| ip.to_string());
        assert_eq!(at("192.0.2.1 51234 192.0.2.2 22").as_deref(), Some("192.0.2.2"));
        assert_eq!(at("fe80::1%eth0 1 fe80::2%eth0 22").as_deref(), Some("fe80::2"));
        assert_eq!((at(""), at("UNKNOWN 65535 UNKNOWN 65535")), (None, None));
    }

    /// A writer whose reader has gone without a word: a write waits for ever.
    struct Stalled(std::sync::mpsc::Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_keeper_that_nobody_hears_or_tells_anything_ends() {
        // Neither ends before the test does.
        let (_link, stalled) = channel();
        let (control, _orders) = io::pipe().unwrap();
        let (end, ended) = channel();
        std::thread::spawn(move || {
            let control = File::from(std::os::fd::OwnedFd::from(control));
            let _ = end.send(keep_within(50_000_000, control, Stalled(stalled), None));
        });
        let ended = ended.recv_timeout(Duration::from_secs(10));
        let why = ended.expect("it waits for its own words to be taken").unwrap_err();
        assert!(why.to_string().starts_with("nothing was heard for "), "{why}");
    }

    #[test]
    fn only_the_folder_of_this_program_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        remove_own(folder.path());
        assert!(folder.path().is_dir());
    }
}
