//! `iolens ab`: programs of the user's.

use std::path::PathBuf;

use iolens_model::ab::{AbParameter, AbQuantity};
use iolens_model::units::Nanos;

use crate::args::ProgressKind;
use crate::values::{self, List};

const AFTER: &str = "\
iolens ab 'grep -c foo big.txt' 'rg -c foo big.txt'
iolens ab --loop --names main,pr ../base/bench ./bench
iolens ab --loop --with size=1KiB,64KiB 'node old.js {size}' 'node new.js {size}'
iolens ab --loop --links --names main,pr 'out/main-*' 'out/pr-*'
iolens ab --server './epoll {port}' './uring {port}'
iolens ab suite.toml                       # a plan with several benches (docs/ab.md)

With --loop a program says `ready`, reads a number N from its standard input, does N operations and
says `ok`, until its input ends: five lines in any language (docs/ab.md). Without it, a whole run of
a command from start to end is one operation.

With --links every trial runs one of at least 4 links of each program, so that the verdict is about
the source and not about where one linker run put the code (docs/ab.md).

Exit codes: 0 nothing is slower · 1 something is SLOWER · 2 a program cannot be started or does not
speak the protocol · 3 undecided, with --strict · 4 nothing is usable, or another run is
measuring · 130 interrupted";

const MEASURED: &str = "What is measured";
const RESULTS: &str = "Results";

/// Where results are, and in which forms one is printed or written.
#[derive(Debug, clap::Args)]
pub(crate) struct FormedResultArgs {
    /// Results database [default: ~/.local/share/iolens/iolens.db]
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub(crate) db: Option<PathBuf>,
    /// Print the result as JSON, or write it to FILE beside what is printed
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          help_heading = RESULTS)]
    #[expect(clippy::option_option, reason = "the flag, and whether it has a value")]
    pub(crate) json: Option<Option<PathBuf>>,
    /// Print the result as GitHub Markdown, or write it to FILE beside what is printed
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          help_heading = RESULTS)]
    #[expect(clippy::option_option, reason = "the flag, and whether it has a value")]
    pub(crate) markdown: Option<Option<PathBuf>>,
}

/// Programs to compare.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Ab {
    /// Command lines, the baseline first; no shell sees them. Or one plan file.toml
    #[arg(required = true, num_args = 1.., value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
    /// Baseline: a program kept with `iolens keep`, run with the first command's arguments
    #[arg(long, value_name = "NAME", help_heading = MEASURED)]
    pub(crate) against: Option<String>,
    /// The commands speak the loop protocol: slices of operations instead of whole runs
    #[arg(long = "loop", help_heading = MEASURED)]
    pub(crate) is_loop: bool,
    /// The commands are servers, each with {port}: models of `iolens run server`
    #[arg(long, help_heading = MEASURED, conflicts_with_all = [
        "against", "is_loop", "with", "links", "input", "prepare", "in_place", "ignore_exit",
        "different_output", "slice", "start_limit", "warmup", "plan_only", "no_calls", "judge", "markdown",
    ])]
    pub(crate) server: bool,
    /// Names of the commands, separated by commas [default: A,B,...]
    #[arg(long, value_name = "LIST", value_parser = values::names, help_heading = MEASURED)]
    pub(crate) names: Option<List<String>>,
    /// Replace {NAME} in the commands by each of these values in turn; may be repeated
    #[arg(long, value_name = "NAME=LIST", value_parser = values::server::parameter,
          help_heading = MEASURED)]
    pub(crate) with: Vec<AbParameter>,
    /// Each command's first word is a glob of builds linked from one source: 'out/base-*'
    #[arg(long, conflicts_with = "against", help_heading = MEASURED)]
    pub(crate) links: bool,
    /// Standard input of every run of a command [default: empty]
    #[arg(long, value_name = "FILE", conflicts_with = "is_loop", help_heading = MEASURED)]
    pub(crate) input: Option<PathBuf>,
    /// Command to run before each run, outside the clock
    #[arg(long, value_name = "COMMAND", conflicts_with = "is_loop", help_heading = MEASURED)]
    pub(crate) prepare: Option<String>,
    /// Run the programs where they are instead of from a fresh copy in each trial
    #[arg(long, help_heading = MEASURED)]
    pub(crate) in_place: bool,
    /// Accept commands that exit with an error
    #[arg(long, conflicts_with = "is_loop", help_heading = MEASURED)]
    pub(crate) ignore_exit: bool,
    /// Accept programs that print or compute different things
    #[arg(long, help_heading = MEASURED)]
    pub(crate) different_output: bool,
    /// CPUs to use, of which each trial draws one [default: all available]
    #[arg(long, value_name = "LIST", value_parser = values::cpus, help_heading = MEASURED)]
    pub(crate) cpus: Option<List<u32>>,
    /// How long a slice of a loop takes [default: 500us]
    #[arg(long, value_name = "TIME", value_parser = values::ab_slice, help_heading = MEASURED)]
    pub(crate) slice: Option<Nanos>,
    /// How long a program of a loop may take to get ready [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::span, help_heading = MEASURED)]
    pub(crate) start_limit: Option<Nanos>,
    /// How long each process of a loop warms up in each trial [default: while it gets faster]
    #[arg(long, value_name = "TIME", value_parser = values::span, help_heading = MEASURED)]
    pub(crate) warmup: Option<Nanos>,
    /// Do not count system calls
    #[arg(long, help_heading = MEASURED)]
    pub(crate) no_calls: bool,

    /// What is judged: time, cpu or both [default: time,cpu]
    #[arg(long, value_name = "LIST", value_parser = values::list::<AbQuantity>,
          help_heading = "When it ends")]
    pub(crate) judge: Option<List<AbQuantity>>,
    /// Smallest difference that matters to you, as 2% or 0.02 [default: 3%]
    #[arg(long, value_name = "PCT", value_parser = values::fraction,
          help_heading = "When it ends")]
    pub(crate) threshold: Option<f64>,
    /// Measure for this long at most; a verdict ends it earlier [default: 3m]
    #[arg(long, value_name = "TIME", value_parser = values::span,
          help_heading = "When it ends")]
    pub(crate) budget: Option<Nanos>,
    /// Exit with 3 if anything is undecided
    #[arg(long, help_heading = "When it ends")]
    pub(crate) strict: bool,
    /// Wait while another run is measuring, instead of failing
    #[arg(long, help_heading = "When it ends")]
    pub(crate) wait: bool,
    /// Seed of every random order
    #[arg(long, value_name = "N", value_parser = values::seed, help_heading = "When it ends")]
    pub(crate) seed: Option<u64>,

    /// Name of the run
    #[arg(long, value_name = "NAME", value_parser = values::run_name, help_heading = RESULTS)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) result: FormedResultArgs,
    /// Print the run as a plan file; measure nothing
    #[arg(long = "print-plan", help_heading = RESULTS)]
    pub(crate) plan_only: bool,
    /// Print every number
    #[arg(short, long, help_heading = RESULTS)]
    pub(crate) verbose: bool,
    /// bar (on a terminal), passes (elsewhere), plain (every trial) or none
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = RESULTS)]
    pub(crate) progress: Option<ProgressKind>,
}

const KEEP_AFTER: &str = "\
iolens keep ./bench --as v1.4
iolens ab --loop --against v1.4 './bench --size 1'
iolens keep --rm v1.4

A copy of the file is kept beside the results, and compared with whenever you like: both programs
then run on the same machine in the same seconds.";

/// Programs that are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = KEEP_AFTER)]
pub(crate) struct Keep {
    /// Program to keep [default: list the kept programs]
    #[arg(value_name = "FILE", requires = "name")]
    pub(crate) file: Option<PathBuf>,
    /// Name to keep it as
    #[arg(id = "name", long = "as", value_name = "NAME", requires = "file",
          value_parser = values::server::kept_name)]
    pub(crate) name: Option<String>,
    /// Remove the program of this name
    #[arg(long, value_name = "NAME", conflicts_with = "file",
          value_parser = values::server::kept_name)]
    pub(crate) rm: Option<String>,
    /// Results database, beside which programs are kept [default:
    /// ~/.local/share/iolens/iolens.db]
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
}

const HISTORY_AFTER: &str = "\
iolens keep ./bench --as v1.4
iolens ab --loop --against v1.4 './bench parse'     # today, and after each change
iolens history v1.4

Every run has a ratio to the same baseline file, measured in the same seconds, so that days on which
the machine was slow cancel. A step is the change of that ratio from one run to the next.

Exit codes: 0 shown, whatever has changed · 2 there is no such baseline or program · 4 no two runs
belong together";

/// Runs beside one baseline.
#[derive(Debug, clap::Args)]
#[command(after_help = HISTORY_AFTER)]
pub(crate) struct History {
    /// Baseline: the name of a kept program, or the first digits of a file's SHA-256 [default: all]
    #[arg(value_name = "BASELINE")]
    pub(crate) baseline: Option<String>,
    /// Only the program of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,
    /// Chained runs: the baseline of each is the program of the run before, not one for all
    #[arg(long, conflicts_with = "baseline")]
    pub(crate) chain: bool,
    /// The newest N runs of each series
    #[arg(long, value_name = "N", default_value = "15",
          value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) last: u32,
    /// time or cpu [default: time, where it was judged]
    #[arg(long, value_name = "WHICH", value_parser = values::one::<AbQuantity>)]
    pub(crate) quantity: Option<AbQuantity>,
    #[command(flatten)]
    pub(crate) result: FormedResultArgs,
    /// Print every run, even of many series
    #[arg(short, long, help_heading = RESULTS)]
    pub(crate) verbose: bool,
}
