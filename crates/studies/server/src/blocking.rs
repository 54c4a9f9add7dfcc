//! A connection that somebody serves alone, in calls that wait, to its end.

use std::os::fd::BorrowedFd;

use iolens_sys::errno::Errno;
use iolens_sys::{socket, tcp};

use super::Hands;
use super::conversation::{Conversation, Wants, Wire};

/// Serves a connection until its client ends it, it fails, or the server ends.
pub(super) fn serve(socket: BorrowedFd<'_>, hands: &mut Hands) {
    let Hands { received, answers } = hands;
    let mut conversation = Conversation::default();
    let mut wire = BlockingWire(socket);
    while !answers.tally.tallies().is_stopping() {
        let wants = match socket::recv(socket, received) {
            Ok(0) => return conversation.end(answers),
            Ok(bytes) => conversation.feed(answers, &received[..bytes], &mut wire),
            Err(Errno::EINTR) => continue,
            Err(errno) => return conversation.fail(answers, errno),
        };
        if wants != Ok(Wants::Bytes) {
            return;
        }
    }
}

/// Sends in calls that wait until all is taken.
struct BlockingWire<'a>(BorrowedFd<'a>);

impl Wire for BlockingWire<'_> {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut sent = 0;
        while sent < bytes.len() {
            match socket::send(self.0, &bytes[sent..]) {
                Ok(more) => sent += more,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(sent)
    }

    fn finish(&mut self) {
        // The client may have gone.
        let _ = tcp::finish_sending(self.0);
    }
}
