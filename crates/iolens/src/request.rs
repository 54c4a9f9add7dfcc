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
pub(crate) mod tests {
    use iolens_model::axes::Topology;
    use iolens_model::family::Family;
    use iolens_model::plan::Passes;
    use iolens_model::units::{Bytes, Nanos};
    use iolens_net::registry;

    use super::*;
    use crate::args::flags_of;
    use crate::studies::net::fits_sink;

    /// Primitives that every build has.
    const ARMS: &str = "--methods send_staged,sendmsg_iov";

    fn typed(line: &str) -> Result<Wishes, String> {
        flags_of(Study::Net, line.split_whitespace()).map_err(|e| e.to_string())
    }

    fn veth_is(answer: Result<(), String>) -> impl Fn(Topology) -> Result<(), String> {
        move |topology| if topology == Topology::Veth { answer.clone() } else { Ok(()) }
    }

    pub(crate) fn request(line: &str) -> Result<Request, String> {
        let asked = complete(typed(line)?).map_err(|e| e.message)?;
        plan(asked, 1, &veth_is(Err("not today".to_owned()))).map_err(|e| e.message)
    }

    pub(crate) fn planned(line: &str) -> Result<Plan, String> {
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
            let asked = complete(typed(line).unwrap()).unwrap();
            assert_eq!(asked.methods.unwrap(), arms, "{line}");
        }
    }

    #[test]
    fn a_single_primitive_is_its_own_baseline() {
        assert_eq!(planned("--methods send").unwrap().baseline, "send");
        let two = planned("--methods send,sendmsg_iov").unwrap();
        assert_eq!(two.primitives, ["send_staged", "send", "sendmsg_iov"]);
    }

    #[test]
    fn flags_go_before_the_file_and_the_file_before_the_default() {
        let asked =
            |line: &str| complete(typed(line).unwrap().or(file("classic-48").unwrap())).unwrap();

        let plan = asked("--threads 3");
        assert_eq!(plan.threads.unwrap(), [3]);
        assert_eq!(plan.sizes.unwrap().len(), 4);
        assert_eq!(plan.budget, Some(Nanos(300 * Nanos::SECOND.0)));
        assert_eq!(plan.passes, Some(Passes { minimum: 12, maximum: 60 }));
        assert_eq!(asked("--quick").passes, Some(Passes { minimum: 20, maximum: 20 }));
        assert_eq!(asked("--sequential-time 10s").passes, None);
    }

    #[test]
    fn a_plan_has_a_budget_of_its_own() {
        let minutes = |name: &str| budget_of(name).map(|budget| budget.0 / Nanos::SECOND.0 / 60);
        let named = ["server", "server-models", "file-threads", "classic-48", "./mine.toml"];
        assert_eq!(named.map(minutes), [Some(30), Some(120), Some(30), Some(5), None]);
    }

    #[test]
    fn a_way_to_lay_out_trials_takes_the_place_of_another() {
        let below = Wishes { rounds: Some(5), isolate: true, ..Wishes::default() };
        let above = typed("--sequential-messages 5000").unwrap().or(below);
        assert_eq!(
            (above.sequential_messages, above.rounds, above.isolate),
            (Some(5000), None, false)
        );
        let below = Wishes { sequential_messages: Some(5000), ..Wishes::default() };
        let above = typed("--rounds 5").unwrap().or(below);
        assert_eq!((above.sequential_messages, above.rounds), (None, Some(5)));
    }

    #[test]
    fn words_of_textbooks_are_answered_with_ours() {
        let request = request("--methods two-copy,one-copy,A3 --baseline two_copy").unwrap();
        assert_eq!(request.plan.primitives, ["send_staged", "sendmsg_iov", "sendmsg_zerocopy"]);
        let notes: Vec<&str> = request.notes.iter().map(String::as_str).collect();
        assert_eq!(notes[0], "two-copy is called send_staged here");
        assert_eq!(notes[2], "A3 is called sendmsg_zerocopy here");
        let text = "study = \"server\"\nmodels = [\"single\", \"threaded\"]";
        let server = plan(asked_in("p.toml", text).unwrap(), 1, &|_| Ok(())).unwrap().plan;
        assert_eq!(server.primitives, ["epoll_lt", "iterative", "thread_per_connection"]);
    }

    #[test]
    fn threads_may_be_a_range() {
        let plan = planned(&format!("{ARMS} --threads 1..3,8")).unwrap();
        assert_eq!(plan.threads, [1, 2, 3, 8]);
    }

    #[test]
    fn more_cells_than_memory_holds_are_refused() {
        let sizes: Vec<String> = (1..=1000).map(|size| size.to_string()).collect();
        let of = |threads| {
            let line = format!("{ARMS} --sizes {} --threads 1..{threads}", sizes.join(","));
            planned(&line).map(drop)
        };
        assert_eq!(of(1000), Ok(()));
        let refused = of(1001).unwrap_err();
        assert!(refused.contains("more than 1000000 cells"), "{refused}");
    }

    #[test]
    fn auto_is_veth_where_permitted_and_says_where_not() {
        let asked = || complete(typed(ARMS).unwrap()).unwrap();
        let veth = plan(asked(), 1, &veth_is(Ok(()))).unwrap();
        assert_eq!((veth.plan.topologies(), veth.notes.len()), (&[Topology::Veth][..], 0));
        let loopback = request(ARMS).unwrap();
        assert_eq!(loopback.plan.topologies(), [Topology::Loopback]);
        assert!(loopback.notes[0].ends_with("veth cannot be used: not today"));
        let typed = typed(&format!("{ARMS} --network veth")).unwrap();
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
        check("--network loopbck", "did you mean `loopback`?");
        check("--receivers recvv", "unknown receiver `recvv`, did you mean `recv`?");
        check("--sizes 0", "a size of zero moves nothing");
        check("--sizes 64kB", "is not a size");
        check("--sizes 2GiB", "the largest size is 1 GiB");
        check("--threads 0", "at least 1");
        check("--threads 5000", "too many");
        check("--threads 4..1", "smaller number first");
        check("--fields 65", "the largest number is 64");
        check("--baseline memcpy", "it is a control");
        check("--threshold 0%", "write a percentage above 0%");
        check("--sequential-time 1s --sequential-messages 5", "cannot be used with");
        check("--iovec later", "per-message, prebuilt");
        check("--counters sometimes", "on, off, alternate");
        check("--mode rr --sequential-time 1s", "--sequential-time does not apply to --mode rr");
        check(
            "--mode stream,rr --sequential-messages 5",
            "--sequential-messages does not apply to --mode rr",
        );
        check("--ip ipv6 --mtu 1000", "too small for IPv6");
    }

    #[test]
    fn a_family_stands_for_its_primitives_and_all_for_all_of_them() {
        let primitives = |line: &str| planned(line).map(|plan| plan.primitives);
        let ids = |family| -> Vec<&str> { registry::of_family(family).map(|e| e.id).collect() };
        let page_moving = primitives("--methods page_moving,splice").unwrap();
        assert_eq!(page_moving[0], "send_staged");
        assert_eq!(page_moving[1..], ids(Family::PageMoving));
        let all = primitives("--methods all").unwrap();
        let shown: Vec<&str> = Family::ALL.into_iter().flat_map(ids).collect();
        assert_eq!(all.len(), shown.len());
        assert!(shown.iter().all(|id| all.iter().any(|own| own == id)));
        let why = planned("--methods iouring").unwrap_err();
        assert!(why.contains("page_moving, io_uring"), "{why}");
        // A family brings to a sink what can go there; what is named is refused.
        let sink = primitives("--network sink --sizes 1KiB --methods all").unwrap();
        assert!(sink.iter().all(|id| fits_sink(id)) && sink.len() < all.len());
        assert!(primitives("--network sink --sizes 1KiB --methods all,splice").is_err());
    }

    #[test]
    fn what_a_sink_cannot_show_is_refused_before_the_start() {
        let asked = |line: &str| planned(&format!("--network sink {line}"));
        let quick = asked("--quick").unwrap().sizes;
        assert_eq!(quick, [Bytes(1 << 10), Bytes(16 << 10)], "the default's that it can take");
        let plan = asked("--sizes 1KiB..64000").unwrap();
        assert_eq!(plan.topologies(), [Topology::Sink]);
        assert_eq!(plan.sizes.last(), Some(&Bytes(64_000)));
        let check = |line: &str, expect: &str| {
            let error = asked(line).unwrap_err();
            assert!(error.contains(expect), "{line}: {error}");
        };
        check("--sizes 1KiB --mode rr", "drops every request\n  use --mode stream");
        check("--sizes 64KiB", "a message of 64 KiB is too large");
        check("--sizes 65508", "the largest over ipv4 has 65507 bytes");
        check("--sizes 65488 --ip ipv6", "the largest over ipv6 has 65487 bytes");
        assert!(asked("--sizes 65507").is_ok() && asked("--sizes 65487 --ip ipv6").is_ok());
        for id in ["send_per_field", "sendfile", "sendfile_file", "splice"] {
            check(
                &format!("--sizes 1KiB --methods send,{id}"),
                &format!("`{id}` cannot be used with --network sink"),
            );
        }
        assert!(asked("--sizes 1KiB --methods send,memcpy,null").is_ok());
        check(
            "--sizes 1KiB --methods splice,send",
            "one of these as --methods: send, send_staged, ",
        );
    }

    #[test]
    fn a_written_plan_reads_back_as_the_same_plan() {
        for line in [
            "",
            "--quick",
            "--sequential-messages 5000 --threads 2",
            "--sequential-time 10s --seed 18446744073709551615",
            "--isolate --slice 1.5ms --rounds 7 --passes 3..9 --cpus 1,0 --threshold 0.0333",
            "--ip ipv6 --mtu 9000 --mode stream,rr --send-memory hot,cold --iovec prebuilt",
            "--ip ipv4,ipv6 --mtu 1500,9000 --fields 1,2,8,64 --iovec per-message,prebuilt",
            "--methods send,uring_send,sendmsg_zerocopy --reap-batch needed,4 --uring-batch 4",
            "--network sink --sizes 64 --methods uring_send --uring-batch 2 --uring-depth 8",
            "--counters alternate --tracepoints --software-events",
            "--sizes 1000,64KiB --socket-buffer 1MiB --recv-size 4097 --congestion cubic",
        ] {
            let arms = if line.contains("--methods") { "" } else { ARMS };
            let first = request(&format!("{arms} --name it's {line}")).unwrap();
            let text = plan_file::write(&wishes_of(&first.plan, first.name.as_deref()));
            let wishes = plan_file::parse("p.toml", &text, &known).unwrap();
            let again = plan(wishes, 2, &veth_is(Ok(()))).unwrap();
            assert_eq!(again.plan, first.plan, "{text}");
            assert_eq!(again.name, first.name);
        }
    }

    #[test]
    fn what_is_no_plan_is_answered() {
        let check = |what: &str, expect: &str| {
            let message = file(what).unwrap_err().message;
            assert!(message.contains(expect), "{message}");
        };
        check("nit", "unknown study or plan `nit`, did you mean `net`?");
        check("clasic-48", "did you mean `classic-48`?");
        check("nowhere/at-all.toml", "cannot read the plan nowhere/at-all.toml: No such file");
    }
}
