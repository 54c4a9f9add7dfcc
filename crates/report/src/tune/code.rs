//! A result as something to use: a command to run, and settings for who writes the
//! program.

use iolens_model::file::Consumer;
use iolens_model::shell::quoted;
use iolens_model::tune::{Configuration, Record, Task, Way};
use iolens_model::units::Bytes;

/// What a program does that does nothing special.
#[must_use]
pub fn baseline(task: Task) -> Configuration {
    let engine = match task {
        Task::Read => "read",
        Task::Copy => "read_write",
    };
    Configuration { engine: engine.to_owned(), block_bytes: 128 << 10, threads: 1, depth: 1 }
}

/// A size as the command line takes it: `128KiB`.
pub(crate) fn size_argument(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(Bytes::MIB) => format!("{}MiB", bytes / Bytes::MIB),
        _ if bytes.is_multiple_of(Bytes::KIB) => format!("{}KiB", bytes / Bytes::KIB),
        _ => bytes.to_string(),
    }
}

/// The command that does again what a configuration does.
#[must_use]
pub fn command(record: &Record, winner: &Configuration) -> String {
    let file = quoted(&record.facts.file);
    let Configuration { engine, block_bytes, threads, depth } = winner;
    let block = size_argument(*block_bytes);
    let mut text = match (record.wishes.task, &record.facts.folder) {
        (Task::Copy, Some((folder, _))) => {
            let name = record.facts.file.rsplit('/').next().unwrap_or("copy");
            let copy = quoted(&format!("{}/{name}.copy", folder.trim_end_matches('/')));
            format!("iolens file copy {file} {copy} --engine {engine} --block-size {block}")
        }
        _ => format!("iolens file read {file} --engine {engine} --block-size {block}"),
    };
    if *threads > 1 {
        text.push_str(&format!(" --threads {threads}"));
    }
    if *depth > 1 {
        text.push_str(&format!(" --queue-depth {depth}"));
    }
    if record.wishes.task == Task::Read && record.wishes.consumer == Consumer::Scan {
        text.push_str(" --scan");
    }
    text
}

/// The same for who writes the program: calls and flags, block, threads.
#[must_use]
pub(super) fn in_code(record: &Record, winner: &Configuration) -> Vec<String> {
    let found = record.candidates.iter().find(|candidate| candidate.engine == winner.engine);
    let calls = found.map_or_else(|| winner.engine.clone(), |candidate| candidate.calls.clone());
    let threads = match winner.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads, each with a contiguous range and a descriptor of its own"),
    };
    let depth = match winner.depth {
        1 => String::new(),
        n => format!(", {n} under way in each"),
    };
    let mut lines =
        vec![calls, format!("blocks of {}, {threads}{depth}", Bytes(winner.block_bytes))];
    let is_direct = found.is_some_and(|candidate| candidate.way == Way::Direct);
    if let Some(alignment) = record.facts.direct_alignment_bytes.filter(|_| is_direct) {
        lines.push(format!("offsets, lengths and buffers multiples of {alignment} bytes"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_the_command_line_takes_them() {
        assert_eq!([4096, 8 << 20, 100].map(size_argument), ["4KiB", "8MiB", "100"]);
    }
}
