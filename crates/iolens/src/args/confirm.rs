//! `iolens confirm`: the crossovers of a stored run, looked at anew.

use iolens_model::units::Nanos;

use crate::args::{Allow, Peer, ProgressKind, ResultArgs};

const EXAMPLE: &str = "\
iolens confirm last
iolens confirm before --budget 20m

A run says between which two of its sizes one way to send overtakes another: a band. This
measures sizes inside each band in fresh trials, the two ways against each other once more, and
analyses these alone. Where the order changes once, the sentences, the page and the JSON of RUN
name the point with its interval; where it does not, they say why there is none. Each curve's
trials are a stored run of their own (`iolens runs`).

Exit code: 0 if something was measured, 4 if nothing is usable, 130 if interrupted";

/// A run whose bands are open.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Confirm {
    /// An id, the beginning of one, a name, or `last`
    pub(crate) run: String,
    /// Time for all curves together
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) budget: Nanos,
    /// Wait for another run to end instead of giving up
    #[arg(long)]
    pub(crate) wait: bool,
    /// As of `run`
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = "Results")]
    pub(crate) progress: Option<ProgressKind>,
    #[command(flatten)]
    pub(crate) allow: Allow,
    #[command(flatten)]
    pub(crate) peer: Peer,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}
