//! The command line as typed. Parsing checks the form of values and nothing
//! else; what they mean together is decided in `request`.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand, ValueEnum};
use iolens_model::parse;

use crate::wishes::Wishes;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Measures what it costs, on this machine, to move bytes across the
/// user/kernel boundary: which way is cheapest, from which size on, how sure.
#[derive(Debug, Parser)]
#[command(name = "iolens", version = iolens_engine::worker::protocol::BUILD, styles = STYLES)]
#[command(arg_required_else_help = true, subcommand_required = true)]
#[command(after_help = "Start with: iolens run net --quick")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure: run a study or a plan and answer from it
    Run(Box<Run>),
    /// Show what exists: studies, primitives, topologies, metrics
    List(List),
    /// Show what can be measured here, what not, and what would change that
    Doctor(Doctor),
    /// Show the stored runs
    Runs(Runs),
    /// Show a stored run, or one cell of it with every trial
    Show(Show),
    /// Write the page or the figures of a stored run
    Report(Report),
    /// Write the numbers of a stored run as CSV or JSON
    Export(Export),
    /// One end of a trial; started by iolens itself
    #[command(hide = true)]
    Worker,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// `net`, a plan by name (classic-48, net-rr, …), or the path of a plan file
    #[arg(value_name = "net|PLAN|FILE.toml", required_unless_present = "resume")]
    pub(crate) what: Option<String>,

    #[command(flatten)]
    pub(crate) wishes: Wishes,

    /// Go on with a stored run that was cut short: an id, its beginning, or `last`
    #[arg(long, value_name = "RUN", conflicts_with = "what")]
    pub(crate) resume: Option<String>,
    /// Print the plan as a plan file and measure nothing
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    pub(crate) print_plan: bool,
    /// Print the cells, the arms and the expected time, and measure nothing
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Wait for another run to end instead of giving up
    #[arg(long)]
    pub(crate) wait: bool,

    /// Exit with 1 if anything stays invalid or undecided
    #[arg(long, help_heading = "Results")]
    pub(crate) strict: bool,
    /// Progress on stderr: plain (a line per trial), none [default: a bar on a terminal]
    // Without its values listed, --help is as short as -h.
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = "Results")]
    pub(crate) progress: Option<ProgressKind>,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressKind {
    /// One line per trial
    Plain,
    /// Nothing
    None,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResultArgs {
    /// Database of results [default: iolens/iolens.db in the XDG data directory]
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) db: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// What can be studied
    Studies,
    /// What can be compared
    Primitives,
    /// Where the ends can stand
    Topologies,
    /// What is counted
    Metrics,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// What to list [default: all of them]
    pub(crate) what: Option<Listed>,
    /// Also what iolens uses to check itself
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Runs {
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// An id, the beginning of one, or `last`
    pub(crate) run: String,
    /// A cell by its number in the run's list, from 1: every trial of it
    #[arg(value_parser = parse::count)]
    pub(crate) cell: Option<u64>,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// An id, the beginning of one, or `last`
    pub(crate) run: String,
    /// Write the page here instead of beside the database
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Write every figure into this folder instead of a page
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pub(crate) figures: Option<PathBuf>,
    /// Format of the figures
    #[arg(long, value_enum, default_value = "svg", requires = "figures")]
    pub(crate) format: FigureFormat,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Database of results [default: iolens/iolens.db in the XDG data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
}

/// Formats of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigureFormat {
    /// Scalable, for papers and pages
    Svg,
    /// Pixels
    Png,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// An id, the beginning of one, or `last`
    pub(crate) run: String,
    /// Format of the rows
    #[arg(long, value_enum)]
    pub(crate) format: RowFormat,
    /// What a row is
    #[arg(long, value_enum, default_value = "arms")]
    pub(crate) rows: Rows,
    /// Write here instead of to stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Database of results [default: iolens/iolens.db in the XDG data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
}

/// Formats of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// RFC 4180, units in the column names, empty for null
    Csv,
    /// With reasons for what is null
    Json,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rows {
    /// One arm in one trial
    Arms,
    /// One slice
    Slices,
    /// One arm in one cell, analysed
    Cells,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
