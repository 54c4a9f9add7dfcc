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
use std::sync::{Arc, Mutex, PoisonError};

use iolens_sys::errno::Errno;
use iolens_sys::proc::Root;
use iolens_sys::{addresses, poll};

use super::wire::{self, FarEnd, Frames, FromKeeper, NOBODY, PIECE_BYTES, ToKeeper};
use crate::doctor;
use crate::environment::Before;
use crate::host;
use crate::lock::{LockError, MachineLock};
use crate::spawn::{Spawned, describe, spawn};
use crate::trial::Launch;
use crate::worker::protocol::{BUILD, PROTOCOL_VERSION};

/// Where `sshd` says whence and whereto its client has connected: two addresses, each with
/// a port behind it (sshd(8)).
const SSH_CONNECTION: &str = "SSH_CONNECTION";

/// This program, also where its file has been removed.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Answers of one side, from several threads.
type Answers<W> = Arc<Mutex<W>>;

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
    if let Some(folder) = remove {
        remove_own(folder);
    }
    let answers = Arc::new(Mutex::new(answers));
    say(&answers, &FromKeeper::Hello { protocol: PROTOCOL_VERSION, build: BUILD.to_owned() })?;
    let mut keeper = Keeper { answers, workers: BTreeMap::new(), lock: None };
    let (mut control, mut frames) = (control, Frames::default());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        while let Some((worker, body)) = frames.take()? {
            match worker {
                NOBODY => keeper.obey(wire::word(&body)?)?,
                worker => keeper.pass_on(worker, body),
            }
        }
        match poll::is_readable(control.as_fd(), wire::SILENCE_LIMIT_NS) {
            Ok(true) => {}
            Ok(false) => return Err(io::Error::other("nothing was heard for a minute")),
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(io::Error::other(errno.to_string())),
        }
        match control.read(&mut piece) {
            Ok(0) => return Ok(()),
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

struct Keeper<W> {
    answers: Answers<W>,
    workers: BTreeMap<u32, Kept>,
    /// The lock of this machine, where whoever is at the other end has another one.
    lock: Option<MachineLock>,
}

impl<W> Drop for Keeper<W> {
    fn drop(&mut self) {
        for kept in self.workers.values_mut() {
            kept.orders = None;
            let _ = kept.child.kill();
            let _ = kept.child.wait();
        }
    }
}

impl<W: Write + Send + 'static> Keeper<W> {
    fn obey(&mut self, word: ToKeeper) -> io::Result<()> {
        match word {
            ToKeeper::Hello { protocol: PROTOCOL_VERSION, boot } => {
                // Before the lock is ours, which would be found too.
                let end = Box::new(here());
                let answer = match self.take_machine(boot.as_deref()) {
                    Ok(()) => FromKeeper::Here { end },
                    Err(what) => FromKeeper::Refused { what },
                };
                say(&self.answers, &answer)
            }
            ToKeeper::Hello { protocol, .. } => Err(io::Error::other(format!(
                "the other machine speaks protocol {protocol}, this iolens (build {BUILD}) speaks \
                 {PROTOCOL_VERSION}"
            ))),
            ToKeeper::Start { worker, environment } => match self.start(worker, &environment) {
                Ok(()) => Ok(()),
                Err(what) => say(&self.answers, &FromKeeper::Failed { worker, what }),
            },
            ToKeeper::Alive => Ok(()),
            ToKeeper::End { worker } => match self.workers.remove(&worker) {
                Some(kept) => say(&self.answers, &ended(worker, kept)),
                None => Ok(()),
            },
        }
    }

    /// Takes the lock of this machine, which who is at the other end has if that is this
    /// machine too.
    fn take_machine(&mut self, other_boot: Option<&str>) -> Result<(), String> {
        let own = boot();
        if own.is_some() && own.as_deref() == other_boot {
            return Ok(());
        }
        match MachineLock::try_take() {
            Ok(lock) => self.lock = Some(lock),
            Err(LockError::HeldBy(holder)) => {
                return Err(format!("another run measures on that machine ({holder})"));
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
        let answers = Arc::clone(&self.answers);
        std::thread::spawn(move || {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let read = match stdout.read(&mut piece) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.unwrap_or(0),
                };
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                // Nothing is the end. If nobody hears it, the control stream has ended too.
                if wire::write(&mut *answers, worker, &piece[..read]).is_err() || read == 0 {
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
        Ok(status) => describe(status),
        Err(e) => format!("cannot be waited for: {}", Errno::from(e)),
    };
    let environment = Box::new(kept.before.after(&Root::real()));
    FromKeeper::Ended { worker, how, environment }
}

fn say<W: Write>(answers: &Answers<W>, word: &FromKeeper) -> io::Result<()> {
    wire::say(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner), word)
}

/// Which boot of which machine this is.
pub(super) fn boot() -> Option<String> {
    Some(Root::real().read("proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// What this machine is.
fn here() -> FarEnd {
    let root = Root::real();
    FarEnd {
        host: host::read(&root),
        findings: doctor::findings(&root),
        reached_at: std::env::var(SSH_CONNECTION).ok().and_then(|text| reached_at(&text)),
        addresses: addresses::of_this_machine().unwrap_or_default(),
    }
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

    #[test]
    fn only_the_folder_of_this_program_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        remove_own(folder.path());
        assert!(folder.path().is_dir());
    }
}
