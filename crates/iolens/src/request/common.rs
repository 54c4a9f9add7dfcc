//! What is the same in the plan of every study, and what is of one alone.

use iolens_model::axes::Study;
use iolens_model::copy::External;
use iolens_model::plan::{Axes, Passes, Plan, Probes, Schedule};
use iolens_model::units::Bytes;

use super::{ALL, stated};
use crate::axes::Wishes;
use crate::failure::Failure;
use crate::values::server::lacking;
use crate::values::{a_block, unknown};

/// Words of textbooks for what has a name of its own here.
const TEXTBOOK: [(Study, &str, &str); 8] = [
    (Study::Net, "two-copy", "send_staged"),
    (Study::Net, "one-copy", "sendmsg_iov"),
    (Study::Net, "zero-copy", "sendmsg_zerocopy"),
    (Study::Net, "a1", "send_staged"),
    (Study::Net, "a2", "sendmsg_iov"),
    (Study::Net, "a3", "sendmsg_zerocopy"),
    (Study::Server, "single", "iterative"),
    (Study::Server, "threaded", "thread_per_connection"),
];

/// What a word of textbooks is called here.
pub(super) fn textbook(study: Study, word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let found = TEXTBOOK.iter().find(|(of, theirs, _)| *of == study && *theirs == word);
    found.map(|(_, _, ours)| *ours)
}

/// The wishes with our words for those of textbooks, and a note for each.
pub(super) fn in_our_words(mut asked: Wishes) -> (Wishes, Vec<String>) {
    let study = asked.study.unwrap_or(Study::Net);
    let mut notes = Vec::new();
    let listed = asked.methods.iter_mut().flatten();
    for word in listed.chain(asked.baseline.iter_mut()) {
        let Some(ours) = textbook(study, word) else { continue };
        let note = format!("{word} is called {ours} here");
        if !notes.contains(&note) {
            notes.push(note);
        }
        ours.clone_into(word);
    }
    (asked, notes)
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
        methods: Some(plan.primitives.clone()),
        baseline: Some(plan.baseline.clone()),
        sizes: (plan.study().has_sizes() && !is_of_a_file).then(|| plan.sizes.clone()),
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
        ..match &plan.axes {
            Axes::Net(net) => super::net::wishes(net),
            Axes::File(file) => super::file::wishes(file),
            Axes::Write(write) => super::write::wishes(write),
            Axes::Copy(copy) => super::copy::wishes(copy),
            Axes::Server(server) => super::server::wishes(server),
            Axes::Syscall(syscall) => super::syscall::wishes(syscall),
        }
    }
}

/// What of a plan a study has chosen in its own way.
pub(super) struct Chosen {
    pub(super) axes: Axes,
    pub(super) primitives: Vec<String>,
    pub(super) baseline: String,
    pub(super) sizes: Vec<Bytes>,
    pub(super) schedule: Schedule,
}

impl Chosen {
    /// The plan, with what is the same in every study.
    pub(super) fn plan(self, asked: &Wishes, seed: u64) -> Result<Plan, Failure> {
        let passes = match asked.passes {
            None if asked.is_sequential() => Passes { minimum: 1, maximum: 1 },
            given => stated(given, "passes")?,
        };
        Ok(Plan {
            axes: self.axes,
            primitives: self.primitives,
            baseline: self.baseline,
            sizes: self.sizes,
            threads: stated(asked.threads.clone(), "threads")?,
            schedule: self.schedule,
            passes,
            budget: stated(asked.budget, "budget")?,
            precision: asked.precision.unwrap_or(0.03),
            delta: asked.threshold.unwrap_or(0.03),
            quick: asked.quick,
            isolate: asked.isolate,
            seed: asked.seed.unwrap_or(seed),
            cpus: asked.cpus.clone(),
            probes: Probes {
                counting: asked.counters.unwrap_or_default(),
                software: asked.software_events,
                tracepoints: asked.tracepoints,
            },
        })
    }
}

/// Block sizes of a study of files.
pub(super) fn block_sizes(asked: &Wishes) -> Result<Vec<Bytes>, Failure> {
    let sizes = stated(asked.sizes.clone(), "sizes")?;
    sizes.iter().try_for_each(|&size| a_block(size).map(drop)).map_err(Failure::usage)?;
    Ok(sizes)
}

/// Refuses programs that a study cannot have as arms: of a name that is one already, or
/// that are not told what they must be.
pub(super) fn check_external(
    external: &[External],
    is_built_in: impl Fn(&str) -> bool,
    placeholders: &[&'static str],
) -> Result<(), Failure> {
    for (index, External { name, argv }) in external.iter().enumerate() {
        if is_built_in(name) {
            return Err(Failure::usage(format!(
                "--external cannot be named {name}: that is an arm already\n  take another name"
            )));
        }
        if external[..index].iter().any(|other| other.name == *name) {
            return Err(Failure::usage(format!("--external {name} is there twice")));
        }
        if let Some(key) = lacking(argv, placeholders) {
            return Err(Failure::usage(format!(
                "--external {name} lacks {key}, which this study tells its programs\n  write it \
                 into the command, as in {name}='prog {}'",
                placeholders.join(" ")
            )));
        }
    }
    Ok(())
}

/// The arms and the baseline, which is always measured; so is every program that is given
/// with `--external`. `all` is what that word stands for, `known` finds an id.
pub(super) fn arms_with_programs(
    asked: &Wishes,
    all: &[&str],
    known: impl Fn(&str) -> Result<String, String>,
    default: &str,
) -> Result<(Vec<String>, String), Failure> {
    let mut listed: Vec<String> = Vec::new();
    for word in stated(asked.methods.clone(), "methods")? {
        match &*word {
            ALL => listed.extend(all.iter().map(|&id| id.to_owned())),
            id => listed.push(known(id).map_err(Failure::usage)?),
        }
    }
    listed.extend(asked.external.iter().map(|external| external.name.clone()));
    let listed = listed.into_iter().fold(Vec::new(), |mut kept: Vec<String>, id| {
        if !kept.contains(&id) {
            kept.push(id);
        }
        kept
    });
    let baseline = match (&asked.baseline, &listed[..]) {
        (Some(id), _) => known(id).map_err(Failure::usage)?,
        (None, [single]) => single.clone(),
        (None, _) => default.to_owned(),
    };
    let others = listed.into_iter().filter(|id| *id != baseline);
    Ok((std::iter::once(baseline.clone()).chain(others).collect(), baseline))
}

/// The engines of a study of files.
pub(super) trait Engines {
    /// What they do, in a word.
    const TASK: &'static str;

    /// The id of each that is shown.
    fn ids() -> Vec<&'static str>;

    /// The id of one, shown or not.
    fn find(id: &str) -> Option<&'static str>;
}

/// The engines and the baseline, which is always measured.
pub(super) fn engine_arms<E: Engines>(
    asked: &Wishes,
    default: &str,
) -> Result<(Vec<String>, String), Failure> {
    let mut listed: Vec<String> = Vec::new();
    for word in stated(asked.methods.clone(), "methods")? {
        let found: Vec<&str> = match &*word {
            ALL => E::ids(),
            id => vec![engine::<E>(id).map_err(Failure::usage)?],
        };
        for id in found {
            if !listed.iter().any(|known| known == id) {
                listed.push(id.to_owned());
            }
        }
    }
    let baseline = match (&asked.baseline, &listed[..]) {
        (Some(id), _) => engine::<E>(id).map_err(Failure::usage)?.to_owned(),
        (None, [single]) => single.clone(),
        (None, _) => default.to_owned(),
    };
    let others = listed.into_iter().filter(|id| *id != baseline);
    Ok((std::iter::once(baseline.clone()).chain(others).collect(), baseline))
}

fn engine<E: Engines>(id: &str) -> Result<&'static str, String> {
    E::find(id).ok_or_else(|| {
        let hint = format!("`iolens list engines` shows all of them; --engines takes {ALL} too");
        unknown(&format!("engine that {}", E::TASK), id, &E::ids(), &hint)
    })
}

/// Whether there is such an id under a field.
pub(super) fn known_engine<E: Engines>(field: &str, id: &str) -> Result<(), String> {
    match field {
        "methods" if id == ALL => Ok(()),
        "methods" | "baseline" => engine::<E>(id).map(|_| ()),
        // Said of the key, whatever stands under it.
        _ => Ok(()),
    }
}
