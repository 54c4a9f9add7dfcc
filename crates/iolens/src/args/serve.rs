//! `iolens serve`: a server by hand.

use iolens_engine::server::Close;
use iolens_engine::server::services::Spec;
use iolens_model::units::Nanos;

use crate::address::Address;
use crate::args::MACHINE;
use crate::values::{self, List};

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
