//! Where the bytes of a file are: holes (lseek(2) with `SEEK_HOLE`) and extents
//! (the `FS_IOC_FIEMAP` ioctl; Documentation/filesystems/fiemap.rst).
//!
//! # Safety
//! The kernel writes at most as many extents as the struct says that it has room
//! for, into a struct on this heap.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;

/// One piece of a file that is in one piece on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// Allocated and never written (`FIEMAP_EXTENT_UNWRITTEN`): reads as zeros
    /// without any I/O.
    pub unwritten: bool,
    /// In memory only, its place on the device not chosen yet
    /// (`FIEMAP_EXTENT_DELALLOC`).
    pub delayed: bool,
    /// Other files have it too (`FIEMAP_EXTENT_SHARED`).
    pub shared: bool,
    /// Compressed or encrypted on the device (`FIEMAP_EXTENT_ENCODED`).
    pub encoded: bool,
}

const UNWRITTEN: u32 = 0x800;
const DELALLOC: u32 = 0x4;
const SHARED: u32 = 0x2000;
const ENCODED: u32 = 0x8;
const LAST: u32 = 0x1;

/// `struct fiemap_extent` of include/uapi/linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// Extents asked for in one call.
const EXTENTS: usize = 256;

/// `struct fiemap` with room for extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS],
}

const _: () = assert!(size_of::<Fiemap>() == 32 + EXTENTS * 56);

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;

/// Shows every extent of a file in order, as it is now: what is not on its device
/// yet is not brought there. The file system may join or split them.
///
/// Errors: `EOPNOTSUPP` or `ENOTTY` where the file system has no such map.
pub fn extents(fd: BorrowedFd<'_>, mut see: impl FnMut(Extent)) -> Result<(), Errno> {
    let none = RawExtent {
        logical: 0,
        physical: 0,
        length: 0,
        reserved64: [0; 2],
        flags: 0,
        reserved: [0; 3],
    };
    let mut map = Box::new(Fiemap {
        start: 0,
        length: u64::MAX,
        flags: 0,
        mapped: 0,
        room: u32::try_from(EXTENTS).map_err(|_| Errno::EINVAL)?,
        reserved: 0,
        extents: [none; EXTENTS],
    });
    loop {
        (map.length, map.mapped) = (u64::MAX - map.start, 0);
        let at = &raw mut *map;
        // SAFETY: the struct says truly how many extents it has room for.
        if unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP, at) } != 0 {
            return Err(Errno::last());
        }
        let found = &map.extents[..(map.mapped as usize).min(EXTENTS)];
        for raw in found {
            see(Extent {
                offset: raw.logical,
                bytes: raw.length,
                unwritten: raw.flags & UNWRITTEN != 0,
                delayed: raw.flags & DELALLOC != 0,
                shared: raw.flags & SHARED != 0,
                encoded: raw.flags & ENCODED != 0,
            });
        }
        match found.last() {
            Some(last) if last.flags & LAST == 0 && last.length > 0 => {
                map.start = last.logical + last.length;
            }
            _ => return Ok(()),
        }
    }
}

/// Bytes of holes in the first `bytes` of a file. File systems without holes say
/// that there are none; some call unwritten extents holes.
///
/// Errors: `EINVAL` where the file system cannot tell.
pub fn hole_bytes(fd: BorrowedFd<'_>, bytes: u64) -> Result<u64, Errno> {
    let (mut holes, mut at) = (0, 0);
    while at < bytes {
        let hole = seek(fd, at, libc::SEEK_HOLE)?.map_or(bytes, |hole| hole.min(bytes));
        // From a hole to the next data; none means that the rest is a hole.
        at = match hole < bytes {
            true => seek(fd, hole, libc::SEEK_DATA)?.map_or(bytes, |data| data.min(bytes)),
            false => bytes,
        };
        holes += at - hole;
    }
    Ok(holes)
}

/// Where the next hole or data begins; nothing if there is none. Moves the
/// position of the descriptor.
fn seek(fd: BorrowedFd<'_>, from: u64, whence: libc::c_int) -> Result<Option<u64>, Errno> {
    // SAFETY: lseek takes numbers and touches no memory of ours.
    let at = unsafe { libc::lseek64(fd.as_raw_fd(), from.cast_signed(), whence) };
    match u64::try_from(at) {
        Ok(at) => Ok(Some(at)),
        Err(_) if Errno::last().raw() == libc::ENXIO => Ok(None),
        Err(_) => Err(Errno::last()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    fn temporary() -> File {
        crate::file::in_folder(&std::env::temp_dir()).unwrap()
    }

    #[test]
    fn holes_are_counted() {
        let file = temporary();
        assert_eq!(hole_bytes(file.as_fd(), 0), Ok(0));
        file.set_len(1 << 20).unwrap();
        // A file system that knows no holes has none.
        let all = hole_bytes(file.as_fd(), 1 << 20).unwrap();
        assert!(all == 1 << 20 || all == 0, "{all}");
        file.write_all_at(&[1; 65_536], 131_072).unwrap();
        let holes = hole_bytes(file.as_fd(), 1 << 20).unwrap();
        assert!(holes == (1 << 20) - 65_536 || all == 0, "{holes}");
    }

    #[test]
    fn extents_cover_what_was_written() {
        let file = temporary();
        for piece in 0..600u64 {
            // Every second page, so that no two are one extent.
            file.write_all_at(&[1; 4096], piece * 8192).unwrap();
        }
        file.sync_all().unwrap();
        let (mut bytes, mut end) = (0, 0);
        let seen = extents(file.as_fd(), |extent| {
            assert!(extent.offset >= end, "in order");
            (bytes, end) = (bytes + extent.bytes, extent.offset + extent.bytes);
        });
        match seen {
            Ok(()) => assert!(bytes >= 600 * 4096, "{bytes}"),
            // tmpfs and others have no map.
            Err(errno) => assert!([Errno::EOPNOTSUPP, Errno::from_raw(25)].contains(&errno)),
        }
    }
}
