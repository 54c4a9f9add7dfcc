//! A program of the user's that serves in place of a model: started by the worker of its
//! arm, where that stands and on its processors, and killed with it.

use std::fs::File;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use iolens_model::external::External;
use iolens_model::outcome::ArmFact;
use iolens_sys::errno::Errno;
use iolens_sys::kin::{self, Listening, Tree};
use iolens_sys::launch::Begun;
use iolens_sys::proc::Root;
use iolens_sys::{clock, file};

use super::protocol::Failure;
use iolens_programs::spawn;

/// What answers in a server's worker.
pub(super) trait Serves {
    /// The threads and processes of it that serve at the moment.
    fn tasks(&self) -> Vec<u32>;
    /// How many of them there were at once so far, at most.
    fn at_once(&self) -> u64 {
        self.tasks().len() as u64
    }
    /// Requests that it has answered so far.
    fn requests(&self) -> u64;
    /// Why it has ended by itself, or the limit of this machine that it has met; `None`
    /// while it serves all.
    fn failure(&self) -> Option<String>;
}

/// A program that does not listen by then does not.
const LISTEN_LIMIT_NS: u64 = 10_000_000_000;

/// Time between two looks whether it does.
const LOOK_NS: u64 = 2_000_000;

/// A program that was started.
pub(super) struct Program {
    name: String,
    address: SocketAddr,
    begun: Begun,
    /// What it says of its errors.
    errors: File,
    root: Root,
}

impl Program {
    /// Starts a program, and tells it a port that is free on `ip`.
    ///
    /// Errors: why it was not started.
    pub(super) fn start(external: &External, ip: IpAddr) -> Result<Program, Failure> {
        let cannot = |what: &str, errno: Errno| {
            Failure::cause(format!("cannot {what} for `{}`: {errno}", external.name))
        };
        let port = TcpListener::bind((ip, 0)).and_then(|listener| listener.local_addr());
        let address = port.map_err(|e| cannot("find a free port", e.into()))?;
        let errors = file::in_folder(&std::env::temp_dir())
            .map_err(|errno| cannot("make a file for errors", errno))?;
        let copy = errors.try_clone().map_err(|e| cannot("duplicate a file", e.into()))?;
        let mut program = spawn::program(&external.with_address(address), copy)
            .map_err(|why| Failure { refused: true, ..Failure::cause(why) })?;
        let begun = program.begin().map_err(|errno| cannot("start the program", errno))?;
        let (name, root) = (external.name.clone(), Root::real());
        Ok(Program { name, address, begun, errors, root })
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.begun.id()
    }

    /// Where it is to listen.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has ended, and says how.
    pub(super) fn watch(&self) -> String {
        match self.begun.wait() {
            Ok(_) => self.failure().unwrap_or_default(),
            Err(errno) => format!("cannot wait for `{}`: {errno}", self.name),
        }
    }

    /// Kills it.
    pub(super) fn stop(&self) {
        self.begun.kill();
    }

    /// Waits until it listens where it is to.
    ///
    /// Errors: it does not, or it has ended.
    pub(super) fn wait_until_it_listens(&self) -> Result<Owner, Failure> {
        self.wait_for(LISTEN_LIMIT_NS)
    }

    fn wait_for(&self, limit_ns: u64) -> Result<Owner, Failure> {
        let deadline_ns = clock::monotonic_ns() + limit_ns;
        loop {
            let found = self.listens();
            if let Listens::There(owner) = found {
                return Ok(owner);
            }
            if let Some(how) = self.failure() {
                let who = self.stranger(found).map(|who| format!(": {who}")).unwrap_or_default();
                let address = self.address;
                return Err(Failure::cause(format!("{how} before it listened on {address}{who}")));
            }
            let now_ns = clock::monotonic_ns();
            if now_ns >= deadline_ns {
                return Err(Failure::cause(self.does_not_listen(found, limit_ns)));
            }
            clock::sleep_until_ns(now_ns + LOOK_NS);
        }
    }

    /// Why its client cannot reach it.
    fn does_not_listen(&self, found: Listens, limit_ns: u64) -> String {
        let (name, address) = (&self.name, self.address);
        if let Some(who) = self.stranger(found) {
            return format!(
                "`{name}` does not listen on {address}: {who}. Try again, which takes another \
                 port; a program that hands its socket to others, as a daemon does, must stay in \
                 the foreground"
            );
        }
        match found {
            Listens::Elsewhere(ip) => format!(
                "`{name}` listens on {ip}, where its client cannot reach it, and not on \
                 {address}: let it listen on all addresses, or on {{address}}, which \
                 stands for the right one in --external"
            ),
            _ => format!(
                "`{name}` did not listen on port {port} within {} s of its start: {{port}} \
                 in --external stands for the port that it must listen on",
                limit_ns / 1_000_000_000,
                port = address.port(),
            ),
        }
    }

    /// Who has its port in its place.
    fn stranger(&self, found: Listens) -> Option<String> {
        let Listens::Stranger(inode) = found else { return None };
        let port = self.address.port();
        Some(match kin::holder(&self.root, inode) {
            Some((pid, name)) => format!("process {pid} ({name}) listens on port {port}"),
            None => format!("a process that it did not start listens on port {port}"),
        })
    }

    /// Where it listens on its port, or who else does.
    fn listens(&self) -> Listens {
        let read = |file: &str| self.root.read(&format!("proc/self/net/{file}"));
        let text = |file: &str| read(file).unwrap_or_default();
        let all = [text("tcp"), text("tcp6")];
        let mut found = Listens::Nowhere;
        for Listening { address, inode } in all.iter().flat_map(|text| kin::tcp_listeners(text)) {
            if address.port() != self.address.port() {
                continue;
            }
            let is_its_own = kin::has_socket(&self.root, self.id(), inode);
            let is_reached = address.ip().is_unspecified() || address.ip() == self.address.ip();
            match (is_reached, is_its_own) {
                (true, Some(true)) => return Listens::There(Owner::Known),
                (true, None) => found = Listens::There(Owner::Unknown),
                (true, Some(false)) if found == Listens::Nowhere => {
                    found = Listens::Stranger(inode);
                }
                (false, Some(true) | None) if found == Listens::Nowhere => {
                    found = Listens::Elsewhere(address.ip());
                }
                _ => {}
            }
        }
        found
    }
}

/// Whether it is known that the program itself listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The socket is one of its descriptors.
    Known,
    /// Its descriptors may not be read: somebody listens on its port.
    Unknown,
}

impl Owner {
    /// What a reader of the arm's numbers should know of it.
    pub(super) fn fact(self, arm: usize) -> Option<ArmFact> {
        let value = "not known to be the program: who has the socket may not be read in /proc";
        let value = value.to_owned();
        (self == Owner::Unknown).then(|| ArmFact { arm, name: "who listens".to_owned(), value })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listens {
    There(Owner),
    Elsewhere(IpAddr),
    /// Who listens has this socket, which the program has not.
    Stranger(u64),
    Nowhere,
}

impl Serves for Program {
    fn tasks(&self) -> Vec<u32> {
        Tree::below(&self.root, self.id()).threads
    }

    /// It tells nobody; the client knows.
    fn requests(&self) -> u64 {
        0
    }

    fn failure(&self) -> Option<String> {
        let status = ExitStatus::from_raw(self.begun.ended()?.status);
        Some(format!("`{}` {}", self.name, spawn::obituary(status, &self.errors)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn program(command: &[&str]) -> Result<Program, Failure> {
        let argv = command.iter().map(|&word| word.to_owned()).collect();
        Program::start(&External { name: "mine".into(), argv }, Ipv4Addr::LOCALHOST.into())
    }

    #[test]
    fn one_that_ends_before_it_listens_says_how() {
        let program = program(&["sh", "-c", "echo no port {port} for me >&2; exit 3"]).unwrap();
        let told = std::thread::scope(|scope| {
            scope.spawn(|| program.watch());
            program.wait_until_it_listens().unwrap_err().what
        });
        let port = program.address().port();
        let expect = format!(
            "`mine` exited with status 3: no port {port} for me before it listened on \
             127.0.0.1:{port}"
        );
        assert_eq!(told, expect);
    }

    #[test]
    fn a_stranger_on_its_port_is_not_measured() {
        let program = program(&["tail", "-f", "/dev/null"]).unwrap();
        let _stranger = TcpListener::bind(program.address()).unwrap();
        let why = program.wait_for(0).unwrap_err().what;
        let port = program.address().port();
        let who = format!("process {} (", std::process::id());
        assert!(why.contains(&who) && why.contains(&format!("listens on port {port}")), "{why}");
        program.stop();
        program.watch();
    }

    #[test]
    fn one_that_is_not_there_is_refused_by_name() {
        let failure = program(&["no-such-server", "{port}"]).err().unwrap();
        assert!(failure.refused && failure.what.contains("no program `no-such-server` in PATH"));
    }
}
