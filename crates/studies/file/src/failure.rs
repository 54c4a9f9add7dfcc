//! Why a writing or a copying broke off, in words, and what to do.

use std::path::Path;

use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::process;

use crate::moved::{Broken, FileEnd};
use crate::subject::Subject;

/// What SIGBUS says of a file that is read.
pub const LOST_PAGE: &str =
    "the file was truncated while it was mapped (SIGBUS), or its device failed";

/// What it says of one that is written.
pub const NO_ROOM_FOR_PAGE: &str =
    "there was no room for a page of the mapped file (SIGBUS), or its device failed";

/// The files of what broke off.
pub(crate) struct Ends<'a> {
    /// What was read; `None` where the bytes were made.
    pub(crate) source: Option<&'a Subject>,
    /// What was written.
    pub(crate) destination: &'a Path,
    /// The file system that it is on.
    pub(crate) file_system: &'a str,
    /// What to use where the call is refused.
    pub(crate) instead: Option<&'static str>,
}

impl Ends<'_> {
    /// What was tried, on what, what the system said and what that means.
    pub(crate) fn explain(&self, broken: Broken, bytes: u64) -> String {
        let Broken { call, errno } = broken;
        let source = self.source.map_or("", Subject::name);
        let destination = self.destination.display();
        let on = match call.end {
            FileEnd::Source => source.to_owned(),
            FileEnd::Destination => destination.to_string(),
            FileEnd::Both => format!("{source} to {destination}"),
        };
        let after = match bytes {
            0 => String::new(),
            bytes => format!(" after {}", counted(bytes)),
        };
        let tried = format!("{} failed on {on}{after}", call.name);
        if let (Errno::ENODATA | Errno::EFAULT, Some(source)) = (errno, self.source) {
            return ended_early(source, bytes, call.name);
        }
        match self.meaning(errno, call.end) {
            Some(why) => format!("{tried}: {errno}: {why}"),
            None => format!("{tried}: {errno}"),
        }
    }

    fn meaning(&self, errno: Errno, end: FileEnd) -> Option<String> {
        let file_system = self.file_system;
        Some(match errno {
            Errno::EXDEV => {
                let from = self.source.map_or("", Subject::file_system);
                let between = match from == file_system {
                    true => format!("between two file systems ({from})"),
                    false => format!("from {from} to {file_system}"),
                };
                format!("it cannot go {between}")
            }
            Errno::EOPNOTSUPP | Errno::ENOTTY | Errno::EINVAL | Errno::ENOSYS
                if end == FileEnd::Both =>
            {
                let from = self.source.map_or("", Subject::file_system);
                match from == file_system {
                    true => format!("{from} cannot do that here"),
                    false => format!("{from} and {file_system} cannot do that together"),
                }
            }
            _ => return of_writing(errno, file_system),
        })
    }

    /// What to use instead, as the end of a message; nothing where another engine
    /// would fare no better.
    pub(crate) fn advice(&self, broken: Broken) -> String {
        let is_refusal = matches!(
            broken.errno,
            Errno::EXDEV | Errno::EOPNOTSUPP | Errno::ENOTTY | Errno::EINVAL | Errno::ENOSYS
        );
        match self.instead {
            // What stays within one file system does not go beyond it by another call.
            Some(_) if broken.errno == Errno::EXDEV => "\n  use --engine read_write".to_owned(),
            Some(instead) if is_refusal => format!("\n  use --engine {instead}"),
            _ => String::new(),
        }
    }
}

/// What an errno says of writing to a file system, whatever the call.
pub(crate) fn of_writing(errno: Errno, file_system: &str) -> Option<String> {
    Some(match errno {
        Errno::ENOSPC => format!("its file system ({file_system}) is full"),
        Errno::EDQUOT => {
            "a disk quota, of the user, the group or this part of the file system, is used up"
                .to_owned()
        }
        Errno::EFBIG => match process::file_size_limit_bytes() {
            u64::MAX => format!("{file_system} does not allow files this large"),
            limit => {
                format!("this process may not make files larger than {} (ulimit -f)", Bytes(limit))
            }
        },
        Errno::EIO => "the device or its file system failed; `dmesg` may say more".to_owned(),
        Errno::EROFS => "its file system is mounted read-only".to_owned(),
        _ => return None,
    })
}

/// An errno, and what it says of writing to a file system.
pub(crate) fn said_of_writing(errno: Errno, file_system: &str) -> String {
    match of_writing(errno, file_system) {
        Some(why) => format!("{errno}: {why}"),
        None => errno.to_string(),
    }
}

/// Why a source gave less than it had.
fn ended_early(source: &Subject, bytes: u64, call: &str) -> String {
    let (name, had) = (source.name(), source.bytes());
    match source.about_now().map(|about| about.bytes) {
        Ok(now) if now < had => format!(
            "{name} was truncated while it was copied: it had {had} bytes at the beginning and \
             has {now} now"
        ),
        _ => format!(
            "{name} ended for {call} after {bytes} of its {had} bytes: its size is not that of \
             its content, as of files in /proc and /sys (it is on {}), which `cat` copies",
            source.file_system()
        ),
    }
}

/// `4194304 bytes (4 MiB)`.
pub(crate) fn counted(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        Bytes::KIB.. => format!("{bytes} bytes ({})", Bytes(bytes)),
        _ => format!("{bytes} bytes"),
    }
}
