//! Waiting for many descriptors at once; see epoll(7).
//!
//! # Safety
//! The kernel writes to the spare room of a vector, and says how much of it.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{Timespec, epoll};

use crate::errno::Errno;

/// When a descriptor is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// As long as it can be read (`EPOLLIN`).
    Readable,
    /// Once whenever something came, room came or the peer ended (`EPOLLET` of
    /// `EPOLLIN`, `EPOLLOUT` and `EPOLLRDHUP`).
    Edges,
    /// As long as there is room to write (`EPOLLOUT`).
    Writable,
    /// Once when it can be read, and then not before [`Epoll::change`]
    /// (`EPOLLONESHOT`).
    ReadableOnce,
    /// The same for room to write.
    WritableOnce,
}

impl Trigger {
    #[inline]
    fn flags(self) -> epoll::EventFlags {
        use epoll::EventFlags as Flags;
        match self {
            Trigger::Readable => Flags::IN,
            Trigger::Edges => Flags::ET | Flags::IN | Flags::OUT | Flags::RDHUP,
            Trigger::Writable => Flags::OUT,
            Trigger::ReadableOnce => Flags::IN | Flags::ONESHOT,
            Trigger::WritableOnce => Flags::OUT | Flags::ONESHOT,
        }
    }
}

/// A set of descriptors to wait for, each under a key of the caller's.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// What a descriptor is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The key it was added under.
    pub key: u64,
    /// It can be read, or has ended or failed.
    pub readable: bool,
    /// It can be written, or has failed.
    pub writable: bool,
    /// The peer sends no more, or the descriptor has failed.
    pub ended: bool,
}

/// Room for what one wait reports.
pub struct Events {
    events: Vec<epoll::Event>,
    most: usize,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries((0..self.len()).filter_map(|index| self.get(index))).finish()
    }
}

impl Events {
    /// Room for so many descriptors at a time.
    pub fn with_room(most: usize) -> Events {
        Events { events: Vec::with_capacity(most), most }
    }

    /// Where the kernel may put the next ones, none of the last ones left.
    #[inline]
    fn room(&mut self) -> rustix::buffer::SpareCapacity<'_, epoll::Event> {
        self.events.clear();
        if self.events.capacity() < self.most {
            self.events.reserve(self.most);
        }
        rustix::buffer::spare_capacity(&mut self.events)
    }

    /// How many were reported.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether none was reported.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The `index`-th that was reported; `None` beyond the last one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Ready> {
        // The struct is packed on some machines: fields are copied, not borrowed.
        let epoll::Event { flags, data } = *self.events.get(index)?;
        let failed = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
        let ended = failed || flags.contains(epoll::EventFlags::RDHUP);
        Some(Ready {
            key: data.u64(),
            readable: ended || flags.contains(epoll::EventFlags::IN),
            writable: failed || flags.contains(epoll::EventFlags::OUT),
            ended,
        })
    }
}

impl Epoll {
    /// An empty set.
    ///
    /// Errors: `EMFILE` and the like from epoll_create1(2).
    pub fn new() -> Result<Epoll, Errno> {
        Ok(Epoll(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Adds a descriptor, which leaves the set when it is closed.
    ///
    /// Errors: `EEXIST` for one that is there, `ENOSPC` above
    /// fs.epoll.max_user_watches.
    #[inline]
    pub fn add(&self, fd: BorrowedFd<'_>, key: u64, trigger: Trigger) -> Result<(), Errno> {
        Ok(epoll::add(&self.0, fd, epoll::EventData::new_u64(key), trigger.flags())?)
    }

    /// Has a descriptor that is in the set reported otherwise from now on.
    ///
    /// Errors: `ENOENT` for one that is not there.
    #[inline]
    pub fn change(&self, fd: BorrowedFd<'_>, key: u64, trigger: Trigger) -> Result<(), Errno> {
        Ok(epoll::modify(&self.0, fd, epoll::EventData::new_u64(key), trigger.flags())?)
    }

    /// Waits until a descriptor is ready: epoll_pwait(2) without a timer.
    ///
    /// Errors: `EINTR` when a handled signal arrived.
    #[inline]
    pub fn wait_long(&self, events: &mut Events) -> Result<(), Errno> {
        let room = events.room();
        epoll::wait(&self.0, room, None)?;
        Ok(())
    }

    /// Waits until a descriptor is ready or the time is over, to the nanosecond
    /// that the kernel's timers allow (epoll_pwait2(2)), or before Linux 5.11 to
    /// the millisecond after it. 0 does not wait.
    ///
    /// Errors: `EINTR` when a handled signal arrived.
    #[inline]
    pub fn wait(&self, events: &mut Events, timeout_ns: u64) -> Result<(), Errno> {
        if !timeout_ns.is_multiple_of(NS_PER_MS) {
            match self.wait_finely(events, timeout_ns) {
                Err(Errno::ENOSYS) => {}
                result => return result,
            }
        }
        let whole_ms = timeout_ns.div_ceil(NS_PER_MS) * NS_PER_MS;
        epoll::wait(&self.0, events.room(), Some(&timespec(whole_ms)))?;
        Ok(())
    }

    /// epoll_pwait2(2), which neither the C library of every distribution has nor
    /// rustix calls for less than a second: it rounds up to milliseconds.
    fn wait_finely(&self, events: &mut Events, timeout_ns: u64) -> Result<(), Errno> {
        let _ = events.room();
        let spare = events.events.spare_capacity_mut();
        let room = libc::c_int::try_from(spare.len()).unwrap_or(libc::c_int::MAX);
        let timeout = timespec(timeout_ns);
        // SAFETY: pointer and length are those of the spare room, exclusively ours
        // for this call, whose elements have the layout of epoll_event; the time-out
        // is two 64-bit numbers, which the kernel only reads; there is no signal mask.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                spare.as_mut_ptr().cast::<libc::epoll_event>(),
                room,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        let ready = usize::try_from(ready).map_err(|_| Errno::last())?;
        // SAFETY: the vector was empty, and the kernel has filled so many elements of
        // its spare room, at most all.
        unsafe { events.events.set_len(ready) };
        Ok(())
    }
}

const NS_PER_MS: u64 = 1_000_000;

// What the kernel fills is what rustix takes it for.
const _: () = assert!(size_of::<epoll::Event>() == size_of::<libc::epoll_event>());

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::{clock, socket};

    fn keys(epoll: &Epoll, timeout_ns: u64) -> Vec<Ready> {
        let mut events = Events::with_room(4);
        epoll.wait(&mut events, timeout_ns).unwrap();
        (0..events.len()).map(|index| events.get(index).unwrap()).collect()
    }

    #[test]
    fn edges_are_told_once_and_levels_as_long_as_they_last() {
        let (near, far) = UnixStream::pair().unwrap();
        for (trigger, again) in [(Trigger::Edges, 0), (Trigger::Readable, 1)] {
            let epoll = Epoll::new().unwrap();
            epoll.add(near.as_fd(), 7, trigger).unwrap();
            keys(&epoll, 0);
            socket::send(far.as_fd(), b"x").unwrap();
            let told = keys(&epoll, 1_000_000_000);
            assert_eq!(told.len(), 1);
            assert!(told[0].key == 7 && told[0].readable && !told[0].ended, "{told:?}");
            assert_eq!(keys(&epoll, 0).len(), again, "{trigger:?}");
        }
    }

    #[test]
    fn what_is_told_once_is_told_again_when_it_was_changed() {
        let (near, far) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(near.as_fd(), 3, Trigger::ReadableOnce).unwrap();
        socket::send(far.as_fd(), b"x").unwrap();
        let mut events = Events::with_room(4);
        epoll.wait_long(&mut events).unwrap();
        assert_eq!((events.len(), keys(&epoll, 0).len()), (1, 0));
        epoll.change(near.as_fd(), 3, Trigger::ReadableOnce).unwrap();
        assert_eq!(keys(&epoll, 0).len(), 1);
        epoll.change(near.as_fd(), 3, Trigger::WritableOnce).unwrap();
        let told = keys(&epoll, 0);
        assert!(told[0].writable && !told[0].readable, "{told:?}");
        assert!(keys(&epoll, 0).is_empty());
    }

    #[test]
    fn the_end_of_the_peer_is_told_and_a_closed_descriptor_is_gone() {
        let (near, far) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(near.as_fd(), 1, Trigger::Edges).unwrap();
        drop(far);
        let told = keys(&epoll, 1_000_000_000);
        assert!(told[0].ended && told[0].readable && told[0].writable, "{told:?}");
        drop(near);
        assert!(keys(&epoll, 0).is_empty());
    }

    #[test]
    fn it_waits_no_shorter_than_it_was_asked_to() {
        let epoll = Epoll::new().unwrap();
        for timeout_ns in [300_000, 1_000_000, 1_500_000] {
            let begin_ns = clock::monotonic_ns();
            assert!(keys(&epoll, timeout_ns).is_empty());
            assert!(clock::monotonic_ns() - begin_ns >= timeout_ns);
        }
    }

    /// The fastest of many waits shows what is asked of the kernel: 300 µs, and not
    /// the whole millisecond that epoll_wait(2) knows.
    #[test]
    fn a_wait_is_not_rounded_up_to_milliseconds() {
        let epoll = Epoll::new().unwrap();
        let mut events = Events::with_room(4);
        let fastest_ns = (0..50).map(|_| {
            let begin_ns = clock::monotonic_ns();
            if epoll.wait_finely(&mut events, 300_000) == Err(Errno::ENOSYS) {
                return 0;
            }
            clock::monotonic_ns() - begin_ns
        });
        assert!(fastest_ns.min().unwrap() < 1_000_000);
    }

    #[test]
    fn events_of_a_fine_wait_are_whole() {
        let (near, far) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(near.as_fd(), u64::MAX - 5, Trigger::Readable).unwrap();
        epoll.add(far.as_fd(), 4, Trigger::Writable).unwrap();
        socket::send(far.as_fd(), b"x").unwrap();
        let told = keys(&epoll, 1_500_001);
        let keys: Vec<u64> = told.iter().map(|ready| ready.key).collect();
        assert_eq!(keys, [4, u64::MAX - 5]);
        assert!(told[0].writable && !told[0].readable && told[1].readable, "{told:?}");
    }
}
