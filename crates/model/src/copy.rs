//! The study `copy`: its axes, the programs that are its arms, and what starting
//! them takes.

use serde::{Deserialize, Serialize};

use crate::axes::{axis, crossed, several};
use crate::external::External;
use crate::file::CacheState;
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
    pub fn block_in_words(&self) -> String {
        format!("blocks of {}", self.block_bytes)
    }

    /// `fsync within the time`; `None` where nothing besides copying is.
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

    /// How many values each axis has.
    pub(crate) fn lengths(&self) -> [usize; 3] {
        [self.cache.len(), self.sync.len(), self.block.len()]
    }

    /// What tells a setting from others of the plan.
    pub(crate) fn told_apart(&self, copy: &CopySetting) -> Vec<String> {
        let rows = [
            (self.block.len(), Some(copy.block_in_words())),
            (self.cache.len(), Some(copy.cache.to_string())),
            (self.sync.len(), copy.sync_in_words()),
        ];
        several(rows)
    }
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
