//! `iolens file` and `iolens tune`: one file by hand, and the fastest way to it.

use std::path::PathBuf;

use clap::Subcommand;
use iolens_engine::files::part::Pattern;
use iolens_engine::files::write::by_hand::Syncing;
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
The checksum is a hash of the file's 64-bit words in which each has its place: it is
the same for every engine, block size, order and number of threads. In Python:
  h, p = 0, 2**61 - 1
  for at in reversed(range(0, len(b), 8)):
      h = (h + int.from_bytes(b[at:at+8], \"little\")) * 0x1e3779b97f4a7c1a % p
  print(\"%016x\" % ((h + len(b)) % p))

Each thread reads a range of its own, with a descriptor of its own. The file is never
written to, and never evicted from the page cache without --evict. A process of its
own reads, so that strace sees the calls with -f.";

const SIZE_EXAMPLE: &str = "\
The file is read with read(2) as it is after it was written, which is from memory
where it fits there. It has no name while it is used, so that nothing is left of it
however this ends. A tenth of the free space stays free, and 1 GiB at least.";

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = FILE_EXAMPLE)]
pub(crate) struct File {
    #[command(subcommand)]
    pub(crate) task: FileTask,
}

const WRITE_EXAMPLE: &str = "\
The content is made as it is written, outside of the time: 64-bit words that look like
chance and never repeat, so that nothing on the way can compress them or find them twice.
The checksum is that of `iolens file read --checksum`.

A new file has no name until it is whole: one that could not be finished, or was
interrupted, is not there. Devices, symbolic links, directories, mount points, FIFOs and
sockets are never written to.

--overwrite writes an existing file in place: it keeps its blocks, owner, mode and hard
links, and is cut behind its new end. If that fails on the way it is left partly new and
partly as it was.";

const COPY_EXAMPLE: &str = "\
Engines never fall back to another: what a file system refuses is an error that says what
to use instead. `reflink` shares blocks and moves no bytes; copy_file_range may do so, and
the result says whether it did. With --threads each copies a range of its own.

The source is only read. A new destination has no name until it is whole: a copy that could
not be finished, or was interrupted, is not there. Devices, symbolic links, directories,
mount points, FIFOs and sockets are never written to, nor the source by another name.

--overwrite writes an existing file in place: it keeps its blocks, owner, mode and hard
links, and is cut behind its new end. If that fails on the way it is left partly new and
partly as it was.";

/// What is done.
#[derive(Debug, Subcommand)]
pub(crate) enum FileTask {
    /// Read a file once and say what that took
    #[command(after_help = READ_EXAMPLE)]
    Read(FileRead),
    /// Find the size of a file whose reading takes a wanted time
    #[command(after_help = SIZE_EXAMPLE)]
    Size(FileSize),
    /// Write a new file and say what that took
    #[command(after_help = WRITE_EXAMPLE)]
    Write(FileWrite),
    /// Copy a file and say what that took
    #[command(after_help = COPY_EXAMPLE)]
    Copy(FileCopy),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileRead {
    /// The file, which is only read
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Bytes asked of one call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// Blocks to read, from the beginning [default: all]
    #[arg(long, value_name = "N", value_parser = values::block_count)]
    pub(crate) count: Option<u64>,
    /// Read it so many times, on one clock
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::up_to(1_000_000, "loops"),
          conflicts_with_all = ["checksum", "xor"])]
    pub(crate) loops: u32,
    /// How to read, by id (see `iolens list engines`)
    #[arg(long, value_name = "ID", default_value = "read", value_parser = values::word)]
    pub(crate) engine: String,
    /// Threads, each with a range of the file
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::file_threads)]
    pub(crate) threads: u32,
    /// Reads under way at once in each thread, for engines of io_uring [default: 8]
    #[arg(long = "queue-depth", value_name = "N", value_parser = values::depth)]
    pub(crate) depth: Option<u32>,
    /// Order of the blocks: sequential, or random, each once
    #[arg(long, value_name = "ORDER", default_value = "sequential",
          value_parser = values::one::<Pattern>)]
    pub(crate) pattern: Pattern,
    /// Seed of a random order
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Look at every byte, and make nothing of it
    #[arg(long, conflicts_with_all = ["checksum", "xor"])]
    pub(crate) scan: bool,
    /// Print a checksum of what was read
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Print the XOR of its 32-bit little-endian words, which blocks out of order do not change
    #[arg(long)]
    pub(crate) xor: bool,
    /// Bring the file out of the page cache first; other programs that use it pay for that too
    #[arg(long)]
    pub(crate) evict: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileSize {
    /// Where the file is made
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Bytes asked of one call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// How long reading it is to take
    #[arg(long, value_name = "FROM..TO", default_value = "5s..15s",
          value_parser = values::time_range)]
    pub(crate) time: (Nanos, Nanos),
    /// Keep the file, under a name that says its size
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileWrite {
    /// The file, which is not there yet
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Bytes given to one call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// Blocks to write
    #[arg(long, value_name = "N", value_parser = values::block_count)]
    pub(crate) count: u64,
    /// How to write, by id: direct, mmap, pwrite, uring_fixed, write, writev
    #[arg(long, value_name = "ID", default_value = "write", value_parser = values::word)]
    pub(crate) engine: String,
    /// When it is on the device: none (when the kernel likes), fsync or fdatasync (one at the
    /// end, timed apart), dsync (each write, O_DSYNC)
    #[arg(long, value_name = "WHEN", default_value = "none", value_parser = values::one::<Syncing>)]
    pub(crate) sync: Syncing,
    /// The same as --sync fsync
    #[arg(long, conflicts_with = "sync")]
    pub(crate) fsync: bool,
    /// Write over the file if it exists, in place
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
    /// The file to copy, which is only read
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// The copy, which is not there yet
    #[arg(value_name = "DST")]
    pub(crate) destination: PathBuf,
    /// Bytes asked of one call, 1 to 64MiB
    #[arg(long = "block-size", value_name = "SIZE", value_parser = values::block_size)]
    pub(crate) block: Bytes,
    /// How to copy, by id: copy_file_range, direct, mmap_write, read_write, reflink, sendfile,
    /// splice, uring_copy
    #[arg(long, value_name = "ID", default_value = "read_write", value_parser = values::word)]
    pub(crate) engine: String,
    /// Threads, each with a range of the file
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::file_threads)]
    pub(crate) threads: u32,
    /// Write over the destination if it exists, in place
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Read both files afterwards, through the page cache, and compare their checksums
    #[arg(long)]
    pub(crate) verify: bool,
    /// Bring the copy to its device at the end (fsync), timed apart
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
Engines, blocks, threads and depths are tried on parts of the file, each time by a fresh
process; the best three, a plain read loop and dd then take turns in random order. The
file is only read. The end is a command that can be run, and what it takes in a program.

--cache as-is takes the file as it is: what is not in the page cache comes there with the
first reading. --cache cold evicts the file before each trial, which other programs that
use it pay for too, and wants --allow-evict. With --allow-evict a warm file that is cached in small
pieces is at the end dropped once and read again in large folios: what that takes, and what
the file gives then.";

const TUNE_COPY_EXAMPLE: &str = "\
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
    #[command(after_help = TUNE_READ_EXAMPLE)]
    Read(TuneRead),
    /// Find the fastest way to copy a file into a folder
    #[command(after_help = TUNE_COPY_EXAMPLE)]
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
