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

A run that is stored answers if it has this very message on this machine, one with verdicts
before a first look, a later one before an earlier. Where there is none, a short run measures
the message, a quarter of it and four times as much; it is stored like any other.

Each connection has a thread of its own at either end. One thread with many connections is
a server: `iolens run server --connections 1000`.

Exit code: 0 if there is an answer, 4 if nothing is usable, 130 if interrupted";

const FROM: &str = "Where the answer comes from";

/// One message.
#[derive(Debug, clap::Args)]
#[command(after_help = ASK_EXAMPLE)]
pub(crate) struct Ask {
    /// Size of the message
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Bytes,
    /// Connections that send at the same time, each with a thread at either end
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::asked_connections)]
    pub(crate) connections: u32,
    /// Fields that the message is made of, each allocated on its own
    #[arg(long, value_name = "N", default_value_t = NetSetting::FIELDS,
          value_parser = values::field_count)]
    pub(crate) fields: u32,
    /// stream, or rr: a response to each message before the next
    #[arg(long, value_name = "WHICH", default_value = "stream", value_parser = values::one::<Mode>)]
    pub(crate) mode: Mode,
    /// loopback, veth, sink (drops everything), or auto: veth if permitted, else loopback
    #[arg(long, value_name = "WHICH", default_value = "auto",
          value_parser = values::one::<Stand>)]
    pub(crate) network: Stand,
    /// Methods or families (iolens list methods) [default: the classic three and send]
    #[arg(long, value_name = "LIST", value_parser = values::words)]
    pub(crate) methods: Option<List<String>>,

    /// Answer from this run: an id, its beginning, a name, or `last`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["fresh", "stored"], help_heading = FROM)]
    pub(crate) run: Option<String>,
    /// Measure, whatever is stored
    #[arg(long, conflicts_with = "stored", help_heading = FROM)]
    pub(crate) fresh: bool,
    /// Never measure: answer from a stored run or not at all
    #[arg(long, help_heading = FROM)]
    pub(crate) stored: bool,
    /// Begin no pass of a short run that would end later [default: 40s, or 1m of many connections]
    #[arg(long, value_name = "TIME",
          conflicts_with_all = ["run", "stored"], help_heading = FROM)]
    pub(crate) budget: Option<Nanos>,
    /// Wait for another run to end instead of giving up
    #[arg(long, help_heading = FROM)]
    pub(crate) wait: bool,

    /// As of `run`
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = "Results")]
    pub(crate) progress: Option<ProgressKind>,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}
