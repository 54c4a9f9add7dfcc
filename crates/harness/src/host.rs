//! What machine this is: the facts that decide (processors, caches, limits)
//! and those that a reader needs to judge a number.

use iolens_model::host::{
    COUNTERS, Fact, HostFacts, KernelVersion, PMU_NOT_VERIFIED, PMU_VERIFIED_ON_HARDWARE, by_core,
};
use iolens_model::origin::HOST_NAME;
use iolens_model::parse;
use iolens_model::plan::Probes;
use iolens_model::reading::{NotMeasured, Reading};
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
pub use iolens_sys::proc::Root;
use iolens_sys::{affinity, cpuid, process, tcp};

use crate::counters::{self, CorePmu, Counters, Wanted};
use crate::reclaim::{KDAMONDS, Reclaim};
use crate::{cgroup, surroundings};

/// Reads the machine below `root`; processors and limits are this process's.
///
/// Errors: as [`limits`].
pub fn read(root: &Root) -> Result<HostFacts, String> {
    let host = limits(root)?;
    let caches =
        [("L1d cache", &host.l1d), ("L2 cache", &host.l2), ("last-level cache", &host.llc)];
    let mut facts = Facts::default();
    cpu_facts(&mut facts, root, &host.cpus);
    for (name, cache) in caches {
        facts.push("cpu", name, cache.clone().map(|bytes| bytes.to_string()));
    }
    memory_facts(&mut facts, root);
    counter_facts(&mut facts, root, &host.cpus);
    kernel_facts(&mut facts, root);
    network_facts(&mut facts, root);
    limit_facts(&mut facts, root, process::descriptor_limits().0);
    Ok(HostFacts { facts: facts.0, ..host })
}

/// What decides alone, without the facts for readers: nothing is tried.
///
/// Errors: what the system said where it does not say on which CPUs this thread may run: nothing
/// can be placed.
pub fn limits(root: &Root) -> Result<HostFacts, String> {
    let (descriptors_max, _) = process::descriptor_limits();
    let cpus = usable(affinity::thread_cpus())?;
    let [l1d, l2, llc] = caches(root, cpus[0]);
    let (memory, descriptors_max) = (memory(root), Reading::Exact(descriptors_max));
    Ok(HostFacts {
        cores: cores(root, &cpus),
        cpus,
        l1d,
        l2,
        llc,
        memory,
        descriptors_max,
        changed: Vec::new(),
        facts: Vec::new(),
    })
}

/// The CPUs that this thread may run on, one at least.
fn usable(asked: Result<Vec<u32>, Errno>) -> Result<Vec<u32>, String> {
    asked.map_err(|errno| {
        format!("cannot ask on which CPUs iolens may run (sched_getaffinity): {errno}")
    })
}

/// These CPUs by the cores that they are threads of.
///
/// Source: Documentation/admin-guide/cputopology.rst; `thread_siblings_list` before Linux 5.3.
fn cores(root: &Root, cpus: &[u32]) -> Vec<Vec<u32>> {
    let siblings = |cpu: u32| {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        let names = ["core_cpus_list", "thread_siblings_list"];
        let text = names.iter().find_map(|name| root.read(&format!("{folder}/{name}")).ok())?;
        parse::cpus(text.trim()).ok()
    };
    by_core(cpus, siblings)
}

/// Open descriptors that a worker can have at most.
pub fn descriptors_hard_max() -> u64 {
    process::descriptor_limits().1
}

/// Whether sockets here may use a congestion control.
///
/// Errors: what the system said.
pub fn try_congestion(name: &str) -> Result<(), Errno> {
    tcp::try_congestion(name)
}

#[derive(Default)]
struct Facts(Vec<Fact>);

impl Facts {
    fn push(&mut self, group: &str, name: &str, value: Reading<String>) {
        self.0.push(Fact { group: group.to_owned(), name: name.to_owned(), value });
    }

    /// The first line of a file, as it stands.
    fn file(&mut self, group: &str, name: &str, root: &Root, path: &str) {
        self.push(group, name, first_line(root.read(path)));
    }
}

fn first_line(text: Result<String, String>) -> Reading<String> {
    match text {
        Ok(text) => Reading::Exact(text.lines().next().unwrap_or_default().trim().to_owned()),
        Err(why) => Reading::not_measured(why),
    }
}

/// The value behind `key` in a file of `key<separator>value` lines.
pub fn keyed(root: &Root, path: &str, key: &str, separator: char) -> Reading<String> {
    let text = match root.read(path) {
        Ok(text) => text,
        Err(why) => return Reading::not_measured(why),
    };
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    });
    value.map_or_else(|| Reading::not_measured(format!("/{path} has no `{key}`")), Reading::Exact)
}

/// L1 data, L2 and last-level cache of a processor.
fn caches(root: &Root, cpu: u32) -> [Reading<Bytes>; 3] {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let mut found: [Option<Bytes>; 3] = [None; 3];
    let mut last_level = 0;
    for index in root.names(&folder) {
        let read = |file: &str| root.read(&format!("{folder}/{index}/{file}")).ok();
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
        else {
            continue;
        };
        let (Ok(level), Ok(bytes)) = (level.parse::<u32>(), parse::size(&size)) else { continue };
        match (level, kind.as_str()) {
            (_, "Instruction") => continue,
            (1, _) => found[0] = Some(bytes),
            (2, _) => found[1] = Some(bytes),
            _ => {}
        }
        if level >= last_level {
            (last_level, found[2]) = (level, Some(bytes));
        }
    }
    found.map(|bytes| {
        let why = || Reading::not_measured(format!("/{folder} does not tell"));
        bytes.map_or_else(why, Reading::Exact)
    })
}

/// Memory that a run may take, and what says so in words, as in "… is what
/// there is": what is free or can be made so, and what cgroups leave.
pub fn memory_room(root: &Root) -> Vec<(Bytes, String)> {
    let available = meminfo(root, "MemAvailable");
    let available = available.value().map(|&bytes| (bytes, "MemAvailable of /proc/meminfo".into()));
    let cgroup = cgroup::memory_room(root);
    let cgroup = cgroup.map(|room| (Bytes(room.bytes), format!("left by {}", room.source)));
    available.into_iter().chain(cgroup).collect()
}

/// Physical memory.
pub fn memory(root: &Root) -> Reading<Bytes> {
    meminfo(root, "MemTotal")
}

fn meminfo(root: &Root, key: &str) -> Reading<Bytes> {
    match keyed(root, "proc/meminfo", key, ':') {
        Reading::NotMeasured { why } => Reading::NotMeasured { why },
        Reading::Exact(text) => {
            let kib = text.split(' ').next().and_then(|kib| kib.parse::<u64>().ok());
            match kib.and_then(|kib| kib.checked_mul(Bytes::KIB)) {
                Some(bytes) => Reading::Exact(Bytes(bytes)),
                None => Reading::not_measured(format!("`{text}` is not a size")),
            }
        }
    }
}

fn cpu_facts(facts: &mut Facts, root: &Root, cpus: &[u32]) {
    facts.push("cpu", "model", keyed(root, "proc/cpuinfo", "model name", ':'));
    facts.file("cpu", "online", root, "sys/devices/system/cpu/online");
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    facts.push("cpu", "usable by iolens", Reading::Exact(list));
    facts.file("cpu", "SMT active", root, "sys/devices/system/cpu/smt/active");
    facts.file("cpu", "NUMA nodes", root, "sys/devices/system/node/online");
    facts.file(
        "cpu",
        "frequency governor",
        root,
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    );
    facts.file(
        "cpu",
        "frequency driver",
        root,
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
    );
    facts.push("cpu", "lowest frequency", frequency(root, cpus, "cpuinfo_min_freq", u64::min));
    facts.push("cpu", "highest frequency", frequency(root, cpus, "cpuinfo_max_freq", u64::max));
    facts.file("cpu", "boost", root, "sys/devices/system/cpu/cpufreq/boost");
    let guest = surroundings::guest(root, cpuid::hypervisor().as_deref());
    facts.push("cpu", "virtualization", Reading::Exact(guest.words()));
    facts.push("cpu", "mitigations", mitigations(root));
    facts.push("kernel", "seccomp", seccomp(root));
    facts.push("kernel", "audit", audit(root));
}

/// The lowest or the highest of the frequencies of these CPUs, which may be of several kinds.
fn frequency(root: &Root, cpus: &[u32], file: &str, of: fn(u64, u64) -> u64) -> Reading<String> {
    let all = cpus.iter().map(|cpu| {
        root.read(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}")).and_then(|text| {
            text.trim().parse::<u64>().map_err(|_| format!("`{}` is no frequency", text.trim()))
        })
    });
    let all: Result<Vec<u64>, String> = all.collect();
    match all.map(|all| all.into_iter().reduce(of)) {
        Ok(Some(khz)) => Reading::Exact(format!("{khz} kHz")),
        Ok(None) => Reading::not_measured("no CPU is usable"),
        Err(why) => Reading::not_measured(why),
    }
}

/// Whether a filter runs at each system call of this process.
fn seccomp(root: &Root) -> Reading<String> {
    let field = |key| keyed(root, "proc/self/status", key, ':');
    match field("Seccomp") {
        Reading::Exact(mode) if mode == "0" => Reading::Exact("no filter".to_owned()),
        Reading::Exact(_) => Reading::Exact(match field("Seccomp_filters") {
            Reading::Exact(filters) => format!("filters at each call: {filters}"),
            Reading::NotMeasured { .. } => "a filter at each call".to_owned(),
        }),
        unknown => unknown,
    }
}

/// Whether calls are audited, as far as who is not root may know.
fn audit(root: &Root) -> Reading<String> {
    match root.read("proc/cmdline") {
        Ok(line) if line.split_whitespace().any(|word| word == "audit=0") => {
            Reading::Exact("off (audit=0)".to_owned())
        }
        Ok(_) if root.read("proc/self/loginuid").is_err() => {
            Reading::Exact("the kernel is built without".to_owned())
        }
        Ok(_) => Reading::not_measured("the kernel says so by netlink alone: see auditctl -s"),
        Err(why) => Reading::not_measured(why),
    }
}

/// The flaws that the CPU has: each one's name, and what the kernel does about it
/// (Documentation/ABI/testing/sysfs-devices-system-cpu).
///
/// Errors: the kernel lists none.
pub fn flaws(root: &Root) -> Result<Vec<(String, String)>, String> {
    let folder = "sys/devices/system/cpu/vulnerabilities";
    let names = root.names(folder);
    if names.is_empty() {
        return Err(format!("/{folder} is empty"));
    }
    let about = |name: String| {
        let text = root.read(&format!("{folder}/{name}")).ok()?;
        (text != "Not affected").then_some((name, text))
    };
    Ok(names.into_iter().filter_map(about).collect())
}

fn mitigations(root: &Root) -> Reading<String> {
    let all = match flaws(root) {
        Ok(all) => all,
        Err(why) => return Reading::not_measured(why),
    };
    let told: Vec<String> = all.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    Reading::Exact(if told.is_empty() { "none needed".to_owned() } else { told.join("; ") })
}

fn memory_facts(facts: &mut Facts, root: &Root) {
    facts.push("memory", "total", memory(root).map(|bytes| bytes.to_string()));
    facts.file(
        "memory",
        "transparent huge pages",
        root,
        "sys/kernel/mm/transparent_hugepage/enabled",
    );
    let reclaim = match Reclaim::read(root) {
        Reclaim::NotTold => Reading::not_measured(format!("/{KDAMONDS} is read by root alone")),
        told => Reading::Exact(told.words()),
    };
    facts.push("memory", "proactive reclaim", reclaim);
}

/// Which counters a thread has here, and why not the rest; on machines with
/// several kinds of cores for a thread on each.
fn counter_facts(facts: &mut Facts, root: &Root, cpus: &[u32]) {
    let pmus = counters::core_pmus(root);
    let names = |pmus: &Vec<CorePmu>| {
        pmus.iter().map(|pmu| pmu.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    facts.push(
        COUNTERS,
        "PMU",
        match &pmus {
            Ok(pmus) => Reading::Exact(names(pmus)),
            Err(why) => Reading::not_measured(why),
        },
    );
    let no_pmu = pmus.as_ref().err().cloned();
    for (kind, cpu) in kinds(&pmus.unwrap_or_default(), cpus) {
        let of =
            |name: &str| kind.map_or_else(|| name.to_owned(), |kind| format!("{name} ({kind})"));
        let Some(cpu) = cpu else {
            let why = "iolens may run on none of its processors";
            facts.push(COUNTERS, &of("counted"), Reading::not_measured(why));
            continue;
        };
        let (counted, missing) = counters_on(root, cpu);
        let none = || Reading::not_measured("none, for the reasons below");
        let list = || Reading::Exact(counted.join(", "));
        facts.push(COUNTERS, &of("counted"), if counted.is_empty() { none() } else { list() });
        // What a machine without a PMU lacks is said above, once.
        let missing = missing.into_iter().filter(|m| no_pmu.as_ref() != Some(&m.why));
        for NotMeasured { metric, why } in missing {
            facts.push(COUNTERS, &of(&metric), Reading::NotMeasured { why });
        }
    }
    facts.file(COUNTERS, "perf_event_paranoid", root, "proc/sys/kernel/perf_event_paranoid");
    facts.file(COUNTERS, "nmi_watchdog", root, "proc/sys/kernel/nmi_watchdog");
    let path = if PMU_VERIFIED_ON_HARDWARE { "verified on hardware" } else { PMU_NOT_VERIFIED };
    facts.push(COUNTERS, "PMU path", Reading::Exact(path.to_owned()));
}

/// A processor of each kind of cores, by the name of its PMU where there are
/// several; `None` where iolens may run on none.
fn kinds<'a>(pmus: &'a [CorePmu], cpus: &[u32]) -> Vec<(Option<&'a str>, Option<u32>)> {
    if pmus.len() < 2 {
        return vec![(None, cpus.first().copied())];
    }
    let of = |pmu: &'a CorePmu| {
        let cpu = cpus.iter().copied().find(|&cpu| pmu.has(cpu));
        (Some(pmu.name.as_str()), cpu)
    };
    pmus.iter().map(of).collect()
}

/// Opens the counters of a thread on `cpu`, as a worker does, and says which
/// count and what is missing.
pub fn counters_on(root: &Root, cpu: u32) -> (Vec<&'static str>, Vec<NotMeasured>) {
    let probes = Probes::default();
    let open = || {
        // Elsewhere they are another core's, which then shows as a reason.
        let _ = affinity::pin_thread(cpu);
        let own = Counters::of_thread(root, Wanted { cpu, turn: 0, probes });
        let everybody = Counters::of_cpus(root, &[cpu], probes);
        let counted = own.counted().into_iter().chain(everybody.counted());
        (counted.collect(), own.missing().into_iter().chain(everybody.missing()).collect())
    };
    std::thread::scope(|scope| scope.spawn(open).join()).unwrap_or_default()
}

fn kernel_facts(facts: &mut Facts, root: &Root) {
    let [_, release, version, machine] = process::uname();
    facts.push(HOST_NAME.0, HOST_NAME.1, Reading::Exact(process::host_name()));
    facts.push("kernel", "release", Reading::Exact(release));
    facts.push("kernel", "architecture", Reading::Exact(machine));
    facts.push("kernel", "version", Reading::Exact(version));
    facts.push("kernel", "distribution", keyed(root, "etc/os-release", "PRETTY_NAME", '='));
    facts.file("kernel", "boot id", root, "proc/sys/kernel/random/boot_id");
    facts.file(
        "kernel",
        "clock source",
        root,
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
    );
    facts.push("kernel", "seccomp of iolens", keyed(root, "proc/self/status", "Seccomp", ':'));
}

fn network_facts(facts: &mut Facts, root: &Root) {
    for name in [
        "net/ipv4/tcp_congestion_control",
        "net/ipv4/tcp_available_congestion_control",
        "net/ipv4/tcp_autocorking",
        "net/ipv4/tcp_slow_start_after_idle",
        "net/core/wmem_max",
        "net/core/rmem_max",
        "net/core/optmem_max",
        "net/core/high_order_alloc_disable",
    ] {
        facts.file("network", &name.replace('/', "."), root, &format!("proc/sys/{name}"));
    }
    facts.file("network", "MTU of lo", root, "sys/class/net/lo/mtu");
}

fn limit_facts(facts: &mut Facts, root: &Root, descriptors_max: u64) {
    let number =
        |n: u64| Reading::Exact(if n == u64::MAX { "unlimited".to_owned() } else { n.to_string() });
    let uid = process::effective_uid();
    let user = if uid == 0 { "root".to_owned() } else { format!("uid {uid}") };
    facts.push("limits", "user", Reading::Exact(user));
    facts.push("limits", "open descriptors", number(descriptors_max));
    facts.push("limits", "locked memory, bytes", number(process::memlock_limit_bytes()));
    let cpu_limit = match cgroup::cpu_limit(root) {
        Ok(limit) => Reading::Exact(limit.words()),
        Err(why) => Reading::not_measured(why),
    };
    facts.push("limits", "cgroup CPU limit", cpu_limit);
}

// The kernel here, and the one that something needs.

/// Why something does not work here, with the kernel that it needs where this
/// one is older.
pub fn with_version(why: String, since: Option<KernelVersion>) -> String {
    let [_, release, ..] = process::uname();
    match (since, KernelVersion::of_release(&release)) {
        (Some(since), Some(here)) if here < since => {
            format!("{why}; it needs Linux {since}, and this is {here}")
        }
        _ => why,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use iolens_model::outcome::PmuCounts;

    use super::*;

    #[test]
    fn a_machine_that_tells_nothing_is_still_described() {
        let dir = tempfile::tempdir().unwrap();
        let host = read(&Root::at(dir.path())).unwrap();
        assert!(!host.cpus.is_empty());
        assert!(host.l2.why().is_some());
        assert!(host.memory.why().is_some());
        assert!(host.facts.iter().any(|f| f.name == "PMU" && f.value.why().is_some()));
    }

    /// As on a kernel for more CPUs than the call has room for.
    #[test]
    fn cpus_that_the_kernel_does_not_name_are_not_made_up() {
        let why = usable(Err(Errno::EINVAL)).unwrap_err();
        assert!(why.contains("on which CPUs iolens may run") && why.contains("EINVAL"), "{why}");
        assert_eq!(usable(Ok(vec![2, 5])), Ok(vec![2, 5]));
    }

    #[test]
    fn cores_have_their_threads_and_frequencies_are_of_all() {
        let cpu = |cpu: u32, file: &str| format!("sys/devices/system/cpu/cpu{cpu}/{file}");
        let files = [
            (cpu(0, "topology/core_cpus_list"), "0,2\n"),
            (cpu(1, "topology/thread_siblings_list"), "1,3\n"),
            (cpu(2, "topology/core_cpus_list"), "0,2\n"),
            (cpu(3, "topology/thread_siblings_list"), "1,3\n"),
            (cpu(0, "cpufreq/cpuinfo_max_freq"), "1800000\n"),
            (cpu(4, "cpufreq/cpuinfo_max_freq"), "2400000\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let machine = crate::scripted::Machine::with(&files);
        let cores = cores(&machine.root(), &[0, 1, 2, 3, 4]);
        assert_eq!(cores, [vec![0, 2], vec![1, 3], vec![4]]);
        let most = |cpus: &[u32]| frequency(&machine.root(), cpus, "cpuinfo_max_freq", u64::max);
        assert_eq!(most(&[0, 4]), Reading::Exact("2400000 kHz".to_owned()));
        assert!(most(&[0, 1]).why().is_some());
    }

    #[test]
    fn the_room_for_memory_has_its_sources() {
        let machine = crate::scripted::Machine::with(&[
            ("proc/meminfo", "MemTotal: 4096 kB\nMemAvailable:   2048 kB\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "1048576\n"),
            ("sys/fs/cgroup/memory.current", "524288\n"),
        ]);
        let rooms = memory_room(&machine.root());
        let rooms: Vec<(u64, &str)> = rooms.iter().map(|(b, from)| (b.0, from.as_str())).collect();
        let cgroup = (524_288, "left by /sys/fs/cgroup/memory.max");
        assert_eq!(rooms, [(2 << 20, "MemAvailable of /proc/meminfo"), cgroup]);
        assert_eq!(memory_room(&Root::at(Path::new("/nowhere"))), []);
    }

    #[test]
    fn every_pmu_of_a_hybrid_machine_is_opened_or_says_why_not() {
        let dir = tempfile::tempdir().unwrap();
        let own = affinity::thread_cpus().unwrap()[0].to_string();
        // One has a processor of ours, and a number that no PMU of this
        // machine has; the other has no processor here.
        for (name, cpus) in [("cpu_core", own.as_str()), ("cpu_atom", "8000-8001")] {
            let folder = dir.path().join("sys/bus/event_source/devices").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("cpus"), format!("{cpus}\n")).unwrap();
            std::fs::write(folder.join("type"), "4000\n").unwrap();
        }
        let host = read(&Root::at(dir.path())).unwrap();
        let of = |name: &str| {
            let fact = host.facts.iter().find(|f| f.group == COUNTERS && f.name == name);
            fact.unwrap_or_else(|| panic!("no fact `{name}`")).value.clone()
        };
        assert_eq!(of("PMU"), Reading::Exact("cpu_atom, cpu_core".to_owned()));
        assert!(of("counted (cpu_atom)").why().unwrap().contains("may run on none"));
        for name in PmuCounts::NAMES {
            let why = of(&format!("{name} (cpu_core)")).why().unwrap().to_owned();
            assert!(why.starts_with("cannot open counter `"), "{name}: {why}");
        }
        assert_eq!(host.pmu_caution(), Some(PMU_NOT_VERIFIED));
    }

    #[test]
    fn caches_are_read_by_level() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("sys/devices/system/cpu/cpu0/cache");
        for (index, level, kind, size) in [
            (0, "1", "Data", "48K"),
            (1, "1", "Instruction", "32K"),
            (2, "2", "Unified", "1024K"),
            (3, "3", "Unified", "32768K"),
        ] {
            let folder = base.join(format!("index{index}"));
            std::fs::create_dir_all(&folder).unwrap();
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                std::fs::write(folder.join(file), format!("{text}\n")).unwrap();
            }
        }
        let [l1d, l2, llc] = caches(&Root::at(dir.path()), 0).map(|c| c.value().copied());
        assert_eq!(l1d, Some(Bytes(48 << 10)));
        assert_eq!(l2, Some(Bytes(1 << 20)));
        assert_eq!(llc, Some(Bytes(32 << 20)));
    }
}
