//! Rings of io_uring: whether a process may have one, one that sends the
//! messages of a [`MessageRing`], those that receive, and one that reads a file; see io_uring(7),
//! io_uring_setup(2).
//!
//! # Safety
//! The parameters of the bare call live on this stack and are as large as the
//! kernel's struct; the descriptor is new and nobody else's.

#![expect(unsafe_code, reason = "see the safety note above")]

mod buffers;
mod nops;
mod reads;
mod receives;
mod ring;
mod sends;
mod serves;
mod setup;
#[cfg(test)]
mod tests;
mod transfers;

use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

pub use buffers::{BUFFERS_MAX, Buffers};
pub use nops::NopRing;
pub use reads::{ReadRing, ReadWishes};
pub use receives::{Arrived, ReceiveRings};
pub use sends::{Completed, Cqe, PlainRing, SendRing, Wishes};
pub use serves::{Completion, Filled, ServerRing};
pub use setup::SetupFlags;
pub use transfers::{Ended, Request, TransferRing, Way};

use crate::errno::Errno;
#[cfg(doc)]
use crate::ring::MessageRing;

/// `struct io_uring_params` of include/uapi/linux/io_uring.h: 120 bytes, all
/// zero for a ring without wishes.
const PARAMS_WORDS: usize = 30;

/// Makes the smallest ring and throws it away.
///
/// Errors: `EPERM` where `kernel.io_uring_disabled` or a seccomp filter
/// forbids it, `ENOSYS` where the kernel or a filter has no such call, `ENOMEM`
/// beyond `RLIMIT_MEMLOCK` before Linux 5.12.
pub fn try_ring() -> Result<(), Errno> {
    let mut params = [0u32; PARAMS_WORDS];
    // SAFETY: the kernel reads and writes 120 bytes, which live on this stack.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, params.as_mut_ptr()) };
    let Ok(fd) = i32::try_from(fd) else { return Err(Errno::EBADMSG) };
    if fd < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// A way to send through a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// `IORING_OP_SEND`: one buffer.
    Send,
    /// `IORING_OP_SENDMSG`: an iovec.
    Sendmsg,
    /// `IORING_OP_SEND_ZC`: one buffer, not copied.
    SendZc,
    /// `IORING_OP_SEND_ZC` from a registered buffer (`IORING_RECVSEND_FIXED_BUF`).
    SendZcFixed,
    /// `IORING_OP_SENDMSG_ZC`: an iovec, not copied.
    SendmsgZc,
}

impl Opcode {
    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Opcode::Send => "IORING_OP_SEND",
            Opcode::Sendmsg => "IORING_OP_SENDMSG",
            Opcode::SendZc | Opcode::SendZcFixed => "IORING_OP_SEND_ZC",
            Opcode::SendmsgZc => "IORING_OP_SENDMSG_ZC",
        }
    }

    /// The first Linux that has it.
    pub fn since(self) -> &'static str {
        match self {
            Opcode::Sendmsg => "5.3",
            Opcode::Send => "5.6",
            Opcode::SendZc | Opcode::SendZcFixed => "6.0",
            Opcode::SendmsgZc => "6.1",
        }
    }

    /// Whether the kernel takes the caller's pages instead of copying them, and
    /// says when it has released them.
    #[inline]
    pub const fn is_zerocopy(self) -> bool {
        matches!(self, Opcode::SendZc | Opcode::SendZcFixed | Opcode::SendmsgZc)
    }

    /// Whether it takes an iovec, and not one buffer.
    #[inline]
    pub const fn takes_iovec(self) -> bool {
        matches!(self, Opcode::Sendmsg | Opcode::SendmsgZc)
    }
}

/// What a ring sends with: an [`Opcode`] that is known when it runs, or a type
/// that stands for one, so that the loop around it is compiled for that one.
pub trait Operation: Copy + Send + 'static {
    /// The way to send.
    fn opcode(self) -> Opcode;
}

impl Operation for Opcode {
    #[inline]
    fn opcode(self) -> Opcode {
        self
    }
}

/// Declares a type for each way to send.
macro_rules! operations {
    ($($name:ident,)+) => {
        /// Ways to send that are known when the program is compiled.
        pub mod operation {
            $(
                #[doc = concat!("[`Opcode::", stringify!($name), "`](super::Opcode).")]
                #[derive(Debug, Clone, Copy, PartialEq, Eq)]
                pub struct $name;

                impl super::Operation for $name {
                    #[inline]
                    fn opcode(self) -> super::Opcode {
                        super::Opcode::$name
                    }
                }
            )+
        }
    };
}

operations! { Send, Sendmsg, SendZc, SendZcFixed, SendmsgZc, }

/// Whether the kernel has an operation, by its number in
/// include/uapi/linux/io_uring.h.
///
/// Errors: why there is no ring to ask.
pub fn has_operation(number: u8) -> Result<bool, Errno> {
    let uring = io_uring::IoUring::new(2)?;
    let mut probe = io_uring::Probe::new();
    uring.submitter().register_probe(&mut probe)?;
    Ok(probe.is_supported(number))
}

/// Buffers that the kernel registers at most for one ring:
/// `IORING_MAX_REG_BUFFERS` of io_uring/rsrc.h.
pub const REGISTERED_MAX: usize = 1 << 14;

/// Why there is no ring that can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// io_uring_setup(2) was refused.
    Setup(Errno),
    /// The kernel makes rings, but none with these flags.
    Flags(SetupFlags),
    /// There is no memory for the buffers.
    Memory(Errno),
    /// `IORING_REGISTER_PROBE` was refused, or a request that only asks.
    Probe(Errno),
    /// The kernel has no such operation.
    Opcode(Opcode),
    /// There are more messages than buffers can be registered,
    /// [`REGISTERED_MAX`].
    TooMany(usize),
    /// `IORING_REGISTER_PBUF_RING` was refused.
    BufferRing {
        /// Buffers that it was to have.
        buffers: usize,
        /// What the system said.
        errno: Errno,
    },
    /// `IORING_REGISTER_BUFFERS` was refused.
    Register {
        /// Buffers that were to be registered.
        buffers: usize,
        /// Bytes of each.
        buffer_bytes: usize,
        /// What the system said.
        errno: Errno,
    },
}

/// How long a ring that is dropped waits for the end of what is under way.
const LAST_WAIT: Duration = Duration::from_secs(1);
