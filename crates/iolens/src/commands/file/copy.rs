//! `iolens file copy`: a file from its beginning to its end into another.

use std::process::ExitCode;

use iolens_file::copy::by_hand::{Done as Copying, Wish};
use iolens_file::copy::engine::{Class, Entry};
use iolens_file::engines::COPYING;
use iolens_file::job::{FilePath, Job};
use iolens_file::residency::Residency;
use iolens_model::units::{Bytes, Nanos};
use iolens_report::json::SCHEMA;
use serde_json::{Value, json};

use super::{answer, page};
use crate::args::FileCopy;
use crate::failure::{Failure, usage};

/// Copies.
pub(super) fn copy(args: &FileCopy) -> Result<ExitCode, Failure> {
    let entry = super::engine(
        &args.engine,
        iolens_file::engines::that_copies,
        COPYING.iter().map(|entry| entry.id),
    )?;
    if let (2.., Some(why)) = (args.threads, entry.one_thread) {
        return Err(usage!(
            "`{}` is the work of one thread: {why}\n  leave --threads out",
            entry.id
        ));
    }
    let wish = Wish {
        source: FilePath::new(&args.source),
        destination: FilePath::new(&args.destination),
        engine: entry.id.to_owned(),
        block_bytes: args.block.0,
        threads: args.threads,
        overwrite: args.overwrite,
        verify: args.verify,
        fsync: args.fsync,
        bytes_max: None,
        keep: true,
    };
    let done = answer!(Copy, super::done(&Job::Copy(wish.clone()))?)?;
    let text = match args.json {
        true => format!("{:#}", object(args, &wish, &done)),
        false if done.failure.is_some() && done.moved.bytes == 0 => String::new(),
        false => text(args, entry, &wish, &done),
    };
    super::conclude(&text, done.failure.as_deref())
}

fn text(args: &FileCopy, entry: &Entry, wish: &Wish, done: &Copying) -> String {
    let verb = match (entry.own.class, done.was_there) {
        (Class::Shares, false) => "cloned",
        (Class::Shares, true) => "cloned over an existing file:",
        (_, false) => "copied",
        (_, true) => "copied over an existing file:",
    };
    let threads = page::threads(done.threads);
    let (from, to) = (args.source.display(), args.destination.display());
    let how = match entry.own.class {
        Class::Shares => "in one call".to_owned(),
        _ => format!("{threads}, in blocks of {}", args.block),
    };
    let headline = format!("{}: {verb} {from} to {to}, {how}", wish.engine);
    let moved = &done.moved;
    let of = page::bytes(done.source_bytes);
    let mut rows = vec![match () {
        () if done.is_reflinked => ("bytes", format!("0 moved, of {of}")),
        () if moved.bytes == done.source_bytes => ("bytes", of),
        () => ("bytes", format!("{} of {of}", page::bytes(moved.bytes))),
    }];
    if entry.own.class != Class::Shares {
        rows.push(("blocks", moved.blocks.to_string()));
    }
    rows.push(("calls", page::calls(moved)));
    rows.push(("seconds", format!("{:.6}", done.time.as_seconds())));
    rows.push(match done.is_reflinked {
        true => ("rate", "none: no bytes moved".to_owned()),
        false => ("rate", page::rate(moved.bytes, done.time)),
    });
    if let Some(time) = done.sync_time {
        rows.push(("fsync", page::sync(done.time, time, moved.bytes)));
    }
    rows.extend(done.checksum.map(|value| ("checksum", format!("{value:016x}, of both"))));
    let [before, after] = &done.source_resident;
    rows.push(("source", resident(Some(before), after, &done.file_systems[0])));
    let before = done.destination_resident_before.as_ref();
    let after = &done.destination_resident_after;
    rows.push(("copy", resident(before, after, &done.file_systems[1])));
    rows.push(("CPU time", page::cpu(done.cpu)));
    rows.extend(done.facts.iter().map(|(name, value)| (name.as_str(), value.clone())));
    page::page(&headline, &rows, &done.notes)
}

/// `ext4, resident 100 % before, 100 % after`.
fn resident(before: Option<&Residency>, after: &Residency, file_system: &str) -> String {
    format!("{file_system}, resident {}", page::resident_twice(before, after))
}

/// A copying for programs. A null is what is not known, or was not asked for.
fn object(args: &FileCopy, wish: &Wish, done: &Copying) -> Value {
    let moved = &done.moved;
    let both = done.sync_time.map(|sync| Nanos(done.time.0 + sync.0));
    let rate = |time| page::bytes_per_s(moved.bytes, time).filter(|_| !done.is_reflinked);
    let [source_before, source_after] = &done.source_resident;
    let before = done.destination_resident_before.as_ref();
    let [cpu, user, system] = page::cpu_ns(done.cpu);
    json!({
        "schema": SCHEMA,
        "source": args.source.to_string_lossy(),
        "destination": args.destination.to_string_lossy(),
        "source_file_system": done.file_systems[0],
        "destination_file_system": done.file_systems[1],
        "source_bytes": Bytes(done.source_bytes),
        "overwrote": done.was_there,
        "engine": wish.engine,
        "block_bytes": wish.block_bytes,
        "threads": done.threads,
        "bytes": moved.bytes,
        "blocks": moved.blocks,
        "calls": moved.calls,
        "short_calls": moved.short_calls,
        "reflinked": done.is_reflinked,
        "shared_bytes": done.shared_bytes,
        "time_ns": done.time,
        "sync_time_ns": done.sync_time,
        "bytes_per_s": rate(done.time),
        "bytes_per_s_with_sync": both.and_then(rate),
        "checksum": done.checksum.map(|value| format!("{value:016x}")),
        "source_resident_before_share": source_before.share(),
        "source_resident_after_share": source_after.share(),
        "destination_resident_before_share": before.and_then(|before| before.share()),
        "destination_resident_after_share": done.destination_resident_after.share(),
        "cpu_ns": cpu,
        "cpu_user_ns": user,
        "cpu_system_ns": system,
        "facts": page::facts(&done.facts),
        "notes": done.notes,
        "failure": done.failure,
    })
}
