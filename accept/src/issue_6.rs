//! Issue 6: reading, writing and copying files.

use serde_json::Value;

use super::{
    Bench, Judged, Line, Outcome, block_sizes, by_hand, file_rivals, file_systems, memory, results,
    tune,
};

pub(crate) const LINES: &[Line] = &[
    Line {
        issue: 6,
        id: "a",
        promise: "the plain tools do what the help says on a 1 MiB + 3 B file at blocks of 1 B, \
                  4096 B and 1 MiB, checksum equal to an independent one, and on a missing, \
                  short, existing or directory path give one clear message",
        check: by_hand::check,
    },
    Line {
        issue: 6,
        id: "b",
        promise: "`run plans/file-block-sizes.toml` gives 23 × 2 cells per engine with verified \
                  states, the fit and the knee; no cold cell is valid whose bytes were not read \
                  from the device",
        check: block_sizes::check,
    },
    Line {
        issue: 6,
        id: "c",
        promise: "a file with holes, an fallocated file and a file of zeros are each flagged \
                  before timing",
        check: by_hand::check_flags,
    },
    Line {
        issue: 6,
        id: "d",
        promise: "fio psync and ours agree within 5 % at 64 KiB and 1 MiB, warm, interleaved, \
                  buffers aligned alike, the time of each harness in user code taken off",
        check: file_rivals::check_fio,
    },
    Line {
        issue: 6,
        id: "e",
        promise: "`tune read` on a warm 1 GiB file, data scanned, twice: the same class of winner, \
                  bound and share named; at least 85 % of the memory scan bound at its number of \
                  threads, at least 1.5 × dd bs=128K",
        check: tune::check,
    },
    Line {
        issue: 6,
        id: "f",
        promise: "1-byte and 512-byte `read` loops are EQUIVALENT (δ = 3 %) to a bare loop of the \
                  same calls run as an arm",
        check: check_bare,
    },
    Line {
        issue: 6,
        id: "g",
        promise: "512-byte reads reach at least 1.3 × the rate of fio's psync engine with \
                  `gtod_reduce=1`",
        check: file_rivals::check_small,
    },
    Line {
        issue: 6,
        id: "h",
        promise: "a google-benchmark program with the same copy loop reads as ours within 5 %",
        check: file_rivals::check_witness,
    },
    Line {
        issue: 6,
        id: "i",
        promise: "memory use of the tool stays under 64 MiB beyond its buffers",
        check: memory::check,
    },
    Line {
        issue: 6,
        id: "j",
        promise: "file systems: ext4, xfs, btrfs, tmpfs, overlay and FUSE give each plain tool and \
                  a run a result or a clear message, a device that fails one with EIO, a quota one \
                  with EDQUOT, copies are cold, shared and gone on with, and nothing of the \
                  user's is lost",
        check: file_systems::check,
    },
];

const BARE: &str = "run file --engines read,bare_read --baseline read --block-sizes 1,512 --threads 1 \
                    --cache warm --consumer none --precision 1.5% --budget 60s --json";

fn check_bare(bench: &Bench) -> Judged {
    let args: Vec<&str> = BARE.split_whitespace().collect();
    let json = bench.iolens_json("bare_read", &args, 4)?.json;
    let rows = json["cells"].as_array().into_iter().flatten();
    let bare: Vec<&Value> = rows.filter(|row| row["primitive"] == "bare_read").collect();
    let evidence: Vec<String> = bare.iter().map(|row| results::ratio_words(row)).collect();
    let passes = bare.len() == 2 && bare.iter().all(|row| row["verdict"] == "EQUIVALENT");
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}
