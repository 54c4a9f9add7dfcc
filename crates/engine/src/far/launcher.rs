//! What starts a program on another machine: `ssh user@host`, `srun -w node`, `kubectl exec -i
//! pod --`, `ip netns exec b`, or whatever else gives its input and output to a program that is
//! named behind it.

use std::fmt;
use std::fs::File;

use iolens_sys::file;

use iolens_model::{secret, shell};

use iolens_programs::spawn::{self, Spawned};

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
        f.write_str(&shell::join(secret::redacted(&self.words)))
    }
}

#[cfg(test)]
mod tests {
    use super::Launcher;

    #[test]
    fn a_launcher_is_shown_without_its_secrets() {
        let words = ["sshpass", "-p", "hush", "ssh", "a host"].map(String::from).to_vec();
        let launcher = Launcher::new(words).unwrap();
        assert_eq!(launcher.to_string(), "sshpass -p '***' ssh 'a host'");
    }
}
