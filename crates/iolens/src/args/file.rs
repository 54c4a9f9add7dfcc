//! `iolens file` and `iolens tune`: one file by hand, and the fastest way to it.

use std::path::PathBuf;

use clap::Subcommand;
use iolens_file::part::Pattern;
use iolens_file::write::by_hand::Syncing;
use iolens_model::file::Consumer;
use iolens_model::tune::CacheWish;
use iolens_model::units::{Bytes, Nanos};

use crate::values;

const FILE_EXAMPLE: &str = "\
iolens file read big.bin --block-size 128KiB --checksum
iolens file read big.bin --block-size 1MiB --engine uring --queue-depth 16 --evict
iolens file write new.bin --block-size 1MiB --count 1000 --sync fsync
iolens file copy big.bin copy.bin --block-size 256KiB --engine copy_file_range --verify";

const READ_EXAMPLE: &str = "\
The checksum hashes the file's 64-bit words by position, so it is the same for every
engine, block size, order and number of threads. In Python:
  h, p = 0, 2**61 - 1
  for at in reversed(range(0, len(b), 8)):
      h = (h + int.from_bytes(b[at:at+8], \"little\")) * 0x1e3779b97f4a7c1a % p
  print(\"%016x\" % ((h + len(b)) % p))

Each thread reads its own range through its own descriptor. The file is never changed,
and never evicted from the page cache without --evict. A separate process does the
reading; to trace it, use strace -f.";

const SIZE_EXAMPLE: &str = "\
The file is read with read(2) right after it was written, so from memory if it fits.
It has no name while in use, so nothing is left behind however this ends. At least a
tenth of the free space, and at least 1 GiB, stays free.";

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = FILE_EXAMPLE)]
pub(crate) struct File {
    #[command(subcommand)]
    pub(crate) task: FileTask,
}

const WRITE_EXAMPLE: &str = "\
The content is generated while writing, outside the timed part: 64-bit words that look random and
never repeat, so nothing can compress or deduplicate them. The checksum is the one
`iolens file read --checksum` prints.

A new file has no name until it is complete: if writing fails or is interrupted, nothing is left.
Devices, symbolic links, directories, mount points, FIFOs and sockets are never written to.

--overwrite writes to an existing file in place: it keeps its blocks, owner, mode and hard links,
and is truncated to the new size. If that fails midway, the file is left partly overwritten.";

const COPY_EXAMPLE: &str = "\
An engine never falls back to another: if the file system refuses it, the error says what to use
instead. `reflink` shares blocks and moves no bytes; copy_file_range may do the same, and the
result says whether it did. With --threads, each thread copies its own range.

The source is never changed. A new destination has no name until it is complete: if copying fails
or is interrupted, nothing is left. Devices, symbolic links, directories, mount points, FIFOs and
sockets are never written to, nor is the source under another name.

--overwrite writes to an existing file in place: it keeps its blocks, owner, mode and hard links,
and is truncated to the new size. If that fails midway, the file is left partly overwritten.";

/// What is done.
#[derive(Debug, Subcommand)]
pub(crate) enum FileTask {
    /// Read a file once and print what it cost
    #[command(after_help = READ_EXAMPLE)]
    Read(FileRead),
    /// Find the file size that takes a given time to read
    #[command(after_help = SIZE_EXAMPLE)]
    Size(FileSize),
    /// Write a new file and print what it cost
    #[command(after_help = WRITE_EXAMPLE)]
    Write(FileWrite),
    /// Copy a file and print what it cost
    #[command(after_help = COPY_EXAMPLE)]
    Copy(FileCopy),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileRead {
    /// File to read; it is never changed
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Bytes per call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// Blocks to read, from the start [default: all]
    #[arg(long, value_name = "N", value_parser = values::block_count)]
    pub(crate) count: Option<u64>,
    /// Read the file this many times, timed together
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::up_to(1_000_000, "loops"),
          conflicts_with_all = ["checksum", "xor"])]
    pub(crate) loops: u32,
    /// How to read (see `iolens list engines`)
    #[arg(long, value_name = "ID", default_value = "read", value_parser = values::word)]
    pub(crate) engine: String,
    /// Threads, each with its own range of the file
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::file_threads)]
    pub(crate) threads: u32,
    /// Reads in flight per thread, for io_uring engines [default: 8]
    #[arg(long = "queue-depth", value_name = "N", value_parser = values::depth)]
    pub(crate) depth: Option<u32>,
    /// Block order: sequential or random (each block once)
    #[arg(long, value_name = "ORDER", default_value = "sequential",
          value_parser = values::one::<Pattern>)]
    pub(crate) pattern: Pattern,
    /// Seed of the random order
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Look at every byte, without using it
    #[arg(long, conflicts_with_all = ["checksum", "xor"])]
    pub(crate) scan: bool,
    /// Print a checksum of the bytes read
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Print the XOR of all 32-bit little-endian words, which does not depend on block order
    #[arg(long)]
    pub(crate) xor: bool,
    /// Evict the file from the page cache first (other programs using it slow down too)
    #[arg(long)]
    pub(crate) evict: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileSize {
    /// Folder for the file
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Bytes per call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// How long reading should take
    #[arg(long, value_name = "FROM..TO", default_value = "5s..15s",
          value_parser = values::time_range)]
    pub(crate) time: (Nanos, Nanos),
    /// Keep the file, with its size in its name
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileWrite {
    /// File to create
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Bytes per call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// Blocks to write
    #[arg(long, value_name = "N", value_parser = values::block_count)]
    pub(crate) count: u64,
    /// How to write: direct, mmap, pwrite, uring_fixed, write, writev
    #[arg(long, value_name = "ID", default_value = "write", value_parser = values::word)]
    pub(crate) engine: String,
    /// When to sync to the device: none, fsync or fdatasync (once at the end, timed separately), or
    /// dsync (every write, O_DSYNC)
    #[arg(long, value_name = "WHEN", default_value = "none", value_parser = values::one::<Syncing>)]
    pub(crate) sync: Syncing,
    /// Same as --sync fsync
    #[arg(long, conflicts_with = "sync")]
    pub(crate) fsync: bool,
    /// Overwrite an existing file in place
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Seed of the content
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileCopy {
    /// File to copy; it is never changed
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// File to create
    #[arg(value_name = "DST")]
    pub(crate) destination: PathBuf,
    /// Bytes per call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// How to copy: copy_file_range, direct, mmap_write, read_write, reflink, sendfile, splice,
    /// uring_copy
    #[arg(long, value_name = "ID", default_value = "read_write", value_parser = values::word)]
    pub(crate) engine: String,
    /// Threads, each with its own range of the file
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::file_threads)]
    pub(crate) threads: u32,
    /// Overwrite an existing destination in place
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Read both files afterwards, through the page cache, and compare checksums
    #[arg(long)]
    pub(crate) verify: bool,
    /// Sync the copy to its device at the end (fsync), timed separately
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const TUNE_EXAMPLE: &str = "\
iolens tune read big.bin
iolens tune read big.bin --cache cold --allow-evict --budget 60s
iolens tune copy big.bin /mnt/disk --json -o best.json
iolens tune read big.bin --replay best.json";

const TUNE_READ_EXAMPLE: &str = "\
Fresh processes try engines, block sizes, threads and queue depths on parts of the file. Then the
best three, a plain read loop and dd take turns in random order. The file is never changed. The
result is a command to run, and what to use in a program.

--cache as-is leaves the page cache as it is; the first read may fill it. --cache cold evicts the
file before each trial (other programs using it slow down too) and needs --allow-evict. With
--allow-evict, a warm file that is cached in small pages is evicted once at the end and read
again into large folios, to show what that costs and gains.";

const TUNE_COPY_EXAMPLE: &str = "\
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
    #[command(after_help = TUNE_READ_EXAMPLE)]
    Read(TuneRead),
    /// Find the fastest way to copy a file to a folder
    #[command(after_help = TUNE_COPY_EXAMPLE)]
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
    /// Allow evicting the file from the page cache: before each trial with --cache cold; without
    /// it, once (tune read only), to cache it again in large folios
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
