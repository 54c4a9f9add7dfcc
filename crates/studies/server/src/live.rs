//! Connections that a thread waits on in a blocking call, so that the end of the
//! server can wake it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use iolens_sys::tcp;

/// Who is served in blocking calls.
#[derive(Debug, Default)]
pub(super) struct Live(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    over: bool,
    sockets: Vec<Option<Arc<OwnedFd>>>,
    free: Vec<usize>,
}

/// A connection that is served.
pub(super) struct Held<'a> {
    live: &'a Live,
    socket: Arc<OwnedFd>,
    place: usize,
}

impl Live {
    /// Enters a connection; nothing where the server has ended.
    pub(super) fn hold(&self, socket: OwnedFd) -> Option<Held<'_>> {
        let mut table = self.table();
        if table.over {
            return None;
        }
        let socket = Arc::new(socket);
        let place = table.free.pop().unwrap_or_else(|| {
            table.sockets.push(None);
            table.sockets.len() - 1
        });
        table.sockets[place] = Some(Arc::clone(&socket));
        Some(Held { live: self, socket, place })
    }

    /// Ends all connections, which wakes who waits on them, and lets no new one in.
    pub(super) fn end(&self) {
        let mut table = self.table();
        table.over = true;
        for socket in table.sockets.iter().flatten() {
            // Its client may have gone already.
            let _ = tcp::hang_up(socket.as_fd());
        }
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Held<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut table = self.live.table();
        table.sockets[self.place] = None;
        table.free.push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_end_reaches_those_that_are_held_and_nobody_comes_after() {
        let live = Live::default();
        let (near, mut far) = UnixStream::pair().unwrap();
        let (other, _kept) = UnixStream::pair().unwrap();
        let held = live.hold(near.into()).unwrap();
        drop(live.hold(other.into()).unwrap());
        live.end();
        assert_eq!(far.read(&mut [0; 4]).unwrap(), 0);
        drop(held);
        let (late, mut far) = UnixStream::pair().unwrap();
        assert!(live.hold(late.into()).is_none());
        assert_eq!(far.read(&mut [0; 4]).unwrap(), 0, "it was closed");
    }
}
