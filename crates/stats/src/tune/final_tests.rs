//! Finals between arms that are equally fast: how often one of them is told apart from the
//! others all the same.
//!
//! Run with `--nocapture` to read the rates.

use iolens_model::file::Consumer;
use iolens_model::tune::{
    CacheWish, Candidate, Configuration, Extent, Facts, LimitKind, Record, SCHEMA, Stage, Stop,
    Task, Trial, Way, Wishes, Work,
};
use iolens_model::units::Nanos;

use super::search::only_final;
use super::*;
use crate::simulation::Normal;
use crate::student::quantile;

const FINALS: u32 = 4000;

/// Nanoseconds of a trial, on average.
const TRIAL_NS: u64 = 1_000_000;

/// A machine on which all arms take the same time but for chance.
struct Equal {
    normal: Normal,
    sd: f64,
    elapsed_ns: u64,
    trials: Vec<Trial>,
}

impl Field for Equal {
    type Broken = ();

    fn visit(&mut self, visit: Visit<'_>) -> Result<Option<Nanos>, ()> {
        self.elapsed_ns += TRIAL_NS;
        let time_ns = whole(TRIAL_NS as f64 * (self.sd * self.normal.draw()).exp()).max(1);
        self.trials.push(Trial { time_ns: Some(time_ns), ..visit.trial() });
        Ok(Some(Nanos(time_ns)))
    }

    fn shuffle(&mut self, _arms: &mut [usize]) {}

    fn elapsed(&mut self) -> Nanos {
        Nanos(self.elapsed_ns)
    }

    fn begins(&mut self, _stage: Stage, _arms: usize, _bytes: u64) {}
}

fn engine(id: &str) -> Configuration {
    Configuration { engine: id.to_owned(), block_bytes: 128 << 10, threads: 1, depth: 1 }
}

pub(super) fn candidates(ids: &[&str]) -> Vec<Candidate> {
    let candidate = |id: &&str| Candidate {
        engine: (*id).to_owned(),
        way: Way::Called,
        has_depth: false,
        is_shared: true,
        calls: String::new(),
        locked_bytes_max: None,
    };
    ids.iter().map(candidate).collect()
}

fn record(candidates: Vec<Candidate>, found: &Found, field: Equal) -> Record {
    Record {
        cure: None,
        schema: SCHEMA,
        build: String::new(),
        began_ns: 0,
        wishes: Wishes {
            task: Task::Read,
            cache: CacheWish::AsIs,
            consumer: Consumer::Scan,
            threads_max: 1,
            budget: Nanos(0),
            seed: 1,
            bytes_max: None,
        },
        facts: Facts { file_bytes: 1 << 20, cpus: 1, ..Facts::default() },
        candidates,
        pruned: Vec::new(),
        programs: Vec::new(),
        trials: field.trials,
        device_bytes_per_s: None,
        stop: found.stop,
        proof: None,
        duration: Nanos(field.elapsed_ns),
        stolen: None,
        was_throttled: false,
        notes: Vec::new(),
    }
}

/// Shares of finals in which any arm, or the plain one, is told apart from the winner.
struct Told {
    any: u32,
    plain: u32,
}

/// Finals of so many arms, of which the last is the plain one, of at most so many rounds.
fn finals(arms: usize, sd: f64, rounds: u32, seed: u64) -> Told {
    let ids = ["mmap", "pread", "uring", "read"];
    let ids = &ids[ids.len() - arms..];
    let (plain, best) = ids.split_last().expect("some arms");
    let best: Vec<Configuration> = best.iter().map(|id| engine(id)).collect();
    let trials = u64::from(rounds) * arms as u64;
    let plan = Plan {
        candidates: candidates(ids),
        axes: Axes {
            block_least: 128 << 10,
            block_most: 128 << 10,
            threads_max: 1,
            depths: vec![1],
            depth_max: 1,
        },
        baseline: engine(plain),
        rivals: Vec::new(),
        limit: None,
        bytes: 1 << 20,
        bytes_least: 1 << 20,
        // Two trials come before the final.
        budget: Nanos((trials + 2) * TRIAL_NS),
    };
    let mut told = Told { any: 0, plain: 0 };
    for nth in 0..FINALS {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::from(nth));
        let normal = Normal::seeded(seed);
        let mut field = Equal { normal, sd, elapsed_ns: 0, trials: Vec::new() };
        let found = only_final(&plan, &best, &mut field).expect("nothing breaks it");
        let verdict = verdict(&record(plan.candidates.clone(), &found, field)).expect("a winner");
        let alike = |one: &Configuration| *one == verdict.winner || verdict.tied.contains(one);
        told.any += u32::from(verdict.tied.len() + 1 < arms);
        told.plain += u32::from(!alike(&plan.baseline));
    }
    told
}

#[test]
fn an_arm_that_failed_in_the_final_wins_nothing() {
    let ids = ["mmap", "read"];
    let trial = |id: &str, round: u32, time_ns: Option<u64>| {
        let work = &Work::Engine(engine(id));
        let extent = Extent { offset: 0, bytes: 1 << 20 };
        let failure = time_ns.is_none().then(|| "0.3% was in the page cache".to_owned());
        let trial = Visit { work, stage: Stage::Final, round, extent }.trial();
        Trial { time_ns, failure, ..trial }
    };
    let mut trials: Vec<Trial> =
        (0..8).map(|round| trial("read", round, Some(TRIAL_NS + u64::from(round)))).collect();
    trials.push(trial("mmap", 0, Some(TRIAL_NS / 2)));
    let field = |trials| Equal { normal: Normal::seeded(1), sd: 0.0, elapsed_ns: 0, trials };
    let found = Found { finalists: Vec::new(), stop: Stop::Budget, left_out: 0 };
    let winner = |trials: Vec<Trial>| {
        let found = verdict(&record(candidates(&ids), &found, field(trials)));
        found.expect("a winner").winner.engine
    };
    assert_eq!(winner(trials.clone()), "mmap");
    trials.push(trial("mmap", 1, None));
    assert_eq!(winner(trials), "read");
}

/// A final of these arms and a bound, which takes `ns` and is slower by a tenth in every other
/// round.
fn beside_a_bound(ids: &[&str], bytes: u64, ns: u64) -> Record {
    let normal = Normal::seeded(82);
    let mut field = Equal { normal, sd: 0.0, elapsed_ns: 0, trials: Vec::new() };
    let bound = Work::Limit { kind: LimitKind::Scan, threads: 1 };
    let works = ids.iter().map(|id| Work::Engine(engine(id))).chain([bound]);
    for (round, work) in (0..12).flat_map(|round| works.clone().map(move |work| (round, work))) {
        let extent = Extent { offset: 0, bytes };
        let visit = Visit { work: &work, stage: Stage::Final, round, extent };
        field.visit(visit).expect("nothing breaks it");
        let trial = field.trials.last_mut().expect("just done");
        let is_slow = matches!(work, Work::Limit { .. }) && round % 2 == 0;
        trial.time_ns = Some(if is_slow { ns / 10 * 11 } else { ns });
    }
    let found = Found { finalists: Vec::new(), stop: Stop::Budget, left_out: 0 };
    record(candidates(ids), &found, field)
}

/// Which of them wins is chosen from the rounds that the share is of: of four, t is taken at
/// 1 − 0.025/4.
#[test]
fn a_share_of_a_bound_covers_all_that_might_have_won() {
    for ids in [&["read"][..], &["mmap", "pread", "uring", "read"]] {
        let verdict = verdict(&beside_a_bound(ids, 1 << 20, 1_000_000)).expect("a winner");
        let share = verdict.limits.iter().find(|share| share.kind == LimitKind::Scan);
        let interval = share.and_then(|share| share.interval).expect("an interval");
        let half = interval.half_of_ratio();
        let sd = 1.1f64.ln() / 2.0 * (12.0f64 / 11.0).sqrt();
        let t = quantile(11, 1.0 - 0.025 / ids.len() as f64).expect("a quantile");
        assert!((half / (t * sd / 12f64.sqrt()) - 1.0).abs() < 1e-6, "{ids:?}: {interval:?}");
    }
}

#[test]
fn a_bound_has_three_digits_however_slow_it_is() {
    let of = |bytes: u64| {
        let verdict = verdict(&beside_a_bound(&["read"], bytes, 1_000_000_000)).expect("a winner");
        verdict.limits[0].of.clone()
    };
    assert!(of(40 << 20).ends_with(" at 38.1 MiB/s"), "{}", of(40 << 20));
    assert!(of(9 << 30).ends_with(" at 8.58 GiB/s"), "{}", of(9 << 30));
}

#[test]
fn equal_arms_are_told_apart_in_few_finals() {
    let settings = [
        (4, 0.02, 12),
        (4, 0.05, 12),
        (4, 0.05, 60),
        (4, 0.10, 200),
        (2, 0.05, 60),
        // Chance so large that what matters is nothing beside it.
        (4, 0.50, 12),
    ];
    let mut worst: f64 = 0.0;
    for (seed, (arms, sd, rounds)) in (81..).zip(settings) {
        let told = finals(arms, sd, rounds, seed);
        let percent = |finals: u32| f64::from(finals) * 100.0 / f64::from(FINALS);
        println!(
            "{arms} equal arms, sd {:.0}% a round, at most {rounds} rounds: called faster any \
             {:.2}%, the plain one {:.2}% of {FINALS} finals",
            sd * 100.0,
            percent(told.any),
            percent(told.plain)
        );
        worst = worst.max(percent(told.any));
    }
    assert!(worst <= 5.0, "{worst}%");
}
