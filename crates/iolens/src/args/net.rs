//! `iolens net`: one transfer by hand.

use clap::Subcommand;
use iolens_model::axes::{Iovec, WorkingSet};
use iolens_model::units::{Bytes, Nanos};

use crate::address::Address;
use crate::args::MACHINE;
use crate::values::{self, List};

/// What a user of both ends does.
const NET_EXAMPLE: &str = "\
One terminal:      perf stat iolens net send sendmsg_iov --listen :5001 --size 64KiB
The other:         iolens net recv :5001 --size 64KiB
Without iolens:    nc 127.0.0.1 5001 </dev/null | wc -c";

const SEND_EXAMPLE: &str = "\
Any program that connects and reads can be a client, such as
`nc 127.0.0.1 5001 </dev/null | wc -c`: only messages are sent. The clock stops
when every client has read to the end and closed its connection. A client that
does not close (some versions of `nc` wait for their own input first) is not
waited for: the clock then stops at its kernel's last acknowledgement, and the
result says so.

With one client everything runs on the main thread, so `strace -c` works without
-f. CPUs set with taskset are kept unless --cpus names others.";

const RECV_EXAMPLE: &str = "\
A TCP stream does not mark messages; give --size to count them.
With one connection everything runs on the main thread, so `strace -c` works
without -f. CPUs set with taskset are kept unless --cpus names others.";

/// The ends of a transfer.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = NET_EXAMPLE)]
pub(crate) struct Net {
    #[command(subcommand)]
    pub(crate) end: NetEnd,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NetEnd {
    /// Listen, send to each client that connects, and print what it cost
    #[command(after_help = SEND_EXAMPLE)]
    Send(NetSend),
    /// Connect, receive to the end, and print what it cost
    #[command(after_help = RECV_EXAMPLE)]
    Recv(NetRecv),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NetSend {
    /// How to send (see `iolens list methods`)
    #[arg(value_name = "METHOD", value_parser = values::word)]
    pub(crate) primitive: String,
    /// Where to listen: 127.0.0.1:5001, [::1]:5001, NAME:5001, or :5001 for 127.0.0.1; port 0 picks
    /// a free port and prints it to stderr
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Address,
    /// Message size
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Bytes,
    /// Clients to wait for, each with its own thread and stream
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::connections)]
    pub(crate) clients: u32,
    /// Messages to send to each client
    #[arg(long, value_name = "N", value_parser = values::messages, conflicts_with = "window")]
    pub(crate) messages: Option<u64>,
    /// Send for this long [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) window: Option<Nanos>,
    /// Fields per message, 1 to 64
    #[arg(long, value_name = "N", default_value = "8", value_parser = values::field_count)]
    pub(crate) fields: u32,
    /// When to build the iovec: per-message, or prebuilt (once)
    #[arg(long, value_name = "WHEN", default_value = "per-message", value_parser = values::one::<Iovec>)]
    pub(crate) iovec: Iovec,
    /// Memory to send from: hot (fits L2) or cold (exceeds the last-level cache)
    #[arg(long, value_name = "HOW", default_value = "hot", value_parser = values::one::<WorkingSet>)]
    pub(crate) send_memory: WorkingSet,
    #[command(flatten)]
    pub(crate) both: BothEnds,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NetRecv {
    /// Where `net send` listens: 127.0.0.1:5001, [::1]:5001, NAME:5001, or :5001 for 127.0.0.1
    #[arg(value_name = "ADDR")]
    pub(crate) address: Address,
    /// How to receive (see `iolens list receivers`)
    #[arg(long, value_name = "ID", default_value = "recv", value_parser = values::word)]
    pub(crate) receiver: String,
    /// Message size, to count messages
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Option<Bytes>,
    /// Connections to open, each with its own thread
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::connections)]
    pub(crate) connections: u32,
    /// Bytes to ask for per call, whatever the message size [default: 128KiB]
    #[arg(long, value_name = "SIZE", value_parser = values::recv_size)]
    pub(crate) recv_size: Option<Bytes>,
    /// Fields per message for scattering receivers, 1 to 64
    #[arg(long, value_name = "N", default_value = "8", value_parser = values::field_count)]
    pub(crate) fields: u32,
    #[command(flatten)]
    pub(crate) both: BothEnds,
}

/// What both ends have.
#[derive(Debug, clap::Args)]
pub(crate) struct BothEnds {
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Bind threads to these CPUs, in turn [default: not bound]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// TCP congestion control [default: reno]
    #[arg(long, value_name = "NAME", value_parser = values::word, help_heading = MACHINE)]
    pub(crate) congestion: Option<String>,
    /// SO_SNDBUF and SO_RCVBUF [default: 512KiB]
    #[arg(long, value_name = "SIZE", value_parser = values::socket_buffer, help_heading = MACHINE)]
    pub(crate) socket_buffer: Option<Bytes>,
    /// Give up when the other end stalls for this long
    #[arg(long, value_name = "TIME", default_value = "10s",
          help_heading = MACHINE)]
    pub(crate) stall_limit: Nanos,
}
