//! What is known of a way to send, and what a thread's end of it is made from.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use iolens_harness::op::Sender;
pub use iolens_harness::stream::Shape;
use iolens_model::arm::Role;
use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::data_path::{CallsPerMessage, DataPath, Hop, PrimitiveFacts};
use iolens_model::family::{Condition, Family};
use iolens_model::host::KernelVersion;
use iolens_model::transport::Transport;
use iolens_model::tuning::Tuning;
pub use iolens_sys::tcp::SetupError;

use crate::hops::{COPY_IN_FRAME, dropped};

/// Which ends an arm of this primitive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// A connection between the sending and the receiving worker.
    Pair,
    /// The sending worker alone.
    SenderOnly,
}

/// One primitive.
#[derive(Debug)]
pub struct Entry {
    /// Its id: the kernel's own word where there is one.
    pub id: &'static str,
    /// The family it is listed with.
    pub family: Family,
    /// What it needs of a message; `None` where it can send any.
    pub condition: Option<Condition>,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Which ends it has.
    pub ends: Ends,
    /// What its messages travel over.
    pub transport: Transport,
    /// Whether it only shows what a part costs.
    pub control: bool,
    /// Whether `list` shows it only with `--all`.
    pub hidden: bool,
    /// Whether a message is one call, which over UDP is one datagram.
    pub datagrams: bool,
    /// Whether it pins pages, which `RLIMIT_MEMLOCK` limits.
    pub locks_memory: bool,
    /// Descriptors that a thread's end of it opens besides its connection.
    pub descriptors: u32,
    /// The first kernel that has what it needs; `None` where it needs none.
    pub since: Option<KernelVersion>,
    /// The path of the bytes.
    pub hops: &'static [Hop],
    /// System calls of the sender for each message.
    pub calls: CallsPerMessage,
    /// Makes one thread's end of an arm.
    ///
    /// Errors: an option that the arm cannot do without was refused.
    pub open: Open,
}

/// How a thread's end of an arm is made.
pub(crate) type Open = for<'a> fn(Setup<'a>) -> Result<Box<dyn Sender + 'a>, SetupError>;

/// What a thread's end of an arm is made from.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The arm's connection of this thread.
    pub link: Link<'a>,
    /// The messages it sends.
    pub shape: Shape,
    /// In which batches.
    pub tuning: Tuning,
    /// How long it may wait for the kernel to release what it sent.
    pub stall_limit: Duration,
}

/// Where an arm's thread sends to.
#[derive(Debug, Clone, Copy)]
pub enum Link<'a> {
    /// A connected socket.
    Socket(BorrowedFd<'a>),
    /// Nowhere: an arm with [`Ends::SenderOnly`].
    None,
}

impl<'a> Link<'a> {
    /// The socket of an arm whose entry says [`Ends::Pair`].
    pub(crate) fn socket(self) -> BorrowedFd<'a> {
        match self {
            Link::Socket(fd) => fd,
            Link::None => unreachable!("the worker connects every arm that has two ends"),
        }
    }
}

impl Entry {
    /// A primitive that sends each message over TCP with one call, as the oldest kernels could.
    pub(crate) const fn tcp(
        id: &'static str,
        family: Family,
        condition: Option<Condition>,
        summary: &'static str,
        hops: &'static [Hop],
        open: Open,
    ) -> Entry {
        Entry {
            id,
            family,
            condition,
            summary,
            ends: Ends::Pair,
            transport: Transport::Tcp,
            control: false,
            hidden: false,
            datagrams: false,
            locks_memory: false,
            descriptors: 0,
            since: Some(KernelVersion::new(2, 0, 0)),
            hops,
            calls: CallsPerMessage::Fixed(1),
            open,
        }
    }

    /// The path of the bytes, and the calls that cause it.
    pub fn data_path(&self) -> DataPath {
        DataPath { hops: Cow::Borrowed(self.hops), calls: self.calls }
    }

    /// What a run in these topologies keeps of the entry.
    pub fn facts(&self, topologies: &[Topology]) -> PrimitiveFacts {
        let received = topologies.iter().any(|topology| topology.has_receiver());
        PrimitiveFacts {
            id: self.id.to_owned(),
            summary: self.summary.to_owned(),
            family: self.family,
            condition: self.condition,
            transport: self.transport,
            data_path: match received || self.ends == Ends::SenderOnly {
                true => self.data_path(),
                false => dropped(&self.data_path()),
            },
        }
    }

    /// Whether an arm of it can run in a topology at all.
    ///
    /// Errors: why not.
    pub fn fits(&self, topology: Topology) -> Result<(), &'static str> {
        match topology {
            Topology::Loopback | Topology::Veth => Ok(()),
            Topology::Sink if self.ends == Ends::SenderOnly || self.datagrams => Ok(()),
            Topology::Sink if !self.transport.passes_device() => {
                Err("what it sends passes no device, and nobody else is there to take it")
            }
            Topology::Sink => Err("its message is not one UDP datagram"),
            Topology::Host if self.ends == Ends::SenderOnly => Ok(()),
            Topology::Host if !self.transport.passes_device() => {
                Err("what it sends passes no device, and the other end is on another machine")
            }
            Topology::Host if self.makes_frames() => {
                Err("it gives frames of its own making to devices of ours alone")
            }
            Topology::Host => Ok(()),
        }
    }

    /// Whether it sends through a ring of io_uring in batches as a plan asks for
    /// them. Bare loops hand over one send at a time.
    pub fn uses_a_ring(&self) -> bool {
        self.family == Family::IoUring && !self.hidden
    }

    /// Whether it reads completions with calls of their own as a plan asks for it;
    /// from a ring they come along with the results, and bare loops read them when
    /// they need to.
    pub fn reads_completions(&self) -> bool {
        self.data_path().may_copy_late() && self.family != Family::IoUring && !self.hidden
    }

    /// Whether it gives frames to the device, which no protocol of the kernel's
    /// has seen.
    pub fn makes_frames(&self) -> bool {
        self.hops.contains(&COPY_IN_FRAME)
    }

    /// Where it can be tried within this machine: frames with addresses of IPv4's
    /// loopback do not arrive.
    pub fn loopback(&self) -> IpAddr {
        match self.makes_frames() {
            true => Ipv6Addr::LOCALHOST.into(),
            false => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// Whether there is a receiving end to what an arm of it sends.
    pub fn is_received(&self, cell: &Cell) -> bool {
        self.ends == Ends::Pair && cell.has_receiver()
    }

    /// The part an arm of this primitive plays against `baseline`.
    pub fn role(&self, baseline: &str) -> Role {
        Role::against(self.id == baseline, self.control)
    }
}
