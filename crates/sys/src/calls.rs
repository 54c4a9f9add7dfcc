//! Single system calls as programs make them, each with its result checked: what
//! the study `syscall` repeats. They go through the wrappers of the C library;
//! where that has none, or answers without the kernel, through syscall(2).
//!
//! # Safety
//! Every pointer that is handed over points to a value on this stack or in the
//! argument, which outlives the call, with its true length. Descriptors are
//! borrowed, or owned and given up where they are closed. Mappings are made and
//! unmapped here and are handed to nobody.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use crate::errno::Errno;
use crate::pages::page_bytes;

/// The number that a call returned, or why it failed.
#[inline]
fn checked(returned: i64) -> Result<u64, Errno> {
    u64::try_from(returned).map_err(|_| Errno::last())
}

/// Nothing else than `expected` is right.
#[inline]
fn exactly(expected: u64, returned: i64) -> Result<(), Errno> {
    match checked(returned)? {
        n if n == expected => Ok(()),
        0 => Err(Errno::ENODATA),
        _ => Err(Errno::EBADMSG),
    }
}

/// A function that does nothing, and that no compiler puts in line.
///
/// Errors: never; a caller looks all the same.
#[inline(never)]
pub fn function(value: i32) -> Result<i32, Errno> {
    let value = std::hint::black_box(value);
    if value < 0 { Err(Errno::EINVAL) } else { Ok(value) }
}

/// `CLOCK_MONOTONIC` by the C library, which asks the vDSO: no system call where
/// the clock source allows it.
///
/// Errors: see clock_gettime(2).
#[inline]
pub fn clock_gettime_vdso() -> Result<(), Errno> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the time lives on this stack.
    exactly(0, i64::from(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) }))
}

/// The same by the kernel.
///
/// Errors: see clock_gettime(2).
#[inline]
pub fn clock_gettime() -> Result<(), Errno> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    let (number, clock) = (libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC);
    // SAFETY: the time lives on this stack.
    exactly(0, unsafe { libc::syscall(number, clock, time.as_mut_ptr()) })
}

/// The empty system call, getppid(2): the price of crossing into the kernel and back. The C
/// library does not cache it; the kernel reads one pointer under RCU.
#[inline]
pub fn parent_id() -> i32 {
    // SAFETY: getppid takes no argument, touches no memory of ours and cannot fail.
    unsafe { libc::getppid() }
}

/// getppid(2), which must say what it said before.
///
/// Errors: `ESRCH` where the parent is another one now.
#[inline]
pub fn getppid(expected: i32) -> Result<(), Errno> {
    if parent_id() == expected { Ok(()) } else { Err(Errno::ESRCH) }
}

/// read(2) from a descriptor that is not open: `EBADF` is right.
///
/// Errors: what else the system said.
#[inline]
pub fn read_bad() -> Result<(), Errno> {
    let mut byte = 0u8;
    // SAFETY: the byte lives on this stack; -1 is never a descriptor.
    let returned = unsafe { libc::read(-1, (&raw mut byte).cast(), 1) };
    match returned {
        -1 if Errno::last() == Errno::EBADF => Ok(()),
        -1 => Err(Errno::last()),
        _ => Err(Errno::EBADMSG),
    }
}

/// read(2) of as many bytes as there is room for.
///
/// Errors: see read(2); `ENODATA` at the end, `EBADMSG` for fewer bytes.
#[inline]
pub fn read(fd: BorrowedFd<'_>, room: &mut [u8]) -> Result<(), Errno> {
    let bytes = room.len();
    // SAFETY: the room is the argument's, of this length.
    let returned = unsafe { libc::read(fd.as_raw_fd(), room.as_mut_ptr().cast(), bytes) };
    exactly(bytes as u64, returned as i64)
}

/// write(2) of these bytes.
///
/// Errors: see write(2); `EBADMSG` where fewer were taken.
#[inline]
pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: the bytes are the argument's, of this length.
    let returned = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    exactly(bytes.len() as u64, returned as i64)
}

/// pread(2) of the first bytes, as many as there is room for.
///
/// Errors: see pread(2); `ENODATA` where the file is empty, `EBADMSG` where it is shorter.
#[inline]
pub fn pread(fd: BorrowedFd<'_>, room: &mut [u8]) -> Result<(), Errno> {
    let bytes = room.len();
    // SAFETY: the room is the argument's, of this length.
    let returned = unsafe { libc::pread(fd.as_raw_fd(), room.as_mut_ptr().cast(), bytes, 0) };
    exactly(bytes as u64, returned as i64)
}

/// pwrite(2) of these bytes over the first ones.
///
/// Errors: see pwrite(2); `EBADMSG` where fewer were taken.
#[inline]
pub fn pwrite(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: the bytes are the argument's, of this length.
    let returned = unsafe { libc::pwrite(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    exactly(bytes.len() as u64, returned as i64)
}

/// readv(2) of as many bytes as there is room for, into an iovec of one entry.
///
/// Errors: see readv(2); `ENODATA` at the end, `EBADMSG` for fewer bytes.
#[inline]
pub fn readv(fd: BorrowedFd<'_>, room: &mut [u8]) -> Result<(), Errno> {
    let bytes = room.len();
    let iovec = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: bytes };
    // SAFETY: the iovec lives on this stack, and its room is the argument's.
    exactly(bytes as u64, unsafe { libc::readv(fd.as_raw_fd(), &raw const iovec, 1) } as i64)
}

/// lseek(2) to the beginning.
///
/// Errors: see lseek(2).
#[inline]
pub fn lseek(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: numbers alone.
    exactly(0, unsafe { libc::lseek(fd.as_raw_fd(), 0, libc::SEEK_SET) })
}

/// openat(2), to read, of a name in an open directory.
///
/// Errors: see openat(2).
#[inline]
pub fn open(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the name ends with its zero byte.
    let fd = unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags) };
    if fd < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// close(2).
///
/// Errors: see close(2); the descriptor is gone all the same.
#[inline]
pub fn close(fd: OwnedFd) -> Result<(), Errno> {
    // SAFETY: the descriptor was owned, and nobody has it from here on.
    exactly(0, i64::from(unsafe { libc::close(fd.into_raw_fd()) }))
}

/// dup(2).
///
/// Errors: see dup(2); `EMFILE` at the limit of descriptors.
#[inline]
pub fn dup(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // SAFETY: a number alone.
    let new = unsafe { libc::dup(fd.as_raw_fd()) };
    if new < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}

/// fstatat(2) of a name in an open directory: what stat(3) of the C library
/// calls.
///
/// Errors: see stat(2).
#[inline]
pub fn stat(directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the name ends with its zero byte, and the result lives on this stack.
    let returned =
        unsafe { libc::fstatat(directory.as_raw_fd(), name.as_ptr(), found.as_mut_ptr(), 0) };
    exactly(0, i64::from(returned))
}

/// fstat(2).
///
/// Errors: see stat(2).
#[inline]
pub fn fstat(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the result lives on this stack.
    exactly(0, i64::from(unsafe { libc::fstat(fd.as_raw_fd(), found.as_mut_ptr()) }))
}

/// statx(2), the basic fields, of a name in an open directory.
///
/// Errors: see statx(2); `ENOSYS` before Linux 4.11.
#[inline]
pub fn statx(directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let mut found = MaybeUninit::<libc::statx>::uninit();
    // SAFETY: the name ends with its zero byte, and the result lives on this stack.
    let returned = unsafe {
        libc::statx(
            directory.as_raw_fd(),
            name.as_ptr(),
            0,
            libc::STATX_BASIC_STATS,
            found.as_mut_ptr(),
        )
    };
    exactly(0, i64::from(returned))
}

/// fsync(2).
///
/// Errors: see fsync(2).
#[inline]
pub fn fsync(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: a number alone.
    exactly(0, i64::from(unsafe { libc::fsync(fd.as_raw_fd()) }))
}

/// A new instance of epoll(7), to be closed when it is dropped.
///
/// Errors: see epoll_create1(2).
pub fn epoll() -> Result<OwnedFd, Errno> {
    // SAFETY: a number alone.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if fd < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has an instance of epoll watch a descriptor for something to read.
///
/// Errors: see epoll_ctl(2).
pub fn epoll_watch(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
    let (epoll, fd) = (epoll.as_raw_fd(), fd.as_raw_fd());
    let add = libc::EPOLL_CTL_ADD;
    // SAFETY: the event lives on this stack.
    exactly(0, i64::from(unsafe { libc::epoll_ctl(epoll, add, fd, &raw mut event) }))
}

/// epoll_wait(2) without waiting, where nothing is ready.
///
/// Errors: see epoll_wait(2); `EBADMSG` where something is.
#[inline]
pub fn epoll_wait(epoll: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut event = MaybeUninit::<libc::epoll_event>::uninit();
    // SAFETY: there is room for the one event, on this stack.
    exactly(0, i64::from(unsafe { libc::epoll_wait(epoll.as_raw_fd(), event.as_mut_ptr(), 1, 0) }))
}

/// `FUTEX_WAKE` on a word of this process for which nobody waits.
///
/// Errors: see futex(2); `EBADMSG` where somebody was woken.
#[inline]
pub fn futex_wake(word: &std::sync::atomic::AtomicU32) -> Result<(), Errno> {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call, which does not write to it.
    exactly(0, unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) })
}

/// io_uring_enter(2) that hands over nothing and waits for nothing.
///
/// Errors: see io_uring_enter(2).
#[inline]
pub fn io_uring_enter(ring: BorrowedFd<'_>) -> Result<(), Errno> {
    const ROOM_BYTES: usize = 8; // of a signal set, of which there is none
    let (fd, none) = (ring.as_raw_fd(), std::ptr::null::<libc::c_void>());
    // SAFETY: there is no signal set to read.
    let returned =
        unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, 0u32, 0u32, 0u32, none, ROOM_BYTES) };
    exactly(0, returned)
}

/// Whether a mapping has its pages from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Populate {
    /// `MAP_POPULATE`.
    Yes,
    /// Each page comes with its first touch.
    No,
}

/// mmap(2) of so many bytes of anonymous memory, and munmap(2).
///
/// Errors: see mmap(2).
#[inline]
pub fn map_and_unmap(bytes: usize, populate: Populate) -> Result<(), Errno> {
    Range::anonymous(bytes, populate)?.unmap()
}

/// Anonymous memory of our own, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    range: Range,
    page_bytes: usize,
}

/// The beginning of a file, to read; unmapped when dropped.
#[derive(Debug)]
pub struct FilePages(Range);

/// What was mapped.
#[derive(Debug)]
struct Range {
    start: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the memory belongs to its one owner, wherever that runs.
unsafe impl Send for Range {}

impl Range {
    #[inline]
    fn new(bytes: usize, access: i32, flags: i32, fd: i32) -> Result<Range, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choosing touches no
        // memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
        if start == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(Range { start, bytes }) }
    }

    #[inline]
    fn anonymous(bytes: usize, populate: Populate) -> Result<Range, Errno> {
        let more = if populate == Populate::Yes { libc::MAP_POPULATE } else { 0 };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more;
        Range::new(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
    }

    #[inline]
    fn unmap(self) -> Result<(), Errno> {
        let Range { start, bytes } = *std::mem::ManuallyDrop::new(self);
        // SAFETY: the mapping was owned, and nobody has it from here on.
        exactly(0, i64::from(unsafe { libc::munmap(start, bytes) }))
    }

    /// The address of a byte.
    #[inline]
    fn at(&self, at: usize) -> *mut u8 {
        assert!(at < self.bytes, "byte {at} of {}", self.bytes);
        // SAFETY: the offset is below the length of the mapping.
        unsafe { self.start.cast::<u8>().add(at) }
    }
}

impl Drop for Range {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing points into it.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

impl Mapping {
    /// So many pages of new memory, all zero.
    ///
    /// Errors: see mmap(2).
    pub fn anonymous(pages: usize, populate: Populate) -> Result<Mapping, Errno> {
        Mapping::of_pages(pages, page_bytes(), populate)
    }

    fn of_pages(pages: usize, page_bytes: usize, populate: Populate) -> Result<Mapping, Errno> {
        Ok(Mapping { range: Range::anonymous(pages * page_bytes, populate)?, page_bytes })
    }

    /// munmap(2), with what it says.
    ///
    /// Errors: see munmap(2).
    #[inline]
    pub fn unmap(self) -> Result<(), Errno> {
        self.range.unmap()
    }

    /// Has each page come alone, and none as part of a huge one
    /// (`MADV_NOHUGEPAGE`). A kernel without huge pages has nothing to refuse.
    ///
    /// Errors: see madvise(2).
    pub fn refuse_huge_pages(&self) -> Result<(), Errno> {
        // SAFETY: the range is the mapping's own.
        match unsafe { libc::madvise(self.range.start, self.range.bytes, libc::MADV_NOHUGEPAGE) } {
            0 => Ok(()),
            _ if Errno::last() == Errno::EINVAL => Ok(()),
            _ => Err(Errno::last()),
        }
    }

    /// Writes to a page; the first time that is a page fault.
    ///
    /// # Panics
    /// Where there is no such page.
    #[inline]
    pub fn write(&mut self, page: usize) {
        // SAFETY: the page is within the mapping, which is writable.
        unsafe { self.range.at(page * self.page_bytes).write_volatile(1) };
    }
}

impl FilePages {
    /// The first bytes of a file, which must have them as long as they are read.
    ///
    /// Errors: see mmap(2).
    pub fn of(file: BorrowedFd<'_>, bytes: usize) -> Result<FilePages, Errno> {
        Range::new(bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd()).map(FilePages)
    }

    /// Reads a byte; the first time in a page that is a page fault.
    ///
    /// # Panics
    /// Where there is no such byte.
    #[inline]
    pub fn read(&self, at: usize) -> u8 {
        // SAFETY: the byte is within the mapping, which is readable.
        unsafe { self.0.at(at).read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::usage;

    fn faults_of(work: impl FnOnce()) -> u64 {
        let before = usage::thread_usage().unwrap().minor_faults;
        work();
        usage::thread_usage().unwrap().minor_faults - before
    }

    #[test]
    fn what_goes_wrong_is_said() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(read(null.as_fd(), &mut [0]), Err(Errno::ENODATA), "the end is no byte");
        assert_eq!(write(null.as_fd(), &[1]), Err(Errno::EBADF), "it is open to read alone");
        assert_eq!(getppid(-1), Err(Errno::ESRCH));
        assert_eq!(function(-1), Err(Errno::EINVAL));
        let root = std::fs::File::open("/").unwrap();
        assert_eq!(open(root.as_fd(), c"no such name").unwrap_err(), Errno::ENOENT);
        assert_eq!(stat(root.as_fd(), c"no such name"), Err(Errno::ENOENT));
        assert_eq!(statx(root.as_fd(), c"no such name"), Err(Errno::ENOENT));
        let (epoll, (out, into)) = (epoll().unwrap(), crate::pipe::open(4096).unwrap());
        epoll_watch(epoll.as_fd(), out.as_fd()).unwrap();
        assert_eq!(epoll_wait(epoll.as_fd()), Ok(()));
        write(into.as_fd(), &[1, 2]).unwrap();
        assert_eq!(read(out.as_fd(), &mut [0; 3]), Err(Errno::EBADMSG), "it holds two bytes");
        write(into.as_fd(), &[1]).unwrap();
        assert_eq!(epoll_wait(epoll.as_fd()), Err(Errno::EBADMSG), "one is ready");
        assert_eq!(futex_wake(&AtomicU32::new(0)), Ok(()));
    }

    #[test]
    fn each_page_that_is_touched_is_one_fault() {
        const PAGES: usize = 64;
        let mut memory = Mapping::anonymous(PAGES, Populate::No).unwrap();
        memory.refuse_huge_pages().unwrap();
        let faults = faults_of(|| (0..PAGES).for_each(|page| memory.write(page)));
        assert!((PAGES as u64..PAGES as u64 + 8).contains(&faults), "{faults}");
        assert!(faults_of(|| (0..PAGES).for_each(|page| memory.write(page))) < 8);
        memory.unmap().unwrap();
        let mut there = Mapping::anonymous(PAGES, Populate::Yes).unwrap();
        assert!(faults_of(|| (0..PAGES).for_each(|page| there.write(page))) < 8);
    }

    #[test]
    fn a_large_page_is_touched_once() {
        const LARGE: usize = 64 << 10;
        let mut memory = Mapping::of_pages(2, LARGE, Populate::No).unwrap();
        memory.write(1);
        // SAFETY: the byte is within the mapping, which is readable.
        let written = |at: usize| unsafe { memory.range.at(at).read_volatile() };
        assert_eq!([written(page_bytes()), written(LARGE)], [0, 1]);
        assert_eq!(Mapping::anonymous(3, Populate::No).unwrap().range.bytes, 3 * page_bytes());
    }

    #[test]
    #[should_panic(expected = " of ")]
    fn there_is_no_page_behind_the_last() {
        Mapping::anonymous(1, Populate::No).unwrap().write(1);
    }
}
