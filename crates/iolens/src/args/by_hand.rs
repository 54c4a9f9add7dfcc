//! Ends by hand: `iolens net send`, `net recv`, `serve` and `load`.

use clap::Subcommand;
use iolens_engine::server::Close;
use iolens_engine::server::services::Spec;
use iolens_model::axes::{Iovec, WorkingSet};
use iolens_model::load::Arrivals;
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

const SERVE_EXAMPLE: &str = "\
One terminal:      iolens serve epoll_lt --service top2 --listen :7001
Another:           nc 127.0.0.1 7001        and press Enter
A load:            iolens load :7001 --connections 16

A request is a line: a decimal number, perhaps a space and a text. The reply is a line
that begins with the same number; docs/server-protocol.md describes it. Services:
  echo                       the text of the request
  top2[:interval|:cached:T]  the two processes with most CPU time
  payload:BYTES              a line of so many bytes
  burn:MICROSECONDS          so much CPU time
  oracle:TIME[,slow=TIME/N][,stall=TIME@N]
                             sleeps, and says when it began and ended

It ends with Ctrl-C or SIGTERM, and then says what it served. Processors that taskset
sets are kept unless --cpus names others.";

#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_EXAMPLE)]
pub(crate) struct Serve {
    /// The concurrency model, by id (see `iolens list models`)
    #[arg(value_parser = values::word)]
    pub(crate) model: String,
    /// What is done for a request
    #[arg(long, value_name = "SERVICE", default_value = "echo", value_parser = Spec::parse)]
    pub(crate) service: Spec,
    /// Where to listen: 127.0.0.1:7001, [::1]:7001, NAME:7001, or :7001 for 127.0.0.1;
    /// port 0 is a free one, which stderr names
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Address,
    /// Threads, or spare processes, of a model that has a number of them
    /// [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = values::up_to(1024, "threads or processes"))]
    pub(crate) workers: Option<u32>,
    /// Who closes a connection: client, or server (behind its first reply)
    #[arg(long, value_name = "WHO", default_value = "client", value_parser = values::one::<Close>)]
    pub(crate) close: Close,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Processors that its threads and processes may run on [default: all that it may]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// Connections that may wait to be taken; net.core.somaxconn is a limit too
    #[arg(long, value_name = "N", default_value = "65535", value_parser = values::backlog,
          help_heading = MACHINE)]
    pub(crate) backlog: u32,
    /// Give up a client that does not move for this long, in a model where others wait for
    /// it (iterative)
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

In a closed loop a connection sends its next request when it has its reply, so a
server that stalls is asked less. In an open loop (--rate) requests are due by a
schedule that waits for nobody; times are given from when a request was due, with
what it waited for a free connection, and from when it was sent, without.

Processors that taskset sets are kept unless --cpus names others.";

#[derive(Debug, clap::Args)]
#[command(after_help = LOAD_EXAMPLE)]
pub(crate) struct Load {
    /// The server: 127.0.0.1:7001, [::1]:7001, NAME:7001, or :7001 for 127.0.0.1
    #[arg(value_name = "ADDR")]
    pub(crate) address: Address,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = values::server::open_connections)]
    pub(crate) connections: u32,
    /// Requests in flight on each connection, at most
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::depth)]
    pub(crate) in_flight: u32,
    /// A connection for every request
    #[arg(long, conflicts_with = "long")]
    pub(crate) short: bool,
    /// Connections that last [default]
    #[arg(long)]
    pub(crate) long: bool,

    /// Open loop: so many requests per second, whatever becomes of them
    #[arg(long, value_name = "R", value_parser = values::server::rate, help_heading = PACE)]
    pub(crate) rate: Option<f64>,
    /// How requests of an open loop follow each other: poisson, fixed [default: poisson]
    #[arg(long, value_name = "HOW", value_parser = values::one::<Arrivals>, requires = "rate",
          help_heading = PACE)]
    pub(crate) arrivals: Option<Arrivals>,
    /// Closed loop: time between a reply and the next request [default: none]
    #[arg(long, value_name = "TIME", conflicts_with = "rate",
          help_heading = PACE)]
    pub(crate) think: Option<Nanos>,
    /// Requests to make
    #[arg(long, value_name = "N", value_parser = values::messages, conflicts_with = "time",
          help_heading = PACE)]
    pub(crate) requests: Option<u64>,
    /// For how long requests are made [default: 10s; with --print a request per connection]
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(crate) time: Option<Nanos>,
    /// Before, for how long requests are made that do not count
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(crate) warmup: Option<Nanos>,
    /// Over which time connections are made [default: as soon as possible]
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(crate) ramp: Option<Nanos>,
    /// Give a request up so long after it was due
    #[arg(long, value_name = "TIME", default_value = "10s",
          help_heading = PACE)]
    pub(crate) timeout: Nanos,
    /// What random gaps come from [default: another one each time]
    #[arg(long, value_name = "N", help_heading = PACE)]
    pub(crate) seed: Option<u64>,

    /// Check that replies are those of a service: echo, payload:N, burn:µs, top2, oracle
    #[arg(long, value_name = "SERVICE", value_parser = values::word, help_heading = REQUEST)]
    pub(crate) service: Option<String>,
    /// Bytes of text in each request
    #[arg(long, value_name = "N", value_parser = values::server::text, help_heading = REQUEST)]
    pub(crate) payload: Option<Bytes>,
    /// Ask for this path with HTTP/1.1 GET instead
    #[arg(long, value_name = "PATH", value_parser = values::server::http_path,
          conflicts_with_all = ["service", "payload"], help_heading = REQUEST)]
    pub(crate) http: Option<String>,

    /// Print each reply with the number of its connection, with --json as an object a
    /// line; slows down what is measured
    #[arg(long)]
    pub(crate) print: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Threads of the client [default: one, or one per processor of --cpus]
    #[arg(long, value_name = "N",
          value_parser = values::server::load_threads, help_heading = MACHINE)]
    pub(crate) threads: Option<u32>,
    /// Processors to bind the threads to, in turn [default: none is bound]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// Addresses of this machine to connect from, in turn, as in 127.0.0.1-127.0.0.16;
    /// with many short connections that spares the kernel a long search for a free port
    #[arg(long, value_name = "LIST",
          value_parser = values::server::sources, help_heading = MACHINE)]
    pub(crate) sources: Option<List<std::net::IpAddr>>,
}

const PACE: &str = "Pace";
const REQUEST: &str = "Requests";
