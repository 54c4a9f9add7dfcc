//! A terminal of 80 × 24 that a test holds the other end of.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

const COLUMNS: usize = 80;

/// The end that a person would sit at.
pub(crate) struct Pty {
    controller: File,
    name: String,
    /// All that was sent to it so far.
    pub(crate) said: String,
    /// Bytes of a letter that has not come whole.
    pending: Vec<u8>,
}

impl Pty {
    /// A command with stdout and stderr on a new terminal, and stdin too where it is asked.
    pub(crate) fn start(mut command: Command, is_asked: bool) -> (Pty, Child) {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let ws_col = u16::try_from(COLUMNS).unwrap();
        let size = Winsize { ws_row: 24, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let pty = Pty {
            controller: File::from(controller),
            name,
            said: String::new(),
            pending: Vec::new(),
        };
        let terminal = pty.held_open();
        let end = || Stdio::from(terminal.try_clone().unwrap());
        if is_asked {
            command.stdin(end());
        }
        let child = command.stdout(end()).stderr(end()).spawn().unwrap();
        // The command holds copies of the terminal, which ends when nobody has it open.
        drop(command);
        (pty, child)
    }

    /// The other end: as long as it is open, the terminal keeps its settings and has no end.
    pub(crate) fn held_open(&self) -> File {
        File::options().read(true).write(true).open(&self.name).unwrap()
    }

    /// Everything, to the end.
    pub(crate) fn rest(&mut self) -> &str {
        while self.more() {}
        &self.said
    }

    /// Reads until a text was sent so many times in all.
    pub(crate) fn until_said(&mut self, text: &str, times: usize) {
        while self.said.matches(text).count() < times {
            assert!(self.more(), "no {text:?} in {:?}", self.said);
        }
    }

    /// The same, and until keys are handed over at once.
    pub(crate) fn until_asked(&mut self, text: &str, times: usize) {
        self.until_said(text, times);
        let end = Instant::now() + Duration::from_secs(20);
        while self.settings().local_modes.contains(LocalModes::ICANON) {
            assert!(Instant::now() < end, "it never waits for a key");
            std::thread::yield_now();
        }
        // What was sent before that is here, to its last byte.
        while self.has_more() {
            self.more();
        }
    }

    fn has_more(&self) -> bool {
        let mut fds = [PollFd::new(&self.controller, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    pub(crate) fn settings(&self) -> Termios {
        tcgetattr(&self.controller).unwrap()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).unwrap();
    }

    /// The rows that a person sees, without those at the end that are empty.
    pub(crate) fn screen(&self) -> Vec<String> {
        let (mut rows, mut y) = (vec![String::new()], 0_usize);
        let mut rest = self.said.as_str();
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\r' => {}
                '\n' => y += 1,
                '\u{1b}' => {
                    let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    let n: usize = rest[1..end].parse().unwrap_or(1);
                    match &rest[end..=end] {
                        "A" => y -= n.min(y),
                        "B" => y += n,
                        "K" => rows[y].clear(),
                        _ => {}
                    }
                    rest = &rest[end + 1..];
                }
                _ => {
                    y += usize::from(rows[y].chars().count() == COLUMNS);
                    rows.resize(rows.len().max(y + 1), String::new());
                    rows[y].push(c);
                }
            }
            rows.resize(rows.len().max(y + 1), String::new());
        }
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    fn more(&mut self) -> bool {
        let mut piece = [0; 4096];
        // A terminal that nobody has open any more gives EIO.
        let Ok(n @ 1..) = self.controller.read(&mut piece) else { return false };
        // A letter may lie across two pieces.
        self.pending.extend_from_slice(&piece[..n]);
        let whole = match std::str::from_utf8(&self.pending) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.pending.split_off(whole);
        self.said.push_str(std::str::from_utf8(&self.pending).unwrap());
        self.pending = rest;
        true
    }
}
