//! The command line as typed. Parsing checks the form of values and nothing
//! else; what they mean together is decided in `request`.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand, ValueEnum};
use iolens_audit::bounds;
use iolens_engine::perf_control::PerfControl;
use iolens_model::parse;

use crate::wishes::{MACHINE, Wishes};

mod allow;
mod ask;
mod compare;
mod confirm;
mod file;
mod import;
mod load;
mod net;
mod peer;
mod serve;
mod shell;
mod tune;
mod upkeep;

pub(crate) use allow::{Allow, Permission};
pub(crate) use ask::Ask;
pub(crate) use compare::Compare;
pub(crate) use confirm::Confirm;
pub(crate) use file::{File, FileCopy, FileRead, FileSize, FileTask, FileWrite};
pub(crate) use import::Import;
pub(crate) use load::Load;
pub(crate) use net::{BothEnds, Net, NetEnd, NetRecv, NetSend};
pub(crate) use peer::Peer;
pub(crate) use serve::Serve;
pub(crate) use shell::{Completions, Man, Shell};
pub(crate) use tune::{Tune, TuneHow, TuneTask};
pub(crate) use upkeep::{Consent, Gc, Rm};

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
#[command(
    after_help = "Start with: iolens run net --quick, or iolens alone on a terminal, which asks"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure: run a study or a plan and answer from it
    Run(Box<Run>),
    /// Which way to send is cheapest for a message of yours: one sentence and one table
    Ask(Box<Ask>),
    /// One transfer by hand, in the foreground: perf stat, strace or taskset can stand in front
    Net(Net),
    /// One file by hand: read, write or copy it, or find how large it must be
    File(File),
    /// Find the fastest way to read or copy one file here
    Tune(Tune),
    /// A server by hand: one service under a concurrency model
    Serve(Serve),
    /// Load on a server, by hand: closed or open loop, with the times of every request
    Load(Box<Load>),
    /// Show what exists: studies, primitives, calls, engines, models, topologies, metrics
    List(List),
    /// Show what can be measured here, what not, and what would change that
    Doctor(Doctor),
    /// Show the stored runs
    Runs(Runs),
    /// Show a stored run, or one cell of it with every trial
    Show(Show),
    /// Hold a stored run against another: what is faster or slower, and how sure
    Compare(Compare),
    /// Narrow the crossovers of a stored run to points, from fresh trials inside their bands
    Confirm(Confirm),
    /// Sample where the CPU time of a cell's arms goes, by kernel symbol
    Explain(Explain),
    /// Write the page or the figures of a stored run
    Report(Report),
    /// Write the numbers of a stored run as CSV or JSON
    Export(Export),
    /// Take in the runs of other databases and of runs exported whole, each with its host
    Import(Import),
    /// Remove stored runs
    Rm(Rm),
    /// Give back the room that the database does not need, and remove old runs if told to
    Gc(Gc),
    /// Look for impossible numbers in tables of others and in what perf stat prints
    Audit(Audit),
    /// Print what a shell needs to complete commands and flags
    Completions(Completions),
    /// Write manual pages, one for each command
    Man(Man),
    /// One end of a trial; started by iolens itself
    #[command(hide = true)]
    Worker(Worker),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// A study (`net`, `file`, `write`, `copy`, `syscall`, `server`), a plan by name (classic-48,
    /// net-rr, …), or the path of a plan file
    #[arg(value_name = "STUDY|PLAN|FILE.toml", required_unless_present = "resume")]
    pub(crate) what: Option<String>,

    #[command(flatten)]
    pub(crate) wishes: Wishes,
    #[command(flatten)]
    pub(crate) peer: Peer,

    /// Go on with a stored run that was cut short: an id, its beginning, a name, or `last`
    #[arg(long, value_name = "RUN", conflicts_with = "what")]
    pub(crate) resume: Option<String>,
    #[command(flatten)]
    pub(crate) allow: Allow,
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
    /// Print everything, as `iolens show` does
    #[arg(short, long, help_heading = "Results")]
    pub(crate) verbose: bool,

    /// Tell perf when slices that count begin and end: `perf stat -D -1 --control
    /// fifo:CTL,ACK -- iolens run …` counts these and nothing else
    #[arg(long, value_name = "fifo:CTL,ACK", help_heading = MACHINE)]
    pub(crate) perf_control: Option<PerfControl>,
}

/// One end of a trial.
#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    /// As of `run`
    #[arg(long)]
    pub(crate) perf_control: Option<PerfControl>,
    /// Do one job of `iolens file` instead
    #[arg(long, conflicts_with = "perf_control")]
    pub(crate) file: bool,
    /// Keep workers for a run on another machine instead
    #[arg(long, conflicts_with_all = ["perf_control", "file"])]
    pub(crate) keep: bool,
    /// The folder of this program's file, which was brought here for the run
    #[arg(long, requires = "keep")]
    pub(crate) remove: Option<PathBuf>,
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
    /// How messages can be received
    Receivers,
    /// System calls that can be compared
    Calls,
    /// How a file can be read
    Engines,
    /// How a server can look after its connections
    Models,
    /// What messages can travel over
    Transports,
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
    /// Print docs/primitives.md, docs/calls.md, docs/models.md or docs/metrics.md
    #[arg(long, hide = true, conflicts_with = "json")]
    pub(crate) markdown: bool,
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
    /// An id, the beginning of one, a name, or `last`
    pub(crate) run: String,
    /// A cell by its number in the run's list, from 1: every trial of it
    #[arg(value_parser = parse::count)]
    pub(crate) cell: Option<u64>,
    /// Every arm of every cell, also of a run that has many
    #[arg(long, conflicts_with_all = ["cell", "json"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// An id, the beginning of one, a name, or `last`
    pub(crate) run: String,
    /// A cell by its number in the run's list, from 1 [default: the largest
    /// message with the fewest threads]
    #[arg(value_parser = parse::count)]
    pub(crate) cell: Option<u64>,
    /// Arms to sample, with commas between [default: all that are compared]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) arms: Vec<String>,
    /// Samples of each arm, over both ends; sampling also ends after 10 s of it
    #[arg(long, value_name = "N", default_value = "4000", value_parser = parse::count)]
    pub(crate) samples: u64,
    /// Sample again where there are samples already, and add to them
    #[arg(long)]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) allow: Allow,
    /// Write the stacks of the cell, folded, for tools that draw flame graphs
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "folded")]
    pub(crate) overwrite: bool,
    /// Wait for another run to end instead of giving up
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// An id, the beginning of one, a name, or `last`; several make one page of all
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Write the page here instead of beside the database
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Write every figure into this folder instead of a page
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pub(crate) figures: Option<PathBuf>,
    /// Format of the figures
    #[arg(long, value_enum, default_value = "svg", requires = "figures")]
    pub(crate) format: FigureFormat,
    /// What the figures are printed on, which sets their size
    #[arg(long, value_enum, default_value = "page", requires = "figures")]
    pub(crate) paper: FigurePaper,
    /// Pixels per inch of a PNG, 72 to 1200 [default: 300]
    #[arg(long, value_name = "N", requires = "figures")]
    #[arg(value_parser = clap::value_parser!(u32).range(72..=1200))]
    pub(crate) dpi: Option<u32>,
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
    /// Pixels, with their size noted in the file
    Png,
}

/// What a figure is printed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigurePaper {
    /// One of two columns of a paper: 89 mm (3.5 in) wide, text of 6.4 pt or more
    Column,
    /// Both columns of a paper: 183 mm (7.2 in) wide, text of 6.4 pt or more
    Page,
    /// A slide of 16:9, 339 mm (13.33 in) wide
    Slide,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// An id, the beginning of one, a name, or `last`; of several the rows stand in one list
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
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

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    /// Tables (CSV) or texts of perf stat
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What a column holds, as in throughput:Gbit/s=Speed; may be repeated
    #[arg(long, value_name = "OURS=THEIRS")]
    pub(crate) map: Vec<iolens_audit::Mapping>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Lowest frequency of the machine that was measured, as in 800MHz
    #[arg(long, value_name = "HZ", value_parser = bounds::frequency, help_heading = "Bounds")]
    pub(crate) clock_min: Option<f64>,
    /// Its highest frequency, as in 5GHz
    #[arg(long, value_name = "HZ", value_parser = bounds::frequency, help_heading = "Bounds")]
    pub(crate) clock_max: Option<f64>,
    /// What all its threads copy together, as in 25GB/s
    #[arg(long, value_name = "RATE", value_parser = bounds::byte_rate, help_heading = "Bounds")]
    pub(crate) memory_bandwidth: Option<f64>,
    /// What its link carries, as in 10Gbit/s
    #[arg(long, value_name = "RATE", value_parser = bounds::byte_rate, help_heading = "Bounds")]
    pub(crate) link: Option<f64>,
    /// What its empty system call takes, as in 100ns
    #[arg(long, value_name = "TIME", value_parser = bounds::span_ns, help_heading = "Bounds")]
    pub(crate) call_cost: Option<f64>,
    /// Its CPUs
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Bounds")]
    pub(crate) cpus: Option<u32>,
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
    /// One phase of a search of run server
    Phases,
    /// All that is stored, for `iolens import`; as JSON alone
    All,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use iolens_model::axes::Study;

    use super::Args;
    use crate::{built_in, request};

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    /// Command lines of ours in a page: lines of its blocks for a shell.
    fn command_lines(page: &str) -> Vec<&str> {
        let blocks = page.split("```").skip(1).step_by(2).filter_map(|b| b.strip_prefix("sh\n"));
        let lines = blocks.flat_map(str::lines).map(str::trim_start);
        lines.filter(|line| line.starts_with("iolens ")).collect()
    }

    #[test]
    fn command_lines_in_the_documents_are_understood() {
        let guide = include_str!("../../../docs/guide.md");
        let pages = [include_str!("../../../README.md"), include_str!("../../../METHOD.md"), guide];
        let lines: Vec<&str> = pages.into_iter().flat_map(command_lines).collect();
        assert!(lines.len() > 30, "{lines:?}");
        for line in lines {
            // What follows a `>` or `#` is the shell's.
            let words = shlex::split(line).unwrap_or_default().into_iter();
            let words = words.take_while(|word| word != ">");
            let parsed = Args::try_parse_from(words);
            assert!(parsed.is_ok(), "{line}\n{}", parsed.err().unwrap());
        }
    }

    #[test]
    fn the_help_of_run_knows_its_studies_and_the_defaults_of_their_plans() {
        let command = Args::command();
        let run = command.find_subcommand("run").unwrap();
        let help = |id: &str| {
            let found = run.get_arguments().find(|argument| argument.get_id() == id).unwrap();
            found.get_help().unwrap().to_string()
        };
        for study in Study::ALL {
            assert!(help("what").contains(&format!("`{study}`")), "{study}");
        }
        let plan = |plan: &built_in::BuiltIn, key: &str| {
            let (_, value) = plan.text.split_once(&format!("\n{key} = ")).unwrap();
            value.lines().next().unwrap().trim_matches('"').to_owned()
        };
        for key in ["budget", "passes"] {
            let [full, quick] = [&built_in::NET, &built_in::QUICK].map(|of| plan(of, key));
            let stated = format!("[default: {full}; quick: {quick}");
            assert!(help(key).contains(&stated), "{} is {stated}", help(key));
        }
        assert!(help("rounds").ends_with(&format!("[default: {}]", request::ROUNDS)));
    }
}
