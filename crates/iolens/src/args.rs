//! The command line as typed. Parsing checks the form of values and nothing
//! else; what they mean together is decided in `request`.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, Parser, Subcommand, ValueEnum};
use iolens_audit::bounds;
use iolens_harness::perf_control::PerfControl;
use iolens_model::parse;
use iolens_model::units::Bytes;

mod ab;
mod again;
mod ask;
mod by_hand;
mod file;
mod run;
mod upkeep;

pub(crate) use ab::{Ab, FormedResultArgs, History, Keep};
pub(crate) use again::{Allow, Compare, Confirm, Peer, Permission, Resume};
pub(crate) use ask::Ask;
pub(crate) use by_hand::{BothEnds, Load, Net, NetEnd, NetRecv, NetSend, Serve};
pub(crate) use file::{
    File, FileCopy, FileRead, FileSize, FileTask, FileWrite, Tune, TuneHow, TuneTask,
};
#[cfg(test)]
pub(crate) use run::command;
pub(crate) use run::{Run, flags_of};
pub(crate) use upkeep::{Completions, Consent, Gc, Import, Man, Rm, Shell};

/// A heading of flags.
pub(crate) const MACHINE: &str = "The machine and its network";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The commands in groups, which clap has none of.
const HELP: &str = "\
Find the fastest way to move bytes through the Linux kernel, measured on this machine

Usage: iolens [COMMAND]

With no command, on a terminal, iolens asks what you want to know and runs the command for it.

Answer a question
  run          Compare methods: sockets, files, copies, servers, system calls
  ab           Compare your own programs: is B slower than A, and by how much
  ask          Find the cheapest way to send one particular message
  tune         Find the fastest way to read or copy one particular file
  audit        Find impossible numbers in other people's benchmark tables

Work with results
  keep         Keep a copy of a program, to compare later versions with it
  runs         List stored runs
  show         Show a run in full, or every trial of one setting
  compare      Compare two runs: what got faster or slower
  history      Show your program over many runs: which step made it faster or slower
  confirm      Narrow a crossover to one message size, with fresh trials
  explain      Profile where the CPU time goes, by kernel function
  resume       Continue an interrupted run
  report       Write a run's HTML report, or its figures as SVG or PNG
  export       Write raw numbers as CSV or JSON
  import       Import runs from other machines
  rm           Delete runs
  gc           Reclaim disk space, or delete old runs

Look at this machine
  doctor       Check what can be measured here, and how to enable the rest
  list         List studies, methods, engines, models, calls, plans and metrics

Do one thing and time it, without statistics
  net          Send or receive one transfer
  file         Read, write or copy one file
  serve        Run one server
  load         Load one server

Shell
  completions  Print shell completions
  man          Write manual pages

Options:
  -h, --help     Print help
  -V, --version  Print version

Start here:  iolens run net --quick";

/// Find the fastest way to move bytes through the Linux kernel, measured on this machine
#[derive(Debug, Parser)]
#[command(name = "iolens", version = iolens_engine::worker::protocol::BUILD, styles = STYLES)]
#[command(arg_required_else_help = true, subcommand_required = true, override_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare methods: sockets, files, copies, servers, system calls
    Run(Run),
    /// Compare your own programs: is B slower than A, and by how much
    Ab(Box<Ab>),
    /// Find the cheapest way to send one particular message
    Ask(Box<Ask>),
    /// Send or receive one transfer, under perf, strace or taskset if you like
    Net(Net),
    /// Read, write or copy one file, or find the file size for a wanted duration
    File(File),
    /// Find the fastest way to read or copy one particular file
    Tune(Tune),
    /// Run one server: a service under a concurrency model
    Serve(Serve),
    /// Load a server, closed loop or at a fixed rate, timing every request
    Load(Box<Load>),
    /// List studies, methods, engines, models, calls, plans and metrics
    List(List),
    /// Check what can be measured here, and how to enable the rest
    Doctor(Doctor),
    /// Keep a copy of a program, to compare later versions with it
    Keep(Keep),
    /// List stored runs
    Runs(Runs),
    /// Show a run in full, or every trial of one setting
    Show(Show),
    /// Compare two runs: what got faster or slower
    Compare(Compare),
    /// Show your program over many runs: which step made it faster or slower
    History(History),
    /// Narrow a crossover to one message size, with fresh trials
    Confirm(Confirm),
    /// Profile where the CPU time goes, by kernel function
    Explain(Explain),
    /// Continue an interrupted run
    Resume(Box<Resume>),
    /// Write a run's HTML report, or its figures as SVG or PNG
    Report(Report),
    /// Write raw numbers as CSV or JSON
    Export(Export),
    /// Import runs from other machines
    Import(Import),
    /// Delete runs
    Rm(Rm),
    /// Reclaim disk space, or delete old runs
    Gc(Gc),
    /// Find impossible numbers in other people's benchmark tables
    Audit(Audit),
    /// Print shell completions
    Completions(Completions),
    /// Write manual pages
    Man(Man),
    /// One end of a trial; started by iolens itself
    #[command(hide = true)]
    Worker(Worker),
}

/// A command whose flags take `-5` for a value, one that cannot be, and not for another flag; so
/// do those of its subcommands.
pub(crate) fn with_signs(command: clap::Command) -> clap::Command {
    let with_sign = |arg: Arg| match arg.get_long() {
        Some(_) if arg.get_action().takes_values() => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(with_sign).mut_subcommands(with_signs)
}

/// One end of a trial.
#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    /// bar (on a terminal), passes (elsewhere), plain (every trial) or none
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

iolens_model::words! {
    /// How progress is shown.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    pub(crate) enum ProgressKind {
        /// A bar on a terminal, elsewhere as `passes`
        Bar = "bar",
        /// A line per pass, and one for each trial that went wrong
        Passes = "passes",
        /// A line per pass and per trial
        Plain = "plain",
        /// Nothing
        None = "none",
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResultArgs {
    /// Results database [default: ~/.local/share/iolens/iolens.db]
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) db: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Studies
    Studies,
    /// Ways to send messages
    Methods,
    /// Ways to receive messages
    Receivers,
    /// System calls to compare
    Calls,
    /// Ways to read a file
    Engines,
    /// Concurrency models of servers
    Models,
    /// Transports that carry messages
    Transports,
    /// Networks between the two ends
    Networks,
    /// Built-in plans
    Plans,
    /// Metrics
    Metrics,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// What to list [default: everything]
    pub(crate) what: Option<Listed>,
    /// Include what iolens uses to check itself
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
    /// Run ID, the start of one, a name, or `last`
    pub(crate) run: String,
    /// Print every trial of this setting, by its number in the run's list, from 1
    #[arg(value_parser = parse::count, conflicts_with = "json")]
    pub(crate) cell: Option<u64>,
    /// Print every method in every setting, even if there are many
    #[arg(long, conflicts_with_all = ["cell", "json"])]
    pub(crate) all: bool,
    /// Print only the summary of these sizes
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse::size)]
    #[arg(conflicts_with_all = ["cell", "all", "json"])]
    pub(crate) size: Vec<Bytes>,
    /// Print only the summary of these thread counts
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["cell", "all", "json"])]
    pub(crate) threads: Vec<u32>,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// Run ID, the start of one, a name, or `last`
    pub(crate) run: String,
    /// Setting, by its number in the run's list, from 1 [default: the largest message with the
    /// fewest threads]
    #[arg(value_parser = parse::count)]
    pub(crate) cell: Option<u64>,
    /// Methods to sample, separated by commas [default: all compared methods]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) arms: Vec<String>,
    /// Samples per method, both ends together; a method is sampled for 10 s at most
    #[arg(long, value_name = "N", default_value = "4000", value_parser = parse::count)]
    pub(crate) samples: u64,
    /// Add to the samples that are already stored
    #[arg(long)]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) allow: Allow,
    /// Write folded stacks, for flame graph tools
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "folded")]
    pub(crate) overwrite: bool,
    /// Wait while another run is measuring, instead of failing
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print each end with its intervals, and the functions
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Run ID, the start of one, a name, or `last`; several share one page
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Write the page here instead of beside the database
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Write every figure to this folder instead of a page
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pub(crate) figures: Option<PathBuf>,
    /// Format of the figures
    #[arg(
        long,
        value_enum,
        default_value = "svg",
        requires = "figures",
        conflicts_with = "output"
    )]
    pub(crate) format: FigureFormat,
    /// Paper the figures are for, which sets their size
    #[arg(
        long,
        value_enum,
        default_value = "page",
        requires = "figures",
        conflicts_with = "output"
    )]
    pub(crate) paper: FigurePaper,
    /// Pixels per inch of a PNG, 72 to 1200 [default: 300]
    #[arg(long, value_name = "N", requires = "figures", conflicts_with = "output")]
    #[arg(value_parser = clap::value_parser!(u32).range(72..=1200))]
    pub(crate) dpi: Option<u32>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Results database [default: ~/.local/share/iolens/iolens.db]
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
}

/// Formats of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigureFormat {
    /// Scalable, for papers and pages
    Svg,
    /// Pixels, with the resolution stored in the file
    Png,
}

/// What a figure is printed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigurePaper {
    /// One column of a two-column paper: 89 mm (3.5 in) wide, text 6.4 pt or larger
    Column,
    /// Both columns of a paper: 183 mm (7.2 in) wide, text 6.4 pt or larger
    Page,
    /// A 16:9 slide, 339 mm (13.33 in) wide
    Slide,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Run ID, the start of one, a name, or `last`; rows of several runs follow each other
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Format [default: by the name of --output, else csv]
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowFormat>,
    /// What a row is
    #[arg(long, value_enum, default_value = "arms")]
    pub(crate) rows: RowKind,
    /// Columns in this order, separated by commas, or all (see docs/export.md) [default: a short
    /// set for csv, all for json]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Write to this file instead of stdout; for csv, also write FILE.reasons.csv, which says why
    /// fields are empty
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Results database [default: ~/.local/share/iolens/iolens.db]
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    /// Tables (CSV), or output of perf stat
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What a column holds, such as throughput:Gbit/s=Speed; may be repeated
    #[arg(long, value_name = "OURS=THEIRS")]
    pub(crate) map: Vec<iolens_audit::Mapping>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Lowest frequency of the machine that was measured, such as 800MHz
    #[arg(long, value_name = "HZ", value_parser = bounds::frequency, help_heading = "Bounds")]
    pub(crate) clock_min: Option<f64>,
    /// Highest frequency of that machine, such as 5GHz
    #[arg(long, value_name = "HZ", value_parser = bounds::frequency, help_heading = "Bounds")]
    pub(crate) clock_max: Option<f64>,
    /// Memory bandwidth of that machine, all threads together, such as 25GB/s
    #[arg(long, value_name = "RATE", value_parser = bounds::byte_rate, help_heading = "Bounds")]
    pub(crate) memory_bandwidth: Option<f64>,
    /// Link speed of that machine, such as 10Gbit/s
    #[arg(long, value_name = "RATE", value_parser = bounds::byte_rate, help_heading = "Bounds")]
    pub(crate) link: Option<f64>,
    /// Cost of its cheapest system call, such as 100ns
    #[arg(long, value_name = "TIME", value_parser = bounds::span_ns, help_heading = "Bounds")]
    pub(crate) call_cost: Option<f64>,
    /// Number of its CPUs
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Bounds")]
    pub(crate) cpus: Option<u32>,
}

/// Formats of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// RFC 4180, units in the column names, empty fields for missing values
    Csv,
    /// With the reasons for missing values
    Json,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowKind {
    /// One method in one trial
    Arms,
    /// One slice
    Slices,
    /// One method in one setting, analysed
    Cells,
    /// One load step of a server search
    Phases,
    /// Everything stored, for `iolens import`; JSON only
    All,
}

/// What the command line calls one of several values.
pub(crate) fn written_choice<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Args, HELP};

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
        let pages = [
            include_str!("../../../README.md"),
            include_str!("../../../METHOD.md"),
            include_str!("../../../docs/ab.md"),
            include_str!("../../../docs/method-files.md"),
            include_str!("../../../docs/method-machine.md"),
            include_str!("../../../docs/method-net.md"),
            include_str!("../../../docs/method-servers.md"),
            guide,
        ];
        let lines: Vec<&str> = pages.into_iter().flat_map(command_lines).collect();
        assert!(lines.len() > 30, "{lines:?}");
        for line in lines {
            // What follows a `>` or `#` is the shell's.
            let words = shlex::split(line).unwrap_or_default().into_iter();
            let words = words.take_while(|word| word != ">");
            let words: Vec<String> = words.skip(1).collect();
            let understood = crate::understands(words.iter().map(String::as_str));
            assert!(understood.is_ok(), "{line}\n{}", understood.unwrap_err());
        }
    }

    #[test]
    fn the_help_names_every_command_and_says_of_each_what_it_is() {
        let command = Args::command();
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let row = format!("\n  {:12} ", below.get_name());
            assert!(HELP.contains(&row), "{}", below.get_name());
        }
        let rows = HELP.lines().filter(|line| line.starts_with("  ") && !line.contains("--"));
        for row in rows {
            let name = row.split_whitespace().next().unwrap();
            assert!(command.find_subcommand(name).is_some(), "{row}");
        }
        assert!(HELP.lines().all(|line| line.chars().count() <= 100));
    }
}
