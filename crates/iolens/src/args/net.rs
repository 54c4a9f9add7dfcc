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
Any program that connects and reads is a client: nothing travels but messages.
`nc 127.0.0.1 5001 </dev/null | wc -c` is one. The clock ends when every client
has read the end of its stream and closed its own end. One that does not close
(some `nc` wait for the end of their own input first) is not waited for: then the
clock ends with its kernel's last acknowledgement, and the result says so.

With one client all of it happens on the main thread, which `strace -c` sees
without -f. Processors that taskset sets are kept unless --cpus names others.";

const RECV_EXAMPLE: &str = "\
A stream has no messages in it: --size says how large they are, to count them.
With one connection all of it happens on the main thread, which `strace -c` sees
without -f. Processors that taskset sets are kept unless --cpus names others.";

/// The ends of a transfer.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = NET_EXAMPLE)]
pub(crate) struct Net {
    #[command(subcommand)]
    pub(crate) end: NetEnd,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NetEnd {
    /// Listen, send to those who connect, and say what that took
    #[command(after_help = SEND_EXAMPLE)]
    Send(NetSend),
    /// Connect, receive to the end, and say what that took
    #[command(after_help = RECV_EXAMPLE)]
    Recv(NetRecv),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NetSend {
    /// How to send, by id (see `iolens list methods`)
    #[arg(value_name = "METHOD", value_parser = values::word)]
    pub(crate) primitive: String,
    /// Where to listen: 127.0.0.1:5001, [::1]:5001, NAME:5001, or :5001 for 127.0.0.1;
    /// port 0 is a free one, which stderr names
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Address,
    /// Size of a message
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Bytes,
    /// Connections to take, each with a thread and a stream of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::connections)]
    pub(crate) clients: u32,
    /// Messages for each client
    #[arg(long, value_name = "N", value_parser = values::messages, conflicts_with = "window")]
    pub(crate) messages: Option<u64>,
    /// Send for this long [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) window: Option<Nanos>,
    /// Fields per message, 1 to 64
    #[arg(long, value_name = "N", default_value = "8", value_parser = values::field_count)]
    pub(crate) fields: u32,
    /// Build the iovec per-message, or once: prebuilt
    #[arg(long, value_name = "WHEN", default_value = "per-message", value_parser = values::one::<Iovec>)]
    pub(crate) iovec: Iovec,
    /// Memory that is sent from: hot, cold
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
    /// How to receive, by id (see `iolens list receivers`)
    #[arg(long, value_name = "ID", default_value = "recv", value_parser = values::word)]
    pub(crate) receiver: String,
    /// Size of a message, to count them
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Option<Bytes>,
    /// Connections to make, each with a thread of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::connections)]
    pub(crate) connections: u32,
    /// Bytes asked of one call, whatever the message size [default: 128KiB]
    #[arg(long, value_name = "SIZE", value_parser = values::recv_size)]
    pub(crate) recv_size: Option<Bytes>,
    /// Fields per message, for a receiver that scatters, 1 to 64
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
    /// Processors to bind the threads to, in turn [default: none is bound]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// TCP congestion control [default: reno]
    #[arg(long, value_name = "NAME", value_parser = values::word, help_heading = MACHINE)]
    pub(crate) congestion: Option<String>,
    /// SO_SNDBUF and SO_RCVBUF [default: 512KiB]
    #[arg(long, value_name = "SIZE", value_parser = values::socket_buffer, help_heading = MACHINE)]
    pub(crate) socket_buffer: Option<Bytes>,
    /// Give up when the other end does not move for this long
    #[arg(long, value_name = "TIME", default_value = "10s",
          help_heading = MACHINE)]
    pub(crate) stall_limit: Nanos,
}
