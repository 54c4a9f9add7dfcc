//! The study `copy`: its axes, the programs that are its arms, and what starting
//! them takes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::axes::{axis, crossed};
use crate::file::{CacheState, Pattern};
use crate::transport::SenderTask;
use crate::units::Bytes;

axis! {
    /// What belongs to the time of a copy besides the copying.
    CopySync {
        /// Nothing: the copy is in the page cache when its time ends.
        None = "none",
        /// fsync(2) of the destination: it is on its device when its time ends.
        Fsync = "fsync",
    }
}

/// One setting of the axes that `copy` alone has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CopySetting {
    /// Bytes that one call is asked to move.
    pub block_bytes: Bytes,
    /// What of the source is in the page cache before.
    pub cache: CacheState,
    /// What belongs to the time besides.
    pub sync: CopySync,
}

impl CopySetting {
    /// `blocks of 4 KiB`.
    #[must_use]
    pub fn block_in_words(&self) -> String {
        format!("blocks of {}", self.block_bytes)
    }

    /// `fsync within the time`; `None` where nothing besides copying is.
    #[must_use]
    pub fn sync_in_words(&self) -> Option<String> {
        (self.sync == CopySync::Fsync).then(|| "fsync within the time".to_owned())
    }
}

/// The axes of `copy`, its source and its programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyAxes {
    /// Bytes that one call is asked to move.
    pub block: Vec<Bytes>,
    /// What of the source is in the page cache before.
    pub cache: Vec<CacheState>,
    /// What belongs to the time of a copy.
    pub sync: Vec<CopySync>,
    /// The user's file, which is only read, and whose size is the only one; `None` for
    /// files of ours, one of each size.
    pub file: Option<String>,
    /// The folder where ours are made and all are copied to; `None` for that of
    /// temporary files.
    pub dir: Option<String>,
    /// Whether the user's file may be evicted from the page cache, of which other
    /// processes that use it hear.
    pub evict: bool,
    /// Programs of the user's that are arms.
    pub external: Vec<External>,
}

impl CopyAxes {
    /// Every setting, in the order of the axes.
    pub(crate) fn settings(&self) -> Vec<CopySetting> {
        let first =
            CopySetting { block_bytes: Bytes(0), cache: CacheState::Warm, sync: CopySync::None };
        let all = crossed(vec![first], &self.cache, |one, &cache| one.cache = cache);
        let all = crossed(all, &self.sync, |one, &sync| one.sync = sync);
        crossed(all, &self.block, |one, &block| one.block_bytes = block)
    }

    /// What tells a setting from others of the plan.
    pub(crate) fn told_apart(&self, copy: &CopySetting) -> Vec<String> {
        let rows = [
            (self.block.len(), Some(copy.block_in_words())),
            (self.cache.len(), Some(copy.cache.to_string())),
            (self.sync.len(), copy.sync_in_words()),
        ];
        rows.into_iter().filter(|(values, _)| *values > 1).filter_map(|(_, word)| word).collect()
    }
}

/// A program of the user's as an arm: one that copies or reads a file, serves, sends, or makes
/// calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct External {
    /// The arm's id.
    pub name: String,
    /// Its argument list, the program first. Within an argument of one that copies,
    /// `{src}`, `{dst}` and `{block}` stand for the source, the destination and the bytes
    /// of a block; of one that serves, `{port}` and `{address}` for where it is to listen; of
    /// one that sends, what is in [`SenderTask`]; of one that reads, `{file}`, `{block}` and
    /// `{pattern}`; of one that makes calls, `{size}` for the bytes that each moves.
    pub argv: Vec<String>,
}

impl External {
    /// The argument list with every placeholder replaced.
    #[must_use]
    pub fn with(&self, source: &[u8], destination: &[u8], block: Bytes) -> Vec<Vec<u8>> {
        let block = block.0.to_string();
        let values = [("{src}", source), ("{dst}", destination), ("{block}", block.as_bytes())];
        self.with_values(&values)
    }

    /// The same of a program that serves.
    #[must_use]
    pub fn with_address(&self, address: SocketAddr) -> Vec<Vec<u8>> {
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        self.with_values(&[("{port}", port.as_bytes()), ("{address}", ip.as_bytes())])
    }

    /// The same of a program that sends.
    #[must_use]
    pub fn with_task(&self, task: &SenderTask) -> Vec<Vec<u8>> {
        let (host, port) = (task.receiver.ip().to_string(), task.receiver.port().to_string());
        let numbers = [task.size.0, task.threads.into(), task.messages, task.seconds];
        let [size, threads, messages, seconds] = numbers.map(|number| number.to_string());
        let values = [
            ("{host}", &host),
            ("{port}", &port),
            ("{size}", &size),
            ("{threads}", &threads),
            (MESSAGES_KEY, &messages),
            ("{seconds}", &seconds),
        ];
        self.with_values(&values.map(|(key, value)| (key, value.as_bytes())))
    }

    /// The same of a program that reads.
    #[must_use]
    pub fn with_file(&self, file: &[u8], block: Bytes, pattern: Pattern) -> Vec<Vec<u8>> {
        let (block, pattern) = (block.0.to_string(), pattern.to_string());
        let values =
            [("{file}", file), ("{block}", block.as_bytes()), ("{pattern}", pattern.as_bytes())];
        self.with_values(&values)
    }

    /// The same of a program that makes calls.
    #[must_use]
    pub fn with_size(&self, size: Bytes) -> Vec<Vec<u8>> {
        self.with_values(&[("{size}", size.0.to_string().as_bytes())])
    }

    /// Whether a program that sends is told how many messages, and ends by itself.
    #[must_use]
    pub fn counts_messages(&self) -> bool {
        self.argv.iter().any(|word| word.contains(MESSAGES_KEY))
    }

    fn with_values(&self, values: &[(&str, &[u8])]) -> Vec<Vec<u8>> {
        self.argv.iter().map(|argument| replaced(argument.as_bytes(), values)).collect()
    }
}

const MESSAGES_KEY: &str = "{messages}";

/// A text with each key replaced by its value; values are not looked into again.
fn replaced(text: &[u8], values: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut done, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, behind)) = rest.split_first() {
        let found = values.iter().find(|(key, _)| rest.starts_with(key.as_bytes()));
        rest = match found {
            Some((key, value)) => {
                done.extend_from_slice(value);
                &rest[key.len()..]
            }
            None => {
                done.push(first);
                behind
            }
        };
    }
    done
}

/// What starting a program took, before its trial and outside every clock: the same
/// program, copying an empty file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStart {
    /// Index into the trial's arms.
    pub arm: usize,
    /// How often it was started.
    pub runs: u32,
    /// From the call that starts it to the end of waiting for it: the median, ns.
    pub median_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_within_arguments_and_only_once() {
        let argv = ["dd", "if={src}", "of={dst}", "bs={block}", "{}", "{other}"];
        let dd = External { name: "dd".into(), argv: argv.map(str::to_owned).to_vec() };
        let made = dd.with(b"/a b/{dst}\xff", b"/tmp/x", Bytes(4096));
        let expect: [&[u8]; 6] =
            [b"dd", b"if=/a b/{dst}\xff", b"of=/tmp/x", b"bs=4096", b"{}", b"{other}"];
        assert_eq!(made, expect);
    }

    #[test]
    fn a_sender_is_told_where_and_what() {
        let argv = ["./send", "--to={host}:{port}", "-s{size}", "{threads}", "{seconds}s", "{x}"];
        let mut program = External { name: "mine".into(), argv: argv.map(str::to_owned).to_vec() };
        let receiver = SocketAddr::from(([127, 0, 0, 1], 4711));
        let size = Bytes(4096);
        let task = SenderTask { receiver, size, threads: 2, messages: 1000, seconds: 40 };
        let words = |program: &External| {
            let words = program.with_task(&task).into_iter();
            words.map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(&program), "./send --to=127.0.0.1:4711 -s4096 2 40s {x}");
        assert!(!program.counts_messages());
        program.argv.push("-n{messages}".to_owned());
        assert!(program.counts_messages() && words(&program).ends_with(" -n1000"));
    }

    #[test]
    fn settings_are_told_apart_by_what_has_several_values() {
        let axes = CopyAxes {
            block: vec![Bytes(4096), Bytes(1 << 17)],
            cache: vec![CacheState::Warm],
            sync: vec![CopySync::None, CopySync::Fsync],
            file: None,
            dir: None,
            evict: false,
            external: Vec::new(),
        };
        let told: Vec<Vec<String>> =
            axes.settings().iter().map(|setting| axes.told_apart(setting)).collect();
        assert_eq!(told.len(), 4);
        assert_eq!(told[0], ["blocks of 4 KiB"]);
        assert_eq!(told[3], ["blocks of 128 KiB", "fsync within the time"]);
    }
}
