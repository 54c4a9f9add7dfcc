//! Sampling the stacks of a cell's arms, in trials of their own: the same
//! work in the same slices as the timed ones, more rounds of it.

use iolens_engine::trial;
use iolens_file::material::Material;
use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::host::HostFacts;
use iolens_model::outcome::Status;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::profile::{ProfileTrial, Sampling};
use iolens_model::run::Run;
use iolens_model::units::Nanos;
use iolens_store::Store;

use super::cells::{CellState, Place};
use super::{launch, order_of};
use crate::failure::{Failure, this_program};
use crate::output;

/// CPU time from one sample to the next: a prime, so that it does not keep
/// step with the kernel's tick of 1, 4 or 10 ms.
const PERIOD: Nanos = Nanos(999_983);

/// An arm that was measured for so long has no more to give.
const TIME_MAX_NS: u64 = 10_000_000_000;

/// Sampled trials of a group: fewer give no interval worth its name.
const TRIALS_MIN: u32 = 5;

const DISCARDED_ROUNDS: u32 = 3;
const ROUNDS_MIN: u32 = 5;

/// A trial that fails is made again, this often in all.
const FAILURES_MAX: u32 = 3;

/// What is to be explained.
pub(crate) struct Question<'a> {
    pub(crate) run: &'a Run,
    pub(crate) cell: &'a Cell,
    /// Labels of arms.
    pub(crate) arms: &'a [String],
    pub(crate) host: &'a HostFacts,
    /// The files of its trials; null in studies that need none.
    pub(crate) material: Option<&'a Material>,
    /// Each arm is sampled until it has so many, over both ends.
    pub(crate) samples: u64,
}

/// Samples the arms of a cell and stores every trial as it ends; returns whether the user
/// interrupted it.
///
/// Errors: of the store.
pub(crate) fn explain(
    question: &Question<'_>,
    store: &mut Store,
    interrupts: &iolens_engine::Interrupts,
) -> Result<bool, Failure> {
    let program = this_program()?;
    let launch = launch(program, None);
    let header = &question.run.header;
    let mut state = CellState::new(&header.plan, question.cell.clone(), question.host)
        .reading(question.material.map(Material::facts));
    for stored in question.run.trials.iter().filter(|trial| trial.cell == *question.cell) {
        state.recall(&header.plan, stored);
    }
    // The A/A arm is not sampled, and shows what sampling costs the baseline.
    let has_baseline = question.arms.contains(&header.plan.baseline);
    state.retain(|arm: &Arm| match arm.role {
        Role::SelfCheck => has_baseline,
        _ => question.arms.contains(&arm.label),
    });
    let of_cell = |trial: &&ProfileTrial| trial.cell == *question.cell;
    let earlier = question.run.profiles.iter().filter(of_cell).map(|trial| trial.number);
    let mut number = earlier.max().unwrap_or(0);
    let mut rng = order_of(header.plan.seed, u32::MAX - number);
    for group in 0..state.groups.len() {
        let mut plan = sampled(&header.plan, &state, question.samples);
        let (mut seen, mut failures) = (Seen::default(), 0);
        while !seen.is_enough(question.samples) && failures < FAILURES_MAX {
            if interrupts.came() {
                return Ok(true);
            }
            number += 1;
            let place = Place { pass: number, position: 0 };
            let mut trial = state.trial(&plan, place, group, None, &mut rng);
            trial.sampling = Some(Sampling { period: PERIOD });
            if let Some(material) = question.material {
                trial = material.given_to(trial, plan.seed);
            }
            let profile = trial::profile(&trial, number, &launch, Some(interrupts));
            store.append_profile(&header.id, &profile)?;
            match profile.status {
                Status::Ok => {
                    seen.add(&profile);
                    if profile.ends.iter().any(|end| !end.kernel) {
                        // User time alone is little: as long as may be.
                        plan = sampled(&header.plan, &state, u64::MAX);
                    }
                    output::note(&seen.progress(&profile));
                }
                Status::Interrupted => return Ok(true),
                _ => {
                    failures += 1;
                    let why = profile.reason.as_deref().unwrap_or_default();
                    output::note(&format!("sampled trial {number} failed: {why}"));
                }
            }
        }
    }
    Ok(false)
}

/// The plan of the run with rounds enough for an even share of the samples in
/// each trial: at least one end is on a CPU at any time, often both.
fn sampled(plan: &Plan, state: &CellState, samples: u64) -> Plan {
    let arm_time_ns = samples.saturating_mul(PERIOD.0) / u64::from(TRIALS_MIN) / 4 * 3;
    let rounds = arm_time_ns.min(TIME_MAX_NS / u64::from(TRIALS_MIN)) / state.target.0.max(1);
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    let slice = match plan.schedule {
        Schedule::Slices { slice, .. } => slice,
        // Arms that ran one after another are sampled in turns all the same.
        Schedule::Window { .. } | Schedule::Messages { .. } => state.target,
    };
    let schedule = Schedule::Slices {
        slice,
        discarded_rounds: DISCARDED_ROUNDS,
        rounds: rounds.max(ROUNDS_MIN),
    };
    Plan { schedule, ..plan.clone() }
}

/// What a group's trials have given so far.
#[derive(Default)]
struct Seen {
    trials: u32,
    /// Of the arm with the fewest.
    samples: u64,
    /// Of the arm that was measured longest.
    time_ns: u64,
    by_arm: Vec<(String, u64, u64)>,
}

impl Seen {
    fn add(&mut self, profile: &ProfileTrial) {
        self.trials += 1;
        for end in &profile.ends {
            let place = self.by_arm.iter().position(|(arm, ..)| *arm == end.arm);
            let place = place.unwrap_or_else(|| {
                self.by_arm.push((end.arm.clone(), 0, 0));
                self.by_arm.len() - 1
            });
            let (_, samples, time_ns) = &mut self.by_arm[place];
            *samples += end.samples.total();
            if end.sends {
                *time_ns += end.counts.time_ns;
            }
        }
        self.samples = self.by_arm.iter().map(|(_, samples, _)| *samples).min().unwrap_or(0);
        self.time_ns = self.by_arm.iter().map(|(.., time_ns)| *time_ns).max().unwrap_or(0);
    }

    fn is_enough(&self, samples: u64) -> bool {
        let sampled = self.samples >= samples || self.time_ns >= TIME_MAX_NS;
        self.trials >= TRIALS_MIN && sampled
    }

    fn progress(&self, profile: &ProfileTrial) -> String {
        format!(
            "sampled trial {}: {}, at least {} samples per method so far",
            profile.number, profile.cell, self.samples
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(trials: u32, samples: u64, time_ns: u64) -> bool {
        Seen { trials, samples, time_ns, by_arm: Vec::new() }.is_enough(4_000)
    }

    #[test]
    fn sampling_ends_with_enough_samples_or_time_and_trials() {
        assert!(!seen(4, 10_000, 0));
        assert!(!seen(5, 3_999, 9_000_000_000));
        assert!(seen(5, 4_000, 0));
        assert!(seen(5, 0, 10_000_000_000), "user-only samples may never be so many");
    }
}
