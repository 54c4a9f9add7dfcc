//! `iolens file write`: a file from its beginning to its end.

use std::process::ExitCode;

use iolens_file::engines::WRITING;
use iolens_file::job::{FilePath, Job};
use iolens_file::write::by_hand::{Done as Writing, Syncing, Wish};
use iolens_model::units::{Bytes, Nanos};
use iolens_report::json::SCHEMA;
use serde_json::{Value, json};

use super::{answer, page};
use crate::args::FileWrite;
use crate::failure::Failure;

/// Writes.
pub(super) fn write(args: &FileWrite) -> Result<ExitCode, Failure> {
    let engine = super::engine(
        &args.engine,
        iolens_file::engines::that_writes,
        WRITING.iter().map(|entry| entry.id),
    )?
    .id;
    let wish = Wish {
        path: FilePath::new(&args.path),
        engine: engine.to_owned(),
        block_bytes: args.block.0,
        count: args.count,
        syncing: if args.fsync { Syncing::Fsync } else { args.sync },
        overwrite: args.overwrite,
        seed: args.seed,
    };
    let done = answer!(Write, super::done(&Job::Write(wish.clone()))?)?;
    let text = match args.json {
        true => format!("{:#}", object(args, &wish, &done)),
        false if done.failure.is_some() && done.moved.bytes == 0 => String::new(),
        false => text(args, &wish, &done),
    };
    super::conclude(&text, done.failure.as_deref())
}

fn text(args: &FileWrite, wish: &Wish, done: &Writing) -> String {
    let over = if done.was_there { "wrote over" } else { "wrote" };
    let blocks = if wish.count == 1 { "block" } else { "blocks" };
    let blocks = format!("{} {blocks} of {}", wish.count, args.block);
    let dsync = if wish.syncing == Syncing::Dsync { ", each to the device (O_DSYNC)" } else { "" };
    let headline = format!("{}: {over} {}, {blocks}{dsync}", wish.engine, args.path.display());
    let moved = &done.moved;
    let mut rows = vec![
        ("bytes", page::bytes(moved.bytes)),
        ("blocks", moved.blocks.to_string()),
        ("calls", page::calls(moved)),
        ("seconds", format!("{:.6}, without making the content", done.time.as_seconds())),
        ("rate", page::rate(moved.bytes, done.time)),
    ];
    let sync = done.sync_time.map(|time| page::sync(done.time, time, moved.bytes));
    let call = match wish.syncing {
        // Only the cut of a file that was longer is left to sync.
        Syncing::Dsync => Syncing::Fdatasync,
        syncing => syncing,
    };
    rows.extend(sync.map(|sync| (call.word(), sync)));
    rows.extend(done.checksum.map(|value| ("checksum", format!("{value:016x}"))));
    let before = done.resident_before.as_ref();
    rows.push(("resident", page::resident_twice(before, &done.resident_after)));
    rows.push(("CPU time", cpu(done, call)));
    rows.push(("file system", done.file_system.clone()));
    rows.extend(done.facts.iter().map(|(name, value)| (name.as_str(), value.clone())));
    page::page(&headline, &rows, &done.notes)
}

/// `12.1 ms, without making the content, with the fsync`: of the same as the seconds.
fn cpu(done: &Writing, call: Syncing) -> String {
    let Some(cpu) = done.cpu else { return "unknown: clock_gettime(2) failed".to_owned() };
    let sync = match done.sync_time {
        Some(_) => format!(", with the {}", call.word()),
        None => String::new(),
    };
    format!("{cpu}, without making the content{sync}")
}

/// A writing for programs. A null is what is not known, or was not asked for.
fn object(args: &FileWrite, wish: &Wish, done: &Writing) -> Value {
    let moved = &done.moved;
    let both = done.sync_time.map(|sync| Nanos(done.time.0 + sync.0));
    json!({
        "schema": SCHEMA,
        "file": args.path.to_string_lossy(),
        "file_system": done.file_system,
        "overwrote": done.was_there,
        "engine": wish.engine,
        "block_bytes": Bytes(wish.block_bytes),
        "blocks_asked": wish.count,
        "sync": wish.syncing,
        "seed": wish.seed,
        "bytes": moved.bytes,
        "blocks": moved.blocks,
        "calls": moved.calls,
        "short_calls": moved.short_calls,
        "time_ns": done.time,
        "sync_time_ns": done.sync_time,
        "bytes_per_s": page::bytes_per_s(moved.bytes, done.time),
        "bytes_per_s_with_sync": both.and_then(|time| page::bytes_per_s(moved.bytes, time)),
        "checksum": done.checksum.map(|value| format!("{value:016x}")),
        "resident_before_share": done.resident_before.as_ref().and_then(|before| before.share()),
        "resident_after_share": done.resident_after.share(),
        "cpu_ns": done.cpu,
        // The kernel divides the CPU time of the whole process, with the making of the content.
        "cpu_user_ns": null,
        "cpu_system_ns": null,
        "facts": page::facts(&done.facts),
        "notes": done.notes,
        "failure": done.failure,
    })
}
