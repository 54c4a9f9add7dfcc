//! A block between the program and the kernel, one byte where nothing else is asked for, from
//! what costs least to give or take it, and the seek and the refusal beside them.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use iolens_model::call::CallKind;
use iolens_model::units::Bytes;
use iolens_sys::calls;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::{self, Caching};
use iolens_sys::pages::{PageKind, Pages, page_bytes};
use iolens_sys::{file, pipe};

use super::entry::{Asked, Call, Entry, MOST, OfFile, Open, Setup, at, call, moving, repeated};
use iolens_sys::tcp::SetupError;

/// An entry of one call and one block.
const fn one_block(id: &'static str, summary: &'static str, open: Open) -> Entry {
    Entry { bytes: 1, descriptors: 1, ..call(id, CallKind::Bytes, summary, 300.0, open) }
}

/// The registry entry.
pub(super) static READ_BAD: Entry = Entry {
    bytes: 0,
    descriptors: 0,
    ..one_block("read_bad", "read(2) on a bad descriptor: returns EBADF at once", |_| {
        Ok(repeated(&READ_BAD, calls::read_bad))
    })
};

/// The registry entry.
pub(super) static READ_ZERO: Entry =
    one_block("read_zero", "read(2) of a block from /dev/zero", |setup| {
        let (zero, mut block) = (device("/dev/zero")?, Block::of(setup)?);
        Ok(moving(&READ_ZERO, setup, move || calls::read(zero.as_fd(), block.room())))
    });

/// The registry entry.
pub(super) static READV: Entry =
    one_block("readv", "readv(2) of a block from /dev/zero, one iovec entry", |setup| {
        let (zero, mut block) = (device("/dev/zero")?, Block::of(setup)?);
        Ok(moving(&READV, setup, move || calls::readv(zero.as_fd(), block.room())))
    });

/// The registry entry.
pub(super) static WRITE_NULL: Entry =
    one_block("write_null", "write(2) of a block to /dev/null, which ignores it", |setup| {
        let (null, block) = (device("/dev/null")?, Block::of(setup)?);
        Ok(moving(&WRITE_NULL, setup, move || calls::write(null.as_fd(), block.bytes())))
    });

/// The registry entry.
pub(super) static PREAD: Entry = Entry {
    of_file: OfFile::Reads,
    holds: Some(|asked| if asked.file.is_some_and(|file| file < asked.block) { 0 } else { NO_END }),
    ..one_block("pread", "pread(2) of the first block of a file in the page cache", |setup| {
        let (file, mut block) = (file_to_read(setup, setup.block)?, Block::of(setup)?);
        Ok(moving(&PREAD, setup, move || calls::pread(file.as_fd(), block.room())))
    })
};

/// The registry entry.
pub(super) static PWRITE: Entry = Entry {
    of_file: OfFile::Writes,
    ..one_block(
        "pwrite",
        "pwrite(2) of the first block of a file, which stays in the page cache",
        |setup| {
            let (file, block) = (small_file(setup.block)?, Block::of(setup)?);
            Ok(moving(&PWRITE, setup, move || calls::pwrite(file.as_fd(), block.bytes())))
        },
    )
};

/// Blocks of a file that is read or written one after another, at most.
const FILE_MOST: u32 = 1 << 17;

/// Bytes of such a file of ours, and of one whose blocks are large.
const FILE_BYTES: u64 = 16 << 20;
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Blocks of the user's file, or of one of ours, that each thread may have to itself.
fn blocks_of_file(Asked { threads, block, file }: Asked) -> u64 {
    let each = block.0.saturating_mul(u64::from(threads.max(1)));
    match file {
        Some(Bytes(bytes)) => bytes / each,
        None if each > FILE_BYTES_MAX => 0,
        None => (FILE_BYTES / each).max(1),
    }
}

/// The registry entry. The file is rewound before each slice.
pub(super) static READ_FILE: Entry = Entry {
    of_file: OfFile::Reads,
    most: Some(FILE_MOST),
    holds: Some(blocks_of_file),
    ..one_block("read_file", "read(2) of the next block of a file in the page cache", |setup| {
        let file = file_to_read(setup, setup.most.saturating_mul(setup.block))?;
        let mut block = Block::of(setup)?;
        let call = move |file: &File| calls::read(file.as_fd(), block.room());
        Ok(moving(&READ_FILE, setup, Rewound { file, call }))
    })
};

/// The registry entry. The file is rewound before each slice, and never longer
/// than one.
pub(super) static WRITE_FILE: Entry = Entry {
    of_file: OfFile::Writes,
    most: Some(FILE_MOST),
    holds: Some(blocks_of_file),
    ..one_block(
        "write_file",
        "write(2) of the next block of a file, into the page cache",
        |setup| {
            let file = small_file(setup.most.saturating_mul(setup.block))?;
            let block = Block::of(setup)?;
            let call = move |file: &File| calls::write(file.as_fd(), block.bytes());
            Ok(moving(&WRITE_FILE, setup, Rewound { file, call }))
        },
    )
};

/// The registry entry.
pub(super) static LSEEK: Entry = Entry {
    bytes: 0,
    of_file: OfFile::Reads,
    ..one_block("lseek", "lseek(2) to the beginning of a file", |setup| {
        let file = file_to_read(setup, 1)?;
        Ok(repeated(&LSEEK, move || calls::lseek(file.as_fd())))
    })
};

/// The registry entry. The pipe is emptied before each slice.
pub(super) static WRITE_PIPE: Entry = Entry {
    most: Some(MOST),
    holds: Some(blocks_of_pipe),
    descriptors: 2,
    ..one_block("write_pipe", "write(2) of a block to a pipe with room", |setup| {
        Ok(moving(&WRITE_PIPE, setup, FilledPipe::new(setup)?))
    })
};

/// The registry entry. The pipe is filled before each slice.
pub(super) static READ_PIPE: Entry = Entry {
    most: Some(MOST),
    holds: Some(blocks_of_pipe),
    descriptors: 2,
    ..one_block("read_pipe", "read(2) of a block from a pipe that holds more", |setup| {
        Ok(moving(&READ_PIPE, setup, EmptiedPipe(FilledPipe::new(setup)?)))
    })
};

/// What a call is never short of.
const NO_END: u64 = u32::MAX as u64;

/// Memory that a call moves, all of which is there before the first one.
pub(super) struct Block {
    pages: Pages,
    bytes: usize,
}

impl Block {
    pub(super) fn of(setup: &Setup<'_>) -> Result<Block, SetupError> {
        let bytes = setup.block;
        let tried = format!("have memory for a block of {}", Bytes(bytes as u64));
        let pages = Pages::new(bytes, PageKind::Plain).map_err(at(&tried))?;
        Ok(Block { pages, bytes })
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.pages[..self.bytes]
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        &mut self.pages[..self.bytes]
    }
}

fn device(path: &str) -> Result<File, SetupError> {
    let opened = File::options().read(true).write(true).open(path);
    opened.map_err(|e| at(&format!("open {path}"))(e.into()))
}

/// The user's file, which cannot be written to that way, or one of ours of so many bytes.
pub(super) fn file_to_read(setup: &Setup<'_>, bytes: usize) -> Result<File, SetupError> {
    let Some(theirs) = setup.file else { return small_file(bytes) };
    let opened = open::again(theirs.fd, Caching::Buffered);
    opened.map_err(at(&format!("open {} again", theirs.path().display())))
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

impl<F: FnMut(&File) -> Result<(), Errno> + Send> Call for Rewound<F> {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        (self.call)(&self.file)
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        calls::lseek(self.file.as_fd())
    }
}

/// Bytes of a pipe that any user may have (`fs.pipe-max-size` where nobody changed it).
const PIPE_BYTES: u64 = 1 << 20;

/// Pages that so many blocks take for ever. The kernel adds a block to the last page as long as
/// there is room for all of it behind those before, read or not: a page of which some are read
/// and some are not still holds its slot (`pipe_write`, fs/pipe.c), and so do the last two.
fn pages_of(blocks: u64, block: u64, page_bytes: u64) -> u64 {
    let pages = match page_bytes / block {
        0 => blocks.saturating_mul(block.div_ceil(page_bytes)),
        in_a_page => blocks.div_ceil(in_a_page),
    };
    if blocks == 1 { pages } else { pages + 2 }
}

/// The pages of so many blocks in bytes.
fn pipe_bytes_of(blocks: u64, block: u64) -> u64 {
    let page_bytes = page_bytes() as u64;
    pages_of(blocks, block, page_bytes).saturating_mul(page_bytes)
}

/// Blocks of a pipe that each thread may have to itself.
fn blocks_of_pipe(Asked { threads, block, .. }: Asked) -> u64 {
    let fits = |each: &u64| pipe_bytes_of(each * u64::from(threads.max(1)), block.0) <= PIPE_BYTES;
    (1..=u64::from(MOST)).rev().find(fits).unwrap_or(0)
}

/// A pipe that is written to.
struct FilledPipe {
    out: OwnedFd,
    into: OwnedFd,
    block: Block,
    held: usize,
    most: usize,
}

impl FilledPipe {
    fn new(setup: &Setup<'_>) -> Result<FilledPipe, SetupError> {
        let (most, block) = (setup.most, Block::of(setup)?);
        let bytes = pipe_bytes_of(most as u64, setup.block as u64);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let (out, into) = pipe::open(bytes).map_err(at("make a pipe"))?;
        // A write to a pipe that is full would wait for ever.
        if pipe::size_bytes(into.as_fd()).map_err(at("ask what a pipe holds"))? < bytes {
            return Err(at(&format!("have a pipe of {}", Bytes(bytes as u64)))(Errno::EPERM));
        }
        Ok(FilledPipe { out, into, block, held: 0, most })
    }
}

impl Call for FilledPipe {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        if self.held == self.most {
            return Err(Errno::ENOBUFS);
        }
        calls::write(self.into.as_fd(), self.block.bytes())?;
        self.held += 1;
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        while self.held > 0 {
            calls::read(self.out.as_fd(), self.block.room())?;
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
        calls::read(self.0.out.as_fd(), self.0.block.room())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_take_pages_of_any_size() {
        const KIB: u64 = 1 << 10;
        for (blocks, block, page, expect) in [
            (256, 4 * KIB, 4 * KIB, 258),
            (256, 4 * KIB, 64 * KIB, 18),
            (14, 5000, 4 * KIB, 30),
            // Thirteen of them fit into a page.
            (14, 5000, 64 * KIB, 4),
            (1, 5000, 64 * KIB, 1),
            (2, 65 * KIB, 64 * KIB, 6),
        ] {
            assert_eq!(pages_of(blocks, block, page), expect, "{blocks} of {block} in {page}");
        }
    }
}
