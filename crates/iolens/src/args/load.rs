//! `iolens load`: load on a server.

use iolens_model::load::Arrivals;
use iolens_model::units::{Bytes, Nanos};

use crate::address::Address;
use crate::args::MACHINE;
use crate::values::{self, List};

const EXAMPLE: &str = "\
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
#[command(after_help = EXAMPLE)]
pub(crate) struct Load {
    /// The server: 127.0.0.1:7001, [::1]:7001, NAME:7001, or :7001 for 127.0.0.1
    #[arg(value_name = "ADDR")]
    pub(crate) address: Address,
    /// Concurrent connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::load::connections)]
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
    #[arg(long, value_name = "R", value_parser = values::load::rate, help_heading = PACE)]
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
    /// Give up on a request this long after it was due
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
    #[arg(long, value_name = "N", value_parser = values::load::text, help_heading = REQUEST)]
    pub(crate) payload: Option<Bytes>,
    /// Send HTTP/1.1 GET requests for this path instead
    #[arg(long, value_name = "PATH", value_parser = values::load::http_path,
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
    #[arg(long, value_name = "N", value_parser = values::load::threads, help_heading = MACHINE)]
    pub(crate) threads: Option<u32>,
    /// Bind threads to these CPUs, in turn [default: not bound]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// Local addresses to connect from, in turn, such as 127.0.0.1-127.0.0.16; with many short
    /// connections this keeps free ports easy to find
    #[arg(long, value_name = "LIST", value_parser = values::load::sources, help_heading = MACHINE)]
    pub(crate) sources: Option<List<std::net::IpAddr>>,
}

const PACE: &str = "Pace";
const REQUEST: &str = "Requests";
