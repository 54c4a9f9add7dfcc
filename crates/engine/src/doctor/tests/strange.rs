//! Whatever the files say, and whatever trying gives, there is a diagnosis.

use iolens_model::doctor::Area;
use iolens_sys::netns::Step;
use proptest::prelude::*;

use super::*;
use crate::stage::Refused;

/// Files that decide something besides those of a healthy machine.
const MORE: &[&str] = &[
    PARANOID,
    STATUS,
    "proc/1/environ",
    "proc/1/cgroup",
    "proc/self/mounts",
    "proc/sys/kernel/io_uring_disabled",
    "run/systemd/container",
    "run/.containerenv",
    ".dockerenv",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/hypervisor/type",
    "sys/bus/event_source/devices/cpu_core/cpus",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "sys/fs/cgroup/user.slice/cpu.max",
];

fn contents() -> impl Strategy<Value = Option<Vec<u8>>> {
    let words = prop::sample::select(vec![
        "",
        "\n",
        "0",
        "1",
        "2",
        "-1",
        "99999999999999999999",
        "max 0",
        "nan",
        "0-",
        "7-2",
        ":::",
        "0::/../..",
        "cpu  1 2 3 4 5 6 7 8",
        "cpu x",
        "zzzz T f",
        "CapEff:\t",
        "CapEff:\txyz",
        "Seccomp:\t-1",
        "flags :",
        "\u{1b}[2J",
        "some total=",
        "QEMU",
        "0 0 1",
        "é\u{0}ü",
    ]);
    prop_oneof![
        Just(None),
        words.prop_map(|word| Some(word.as_bytes().to_vec())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Some),
    ]
}

/// For each file of a healthy machine: as it is, gone, or with other contents.
fn changes() -> impl Strategy<Value = Vec<Option<Option<Vec<u8>>>>> {
    prop::collection::vec(prop::option::weighted(0.4, contents()), HEALTHY.len())
}

fn result() -> impl Strategy<Value = Result<(), Errno>> {
    prop_oneof![Just(Ok(())), (0..140i32).prop_map(|raw| Err(Errno::from_raw(raw)))]
}

fn refusal() -> impl Strategy<Value = Result<(), Refused>> {
    let step = prop::sample::select(vec![Step::Child, Step::Root, Step::Setting, Step::VethPair]);
    let refused =
        step.prop_map(|step| Refused { step, why: "why".to_owned(), remedy: "do".to_owned() });
    prop_oneof![Just(Ok(())), refused.prop_map(Err)]
}

/// What trying may give, in every combination.
fn tried() -> impl Strategy<Value = Tried> {
    let events = (result(), result(), result(), result(), result());
    let others = (result(), result(), refusal(), prop::option::of(result()));
    let numbers = (any::<u64>(), prop::option::of(any::<u64>()), prop::option::of(any::<u64>()));
    let place = (any::<f64>(), prop::collection::vec(0..9u32, 0..4), any::<bool>(), result());
    (events, others, numbers, place, prop::option::of("[ -~]{0,12}")).prop_map(
        |(events, others, (descriptors, locked, optmem), place, hypervisor)| {
            let storage = Storage {
                place: "/data".to_owned(),
                writable: place.3,
                free: place.3.map(|()| Bytes(descriptors)),
                database: "/data/iolens.db".to_owned(),
                stored: place.3.map(|()| None).map_err(|errno| errno.to_string()),
            };
            Tried {
                count_user: events.0,
                count_kernel: events.1,
                count_cpu: events.2,
                sample_user: events.3,
                sample_kernel: events.4,
                zerocopy: others.0,
                io_uring: others.1,
                veth: others.2.clone(),
                sink: others.2,
                tracepoint: others.3,
                descriptors,
                locked_memory: Limits { locked: locked.map(Bytes), optmem: optmem.map(Bytes) },
                clock_read_ns: place.0,
                cpus: place.1,
                program_is_nosuid: place.2,
                hypervisor,
                storage: Ok(storage),
                ..healthy()
            }
        },
    )
}

/// Every finding has all its parts, and says of each only what its state says.
fn is_complete(diagnosis: &Diagnosis) {
    for finding in &diagnosis.findings {
        let Finding { area, name, state, found, source, effect, remedy } = finding;
        for part in [name, found, source, effect, remedy] {
            assert!(!part.trim().is_empty(), "{finding:?}");
        }
        assert_eq!(*state == State::Ok, effect == "none", "{finding:?}");
        let same = diagnosis.findings.iter().filter(|f| f.area == *area && f.name == *name);
        assert_eq!(same.count(), 1, "{name} is there twice");
    }
    for &area in Area::ALL {
        assert!(diagnosis.findings.iter().any(|finding| finding.area == area));
    }
    assert!(diagnosis.studies.iter().all(|outlook| !outlook.possible.is_empty()));
}

#[test]
fn an_empty_machine_has_a_diagnosis() {
    let machine = Machine::with(&[]);
    is_complete(&diagnose(&machine.root(), &healthy()));
}

#[test]
fn this_machine_has_a_diagnosis() {
    let place = tempfile::tempdir().unwrap();
    let database = place.path().join("a/iolens.db");
    let root = Root::real();
    let program = std::env::current_exe().unwrap();
    let tried = Tried::on(&root, &program, Ok(Storage::look(&database, Ok(None))));
    is_complete(&diagnose(&root, &tried));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing was left there");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_machine_has_a_diagnosis(
        healthy_files in changes(),
        more in prop::collection::vec(contents(), MORE.len()),
        tried in tried(),
    ) {
        let case = Case::healthy();
        for ((path, _), change) in HEALTHY.iter().zip(healthy_files) {
            match change {
                None => {}
                Some(None) => case.machine.remove(path),
                Some(Some(bytes)) => case.machine.write(path, bytes),
            }
        }
        for (path, contents) in MORE.iter().zip(more) {
            if let Some(bytes) = contents {
                case.machine.write(path, bytes);
            }
        }
        is_complete(&diagnose(&case.machine.root(), &tried));
    }
}
