//! Programs that are started: the descriptor that one keeps, and that it asks nobody anything.
//!
//! # Safety
//! What runs between fork(2) and execve(2) in the child is one call each, fcntl(2) or setsid(2),
//! which are async-signal-safe (signal-safety(7)); the descriptor is open there, as the closure
//! owns it. A number from outside becomes a descriptor of ours once in the life of a process, and
//! only if it is an open one beyond the standard three: what this process opens itself later gets
//! numbers that are free.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, sockopt};

use crate::errno::Errno;

/// The last of the standard descriptors.
const STDERR: RawFd = 2;

/// Leaves a descriptor open in a program, under the number that it has here.
pub fn leave_open(command: &mut Command, fd: OwnedFd) {
    let leave = move || {
        // SAFETY: see the module's note.
        match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: see the module's note; making the error allocates nothing.
    unsafe { command.pre_exec(leave) };
}

/// Has a program begin a session of its own (setsid(2)), which has no terminal: what would
/// ask for a password on /dev/tty fails there and then, and Ctrl-C of our terminal does not
/// reach it.
pub fn without_terminal(command: &mut Command) -> &mut Command {
    let begin = || {
        // SAFETY: see the module's note.
        if unsafe { libc::setsid() } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: see the module's note; making the error allocates nothing.
    unsafe { command.pre_exec(begin) }
}

/// Takes over the socket of `AF_UNIX` that this process was started with as this number, which
/// programs that it starts do not have.
///
/// Errors: `EBADF` where there is none, `ENOTSOCK` or `EAFNOSUPPORT` where it is something else,
/// `EBUSY` where one was taken before.
pub fn unix_socket(number: RawFd) -> Result<OwnedFd, Errno> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    if number <= STDERR {
        return Err(Errno::EBADF);
    }
    // SAFETY: borrowed for the questions below, which fail where it is not open.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    if sockopt::socket_domain(fd)? != AddressFamily::UNIX {
        return Err(Errno::EAFNOSUPPORT);
    }
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Errno::EBUSY);
    }
    fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    // SAFETY: see the module's note.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;
    use crate::unix;

    #[test]
    fn a_program_has_the_socket_that_was_left_open_and_no_other() {
        let limit = std::time::Duration::from_secs(20);
        let (near, far) = unix::pair(4096, limit).unwrap();
        let (ours, left) = (near.as_raw_fd(), far.as_raw_fd());
        let mut command = Command::new("readlink");
        command.args([format!("/proc/self/fd/{left}"), format!("/proc/self/fd/{ours}")]);
        leave_open(&mut command, far);
        let output = command.stderr(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("socket:[") && said.lines().count() == 1, "{said}");
    }

    #[test]
    fn what_is_no_such_socket_is_not_taken() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let why = unix_socket(file.as_raw_fd()).unwrap_err().to_string();
        assert!(why.starts_with("ENOTSOCK"), "{why}");
        assert_eq!(unix_socket(1).unwrap_err(), Errno::EBADF);
        assert_eq!(unix_socket(1 << 20).unwrap_err(), Errno::EBADF);
    }

    #[test]
    fn a_program_has_no_terminal_and_leads_its_session() {
        let mut command = Command::new("sh");
        // The sixth and the seventh field of /proc/PID/stat, and what opening it says.
        let script = "cut -d' ' -f1,6,7 /proc/$$/stat; exec 2>&-; : </dev/tty && echo opened";
        let output = without_terminal(command.args(["-c", script])).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let fields: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(fields.len(), 3, "{said}");
        assert_eq!((fields[0], fields[2]), (fields[1], "0"), "{said}");
    }
}
