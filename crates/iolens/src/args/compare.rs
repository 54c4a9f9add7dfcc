//! `iolens compare`: two stored runs, or two builds that measure one plan in turn.

use std::path::PathBuf;

use iolens_model::units::Nanos;

use crate::args::{Allow, ProgressKind, ResultArgs};

const AFTER: &str = "\
Exit code: 1 if an arm is SLOWER in RUN_B by more than δ, 4 if nothing can be compared, 2 if
the runs have nothing in common

iolens compare before after --markdown
iolens compare last --rerun ../candidate/target/release/iolens";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Compare {
    /// The run to compare with: an id, the beginning of one, a name, or `last`
    #[arg(value_name = "RUN_A")]
    pub(crate) run_a: String,
    /// The run that is judged
    #[arg(value_name = "RUN_B", required_unless_present = "rerun", conflicts_with = "rerun")]
    pub(crate) run_b: Option<String>,
    /// Judge also what each arm takes by itself, although the runs took no turns
    #[arg(long)]
    pub(crate) absolute: bool,
    /// Database of RUN_B, if it is in another one
    #[arg(long, value_name = "FILE", conflicts_with = "rerun")]
    pub(crate) db_b: Option<PathBuf>,
    /// Print the result for a pull request, in the Markdown of GitHub
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print every number below the first screen
    #[arg(short, long, conflicts_with_all = ["json", "markdown"])]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) rerun: Rerun,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

/// Two builds instead of two runs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Two builds")]
pub(crate) struct Rerun {
    /// Measure the plan of RUN_A anew, each trial with this iolens and with that one, and
    /// compare the two new runs, that one's against this one's
    #[arg(id = "rerun", long = "rerun", value_name = "IOLENS")]
    pub(crate) program: Option<PathBuf>,
    /// Begin no pass that would end later [default: twice what RUN_A had]
    #[arg(long, value_name = "TIME", requires = "rerun")]
    pub(crate) budget: Option<Nanos>,
    #[command(flatten)]
    pub(crate) allow: Allow,
    /// Wait for another run to end instead of giving up
    #[arg(long, requires = "rerun")]
    pub(crate) wait: bool,
    /// Progress on stderr: plain (a line per trial), none [default: a bar on a terminal]
    #[arg(long, value_name = "HOW", hide_possible_values = true, requires = "rerun")]
    pub(crate) progress: Option<ProgressKind>,
}
