//! The connections of one thread: made when they are needed or in a ramp before,
//! written and read without waiting, registered once. One that waits for a reply
//! has no buffer.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use iolens_model::units::Nanos;
use iolens_sys::epoll::{Epoll, Events, Ready, Trigger};
use iolens_sys::errno::Errno;
use iolens_sys::tcp::SetupError;
use iolens_sys::tcp_client::{self, Progress};
use iolens_sys::{clock, socket};

use super::book::Ending;
use super::limits::more_sources;
use super::reply::Partial;
use super::{Calls, Settings};

/// Connections that one wait reports at most.
pub(super) const EVENTS: usize = 256;

/// A connection that takes so long has lost its first request to connect: the
/// kernel makes the next after a second (`TCP_TIMEOUT_INIT`, include/net/tcp.h).
const SLOW_NS: u64 = 900_000_000;

/// One connection.
#[derive(Debug, Default)]
pub(super) struct Link {
    fd: Option<OwnedFd>,
    /// Whether it is not known yet to stand.
    is_connecting: bool,
    begun_ns: u64,
    /// What the socket had no room for.
    unsent: Vec<u8>,
    pub(super) partial: Partial,
}

impl Link {
    pub(super) fn is_open(&self) -> bool {
        self.fd.is_some()
    }
}

/// Why a connection is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) ending: Ending,
    /// In words, the same ones whenever it happens.
    pub(super) text: String,
}

impl Trouble {
    pub(super) fn new(ending: Ending, text: impl Into<String>) -> Trouble {
        Trouble { ending, text: text.into() }
    }
}

/// Connections so far, and bytes over them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LinkCounts {
    pub(super) made: u64,
    pub(super) failed: u64,
    pub(super) slow: u64,
    pub(super) first_begun_ns: u64,
    pub(super) last_made_ns: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) calls: Calls,
}

/// The connections of one thread.
pub(super) struct Links {
    address: SocketAddr,
    sources: Vec<IpAddr>,
    ramp_ns: u64,
    timeout: Nanos,
    /// Number of the first one among those of all threads.
    first: u32,
    all: Vec<Link>,
    epoll: Epoll,
    /// How many were begun: whose turn it is among the sources. Not the connection's
    /// number, or a few short ones would use the ports of as many sources only.
    begun: usize,
    pub(super) counts: LinkCounts,
}

impl Links {
    /// As many as this, none of them made.
    ///
    /// Errors: no descriptor is left for epoll.
    pub(super) fn new(settings: &Settings, first: u32, count: u32) -> Result<Links, Errno> {
        Ok(Links {
            address: settings.address,
            sources: settings.sources.clone(),
            begun: 0,
            ramp_ns: settings.ramp.0,
            timeout: settings.timeout,
            first,
            all: (0..count).map(|_| Link::default()).collect(),
            epoll: Epoll::new()?,
            counts: LinkCounts::default(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many are not closed.
    pub(super) fn open_count(&self) -> u64 {
        self.all.iter().filter(|link| link.is_open()).count() as u64
    }

    /// Those that are open, for a test that waits for them.
    #[cfg(test)]
    pub(super) fn descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        self.all.iter().filter_map(|link| link.fd.as_ref()).map(AsFd::as_fd).collect()
    }

    /// From here on bytes and calls are counted from 0.
    pub(super) fn count_anew(&mut self) {
        let counts = &mut self.counts;
        (counts.sent_bytes, counts.received_bytes, counts.calls) = (0, 0, Calls::default());
    }

    pub(super) fn get(&self, index: usize) -> &Link {
        &self.all[index]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Link {
        &mut self.all[index]
    }

    /// The number of a connection among those of all threads, from 1.
    pub(super) fn number(&self, index: usize) -> u32 {
        self.first + u32::try_from(index).unwrap_or(u32::MAX) + 1
    }

    /// Begins to make a connection.
    pub(super) fn open(&mut self, index: usize) -> Result<(), Trouble> {
        let begun_ns = clock::monotonic_ns();
        let (fd, progress) = self.begin()?;
        self.epoll.add(fd.as_fd(), index as u64, Trigger::Edges).map_err(|errno| {
            Trouble::new(Ending::Abandoned, format!("cannot wait for a connection: {errno}"))
        })?;
        if self.counts.first_begun_ns == 0 {
            self.counts.first_begun_ns = begun_ns;
        }
        let link = &mut self.all[index];
        *link = Link { fd: Some(fd), is_connecting: true, begun_ns, ..Link::default() };
        if progress == Progress::Connected {
            self.stands(index);
        }
        Ok(())
    }

    /// A socket that connects, from the source whose turn it is, or from the next one
    /// that has a port left.
    fn begin(&mut self) -> Result<(OwnedFd, Progress), Trouble> {
        let sources = self.sources.len().max(1);
        let mut others = sources - 1;
        loop {
            let turn = (self.first as usize + self.begun) % sources;
            self.begun += 1;
            let from = self.sources.get(turn).copied();
            let fd = tcp_client::open(&self.address, from).map_err(|error| {
                self.counts.failed += 1;
                no_socket(&error)
            })?;
            match tcp_client::begin(fd.as_fd(), &self.address) {
                Ok(progress) => return Ok((fd, progress)),
                Err(Errno::EADDRNOTAVAIL) if others > 0 => others -= 1,
                Err(errno) => {
                    self.counts.failed += 1;
                    return Err(self.not_made(errno));
                }
            }
        }
    }

    /// Sends, or keeps what there is no room for until there is.
    pub(super) fn send(&mut self, index: usize, bytes: &[u8]) -> Result<(), Trouble> {
        let link = &mut self.all[index];
        // On one that is being made this succeeds if it stands, as it does at once
        // over loopback, and else says EAGAIN: the kernel need not be asked first.
        let Some(fd) = link.fd.as_ref().filter(|_| link.unsent.is_empty()) else {
            link.unsent.extend_from_slice(bytes);
            return Ok(());
        };
        self.counts.calls.sends += 1;
        let sent = match socket::send(fd.as_fd(), bytes) {
            Ok(sent) => sent,
            Err(Errno::EAGAIN | Errno::EINTR) => 0,
            Err(errno) => return Err(self.broken(index, errno)),
        };
        if sent < bytes.len() {
            link.unsent.extend_from_slice(&bytes[sent..]);
        }
        self.went(index, sent);
        Ok(())
    }

    /// Does what an event says can be done, short of receiving.
    pub(super) fn settle(&mut self, index: usize, ready: Ready) -> Result<(), Trouble> {
        let link = &mut self.all[index];
        let Some(fd) = link.fd.as_ref().filter(|_| ready.writable) else { return Ok(()) };
        if !link.unsent.is_empty() {
            let unsent = std::mem::take(&mut link.unsent);
            return self.send(index, &unsent);
        }
        if link.is_connecting {
            match tcp_client::failure(fd.as_fd()) {
                Ok(None) => self.stands(index),
                Ok(Some(errno)) | Err(errno) => return Err(self.broken(index, errno)),
            }
        }
        Ok(())
    }

    /// Receives what has come; `None` where nothing has, 0 at the end.
    pub(super) fn receive(
        &mut self,
        index: usize,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, Trouble> {
        let Some(fd) = &self.all[index].fd else { return Ok(None) };
        self.counts.calls.receives += 1;
        match socket::recv(fd.as_fd(), buffer) {
            Ok(received) => {
                self.counts.received_bytes += received as u64;
                Ok(Some(received))
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(errno) => Err(self.broken(index, errno)),
        }
    }

    /// Closes a connection, whatever has come of it.
    pub(super) fn close(&mut self, index: usize) {
        self.all[index] = Link::default();
    }

    /// Waits for any of them.
    pub(super) fn wait(&mut self, events: &mut Events, timeout_ns: u64) -> Result<(), Errno> {
        self.counts.calls.waits += 1;
        match self.epoll.wait(events, timeout_ns) {
            Err(Errno::EINTR) => Ok(()),
            result => result,
        }
    }

    /// Closes those that came to an end while nobody looked, and those over which
    /// came what nobody waits for; `lost` is told of them. No request is in flight.
    ///
    /// Errors: this client cannot wait.
    pub(super) fn look(&mut self, lost: &mut dyn FnMut(&Trouble)) -> Result<(), String> {
        let mut events = Events::with_room(EVENTS);
        loop {
            self.wait(&mut events, 0).map_err(cannot_wait)?;
            if events.is_empty() {
                return Ok(());
            }
            for ready in (0..events.len()).filter_map(|at| events.get(at)) {
                let index = usize::try_from(ready.key).unwrap_or(usize::MAX);
                if let Err(trouble) =
                    self.settle(index, ready).and_then(|()| self.idle(index, ready))
                {
                    self.close(index);
                    lost(&trouble);
                }
            }
        }
    }

    /// Whether a connection without a request is still good for one.
    fn idle(&mut self, index: usize, ready: Ready) -> Result<(), Trouble> {
        if !ready.readable {
            return Ok(());
        }
        let text = match self.receive(index, &mut [0; 64])? {
            None => return Ok(()),
            Some(0) => "the server closed an idle connection",
            Some(_) => "something came over an idle connection",
        };
        Err(Trouble::new(Ending::Reset, text))
    }

    /// Makes all that are closed, evenly over the time that was asked for all of
    /// them, until each stands or has failed; `failed` is told of those.
    ///
    /// Errors: what keeps this client from making any more.
    pub(super) fn ramp(
        &mut self,
        stopped: impl Fn() -> bool,
        failed: &mut dyn FnMut(&Trouble),
    ) -> Result<(), String> {
        let begin_ns = clock::monotonic_ns();
        let (all, ramp_ns) = (self.len(), self.ramp_ns);
        let due_ns = |nth: usize| {
            begin_ns + u64::try_from(u128::from(ramp_ns) * nth as u128 / all as u128).unwrap_or(0)
        };
        let closed: Vec<usize> = (0..all).filter(|&index| !self.all[index].is_open()).collect();
        let (mut next, count) = (0, closed.len());
        let mut pending = self.all.iter().filter(|link| link.is_connecting).count();
        let mut events = Events::with_room(EVENTS);
        while (next < count || pending > 0) && !stopped() {
            let now_ns = clock::monotonic_ns();
            while next < count && due_ns(next) <= now_ns {
                let index = closed[next];
                match self.open(index) {
                    Ok(()) => pending += usize::from(self.all[index].is_connecting),
                    Err(trouble) if trouble.ending == Ending::Abandoned => return Err(trouble.text),
                    Err(trouble) => failed(&trouble),
                }
                next += 1;
            }
            if next == count && self.oldest_is_overdue(now_ns) {
                pending -= self.give_up_overdue(now_ns, failed);
            }
            let until_ns =
                if next < count { due_ns(next).saturating_sub(now_ns) } else { u64::MAX };
            self.wait(&mut events, until_ns.min(super::LOOK_NS)).map_err(cannot_wait)?;
            for ready in (0..events.len()).filter_map(|at| events.get(at)) {
                let index = usize::try_from(ready.key).unwrap_or(usize::MAX);
                if !self.all[index].is_connecting {
                    continue;
                }
                let settled = self.settle(index, ready);
                pending -= usize::from(!self.all[index].is_connecting || settled.is_err());
                if let Err(trouble) = settled {
                    self.close(index);
                    failed(&trouble);
                }
            }
        }
        Ok(())
    }

    fn is_overdue(&self, link: &Link, now_ns: u64) -> bool {
        link.is_connecting && link.begun_ns + self.timeout.0 <= now_ns
    }

    fn oldest_is_overdue(&self, now_ns: u64) -> bool {
        self.all.iter().any(|link| self.is_overdue(link, now_ns))
    }

    /// Gives up those that take too long; how many they were.
    fn give_up_overdue(&mut self, now_ns: u64, failed: &mut dyn FnMut(&Trouble)) -> usize {
        let overdue: Vec<usize> =
            (0..self.len()).filter(|&index| self.is_overdue(&self.all[index], now_ns)).collect();
        for &index in &overdue {
            self.counts.failed += 1;
            self.close(index);
            let text = format!("a connection was not made in {}", self.timeout);
            failed(&Trouble::new(Ending::Timeout, text));
        }
        overdue.len()
    }

    /// A connection is known to stand.
    fn stands(&mut self, index: usize) {
        let (now_ns, link) = (clock::monotonic_ns(), &mut self.all[index]);
        link.is_connecting = false;
        self.counts.made += 1;
        self.counts.slow += u64::from(now_ns - link.begun_ns >= SLOW_NS);
        self.counts.last_made_ns = now_ns;
    }

    /// Bytes went over a connection.
    fn went(&mut self, index: usize, bytes: usize) {
        self.counts.sent_bytes += bytes as u64;
        if bytes > 0 && self.all[index].is_connecting {
            self.stands(index);
        }
    }

    /// What a call's error makes of a connection and its requests.
    fn broken(&mut self, index: usize, errno: Errno) -> Trouble {
        if !self.all[index].is_connecting {
            return Trouble::new(Ending::Reset, format!("a connection broke: {errno}"));
        }
        self.counts.failed += 1;
        self.not_made(errno)
    }

    /// Whose fault it is that a connection cannot be made.
    fn not_made(&self, errno: Errno) -> Trouble {
        let text = format!("cannot connect to {}: {errno}", self.address);
        match errno {
            Errno::ECONNREFUSED
            | Errno::ECONNRESET
            | Errno::ECONNABORTED
            | Errno::EPIPE
            | Errno::ENETUNREACH => Trouble::new(Ending::Refused, text),
            errno if errno.raw() == EHOSTUNREACH => Trouble::new(Ending::Refused, text),
            Errno::ETIMEDOUT => Trouble::new(Ending::Timeout, text),
            Errno::EADDRNOTAVAIL => {
                let sources = self.sources.len() as u64 + 1;
                let advice = more_sources(&self.address, sources * 2);
                let text = format!("{text}: this client has no port left\n  {advice}");
                Trouble::new(Ending::Abandoned, text)
            }
            // Descriptors, memory, rights: limits of this side.
            _ => Trouble::new(Ending::Abandoned, text),
        }
    }
}

/// What keeps this client from having a socket: descriptors, memory, rights, or an
/// address that is not its own.
#[cold]
fn no_socket(error: &SetupError) -> Trouble {
    let advice = match error.errno {
        Errno::EADDRNOTAVAIL => {
            "\n  no interface of this machine has that address; `ip address` shows those that there \
             are"
        }
        _ => "",
    };
    Trouble::new(Ending::Abandoned, format!("{error}{advice}"))
}

/// No way to the host (include/uapi/asm-generic/errno.h).
const EHOSTUNREACH: i32 = 113;

/// Why this client cannot go on.
pub(super) fn cannot_wait(errno: Errno) -> String {
    format!("cannot wait for connections: {errno}")
}

/// What is said where no connection stands, with why the first one does not.
pub(super) fn nobody_there(why: &str) -> String {
    format!("{why}\n  no connection could be made; is the server running?")
}
