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
