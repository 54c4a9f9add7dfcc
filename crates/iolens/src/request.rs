//! From what was asked for to a plan: what was left open filled in, words
//! looked up, and everything refused that cannot be measured, before anything
//! is measured.

pub(crate) mod ab;
mod arms;
pub(crate) mod asked;
pub(crate) mod confirm;

use self::arms::{in_our_words, known};

use std::path::Path;

use iolens_model::axes::Study;
use iolens_model::plan::{Passes, Plan, Probes, Schedule};
use iolens_model::units::{Bytes, Nanos};

use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::studies::{Available, Draft, StudySpec, stated};
use crate::values::unknown;
use crate::{built_in, plan_file};

/// Rounds that count; docs/journal has the measurements.
const ROUNDS: u32 = 10;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) plan: Plan,
    /// The user's name for the run.
    pub(crate) name: Option<String>,
    /// What the user ought to know about the plan, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// What the text of a plan file asks for, which is called `name`.
pub(crate) fn asked_in(name: &str, text: &str) -> Result<Wishes, Failure> {
    complete(plan_file::parse(name, text, &known).map_err(Failure::usage)?)
}

/// What was asked for, and the study's default for the rest.
pub(crate) fn complete(asked: Wishes) -> Result<Wishes, Failure> {
    let spec = spec(&asked)?;
    let mut base = default(spec, asked.quick)?;
    (spec.fit)(&asked, &mut base)?;
    if asked.is_sequential() {
        // Their number of passes is made for slices.
        base.passes = None;
    }
    if asked.knee || asked.slo.is_some() {
        // It is made for passes: what searches take comes on top.
        base.budget = None;
    }
    Ok(asked.or(base))
}

/// The study that is asked for.
fn spec(asked: &Wishes) -> Result<&'static StudySpec, Failure> {
    StudySpec::of(asked.study.unwrap_or(Study::Net)).ok_or_else(ab::elsewhere)
}

/// The default of a study.
fn default(spec: &StudySpec, quick: bool) -> Result<Wishes, Failure> {
    file(if quick { spec.quick } else { spec.study.word() })
}

/// The plan of a name or of a path.
pub(crate) fn file(what: &str) -> Result<Wishes, Failure> {
    if what == Study::Ab.word() {
        return Err(ab::elsewhere());
    }
    if let Some(plan) = built_in::ALL.into_iter().find(|plan| plan.name == what) {
        // Ids are looked up once the flags have had their say.
        let read = plan_file::parse(&plan.file(), plan.text, &|_, _, _| Ok(()));
        return read.map_err(Failure::usage);
    }
    let path = Path::new(what);
    if path.extension().is_none_or(|extension| extension != "toml") && !what.contains('/') {
        let names = built_in::ALL.map(|plan| plan.name);
        let advice = format!("choose from: {}, or the path of a file.toml", names.join(", "));
        return Err(Failure::usage(unknown("study or plan", what, &names, &advice)));
    }
    let text =
        std::fs::read_to_string(path).map_err(|e| usage!("cannot read the plan {what}: {e}"))?;
    plan_file::parse(what, &text, &known).map_err(Failure::usage)
}

/// The budget of a plan that the binary carries; `None` of a file of the user's, which may say
/// something else when it is run.
pub(crate) fn budget_of(name: &str) -> Option<Nanos> {
    built_in::ALL.iter().find(|plan| plan.name == name)?;
    file(name).ok()?.budget
}

/// The plan of these wishes. `seed` is taken where none is stated.
pub(crate) fn plan(asked: Wishes, seed: u64, available: Available<'_>) -> Result<Request, Failure> {
    let spec = spec(&asked)?;
    let (asked, mut notes) = in_our_words(spec, asked);
    let (mut primitives, baseline) = arms::of(spec, &asked)?;
    let (sizes, schedule) = ((spec.sizes)(&asked)?, schedule(spec, &asked));
    let axes = (spec.axes)(Draft {
        asked: &asked,
        schedule: &schedule,
        available,
        baseline: &baseline,
        arms: &mut primitives,
        notes: &mut notes,
    })?;
    let passes = match asked.passes {
        None if asked.is_sequential() => Passes { minimum: 1, maximum: 1 },
        given => stated(&given, "passes")?,
    };
    // What searches take comes on top of the default's, which is made for passes.
    let budget = match asked.budget {
        None => default(spec, asked.quick)?.budget,
        given => given,
    };
    let mut plan = Plan {
        axes,
        primitives,
        baseline,
        sizes,
        threads: stated(&asked.threads, "threads")?,
        schedule,
        passes,
        budget: stated(&budget, "budget")?,
        precision: asked.precision.unwrap_or(0.03),
        delta: asked.threshold.unwrap_or(0.03),
        quick: asked.quick,
        isolate: asked.isolate,
        seed: asked.seed.unwrap_or(seed),
        cpus: asked.cpus,
        probes: Probes {
            counting: asked.counters.unwrap_or_default(),
            software: asked.software_events,
            tracepoints: asked.tracepoints,
        },
    };
    check_cells(&plan)?;
    (spec.lay_out)(&mut plan, asked.budget.is_none(), &mut notes);
    Ok(Request { plan, name: asked.name, notes })
}

/// Refuses a plan of so many cells that no memory holds them.
fn check_cells(plan: &Plan) -> Result<(), Failure> {
    plan.check_cells()
        .map_err(|why| usage!("the plan cannot be measured: {why}\n  give some axes fewer values"))
}

/// The wishes that lead to this plan, each one stated.
pub(crate) fn wishes_of(plan: &Plan, name: Option<&str>) -> Wishes {
    let (mut slice, mut rounds, mut time, mut messages) = (None, None, None, None);
    match plan.schedule {
        Schedule::Slices { slice: length, rounds: count, .. } => {
            (slice, rounds) = (Some(length), Some(count));
        }
        Schedule::Window { window } => time = Some(window),
        Schedule::Messages { messages: count } => messages = Some(count),
    }
    // The size of a file that is copied is its own.
    let is_of_a_file = plan.copy().is_some_and(|copy| copy.file.is_some());
    Wishes {
        study: Some(plan.study()),
        quick: plan.quick,
        methods: Some(plan.methods()),
        baseline: Some(plan.baseline.clone()),
        sizes: (!plan.sizes.is_empty() && !is_of_a_file).then(|| plan.sizes.clone()),
        threads: Some(plan.threads.clone()),
        budget: Some(plan.budget),
        precision: Some(plan.precision),
        threshold: Some(plan.delta),
        passes: Some(plan.passes),
        slice,
        rounds,
        sequential_time: time,
        sequential_messages: messages,
        isolate: plan.isolate,
        cpus: plan.cpus.clone(),
        counters: Some(plan.probes.counting),
        software_events: plan.probes.software,
        tracepoints: plan.probes.tracepoints,
        seed: Some(plan.seed),
        name: name.map(str::to_owned),
        ..StudySpec::of(plan.study()).map_or_else(Wishes::default, |spec| (spec.wishes)(plan))
    }
}

/// Checks a stored plan as if it had been typed: its values go through the parsers of their
/// flags, its words are looked up.
pub(crate) fn check_stored(stored: &Plan) -> Result<(), Failure> {
    let text = plan_file::write(&wishes_of(stored, None));
    let asked = plan_file::parse("plan", &text, &known).map_err(Failure::usage)?;
    let typed = plan(asked, stored.seed, &|_| Ok(()))?.plan;
    check_unstated(stored, &typed)
}

/// Checks what no key of a plan states: how many rounds are thrown away, and the size of a file
/// of the user's.
fn check_unstated(stored: &Plan, typed: &Plan) -> Result<(), Failure> {
    if stored.sizes != typed.sizes {
        return Err(usage!(
            "its sizes are {}, and those of its file or its study {}",
            listed(&stored.sizes),
            listed(&typed.sizes)
        ));
    }
    match stored.schedule == typed.schedule {
        true => Ok(()),
        false => Err(Failure::usage("its schedule is none that iolens lays out")),
    }
}

/// Sizes in words, as far as a message has room.
fn listed(sizes: &[Bytes]) -> String {
    let words: Vec<String> = sizes.iter().take(8).map(Bytes::to_string).collect();
    match sizes.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}

impl Wishes {
    /// Whether methods run one after another.
    fn is_sequential(&self) -> bool {
        self.sequential_time.is_some() || self.sequential_messages.is_some()
    }
}

fn schedule(spec: &StudySpec, asked: &Wishes) -> Schedule {
    let (slice, discarded_rounds) = spec.slices;
    match (asked.sequential_time, asked.sequential_messages) {
        (Some(window), _) => Schedule::Window { window },
        (None, Some(messages)) => Schedule::Messages { messages },
        (None, None) => Schedule::Slices {
            slice: asked.slice.unwrap_or(slice),
            discarded_rounds,
            rounds: asked.rounds.unwrap_or(ROUNDS),
        },
    }
}

#[cfg(test)]
pub(crate) mod tests;
