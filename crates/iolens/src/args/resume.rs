//! `iolens resume`: a stored run that was cut short.

use iolens_engine::perf_control::PerfControl;
use iolens_model::units::Nanos;

use crate::args::{Allow, MACHINE, Peer, ProgressKind, ResultArgs};

const EXAMPLE: &str = "\
iolens resume last
iolens resume before --budget 20m

A run goes on with the plan it began with, on the machine, the boot and the build that began it.

Exit code: as of `iolens run`";

/// A run that was interrupted, killed or stopped by its budget.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Resume {
    /// An id, the beginning of one, a name, or `last`
    pub(crate) run: String,
    /// Stop after this long [default: that of the run]
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Nanos>,
    /// Wait while another run is measuring, instead of failing
    #[arg(long)]
    pub(crate) wait: bool,
    /// Exit 1 if anything stays undecided or invalid
    #[arg(long)]
    pub(crate) strict: bool,
    /// bar, plain (a line per trial) or none [default: bar on a terminal]
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub(crate) progress: Option<ProgressKind>,
    /// Print everything, as iolens show does
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) allow: Allow,
    #[command(flatten)]
    pub(crate) peer: Peer,
    /// Let perf count only the measured slices
    #[arg(long, value_name = "fifo:CTL,ACK", help_heading = MACHINE)]
    pub(crate) perf_control: Option<PerfControl>,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}
