//! `iolens ask`: one message of the user's own.

use iolens_model::axes::Mode;
use iolens_model::cell::NetSetting;
use iolens_model::units::{Bytes, Nanos};

use crate::args::{ProgressKind, ResultArgs};
use crate::values::{self, List, Stand};

const ASK_EXAMPLE: &str = "\
iolens ask --size 12KiB --connections 40
iolens ask --size 12KiB --connections 40 --fields 3 --mode rr
iolens ask --size 1MiB --methods classic,io_uring --fresh

If a stored run of this machine has this very message, the answer comes from it; full runs are
preferred to quick looks, and newer runs to older ones. If none has, a short run measures the
message, a quarter of its size and four times its size, and is stored too.

Each connection has its own thread at both ends. For one thread with many connections, use
`iolens run server --connections 1000`.

Exit codes: 0 answered · 4 nothing is usable · 130 interrupted";

const FROM: &str = "Where the answer comes from";

/// One message.
#[derive(Debug, clap::Args)]
#[command(after_help = ASK_EXAMPLE)]
pub(crate) struct Ask {
    /// Size of the message
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Bytes,
    /// Connections that send at once, each with a thread at both ends
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::asked_connections)]
    pub(crate) connections: u32,
    /// Separately allocated fields in a message
    #[arg(long, value_name = "N", default_value_t = NetSetting::FIELDS,
          value_parser = values::field_count)]
    pub(crate) fields: u32,
    /// stream, or rr (a response to each message before the next)
    #[arg(long, value_name = "WHICH", default_value = "stream", value_parser = values::one::<Mode>)]
    pub(crate) mode: Mode,
    /// loopback, veth, sink (drops everything) or auto (veth if permitted, else loopback)
    #[arg(long, value_name = "WHICH", default_value = "auto",
          value_parser = values::one::<Stand>)]
    pub(crate) network: Stand,
    /// Methods or families (iolens list methods) [default: the classic three and send]
    #[arg(long, value_name = "LIST", value_parser = values::words)]
    pub(crate) methods: Option<List<String>>,

    /// Answer from this run: ID, start of one, name, or `last`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["fresh", "stored"], help_heading = FROM)]
    pub(crate) run: Option<String>,
    /// Measure, even if a stored run has the answer
    #[arg(long, conflicts_with = "stored", help_heading = FROM)]
    pub(crate) fresh: bool,
    /// Never measure: answer from a stored run, or not at all
    #[arg(long, help_heading = FROM)]
    pub(crate) stored: bool,
    /// Stop measuring after this long [default: 40s; 1m for many connections]
    #[arg(long, value_name = "TIME",
          conflicts_with_all = ["run", "stored"], help_heading = FROM)]
    pub(crate) budget: Option<Nanos>,
    /// Wait while another run is measuring, instead of failing
    #[arg(long, help_heading = FROM)]
    pub(crate) wait: bool,

    /// bar (on a terminal), passes (elsewhere), plain (every trial) or none
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = "Results")]
    pub(crate) progress: Option<ProgressKind>,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}
