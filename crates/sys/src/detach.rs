//! Programs that are to ask nobody anything.
//!
//! # Safety
//! What runs between fork(2) and execve(2) in the child is one call, setsid(2), which is
//! async-signal-safe (signal-safety(7)) and takes nothing.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

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

#[cfg(test)]
mod tests {
    use super::*;

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
