//! From what was asked for to a plan: what was left open filled in, words
//! looked up, and everything refused that cannot be measured, before anything
//! is measured.

pub(crate) mod asked;
mod common;
pub(crate) mod confirm;
mod copy;
mod file;
mod server;
mod stands;
mod stored;
mod syscall;
mod tuning;
mod write;

use self::common::{Chosen, refuse_foreign};
pub(crate) use self::server::known_model;
use self::stands::topologies;
pub(crate) use self::stored::check_stored;
pub(crate) use self::tuning::CONGESTION;

use std::path::Path;

use iolens_engine::{receivers, registry};
use iolens_model::axes::{Iovec, Mode, Study, Topology};
use iolens_model::cell::NetSetting;
use iolens_model::family::Family;
use iolens_model::plan::{Axes, NetAxes, NetworkAxes, NetworkOptions, Plan, Schedule};
use iolens_model::units::{Bytes, Nanos};

use crate::built_in::{self, BuiltIn};
use crate::failure::Failure;
use crate::plan_file;
use crate::values::{List, unknown};
use crate::wishes::Wishes;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "send_staged";

/// Selects every family in a list of primitives.
const ALL: &str = "all";

/// How long a slice is meant to last; docs/journal has the measurements.
const SLICE: Nanos = Nanos(2_000_000);

/// Rounds that are thrown away, and rounds that count; docs/journal has the
/// measurements.
const DISCARDED_ROUNDS: u32 = 3;
pub(crate) const ROUNDS: u32 = 10;

/// Whether a topology can be made here, or why not.
pub(crate) type Available<'a> = &'a dyn Fn(Topology) -> Result<(), String>;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) plan: Plan,
    /// The user's name for the run.
    pub(crate) name: Option<String>,
    /// What the user ought to know about the plan, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// What `what` (a study, a plan by its name or its path) and the flags ask
/// for together: flags before the file, the file before the study's default.
pub(crate) fn asked(what: &str, flags: &Wishes) -> Result<Wishes, Failure> {
    complete(match Study::from_word(what) {
        Some(study) => Wishes { study: Some(study), ..flags.clone() },
        None => flags.clone().or(file(what)?),
    })
}

/// What the text of a plan file asks for, which is called `name`.
pub(crate) fn asked_in(name: &str, text: &str) -> Result<Wishes, Failure> {
    complete(plan_file::parse(name, text, &known).map_err(Failure::usage)?)
}

/// What was asked for, and the study's default for the rest.
fn complete(asked: Wishes) -> Result<Wishes, Failure> {
    let study = asked.study.unwrap_or(Study::Net);
    refuse_foreign(study, &asked)?;
    if study == Study::Copy {
        copy::refuse_sizes(&asked)?;
    }
    let mut base = built_in(match (study, asked.quick) {
        (Study::Net, false) => built_in::NET,
        (Study::Net, true) => built_in::QUICK,
        (Study::Syscall, false) => built_in::SYSCALL,
        (Study::Syscall, true) => built_in::SYSCALL_QUICK,
        (Study::File, false) => built_in::FILE,
        (Study::File, true) => built_in::FILE_QUICK,
        (Study::Write, false) => built_in::WRITE,
        (Study::Write, true) => built_in::WRITE_QUICK,
        (Study::Copy, false) => built_in::COPY,
        (Study::Copy, true) => built_in::COPY_QUICK,
        (Study::Server, false) => built_in::SERVER,
        (Study::Server, true) => built_in::SERVER_QUICK,
    })?;
    if asked.is_classic() {
        // Their number of passes is made for slices.
        base.passes = None;
    }
    if asked.knee || asked.slo.is_some() {
        // It is made for passes: what searches take comes on top.
        base.budget = None;
    }
    Ok(asked.or(base))
}

fn built_in(plan: BuiltIn) -> Result<Wishes, Failure> {
    // Ids are looked up once the flags have had their say.
    plan_file::parse(&plan.file(), plan.text, &|_, _, _| Ok(())).map_err(Failure::usage)
}

/// The plan of a name or of a path.
fn file(what: &str) -> Result<Wishes, Failure> {
    if let Some(plan) = built_in::ALL.into_iter().find(|plan| plan.name == what) {
        return built_in(plan);
    }
    let path = Path::new(what);
    if path.extension().is_none_or(|extension| extension != "toml") && !what.contains('/') {
        let names = built_in::ALL.map(|plan| plan.name);
        let advice = format!("there is: {}, or the path of a file.toml", names.join(", "));
        return Err(Failure::usage(unknown("plan", what, &names, &advice)));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("cannot read the plan {what}: {e}")))?;
    plan_file::parse(what, &text, &known).map_err(Failure::usage)
}

/// The plan of these wishes. `seed` is taken where none is stated.
pub(crate) fn plan(asked: Wishes, seed: u64, available: Available<'_>) -> Result<Request, Failure> {
    match asked.study {
        Some(Study::Syscall) => syscall::plan(asked, seed),
        Some(Study::File) => file::plan(asked, seed),
        Some(Study::Write) => write::plan(asked, seed),
        Some(Study::Copy) => copy::plan(asked, seed),
        Some(Study::Server) => server::plan(asked, seed, available),
        Some(Study::Net) | None => net(asked, seed, available),
    }
}

/// A plan of `net`.
fn net(asked: Wishes, seed: u64, available: Available<'_>) -> Result<Request, Failure> {
    let (mut primitives, baseline) = arms(&asked)?;
    let schedule = schedule(&asked);
    let modes = stated(asked.modes.clone(), "modes")?.0;
    check_modes(&modes, &schedule)?;
    let mut notes = Vec::new();
    let stands = stated(asked.topologies.clone(), "topologies")?.0;
    let topologies = topologies(&stands, available, &mut notes)?;
    let network = tuning::network(&asked, &topologies, &mut notes)?;
    let socket = tuning::socket(&asked, &topologies, &mut notes);
    let setting = tuning::Setting {
        primitives: &primitives,
        baseline: &baseline,
        topologies: &topologies,
        modes: &modes,
    };
    let batches = tuning::batches(&asked, setting, &mut notes)?;
    let sizes = stated(asked.sizes.clone(), "sizes")?.0;
    if topologies.contains(&Topology::Sink) {
        let named = |id: &String| asked.primitives.iter().any(|List(words)| words.contains(id));
        leave_out_of_sink(&mut primitives, &named, &mut notes);
        check_sink(&primitives, &sizes, &modes, &network)?;
    }
    let axes = NetAxes {
        topologies,
        modes,
        working_sets: stated(asked.working_set.clone(), "working_set")?.0,
        fields: asked.fields.clone().map_or(vec![NetSetting::FIELDS], |fields| fields.0),
        iovec: asked.iovec.clone().map_or(vec![Iovec::PerMessage], |iovec| iovec.0),
        receivers: receivers(asked.receivers.clone())?,
        socket,
        network,
        batches,
        allow_sysctl: asked.allow_sysctl,
        direction: asked.direction.unwrap_or_default(),
    };
    let chosen = Chosen { axes: Axes::Net(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes })
}

/// What the study's default states; a test reads that it states all of it.
fn stated<T>(value: Option<T>, key: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::usage(format!("the plan states no `{key}`")))
}

/// The arms and the baseline. The baseline is always measured; a single
/// primitive is its own.
fn arms(asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let listed = selected(&stated(asked.primitives.clone(), "primitives")?.0)?;
    if let Some(id) = &asked.baseline {
        known_primitive(id).map_err(Failure::usage)?;
    }
    let baseline = match (&asked.baseline, &listed[..]) {
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
    let others = listed.into_iter().filter(|id| *id != baseline);
    Ok((std::iter::once(baseline.clone()).chain(others).collect(), baseline))
}

/// The primitives of a list of ids and families, in its order, each once; a
/// family stands for those of it that are shown, `all` for every family.
fn selected(words: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for word in words {
        let of_family = |family| registry::of_family(family).map(|entry| entry.id.to_owned());
        let found: Vec<String> = match Family::find(word) {
            _ if word == ALL => Family::ALL.into_iter().flat_map(of_family).collect(),
            Some(family) => of_family(family).collect(),
            None => {
                known_primitive(word).map_err(Failure::usage)?;
                vec![word.clone()]
            }
        };
        let new: Vec<String> = found.into_iter().filter(|id| !ids.contains(id)).collect();
        ids.extend(new);
    }
    Ok(ids)
}

/// Where all of them are.
const LISTED: &str = "`iolens list primitives` shows all of them";

/// The primitive of an id, where a command takes one.
pub(crate) fn one_primitive(id: &str) -> Result<&'static registry::Entry, String> {
    primitive(id, || LISTED.to_owned())
}

fn primitive(
    id: &str,
    advice: impl FnOnce() -> String,
) -> Result<&'static registry::Entry, String> {
    registry::find(id).ok_or_else(|| {
        let shown = registry::REGISTRY.iter().filter(|entry| !entry.hidden);
        let known: Vec<&str> = shown.map(|entry| entry.id).collect();
        unknown("primitive", id, &known, &advice())
    })
}

/// The same where `--primitives` takes it, and families.
fn known_primitive(id: &str) -> Result<&'static registry::Entry, String> {
    primitive(id, families)
}

fn families() -> String {
    let families: Vec<&str> = Family::ALL
        .into_iter()
        .filter(|family| registry::of_family(*family).next().is_some())
        .map(Family::id)
        .collect();
    format!("{LISTED}; --primitives takes families too: {}, {ALL}", families.join(", "))
}

/// Whether a word may stand in `primitives`: an id, a family, or all of them.
fn selects(word: &str) -> Result<(), String> {
    if word == ALL || Family::find(word).is_some() {
        return Ok(());
    }
    known_primitive(word).map(|_| ())
}

/// Whether there is such an id under a key of a plan.
fn known(study: Study, key: &str, id: &str) -> Result<(), String> {
    match key {
        _ if study == Study::Syscall => syscall::known(key, id),
        _ if study == Study::File => file::known(key, id),
        _ if study == Study::Write => write::known(key, id),
        _ if study == Study::Copy => copy::known(key, id),
        _ if study == Study::Server => server::known(key, id),
        "receivers" => known_receiver(id).map(|_| ()),
        "primitives" => selects(id),
        _ => known_primitive(id).map(|_| ()),
    }
}

/// The receivers, each of which works here.
fn receivers(asked: Option<List<String>>) -> Result<Vec<String>, Failure> {
    let ids = asked.map_or_else(|| vec![NetSetting::RECEIVER.to_owned()], |List(ids)| ids);
    for id in &ids {
        let entry = known_receiver(id).map_err(Failure::usage)?;
        entry
            .try_here()
            .map_err(|why| Failure::unusable(format!("cannot receive with {id} here: {why}")))?;
    }
    Ok(ids)
}

pub(crate) fn known_receiver(id: &str) -> Result<&'static receivers::Entry, String> {
    receivers::find(id).ok_or_else(|| {
        let known: Vec<&str> = receivers::RECEIVERS.iter().map(|entry| entry.id).collect();
        unknown("receiver", id, &known, "`iolens list receivers` shows all of them")
    })
}

fn schedule(asked: &Wishes) -> Schedule {
    match (asked.window, asked.messages) {
        (Some(window), _) => Schedule::Window { window },
        (None, Some(messages)) => Schedule::Messages { messages },
        (None, None) => Schedule::Slices {
            slice: asked.slice.unwrap_or(SLICE),
            discarded_rounds: DISCARDED_ROUNDS,
            rounds: asked.rounds.unwrap_or(ROUNDS),
        },
    }
}

fn check_modes(modes: &[Mode], schedule: &Schedule) -> Result<(), Failure> {
    let way = match schedule {
        Schedule::Window { .. } => "--window",
        Schedule::Messages { .. } => "--messages",
        Schedule::Slices { .. } => return Ok(()),
    };
    if !modes.contains(&Mode::Rr) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{way} and mode rr do not go together: the classic way sends one stream until it ends, \
         and rr waits for a response to every request\n  leave {way} out, or take --modes stream"
    )))
}

/// Whether a message of a primitive can be one datagram.
fn fits_sink(id: &str) -> bool {
    registry::find(id).is_some_and(|entry| entry.fits(Topology::Sink).is_ok())
}

/// What a family brought along that a sink cannot take stays at home, and is
/// said; what was named is refused ([`check_sink`]).
fn leave_out_of_sink(
    primitives: &mut Vec<String>,
    named: &dyn Fn(&String) -> bool,
    notes: &mut Vec<String>,
) {
    let out = |id: &String| !fits_sink(id) && !named(id);
    let left_out: Vec<String> = primitives.iter().filter(|id| out(id)).cloned().collect();
    primitives.retain(|id| !out(id));
    if !left_out.is_empty() {
        notes.push(format!(
            "left out for the topology sink, where a message is one UDP datagram: {}",
            left_out.join(", ")
        ));
    }
}

/// What a device that drops everything cannot show: whatever takes an answer,
/// and whatever is more than one datagram per message.
fn check_sink(
    primitives: &[String],
    sizes: &[Bytes],
    modes: &[Mode],
    network: &NetworkAxes,
) -> Result<(), Failure> {
    if modes.contains(&Mode::Rr) {
        return Err(Failure::usage(
            "mode rr and the topology sink do not go together: what is sent into sink is \
             dropped, so nobody answers\n  take --modes stream, or another topology",
        ));
    }
    for &ip in &network.ip {
        let largest = NetworkOptions { ip, ..NetworkOptions::default() }.datagram_max();
        if let Some(size) = sizes.iter().find(|&&size| size > largest) {
            return Err(Failure::usage(format!(
                "a message of {size} is too large for the topology sink, where each is one UDP \
                 datagram: the largest over {ip} has {} bytes\n  ask for smaller ones, such as \
                 --sizes 1KiB..64000, or for another topology",
                largest.0
            )));
        }
    }
    let refused = primitives
        .iter()
        .find_map(|id| Some((id, registry::find(id)?.fits(Topology::Sink).err()?)));
    if let Some((id, why)) = refused {
        let shown = registry::REGISTRY.iter().filter(|entry| entry.datagrams && !entry.hidden);
        let known: Vec<&str> = shown.map(|entry| entry.id).collect();
        return Err(Failure::usage(format!(
            "`{id}` cannot be used in the topology sink: {why}\n  \
             take another topology, or of --primitives: {}",
            known.join(", ")
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use iolens_model::plan::Passes;

    use super::*;
    use crate::args::{Args, Command};

    /// Primitives that every build has.
    const ARMS: &str = "--primitives send_staged,sendmsg_iov";

    fn typed(line: &str) -> Result<Wishes, String> {
        let words = ["iolens", "run", "net"].into_iter().chain(line.split_whitespace());
        match Args::try_parse_from(words).map_err(|e| e.to_string())?.command {
            Command::Run(run) => Ok(run.wishes),
            _ => unreachable!(),
        }
    }

    fn veth_is(answer: Result<(), String>) -> impl Fn(Topology) -> Result<(), String> {
        move |topology| if topology == Topology::Veth { answer.clone() } else { Ok(()) }
    }

    pub(super) fn request(line: &str) -> Result<Request, String> {
        let asked = asked("net", &typed(line)?).map_err(|e| e.message)?;
        plan(asked, 1, &veth_is(Err("not today".to_owned()))).map_err(|e| e.message)
    }

    pub(super) fn planned(line: &str) -> Result<Plan, String> {
        request(line).map(|request| request.plan)
    }

    #[test]
    fn the_default_is_the_documented_one() {
        let plan = planned(ARMS).unwrap();
        assert_eq!((plan.sizes[0], plan.sizes[7]), (Bytes(64), Bytes(1 << 20)));
        assert_eq!((plan.sizes.len(), &plan.threads[..]), (8, &[1, 4][..]));
        assert_eq!(plan.passes, Passes { minimum: 12, maximum: 60 });
        assert_eq!(plan.baseline, "send_staged");
        let quick = planned(&format!("{ARMS} --quick")).unwrap();
        assert_eq!((quick.sizes.len(), quick.passes.maximum), (3, 20));
        let arms = ["send_staged", "sendmsg_iov", "sendmsg_zerocopy", "send", "memcpy"];
        for (line, arms) in [("", &arms[..]), ("--quick", &arms[..4])] {
            let asked = asked("net", &typed(line).unwrap()).unwrap();
            assert_eq!(asked.primitives.unwrap().0, arms, "{line}");
        }
    }

    #[test]
    fn a_single_primitive_is_its_own_baseline() {
        assert_eq!(planned("--primitives send").unwrap().baseline, "send");
        let two = planned("--primitives send,sendmsg_iov").unwrap();
        assert_eq!(two.primitives, ["send_staged", "send", "sendmsg_iov"]);
    }

    #[test]
    fn flags_go_before_the_file_and_the_file_before_the_default() {
        let asked = |line: &str| asked("classic-48", &typed(line).unwrap()).unwrap();
        let file = asked("--threads 3");
        assert_eq!(file.threads.unwrap().0, [3]);
        assert_eq!(file.sizes.unwrap().0.len(), 4);
        assert_eq!(file.budget, Some(Nanos(300 * Nanos::SECOND.0)));
        assert_eq!(file.passes, Some(Passes { minimum: 12, maximum: 60 }));
        assert_eq!(asked("--quick").passes, Some(Passes { minimum: 20, maximum: 20 }));
        assert_eq!(asked("--window 10s").passes, None);
    }

    #[test]
    fn a_way_to_lay_out_trials_takes_the_place_of_another() {
        let below = Wishes { rounds: Some(5), isolate: true, ..Wishes::default() };
        let above = typed("--messages 5000").unwrap().or(below);
        assert_eq!((above.messages, above.rounds, above.isolate), (Some(5000), None, false));
        let below = Wishes { messages: Some(5000), ..Wishes::default() };
        let above = typed("--rounds 5").unwrap().or(below);
        assert_eq!((above.messages, above.rounds), (None, Some(5)));
    }

    #[test]
    fn auto_is_veth_where_permitted_and_says_where_not() {
        let asked = || asked("net", &typed(ARMS).unwrap()).unwrap();
        let veth = plan(asked(), 1, &veth_is(Ok(()))).unwrap();
        assert_eq!((veth.plan.topologies(), veth.notes.len()), (&[Topology::Veth][..], 0));
        let loopback = request(ARMS).unwrap();
        assert_eq!(loopback.plan.topologies(), [Topology::Loopback]);
        assert!(loopback.notes[0].ends_with("veth cannot be used: not today"));
        let typed = typed(&format!("{ARMS} --topologies veth")).unwrap();
        let refused = plan(typed.or(asked()), 1, &veth_is(Err("not today".to_owned())));
        assert_eq!(refused.unwrap_err().code, crate::failure::NOTHING_USABLE);
    }

    #[test]
    fn mistakes_are_answered() {
        let check = |line: &str, expect: &str| {
            let error = planned(&format!("{ARMS} {line}")).unwrap_err();
            assert!(error.contains(expect), "{line}: {error}");
        };
        check("--baseline sendmsg_iovec", "did you mean `sendmsg_iov`?");
        check("--topologies loopbck", "did you mean `loopback`?");
        check("--receivers recvv", "unknown receiver `recvv`, did you mean `recv`?");
        check("--sizes 0", "a size of zero moves nothing");
        check("--sizes 64kB", "is not a size");
        check("--sizes 2GiB", "the largest size is 1 GiB");
        check("--threads 0", "at least 1");
        check("--threads 5000", "too many");
        check("--fields 65", "the largest number is 64");
        check("--baseline memcpy", "it is a control");
        check("--delta 0%", "write a percentage above 0 %");
        check("--window 1s --messages 5", "cannot be used with");
        check("--iovec later", "per_message, prepared");
        check("--counters sometimes", "on, off, alternate");
        check("--modes rr --window 1s", "--window and mode rr do not go together");
        check("--modes stream,rr --messages 5", "--messages and mode rr");
        check("--ip ipv6 --mtu 1000", "too small for IPv6");
    }

    #[test]
    fn a_family_stands_for_its_primitives_and_all_for_all_of_them() {
        let primitives = |line: &str| planned(line).map(|plan| plan.primitives);
        let ids = |family| -> Vec<&str> { registry::of_family(family).map(|e| e.id).collect() };
        let page_moving = primitives("--primitives page_moving,splice").unwrap();
        assert_eq!(page_moving[0], BASELINE);
        assert_eq!(page_moving[1..], ids(Family::PageMoving));
        let all = primitives("--primitives all").unwrap();
        let shown: Vec<&str> = Family::ALL.into_iter().flat_map(ids).collect();
        assert_eq!(all.len(), shown.len());
        assert!(shown.iter().all(|id| all.iter().any(|own| own == id)));
        let why = planned("--primitives iouring").unwrap_err();
        assert!(why.contains("page_moving, io_uring"), "{why}");
        // A family brings to a sink what can go there; what is named is refused.
        let sink = primitives("--topologies sink --sizes 1KiB --primitives all").unwrap();
        assert!(sink.iter().all(|id| fits_sink(id)) && sink.len() < all.len());
        assert!(primitives("--topologies sink --sizes 1KiB --primitives all,splice").is_err());
    }

    #[test]
    fn what_a_sink_cannot_show_is_refused_before_the_start() {
        let asked = |line: &str| planned(&format!("--topologies sink {line}"));
        let plan = asked("--sizes 1KiB..64000").unwrap();
        assert_eq!(plan.topologies(), [Topology::Sink]);
        assert_eq!(plan.sizes.last(), Some(&Bytes(64_000)));
        let check = |line: &str, expect: &str| {
            let error = asked(line).unwrap_err();
            assert!(error.contains(expect), "{line}: {error}");
        };
        check("--sizes 1KiB --modes rr", "so nobody answers\n  take --modes stream");
        check("", "a message of 64 KiB is too large");
        check("--sizes 65508", "the largest over ipv4 has 65507 bytes");
        check("--sizes 65488 --ip ipv6", "the largest over ipv6 has 65487 bytes");
        assert!(asked("--sizes 65507").is_ok() && asked("--sizes 65487 --ip ipv6").is_ok());
        for id in ["send_per_field", "sendfile", "sendfile_file", "splice"] {
            check(
                &format!("--sizes 1KiB --primitives send,{id}"),
                &format!("`{id}` cannot be used in the topology sink"),
            );
        }
        assert!(asked("--sizes 1KiB --primitives send,memcpy,null").is_ok());
        check("--sizes 1KiB --primitives splice,send", "of --primitives: send, send_staged, ");
    }

    #[test]
    fn a_written_plan_reads_back_as_the_same_plan() {
        for line in [
            "",
            "--quick",
            "--messages 5000 --threads 2",
            "--window 10s --seed 18446744073709551615",
            "--isolate --slice 1.5ms --rounds 7 --passes 3..9 --cpus 1,0 --delta 0.0333",
            "--ip ipv6 --mtu 9000 --modes stream,rr --working-set hot,cold --iovec prepared",
            "--ip ipv4,ipv6 --mtu 1500,9000 --fields 1,2,8,64 --iovec per_message,prepared",
            "--primitives send,uring_send,sendmsg_zerocopy --reap-batch needed,4 --uring-batch 4",
            "--topologies sink --sizes 64 --primitives uring_send --uring-batch 2 --uring-depth 8",
            "--counters alternate --tracepoints --software-events",
            "--sizes 1000,64KiB --socket-buffer 1MiB --receive-size 4097 --congestion cubic",
        ] {
            let arms = if line.contains("--primitives") { "" } else { ARMS };
            let first = request(&format!("{arms} --name it's {line}")).unwrap();
            let text = plan_file::write(&Wishes::of(&first.plan, first.name.as_deref()));
            let wishes = plan_file::parse("p.toml", &text, &known).unwrap();
            let again = plan(wishes, 2, &veth_is(Ok(()))).unwrap();
            assert_eq!(again.plan, first.plan, "{text}");
            assert_eq!(again.name, first.name);
        }
    }

    #[test]
    fn what_is_no_plan_is_answered() {
        let check = |what: &str, expect: &str| {
            let message = asked(what, &Wishes::default()).unwrap_err().message;
            assert!(message.contains(expect), "{message}");
        };
        check("nit", "unknown plan `nit`, did you mean `net`?");
        check("clasic-48", "did you mean `classic-48`?");
        check("nowhere/at-all.toml", "cannot read the plan nowhere/at-all.toml: No such file");
    }
}
