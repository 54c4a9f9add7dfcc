//! `iolens tune`: the fastest way to read or copy one file here.

use std::path::PathBuf;

use clap::Subcommand;
use iolens_model::file::Consumer;
use iolens_model::tune::CacheWish;
use iolens_model::units::{Bytes, Nanos};

use crate::values;

const TUNE_EXAMPLE: &str = "\
iolens tune read big.bin
iolens tune read big.bin --cache cold --allow-evict --budget 60s
iolens tune copy big.bin /mnt/disk --json -o best.json
iolens tune read big.bin --replay best.json";

const READ_EXAMPLE: &str = "\
Engines, blocks, threads and depths are tried on parts of the file, each time by a fresh
process; the best three, a plain read loop and dd then take turns in random order. The
file is only read. The end is a command that can be run, and what it takes in a program.

--cache as-is takes the file as it is: what is not in the page cache comes there with the
first reading. --cache cold evicts the file before each trial, which other programs that
use it pay for too, and wants --allow-evict. With --allow-evict a warm file that is cached in small
pieces is at the end dropped once and read again in large folios: what that takes, and what
the file gives then.";

const COPY_EXAMPLE: &str = "\
As `tune read`, with engines that copy, a plain loop of read and write, dd and cp. The
copies have no name and are gone when their trial ends. Sharing blocks (reflink) moves no
byte and is told apart, never as a rate.";

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = TUNE_EXAMPLE)]
pub(crate) struct Tune {
    #[command(subcommand)]
    pub(crate) task: TuneTask,
}

/// What is looked for.
#[derive(Debug, Subcommand)]
pub(crate) enum TuneTask {
    /// Find the fastest way to read a file
    #[command(after_help = READ_EXAMPLE)]
    Read(TuneRead),
    /// Find the fastest way to copy a file into a folder
    #[command(after_help = COPY_EXAMPLE)]
    Copy(TuneCopy),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TuneRead {
    /// The file, which is only read
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// What becomes of the bytes: scan (each is looked at) or none
    #[arg(long, value_name = "WHAT", default_value = "scan",
          value_parser = values::tuned_consumer)]
    pub(crate) consumer: Consumer,
    #[command(flatten)]
    pub(crate) how: TuneHow,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TuneCopy {
    /// The file to copy, which is only read
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// The folder of the copies
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Most bytes of a copy [default: all, as far as there is room]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) max_bytes: Option<Bytes>,
    #[command(flatten)]
    pub(crate) how: TuneHow,
}

/// What both have.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneHow {
    /// What of the file is in the page cache: as-is, warm or cold
    #[arg(long, value_name = "STATE", default_value = "as-is",
          value_parser = values::one::<CacheWish>)]
    pub(crate) cache: CacheWish,
    /// Evict the file from the page cache: for --cache cold before each trial, else once, to
    /// read it again in large folios where it is cached in small ones
    #[arg(long = "allow-evict")]
    pub(crate) evict: bool,
    /// Most threads [default: processors]
    #[arg(long, value_name = "N", value_parser = values::file_threads)]
    pub(crate) threads: Option<u32>,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) budget: Nanos,
    /// Seed of the random order
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Check an earlier result again: its winner, the plain loop and the programs alone
    #[arg(long, value_name = "RESULT.json")]
    pub(crate) replay: Option<PathBuf>,
    /// Write the result, as JSON, to a file too
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace that file if it exists
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all that was noticed, and what was not tried
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
