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
Fresh processes try engines, block sizes, threads and queue depths on parts of the file. Then the
best three, a plain read loop and dd take turns in random order. The file is never changed. The
result is a command to run, and what to use in a program.

--cache as-is leaves the page cache as it is; the first read may fill it. --cache cold evicts the
file before each trial (other programs using it slow down too) and needs --allow-evict. With
--allow-evict, a warm file that is cached in small pages is evicted once at the end and read
again into large folios, to show what that costs and gains.";

const COPY_EXAMPLE: &str = "\
Like `tune read`, with engines that copy, a plain read/write loop, dd and cp. The copies have no
name and are gone when their trial ends. Sharing blocks (reflink) moves no bytes, so it is
reported separately and never as a rate.";

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
    /// Find the fastest way to copy a file to a folder
    #[command(after_help = COPY_EXAMPLE)]
    Copy(TuneCopy),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TuneRead {
    /// File to read; it is never changed
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// What to do with the bytes: scan (look at each) or none
    #[arg(long, value_name = "WHAT", default_value = "scan",
          value_parser = values::tuned_consumer)]
    pub(crate) consumer: Consumer,
    #[command(flatten)]
    pub(crate) how: TuneHow,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TuneCopy {
    /// File to copy; it is never changed
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// Folder to copy to
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Copy at most this much [default: all, if there is room]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) max_bytes: Option<Bytes>,
    #[command(flatten)]
    pub(crate) how: TuneHow,
}

/// What both have.
#[derive(Debug, clap::Args)]
pub(crate) struct TuneHow {
    /// Page cache before each read: as-is, warm or cold
    #[arg(long, value_name = "STATE", default_value = "as-is",
          value_parser = values::one::<CacheWish>)]
    pub(crate) cache: CacheWish,
    /// Allow evicting the file from the page cache: before each trial with --cache cold, else once,
    /// to cache it anew in large folios
    #[arg(long = "allow-evict")]
    pub(crate) evict: bool,
    /// Use at most this many threads [default: number of CPUs]
    #[arg(long, value_name = "N", value_parser = values::file_threads)]
    pub(crate) threads: Option<u32>,
    /// Stop after this long
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) budget: Nanos,
    /// Seed of the random order
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Measure an earlier result again: only its winner, the plain loop, and the programs
    #[arg(long, value_name = "RESULT.json")]
    pub(crate) replay: Option<PathBuf>,
    /// Also write the result to a file, as JSON
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all notes, and what was not tried
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
