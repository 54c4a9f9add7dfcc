//! Waiting for many descriptors at once; see epoll(7).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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
    #[must_use]
    pub fn with_room(most: usize) -> Events {
        Events { events: Vec::with_capacity(most), most }
    }

    /// How many were reported.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether none was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The `index`-th that was reported; null beyond the last one.
    #[inline]
    #[must_use]
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
        let flags = match trigger {
            Trigger::Readable => epoll::EventFlags::IN,
            Trigger::Edges => {
                epoll::EventFlags::ET
                    | epoll::EventFlags::IN
                    | epoll::EventFlags::OUT
                    | epoll::EventFlags::RDHUP
            }
        };
        Ok(epoll::add(&self.0, fd, epoll::EventData::new_u64(key), flags)?)
    }

    /// Waits until a descriptor is ready or the time is over, to the nanosecond
    /// that the kernel's timers allow (epoll_pwait2(2), Linux 5.11; before, and
    /// for whole milliseconds, epoll_pwait(2)). 0 does not wait.
    ///
    /// Errors: `EINTR` when a handled signal arrived.
    #[inline]
    pub fn wait(&self, events: &mut Events, timeout_ns: u64) -> Result<(), Errno> {
        events.events.clear();
        if events.events.capacity() < events.most {
            events.events.reserve(events.most);
        }
        let room = rustix::buffer::spare_capacity(&mut events.events);
        match epoll::wait(&self.0, room, Some(&timespec(timeout_ns))) {
            Err(rustix::io::Errno::NOSYS) => {
                let whole_ms = timeout_ns.div_ceil(1_000_000) * 1_000_000;
                let room = rustix::buffer::spare_capacity(&mut events.events);
                epoll::wait(&self.0, room, Some(&timespec(whole_ms)))?;
            }
            result => drop(result?),
        }
        Ok(())
    }
}

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
}
