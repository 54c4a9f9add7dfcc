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

In a closed loop a connection sends its next request when it has its reply, so a
server that stalls is asked less. In an open loop (--rate) requests are due by a
schedule that waits for nobody; times are given from when a request was due, with
what it waited for a free connection, and from when it was sent, without.

Processors that taskset sets are kept unless --cpus names others.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Load {
    /// The server: 127.0.0.1:7001, [::1]:7001, NAME:7001, or :7001 for 127.0.0.1
    #[arg(value_name = "ADDR")]
    pub(crate) address: Address,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::load::connections)]
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
    #[arg(long, value_name = "R", value_parser = values::load::rate, help_heading = PACE)]
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
    #[arg(long, value_name = "N", value_parser = values::load::text, help_heading = REQUEST)]
    pub(crate) payload: Option<Bytes>,
    /// Ask for this path with HTTP/1.1 GET instead
    #[arg(long, value_name = "PATH", value_parser = values::load::http_path,
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
    #[arg(long, value_name = "N", value_parser = values::load::threads, help_heading = MACHINE)]
    pub(crate) threads: Option<u32>,
    /// Processors to bind the threads to, in turn [default: none is bound]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MACHINE)]
    pub(crate) cpus: Option<List<u32>>,
    /// Addresses of this machine to connect from, in turn, as in 127.0.0.1-127.0.0.16;
    /// with many short connections that spares the kernel a long search for a free port
    #[arg(long, value_name = "LIST", value_parser = values::load::sources, help_heading = MACHINE)]
    pub(crate) sources: Option<List<std::net::IpAddr>>,
}

const PACE: &str = "Pace";
const REQUEST: &str = "Requests";
