//! A program of the user's that serves in place of a model: started by the worker of its
//! arm, where that stands and on its processors, and killed with it.

use std::fs::File;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use iolens_model::copy::External;
use iolens_sys::errno::Errno;
use iolens_sys::kin::{self, Tree};
use iolens_sys::launch::Begun;
use iolens_sys::proc::Root;
use iolens_sys::{clock, file};

use super::protocol::Failure;
use super::serving::Serves;
use crate::spawn;

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
    pub(super) fn wait_until_it_listens(&self) -> Result<(), Failure> {
        let (name, address) = (&self.name, self.address);
        let deadline_ns = clock::monotonic_ns() + LISTEN_LIMIT_NS;
        loop {
            let elsewhere = match self.listens() {
                Listens::There => return Ok(()),
                Listens::Elsewhere(ip) => Some(ip),
                Listens::Nowhere => None,
            };
            if let Some(how) = self.failure() {
                return Err(Failure::cause(format!("{how} before it listened on {address}")));
            }
            let now_ns = clock::monotonic_ns();
            if now_ns >= deadline_ns {
                let port = address.port();
                return Err(Failure::cause(match elsewhere {
                    Some(ip) => format!(
                        "`{name}` listens on {ip}, where its client cannot reach it, and not on \
                         {address}: let it listen on all addresses, or on {{address}}, which \
                         stands for the right one in --external"
                    ),
                    None => format!(
                        "`{name}` did not listen on port {port} within {} s of its start: {{port}} \
                         in --external stands for the port that it must listen on",
                        LISTEN_LIMIT_NS / 1_000_000_000
                    ),
                }));
            }
            clock::sleep_until_ns(now_ns + LOOK_NS);
        }
    }

    /// Where somebody listens on its port.
    fn listens(&self) -> Listens {
        let read = |file: &str| self.root.read(&format!("proc/self/net/{file}"));
        let text = |file: &str| read(file).unwrap_or_default();
        let all = [text("tcp"), text("tcp6")];
        let mut found = Listens::Nowhere;
        for listener in all.iter().flat_map(|text| kin::tcp_listeners(text)) {
            if listener.port() != self.address.port() {
                continue;
            }
            if listener.ip().is_unspecified() || listener.ip() == self.address.ip() {
                return Listens::There;
            }
            found = Listens::Elsewhere(listener.ip());
        }
        found
    }
}

enum Listens {
    There,
    Elsewhere(IpAddr),
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
    fn one_that_is_not_there_is_refused_by_name() {
        let failure = program(&["no-such-server", "{port}"]).err().unwrap();
        assert!(failure.refused && failure.what.contains("no program `no-such-server` in PATH"));
    }
}
