//! Several links of one source: which files they are, and which of them a trial runs.

use iolens_programs::{ProgramFileError, facts};
use std::collections::BTreeMap;

use iolens_model::ab::{AbLink, AbProgramFacts};
use iolens_stats::ab::AB_LINKS_MIN;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use thiserror::Error;

use crate::pattern;

/// Why files are no links to compare.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AbLinkError {
    /// There are no words.
    #[error("a command is empty: name a pattern of files")]
    Empty,
    /// The pattern has too few files.
    #[error(
        "`{pattern}` names {found} files, and a verdict takes {AB_LINKS_MIN} links at least: link \
         the same objects again with other layouts (docs/ab.md, Several links of one source)"
    )]
    TooFew {
        /// As it was written.
        pattern: String,
        /// Files that it names.
        found: usize,
    },
    /// One of them cannot be run or read.
    #[error(transparent)]
    File(#[from] ProgramFileError),
    /// One of them is no program of a linker's.
    #[error("{0} is no ELF file: only where a linker put the code can differ between links")]
    NotElf(String),
    /// Two are the same.
    #[error(
        "{0} and {1} hold the same bytes, which is one layout: remove one, or link it with \
         another seed"
    )]
    Same(String, String),
}

/// Looks at all files that the first word of a command is a pattern of.
///
/// Errors: what keeps them from being links of one source.
pub fn links(argv: &[String]) -> Result<AbProgramFacts, AbLinkError> {
    let pattern = argv.first().filter(|word| !word.is_empty()).ok_or(AbLinkError::Empty)?;
    let paths = pattern::files(pattern);
    let mut links: Vec<AbLink> = Vec::with_capacity(paths.len());
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for path in &paths {
        let AbProgramFacts { path, sha256, is_elf, .. } = facts(&[path.display().to_string()])?;
        if !is_elf {
            return Err(AbLinkError::NotElf(path));
        }
        if let Some(same) = known.insert(sha256.clone(), path.clone()) {
            return Err(AbLinkError::Same(same, path));
        }
        links.push(AbLink { path, sha256 });
    }
    let first = links.first().cloned().filter(|_| links.len() >= AB_LINKS_MIN as usize);
    let Some(AbLink { path, sha256 }) = first else {
        return Err(AbLinkError::TooFew { pattern: pattern.clone(), found: links.len() });
    };
    Ok(AbProgramFacts { path, sha256, is_elf: true, links })
}

/// Which link of each program the trials run. A round of trials is as many as it takes until
/// every link of every program has run equally often. From one round to the next a link meets
/// others of the baseline, so that in the end each has met all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbLinkOrder {
    seed: u64,
    /// Links of each program, the baseline first; at least 1 each.
    counts: Vec<u32>,
    round: u32,
}

impl AbLinkOrder {
    /// Trials of a round at most.
    pub const ROUND_MAX: u32 = 128;

    /// Of programs that have so many links each, in the order of the plan; `None` where a round
    /// would be longer than [`AbLinkOrder::ROUND_MAX`].
    pub fn new(counts: impl IntoIterator<Item = usize>, seed: u64) -> Option<AbLinkOrder> {
        let counts = counts.into_iter().map(|count| u32::try_from(count.max(1)).ok());
        let counts: Vec<u32> = counts.collect::<Option<_>>()?;
        let round = counts.iter().try_fold(1u32, |round, count| {
            let both = round.checked_mul(count / common_divisor(round, *count))?;
            (both <= AbLinkOrder::ROUND_MAX).then_some(both)
        })?;
        Some(AbLinkOrder { seed, counts, round })
    }

    /// Trials of a round.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The link of each program in a pass, from 1.
    pub fn of(&self, pass: u32) -> Vec<u32> {
        let (round, place) =
            (pass.saturating_sub(1) / self.round, pass.saturating_sub(1) % self.round);
        let order = self.shuffled(self.round, u64::from(round) << 32);
        let at = order.get(place as usize).copied().unwrap_or(0);
        let link = |(program, &count): (usize, &u32)| {
            // The baseline's stay, those of the others move on by one each round.
            let moved = if program == 0 { at } else { at + round % count };
            let own = self.shuffled(count, program as u64 + 1);
            own.get((moved % count) as usize).copied().unwrap_or(0)
        };
        self.counts.iter().enumerate().map(link).collect()
    }

    /// The numbers below `n` in an order that follows from the seed and from what is ordered.
    fn shuffled(&self, n: u32, what: u64) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..n).collect();
        numbers.shuffle(&mut Pcg64Mcg::seed_from_u64(self.seed ^ what.wrapping_mul(MIX)));
        numbers
    }
}

/// An odd number that spreads small ones over 64 bits (2⁶⁴ over the golden ratio).
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    /// A folder with programs of these bytes behind those of an ELF file.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        folder
    }

    fn found(folder: &tempfile::TempDir, pattern: &str) -> Result<AbProgramFacts, AbLinkError> {
        let pattern = folder.path().join(pattern).display().to_string();
        links(&[pattern, "--size".to_owned()])
    }

    #[test]
    fn links_are_files_of_one_pattern_that_differ() {
        let own = [("a1", "\x7fELF1"), ("a2", "\x7fELF2"), ("a3", "\x7fELF3"), ("a4", "\x7fELF4")];
        let files = folder(&own);
        let facts = found(&files, "a*").unwrap();
        let names: Vec<&str> =
            facts.links.iter().map(|link| &link.path[link.path.len() - 2..]).collect();
        assert_eq!(names, ["a1", "a2", "a3", "a4"]);
        assert_eq!((&facts.path, &facts.sha256), (&facts.links[0].path, &facts.links[0].sha256));
        let third = facts.of_link(2);
        assert!(third.path.ends_with("a3") && third.links.is_empty() && third.is_elf);
        assert_eq!(facts.of_link(9), facts);
    }

    #[test]
    fn what_are_no_links_is_told_with_the_remedy() {
        let elf = ["\x7fELF1", "\x7fELF2", "\x7fELF3"];
        let files = folder(&[
            ("a1", elf[0]),
            ("a2", elf[1]),
            ("a3", elf[2]),
            ("ab", elf[0]),
            ("b", "#!/bin/sh"),
        ]);
        let check = |pattern: &str, words: &str| {
            let why = found(&files, pattern).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        check("a[0-9]", "names 3 files");
        check("c*", "names 0 files");
        check("a*", "hold the same bytes");
        check("[a-b]*[1-3b]", "hold the same bytes");
        check("b", "is no ELF file");
        assert_eq!(links(&[]), Err(AbLinkError::Empty));
    }

    #[test]
    fn rounds_that_are_too_long_are_none() {
        let round = |counts: &[usize]| {
            AbLinkOrder::new(counts.iter().copied(), 1).map(|order| order.round())
        };
        assert_eq!(round(&[8, 8, 8]), Some(8));
        assert_eq!(round(&[6, 4]), Some(12));
        assert_eq!(round(&[15, 16]), None);
        assert_eq!(round(&[usize::MAX, 4]), None);
        assert_eq!(round(&[]), Some(1));
    }

    /// Seeds that differ give other orders, the same one the same.
    #[test]
    fn the_order_follows_from_the_seed() {
        let of = |seed| {
            let order = AbLinkOrder::new([8, 8], seed).unwrap();
            (1..=16).map(|pass| order.of(pass)).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_ne!(of(1)[..8], of(1)[8..]);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None, ..ProptestConfig::with_cases(64)
        })]

        /// After each round all links of a program have run equally often, and after as many
        /// rounds as it takes each pair with one of the baseline.
        #[test]
        fn links_are_used_equally_often_and_meet_all_others(
            counts in prop::collection::vec(1..13usize, 1..4),
            seed in any::<u64>(),
        ) {
            let Some(order) = AbLinkOrder::new(counts.iter().copied(), seed) else { return Ok(()) };
            let mut passes = 1..;
            let mut pairs: Vec<BTreeSet<(u32, u32)>> = vec![BTreeSet::new(); counts.len()];
            for _ in 0..12 {
                let mut used: Vec<Vec<u32>> = counts.iter().map(|count| vec![0; *count]).collect();
                for pass in passes.by_ref().take(order.round() as usize) {
                    let links = order.of(pass);
                    for (program, &link) in links.iter().enumerate() {
                        used[program][link as usize] += 1;
                        pairs[program].insert((links[0], link));
                    }
                }
                for used in used {
                    prop_assert!(used.iter().all(|n| *n == used[0] && *n > 0), "{:?}", used);
                }
            }
            for (program, pairs) in pairs.iter().enumerate().skip(1) {
                prop_assert_eq!(pairs.len(), counts[0] * counts[program]);
            }
        }
    }
}
