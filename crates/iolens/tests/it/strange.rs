//! Bytes that somebody else wrote: a few of each kind for the functions to which `cargo
//! fuzz` gives many, from the same seeds.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

#[allow(dead_code, unreachable_pub, reason = "the fuzz targets use all of it")]
#[path = "../../../../fuzz/src/hostile.rs"]
mod hostile;

/// Files of a folder of the repository.
fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or(root, |package| Path::new(&package).join("../.."));
    let files = std::fs::read_dir(root.join(folder)).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .filter(|path| path.is_file())
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// What is done to a seed: a byte set, one left out, one put in, or the rest cut off.
fn change(seed: &mut Vec<u8>, at: Index, how: u8, byte: u8) {
    if seed.is_empty() {
        return;
    }
    let at = at.index(seed.len());
    match how % 8 {
        0 => seed.truncate(at),
        1 | 2 => drop(seed.remove(at)),
        3 | 4 => seed.insert(at, byte),
        5 => seed[at] = b'9',
        _ => seed[at] = byte,
    }
}

/// Seeds of a folder as they are, then `cases` times one with a few changes, and bytes
/// that nobody meant.
fn check(folder: &str, cases: u32, target: fn(&[u8])) {
    let seeds = seeds(folder);
    assert!(!seeds.is_empty(), "{folder} has no seeds");
    seeds.iter().for_each(|seed| target(seed));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let changes = vec((any::<Index>(), any::<u8>(), any::<u8>()), 1..6);
    let strategy = (any::<Index>(), changes, vec(any::<u8>(), 0..64));
    proptest!(config, |((which, changes, noise) in strategy)| {
        let mut seed = seeds[which.index(seeds.len())].clone();
        for (at, how, byte) in changes {
            change(&mut seed, at, how, byte);
        }
        target(&seed);
        target(&noise);
    });
}

#[test]
fn no_plan_file_makes_it_panic() {
    check("plans", 16, hostile::plan);
}

#[test]
fn no_plan_file_of_ab_makes_it_panic() {
    check("fuzz/seeds/ab_plan", 30, hostile::ab_plan);
}

#[test]
fn no_line_of_a_program_makes_it_panic() {
    check("fuzz/seeds/loop_lines", 200, hostile::loop_lines);
}

#[test]
fn no_command_line_makes_it_panic() {
    check("fuzz/seeds/arguments", 10, hostile::arguments);
}

#[test]
fn no_table_makes_it_panic() {
    check("crates/audit/fixtures", 30, hostile::tables);
}

#[test]
fn no_bytes_of_a_worker_make_it_panic() {
    check("fuzz/seeds/frames", 200, hostile::frames);
}

#[test]
fn no_reply_of_a_server_makes_it_panic() {
    check("fuzz/seeds/replies", 200, hostile::replies);
}

#[test]
fn no_run_to_import_makes_it_panic() {
    check("fuzz/seeds/import", 60, hostile::import);
}

#[test]
fn no_description_of_a_machine_makes_it_panic() {
    check("fuzz/seeds/host", 20, hostile::host);
}

#[test]
fn no_stored_plan_makes_it_panic() {
    check("fuzz/seeds/stored", 60, hostile::stored_plan);
    let plans = seeds("fuzz/seeds/stored");
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() };
    proptest!(config, |(which in any::<Index>(), edits in vec(any::<u8>(), 1..12))| {
        hostile::stored_plan(&[which.get(&plans), &[0][..], &edits].concat());
    });
}

#[test]
fn no_answer_of_a_shell_makes_it_panic() {
    check("fuzz/seeds/bootstrap", 200, hostile::bootstrap);
}

#[test]
fn no_journal_makes_it_panic() {
    check("fuzz/seeds/journal", 60, hostile::journal);
}

#[test]
fn no_damage_to_a_database_makes_it_panic() {
    let config = |cases| ProptestConfig { cases, failure_persistence: None, ..Default::default() };
    proptest!(config(12), |(bytes in vec(any::<u8>(), 1..40))| {
        hostile::pages(&bytes);
    });
    proptest!(config(12), |(bytes in vec(any::<u8>(), 1..40))| {
        // An even first byte: the text alone. A page takes a second without optimisation.
        hostile::rows(&[&[0], &bytes[..]].concat());
    });
}
