//! One byte between the program and the kernel, from what costs least to give or
//! take it, and the seek and the refusal beside them.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use iolens_model::call::CallKind;
use iolens_sys::calls;
use iolens_sys::errno::Errno;
use iolens_sys::{file, pipe};

use super::entry::{Call, Entry, MOST, Open, at, call, repeated};
use crate::entry::SetupError;

/// An entry of one call and one byte.
const fn one_byte(id: &'static str, summary: &'static str, open: Open) -> Entry {
    Entry { bytes: 1, descriptors: 1, ..call(id, CallKind::Bytes, summary, 300.0, open) }
}

/// The registry entry.
pub(super) static READ_BAD: Entry = Entry {
    bytes: 0,
    descriptors: 0,
    ..one_byte("read_bad", "read(2) from descriptor -1: refused with EBADF at the door", |_| {
        Ok(repeated(&READ_BAD, calls::read_bad))
    })
};

/// The registry entry.
pub(super) static READ_ZERO: Entry = one_byte("read_zero", "read(2) of 1 B of /dev/zero", |_| {
    let zero = device("/dev/zero")?;
    Ok(repeated(&READ_ZERO, move || calls::read(zero.as_fd())))
});

/// The registry entry.
pub(super) static READV: Entry =
    one_byte("readv", "readv(2) of 1 B of /dev/zero, an iovec of one entry", |_| {
        let zero = device("/dev/zero")?;
        Ok(repeated(&READV, move || calls::readv(zero.as_fd())))
    });

/// The registry entry.
pub(super) static WRITE_NULL: Entry =
    one_byte("write_null", "write(2) of 1 B to /dev/null", |_| {
        let null = device("/dev/null")?;
        Ok(repeated(&WRITE_NULL, move || calls::write(null.as_fd())))
    });

/// The registry entry.
pub(super) static PREAD: Entry =
    one_byte("pread", "pread(2) of the first byte of a file in the page cache", |_| {
        let file = small_file(1)?;
        Ok(repeated(&PREAD, move || calls::pread(file.as_fd())))
    });

/// The registry entry.
pub(super) static PWRITE: Entry = one_byte(
    "pwrite",
    "pwrite(2) of the first byte of a file, which stays in the page cache",
    |_| {
        let file = small_file(1)?;
        Ok(repeated(&PWRITE, move || calls::pwrite(file.as_fd())))
    },
);

/// Bytes of a file that is read or written one after another.
const FILE_MOST: u32 = 1 << 17;

/// The registry entry. The file is rewound before each slice.
pub(super) static READ_FILE: Entry = Entry {
    most: Some(FILE_MOST),
    ..one_byte("read_file", "read(2) of the next byte of a file in the page cache", |setup| {
        let file = small_file(setup.most)?;
        Ok(repeated(&READ_FILE, Rewound { file, call: |file: &File| calls::read(file.as_fd()) }))
    })
};

/// The registry entry. The file is rewound before each slice, and never longer
/// than one.
pub(super) static WRITE_FILE: Entry = Entry {
    most: Some(FILE_MOST),
    ..one_byte("write_file", "write(2) of the next byte of a file, into the page cache", |setup| {
        let file = small_file(setup.most)?;
        Ok(repeated(&WRITE_FILE, Rewound { file, call: |file: &File| calls::write(file.as_fd()) }))
    })
};

/// The registry entry.
pub(super) static LSEEK: Entry = Entry {
    bytes: 0,
    ..one_byte("lseek", "lseek(2) to the beginning of a file", |_| {
        let file = small_file(1)?;
        Ok(repeated(&LSEEK, move || calls::lseek(file.as_fd())))
    })
};

/// The registry entry. The pipe is emptied before each slice.
pub(super) static WRITE_PIPE: Entry = Entry {
    most: Some(MOST),
    descriptors: 2,
    ..one_byte("write_pipe", "write(2) of 1 B to a pipe with room, which nobody reads", |setup| {
        let (out, into) = roomy_pipe(setup.most)?;
        Ok(repeated(&WRITE_PIPE, FilledPipe { out, into, held: 0, most: setup.most }))
    })
};

/// The registry entry. The pipe is filled before each slice.
pub(super) static READ_PIPE: Entry = Entry {
    most: Some(MOST),
    descriptors: 2,
    ..one_byte("read_pipe", "read(2) of 1 B of a pipe that holds more", |setup| {
        let (out, into) = roomy_pipe(setup.most)?;
        Ok(repeated(&READ_PIPE, EmptiedPipe(FilledPipe { out, into, held: 0, most: setup.most })))
    })
};

fn device(path: &str) -> Result<File, SetupError> {
    let opened = File::options().read(true).write(true).open(path);
    opened.map_err(|e| at(&format!("open {path}"))(e.into()))
}

/// A file of our own without a name, in the folder for temporary files.
pub(super) fn small_file(bytes: usize) -> Result<File, SetupError> {
    let folder = std::env::temp_dir();
    let tried = format!("make a file of {bytes} B in {}", folder.display());
    let mut file = file::in_folder(&folder).map_err(at(&tried))?;
    file.write_all(&vec![1; bytes]).map_err(|e| at(&tried)(e.into()))?;
    Ok(file)
}

/// A file that begins anew with each slice.
struct Rewound<F> {
    file: File,
    call: F,
}

impl<F: Fn(&File) -> Result<(), Errno> + Send> Call for Rewound<F> {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        (self.call)(&self.file)
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        calls::lseek(self.file.as_fd())
    }
}

/// A pipe that so many single bytes fit for ever. The kernel adds a byte to the last
/// page as long as there is room behind those before it, read or not: a page of which
/// some are read and some are not still holds its slot (`pipe_write`, fs/pipe.c).
fn roomy_pipe(bytes: usize) -> Result<(OwnedFd, OwnedFd), SetupError> {
    pipe::open(bytes + 2 * calls::PAGE_BYTES).map_err(at("make a pipe"))
}

/// A pipe that is written to.
struct FilledPipe {
    out: OwnedFd,
    into: OwnedFd,
    held: usize,
    most: usize,
}

impl Call for FilledPipe {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        if self.held == self.most {
            return Err(Errno::ENOBUFS);
        }
        calls::write(self.into.as_fd())?;
        self.held += 1;
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        while self.held > 0 {
            calls::read(self.out.as_fd())?;
            self.held -= 1;
        }
        Ok(())
    }
}

/// A pipe that is read from.
struct EmptiedPipe(FilledPipe);

impl Call for EmptiedPipe {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        if self.0.held == 0 {
            return Err(Errno::ENOBUFS);
        }
        calls::read(self.0.out.as_fd())?;
        self.0.held -= 1;
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        while self.0.held < self.0.most {
            self.0.call()?;
        }
        Ok(())
    }
}
