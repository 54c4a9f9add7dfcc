//! What a thread that writes or copies has done, and how it broke off.

use iolens_sys::errno::Errno;
use serde::{Deserialize, Serialize};

/// What was done since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moved {
    /// Blocks, the last of which may be shorter.
    pub blocks: u64,
    /// Bytes that the kernel took.
    pub bytes: u64,
    /// System calls that moved, or tried to move, bytes.
    pub calls: u64,
    /// Of them, those that moved less than they were asked for, or were
    /// interrupted, and were gone on with.
    pub short_calls: u64,
}

impl Moved {
    /// Adds what another thread has done.
    pub fn add(&mut self, other: &Moved) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.calls += other.calls;
        self.short_calls += other.short_calls;
    }

    /// Counts a call that was asked for `wanted` bytes and moved `done`.
    #[inline]
    pub(crate) fn call(&mut self, wanted: usize, done: usize) {
        self.calls += 1;
        self.short_calls += u64::from(done < wanted);
        self.bytes += done as u64;
    }

    /// Counts a call that moved nothing: an error, if it was not interrupted.
    #[inline]
    pub(crate) fn nothing(&mut self, call: Call, errno: Errno) -> Result<(), Broken> {
        let broken = self.failed(call, errno);
        if errno == Errno::EINTR { Ok(()) } else { Err(broken) }
    }

    /// The same for who makes the call again, or does not.
    #[inline]
    pub(crate) fn failed(&mut self, call: Call, errno: Errno) -> Broken {
        self.calls += 1;
        self.short_calls += u64::from(errno == Errno::EINTR);
        Broken { call, errno }
    }
}

/// A call, as its manual names it, and which end of the work it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// `pwrite`.
    pub name: &'static str,
    /// Whose failure it is.
    pub end: FileEnd,
}

impl Call {
    pub(crate) const fn source(name: &'static str) -> Call {
        Call { name, end: FileEnd::Source }
    }

    pub(crate) const fn destination(name: &'static str) -> Call {
        Call { name, end: FileEnd::Destination }
    }

    pub(crate) const fn both(name: &'static str) -> Call {
        Call { name, end: FileEnd::Both }
    }
}

/// The files of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnd {
    /// What is read.
    Source,
    /// What is written.
    Destination,
    /// Either, as far as the call tells.
    Both,
}

/// Where it broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// The call that failed.
    pub call: Call,
    /// What the system said; `ENODATA` where the source ended early.
    pub errno: Errno,
}

/// Writes all of `bytes` with as many calls as it takes, each of which is told
/// what is left and where it belongs.
#[inline]
pub(crate) fn write_all(
    bytes: &[u8],
    at: u64,
    call: Call,
    moved: &mut Moved,
    mut write: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
) -> Result<(), Broken> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        match write(rest, at + done as u64) {
            // write(2) of a file takes at least a byte or fails.
            Ok(0) => return Err(Broken { call, errno: Errno::EIO }),
            Ok(n) => {
                moved.call(rest.len(), n);
                done += n;
            }
            Err(errno) => moved.nothing(call, errno)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Call = Call::destination("write");

    /// Writes through a script of what each call does.
    fn scripted(script: &[Result<usize, Errno>]) -> (Result<(), Broken>, Vec<u8>, Moved) {
        let (mut written, mut moved) = (Vec::new(), Moved::default());
        let mut script = script.iter();
        let result = write_all(b"0123456789", 100, WRITE, &mut moved, |bytes, at| {
            assert_eq!(at, 100 + written.len() as u64);
            let step = *script.next().expect("no more calls than the script has");
            step.inspect(|&n| written.extend_from_slice(&bytes[..n]))
        });
        (result, written, moved)
    }

    #[test]
    fn short_writes_and_interruptions_are_gone_on_with() {
        let script = [Ok(3), Err(Errno::EINTR), Ok(1), Ok(6)];
        let (result, written, moved) = scripted(&script);
        assert_eq!((result, written.as_slice()), (Ok(()), &b"0123456789"[..]));
        assert_eq!(moved, Moved { blocks: 0, bytes: 10, calls: 4, short_calls: 3 });
    }

    #[test]
    fn an_error_says_how_far_it_came() {
        for errno in [Errno::ENOSPC, Errno::EIO] {
            let (result, written, moved) = scripted(&[Ok(4), Err(errno)]);
            assert_eq!(result, Err(Broken { call: WRITE, errno }));
            assert_eq!((written.len(), moved.bytes, moved.calls), (4, 4, 2));
        }
        assert_eq!(scripted(&[Ok(0)]).0.unwrap_err().errno, Errno::EIO);
    }
}
