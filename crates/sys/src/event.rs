//! A descriptor that can be waited for and that any thread or process can make
//! ready; see eventfd(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::errno::Errno;

/// A number in the kernel: readable while it is not 0.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// One that is not ready.
    ///
    /// Errors: `EMFILE` and the like from eventfd2(2).
    pub fn new() -> Result<Event, Errno> {
        Ok(Event(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it ready.
    pub fn set(&self) {
        // It fails when the number is at its end, and then it is ready.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it not ready again; whether it was.
    pub fn take(&self) -> bool {
        rustix::io::read(&self.0, &mut [0u8; 8]).is_ok()
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::is_readable;

    #[test]
    fn it_is_ready_from_when_it_is_set_until_it_is_taken() {
        let event = Event::new().unwrap();
        assert_eq!((is_readable(event.as_fd(), 0), event.take()), (Ok(false), false));
        event.set();
        event.set();
        assert_eq!((is_readable(event.as_fd(), 0), event.take()), (Ok(true), true));
        assert_eq!(is_readable(event.as_fd(), 0), Ok(false));
    }
}
