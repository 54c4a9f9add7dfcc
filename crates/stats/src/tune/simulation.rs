//! Searches over machines that are known.

use std::collections::BTreeMap;

use iolens_model::tune::{Configuration, Extent, LimitKind, Stage, Stop, Work};
use iolens_model::units::Nanos;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::final_tests::candidates;
use super::*;

/// A machine on which a block of an engine takes a + b·bytes, times chance.
struct Machine {
    /// a and b of each engine, in nanoseconds.
    engines: BTreeMap<&'static str, (f64, f64)>,
    /// Blocks above this cost a fifth more for each byte: a cache that is too small.
    cache_bytes: u64,
    /// Nanoseconds of a byte of memory that is only read.
    memory_ns: f64,
    /// Half-width of what chance does to a trial.
    noise: f64,
    /// By how much a round as a whole is slower than another, at most.
    drift: f64,
    rng: Pcg64Mcg,
    elapsed_ns: u64,
    trials: Vec<(Stage, u32, Work, Extent, f64)>,
    slowness: (u32, f64),
}

impl Machine {
    fn new(engines: &[(&'static str, f64, f64)], noise: f64, seed: u64) -> Machine {
        Machine {
            engines: engines.iter().map(|&(id, a, b)| (id, (a, b))).collect(),
            cache_bytes: u64::MAX,
            memory_ns: 0.01,
            noise,
            drift: 1.0,
            rng: Pcg64Mcg::seed_from_u64(seed),
            elapsed_ns: 0,
            trials: Vec::new(),
            slowness: (u32::MAX, 1.0),
        }
    }

    fn plan(&self, budget_s: u64) -> Plan {
        let engines: Vec<&str> = self.engines.keys().copied().collect();
        Plan {
            candidates: candidates(&engines),
            axes: Axes {
                block_least: 16 << 10,
                block_most: 8 << 20,
                threads_max: 1,
                depths: vec![4],
                depth_max: 64,
            },
            baseline: Configuration {
                engine: "read".to_owned(),
                block_bytes: 128 << 10,
                threads: 1,
                depth: 1,
            },
            rivals: vec![Work::Program("dd".to_owned())],
            limit: Some(LimitKind::Scan),
            bytes: 1 << 30,
            bytes_least: 16 << 20,
            budget: Nanos(budget_s * 1_000_000_000),
        }
    }

    fn time_ns(&self, work: &Work, bytes: u64) -> f64 {
        match work {
            Work::Engine(one) => {
                let (a, b) = self.engines[one.engine.as_str()];
                let more = if one.block_bytes > self.cache_bytes { 1.2 } else { 1.0 };
                let blocks = bytes as f64 / one.block_bytes as f64;
                (blocks * a + bytes as f64 * b * more) / f64::from(one.threads)
            }
            Work::Program(_) => bytes as f64 * 0.1,
            Work::Limit { threads, .. } => bytes as f64 * self.memory_ns / f64::from(*threads),
        }
    }

    /// Nanoseconds of a block of an engine, by block, as the grid has seen them.
    fn seen(&self, id: &str) -> Vec<(u64, f64)> {
        let mut by_block: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (_, _, work, extent, ns) in &self.trials {
            if let Some(one) = work.configuration().filter(|one| one.engine == id) {
                let blocks = extent.bytes as f64 / one.block_bytes as f64;
                by_block.entry(one.block_bytes).or_default().push(ns / blocks);
            }
        }
        let mean = |times: Vec<f64>| times.iter().sum::<f64>() / times.len() as f64;
        by_block.into_iter().map(|(block, times)| (block, mean(times))).collect()
    }
}

impl Field for Machine {
    type Broken = ();

    fn visit(&mut self, visit: Visit<'_>) -> Result<Option<Nanos>, ()> {
        if self.slowness.0 != visit.round {
            self.slowness = (visit.round, self.rng.random_range(1.0..=self.drift));
        }
        let chance = 1.0 + self.rng.random_range(-self.noise..=self.noise);
        let ns = self.time_ns(visit.work, visit.extent.bytes) * chance * self.slowness.1;
        let time = whole(ns);
        self.elapsed_ns += time.0 + 5_000_000;
        self.trials.push((visit.stage, visit.round, visit.work.clone(), visit.extent, ns));
        Ok(Some(time))
    }

    fn shuffle(&mut self, arms: &mut [usize]) {
        arms.shuffle(&mut self.rng);
    }

    fn elapsed(&mut self) -> Nanos {
        Nanos(self.elapsed_ns)
    }

    fn begins(&mut self, _stage: Stage, _arms: usize, _bytes: u64) {}
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds")]
fn whole(ns: f64) -> Nanos {
    Nanos(ns as u64)
}

fn best(found: &Found) -> &Configuration {
    found.finalists[0].configuration().expect("the first finalist is ours")
}

#[test]
fn the_best_engine_is_found_and_its_line_too() {
    for seed in 0..20 {
        let engines = [("mmap", 900.0, 0.04), ("pread", 400.0, 0.07), ("read", 380.0, 0.07)];
        let mut machine = Machine::new(&engines, 0.01, seed);
        machine.drift = 1.5;
        let plan = machine.plan(20);
        let found = search(&plan, &mut machine).expect("nothing breaks it");
        assert_eq!(best(&found).engine, "mmap", "seed {seed}");
        assert_eq!(found.stop, Stop::Precision);
        machine.drift = 1.0;
        let mut quiet = Machine::new(&engines, 0.01, seed);
        search(&plan, &mut quiet).expect("nothing breaks it");
        for (id, a, b) in engines {
            let line = fit(&quiet.seen(id)).expect("a line");
            assert!((line.per_byte_ns / b - 1.0).abs() < 0.02, "{id} {line:?}");
            // 400 ns are a third of the smallest block's time; chance is a percent of it.
            let smallest = a + b * (16 << 10) as f64;
            assert!((line.fixed_ns - a).abs() < 0.02 * smallest, "{id} {line:?}");
        }
    }
}

#[test]
fn a_line_is_recovered_within_two_percent_where_it_shows() {
    // Calls that cost as much as their bytes: a is half of a small block's time.
    for seed in 0..20 {
        let engines = [("read", 2000.0, 0.05), ("mmap", 4000.0, 0.03)];
        let mut machine = Machine::new(&engines, 0.005, seed);
        let plan = machine.plan(20);
        search(&plan, &mut machine).expect("nothing breaks it");
        for (id, a, b) in engines {
            let line = fit(&machine.seen(id)).expect("a line");
            assert!((line.per_byte_ns / b - 1.0).abs() < 0.02, "{id} {line:?}");
            assert!((line.fixed_ns / a - 1.0).abs() < 0.02, "{id} {line:?}");
        }
    }
}

#[test]
fn a_block_within_the_cache_is_found_by_its_neighbours() {
    for seed in 0..10 {
        let mut machine = Machine::new(&[("read", 3000.0, 0.05)], 0.002, seed);
        // Between two blocks of the grid: 256 KiB is too small, 1 MiB too large, and of
        // those that are too large the largest looks best.
        machine.cache_bytes = 512 << 10;
        let plan = machine.plan(20);
        let found = search(&plan, &mut machine).expect("nothing breaks it");
        assert_eq!(best(&found).block_bytes, 512 << 10, "seed {seed}: {found:?}");
    }
}

#[test]
fn many_arms_are_halved_on_little_of_the_file() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "read"];
    let engines: Vec<_> =
        ids.iter().enumerate().map(|(at, &id)| (id, 500.0, 0.1 - 0.004 * at as f64)).collect();
    for seed in 0..10 {
        let mut machine = Machine::new(&engines, 0.01, seed);
        let plan = machine.plan(60);
        let found = search(&plan, &mut machine).expect("nothing breaks it");
        assert_eq!(best(&found).engine, "read", "seed {seed}");
        let of_grid = |least: bool| {
            let grid = machine.trials.iter().filter(|(stage, ..)| *stage == Stage::Grid);
            let bytes: Vec<u64> = grid.map(|(_, _, _, extent, _)| extent.bytes).collect();
            if least { bytes.iter().min().copied() } else { bytes.iter().max().copied() }
        };
        let (least, most) = (of_grid(true).unwrap(), of_grid(false).unwrap());
        assert!(least * 4 <= most, "{least} {most}");
        assert!(machine.elapsed_ns < 62_000_000_000, "{}", machine.elapsed_ns);
    }
}

#[test]
fn it_stops_early_where_memory_is_the_limit() {
    let mut machine = Machine::new(&[("read", 100.0, 0.05), ("mmap", 100.0, 0.031)], 0.005, 7);
    machine.memory_ns = 0.031;
    let plan = machine.plan(600);
    let found = search(&plan, &mut machine).expect("nothing breaks it");
    assert_eq!(found.stop, Stop::Precision);
    let finals = machine.trials.iter().filter(|(stage, ..)| *stage == Stage::Final).count();
    assert_eq!(finals, ROUNDS_MIN as usize * found.finalists.len());
    assert!(machine.elapsed_ns < 300_000_000_000, "{} of 600 s", machine.elapsed_ns);
}

#[test]
fn a_budget_that_is_too_small_leaves_most_out_and_says_so() {
    let engines = [("mmap", 900.0, 0.04), ("pread", 400.0, 0.07), ("read", 380.0, 0.07)];
    let mut machine = Machine::new(&engines, 0.01, 3);
    let plan = Plan { budget: Nanos(200_000_000), ..machine.plan(0) };
    let found = search(&plan, &mut machine).expect("nothing breaks it");
    assert!(found.left_out > 0 && !found.finalists.is_empty());
    assert!(machine.elapsed_ns < 1_500_000_000, "{}", machine.elapsed_ns);
}

#[test]
fn an_engine_that_fails_is_out_and_a_baseline_that_fails_is_the_end() {
    struct Failing(Machine, &'static str);
    impl Field for Failing {
        type Broken = ();
        fn visit(&mut self, visit: Visit<'_>) -> Result<Option<Nanos>, ()> {
            let fails = visit.work.configuration().is_some_and(|one| one.engine == self.1);
            let time = self.0.visit(visit)?;
            Ok(time.filter(|_| !fails))
        }
        fn shuffle(&mut self, arms: &mut [usize]) {
            self.0.shuffle(arms);
        }
        fn elapsed(&mut self) -> Nanos {
            self.0.elapsed()
        }
        fn begins(&mut self, _: Stage, _: usize, _: u64) {}
    }
    let engines = [("mmap", 900.0, 0.04), ("read", 380.0, 0.07)];
    let mut field = Failing(Machine::new(&engines, 0.01, 3), "mmap");
    let plan = field.0.plan(20);
    let found = search(&plan, &mut field).expect("nothing breaks it");
    assert_eq!(best(&found).engine, "read");
    let tried = field.0.trials.iter().filter_map(|(.., work, _, _)| work.configuration());
    assert_eq!(tried.filter(|one| one.engine == "mmap").count(), 5, "once for each block");
    field.1 = "read";
    assert!(search(&plan, &mut field).expect("nothing breaks it").finalists.is_empty());
}
