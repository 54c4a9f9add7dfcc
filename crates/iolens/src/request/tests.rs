//! What flags and plans ask for together.

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
    assert_eq!((above.sequential_messages, above.rounds, above.isolate), (Some(5000), None, false));
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
    let shown: Vec<&str> = Family::ALL.iter().copied().flat_map(ids).collect();
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
    check("--sizes 1KiB --methods splice,send", "one of these as --methods: send, send_staged, ");
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
