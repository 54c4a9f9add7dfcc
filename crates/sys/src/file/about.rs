//! What a file is, as statx(2) tells: kind, size, owner, and what it asks of
//! who reads around the page cache.
//!
//! # Safety
//! The kernel writes into a struct on this stack, which is as large as the one
//! of its headers and begins as zeros.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;

/// What a name in a file system can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// None of these.
    Other,
}

impl Kind {
    /// From `st_mode` or `stx_mode`; see inode(7).
    pub(crate) fn of_mode(mode: u32) -> Kind {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Kind::Regular,
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Link,
            libc::S_IFIFO => Kind::Fifo,
            libc::S_IFSOCK => Kind::Socket,
            libc::S_IFBLK => Kind::BlockDevice,
            libc::S_IFCHR => Kind::CharacterDevice,
            _ => Kind::Other,
        }
    }

    /// In a sentence: `a directory`.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Regular => "a regular file",
            Kind::Directory => "a directory",
            Kind::Link => "a symbolic link",
            Kind::Fifo => "a FIFO",
            Kind::Socket => "a socket",
            Kind::BlockDevice => "a block device",
            Kind::CharacterDevice => "a character device",
            Kind::Other => "something that is no file",
        }
    }
}

/// What the kernel says of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// What it is.
    pub kind: Kind,
    /// Its size.
    pub bytes: u64,
    /// What it occupies (`stx_blocks` times 512): less than its size where it has
    /// holes or is compressed.
    pub allocated_bytes: u64,
    /// Who owns it.
    pub uid: u32,
    /// Its number in its file system.
    pub inode: u64,
    /// The device that its file system is on: major and minor number.
    pub device: (u32, u32),
    /// What `O_DIRECT` asks for; `None` where the file system does not say, which
    /// is not the same as having none.
    pub direct: Option<Alignment>,
}

/// What a read around the page cache must be aligned to, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// The buffer's address (`stx_dio_mem_align`).
    pub memory: u32,
    /// Offset and length (`stx_dio_read_offset_align` where the kernel has it, or
    /// `stx_dio_offset_align`).
    pub offset: u32,
    /// The same for a write (`stx_dio_offset_align`).
    pub write_offset: u32,
}

/// `STATX_DIOALIGN` (Linux 6.1) and `STATX_DIO_READ_ALIGN` (6.14) of
/// include/uapi/linux/stat.h.
const STATX_DIOALIGN: u32 = 0x2000;
const STATX_DIO_READ_ALIGN: u32 = 0x2_0000;

/// `struct statx` of include/uapi/linux/stat.h, by offset: 256 bytes.
#[repr(C)]
struct Statx {
    mask: u32,
    blksize: u32,
    attributes: u64,
    nlink: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    spare0: u16,
    ino: u64,
    size: u64,
    blocks: u64,
    attributes_mask: u64,
    times: [u64; 8],
    rdev_major: u32,
    rdev_minor: u32,
    dev_major: u32,
    dev_minor: u32,
    mnt_id: u64,
    dio_mem_align: u32,
    dio_offset_align: u32,
    subvol: u64,
    atomic_write: [u32; 3],
    dio_read_offset_align: u32,
    spare3: [u64; 9],
}

const _: () = assert!(size_of::<Statx>() == 256);

/// Asks for what [`About`] has.
///
/// Errors: see statx(2); `ENOSYS` before Linux 4.11.
pub fn about(fd: BorrowedFd<'_>) -> Result<About, Errno> {
    let mask = libc::STATX_BASIC_STATS | STATX_DIOALIGN | STATX_DIO_READ_ALIGN;
    // SAFETY: all-zero is a valid value of a struct of numbers.
    let mut told: Statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is empty and ends with zero; the struct is as large as the
    // kernel's and lives for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_statx,
            fd.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            mask,
            &raw mut told,
        )
    };
    if result != 0 {
        return Err(Errno::last());
    }
    Ok(About {
        kind: Kind::of_mode(u32::from(told.mode)),
        bytes: told.size,
        allocated_bytes: told.blocks * 512,
        uid: told.uid,
        inode: told.ino,
        device: (told.dev_major, told.dev_minor),
        direct: alignment(&told),
    })
}

/// Zeros say nothing: file systems fill them in where they do not know.
fn alignment(told: &Statx) -> Option<Alignment> {
    let has = |bit: u32| told.mask & bit != 0;
    let memory = Some(told.dio_mem_align).filter(|&n| has(STATX_DIOALIGN) && n > 0)?;
    let read = Some(told.dio_read_offset_align).filter(|&n| has(STATX_DIO_READ_ALIGN) && n > 0);
    let offset = read.unwrap_or(told.dio_offset_align);
    let write_offset = told.dio_offset_align.max(offset);
    (offset > 0).then_some(Alignment { memory, offset, write_offset })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn statx_says_what_stat_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 12_345]).unwrap();
        for path in [path.as_path(), folder.path()] {
            let file = File::open(path).unwrap();
            let (told, stat) = (about(file.as_fd()).unwrap(), file.metadata().unwrap());
            assert_eq!((told.bytes, told.inode), (stat.size(), stat.ino()));
            assert_eq!((told.uid, told.allocated_bytes), (stat.uid(), stat.blocks() * 512));
            let kind = if stat.is_dir() { Kind::Directory } else { Kind::Regular };
            assert_eq!(told.kind, kind);
        }
    }

    #[test]
    fn zeros_are_no_alignment() {
        // SAFETY: all-zero is a valid value of a struct of numbers.
        let mut told: Statx = unsafe { std::mem::zeroed() };
        told.mask = STATX_DIOALIGN;
        assert_eq!(alignment(&told), None);
        (told.dio_mem_align, told.dio_offset_align) = (4, 4096);
        assert_eq!(
            alignment(&told),
            Some(Alignment { memory: 4, offset: 4096, write_offset: 4096 })
        );
        told.dio_read_offset_align = 512;
        assert_eq!(alignment(&told).map(|a| a.offset), Some(4096), "it was not filled in");
        told.mask |= STATX_DIO_READ_ALIGN;
        assert_eq!(
            alignment(&told),
            Some(Alignment { memory: 4, offset: 512, write_offset: 4096 })
        );
        told.mask = STATX_DIO_READ_ALIGN;
        assert_eq!(alignment(&told), None);
    }
}
