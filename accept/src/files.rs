//! Reading, writing and copying files.

mod block_sizes;
mod by_hand;
mod file_systems;
mod memory;
mod rivals;
mod tune;

use crate::json::equivalent;
use crate::prelude::*;

pub const LINES: &[Line] = &[
    line(
        "by-hand",
        "the plain tools do what the help says on a 1 MiB + 3 B file at blocks of 1 B, 4096 B and 1 \
         MiB, checksum equal to an independent one, and on a missing, short, existing or directory \
         path give one clear message",
        &[],
        by_hand::check,
    ),
    line(
        "block-sizes",
        "`run plans/file-block-sizes.toml` gives 23 × 2 cells per engine with verified states, the \
         fit and the knee; no cold cell is valid whose bytes were not read from the device",
        &[],
        block_sizes::check,
    ),
    line(
        "unfit",
        "a file with holes, an fallocated file and a file of zeros are each flagged before timing",
        &["fallocate"],
        by_hand::unfit,
    ),
    line(
        "fio",
        "fio psync and ours agree within 5% at 64 KiB and 1 MiB, warm, interleaved, buffers \
         aligned alike, the time of each harness in user code taken off",
        &["fio"],
        rivals::fio,
    ),
    line(
        "tune",
        "`tune read` on a warm 1 GiB file, data scanned, twice: the same class of winner, bound and \
         share named; at least 85% of the memory scan bound at its number of threads, at least \
         1.5 × dd bs=128K",
        &[],
        tune::check,
    ),
    line(
        "bare-read",
        "1-byte and 512-byte `read` loops are EQUIVALENT (δ = 3%) to a bare loop of the same calls \
         run as an arm",
        &[],
        bare_read,
    ),
    line(
        "fio-small",
        "512-byte reads reach at least 1.3 × the rate of fio's psync engine with `gtod_reduce=1`",
        &["fio"],
        rivals::fio_small,
    ),
    line(
        "google-benchmark",
        "a google-benchmark program with the same copy loop reads as ours within 5%",
        &["c++", "google-benchmark", "google-benchmark-copy"],
        rivals::google_benchmark,
    ),
    line(
        "memory",
        "memory use of the tool stays under 64 MiB beyond its buffers",
        &[],
        memory::check,
    ),
    line(
        "file-systems",
        "ext4, xfs, btrfs, tmpfs, overlay and FUSE give each plain tool and a run a result or a \
         clear message, a device that fails one with EIO, a quota one with EDQUOT, copies are cold, \
         shared and gone on with, and nothing of the user's is lost",
        &["root", "unshare", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "bindfs"],
        file_systems::check,
    ),
];

fn bare_read(bench: &Bench) -> Res {
    let run = "run file --engines read,bare_read --baseline read --block-sizes 1,512 --threads 1 \
               --cache warm --consumer none --precision 1.5% --budget 60s --json";
    equivalent(bench, &bench.json(run)?, "bare_read", 2);
    Ok(())
}
