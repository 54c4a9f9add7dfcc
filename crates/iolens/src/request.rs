//! From what was typed to a plan: defaults filled in, words looked up, and
//! everything refused that cannot be measured, before anything is measured.

use iolens_engine::{FIELDS_MAX, registry};
use iolens_model::axes::{Iovec, Mode, Study, Topology, WorkingSet};
use iolens_model::parse::nearest;
use iolens_model::plan::{NetworkOptions, Passes, Plan, Schedule, SocketOptions};
use iolens_model::units::{Bytes, Nanos};

use crate::args::{Run, StudyName};
use crate::failure::Failure;

/// Every thread pair has a thread and a connection per arm at each end.
const THREADS_MAX: u32 = 1024;

/// Largest message: what one sendmsg of a page-aligned iovec can take whole
/// on every kernel is far above; memory for the rings is the limit.
const MESSAGE_BYTES_MAX: u64 = Bytes::GIB;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "send_staged";

/// The plan that the arguments describe.
pub(crate) fn plan(run: &Run, seed: u64) -> Result<Plan, Failure> {
    let StudyName::Net = run.study;
    let (primitives, baseline) = arms(run)?;
    let plan = Plan {
        study: Study::Net,
        primitives,
        baseline,
        sizes: sizes(run)?,
        threads: threads(run)?,
        topologies: axis(run.topologies.as_ref(), "topology", Topology::ALL, Topology::word, 1)?,
        modes: axis(run.modes.as_ref(), "mode", Mode::ALL, Mode::word, 1)?,
        working_sets: axis(
            run.working_set.as_ref(),
            "working set",
            WorkingSet::ALL,
            WorkingSet::word,
            1,
        )?,
        fields: fields(run)?,
        iovec: match &run.iovec {
            None => Iovec::PerMessage,
            Some(word) => lookup("iovec form", word, Iovec::ALL, Iovec::word)?,
        },
        receiver: "recv".to_owned(),
        schedule: schedule(run)?,
        passes: passes(run)?,
        budget: run.budget.unwrap_or(Nanos(if run.quick { 40 * SECOND } else { 600 * SECOND })),
        precision: run.precision.unwrap_or(0.03),
        delta: run.delta.unwrap_or(0.03),
        quick: run.quick,
        isolate: run.isolate,
        seed: run.seed.unwrap_or(seed),
        cpus: run.cpus.as_ref().map(|cpus| cpus.0.clone()),
        socket: SocketOptions {
            congestion: run.congestion.clone().unwrap_or_else(|| "reno".to_owned()),
            buffer_bytes: socket_buffer(run)?,
            nodelay: true,
            receive_bytes: receive_size(run)?,
        },
        network: NetworkOptions::default(),
    };
    Ok(plan)
}

const SECOND: u64 = Nanos::SECOND.0;

/// Asked of both socket buffers; see docs/journal for the measurements.
const SOCKET_BUFFER: Bytes = Bytes(512 << 10);

/// Asked of one recv(2); see docs/journal for the measurements.
const RECEIVE_BYTES: Bytes = Bytes(128 << 10);

fn socket_buffer(run: &Run) -> Result<Bytes, Failure> {
    // The kernel's option is an int, which it doubles.
    const SOCKET_BUFFER_MAX: Bytes = Bytes(512 << 20);
    match run.socket_buffer {
        Some(size) if size > SOCKET_BUFFER_MAX => Err(Failure::usage(format!(
            "a socket buffer of {size} is too large\n  the largest is {SOCKET_BUFFER_MAX}"
        ))),
        given => Ok(given.unwrap_or(SOCKET_BUFFER)),
    }
}

fn receive_size(run: &Run) -> Result<Bytes, Failure> {
    const RECEIVE_BYTES_MAX: Bytes = Bytes(64 << 20);
    match run.receive_size {
        Some(size) if size > RECEIVE_BYTES_MAX => Err(Failure::usage(format!(
            "a receive size of {size} is too large: every receiving thread has a buffer of it\n  \
             the largest is {RECEIVE_BYTES_MAX}"
        ))),
        given => Ok(given.unwrap_or(RECEIVE_BYTES)),
    }
}

/// The arms and the baseline. The baseline is always measured; a single
/// primitive is its own.
fn arms(run: &Run) -> Result<(Vec<String>, String), Failure> {
    let listed = match &run.primitives {
        None => registry::REGISTRY.iter().filter(|e| !e.hidden).map(|e| e.id.to_owned()).collect(),
        Some(words) => words.0.clone(),
    };
    for id in listed.iter().chain(&run.baseline) {
        known_primitive(id)?;
    }
    let baseline = match (&run.baseline, &listed[..]) {
        (Some(id), _) => id.clone(),
        (None, [single]) => single.clone(),
        (None, _) => BASELINE.to_owned(),
    };
    if registry::find(&baseline).is_some_and(|entry| entry.control) {
        return Err(Failure::usage(format!(
            "`{baseline}` cannot be the baseline: it is a control, which sends nothing\n  \
             name one that sends with --baseline, such as {BASELINE}"
        )));
    }
    let mut primitives = vec![baseline.clone()];
    for id in listed {
        if !primitives.contains(&id) {
            primitives.push(id);
        }
    }
    Ok((primitives, baseline))
}

fn known_primitive(id: &str) -> Result<(), Failure> {
    if registry::find(id).is_some() {
        return Ok(());
    }
    let known = registry::REGISTRY.iter().filter(|entry| !entry.hidden).map(|entry| entry.id);
    Err(unknown("primitive", id, known, "`iolens list primitives` shows all of them"))
}

/// "unknown primitive `x`: did you mean `y`?"
fn unknown<'a>(
    what: &str,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    advice: &str,
) -> Failure {
    let hint = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`? {advice}"),
        None => advice.to_owned(),
    };
    Failure::usage(format!("unknown {what} `{word}`\n  {hint}"))
}

/// Looks a word of an axis up.
fn lookup<T: Copy>(
    what: &str,
    word: &str,
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> Result<T, Failure> {
    let words = all.iter().map(|&value| name(value));
    all.iter().copied().find(|&value| name(value) == word).ok_or_else(|| {
        let list = words.clone().collect::<Vec<_>>().join(", ");
        unknown(what, word, words, &format!("there is: {list}"))
    })
}

/// The values of an axis, by default the first `default` of them.
fn axis<T: Copy + PartialEq>(
    given: Option<&crate::args::Words>,
    what: &str,
    all: &'static [T],
    name: fn(T) -> &'static str,
    default: usize,
) -> Result<Vec<T>, Failure> {
    let Some(words) = given else { return Ok(all[..default].to_vec()) };
    let mut values = Vec::new();
    for word in &words.0 {
        let value = lookup(what, word, all, name)?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

fn sizes(run: &Run) -> Result<Vec<Bytes>, Failure> {
    let sizes = match (&run.sizes, run.quick) {
        (Some(sizes), _) => sizes.0.clone(),
        (None, true) => [1, 16, 256].map(|kib| Bytes(kib * Bytes::KIB)).to_vec(),
        (None, false) => (3..=10).map(|power| Bytes(1 << (2 * power))).collect(),
    };
    match sizes.iter().find(|size| size.0 > MESSAGE_BYTES_MAX) {
        Some(size) => Err(Failure::usage(format!(
            "a message of {size} is too large: the rings of all arms must fit memory\n  \
             the largest size is {}",
            Bytes(MESSAGE_BYTES_MAX)
        ))),
        None => Ok(sizes),
    }
}

fn threads(run: &Run) -> Result<Vec<u32>, Failure> {
    let threads = match (&run.threads, run.quick) {
        (Some(threads), _) => threads.0.clone(),
        (None, true) => vec![1],
        (None, false) => vec![1, 4],
    };
    match threads.iter().find(|&&n| n > THREADS_MAX) {
        Some(n) => Err(Failure::usage(format!(
            "{n} thread pairs are too many\n  the largest number is {THREADS_MAX}"
        ))),
        None => Ok(threads),
    }
}

fn fields(run: &Run) -> Result<u32, Failure> {
    let fields = run.fields.unwrap_or(8);
    match u32::try_from(fields) {
        Ok(n) if n as usize <= FIELDS_MAX => Ok(n),
        _ => Err(Failure::usage(format!(
            "{fields} fields per message are too many\n  the largest number is {FIELDS_MAX}"
        ))),
    }
}

/// Slices and rounds; docs/journal has the measurements behind the defaults.
fn schedule(run: &Run) -> Result<Schedule, Failure> {
    const ROUNDS_MAX: u32 = 100_000;
    const DISCARDED_ROUNDS: u32 = 3;
    const SLICE_MAX: Nanos = Nanos(10 * SECOND);
    let slice = run.slice.unwrap_or(Nanos(2_000_000));
    if slice > SLICE_MAX {
        return Err(Failure::usage(format!(
            "a slice of {slice} is too long: arms that do not alternate cannot be compared\n  \
             at most {SLICE_MAX}, or the classic way with --window"
        )));
    }
    let rounds = run.rounds.unwrap_or(20);
    let rounds = u32::try_from(rounds).ok().filter(|&n| n <= ROUNDS_MAX).ok_or_else(|| {
        Failure::usage(format!("{rounds} rounds are too many\n  at most {ROUNDS_MAX}"))
    })?;
    Ok(match (run.window, run.messages) {
        (Some(window), _) => Schedule::Window { window },
        (None, Some(messages)) => Schedule::Messages { messages: sent(messages)? },
        (None, None) => Schedule::Slices { slice, discarded_rounds: DISCARDED_ROUNDS, rounds },
    })
}

fn sent(messages: u64) -> Result<u64, Failure> {
    const MESSAGES_MAX: u64 = 1 << 33;
    if messages <= MESSAGES_MAX {
        return Ok(messages);
    }
    Err(Failure::usage(format!("{messages} messages are too many\n  at most {MESSAGES_MAX}")))
}

fn passes(run: &Run) -> Result<Passes, Failure> {
    const PASSES_MAX: u32 = 10_000;
    let classic = run.window.is_some() || run.messages.is_some();
    let fixed = |n| Passes { minimum: n, maximum: n };
    match run.passes {
        Some(n) => match u32::try_from(n) {
            Ok(n) if n <= PASSES_MAX => Ok(fixed(n)),
            _ => Err(Failure::usage(format!("{n} passes are too many\n  at most {PASSES_MAX}"))),
        },
        None if classic => Ok(fixed(1)),
        None if run.quick => Ok(fixed(10)),
        None => Ok(Passes { minimum: 12, maximum: 60 }),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn planned(line: &str) -> Result<Plan, String> {
        let words = ["iolens", "run", "net"].into_iter().chain(line.split_whitespace());
        match Args::try_parse_from(words).map_err(|e| e.to_string())?.command {
            Command::Run(run) => plan(&run, 1).map_err(|e| e.message),
            _ => unreachable!(),
        }
    }

    #[test]
    fn the_default_is_the_documented_one() {
        let plan = planned("").unwrap();
        assert_eq!((plan.sizes[0], plan.sizes[7]), (Bytes(64), Bytes(1 << 20)));
        assert_eq!((plan.sizes.len(), &plan.threads[..]), (8, &[1, 4][..]));
        assert_eq!(plan.passes, Passes { minimum: 12, maximum: 60 });
        assert_eq!(plan.baseline, "send_staged");
        let quick = planned("--quick").unwrap();
        assert_eq!((quick.sizes.len(), quick.passes.maximum), (3, 10));
    }

    #[test]
    fn a_single_primitive_is_its_own_baseline() {
        assert_eq!(planned("--primitives send").unwrap().baseline, "send");
        let two = planned("--primitives send,sendmsg_iov").unwrap();
        assert_eq!(two.primitives, ["send_staged", "send", "sendmsg_iov"]);
    }

    #[test]
    fn mistakes_are_answered() {
        let check = |line: &str, expect: &str| {
            let error = planned(line).unwrap_err();
            assert!(error.contains(expect), "{line}: {error}");
        };
        check("--primitives sendmsg_iovec", "did you mean `sendmsg_iov`?");
        check("--topologies loopbck", "did you mean `loopback`?");
        check("--sizes 0", "a size of zero moves nothing");
        check("--sizes 64kB", "is not a size");
        check("--sizes 2GiB", "the largest size is 1 GiB");
        check("--threads 0", "at least 1");
        check("--threads 5000", "too many");
        check("--fields 65", "the largest number is 64");
        check("--baseline memcpy", "it is a control");
        check("--delta 0%", "not a fraction");
        check("--window 1s --messages 5", "cannot be used with");
        check("--iovec later", "per_message, prepared");
    }
}
