//! Memory: mapped, unmapped, and touched where it is not there yet.

use std::os::fd::AsFd;

use iolens_model::call::CallKind;
use iolens_sys::calls::{self, FilePages, Mapping, Populate};
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::pages::page_bytes;

use super::entry::{Asked, Call, Entry, MOST, OfFile, at, call, repeated};
use super::transfers::file_to_read;

/// Pages that are mapped at once where they are populated.
const POPULATED: usize = 64;

/// The kernel maps what is around a page of a file too, if it is in the page
/// cache: so much, aligned (`fault_around_bytes` of mm/memory.c, where nobody
/// changed it). Where a page is as large it is mapped alone.
const AROUND_BYTES: usize = 64 << 10;

/// Faults of a slice: each takes that much of a file.
const FILE_MOST: u32 = 128;

/// The registry entry.
pub(super) static MMAP_MUNMAP: Entry = Entry {
    calls: 2,
    ..call(
        "mmap_munmap",
        CallKind::Memory,
        "mmap(2) of one anonymous page, then munmap(2), never touched",
        1_500.0,
        |_| {
            let bytes = page_bytes();
            Ok(repeated(&MMAP_MUNMAP, move || calls::map_and_unmap(bytes, Populate::No)))
        },
    )
};

/// The registry entry.
pub(super) static MMAP_POPULATE: Entry = Entry {
    calls: 2,
    ..call(
        "mmap_populate",
        CallKind::Memory,
        "mmap(2) of 64 anonymous pages with MAP_POPULATE, and munmap(2)",
        20_000.0,
        |_| {
            let bytes = POPULATED * page_bytes();
            Ok(repeated(&MMAP_POPULATE, move || calls::map_and_unmap(bytes, Populate::Yes)))
        },
    )
};

/// The registry entry.
pub(super) static FAULT_ANONYMOUS: Entry = Entry {
    calls: 0,
    most: Some(MOST),
    ..call(
        "fault_anonymous",
        CallKind::Memory,
        "first write to an anonymous page: a minor fault and a zeroed page",
        700.0,
        |setup| Ok(repeated(&FAULT_ANONYMOUS, Fresh { memory: None, next: 0, most: setup.most })),
    )
};

/// The registry entry.
pub(super) static FAULT_FILE: Entry = Entry {
    calls: 0,
    of_file: OfFile::Reads,
    most: Some(FILE_MOST),
    holds: Some(faults_of_file),
    descriptors: 1,
    ..call(
        "fault_file",
        CallKind::Memory,
        "first read of a mapped page in the page cache: a minor fault that maps the 64 KiB \
         around it",
        1_500.0,
        |setup| {
            let most = setup.most;
            if setup.file.is_some() {
                let file = file_to_read(setup, 1)?;
                let pages = Mapped { file, pages: None, next: 0, most, byte: None };
                return Ok(repeated(&FAULT_FILE, pages));
            }
            let file = file::in_memory("iolens").map_err(at("make a file in memory"))?;
            let bytes = most * AROUND_BYTES;
            let filled = std::io::Write::write_all(&mut &file, &vec![1; bytes]);
            filled.map_err(|e| at(&format!("write {bytes} B to a file in memory"))(e.into()))?;
            Ok(repeated(&FAULT_FILE, Mapped { file, pages: None, next: 0, most, byte: Some(1) }))
        },
    )
};

/// Places of the user's file that each thread may touch.
fn faults_of_file(Asked { threads, file, .. }: Asked) -> u64 {
    let place = AROUND_BYTES as u64;
    file.map_or(u64::MAX, |bytes| bytes.0.div_ceil(place) / u64::from(threads.max(1)))
}

/// Memory that is new in each slice.
struct Fresh {
    memory: Option<Mapping>,
    next: usize,
    most: usize,
}

impl Call for Fresh {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        let memory = self.memory.as_mut().filter(|_| self.next < self.most);
        memory.ok_or(Errno::ENOBUFS)?.write(self.next);
        self.next += 1;
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        self.memory.take().map_or(Ok(()), Mapping::unmap)?;
        let memory = Mapping::anonymous(self.most, Populate::No)?;
        memory.refuse_huge_pages()?;
        (self.memory, self.next) = (Some(memory), 0);
        Ok(())
    }
}

/// A file that is mapped anew for each slice.
struct Mapped {
    file: std::fs::File,
    pages: Option<FilePages>,
    next: usize,
    most: usize,
    /// What stands everywhere in it; `None` where that is the user's business.
    byte: Option<u8>,
}

impl Call for Mapped {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        let pages = self.pages.as_ref().filter(|_| self.next < self.most);
        let byte = pages.ok_or(Errno::ENOBUFS)?.read(self.next * AROUND_BYTES);
        self.next += 1;
        if self.byte.is_none_or(|own| byte == own) { Ok(()) } else { Err(Errno::EBADMSG) }
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        // The old mapping goes first: two would need twice the addresses.
        self.pages = None;
        self.pages = Some(FilePages::of(self.file.as_fd(), self.most * AROUND_BYTES)?);
        self.next = 0;
        Ok(())
    }
}
