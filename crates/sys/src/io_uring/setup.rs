//! Making a ring: its flags and its size; see io_uring_setup(2).

use std::fmt;
use std::ops::BitOr;

use io_uring::IoUring;

use super::OpenError;
use crate::clock;
use crate::errno::Errno;

/// How long the kernel's thread that takes requests looks for more before it
/// sleeps, in ms, the shortest that can be asked for: longer than a thread of ours
/// takes to look at most blocks, and soon over where no more is to come.
const POLL_IDLE_MS: u32 = 1;

/// Entries of the smallest ring.
pub(super) const SUBMISSIONS_MIN: u32 = 2;

/// Flags of a ring, numbered as in include/uapi/linux/io_uring.h; the two at the upper end are
/// flags of its requests and of its calls there, and what has to be registered for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SetupFlags(u32);

impl SetupFlags {
    /// A thread of the kernel's takes the requests.
    pub const SQPOLL: SetupFlags = SetupFlags(1 << 1);
    /// Completions wait until the thread enters the kernel anyway.
    pub const COOP_TASKRUN: SetupFlags = SetupFlags(1 << 8);
    /// One thread alone hands requests over.
    pub const SINGLE_ISSUER: SetupFlags = SetupFlags(1 << 12);
    /// Completions wait until the thread asks for them.
    pub const DEFER_TASKRUN: SetupFlags = SetupFlags(1 << 13);
    /// The socket is a registered file.
    pub const FIXED_FILE: SetupFlags = SetupFlags(1 << 30);
    /// The ring's own descriptor is registered by the thread that opens it.
    pub const REGISTERED_RING: SetupFlags = SetupFlags(1 << 31);
    /// Those of programs with one thread for each ring.
    pub const ONE_THREAD: SetupFlags =
        SetupFlags(SetupFlags::SINGLE_ISSUER.0 | SetupFlags::DEFER_TASKRUN.0);

    /// Each with the kernel's name and the first Linux that has it for every
    /// user, in the order of those.
    const NAMED: [(SetupFlags, &'static str, &'static str); 6] = [
        (SetupFlags::FIXED_FILE, "IOSQE_FIXED_FILE", "5.1"),
        (SetupFlags::SQPOLL, "IORING_SETUP_SQPOLL", "5.11"),
        (SetupFlags::REGISTERED_RING, "IORING_ENTER_REGISTERED_RING", "5.18"),
        (SetupFlags::COOP_TASKRUN, "IORING_SETUP_COOP_TASKRUN", "5.19"),
        (SetupFlags::SINGLE_ISSUER, "IORING_SETUP_SINGLE_ISSUER", "6.0"),
        (SetupFlags::DEFER_TASKRUN, "IORING_SETUP_DEFER_TASKRUN", "6.1"),
    ];

    /// Those of the kernel's numbers that have a name here.
    pub fn from_bits(bits: u32) -> SetupFlags {
        SetupFlags(bits & SetupFlags::NAMED.iter().fold(0, |all, (flag, ..)| all | flag.0))
    }

    /// Whether all of `other` are among them.
    #[inline]
    pub const fn contains(self, other: SetupFlags) -> bool {
        self.0 & other.0 == other.0
    }

    fn own(self) -> impl DoubleEndedIterator<Item = (&'static str, &'static str)> {
        let own = SetupFlags::NAMED.into_iter().filter(move |(flag, ..)| self.contains(*flag));
        own.map(|(_, name, since)| (name, since))
    }

    /// The first Linux that has all of them.
    pub fn since(self) -> &'static str {
        self.own().next_back().map_or("5.1", |(_, since)| since)
    }
}

impl BitOr for SetupFlags {
    type Output = SetupFlags;

    fn bitor(self, other: SetupFlags) -> SetupFlags {
        SetupFlags(self.0 | other.0)
    }
}

/// The kernel's names, with `|` between them; `0` without any.
impl fmt::Display for SetupFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.own().map(|(name, _)| name).collect();
        f.write_str(if names.is_empty() { "0" } else { "" })?;
        f.write_str(&names.join("|"))
    }
}

impl fmt::Debug for SetupFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A ring that `depth` requests can be handed over to at once, with room for
/// `completions` that may come together, and for those of what is handed over
/// meanwhile.
pub(super) fn setup(depth: u32, completions: u32, flags: SetupFlags) -> Result<IoUring, OpenError> {
    let is_polled = flags.contains(SetupFlags::SQPOLL);
    // Completions of a batch can be seen before the kernel's thread has said that its
    // entries are free (`io_submit_sqes` ends with `io_commit_sqring`): then those that
    // follow stand beside them. Those after these are of a later batch.
    let entries = if is_polled { 2 * depth } else { depth };
    let submissions = entries.next_power_of_two().max(SUBMISSIONS_MIN);
    let mut builder = IoUring::builder();
    if is_polled {
        builder.setup_sqpoll(POLL_IDLE_MS);
    }
    if flags.contains(SetupFlags::COOP_TASKRUN) {
        builder.setup_coop_taskrun();
    }
    if flags.contains(SetupFlags::SINGLE_ISSUER) {
        builder.setup_single_issuer();
    }
    if flags.contains(SetupFlags::DEFER_TASKRUN) {
        builder.setup_defer_taskrun();
    }
    builder.setup_cqsize((completions + 2 * submissions).next_power_of_two());
    builder.build(submissions).map_err(|e| refused(flags, e.into()))
}

/// Why there is no ring with these flags.
pub(super) fn refused(flags: SetupFlags, errno: Errno) -> OpenError {
    match errno {
        // The kernel does not know a flag, or not beside another.
        Errno::EINVAL => OpenError::Flags(flags),
        errno => OpenError::Setup(errno),
    }
}

/// Waits until the kernel's thread that takes requests looks for none any more; with
/// nothing under way that is soon.
///
/// Errors: `ETIMEDOUT` when it still does after a second, which is a thousand times as
/// long as it was asked to.
pub(super) fn await_poll_thread(uring: &mut IoUring) -> Result<(), Errno> {
    let until_ns = clock::monotonic_ns() + 1_000_000_000;
    while !uring.submission().need_wakeup() {
        if clock::monotonic_ns() > until_ns {
            return Err(Errno::ETIMEDOUT);
        }
        // It may want this very CPU.
        std::thread::yield_now();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn flags_have_the_names_and_the_version_of_the_kernel() {
        let both = SetupFlags::ONE_THREAD;
        assert_eq!(both.to_string(), "IORING_SETUP_SINGLE_ISSUER|IORING_SETUP_DEFER_TASKRUN");
        assert_eq!((both.since(), SetupFlags::SQPOLL.since()), ("6.1", "5.11"));
        let none = SetupFlags::from_bits(1 << 29);
        assert_eq!((none.to_string().as_str(), none.since()), ("0", "5.1"));
    }

    #[test]
    fn what_does_not_go_together_is_told_with_its_flags() {
        for flags in [
            SetupFlags::DEFER_TASKRUN,
            SetupFlags::SQPOLL | SetupFlags::COOP_TASKRUN,
            SetupFlags::SQPOLL | SetupFlags::ONE_THREAD,
        ] {
            match setup(1, 1, flags) {
                Err(why @ OpenError::Setup(_)) => skip::note(
                    "io_uring::setup::tests::what_does_not_go_together_is_told_with_its_flags",
                    &format!("{why:?}"),
                ),
                refused => assert_eq!(refused.err(), Some(OpenError::Flags(flags))),
            }
        }
    }
}
