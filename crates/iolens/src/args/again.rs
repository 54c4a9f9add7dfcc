//! Commands that measure the plan of a stored run, or compare it: `iolens compare`, `confirm` and
//! `resume`. What stands in a database is data, whoever wrote it, and takes consent.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use iolens_engine::far::Launcher;
use iolens_harness::perf_control::PerfControl;
use iolens_model::units::Nanos;

use crate::args::{MACHINE, ProgressKind, ResultArgs, written_choice};
use crate::peer;

/// What a stored plan may do besides measuring.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Allow {
    /// Let a stored plan do more than measure: external (run the programs it names), file (read the
    /// file it names), dir (write to the folder it names), evict, drop-caches, sysctl
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true)]
    pub(crate) allow: Vec<Permission>,
}

impl Allow {
    pub(crate) fn allows(&self, what: Permission) -> bool {
        self.allow.contains(&what)
    }
}

/// One thing that takes consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Permission {
    External,
    File,
    Dir,
    Evict,
    DropCaches,
    Sysctl,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written_choice(self))
    }
}

const PEER: &str = "The other machine";

/// How it is reached.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Peer {
    /// Command that starts programs on another machine: 'ssh user@host', 'srun -w node2',
    /// 'kubectl exec -i pod --', 'ip netns exec b'; not passed to a shell
    #[arg(long, value_name = "LAUNCHER", value_parser = peer::launcher, help_heading = PEER)]
    pub(crate) peer: Option<Launcher>,
    /// iolens on that machine [default: copied there for the run]
    #[arg(long, value_name = "PATH", requires = "peer", value_parser = peer::far_program,
          help_heading = PEER)]
    pub(crate) peer_binary: Option<String>,
    /// Its address for data [default: the one the launcher reached]
    #[arg(long, value_name = "ADDRESS", requires = "peer", help_heading = PEER)]
    pub(crate) peer_address: Option<IpAddr>,
    /// Accept a different build of iolens there
    #[arg(long, requires = "peer_binary", help_heading = PEER)]
    pub(crate) peer_any_build: bool,
}

const COMPARE_AFTER: &str = "\
Exit codes: 1 a method got slower in RUN_B by more than the threshold · 2 the runs have nothing in
common · 4 nothing can be compared

iolens compare before after --markdown
iolens compare last --rerun ../candidate/target/release/iolens";

#[derive(Debug, clap::Args)]
#[command(after_help = COMPARE_AFTER)]
pub(crate) struct Compare {
    /// Run to compare with: ID, start of one, name, or `last`
    #[arg(value_name = "RUN_A")]
    pub(crate) run_a: String,
    /// The run to judge
    #[arg(value_name = "RUN_B", required_unless_present = "rerun", conflicts_with = "rerun")]
    pub(crate) run_b: Option<String>,
    /// Also compare absolute times, although the runs did not alternate
    #[arg(long)]
    pub(crate) absolute: bool,
    /// Database of RUN_B, if it is not in --db
    #[arg(long, value_name = "FILE", conflicts_with = "rerun")]
    pub(crate) db_b: Option<PathBuf>,
    /// Print the result as GitHub Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print every number
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
    /// Measure RUN_A's plan again, alternating this build of iolens with IOLENS trial by trial, and
    /// compare IOLENS's run with this build's
    #[arg(id = "rerun", long = "rerun", value_name = "IOLENS")]
    pub(crate) program: Option<PathBuf>,
    /// Stop after this long [default: twice RUN_A's budget]
    #[arg(long, value_name = "TIME", requires = "rerun")]
    pub(crate) budget: Option<Nanos>,
    #[command(flatten)]
    pub(crate) allow: Allow,
    /// Wait while another run is measuring, instead of failing
    #[arg(long, requires = "rerun")]
    pub(crate) wait: bool,
    /// bar (on a terminal), passes (elsewhere), plain (every trial) or none
    #[arg(long, value_name = "HOW", hide_possible_values = true, requires = "rerun")]
    pub(crate) progress: Option<ProgressKind>,
}

const CONFIRM_EXAMPLE: &str = "\
iolens confirm last
iolens confirm before --budget 20m

A run can only say that one method overtakes another between two of the sizes it measured. This
measures sizes in between, in fresh trials of just these two methods. If the order changes once,
RUN's screen, report and JSON then name the size with its interval; if not, they say why there is
none. The new trials are stored as runs of their own (`iolens runs`).

Exit codes: 0 something was measured · 4 nothing is usable · 130 interrupted";

/// A run whose bands are open.
#[derive(Debug, clap::Args)]
#[command(after_help = CONFIRM_EXAMPLE)]
pub(crate) struct Confirm {
    /// Run ID, the start of one, a name, or `last`
    pub(crate) run: String,
    /// Time for all crossovers together
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) budget: Nanos,
    /// Wait while another run is measuring, instead of failing
    #[arg(long)]
    pub(crate) wait: bool,
    /// bar (on a terminal), passes (elsewhere), plain (every trial) or none
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = "Results")]
    pub(crate) progress: Option<ProgressKind>,
    #[command(flatten)]
    pub(crate) allow: Allow,
    #[command(flatten)]
    pub(crate) peer: Peer,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

const RESUME_EXAMPLE: &str = "\
iolens resume last
iolens resume before --budget 20m

A run continues with its own plan, on the same machine, boot and build that started it.

Exit codes: as for `iolens run`";

/// A run that was interrupted, killed or stopped by its budget.
#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_EXAMPLE)]
pub(crate) struct Resume {
    /// Run ID, the start of one, a name, or `last`
    pub(crate) run: String,
    /// Stop after this long [default: the run's own budget]
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Nanos>,
    /// Wait while another run is measuring, instead of failing
    #[arg(long)]
    pub(crate) wait: bool,
    /// Exit 1 if anything stays undecided or invalid
    #[arg(long)]
    pub(crate) strict: bool,
    /// bar (on a terminal), passes (elsewhere), plain (every trial) or none
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
