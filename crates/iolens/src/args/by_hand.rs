//! Ends by hand: `iolens net send`, `net recv`, `serve` and `load`.

use clap::Subcommand;
use iolens_model::axes::{Iovec, WorkingSet};
use iolens_model::load::Arrivals;
use iolens_model::units::{Bytes, Nanos};
use iolens_server::Close;
use iolens_server::services::Spec;

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

const SERVE_EXAMPLE: &str = "\
One terminal:      iolens serve epoll_lt --service top2 --listen :7001
Another:           nc 127.0.0.1 7001        and press Enter
Generate load:     iolens load :7001 --connections 16

A request is one line: a decimal number, optionally followed by a space and text. The reply
is a line that starts with the same number (docs/server-protocol.md). Services:
  echo                       return the text of the request
  top2[:interval|:cached:T]  name the two processes with the most CPU time
  payload:BYTES              return a line of this many bytes
  burn:MICROSECONDS          use this much CPU time
  oracle:TIME[,slow=TIME/N][,stall=TIME@N]
                             sleep, and say when the sleep began and ended

Stop it with Ctrl-C or SIGTERM; it then prints what it served. CPUs set with taskset are
kept unless --cpus names others.";

#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_EXAMPLE)]
pub(crate) struct Serve {
    /// Concurrency model (see `iolens list models`)
    #[arg(value_parser = values::word)]
    pub(crate) model: String,
    /// What the server does for a request
    #[arg(long, value_name = "SERVICE", default_value = "echo", value_parser = Spec::parse)]
    pub(crate) service: Spec,
    /// Where to listen: 127.0.0.1:7001, [::1]:7001, NAME:7001, or :7001 for 127.0.0.1; port 0 picks
    /// a free port and prints it to stderr
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Address,
    /// Threads or spare processes, for models with a fixed number [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = values::up_to(1024, "threads or processes"))]
    pub(crate) workers: Option<u32>,
    /// Who closes a connection: client, or server (after its first reply)
    #[arg(long, value_name = "WHO", default_value = "client", value_parser = values::one::<Close>)]
    pub(crate) close: Close,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// CPUs the server may use [default: all available]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// Connections that may wait to be accepted; net.core.somaxconn also limits this
    #[arg(long, value_name = "N", default_value = "65535", value_parser = values::backlog,
          help_heading = MACHINE)]
    pub(crate) backlog: u32,
    /// Drop a client that stalls for this long, in models where others wait for it (iterative)
    #[arg(long, value_name = "TIME", default_value = "10s",
          help_heading = MACHINE)]
    pub(crate) stall_limit: Nanos,
}

const LOAD_EXAMPLE: &str = "\
One terminal:    iolens serve epoll_lt --service echo --listen :7001
Closed loop:     iolens load :7001 --connections 64 --service echo --payload 100
Open loop:       iolens load :7001 --connections 64 --rate 20000
See replies:     iolens load :7001 --connections 3 --print
Another server:  iolens load :80 --connections 64 --http /

In a closed loop, a connection sends its next request after its reply, so a server
that stalls gets fewer requests. In an open loop (--rate), requests follow a fixed
schedule. Times are then counted twice: from when a request was due, which includes
waiting for a free connection, and from when it was sent.

CPUs set with taskset are kept unless --cpus names others.";

#[derive(Debug, clap::Args)]
#[command(after_help = LOAD_EXAMPLE)]
pub(crate) struct Load {
    /// The server: 127.0.0.1:7001, [::1]:7001, NAME:7001, or :7001 for 127.0.0.1
    #[arg(value_name = "ADDR")]
    pub(crate) address: Address,
    /// Concurrent connections
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = values::server::open_connections)]
    pub(crate) connections: u32,
    /// Most requests in flight per connection
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::depth)]
    pub(crate) in_flight: u32,
    /// One request per connection
    #[arg(long, conflicts_with = "long")]
    pub(crate) short: bool,
    /// Keep-alive connections [default]
    #[arg(long)]
    pub(crate) long: bool,

    /// Open loop: this many requests per second, replies or not
    #[arg(long, value_name = "R", value_parser = values::server::rate, help_heading = PACE)]
    pub(crate) rate: Option<f64>,
    /// Open loop: spacing of requests, poisson or fixed [default: poisson]
    #[arg(long, value_name = "HOW", value_parser = values::one::<Arrivals>, requires = "rate",
          help_heading = PACE)]
    pub(crate) arrivals: Option<Arrivals>,
    /// Closed loop: pause between a reply and the next request [default: none]
    #[arg(long, value_name = "TIME", conflicts_with = "rate",
          help_heading = PACE)]
    pub(crate) think: Option<Nanos>,
    /// Stop after this many requests
    #[arg(long, value_name = "N", value_parser = values::messages, conflicts_with = "time",
          help_heading = PACE)]
    pub(crate) requests: Option<u64>,
    /// Stop after this long [default: 10s; with --print, one request per connection]
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(crate) time: Option<Nanos>,
    /// Send uncounted requests for this long first
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(crate) warmup: Option<Nanos>,
    /// Open the connections over this long [default: as fast as possible]
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(crate) ramp: Option<Nanos>,
    /// Give up on a request this long after it was due, at most 60s
    #[arg(long, value_name = "TIME", default_value = "10s",
          help_heading = PACE)]
    pub(crate) timeout: Nanos,
    /// Seed of random gaps [default: new each time]
    #[arg(long, value_name = "N", help_heading = PACE)]
    pub(crate) seed: Option<u64>,

    /// Check replies against a service: echo, payload:N, burn:µs, top2, oracle
    #[arg(long, value_name = "SERVICE", value_parser = values::word, help_heading = REQUEST)]
    pub(crate) service: Option<String>,
    /// Bytes of text per request
    #[arg(long, value_name = "N", value_parser = values::server::text, help_heading = REQUEST)]
    pub(crate) payload: Option<Bytes>,
    /// Send HTTP/1.1 GET requests for this path instead
    #[arg(long, value_name = "PATH", value_parser = values::server::http_path,
          conflicts_with_all = ["service", "payload"], help_heading = REQUEST)]
    pub(crate) http: Option<String>,

    /// Print each reply with its connection and request number, with --json as one object per line;
    /// this slows down what is measured
    #[arg(long)]
    pub(crate) print: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Client threads [default: one, or one per CPU in --cpus]
    #[arg(long, value_name = "N",
          value_parser = values::server::load_threads, help_heading = MACHINE)]
    pub(crate) threads: Option<u32>,
    /// Bind threads to these CPUs, in turn [default: not bound]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// Local addresses to connect from, in turn, such as 127.0.0.1-127.0.0.16; with many short
    /// connections this keeps free ports easy to find
    #[arg(long, value_name = "LIST",
          value_parser = values::server::sources, help_heading = MACHINE)]
    pub(crate) sources: Option<List<std::net::IpAddr>>,
}

const PACE: &str = "Pace";
const REQUEST: &str = "Requests";
