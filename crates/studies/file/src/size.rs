//! How large a file must be so that reading it takes a wanted time: found by
//! doubling and then interpolating, with a file of ours in the user's folder. It has
//! no name ([`TestFile`]), so that nothing is left of it however this ends, and
//! nothing has to be written down for later.

use std::hash::{BuildHasher, Hasher, RandomState};

use iolens_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::engines;
use crate::file_path::FilePath;
use crate::part::{Part, Pattern};
use crate::read::consume::Consumer;
use crate::read::drive::Setup;
use crate::residency::Residency;
use crate::test_file::{Room, TestFile};
use iolens_harness::op::Budget;

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Where the file is made.
    pub folder: FilePath,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The least time that reading it may take.
    pub at_least: Nanos,
    /// The most.
    pub at_most: Nanos,
    /// Whether the file stays, under a name.
    pub keep: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The size.
    pub bytes: u64,
    /// How long reading it took.
    pub time: Nanos,
    /// What of it was in the page cache then.
    pub resident: Residency,
    /// The room that there was.
    pub free: Bytes,
    /// What was to stay free.
    pub reserve: Bytes,
    /// Why it is not the time that ended the search.
    pub limit: Option<Limit>,
    /// Every size that was tried, and its time, in order.
    pub tried: Vec<(u64, Nanos)>,
    /// The file system of the folder.
    pub file_system: String,
    /// Where the file is, if it was to stay.
    pub kept: Option<FilePath>,
}

/// Why the time is not as wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// No larger file had room.
    Space,
    /// One block takes longer already.
    Block,
    /// Times differed too much from one try to the next.
    Noise,
}

/// The first size, unless a block is larger.
const FIRST_BYTES: u64 = 1 << 20;

/// Below this part of the wanted time, sizes are doubled: start-up and caches make
/// short times say little about long ones.
const DOUBLING_PART: u64 = 4;

/// Sizes that are tried after the doubling.
const CORRECTIONS: usize = 8;

/// Finds the size.
///
/// Errors: what was tried and what the system said.
pub fn find(wish: &Wish, mut note: impl FnMut(&str)) -> Result<Done, String> {
    let folder = wish.folder.path();
    let room = Room::of(&folder)?;
    let largest = room.usable().0 / wish.block_bytes * wish.block_bytes;
    if largest == 0 {
        return Err(format!(
            "{} has no room for a block of {}: {room}",
            folder.display(),
            Bytes(wish.block_bytes)
        ));
    }
    let random = random();
    let mut file = TestFile::make(&folder, random)?;
    let mut search = Search::of(wish, largest);
    let mut last = None;
    while let Some(bytes) = search.next() {
        file.resize(bytes, || false).map_err(|e| e.to_string())?;
        let (time, resident) = time_of(&file, wish.block_bytes)?;
        note(&format!("{}: {time}", Bytes(bytes)));
        search.tried.push((bytes, time));
        last = Some((bytes, time, resident));
    }
    let (bytes, time, resident) = last.ok_or("no size was tried")?;
    let kept = match wish.keep {
        true => Some(FilePath::new(&file.keep(&format!("iolens-{bytes}-{random:016x}.bin"))?)),
        false => None,
    };
    Ok(Done {
        bytes,
        time,
        resident,
        free: room.free,
        reserve: room.reserve,
        limit: search.limit,
        tried: search.tried,
        file_system: file.subject()?.file_system().to_owned(),
        kept,
    })
}

/// What nobody can guess: a seed, and part of a name.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Reads all of the file once, as any program would.
fn time_of(file: &TestFile, block_bytes: u64) -> Result<(Nanos, Residency), String> {
    let subject = file.subject()?;
    let part = Part { block_bytes, start: 0, end: subject.bytes() };
    let resident = Residency::of(&subject, 0, subject.bytes());
    let (pattern, consumer) = (Pattern::Sequential, Consumer::None);
    let setup = Setup { subject: &subject, part, pattern, first: 0, seed: 0, depth: 1, consumer };
    let engine = engines::that_reads("read").ok_or("this build cannot read")?;
    let mut reader = engine.start(setup)?;
    let span = reader
        .run(&Budget::messages(part.blocks(), 1))
        .map_err(|errno| format!("cannot read {}: {errno}", subject.name()))?;
    Ok((Nanos(span.last_call_ns - span.first_call_ns), resident))
}

/// Which size to try next.
#[derive(Debug)]
struct Search {
    block: u64,
    largest: u64,
    at_least: u64,
    at_most: u64,
    corrections: usize,
    tried: Vec<(u64, Nanos)>,
    limit: Option<Limit>,
}

impl Search {
    fn of(wish: &Wish, largest: u64) -> Search {
        Search {
            block: wish.block_bytes,
            largest,
            at_least: wish.at_least.0,
            at_most: wish.at_most.0,
            corrections: 0,
            tried: Vec::new(),
            limit: None,
        }
    }

    /// The next size; nothing when the last one is the answer.
    fn next(&mut self) -> Option<u64> {
        let Some(&(bytes, Nanos(time))) = self.tried.last() else {
            return Some(self.in_blocks(FIRST_BYTES));
        };
        let is_short = time < self.at_least;
        if !is_short && time <= self.at_most {
            return None;
        }
        if is_short && bytes == self.largest || !is_short && bytes == self.block {
            self.limit = Some(if is_short { Limit::Space } else { Limit::Block });
            return None;
        }
        if time < self.at_least / DOUBLING_PART {
            return Some(self.in_blocks(bytes.saturating_mul(2)));
        }
        self.corrections += 1;
        if self.corrections > CORRECTIONS {
            self.limit = Some(Limit::Noise);
            return None;
        }
        // Time is about proportional to size once caches are full or warm. As far
        // from the least time as from the most, as a factor.
        let wanted = (u128::from(self.at_least) * u128::from(self.at_most)).isqrt();
        let next = u128::from(bytes) * wanted / u128::from(time.max(1));
        let next = self.in_blocks(u64::try_from(next).unwrap_or(u64::MAX));
        // A step that goes nowhere would be the same size again.
        Some(if next == bytes { self.in_blocks(self.beside(bytes, is_short)) } else { next })
    }

    fn beside(&self, bytes: u64, larger: bool) -> u64 {
        if larger { bytes + self.block } else { bytes - self.block }
    }

    /// A number of whole blocks, for which there is room.
    fn in_blocks(&self, bytes: u64) -> u64 {
        (bytes / self.block * self.block).clamp(self.block, self.largest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wish(block_bytes: u64, at_least_ms: u64, at_most_ms: u64) -> Wish {
        Wish {
            folder: FilePath::new(&std::env::temp_dir()),
            block_bytes,
            at_least: Nanos(at_least_ms * 1_000_000),
            at_most: Nanos(at_most_ms * 1_000_000),
            keep: false,
        }
    }

    /// The sizes that are tried where reading takes as long as `time` says.
    fn searched(wish: &Wish, largest: u64, time: impl Fn(u64) -> u64) -> Search {
        let mut search = Search::of(wish, largest);
        while let Some(bytes) = search.next() {
            assert!(bytes.is_multiple_of(wish.block_bytes) && bytes <= largest, "{search:?}");
            search.tried.push((bytes, Nanos(time(bytes))));
            assert!(search.tried.len() < 100, "it ends: {search:?}");
        }
        search
    }

    proptest! {
        #[test]
        fn the_time_is_met_wherever_a_size_meets_it(
            block in 1u64..1 << 22,
            bytes_per_us in 1u64..20_000,
            start_us in 0u64..1000,
        ) {
            let time = |bytes| start_us * 1000 + bytes * 1000 / bytes_per_us;
            let search = searched(&wish(block, 5000, 15_000), u64::MAX / 2, time);
            let (bytes, Nanos(time)) = *search.tried.last().unwrap();
            match search.limit {
                None => prop_assert!((5_000_000_000..=15_000_000_000).contains(&time)),
                Some(limit) => prop_assert_eq!((limit, bytes), (Limit::Block, block)),
            }
            // Twenty-odd doublings of a megabyte are a terabyte.
            prop_assert!(search.tried.len() < 45, "{search:?}");
        }
    }

    #[test]
    fn limits_are_told() {
        let small = wish(4096, 1000, 2000);
        let space = searched(&small, 10 << 20, |bytes| bytes / 1000);
        assert_eq!((space.limit, space.tried.last().unwrap().0), (Some(Limit::Space), 10 << 20));
        let block = searched(&small, 1 << 30, |_| 3_000_000_000);
        assert_eq!((block.limit, block.tried.last().unwrap().0), (Some(Limit::Block), 4096));
        let noise = searched(&small, 1 << 30, |bytes| match bytes / 4096 % 2 {
            0 => 999_000_000,
            _ => 2_001_000_000,
        });
        assert!(noise.limit.is_some());
    }

    #[test]
    fn a_file_is_made_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { folder: FilePath::new(folder.path()), ..wish(64 << 10, 1, 4000) };
        let mut notes = 0;
        let found = find(&wish, |_| notes += 1);
        match found {
            Ok(done) => {
                assert_eq!((done.tried.len(), done.kept), (notes, None));
                assert!(done.bytes >= 64 << 10 && done.time.0 > 0);
            }
            Err(why) => assert!(why.contains("has no room"), "{why}"),
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
