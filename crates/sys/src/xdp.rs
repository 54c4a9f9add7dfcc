//! AF_XDP, the sending half: Ethernet frames in memory that is shared with the
//! kernel (a UMEM) go to a queue of a device through a ring of descriptors, in
//! copy mode and without a program; see Documentation/networking/af_xdp.rst and
//! include/uapi/linux/if_xdp.h of the kernel.
//!
//! In copy mode (`XDP_COPY`) every device will do. The kernel copies what a
//! descriptor names into a socket buffer and gives that to the device at once, in
//! the call that says there is something (net/xdp/xsk.c, `__xsk_generic_xmit`).
//!
//! # Safety
//! A [`FrameSocket`] owns its mappings, and its descriptor, which is closed before
//! they are taken away. Frames are written before the kernel knows of them and
//! never after: there is no receive ring, and the fill ring stays empty, so the
//! kernel only reads them. The numbers of a ring that both sides use are atomic;
//! of each, one side alone writes. Places in a ring are masked to its length.
//!
//! Of a [`PlainFrameSocket`] a descriptor may hold anything: the kernel refuses what does not lie
//! in a chunk of the UMEM (`xskq_cons_is_valid_desc`, net/xdp/xsk_queue.h), and reads
//! nothing else. Its numbers are the caller's to keep; wrong ones are frames that
//! are sent twice or never.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::errno::Errno;
use crate::memory;
use crate::tcp::SetupError;

/// Bytes of a chunk of the UMEM, which no frame crosses: a page, the most a chunk
/// may have.
pub const CHUNK_BYTES: usize = 4096;

/// Descriptors that one call hands over in copy mode (`TX_BATCH_SIZE`,
/// net/xdp/xsk.c).
pub const BATCH_MAX: usize = 32;

/// Descriptors in the ring of what is to be sent.
const TX_ENTRIES: u32 = 64;
/// Completions that can be outstanding; what is beyond waits in the other ring.
const COMPLETION_ENTRIES: u32 = 2048;
/// Nothing is received, but a UMEM has a fill ring (`xsk_validate_queues`).
const FILL_ENTRIES: u32 = 1;
/// Frames begin at the border of a cache line.
const LINE_BYTES: usize = 64;

/// A socket that sends frames, and the frames.
#[derive(Debug)]
pub struct FrameSocket {
    // Declared first: closed before the mappings go.
    fd: OwnedFd,
    tx: Ring,
    completion: Ring,
    umem: Mapping,
    frames: usize,
    frame_bytes: u32,
    /// Frames lie a power of two bytes apart, this one.
    shift: u32,
    /// Descriptors written so far, which wraps.
    posted: u32,
    /// Completions read so far, which wraps.
    read: u32,
}

impl FrameSocket {
    /// A socket with `frames` frames of `frame_bytes` bytes, at least 1 and at
    /// most [`CHUNK_BYTES`], which `write` fills in; not yet bound.
    ///
    /// Errors: `EPERM` without CAP_NET_RAW, `EAFNOSUPPORT` where the kernel has no
    /// such sockets, `ENOBUFS` beyond `RLIMIT_MEMLOCK`, `EMSGSIZE` for a frame
    /// that does not fit a chunk.
    pub fn open(
        frames: usize,
        frame_bytes: usize,
        write: impl Fn(usize, &mut [u8]),
    ) -> Result<FrameSocket, SetupError> {
        if frame_bytes > CHUNK_BYTES {
            let tried = format!("send frames of {frame_bytes} B in chunks of {CHUNK_BYTES} B");
            return Err(SetupError { tried, errno: Errno::EMSGSIZE });
        }
        // SAFETY: takes numbers only.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        tried(
            || "open an AF_XDP socket, which takes CAP_NET_RAW over the namespace".to_owned(),
            fd,
        )?;
        // SAFETY: the kernel has just made this descriptor, for nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let shift = shift_for(frame_bytes);
        let mut umem = Mapping::anonymous((frames << shift).next_multiple_of(CHUNK_BYTES))?;
        for frame in 0..frames {
            let at = frame << shift;
            write(frame, &mut umem.bytes_mut()[at..at + frame_bytes]);
        }
        register(&fd, &umem)?;
        for (name, option, entries) in [
            ("XDP_UMEM_FILL_RING", libc::XDP_UMEM_FILL_RING, FILL_ENTRIES),
            ("XDP_UMEM_COMPLETION_RING", libc::XDP_UMEM_COMPLETION_RING, COMPLETION_ENTRIES),
            ("XDP_TX_RING", libc::XDP_TX_RING, TX_ENTRIES),
        ] {
            set(&fd, option, &entries, || format!("set {name} to {entries}"))?;
        }
        let offsets = offsets(&fd)?;
        let tx = Ring::map(
            fd.as_raw_fd(),
            libc::XDP_PGOFF_TX_RING,
            &offsets.tx,
            TX_ENTRIES,
            size_of::<libc::xdp_desc>(),
        )?;
        let completion = Ring::map(
            fd.as_raw_fd(),
            libc::XDP_UMEM_PGOFF_COMPLETION_RING.cast_signed(),
            &offsets.cr,
            COMPLETION_ENTRIES,
            size_of::<u64>(),
        )?;
        let frame_bytes = u32::try_from(frame_bytes).expect("at most a chunk");
        let (posted, read) = (0, 0);
        Ok(FrameSocket { fd, tx, completion, umem, frames, frame_bytes, shift, posted, read })
    }

    /// From now on frames go to `queue` of the device with this index, in copy
    /// mode.
    ///
    /// Errors: `EBUSY` where another socket has the queue, `EINVAL` where the
    /// device has no such queue, `ENODEV`.
    pub fn bind(&self, device: u32, queue: u32) -> Result<(), Errno> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP.unsigned_abs().try_into().expect("it is 44"),
            sxdp_flags: libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: device,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the kernel reads an address of this length, which lives on this
        // stack.
        let result = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                length_of::<libc::sockaddr_xdp>(),
            )
        };
        if result == 0 { Ok(()) } else { Err(Errno::last()) }
    }

    /// Frames there are.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Writes the descriptors of these frames, which the kernel does not see before
    /// [`Self::publish`]. Not more than [`BATCH_MAX`] may be under way. Panics out
    /// of range.
    #[inline]
    pub fn post(&mut self, frames: Range<usize>) {
        assert!(frames.end <= self.frames, "there are so many frames");
        // Not read back from memory for each: it is the kernel's too.
        let (len, shift, mut posted) = (self.frame_bytes, self.shift, self.posted);
        for frame in frames {
            let descriptor = libc::xdp_desc { addr: (frame as u64) << shift, len, options: 0 };
            self.tx.write(posted, descriptor);
            posted = posted.wrapping_add(1);
        }
        self.posted = posted;
    }

    /// Shows the kernel what was posted.
    #[inline]
    pub fn publish(&self) {
        // Whoever sees the number sees the descriptors before it.
        self.tx.producer().store(self.posted, Ordering::Release);
    }

    /// Whether the kernel has taken all that was published.
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.tx.consumer().load(Ordering::Acquire) == self.posted
    }

    /// Whether the kernel has to be told that there is something
    /// (`XDP_RING_NEED_WAKEUP`); in copy mode always.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.tx.flags().load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Tells the kernel that there is something, which in copy mode sends up to
    /// [`BATCH_MAX`] frames before the call returns (sendto(2)).
    ///
    /// Errors: `EAGAIN` where there is more, or no room for completions or socket
    /// buffers; `EBUSY` where the device dropped a frame, which completes, and the
    /// rest waits; `ENXIO` and `ENETDOWN` where the device has gone or is down.
    #[inline]
    pub fn kick(&self) -> Result<(), Errno> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: no bytes and no address.
        let n = unsafe {
            libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, flags, std::ptr::null(), 0)
        };
        if n < 0 { Err(Errno::last()) } else { Ok(()) }
    }

    /// The frames that the kernel is done with, whose places it has back only with
    /// [`Self::release`]; never waits.
    #[inline]
    pub fn completed(&self) -> impl ExactSizeIterator<Item = usize> + use<'_> {
        let end = self.completion.producer().load(Ordering::Acquire);
        let count = end.wrapping_sub(self.read) as usize;
        let (shift, mut number) = (self.shift, self.read);
        (0..count).map(move |_| {
            let address = self.completion.read(number);
            number = number.wrapping_add(1);
            usize::try_from(address >> shift).unwrap_or(usize::MAX)
        })
    }

    /// Gives the places of the first `count` of [`Self::completed`] back to the kernel,
    /// which were read. Panics beyond the ring's length.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let count = u32::try_from(count).ok().filter(|&count| count <= COMPLETION_ENTRIES);
        self.read = self.read.wrapping_add(count.expect("the ring has no more"));
        // The places were read before the kernel may write to them again.
        self.completion.consumer().store(self.read, Ordering::Release);
    }

    /// Reads every cache line of the frames once.
    pub fn touch(&self) -> u64 {
        memory::touch(self.umem.bytes())
    }
}

/// Which power of two frames of so many bytes lie apart: none crosses a chunk, which
/// is one too, and where one lies takes no division.
fn shift_for(frame_bytes: usize) -> u32 {
    frame_bytes.max(LINE_BYTES).next_power_of_two().trailing_zeros()
}

/// The size of a struct as the kernel's interface counts it.
fn length_of<T>() -> libc::socklen_t {
    size_of::<T>().try_into().expect("structs are small")
}

/// Names the step in the error of a call.
fn tried(what: impl Fn() -> String, result: libc::c_int) -> Result<(), SetupError> {
    if result >= 0 { Ok(()) } else { Err(SetupError { tried: what(), errno: Errno::last() }) }
}

/// Sets an option of level `SOL_XDP`, whose values hold no pointers but to memory
/// that lives for as long as the socket.
fn set<T: Copy>(
    fd: &OwnedFd,
    option: libc::c_int,
    value: &T,
    what: impl Fn() -> String,
) -> Result<(), SetupError> {
    // SAFETY: the kernel reads as many bytes as the value has.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            option,
            std::ptr::from_ref(value).cast(),
            length_of::<T>(),
        )
    };
    tried(what, result)
}

/// Has the kernel pin the memory and know it as this socket's.
fn register(fd: &OwnedFd, umem: &Mapping) -> Result<(), SetupError> {
    let registration = libc::xdp_umem_reg_v1 {
        addr: umem.start.as_ptr() as u64,
        len: umem.bytes as u64,
        chunk_size: CHUNK_BYTES.try_into().expect("it is 4096"),
        headroom: 0,
    };
    set(fd, libc::XDP_UMEM_REG, &registration, || {
        format!(
            "register {} KiB of memory with an AF_XDP socket (XDP_UMEM_REG; they are locked, see \
             RLIMIT_MEMLOCK)",
            umem.bytes >> 10
        )
    })
}

/// Where the numbers and the entries of each ring are in its mapping.
///
/// Errors: `ENOPROTOOPT` before Linux 5.4, whose rings have no flags.
fn offsets(fd: &OwnedFd) -> Result<libc::xdp_mmap_offsets, SetupError> {
    let what = || "read XDP_MMAP_OFFSETS".to_owned();
    // SAFETY: all-zero offsets are valid: they are numbers.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let whole = length_of::<libc::xdp_mmap_offsets>();
    let mut length = whole;
    // SAFETY: the kernel writes at most `length` bytes to `offsets`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &raw mut length,
        )
    };
    tried(what, result)?;
    if length == whole {
        return Ok(offsets);
    }
    Err(SetupError { tried: what(), errno: Errno::ENOPROTOOPT })
}

/// A ring that is shared with the kernel.
#[derive(Debug)]
struct Ring {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries_at: usize,
    entries: u32,
}

impl Ring {
    fn map(
        fd: RawFd,
        at: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        entries: u32,
        entry_bytes: usize,
    ) -> Result<Ring, SetupError> {
        let offset = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let entries_at = offset(offsets.desc);
        let bytes = entries_at.saturating_add(entries as usize * entry_bytes);
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let mapping = Mapping::new(bytes, flags, fd, at, "map a ring of an AF_XDP socket")?;
        let (producer, consumer) = (offset(offsets.producer), offset(offsets.consumer));
        let flags = offset(offsets.flags);
        let within = |at: usize| at.is_multiple_of(4) && at < bytes - size_of::<u32>();
        if [producer, consumer, flags].into_iter().all(within) && entries_at.is_multiple_of(8) {
            return Ok(Ring { mapping, producer, consumer, flags, entries_at, entries });
        }
        let tried = "find the numbers of a ring of an AF_XDP socket".to_owned();
        Err(SetupError { tried, errno: Errno::EBADMSG })
    }

    #[inline]
    fn number(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping and aligned (see `map`), for as long as the
        // mapping, and only ever used as an atomic.
        unsafe { AtomicU32::from_ptr(self.mapping.start.as_ptr().add(at).cast()) }
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        self.number(self.producer)
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        self.number(self.consumer)
    }

    #[inline]
    fn flags(&self) -> &AtomicU32 {
        self.number(self.flags)
    }

    #[inline]
    fn entry<T>(&self, index: u32) -> *mut T {
        let at = self.entries_at + (index & (self.entries - 1)) as usize * size_of::<T>();
        // SAFETY: `map` made the mapping as large as all entries of this type.
        unsafe { self.mapping.start.as_ptr().add(at).cast() }
    }

    #[inline]
    fn write(&mut self, index: u32, descriptor: libc::xdp_desc) {
        // SAFETY: inside the mapping; the kernel reads it after the next release
        // of the producer's number.
        unsafe { self.entry::<libc::xdp_desc>(index).write(descriptor) }
    }

    #[inline]
    fn read(&self, index: u32) -> u64 {
        // SAFETY: inside the mapping; the kernel wrote it before the producer's
        // number, which was read with acquire.
        unsafe { self.entry::<u64>(index).read() }
    }
}

/// Memory that is given back when it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the addresses are the mapping's own, whichever thread uses them.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(
        bytes: usize,
        flags: libc::c_int,
        fd: RawFd,
        at: libc::off_t,
        what: &str,
    ) -> Result<Mapping, SetupError> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choosing touches no
        // memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, at) };
        NonNull::new(start)
            .filter(|start| start.as_ptr() != libc::MAP_FAILED)
            .map(|start| Mapping { start: start.cast(), bytes })
            .ok_or_else(|| SetupError { tried: what.to_owned(), errno: Errno::last() })
    }

    fn anonymous(bytes: usize) -> Result<Mapping, SetupError> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Mapping::new(bytes, flags, -1, 0, &format!("allocate {bytes} B for frames"))
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the whole mapping, initialised by the kernel, and written only
        // through `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, which nobody borrows any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// The same socket in the hands of a program that writes each descriptor and moves
// the numbers of both rings itself: what a benchmark written by hand does, to
// compare the calls of [`FrameSocket`] with.

/// A socket without anything around it.
#[derive(Debug)]
pub struct PlainFrameSocket(FrameSocket);

impl From<FrameSocket> for PlainFrameSocket {
    fn from(socket: FrameSocket) -> PlainFrameSocket {
        PlainFrameSocket(socket)
    }
}

impl PlainFrameSocket {
    /// As [`FrameSocket::frames`].
    pub fn frames(&self) -> usize {
        self.0.frames
    }

    /// Bytes of each frame.
    pub fn frame_bytes(&self) -> u32 {
        self.0.frame_bytes
    }

    /// Bytes from the begin of a frame to that of the next in the UMEM.
    pub fn stride_bytes(&self) -> u64 {
        1 << self.0.shift
    }

    /// Writes descriptor `number` of the TX ring, counted from 0 and wrapping; at most
    /// 64 may be in the ring.
    #[inline]
    pub fn fill(&mut self, number: u32, address: u64, bytes: u32) {
        self.0.tx.write(number, libc::xdp_desc { addr: address, len: bytes, options: 0 });
    }

    /// Shows the kernel the descriptors before number `end`.
    #[inline]
    pub fn submit(&mut self, end: u32) {
        // Whoever sees the number sees the descriptors before it.
        self.0.tx.producer().store(end, Ordering::Release);
    }

    /// The number of the first descriptor that the kernel has not taken.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.0.tx.consumer().load(Ordering::Acquire)
    }

    /// As [`FrameSocket::needs_wakeup`].
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }

    /// As [`FrameSocket::kick`].
    ///
    /// Errors: as there.
    #[inline]
    pub fn kick(&self) -> Result<(), Errno> {
        self.0.kick()
    }

    /// Completions that there have been, wrapping.
    #[inline]
    pub fn completions(&self) -> u32 {
        self.0.completion.producer().load(Ordering::Acquire)
    }

    /// Gives the places of the completions before number `end` back to the kernel.
    #[inline]
    pub fn release(&mut self, end: u32) {
        self.0.completion.consumer().store(end, Ordering::Release);
    }

    /// As [`FrameSocket::touch`].
    pub fn touch(&self) -> u64 {
        self.0.touch()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_frame_crosses_a_chunk_or_touches_another() {
        for frame_bytes in [1, 64, 65, 106, 1024, 2048, 2049, CHUNK_BYTES] {
            let mut free = 0;
            for frame in 0..100 {
                let at = frame << shift_for(frame_bytes);
                assert!(at >= free, "{frame_bytes}");
                free = at + frame_bytes;
                assert_eq!(at / CHUNK_BYTES, (free - 1) / CHUNK_BYTES, "{frame_bytes}");
            }
        }
    }

    #[test]
    fn a_frame_larger_than_a_chunk_is_refused_before_anything_is_opened() {
        let refused = FrameSocket::open(1, CHUNK_BYTES + 1, |_, _| {}).unwrap_err();
        let said = refused.to_string();
        assert!(said.starts_with("cannot send frames of 4097 B in chunks of 4096 B: EMSGSIZE"));
    }
}
