//! Every outcome that a machine can show, one by one.

use iolens_model::host::SysctlChange;
use iolens_model::run::Extent;
use iolens_sys::netns::Step;

use super::*;
use crate::stage::Refused;

const SETCAP: &str = "sudo setcap cap_perfmon,cap_syslog+ep /opt/iolens";

#[test]
fn on_a_machine_without_limits_everything_is_possible() {
    let diagnosis = Case::healthy().diagnose();
    let limited: Vec<&Finding> =
        diagnosis.findings.iter().filter(|finding| finding.state != State::Ok).collect();
    assert!(limited.is_empty(), "{limited:?}");
    let limited = diagnosis.studies.iter().filter(|outlook| outlook.state != State::Ok);
    // At a level of 2, see below.
    let limited: Vec<&str> = limited.map(|outlook| outlook.part.as_str()).collect();
    assert_eq!(limited, ["counters", "attribution"]);
    assert_eq!(diagnosis.user, "uid 1000");
    assert_eq!(diagnosis.machine, "Linux 6.12.0 on hardware, as far as it shows");
    let built: Vec<&str> =
        diagnosis.studies.iter().filter(|o| o.built).map(|o| o.study.as_str()).collect();
    let of_net = built.iter().filter(|study| **study == "net").count();
    assert_eq!((of_net, &built[of_net..]), (8, &["file", "copy", "syscall", "server"][..]));
}

#[test]
fn every_level_of_paranoia_has_its_outcome() {
    use State::{Limited, Missing, Ok};
    for (level, events, cpu, kernel) in [
        ("-1", Ok, Ok, Ok),
        ("0", Ok, Ok, Ok),
        ("1", Ok, Limited, Ok),
        ("2", Limited, Limited, Missing),
        ("3", Missing, Limited, Missing),
        ("4", Missing, Limited, Missing),
    ] {
        let case = Case::healthy().unprivileged(level);
        let remedy = |state| if state == Ok { "nothing is limited" } else { SETCAP };
        case.check("kernel events", events, level, remedy(events));
        case.check("whole CPUs", cpu, "", remedy(cpu));
        case.check("kernel sampling", kernel, "", remedy(kernel));
        case.check("tracepoints", kernel, "2 of 4", remedy(kernel));
        assert!(!case.finding("kernel events").found.contains("CAP_PERFMON"));
    }
}

#[test]
fn setcap_comes_first_and_then_the_sysctl_that_suffices() {
    let case = Case::healthy().unprivileged("2");
    let remedy = |name: &str| case.finding(name).remedy;
    assert_eq!(
        remedy("kernel events"),
        format!("{SETCAP}; or else: sudo sysctl kernel.perf_event_paranoid=1")
    );
    assert!(remedy("whole CPUs").ends_with("kernel.perf_event_paranoid=0"));
}

#[test]
fn held_rights_count_at_any_level() {
    for level in ["2", "4"] {
        let case = Case::healthy().with(PARANOID, level);
        case.check("kernel events", State::Ok, "CAP_PERFMON", "nothing");
        // Rights of the program's file do not reach workers in a namespace.
        case.check_possible("counters", State::Limited, "over loopback");
        case.check_possible("attribution", State::Limited, "over loopback");
        let root = case.tried(|tried| tried.user = 0);
        root.check_possible("counters", State::Ok, "cycles");
        root.check_possible("attribution", State::Ok, "kernel function");
    }
    let everybody = Case::healthy().unprivileged("1");
    everybody.check_possible("counters", State::Ok, "cycles");
}

#[test]
fn setcap_is_not_advised_where_it_has_no_effect() {
    let refused = || Case::healthy().unprivileged("2");
    let bound = refused();
    bound.rights(NO, NO, "0");
    bound.check("kernel events", State::Limited, "user time only", "sudo sysctl");
    assert!(!bound.finding("kernel events").remedy.contains("setcap"));
    let confined = refused();
    confined.rights(NO, ALL, "1");
    assert!(!confined.finding("kernel sampling").remedy.contains("setcap"));
    let nosuid = refused().tried(|tried| tried.program_is_nosuid = true);
    assert!(!nosuid.finding("kernel symbols").remedy.contains("setcap"));
}

#[test]
fn a_refusal_that_no_level_explains_is_not_blamed_on_it() {
    let case = Case::healthy().unprivileged("1");
    let case = case.tried(|tried| tried.count_kernel = Err(Errno::EPERM));
    case.check("kernel events", State::Limited, "paranoid 1", "none: its capabilities suffice");
    case.in_docker().check("kernel events", State::Limited, "", "seccomp=unconfined");
    let built_without = |tried: &mut Tried| tried.sample_kernel = Err(Errno::from_raw(38));
    let case = Case::healthy().tried(built_without);
    case.check("kernel sampling", State::Missing, "ENOSYS", "none: the kernel is built without");
    let odd = Case::healthy().tried(|tried| tried.sample_kernel = Err(Errno::EINVAL));
    odd.check("kernel sampling", State::Missing, "EINVAL", "none: the kernel says EINVAL");
}

#[test]
fn without_a_pmu_the_hypervisor_is_asked_for_one() {
    let case = Case::healthy().without_pmu();
    case.check("PMU", State::Missing, "software", "no driver");
    assert!(case.diagnose().findings.iter().all(|finding| finding.name != "PMU counters"));
    case.check_possible("counters", State::Limited, "no cycles: no PMU");
    let vendor = "sys/class/dmi/id/sys_vendor";
    let product = "sys/class/dmi/id/product_name";
    for (files, hypervisor, remedy) in [
        ([(vendor, "innotek GmbH"), (product, "VirtualBox")], "VirtualBox", "none: VirtualBox"),
        ([(vendor, "VMware, Inc."), (product, "VMware20,1")], "VMware", "vpmc.enable"),
        ([(vendor, "QEMU"), (product, "Standard PC")], "KVM", "-cpu host,pmu=on"),
        (
            [(vendor, "Microsoft Corporation"), (product, "Virtual Machine")],
            "Hyper-V",
            "Set-VMProcessor",
        ),
    ] {
        let case = Case::healthy().without_pmu();
        files.iter().for_each(|(path, text)| case.machine.write(path, text));
        case.check("hypervisor", State::Limited, hypervisor, "none");
        case.check("PMU", State::Missing, "", remedy);
        case.check("stolen time", State::Limited, "none in this guest", "none");
    }
    let wsl2 = "Linux version 5.15.167.4-microsoft-standard-WSL2";
    let case = Case::healthy().without_pmu().with("proc/version", wsl2);
    case.check("PMU", State::Missing, "", "hardwarePerformanceCounters=true");
    assert_eq!(case.diagnose().machine, "Linux 6.12.0 as a guest of WSL2");
}

#[test]
fn a_pmu_of_which_not_all_counts_says_what_is_null() {
    let missing = |why: &str| vec![NotMeasured { metric: "llc_misses".into(), why: why.into() }];
    let some = Case::healthy()
        .tried(|tried| tried.counters = (vec!["cycles_user"], missing("read 0 in its self-test")));
    some.check("PMU counters", State::Limited, "1 of 14 pass", "none: read 0 in its self-test");
    assert_eq!(some.finding("PMU counters").effect, "not counted: llc_misses");
    some.check_possible("counters", State::Limited, "some PMU counters");
    let none = Case::healthy()
        .unprivileged("2")
        .tried(|tried| tried.counters = (vec![], missing("kernel.perf_event_paranoid is 2")));
    none.check("PMU counters", State::Missing, "0 of 14", SETCAP);
    none.check_possible("counters", State::Limited, "no cycles: not permitted");
}

#[test]
fn the_watchdog_matters_where_there_is_a_pmu() {
    let on = || Case::healthy().with("proc/sys/kernel/nmi_watchdog", "1");
    on().check("NMI watchdog", State::Limited, "on", "sudo sysctl kernel.nmi_watchdog=0");
    on().without_pmu().check("NMI watchdog", State::Ok, "no PMU", "nothing");
    let none = Case::healthy().without("proc/sys/kernel/nmi_watchdog");
    none.check("NMI watchdog", State::Ok, "not in this kernel", "nothing");
}

#[test]
fn kernel_symbols_are_zeroed_missing_or_there() {
    let zeroed = "0000000000000000 T _stext\n0000000000000000 T _text\n";
    let case = Case::healthy().unprivileged("2").with(KALLSYMS, zeroed);
    case.check("kernel symbols", State::Missing, "every address reads 0", SETCAP);
    case.check_possible("attribution", State::Limited, "only user code");
    let case = case.tried(|tried| tried.sample_kernel = Ok(()));
    case.check_possible("attribution", State::Limited, "without kernel functions");
    let strict = Case::healthy().with(KALLSYMS, zeroed);
    let strict = strict.with("proc/sys/kernel/kptr_restrict", "2");
    strict.check("kernel symbols", State::Missing, "", "sudo sysctl kernel.kptr_restrict=1");
    assert!(!strict.finding("kernel symbols").remedy.contains("setcap"), "the right is held");
    let both = strict.unprivileged("2");
    both.check("kernel symbols", State::Missing, "", SETCAP);
    let missing = Case::healthy().without(KALLSYMS);
    missing.check("kernel symbols", State::Missing, "no symbol list", "CONFIG_KALLSYMS");
    let empty = Case::healthy().with(KALLSYMS, "");
    empty.check("kernel symbols", State::Missing, "empty", "CONFIG_KALLSYMS");
}

#[test]
fn tracing_files_are_mounted_closed_or_missing() {
    let gone = || {
        let case = Case::healthy();
        std::fs::remove_dir_all(case.machine.path().join("sys/kernel/tracing")).unwrap();
        case.tried(|tried| tried.tracepoint = None)
    };
    gone().check("tracepoints", State::Missing, "not mounted", "sudo mount -t tracefs -o mode=750");
    let closed = gone().with("proc/self/mounts", "nodev /sys/kernel/tracing tracefs rw 0 0\n");
    closed.check("tracepoints", State::Missing, "not readable", "sudo mount -o remount");
    let none = gone().with("proc/filesystems", "nodev\tproc\n");
    none.check("tracepoints", State::Missing, "no tracefs", "none: needs a kernel");
    gone().in_docker().check("tracepoints", State::Missing, "not mounted", "docker run -v");
    let ids = gone().with("sys/kernel/tracing/events/sched/sched_switch/format", "");
    ids.check("tracepoints", State::Missing, "IDs are not readable", "remount,mode=750,gid");
    let others = gone().with("sys/kernel/tracing/events/drm/id", "1");
    others.check("tracepoints", State::Missing, "none that iolens uses", "none: needs a kernel");
    let odd = gone().with("sys/kernel/tracing/events/sched/sched_switch/id", "x");
    odd.check("tracepoints", State::Missing, "no ID is a number", "none");
}

fn refused(step: Step, why: &str, remedy: &str) -> Refused {
    Refused { step, why: why.to_owned(), remedy: remedy.to_owned() }
}

#[test]
fn namespaces_are_refused_with_the_sysctl() {
    let sysctl = "run as root, or `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`";
    let why = "user namespaces are refused (sysctl …)";
    let case = Case::healthy().tried(|t| t.veth = Err(refused(Step::Root, why, sysctl)));
    case.check("namespaces", State::Missing, "refused", "apparmor_restrict_unprivileged_userns=0");
    case.check("veth pair", State::Missing, "not tried", "see namespaces");
    case.check_possible("veth", State::Missing, "use loopback");
    case.check_possible("loopback", State::Ok, "every method");
    // The sysctl is the machine's, in a container too.
    case.in_docker().check("namespaces", State::Missing, "", "sudo sysctl");
    let sandbox = refused(Step::UserNamespace, "refused: EPERM", "outside the sandbox");
    let case = Case::healthy().tried(|t| t.veth = Err(sandbox));
    case.check("namespaces", State::Missing, "EPERM", "outside the sandbox");
    case.in_docker().check("namespaces", State::Missing, "EPERM", "--cap-add=NET_ADMIN");
}

#[test]
fn a_kernel_without_veth_still_has_namespaces() {
    let lacks = refused(Step::VethPair, "this kernel has no veth devices", "`sudo modprobe veth`");
    let case = Case::healthy().tried(|tried| tried.veth = Err(lacks));
    case.check("namespaces", State::Ok, "user and network", "nothing");
    case.check("veth pair", State::Missing, "no veth devices", "modprobe veth");
    case.check("sink device", State::Ok, "can be created", "nothing");
    let root = Case::healthy().tried(|tried| tried.user = 0);
    root.check("namespaces", State::Ok, "as root", "nothing");
}

#[test]
fn a_kernel_without_a_device_that_drops_has_no_sink() {
    Case::healthy().check_possible("sink", State::Ok, "not copied");
    let why = "this kernel has neither dummy nor ifb devices";
    let lacks = refused(Step::SinkDevice, why, "`sudo modprobe dummy`");
    let case = Case::healthy().tried(|tried| tried.sink = Err(lacks));
    case.check("sink device", State::Missing, "neither dummy nor ifb", "modprobe dummy");
    case.check("veth pair", State::Ok, "can be created", "nothing");
    case.check_possible("sink", State::Missing, "copied everywhere else");
    case.check_possible("zero-copy", State::Ok, "cost without gain");
    let sandbox = refused(Step::UserNamespace, "refused: EPERM", "outside the sandbox");
    let case = Case::healthy().tried(|tried| tried.sink = Err(sandbox));
    case.check("sink device", State::Missing, "not tried", "see namespaces");
}

#[test]
fn zero_copy_needs_locked_memory_and_notifications() {
    let with = |locked: Option<u64>, optmem: Option<u64>| {
        let limits = Limits { locked: locked.map(Bytes), optmem: optmem.map(Bytes) };
        Case::healthy().tried(|tried| tried.locked_memory = limits)
    };
    with(None, Some(131_072)).check("locked memory", State::Ok, "unlimited", "nothing");
    with(Some(8 << 20), None).check("locked memory", State::Ok, "8 MiB", "nothing");
    with(Some(8 << 20), None).check("optmem_max", State::Limited, "not reported", "none");
    let small = with(Some(64 << 10), Some(20_480));
    small.check("locked memory", State::Limited, "64 KiB", "sudo prlimit --pid $$ --memlock");
    small.check("optmem_max", State::Limited, "20 KiB", "net.core.optmem_max=131072");
    assert!(small.finding("locked memory").effect.contains("above 56 KiB are not run"));
    small.check_possible("zero-copy", State::Limited, "messages up to 56 KiB");
    small.in_docker().check("locked memory", State::Limited, "", "--ulimit memlock=-1");
    let old = Case::healthy().tried(|tried| tried.zerocopy = Err(Errno::ENOPROTOOPT));
    old.check("MSG_ZEROCOPY", State::Missing, "ENOPROTOOPT", "Linux 4.14");
    old.check_possible("zero-copy", State::Missing, "not supported");
}

#[test]
fn congestion_controls_and_taps_are_told() {
    let case = Case::healthy();
    case.check("congestion", State::Ok, "reno, cubic", "nothing");
    let closed = case.tried(|tried| tried.congestion[1].1 = Err(Errno::EPERM));
    closed.check(
        "congestion",
        State::Limited,
        "reno; not cubic",
        "congestion_control=\"reno cubic\"",
    );
    let none = closed.tried(|tried| tried.congestion.clear());
    none.check("congestion", State::Missing, "none", "sudo sysctl");
    let tap = "sk RefCnt\nffff0000 3 3 0003 2 1 0 0 12345\n";
    let tapped = Case::healthy().with("proc/net/packet", tap);
    tapped.check("packet taps", State::Limited, "1 in this namespace", "sudo ss --packet");
    let blind = Case::healthy().without("proc/net/packet");
    blind.check("packet taps", State::Limited, "not reported", "none");
}

#[test]
fn rings_are_refused_by_sysctl_filter_or_kernel() {
    let refused = |errno| Case::healthy().tried(|tried| tried.io_uring = Err(errno));
    let sysctl = refused(Errno::EPERM).with("proc/sys/kernel/io_uring_disabled", "2");
    sysctl.check("io_uring", State::Missing, "is 2", "sudo sysctl kernel.io_uring_disabled=0");
    refused(Errno::EPERM).check("io_uring", State::Missing, "EPERM", "none: a seccomp filter");
    refused(Errno::EPERM).in_docker().check("io_uring", State::Missing, "", "seccomp=unconfined");
    let old = refused(Errno::from_raw(38));
    old.check("io_uring", State::Missing, "ENOSYS", "none: this kernel");
    old.check_possible("file", State::Limited, "no io_uring");
    old.check_possible("server", State::Limited, "no io_uring");
}

#[test]
fn servers_need_descriptors_and_processors() {
    let few = Case::healthy().tried(|tried| tried.descriptors = 4096);
    few.check("descriptors", State::Limited, "4096", "sudo prlimit --pid $$ --nofile");
    few.check_possible("server", State::Limited, "4096 descriptors");
    few.in_docker().check("descriptors", State::Limited, "", "--ulimit nofile");
    Case::healthy().check_possible("server", State::Ok, "10 000 connections");
    let one = Case::healthy().with("sys/devices/system/cpu/online", "0");
    let one = one.tried(|tried| tried.cpus = vec![0]);
    one.check("CPUs", State::Limited, "1 of 1", "none: the machine needs");
    for part in ["loopback", "stream", "rr", "server"] {
        one.check_possible(part, State::Limited, "CPU");
    }
    let unknown = Case::healthy().tried(|tried| tried.cpus = Vec::new());
    unknown.check("CPUs", State::Missing, "unknown", "none: a filter of system calls");
}

#[test]
fn results_need_a_place_with_room() {
    let with = |writable, free| {
        let (place, database) = ("/data".to_owned(), "/data/iolens.db".to_owned());
        let storage = Storage { place, writable, free, database, stored: Ok(None) };
        Case::healthy().tried(|tried| tried.storage = Ok(storage))
    };
    let room = |bytes| with(Ok(()), Ok(Bytes(bytes)));
    room(1 << 30).check("database", State::Ok, "1 GiB free", "nothing");
    room(100 << 20).check("database", State::Limited, "100 MiB free", "--db FILE");
    room(1 << 20).check("database", State::Missing, "1 MiB free", "--db FILE");
    let closed = with(Err(Errno::EACCES), Ok(Bytes(1 << 30)));
    closed.check("database", State::Missing, "EACCES", "--db FILE");
    with(Ok(()), Err(Errno::EIO)).check("database", State::Limited, "EIO", "--db FILE");
    let homeless = Case::healthy().tried(|tried| tried.storage = Err("no HOME".to_owned()));
    homeless.check("database", State::Missing, "no HOME", "--db FILE");
    assert_eq!(homeless.finding("database").source, "XDG_DATA_HOME, HOME");
}

#[test]
fn what_is_stored_is_said_with_its_size() {
    let with = |stored| {
        let mut storage = healthy().storage.unwrap();
        storage.stored = stored;
        Case::healthy().tried(|tried| tried.storage = Ok(storage))
    };
    with(Ok(None)).check("stored runs", State::Ok, "none yet", "nothing");
    let extent = Extent {
        runs: 12,
        file_bytes: Bytes(30 << 20),
        log_bytes: Bytes(4 << 20),
        free_bytes: Bytes(1 << 20),
    };
    let case = with(Ok(Some(extent)));
    case.check("stored runs", State::Ok, "12 in 34 MiB (1 MiB of it free)", "nothing");
    assert_eq!(case.diagnose().stored, Some(extent));
    let damaged = with(Err("cannot look at results: malformed".to_owned()));
    damaged.check("stored runs", State::Missing, "malformed", "--db FILE");
}

#[test]
fn another_run_is_waited_for() {
    let lock = |seen| Case::healthy().tried(|tried| tried.lock.1 = seen);
    let held = lock(Ok(Some("pid 7 of user 0".to_owned())));
    held.check("other runs", State::Limited, "pid 7 of user 0", "--wait");
    let closed = lock(Err("cannot lock: EACCES".to_owned()));
    closed.check("other runs", State::Missing, "EACCES", "sudo rm /run/lock/iolens.lock");
}

#[test]
fn a_sysctl_that_a_killed_run_left_is_named_with_its_command() {
    let journal = |seen| Case::healthy().tried(|tried| tried.journal.1 = seen);
    let changes = || {
        let (name, before, value) = ("net.core.x".into(), "0".into(), "1".into());
        vec![SysctlChange { name, before, value }]
    };
    Case::healthy().check("changed sysctls", State::Ok, "none left over", "nothing");
    let in_use = journal(Ok(Leftover::InUse(changes())));
    in_use.check("changed sysctls", State::Ok, "until a run ends: net.core.x=1 (0 before)", "");
    let left = journal(Ok(Leftover::Left(changes())));
    left.check("changed sysctls", State::Limited, "left by a killed", "sudo sysctl net.core.x=0;");
    let torn = journal(Err("cannot read the journal".to_owned()));
    torn.check("changed sysctls", State::Limited, "cannot read", "sudo rm /run/iolens.journal");
}

#[test]
fn what_stands_between_is_named() {
    let docker = Case::healthy().in_docker();
    docker.check("container", State::Ok, "docker; own namespaces: pid", "nothing");
    let mapped = docker.with("proc/self/uid_map", "0 100000 65536\n");
    mapped.check("container", State::Limited, "docker", "none from in here");
    // Rights in a user namespace open no events, whatever is held in it.
    let mapped = mapped.with(PARANOID, "2").tried(|t| t.count_kernel = Err(Errno::EACCES));
    mapped.check("kernel events", State::Limited, "", "outside this container: sudo sysctl");
    Case::healthy().check("container", State::Ok, "none", "nothing");
    Case::healthy().with(".dockerenv", "").check("container", State::Ok, "docker left a mark", "");
    let filtered = Case::healthy().with(STATUS, "Seccomp:\t2\nCapEff:\t0\n");
    filtered.check("seccomp", State::Limited, "a filter", "none from in here");
    filtered.check_possible("syscall", State::Limited, "filter");
    filtered.in_docker().check("seccomp", State::Limited, "a filter", "seccomp=unconfined");
    Case::healthy().check("Yama", State::Ok, "ptrace_scope 1", "nothing");
}

#[test]
fn a_remedy_speaks_the_language_of_the_runtime() {
    let events = |case: Case| case.unprivileged("2").finding("kernel events").remedy;
    assert!(events(Case::healthy().in_docker()).starts_with("docker run --cap-add=PERFMON"));
    let podman = Case::healthy().in_docker().with("run/.containerenv", "");
    assert!(events(podman).starts_with("podman run --cap-add=PERFMON"));
    let pod = ("proc/1/environ", "container=kubepods\0");
    let pod = Case::healthy().in_docker().with(pod.0, pod.1);
    assert!(events(pod).starts_with("start the container with what docker run calls --cap-add"));
    let wsl2 = Case::healthy().in_docker().without(".dockerenv");
    let wsl2 = wsl2.with("proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2");
    wsl2.check("container", State::Ok, "WSL2's own namespaces", "nothing");
    assert!(events(wsl2).starts_with(SETCAP));
}

#[test]
fn clocks_and_steal_are_judged() {
    Case::healthy().check("clock", State::Ok, "tsc, 20.0 ns a reading", "nothing");
    let clocksource = "sys/devices/system/clocksource/clocksource0";
    let slow = Case::healthy()
        .with(&format!("{clocksource}/current_clocksource"), "hpet")
        .tried(|tried| tried.clock_read_ns = 1_400.0);
    slow.check("clock", State::Limited, "hpet, 1400 ns", "none: the kernel trusts no faster");
    slow.check_possible("rr", State::Limited, "slow clock");
    let tsc = slow.with(&format!("{clocksource}/available_clocksource"), "tsc hpet acpi_pm");
    tsc.check("clock", State::Limited, "hpet", "echo tsc | sudo tee /sys/devices/system/clock");
    let stolen = Case::healthy().with("proc/stat", "cpu  10 0 0 80 0 0 5 5 0 0\n");
    stolen.check("stolen time", State::Ok, "reported; 5.00%", "nothing");
    Case::healthy().check("stolen time", State::Ok, "no hypervisor", "nothing");
    let old = Case::healthy().with("proc/stat", "cpu 1 2 3\n");
    old.check("stolen time", State::Limited, "not reported", "none");
    let quiet = Case::healthy().without("proc/pressure/cpu");
    quiet.check("pressure (PSI)", State::Limited, "not reported", "boot with psi=1");
}

#[test]
fn processors_are_limited_by_many_things() {
    let cpu = |file: &str, text: &str| {
        Case::healthy().with(&format!("sys/devices/system/cpu/{file}"), text)
    };
    let few = || Case::healthy().tried(|tried| tried.cpus = vec![0, 1]);
    few().check("CPUs", State::Limited, "2 of 4 online", "taskset -c 0-3");
    few().in_docker().check("CPUs", State::Limited, "", "docker run --cpuset-cpus=0-3");
    let quota = || Case::healthy().with("sys/fs/cgroup/cpu.max", "150000 100000");
    quota().check("CPU quota", State::Limited, "1.50 CPUs", "echo max | sudo tee /sys/fs/cgroup");
    quota().in_docker().check("CPU quota", State::Limited, "", "docker run --cpus=0");
    let ample = Case::healthy().with("sys/fs/cgroup/cpu.max", "800000 100000");
    ample.check("CPU quota", State::Ok, "8.00 CPUs", "nothing");
    cpu("smt/active", "1").check("SMT", State::Limited, "on", "echo off | sudo tee");
    cpu("isolated", "6-7").check("isolated CPUs", State::Limited, "0 of 2", "taskset -c 6-7");
    cpu("isolated", "2-3").check("isolated CPUs", State::Ok, "2 of 2 usable", "nothing");
    cpu("isolated", "0-3").check("isolated CPUs", State::Limited, "4 of 4", "with other CPUs");
    let governor = "cpu0/cpufreq/scaling_governor";
    cpu(governor, "schedutil").check("frequency", State::Limited, "schedutil", "echo performance");
    cpu("cpufreq/boost", "1").check("turbo", State::Limited, "on", "echo 0 | sudo tee");
    let intel = cpu("intel_pstate/no_turbo", "0").without("sys/devices/system/cpu/cpufreq/boost");
    intel.check("turbo", State::Limited, "on", "echo 1 | sudo tee");
    let untold = || Case::healthy().without(&format!("sys/devices/system/cpu/{governor}"));
    untold().check("frequency", State::Limited, "not reported", "no cpufreq driver");
    let guest = untold().tried(|tried| tried.hypervisor = Some("KVMKVMKVM".to_owned()));
    guest.check("frequency", State::Limited, "not reported", "none: the host controls it");
}
