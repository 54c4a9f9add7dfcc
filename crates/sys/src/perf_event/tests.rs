//! Groups on the real kernel, with the events that it counts by itself: the
//! path is the same for those of a PMU.

use std::process::Command;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;
use crate::{affinity, clock, proc, skip, usage};

fn event(kind: Kind, mode: Mode) -> Event {
    Event { kind, mode, pmu: None }
}

fn group(kinds: &[Kind], mode: Mode, options: Options) -> Result<Group, Errno> {
    let mut group = Group::lead(&event(kinds[0], mode), options)?;
    kinds[1..].iter().try_for_each(|&kind| group.add(&event(kind, mode)))?;
    Ok(group)
}

/// A group of events that happen in the kernel, or a skip of the test.
fn kernel_group(test: &str, kinds: &[Kind], options: Options) -> Option<Group> {
    match group(kinds, Mode::Any, options) {
        Err(errno) if Refusal::from(errno) == Refusal::NotPermitted => {
            skip::note(&format!("perf_event::tests::{test}"), "may not count in the kernel");
            None
        }
        other => Some(other.unwrap()),
    }
}

/// The same for events that happen in the program.
fn user_group(test: &str, kinds: &[Kind], options: Options) -> Option<Group> {
    match group(kinds, Mode::User, options) {
        Err(errno) if Refusal::from(errno) == Refusal::NotPermitted => {
            skip::note(&format!("perf_event::tests::{test}"), "may not count at all");
            None
        }
        other => Some(other.unwrap()),
    }
}

fn burn(steps: u64) {
    let mut state = 1u64;
    for _ in 0..steps {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005));
    }
}

fn touch_fresh_pages(pages: usize) {
    let fresh = vec![1u8; pages * 4096];
    std::hint::black_box(&fresh);
}

fn difference<const N: usize>(after: [u64; N], before: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| after[i] - before[i])
}

/// `task-clock` lies between CPU time and wall time: the scheduler leaves out
/// what the hypervisor stole (kernels with PARAVIRT_TIME_ACCOUNTING), the event
/// does not, and it leaves out a part of each context switch: 2 % and 1 ms.
fn assert_task_clock(event_ns: u64, cpu_ns: u64, wall_ns: u64) {
    assert!(event_ns + cpu_ns / 50 + 1_000_000 >= cpu_ns, "{event_ns} of {cpu_ns}");
    assert!(event_ns <= wall_ns, "{event_ns} in {wall_ns}");
}

/// The two may differ by this part of the larger one and this much besides.
fn assert_near(a: u64, b: u64, percent: u64, besides: u64) {
    let allowed = a.max(b) / 100 * percent + besides;
    assert!(a.abs_diff(b) <= allowed, "{a} and {b} differ by more than {allowed}");
}

#[test]
fn a_software_group_agrees_with_the_kernels_own_accounts() {
    const KINDS: [Kind; 4] =
        [Kind::TaskClock, Kind::ContextSwitches, Kind::PageFaults, Kind::CpuMigrations];
    let test = "a_software_group_agrees_with_the_kernels_own_accounts";
    // On one CPU, so that no migration is right and any other count is not.
    let counted = std::thread::spawn(move || {
        affinity::pin_thread(affinity::thread_cpus().unwrap()[0]).unwrap();
        let mut group = kernel_group(test, &KINDS, Options::default())?;
        group.enable().unwrap();
        let (mut before, mut after) = ([0; 4], [0; 4]);
        let wall_ns = clock::monotonic_ns();
        let usage_before = usage::thread_usage().unwrap();
        let times_before = group.read(&mut before).unwrap();
        let cpu_before = clock::thread_cpu_ns();
        burn(2_000_000);
        touch_fresh_pages(1024);
        (0..20).for_each(|_| std::thread::yield_now());
        let cpu_ns = clock::thread_cpu_ns() - cpu_before;
        let times = group.read(&mut after).unwrap();
        let wall_ns = clock::monotonic_ns() - wall_ns;
        let usage = usage::thread_usage().unwrap();
        assert_eq!(times.enabled_ns, times.running_ns, "software events do not share a PMU");
        assert!(times.enabled_ns > times_before.enabled_ns);
        let [task_clock, switches, faults, migrations] = difference(after, before);
        assert_task_clock(task_clock, cpu_ns, wall_ns);
        let own = usage.voluntary_switches + usage.involuntary_switches
            - usage_before.voluntary_switches
            - usage_before.involuntary_switches;
        // A switch may fall between the two readings, on either side.
        assert_near(switches, own, 0, 4);
        let own = usage.minor_faults + usage.major_faults
            - usage_before.minor_faults
            - usage_before.major_faults;
        assert!(faults >= 1, "fresh pages fault");
        assert_near(faults, own, 0, 4);
        assert_eq!(migrations, 0);
        Some(())
    });
    counted.join().unwrap();
}

#[test]
fn values_come_in_the_order_of_the_events() {
    let test = "values_come_in_the_order_of_the_events";
    let orders = [[Kind::TaskClock, Kind::PageFaults], [Kind::PageFaults, Kind::TaskClock]];
    for kinds in orders {
        let Some(mut group) = user_group(test, &kinds, Options::default()) else { return };
        assert_eq!(group.events(), 2);
        group.enable().unwrap();
        burn(3_000_000);
        let mut values = [0; 2];
        let times = group.read(&mut values).unwrap();
        let of = |kind| values[kinds.iter().position(|&k| k == kind).unwrap()];
        assert_near(of(Kind::TaskClock), times.enabled_ns, 5, 1_000_000);
        assert!(of(Kind::PageFaults) < 10_000, "nanoseconds are not faults");
    }
}

#[test]
fn values_are_found_by_their_id() {
    let test = "values_are_found_by_their_id";
    let kinds = [Kind::TaskClock, Kind::PageFaults];
    let Some(mut group) = user_group(test, &kinds, Options::default()) else { return };
    group.ids = vec![7, 9];
    let answer = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    group.buffer = answer(&[2, 50, 20, 111, 9, 222, 7]);
    let mut values = [0; 2];
    let times = group.parse(&mut values).unwrap();
    assert_eq!((times.enabled_ns, times.running_ns, values), (50, 20, [222, 111]));
    group.buffer = answer(&[2, 50, 20, 111, 9, 222, 8]);
    assert_eq!(group.parse(&mut values), Err(Errno::from_raw(libc::EPROTO)));
}

#[test]
fn nothing_counts_before_the_group_is_enabled() {
    let test = "nothing_counts_before_the_group_is_enabled";
    let kinds = [Kind::TaskClock, Kind::PageFaults];
    let Some(mut group) = user_group(test, &kinds, Options::default()) else { return };
    burn(100_000);
    let mut values = [1; 2];
    assert_eq!(group.read(&mut values), Ok(Times::default()));
    assert_eq!(values, [0, 0]);
}

/// What `group` counts while four threads start and end, their CPU time and
/// the caller's, and wall time.
fn four_threads(group: &mut Group) -> (u64, u64, u64) {
    group.enable().unwrap();
    let (mut before, mut after) = ([0; 2], [0; 2]);
    let (wall_ns, own_ns) = (clock::monotonic_ns(), clock::thread_cpu_ns());
    group.read(&mut before).unwrap();
    let work = || {
        burn(3_000_000);
        clock::thread_cpu_ns()
    };
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(work)).collect();
    let theirs_ns: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let times = group.read(&mut after).unwrap();
    assert_eq!(times.enabled_ns, times.running_ns);
    let cpu_ns = theirs_ns + clock::thread_cpu_ns() - own_ns;
    (after[0] - before[0], cpu_ns, clock::monotonic_ns() - wall_ns)
}

#[test]
fn inherit_counts_threads_that_start_after_the_group() {
    let test = "inherit_counts_threads_that_start_after_the_group";
    let kinds = [Kind::TaskClock, Kind::PageFaults];
    let inherit = Options { inherit: true, ..Options::default() };
    let Some(mut group) = user_group(test, &kinds, inherit) else { return };
    let cpus = affinity::thread_cpus().unwrap().len() as u64;
    let (counted, cpu_ns, wall_ns) = four_threads(&mut group);
    assert_task_clock(counted, cpu_ns, wall_ns * cpus);
    let mut alone = user_group(test, &kinds, Options::default()).unwrap();
    let (counted, cpu_ns, _) = four_threads(&mut alone);
    assert!(counted < cpu_ns / 2, "{counted} of {cpu_ns} is not the caller's alone");
}

#[test]
fn inherit_counts_child_processes() {
    let test = "inherit_counts_child_processes";
    let kinds = [Kind::TaskClock, Kind::PageFaults];
    let faults_of_a_child = |options| {
        let mut group = user_group(test, &kinds, options)?;
        group.enable().unwrap();
        let status = Command::new("/bin/sh").args(["-c", "exit 7"]).status().unwrap();
        assert_eq!(status.code(), Some(7));
        let mut values = [0; 2];
        group.read(&mut values).unwrap();
        // The thread's own share: what a group without inherit sees.
        Some(values[1])
    };
    let inherit = Options { inherit: true, ..Options::default() };
    let Some(both) = faults_of_a_child(inherit) else { return };
    let own = faults_of_a_child(Options::default()).unwrap();
    // A dynamically linked program faults in its loader, its C library, its stack.
    assert!(both >= own + 20, "{both} with the child, {own} without");
}

#[test]
fn a_group_has_a_limit() {
    let test = "a_group_has_a_limit";
    let Some(mut group) = user_group(test, &[Kind::TaskClock], Options::default()) else { return };
    let faults = event(Kind::PageFaults, Mode::User);
    let errno = (0..GROUP_EVENTS_MAX).find_map(|_| group.add(&faults).err()).unwrap();
    assert_eq!(Refusal::from(errno), Refusal::NotTogether);
    assert_eq!(group.events(), GROUP_EVENTS_MAX);
    group.enable().unwrap();
    let mut values = [0; GROUP_EVENTS_MAX];
    let before = group.read(&mut values).unwrap();
    burn(10_000);
    let after = group.read(&mut values).unwrap();
    assert!(after.enabled_ns > before.enabled_ns);
    assert!(values[0] > 0);
}

#[test]
fn a_member_goes_on_alone_when_its_leader_is_closed() {
    let test = "a_member_goes_on_alone_when_its_leader_is_closed";
    let kinds = [Kind::PageFaults, Kind::TaskClock];
    let Some(mut group) = user_group(test, &kinds, Options::default()) else { return };
    group.enable().unwrap();
    let mut both = [0; 2];
    group.read(&mut both).unwrap();
    group.fds.remove(0);
    group.ids.remove(0);
    group.buffer.truncate((HEAD_WORDS + 2) * WORD_BYTES);
    burn(100_000);
    let mut alone = [0];
    group.read(&mut alone).unwrap();
    assert!(alone[0] > both[1]);
}

/// Whether this thread, without capabilities, may not count in the kernel.
fn paranoid() -> bool {
    let level = proc::Root::real().read("proc/sys/kernel/perf_event_paranoid");
    level.ok().and_then(|level| level.parse::<i32>().ok()).is_some_and(|level| level >= 2)
}

#[test]
fn the_kernel_is_not_counted_without_permission() {
    if !paranoid() {
        let test = "perf_event::tests::the_kernel_is_not_counted_without_permission";
        return skip::note(test, "kernel.perf_event_paranoid is below 2");
    }
    // Capabilities belong to the thread: no other test loses them.
    let refused = std::thread::spawn(|| {
        let mut sets = capabilities(None).unwrap();
        sets.effective = CapabilitySet::empty();
        set_capabilities(None, sets).unwrap();
        group(&[Kind::TaskClock], Mode::Any, Options::default()).map(|group| group.events())
    });
    let errno = refused.join().unwrap().unwrap_err();
    assert_eq!(Refusal::from(errno), Refusal::NotPermitted);
}

#[test]
fn refusals_are_told_apart() {
    let refusal = |raw| Refusal::from(Errno::from_raw(raw));
    for (raw, expected) in [
        (libc::EACCES, Refusal::NotPermitted),
        (libc::EPERM, Refusal::NotPermitted),
        (libc::ENOENT, Refusal::NoSuchEvent),
        (libc::ENODEV, Refusal::NoSuchEvent),
        (libc::EOPNOTSUPP, Refusal::NoSuchEvent),
        (libc::EINVAL, Refusal::NotTogether),
        (libc::EMFILE, Refusal::NoDescriptor),
        (libc::ENOSYS, Refusal::NoKernelSupport),
        (libc::EFAULT, Refusal::Other),
    ] {
        assert_eq!(refusal(raw), expected);
    }
}

#[test]
fn events_are_named_as_perf_names_them() {
    let name = |kind, mode| event(kind, mode).to_string();
    assert_eq!(name(Kind::Cycles, Mode::User), "cycles:u");
    assert_eq!(name(Kind::Instructions, Mode::Kernel), "instructions:k");
    assert_eq!(name(Kind::L1dLoadMisses, Mode::Any), "L1-dcache-load-misses");
}

#[test]
fn attributes_say_what_is_excluded_and_which_pmu_counts() {
    let on_atom = Event { kind: Kind::L1dLoadMisses, mode: Mode::Kernel, pmu: Some(10) };
    let pinned = Options { pinned: true, ..Options::default() };
    let leader = attributes(&on_atom, pinned, true);
    assert_eq!((leader.type_, leader.config), (abi::PERF_TYPE_HW_CACHE, 10 << 32 | 1 << 16));
    assert_eq!((leader.exclude_user(), leader.exclude_kernel(), leader.exclude_hv()), (1, 0, 1));
    assert_eq!((leader.disabled(), leader.pinned(), leader.inherit()), (1, 1, 0));
    let user = event(Kind::Cycles, Mode::User);
    let member = attributes(&user, Options { inherit: true, ..pinned }, false);
    assert_eq!((member.type_, member.config), (abi::PERF_TYPE_HARDWARE, 0));
    assert_eq!((member.exclude_user(), member.exclude_kernel()), (0, 1));
    assert_eq!((member.disabled(), member.pinned(), member.inherit()), (0, 0, 1));
}

#[test]
fn what_no_pmu_counts_names_none() {
    let id = 77;
    let tracepoint = Kind::Tracepoint { name: "sched:sched_switch", id };
    let of = |kind| {
        let event = Event { kind, mode: Mode::Any, pmu: Some(10) };
        let attributes = attributes(&event, Options::default(), true);
        (attributes.type_, attributes.config)
    };
    assert_eq!(of(tracepoint), (abi::PERF_TYPE_TRACEPOINT, id));
    assert_eq!(of(Kind::MinorFaults), (abi::PERF_TYPE_SOFTWARE, 5));
    assert_eq!(of(Kind::Branches), (abi::PERF_TYPE_HARDWARE, 10 << 32 | 4));
    assert_eq!(of(Kind::DtlbLoadMisses), (abi::PERF_TYPE_HW_CACHE, 10 << 32 | 3 | 1 << 16));
    assert_eq!(tracepoint.name(), "sched:sched_switch");
}

#[test]
fn a_cpu_counts_everybody_on_it() {
    let test = "a_cpu_counts_everybody_on_it";
    let cpu = affinity::thread_cpus().unwrap()[0];
    let options = Options { scope: Scope::Cpu(cpu), ..Options::default() };
    let Some(mut group) = kernel_group(test, &[Kind::CpuClock, Kind::ContextSwitches], options)
    else {
        return;
    };
    group.enable().unwrap();
    let (mut before, mut after) = ([0; 2], [0; 2]);
    group.read(&mut before).unwrap();
    let begin_ns = clock::monotonic_ns();
    let other = std::thread::spawn(move || {
        affinity::pin_thread(cpu).unwrap();
        (0..100).for_each(|_| std::thread::yield_now());
        burn(1_000_000);
    });
    other.join().unwrap();
    let wall_ns = clock::monotonic_ns() - begin_ns;
    group.read(&mut after).unwrap();
    let [clock_ns, switches] = difference(after, before);
    assert!(clock_ns >= wall_ns, "{clock_ns} of {wall_ns}: it reads around the other thread");
    assert!(switches >= 1, "the other thread came and went");
    let nowhere = Options { scope: Scope::Cpu(u32::MAX), ..Options::default() };
    assert!(Group::lead(&event(Kind::CpuClock, Mode::Any), nowhere).is_err());
}

#[test]
fn cycles_are_counted_by_a_pmu_or_not_at_all() {
    let sources = proc::Root::real().names("sys/bus/event_source/devices");
    match Group::lead(&event(Kind::Cycles, Mode::User), Options::default()) {
        // Besides these there are sources that count no cycles.
        Ok(_) => assert_ne!(sources, ["breakpoint", "msr", "software", "tracepoint"]),
        Err(errno) => {
            let refusal = Refusal::from(errno);
            assert!([Refusal::NoSuchEvent, Refusal::NotPermitted].contains(&refusal), "{errno}");
        }
    }
}
