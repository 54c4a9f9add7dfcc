//! Trials that resemble those of the passes before them: how often that is said, and what the
//! intervals cover then.

use super::{Normal, Rate};
use crate::drift::{self, Series};
use crate::interval::Moments;
use crate::student::StudentTable;

const RUNS_OF_EACH: u32 = 2000;

/// Contrasts of a run, in two cells of which each has one baseline.
const CONTRASTS: usize = 12;
const OF_A_CELL: usize = 6;

/// What trials have in common with those before them.
#[derive(Clone, Copy)]
enum Past {
    Nothing,
    /// This share of the value before.
    Share(f64),
    /// One of two states, which last for so many passes on average; in one of them the arms
    /// differ by a standard deviation.
    States(f64),
}

/// The values of a single arm or baseline.
fn arm(past: Past, passes: usize, normal: &mut Normal) -> Vec<f64> {
    let share = if let Past::Share(share) = past { share } else { 0.0 };
    let mut at = normal.draw();
    let mut next = || {
        at = share * at + (1.0 - share * share).sqrt() * normal.draw();
        at
    };
    (0..passes).map(|_| next()).collect()
}

/// Whether the machine is in its other state, by pass.
fn states(past: Past, passes: usize, normal: &mut Normal) -> Vec<bool> {
    let Past::States(lasts) = past else { return vec![false; passes] };
    let mut is_other = normal.chance(0.5);
    let mut next = || {
        is_other ^= normal.chance(1.0 / lasts);
        is_other
    };
    (0..passes).map(|_| next()).collect()
}

/// A run: the values of its contrasts, of mean 0 and standard deviation 1.
fn run(past: Past, passes: usize, normal: &mut Normal) -> Vec<Vec<f64>> {
    let states = states(past, passes, normal);
    let shift = |is_other: bool| match past {
        Past::States(_) if is_other => 0.5,
        Past::States(_) => -0.5,
        _ => 0.0,
    };
    let mut contrasts = Vec::new();
    for _ in 0..CONTRASTS / OF_A_CELL {
        let baseline = arm(past, passes, normal);
        for _ in 0..OF_A_CELL {
            let own = arm(past, passes, normal);
            let value = |at: usize| (baseline[at] - own[at]) / 2f64.sqrt() + shift(states[at]);
            contrasts.push((0..passes).map(value).collect());
        }
    }
    contrasts
}

struct Found {
    said: Rate,
    before: Rate,
    after: Rate,
    together: Rate,
    /// Contrasts at a difference of δ that are called EQUIVALENT, if taken as independent and as
    /// it is; δ is wide beside the interval, so that only its near end decides.
    equivalent: [Rate; 2],
}

fn simulate(what: &str, past: Past, passes: usize, seed: u64) -> Found {
    let normal = &mut Normal::seeded(seed);
    let mut found = Found {
        said: Rate::new(),
        before: Rate::new(),
        after: Rate::new(),
        together: Rate::new(),
        equivalent: [Rate::new(), Rate::new()],
    };
    for _ in 0..RUNS_OF_EACH {
        let contrasts = run(past, passes, normal);
        let series: Vec<Series> =
            contrasts.iter().map(|values| (1..).zip(values.iter().copied()).collect()).collect();
        let neighbours = drift::neighbours(&series).expect("passes");
        found.said.add(neighbours.matters);
        let count = u32::try_from(CONTRASTS).expect("a few");
        let (plain, wide) = (
            &mut StudentTable::new(count),
            &mut StudentTable::of_neighbours(count, Some(&neighbours)),
        );
        let moments: Vec<Moments> =
            contrasts.iter().map(|values| Moments::of(values).expect("values")).collect();
        for moments in &moments {
            let covers = |table: &mut StudentTable| {
                moments.interval(table, |t| t.pointwise).is_some_and(|found| found.contains(1.0))
            };
            found.before.add(covers(plain));
            found.after.add(covers(wide));
            // The truth is 1, and is to stand for the upper end of the band.
            let is_below = |table: &mut StudentTable| {
                moments.interval(table, |t| t.pointwise90).is_some_and(|found| found.high < 1.0)
            };
            found.equivalent[0].add(is_below(plain));
            found.equivalent[1].add(is_below(wide));
        }
        let simultaneous = |moments: &Moments| {
            moments.interval(wide, |t| t.simultaneous).is_some_and(|found| found.contains(1.0))
        };
        found.together.add(moments.iter().map(simultaneous).filter(|covers| !covers).count() == 0);
    }
    let percent = |rate: &Rate| rate.share() * 100.0;
    println!(
        "{what}, {passes} passes: said in {:.1}% of runs; pointwise covers {:.1}% if taken as \
         independent, {:.1}% as it is; 12 at once {:.1}%; EQUIVALENT at a difference of δ {:.1} \
         and {:.1}%",
        percent(&found.said),
        percent(&found.before),
        percent(&found.after),
        percent(&found.together),
        percent(&found.equivalent[0]),
        percent(&found.equivalent[1])
    );
    found
}

#[test]
fn trials_that_resemble_their_neighbours_are_said_to_and_intervals_cover() {
    for (passes, seed) in [(20, 91), (40, 92)] {
        let found = simulate("neighbours, AR(1) at 0.4", Past::Share(0.4), passes, seed);
        assert!(found.said.share() > 0.90);
        assert!(found.before.share() < 0.85, "what is to be mended");
        assert!(found.after.share() >= 0.93 && found.together.share() >= 0.93);
        let [plain, wide] = found.equivalent.map(|rate| rate.share());
        assert!(plain > 0.12 && wide < 0.06, "{plain} {wide}");
    }
}

/// As few passes as a run has that is soon precise: what is said of them comes too late in a third
/// of the runs, and docs/evidence.md says what is left.
#[test]
fn twelve_passes_that_resemble_their_neighbours_cover_less() {
    let found = simulate("neighbours, AR(1) at 0.4", Past::Share(0.4), 12, 98);
    assert!(found.said.share() > 0.6);
    assert!(found.after.share() > found.before.share() + 0.08 && found.after.share() > 0.89);
    let [plain, wide] = found.equivalent.map(|rate| rate.share());
    assert!(plain > 0.12 && wide < 0.10, "{plain} {wide}");
}

#[test]
fn independent_trials_are_left_alone() {
    for (passes, seed) in [(12, 93), (20, 94), (40, 95)] {
        let found = simulate("neighbours, independent", Past::Nothing, passes, seed);
        assert!(found.said.share() < 0.08);
        assert!((found.after.share() - found.before.share()).abs() < 0.01);
        assert!(found.after.share() >= 0.94);
    }
}

/// The states that a run meets are few: what is said comes late, and the truth, the mean of
/// both states, is not in sight of a run that has seen one alone.
#[test]
fn states_that_last_are_said() {
    for (passes, seed, said, covered) in [(40, 96, 0.5, 0.03), (60, 97, 0.65, 0.05)] {
        let found = simulate("neighbours, states of 10 passes", Past::States(10.0), passes, seed);
        assert!(found.said.share() > said);
        assert!(found.after.share() > found.before.share() + covered);
    }
}
