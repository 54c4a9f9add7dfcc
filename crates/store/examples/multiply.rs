//! Writes a run with many trials, to be read against a clock:
//! `cargo run --release -p iolens-store --example multiply -- FROM.db TO.db TRIALS`.
//!
//! The trials are those of the last run in `FROM.db`, over and over, with their passes
//! counted on and the time of each slice a little different each time.

use std::path::PathBuf;

use iolens_model::outcome::TrialOutcome;
use iolens_model::plan::Passes;
use iolens_store::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const USAGE: &str = "usage: multiply FROM.db TO.db TRIALS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, trials] = arguments.as_slice() else { return Err(USAGE.into()) };
    let trials: usize = trials.parse()?;
    let source = Store::open_read_only(&PathBuf::from(from))?;
    let mut run = source.load(&source.find("last")?)?;
    let originals = run.trials;
    let passes = originals.iter().map(|trial| trial.pass).max().unwrap_or(0);
    let rounds = u32::try_from(trials.div_ceil(originals.len().max(1)))?;
    run.header.plan.passes = Passes { minimum: passes * rounds, maximum: passes * rounds };
    let mut store = Store::open(&PathBuf::from(to))?;
    store.begin_run(&run.header)?;
    let mut noise = Noise(run.header.plan.seed);
    let copies = (0..rounds).flat_map(|round| originals.iter().map(move |trial| (round, trial)));
    for (round, original) in copies.take(trials) {
        let mut trial = original.clone();
        trial.pass += round * passes;
        vary(&mut trial, &mut noise);
        store.append_trial(&run.header.id, &trial)?;
    }
    if let Some(end) = &run.header.end {
        store.end_run(&run.header.id, end)?;
    }
    Ok(())
}

/// Times within 2 % of what they were, in both ends' counts alike.
fn vary(trial: &mut TrialOutcome, noise: &mut Noise) {
    for slice in &mut trial.slices {
        let per_mille = 980 + noise.next() % 41;
        let change = |time_ns: &mut u64| *time_ns = *time_ns / 1000 * per_mille;
        change(&mut slice.tx.time_ns);
        change(&mut slice.all_active_ns);
        if let Some(rx) = &mut slice.rx {
            change(&mut rx.time_ns);
        }
    }
}

/// Pseudo-random numbers: splitmix64, <https://prng.di.unimi.it/splitmix64.c>
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
