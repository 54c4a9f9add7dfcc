//! What is the same in the plan of every study, and what is of one alone.

use iolens_model::axes::Study;
use iolens_model::copy::External;
use iolens_model::plan::{Axes, Passes, Plan, Probes, Schedule};
use iolens_model::units::Bytes;

use super::{ALL, stated};
use crate::failure::Failure;
use crate::plan_file;
use crate::values::server::lacking;
use crate::values::unknown;
use crate::wishes::Wishes;

/// Keys that not every study has, and whose they are.
const KEYS: [(&[Study], &[&str]); 12] = [
    (&[Study::Net, Study::File, Study::Write, Study::Copy], &["sizes"]),
    (&[Study::File, Study::Write, Study::Copy], &["dir"]),
    (&[Study::File, Study::Write], &["pattern", "depth", "file_bytes"]),
    (&[Study::File, Study::Copy], &["cache", "file", "evict"]),
    (&[Study::Write], &["destination"]),
    (&[Study::Copy], &["block", "sync"]),
    (&[Study::Copy, Study::Server], &["external"]),
    (&[Study::Net, Study::Server], &["topologies"]),
    (
        &[Study::Server],
        &[
            "services",
            "connections",
            "length",
            "load",
            "arrivals",
            "in_flight",
            "slo",
            "knee",
            "phase",
            "server_cpus",
            "client_cpus",
            "client_threads",
            "backlog",
        ],
    ),
    (
        &[Study::Net],
        &[
            "modes",
            "working_set",
            "receivers",
            "fields",
            "iovec",
            "reap_batch",
            "uring_batch",
            "uring_depth",
            "ip",
            "mtu",
            "direction",
            "congestion",
            "socket_buffer",
            "receive_size",
            "allow_sysctl",
        ],
    ),
    (&[Study::Syscall], &["in_a_row"]),
    (&[Study::File], &["consumer", "drop_caches"]),
];

/// Refuses what another study has.
pub(super) fn refuse_foreign(study: Study, asked: &Wishes) -> Result<(), Failure> {
    let flag = |key: &str| format!("--{}", key.replace('_', "-"));
    for (key, _) in plan_file::stated(asked) {
        let owners = KEYS.iter().find(|(_, keys)| keys.contains(&key)).map(|(owners, _)| *owners);
        if let Some(owners) = owners.filter(|owners| !owners.contains(&study)) {
            let own = KEYS.iter().filter(|(owners, _)| owners.contains(&study));
            let own: Vec<String> =
                own.flat_map(|(_, keys)| keys.iter()).map(|key| flag(key)).collect();
            let owners: Vec<String> = owners.iter().map(|owner| owner.word().to_owned()).collect();
            return Err(Failure::usage(format!(
                "{} is of the {} {}: {study} has no such axis\n  leave it out; {study} has \
                 --primitives, --threads, {}",
                flag(key),
                if owners.len() == 1 { "study" } else { "studies" },
                listed(&owners),
                own.join(", ")
            )));
        }
    }
    Ok(())
}

/// `a, b and c`.
fn listed(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => words.concat(),
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
            None if asked.is_classic() => Passes { minimum: 1, maximum: 1 },
            given => stated(given, "passes")?,
        };
        Ok(Plan {
            axes: self.axes,
            primitives: self.primitives,
            baseline: self.baseline,
            sizes: self.sizes,
            threads: stated(asked.threads.clone(), "threads")?.0,
            schedule: self.schedule,
            passes,
            budget: stated(asked.budget, "budget")?,
            precision: asked.precision.unwrap_or(0.03),
            delta: asked.delta.unwrap_or(0.03),
            quick: asked.quick,
            isolate: asked.isolate,
            seed: asked.seed.unwrap_or(seed),
            cpus: asked.cpus.clone().map(|cpus| cpus.0),
            probes: Probes {
                counting: asked.counters.unwrap_or_default(),
                software: asked.software_events,
                tracepoints: asked.tracepoints,
            },
        })
    }
}

/// The largest block of a file: each thread of each arm has a buffer of it, or several.
const BLOCK_BYTES_MAX: Bytes = Bytes(64 * Bytes::MIB);

/// Block sizes of a study of files.
pub(super) fn block_sizes(asked: &Wishes) -> Result<Vec<Bytes>, Failure> {
    let sizes = stated(asked.sizes.clone(), "sizes")?.0;
    match sizes.iter().find(|size| **size > BLOCK_BYTES_MAX) {
        None => Ok(sizes),
        Some(size) => Err(Failure::usage(format!(
            "a block of {size} is too large: the largest is {BLOCK_BYTES_MAX}"
        ))),
    }
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
    for word in stated(asked.primitives.clone(), "primitives")?.0 {
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
    for word in stated(asked.primitives.clone(), "primitives")?.0 {
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
        let hint = format!("`iolens list engines` shows all of them; --primitives takes {ALL} too");
        unknown(&format!("engine that {}", E::TASK), id, &E::ids(), &hint)
    })
}

/// Whether there is such an id under a key of a plan.
pub(super) fn known_engine<E: Engines>(key: &str, id: &str) -> Result<(), String> {
    match key {
        "primitives" if id == ALL => Ok(()),
        "primitives" | "baseline" => engine::<E>(id).map(|_| ()),
        // Said of the key, whatever stands under it.
        _ => Ok(()),
    }
}
