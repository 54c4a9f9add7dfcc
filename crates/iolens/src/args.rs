//! The command line as typed. Parsing checks the form of values and nothing
//! else; what they mean together is decided in `request`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand, ValueEnum};
use iolens_model::parse;
use iolens_model::units::{Bytes, Nanos};

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
    /// Measure: run a study and answer from it
    Run(Box<Run>),
    /// Show what exists: studies, primitives, topologies, metrics
    List(List),
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

/// A study by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StudyName {
    /// Messages through sockets
    Net,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// What to study
    pub(crate) study: StudyName,

    /// A first look in under a minute: indicative sentences, no verdicts
    #[arg(long)]
    pub(crate) quick: bool,

    /// Arms to compare, by id (see `iolens list primitives`)
    #[arg(long, value_name = "LIST", help_heading = "What to compare")]
    pub(crate) primitives: Option<Words>,
    /// The arm the others are compared with [default: send_staged]
    #[arg(long, value_name = "ID", help_heading = "What to compare")]
    pub(crate) baseline: Option<String>,
    /// Message sizes: a list, or a range by factors of 4 [default: 64..1MiB]
    #[arg(long, value_name = "LIST|A..B", help_heading = "What to compare")]
    pub(crate) sizes: Option<Sizes>,
    /// Thread pairs, one connection each [default: 1,4]
    #[arg(long, value_name = "LIST", help_heading = "What to compare")]
    pub(crate) threads: Option<Counts>,
    /// Where the ends stand [default: loopback]
    #[arg(long, value_name = "LIST", help_heading = "What to compare")]
    pub(crate) topologies: Option<Words>,
    /// What travels [default: stream]
    #[arg(long, value_name = "LIST", help_heading = "What to compare")]
    pub(crate) modes: Option<Words>,
    /// Memory that is sent from: hot, cold [default: hot]
    #[arg(long, value_name = "LIST", help_heading = "What to compare")]
    pub(crate) working_set: Option<Words>,
    /// Fields per message, 1 to 64 [default: 8]
    #[arg(long, value_name = "N", value_parser = parse::count, help_heading = "What to compare")]
    pub(crate) fields: Option<u64>,
    /// When an iovec is built: per_message, prepared [default: per_message]
    #[arg(long, value_name = "WHEN", help_heading = "What to compare")]
    pub(crate) iovec: Option<String>,

    /// Begin no pass that would end later [default: 10m; quick: 40s]
    #[arg(long, value_name = "TIME", value_parser = parse::span, help_heading = "How long and how exact")]
    pub(crate) budget: Option<Nanos>,
    /// Half-width of a ratio at which it is precise enough [default: 3%]
    #[arg(long, value_name = "FRACTION", value_parser = parse::fraction, help_heading = "How long and how exact")]
    pub(crate) precision: Option<f64>,
    /// Smallest difference that matters [default: 3%]
    #[arg(long, value_name = "FRACTION", value_parser = parse::fraction, help_heading = "How long and how exact")]
    pub(crate) delta: Option<f64>,
    /// Visit every cell this often, budget permitting [default: 12 to 60; quick: 10]
    #[arg(long, value_name = "N", value_parser = parse::count, help_heading = "How long and how exact")]
    pub(crate) passes: Option<u64>,
    /// How long a slice is meant to last with one thread pair [default: 2ms]
    #[arg(long, value_name = "TIME", value_parser = parse::span, conflicts_with_all = ["window", "messages"], help_heading = "How long and how exact")]
    pub(crate) slice: Option<Nanos>,
    /// Rounds of slices that count in a trial [default: 20]
    #[arg(long, value_name = "N", value_parser = parse::count, conflicts_with_all = ["window", "messages"], help_heading = "How long and how exact")]
    pub(crate) rounds: Option<u64>,
    /// The classic way: one arm after another, each for this long
    #[arg(long, value_name = "TIME", value_parser = parse::span, conflicts_with = "messages", help_heading = "How long and how exact")]
    pub(crate) window: Option<Nanos>,
    /// The classic way: one arm after another, this many messages each
    #[arg(long, value_name = "N", value_parser = parse::count, help_heading = "How long and how exact")]
    pub(crate) messages: Option<u64>,
    /// One arm per process pair, instead of all of a cell together
    #[arg(long, conflicts_with_all = ["window", "messages"], help_heading = "How long and how exact")]
    pub(crate) isolate: bool,

    /// Processors to use, sending end first [default: all it may use]
    #[arg(long, value_name = "LIST", help_heading = "The machine")]
    pub(crate) cpus: Option<Cpus>,
    /// TCP congestion control of every socket [default: reno]
    #[arg(long, value_name = "NAME", help_heading = "The machine")]
    pub(crate) congestion: Option<String>,
    /// SO_SNDBUF and SO_RCVBUF of every socket
    #[arg(long, value_name = "SIZE", value_parser = parse::size, help_heading = "The machine")]
    pub(crate) socket_buffer: Option<Bytes>,
    /// Bytes asked of one recv(2), whatever the message size
    #[arg(long, value_name = "SIZE", value_parser = parse::size, help_heading = "The machine")]
    pub(crate) receive_size: Option<Bytes>,
    /// Seed of every random order [default: random]
    #[arg(long, value_name = "N", help_heading = "The machine")]
    pub(crate) seed: Option<u64>,
    /// Wait for another run to end instead of giving up
    #[arg(long, help_heading = "The machine")]
    pub(crate) wait: bool,

    /// A name for the run
    #[arg(long, value_name = "TEXT", help_heading = "Results")]
    pub(crate) name: Option<String>,
    /// Exit with 1 if anything stays invalid or undecided
    #[arg(long, help_heading = "Results")]
    pub(crate) strict: bool,
    /// Print the plan and measure nothing
    #[arg(long, alias = "dry-run", help_heading = "Results")]
    pub(crate) print_plan: bool,
    /// How progress is shown on stderr [default: a bar on a terminal]
    #[arg(long, value_name = "HOW", help_heading = "Results")]
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

/// Declares a list type that clap takes as one value.
macro_rules! list {
    ($name:ident, $item:ty, $parse:path) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) Vec<$item>);

        impl FromStr for $name {
            type Err = parse::ParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $parse(text).map($name)
            }
        }
    };
}

list!(Words, String, words);
list!(Sizes, Bytes, parse::sizes);
list!(Counts, u32, parse::counts);
list!(Cpus, u32, parse::cpus);

fn words(text: &str) -> Result<Vec<String>, parse::ParseError> {
    Ok(parse::items(text)?.into_iter().map(str::to_owned).collect())
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
