//! `iolens file read`: a file once, from its beginning to its end.

use std::process::ExitCode;

use iolens_file::engines::READING;
use iolens_file::job::{FilePath, Job};
use iolens_file::read::by_hand::{Done as Reading, Wish};
use iolens_file::read::consume::Consumer;
use iolens_file::read::drive::Tally;
use iolens_file::residency::Residency;
use iolens_report::json::SCHEMA;
use serde_json::{Value, json};

use super::{answer, page};
use crate::args::FileRead;
use crate::failure::{Failure, usage};

/// Reads under way at once where an engine can have several.
const DEPTH: u32 = 8;

/// Reads.
pub(super) fn read(args: &FileRead) -> Result<ExitCode, Failure> {
    let wish = wish(args)?;
    let done = answer!(Read, super::done(&Job::Read(wish.clone()))?)?;
    let text = match args.json {
        true => format!("{:#}", object(args, &wish, &done)),
        false => text(args, &wish, &done),
    };
    super::conclude(&text, done.failure.as_deref())
}

/// What is asked for, as far as it can be.
fn wish(args: &FileRead) -> Result<Wish, Failure> {
    let entry = super::engine(
        &args.engine,
        iolens_file::engines::that_reads,
        READING.iter().map(|entry| entry.id),
    )?;
    let depth = match (args.depth, entry.has_depth) {
        (depth, true) => depth.unwrap_or(DEPTH),
        (None, false) => 1,
        (Some(_), false) => {
            let with: Vec<&str> =
                READING.iter().filter(|entry| entry.has_depth).map(|entry| entry.id).collect();
            return Err(usage!(
                "`{}` has one read under way at a time: --queue-depth is for {}",
                entry.id,
                with.join(", ")
            ));
        }
    };
    let consumer = match (args.checksum, args.xor, args.scan) {
        (true, true, _) => Consumer::HashAndXor,
        (true, false, _) => Consumer::Hash,
        (false, true, _) => Consumer::Xor,
        (false, false, true) => Consumer::Scan,
        (false, false, false) => Consumer::None,
    };
    Ok(Wish {
        path: FilePath::new(&args.path),
        engine: entry.id.to_owned(),
        block_bytes: args.block.0,
        extent: None,
        count: args.count,
        loops: args.loops,
        threads: args.threads,
        depth,
        pattern: args.pattern,
        seed: args.seed,
        consumer,
        evict: args.evict,
    })
}

fn text(args: &FileRead, wish: &Wish, done: &Reading) -> String {
    let threads = page::threads(done.threads);
    let times = match wish.loops {
        1 => String::new(),
        loops => format!(" {loops} times"),
    };
    let mut headline = format!(
        "{}: read {}{times} in blocks of {}, {}, {threads}",
        wish.engine,
        args.path.display(),
        args.block,
        wish.pattern.word(),
    );
    if wish.depth > 1 {
        headline.push_str(&format!(", {} reads under way in each", wish.depth));
    }
    let tally = &done.tally;
    let mut rows = vec![
        ("bytes", amount(tally.bytes, wish.loops, done.file_bytes)),
        ("blocks", blocks(tally.blocks, wish)),
        ("calls", calls(tally)),
        ("seconds", format!("{:.6}", done.time.as_seconds())),
        (
            "rate",
            match done.only_touched {
                true => "none, as one byte of each page was touched: --scan reads all".to_owned(),
                false => page::rate(tally.bytes, done.time),
            },
        ),
    ];
    rows.extend(done.checksum.map(|value| ("checksum", format!("{value:016x}"))));
    rows.extend(done.xor.map(|value| ("xor", format!("{value:08x}"))));
    let before = Some(&done.resident_before);
    rows.push(("resident", page::resident_twice(before, &done.resident_after)));
    rows.push((
        "from device",
        match done.device_bytes {
            Some(bytes) => page::bytes(bytes),
            None => "unknown: /proc/self/io does not say".to_owned(),
        },
    ));
    rows.push(("CPU time", page::cpu(done.cpu)));
    rows.push(("file system", done.file_system.clone()));
    rows.extend(done.facts.iter().map(|(name, value)| (name.as_str(), value.clone())));
    page::page(&headline, &rows, &done.notes)
}

/// Blocks that were asked for, over all loops; null for as many as there are.
fn blocks_asked(wish: &Wish) -> Option<u64> {
    wish.count.map(|count| count.saturating_mul(u64::from(wish.loops)))
}

/// `1024`, or `1024 of the 4096 asked for: the file has no more`.
fn blocks(read: u64, wish: &Wish) -> String {
    match blocks_asked(wish).filter(|&asked| read < asked) {
        Some(asked) => format!("{read} of the {asked} asked for: the file has no more"),
        None => read.to_string(),
    }
}

/// `1048576 (1 MiB), all of the file`.
fn amount(bytes: u64, loops: u32, file_bytes: u64) -> String {
    let all = file_bytes.saturating_mul(u64::from(loops));
    match (bytes == all, loops) {
        (true, 1) => format!("{}, all of the file", page::bytes(bytes)),
        (true, _) => format!("{}, all of the file {loops} times", page::bytes(bytes)),
        (false, _) => format!("{} of {}", page::bytes(bytes), page::bytes(all)),
    }
}

/// `257, 3.98 KiB per call`, and what else was called or went otherwise than usual.
fn calls(tally: &Tally) -> String {
    let mut text = page::calls_of(tally.calls - tally.seeks, tally.bytes);
    let unusual = [
        (tally.seeks, "more moved the position (lseek)"),
        (tally.short_reads, "cut short"),
        (tally.interrupted, "interrupted (EINTR)"),
        (tally.would_block, "would have had to wait (EAGAIN)"),
    ];
    for (n, what) in unusual.into_iter().filter(|(n, _)| *n > 0) {
        text.push_str(&format!("; {n} {what}"));
    }
    text
}

/// A reading for programs. A null is what is not known, or was not asked for.
fn object(args: &FileRead, wish: &Wish, done: &Reading) -> Value {
    let why = |residency: &Residency| match residency {
        Residency::Unknown(why) => Some(why.clone()),
        Residency::Known { .. } => None,
    };
    let [cpu, user, system] = page::cpu_ns(done.cpu);
    json!({
        "schema": SCHEMA,
        "file": args.path.to_string_lossy(),
        "file_bytes": done.file_bytes,
        "file_system": done.file_system,
        "engine": wish.engine,
        "block_bytes": wish.block_bytes,
        "loops": wish.loops,
        "threads": done.threads,
        "depth": wish.depth,
        "pattern": wish.pattern,
        "consumer": wish.consumer,
        "bytes": done.tally.bytes,
        "blocks": done.tally.blocks,
        "blocks_asked": blocks_asked(wish),
        "calls": done.tally.calls,
        "seeks": done.tally.seeks,
        "short_reads": done.tally.short_reads,
        "interrupted": done.tally.interrupted,
        "would_block": done.tally.would_block,
        "time_ns": done.time,
        "only_touched": done.only_touched,
        "bytes_per_s": page::bytes_per_s(done.tally.bytes, done.time).filter(|_| !done.only_touched),
        "checksum": done.checksum.map(|value| format!("{value:016x}")),
        "xor": done.xor.map(|value| format!("{value:08x}")),
        "evicted": wish.evict,
        "resident_before_share": done.resident_before.share(),
        "resident_after_share": done.resident_after.share(),
        "resident_unknown_reason": why(&done.resident_before).or(why(&done.resident_after)),
        "device_bytes": done.device_bytes,
        "cpu_ns": cpu,
        "cpu_user_ns": user,
        "cpu_system_ns": system,
        "facts": page::facts(&done.facts),
        "notes": done.notes,
        "failure": done.failure,
    })
}
