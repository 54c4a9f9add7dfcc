//! /proc as a program reads it that looks for processes again and again: names are
//! read into one buffer, and each file is opened
//! and read by its number. Nothing is allocated from one look to the next.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RawDir, open, openat};

use crate::errno::Errno;

/// Bytes of names that one getdents64(2) returns at most, as glibc asks.
const NAMES_BYTES: usize = 32 << 10;

/// More than the longest /proc/PID/stat: 51 numbers and a name of 15 bytes.
const STAT_BYTES: usize = 2048;

/// An open directory such as /proc.
#[derive(Debug)]
pub struct ProcDirectory {
    directory: OwnedFd,
    names: Vec<MaybeUninit<u8>>,
    stat: Vec<u8>,
}

impl ProcDirectory {
    /// Opens it.
    ///
    /// Errors: see open(2).
    pub fn open(path: &Path) -> Result<ProcDirectory, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(ProcDirectory {
            directory: open(path, flags, Mode::empty())?,
            names: vec![MaybeUninit::uninit(); NAMES_BYTES],
            stat: vec![0; STAT_BYTES],
        })
    }

    /// Puts the processes of now into `pids`.
    ///
    /// Errors: see getdents64(2).
    pub fn processes(&mut self, pids: &mut Vec<u32>) -> Result<(), Errno> {
        pids.clear();
        // Opened each time: processes that were forked share the place of an open
        // directory, from which the next names come.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listing = openat(&self.directory, ".", flags, Mode::empty())?;
        let mut entries = RawDir::new(&listing, &mut self.names);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let number = std::str::from_utf8(entry.file_name().to_bytes()).ok().filter(|name| {
                // Numbers also take a sign.
                name.bytes().all(|byte| byte.is_ascii_digit())
            });
            pids.extend(number.and_then(|number| number.parse::<u32>().ok()));
        }
        Ok(())
    }

    /// The `stat` of a process: open(2), read(2), close(2). Nothing for one that
    /// has gone, also between the first two (`ESRCH`).
    ///
    /// Errors: what else the system says.
    pub fn stat(&mut self, pid: u32) -> Result<Option<&[u8]>, Errno> {
        let gone = |errno| match Errno::from(errno) {
            Errno::ENOENT | Errno::ESRCH => Ok(None),
            errno => Err(errno),
        };
        let mut path = [0u8; 16];
        let path = stat_path(pid, &mut path);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = match openat(&self.directory, path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(errno) => return gone(errno),
        };
        match rustix::io::read(&file, &mut self.stat[..]) {
            Ok(bytes) => Ok(Some(&self.stat[..bytes])),
            Err(errno) => gone(errno),
        }
    }
}

/// `PID/stat`, written into a buffer.
fn stat_path(pid: u32, buffer: &mut [u8; 16]) -> &[u8] {
    const END: &[u8; 5] = b"/stat";
    let mut at = buffer.len() - END.len();
    buffer[at..].copy_from_slice(END);
    let mut rest = pid;
    loop {
        at -= 1;
        // A digit is below 10.
        buffer[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            return &buffer[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_processes() {
        for (pid, expect) in [(0, "0/stat"), (17, "17/stat"), (u32::MAX, "4294967295/stat")] {
            assert_eq!(stat_path(pid, &mut [0; 16]), expect.as_bytes());
        }
    }

    #[test]
    fn processes_are_found_again_and_again_and_those_that_are_gone_are_skipped() {
        let mut proc = ProcDirectory::open(Path::new("/proc")).unwrap();
        let mut pids = Vec::new();
        for _ in 0..2 {
            proc.processes(&mut pids).unwrap();
            assert!(pids.contains(&std::process::id()));
        }
        let own = proc.stat(std::process::id()).unwrap().unwrap();
        assert!(own.starts_with(std::process::id().to_string().as_bytes()));
        assert_eq!(proc.stat(u32::MAX), Ok(None));
    }

    #[test]
    fn processes_that_were_forked_do_not_take_each_others_names() {
        let folder = tempfile::tempdir().unwrap();
        for pid in 0..2000 {
            std::fs::create_dir(folder.path().join(pid.to_string())).unwrap();
        }
        let mut proc = ProcDirectory::open(folder.path()).unwrap();
        let mut pids = Vec::with_capacity(4000);
        for _ in 0..4 {
            crate::fork::start(|| {
                let complete =
                    (0..50).all(|_| proc.processes(&mut pids).is_ok_and(|()| pids.len() == 2000));
                u8::from(!complete)
            })
            .unwrap();
        }
        for _ in 0..4 {
            let ended = crate::fork::ended(crate::fork::Patience::Waits).unwrap().unwrap();
            assert_eq!(ended.code, Some(0));
        }
    }

    #[test]
    fn a_folder_with_more_names_than_fit_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        for pid in 0..2000 {
            std::fs::create_dir(folder.path().join(pid.to_string())).unwrap();
        }
        for name in ["self", "12x", "-3", "99999999999"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut proc = ProcDirectory::open(folder.path()).unwrap();
        let mut pids = Vec::new();
        proc.processes(&mut pids).unwrap();
        pids.sort_unstable();
        assert_eq!(pids, (0..2000).collect::<Vec<_>>());
        assert_eq!(proc.stat(7), Ok(None), "no file in it");
    }
}
