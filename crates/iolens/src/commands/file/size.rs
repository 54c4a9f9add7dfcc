//! `iolens file size`: how large a file is to be so that reading it takes a while.

use std::process::ExitCode;

use iolens_file::job::{FilePath, Job};
use iolens_file::size::{Done as Found, Limit, Wish};
use iolens_report::json::SCHEMA;
use serde_json::{Value, json};

use super::{answer, page};
use crate::args::FileSize;
use crate::failure::Failure;
use crate::output;

/// Finds the size.
pub(super) fn size(args: &FileSize) -> Result<ExitCode, Failure> {
    let wish = Wish {
        folder: FilePath::new(&args.folder),
        block_bytes: args.block.0,
        at_least: args.time.0,
        at_most: args.time.1,
        keep: args.keep,
    };
    let found = answer!(Size, super::done(&Job::Size(wish))?)?;
    output::result(&match args.json {
        true => format!("{:#}", object(args, &found)),
        false => text(args, &found),
    });
    Ok(ExitCode::SUCCESS)
}

fn text(args: &FileSize, found: &Found) -> String {
    let headline = format!(
        "reading {} in blocks of {} takes {}",
        page::bytes(found.bytes),
        args.block,
        found.time
    );
    let mut rows = vec![
        ("size", found.bytes.to_string()),
        ("blocks", (found.bytes / args.block.0).to_string()),
        ("seconds", format!("{:.6}", found.time.as_seconds())),
        ("rate", page::rate(found.bytes, found.time)),
        ("resident", page::resident(&found.resident)),
        ("file system", found.file_system.clone()),
        ("free space", format!("{}, and {} are to stay free", found.free, found.reserve)),
    ];
    rows.push((
        "file",
        match &found.kept {
            Some(path) => path.path().display().to_string(),
            None => "removed; --keep would have kept it".to_owned(),
        },
    ));
    let limit = found.limit.map(|limit| limit_words(args, limit));
    page::page(&headline, &rows, &limit.into_iter().collect::<Vec<_>>())
}

/// Why the time is not the wanted one.
fn limit_words(args: &FileSize, limit: Limit) -> String {
    let (at_least, at_most) = args.time;
    match limit {
        Limit::Space => format!(
            "the free space is the limit, not the time: a file that takes {at_least} has no room"
        ),
        Limit::Block => format!("one block of {} takes more than {at_most}", args.block),
        Limit::Noise => format!(
            "no size took between {at_least} and {at_most}: equal sizes took different times"
        ),
    }
}

fn object(args: &FileSize, found: &Found) -> Value {
    let tried = found.tried.iter().map(|(bytes, time)| json!({"bytes": bytes, "time_ns": time}));
    json!({
        "schema": SCHEMA,
        "folder": args.folder.to_string_lossy(),
        "file_system": found.file_system,
        "block_bytes": args.block,
        "bytes": found.bytes,
        "blocks": found.bytes / args.block.0,
        "time_ns": found.time,
        "bytes_per_s": page::bytes_per_s(found.bytes, found.time),
        "resident_share": found.resident.share(),
        "free_bytes": found.free,
        "reserve_bytes": found.reserve,
        "limit": found.limit,
        "limit_reason": found.limit.map(|limit| limit_words(args, limit)),
        "tried": tried.collect::<Vec<_>>(),
        "kept": found.kept.as_ref().map(|path| path.path().to_string_lossy().into_owned()),
    })
}

#[cfg(test)]
mod tests {
    use iolens_model::units::{Bytes, Nanos};

    use super::*;

    #[test]
    fn a_limit_is_a_sentence() {
        let args = FileSize {
            folder: "/".into(),
            block: Bytes(4096),
            time: (Nanos::SECOND, Nanos(2 * Nanos::SECOND.0)),
            keep: false,
            json: false,
        };
        for (limit, expect) in [
            (Limit::Space, "a file that takes 1.00 s has no room"),
            (Limit::Block, "one block of 4 KiB takes more than 2.00 s"),
            (Limit::Noise, "between 1.00 s and 2.00 s"),
        ] {
            let words = limit_words(&args, limit);
            assert!(words.contains(expect), "{words}");
        }
    }
}
