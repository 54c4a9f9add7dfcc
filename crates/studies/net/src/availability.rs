//! Whether a primitive works here. It is tried: one short message goes through
//! a connection over loopback, in this process, outside of any measurement.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use iolens_harness::host::with_version;
use iolens_model::axes::Iovec;
use iolens_model::transport::Transport;
use iolens_model::tuning::Tuning;
use iolens_sys::errno::Errno;
use iolens_sys::{ring, socket};

use crate::entry::{Ends, Entry, Link, Setup, Shape};
use crate::lane::{self, Lane};
use iolens_harness::op::Budget;

/// How long the kernel may take to say that it released the message.
const STALL_LIMIT: Duration = Duration::from_secs(1);

const SHAPE: Shape = Shape { messages: 1, message_bytes: 64, fields: 1, iovec: Iovec::PerMessage };

/// Tries a primitive.
///
/// Errors: why it does not work here: what was tried and what the system said,
/// and the kernel that it needs where this one is older.
pub fn try_here(entry: &Entry) -> Result<(), String> {
    attempt(entry).map_err(|why| with_version(why, entry.since))
}

/// Tries whether a primitive can be opened, and sends nothing: for who counts
/// the calls of this process.
///
/// Errors: as [`try_here`].
pub fn open_here(entry: &Entry) -> Result<(), String> {
    let [near, _far] = pair(entry)?;
    let link = match entry.ends {
        Ends::Pair => Link::Socket(near.data()),
        Ends::SenderOnly => Link::None,
    };
    let setup = Setup { link, shape: SHAPE, tuning: Tuning::DEFAULT, stall_limit: STALL_LIMIT };
    (entry.open)(setup).map(drop).map_err(|error| with_version(error.to_string(), entry.since))
}

fn attempt(entry: &Entry) -> Result<(), String> {
    if entry.ends == Ends::SenderOnly {
        return send_one(entry, Link::None, || Ok(()));
    }
    let [near, far] = pair(entry)?;
    let is_pipe = entry.transport == Transport::Pipe;
    send_one(entry, Link::Socket(near.data()), || expect_message(far.data(), is_pipe))
}

/// A lane of the entry's transport, over loopback.
fn pair(entry: &Entry) -> Result<[Lane; 2], String> {
    let options = lane::short_options(STALL_LIMIT);
    lane::pair(entry.transport, entry.loopback(), &options)
        .map_err(|error| format!("over {}: {error}", entry.transport))
}

/// Sends one message; `receive` is called when it was sent.
fn send_one(
    entry: &Entry,
    link: Link<'_>,
    receive: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let setup = Setup { link, shape: SHAPE, tuning: Tuning::DEFAULT, stall_limit: STALL_LIMIT };
    let mut sender = (entry.open)(setup).map_err(|error| error.to_string())?;
    let failed = |what| move |errno: Errno| format!("cannot {what}: {errno}");
    sender.run(&Budget::messages(1, 1)).map_err(failed("send a message"))?;
    receive()?;
    sender.settle().map_err(failed("learn that a message was released"))
}

/// Receives the message and looks at every byte.
fn expect_message(fd: BorrowedFd<'_>, is_pipe: bool) -> Result<(), String> {
    let receive = if is_pipe { socket::read } else { socket::recv };
    let mut message = [0; SHAPE.message_bytes];
    let mut filled = 0;
    while filled < message.len() {
        match receive(fd, &mut message[filled..]) {
            Ok(0) => return Err("the message was cut off".to_owned()),
            Ok(n) => filled += n,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(format!("cannot receive the message: {errno}")),
        }
    }
    let is_right = (0..message.len()).all(|at| message[at] == ring::content(0, at));
    if is_right { Ok(()) } else { Err("the message arrived with other bytes".to_owned()) }
}

#[cfg(test)]
mod tests {
    use iolens_model::host::KernelVersion;

    use super::*;
    use crate::entry::SetupError;
    use crate::registry::{REGISTRY, find};

    #[test]
    fn what_needs_nothing_special_works_here() {
        for id in ["send", "write", "writev", "sendfile", "splice", "memcpy", "null"] {
            let entry = find(id).unwrap();
            assert_eq!((try_here(entry), open_here(entry)), (Ok(()), Ok(())), "{id}");
        }
    }

    #[test]
    fn every_entry_has_an_answer() {
        for entry in REGISTRY {
            if let Err(why) = try_here(entry) {
                assert!(!why.is_empty(), "{}", entry.id);
            }
        }
    }

    #[test]
    fn a_refusal_names_what_was_tried_and_the_kernel_that_has_it() {
        let mut entry = Entry {
            id: "later",
            since: Some(KernelVersion::new(999, 0, 0)),
            open: |_| {
                let tried = "take the bytes along".to_owned();
                Err(SetupError { tried, errno: Errno::EOPNOTSUPP })
            },
            ..*find("send").unwrap()
        };
        let why = try_here(&entry).unwrap_err();
        assert_eq!(open_here(&entry), Err(why.clone()));
        assert!(why.starts_with("cannot take the bytes along: EOPNOTSUPP"), "{why}");
        assert!(why.contains("it needs Linux 999.0, and this is "), "{why}");
        entry.since = Some(KernelVersion::new(2, 0, 0));
        assert!(!try_here(&entry).unwrap_err().contains("needs Linux"));
    }
}
