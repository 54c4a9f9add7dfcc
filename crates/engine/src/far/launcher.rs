//! What starts a program on another machine, and the first lines that come back: `ssh user@host`,
//! `srun -w node`, `kubectl exec -i pod --`, `ip netns exec b`, or whatever else gives its input
//! and output to a program that is named behind it.

use std::fmt;
use std::fs::File;

use iolens_model::command_line;
use iolens_programs::spawn::{self, Spawned};
use iolens_sys::file;

/// The program that a launcher is to start. One word, so that it makes no difference whether a
/// shell at the other end reads it, as with ssh, or not.
const SHELL: &str = "sh";

/// A command that starts what is named behind it somewhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    words: Vec<String>,
}

impl Launcher {
    /// Of a command's words.
    ///
    /// # Errors
    /// There is none.
    pub fn new(words: Vec<String>) -> Result<Launcher, String> {
        match words.first().map(String::is_empty) {
            Some(false) => Ok(Launcher { words }),
            _ => Err("a launcher is a command, such as `ssh host`".to_owned()),
        }
    }

    /// Has it start a shell at the other end. It has no terminal, so that it asks nobody for a
    /// password; what it and the programs at the other end say of errors goes to `errors`.
    ///
    /// # Errors
    /// What was started and what the system said.
    pub(super) fn start(&self, errors: File) -> Result<Spawned, String> {
        let (program, rest) = self.words.split_first().ok_or("no launcher is named")?;
        let words: Vec<&str> = rest.iter().map(String::as_str).chain([SHELL]).collect();
        spawn::spawn_apart(program, &words, errors)
            .map_err(|e| format!("cannot start the launcher `{self}`: {e}"))
    }

    /// A file for what it says of errors, without a name.
    ///
    /// # Errors
    /// What was tried and what the system said.
    pub(super) fn errors() -> Result<File, String> {
        file::in_memory("launcher")
            .map_err(|e| format!("cannot create a file for the errors of a launcher: {e}"))
    }
}

/// As it is stored and shown: without its secrets.
impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&command_line::join(command_line::redacted(&self.words)))
    }
}

// The first lines from the other end: ours, among whatever a launcher prints before.

/// What our lines begin with. Others may come before them: a banner, a message of the day.
const MARK: &str = "iolens-far: ";

/// Bytes of others' lines that are passed over.
const BANNER_BYTES_MAX: usize = 1 << 20;

/// Lines from whatever pieces come.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Bytes of others' lines since the last of ours.
    passed: usize,
}

/// What comes and is not what a shell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// A terminal is in the way.
    Terminal,
    /// Much, and nothing of ours.
    Much,
}

impl Lines {
    /// Adds what was read.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next line that is ours and is here, without its mark.
    ///
    /// # Errors
    /// See [`Odd`].
    pub fn take(&mut self) -> Result<Option<String>, Odd> {
        let (mut ours, mut done) = (None, 0);
        while let Some(length) = memchr::memchr(b'\n', &self.bytes[done..]) {
            let line = &self.bytes[done..done + length];
            done += length + 1;
            if let Some(said) = line.strip_prefix(MARK.as_bytes()) {
                ours = Some(String::from_utf8_lossy(said).into_owned());
                break;
            }
            self.passed += length;
        }
        self.bytes.drain(..done);
        match ours {
            Some(said) if said.ends_with('\r') => Err(Odd::Terminal),
            Some(said) => {
                self.passed = 0;
                Ok(Some(said))
            }
            None if self.passed + self.bytes.len() > BANNER_BYTES_MAX => Err(Odd::Much),
            None => Ok(None),
        }
    }

    /// What came behind the last line that was taken.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Launcher, *};

    #[test]
    fn a_launcher_is_shown_without_its_secrets() {
        let words = ["sshpass", "-p", "hush", "ssh", "a host"].map(String::from).to_vec();
        let launcher = Launcher::new(words).unwrap();
        assert_eq!(launcher.to_string(), "sshpass -p '***' ssh 'a host'");
    }

    #[test]
    fn only_lines_of_ours_are_taken_and_what_follows_stays() {
        let mut lines = Lines::default();
        lines.extend(b"Welcome\n\niolens-far: Linux x86");
        assert_eq!(lines.take(), Ok(None));
        lines.extend(b"_64\nbehind\0it");
        assert_eq!(lines.take(), Ok(Some("Linux x86_64".to_owned())));
        assert_eq!(lines.rest(), b"behind\0it");
        lines.extend(b"iolens-far: go\r\n");
        assert_eq!(lines.take(), Err(Odd::Terminal));
        lines.extend(&vec![b'\n'; 2 * BANNER_BYTES_MAX]);
        assert_eq!(lines.take(), Ok(None), "a line end is no word");
        lines.extend(&vec![b'x'; BANNER_BYTES_MAX + 1]);
        assert_eq!(lines.take(), Err(Odd::Much));
    }
}
