//! What a terminal is like, and waiting for a key of one.

use std::io::{self, Stdin, stdin};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::signal::Delayed;

/// Columns of a terminal; `None` where it is none, or does not say.
///
/// Source: `TIOCGWINSZ`, ioctl_tty(2).
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// The terminal that stdin is, handing over each key at once and showing none, until this is
/// dropped: then it is as it was, and a signal that came in between (SIGINT, SIGTERM, SIGHUP)
/// does what it does.
#[derive(Debug)]
pub struct Keys {
    terminal: Stdin,
    before: Termios,
    // Dropped last: who is ended by a signal has put the terminal back.
    signals: Delayed,
}

impl Keys {
    /// From now on. One thread may do so, while there is no other.
    ///
    /// Errors: `ENOTTY` where stdin is no terminal.
    pub fn of_stdin() -> io::Result<Keys> {
        let terminal = stdin();
        let before = tcgetattr(&terminal)?;
        let signals = Delayed::these().map_err(|e| io::Error::from_raw_os_error(e.raw()))?;
        let mut raw = before.clone();
        raw.make_raw();
        // Lines that are printed still begin at the left.
        raw.output_modes = before.output_modes;
        tcsetattr(&terminal, OptionalActions::Drain, &raw)?;
        Ok(Keys { terminal, before, signals })
    }

    /// Waits until a key can be read, or the terminal has gone.
    ///
    /// Errors: `EINTR` when a signal came first.
    pub fn wait(&self) -> io::Result<()> {
        let fds = [self.terminal.as_fd(), self.signals.as_fd()];
        let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        rustix::event::poll(&mut polled, None)?;
        match polled[1].revents().is_empty() {
            true => Ok(()),
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing back.
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}
