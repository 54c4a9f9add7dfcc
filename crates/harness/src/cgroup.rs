//! What the cgroups of this process allow: processor time, memory, I/O, and in files of
//! their own processes and what was held back; see cgroups(7),
//! Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.

use iolens_model::server::Throttled;
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::proc::Root;

/// Processor time that may be used: the tightest limit on the way to the root.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuLimit {
    /// Processors' worth of time; `None` for no limit.
    pub cpus: Option<f64>,
    /// The file that says so.
    pub source: String,
}

impl CpuLimit {
    /// `1.50 CPUs`, or `none`.
    pub fn words(&self) -> String {
        self.cpus.map_or_else(|| "none".to_owned(), |cpus| format!("{cpus:.2} CPUs"))
    }

    /// What is written to the file for no limit.
    pub fn no_limit(&self) -> &'static str {
        if self.source.ends_with("cpu.max") { "max" } else { "-1" }
    }
}

/// Reads the limit of both versions of cgroups.
///
/// Errors: no file of either could be read; which was looked for.
pub fn cpu_limit(root: &Root) -> Result<CpuLimit, String> {
    let membership = root.read("proc/self/cgroup")?;
    let mut limits = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let read: fn(&Root, &str) -> Option<CpuLimit> = match controllers {
            "" => unified,
            list if list.split(',').any(|name| name == "cpu") => version_1,
            _ => continue,
        };
        // Within a container the path may be the machine's, and then only the
        // root is there.
        limits.extend(ways_up(path).into_iter().filter_map(|path| read(root, path)));
    }
    let tightest = limits.into_iter().reduce(|tightest, next| match (tightest.cpus, next.cpus) {
        (Some(now), Some(cpus)) if cpus < now => next,
        (None, Some(_)) => next,
        _ => tightest,
    });
    tightest.ok_or_else(|| "no cpu.max and no cpu.cfs_quota_us under /sys/fs/cgroup".to_owned())
}

/// Memory that the cgroups of this process still leave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRoom {
    /// As many as may still be taken.
    pub bytes: u64,
    /// The file that limits it.
    pub source: String,
}

/// The least room on the way to the root, of both versions of cgroups; `None` for
/// no limit. What files have in memory can be had back and counts as room.
pub fn memory_room(root: &Root) -> Option<MemoryRoom> {
    const UNIFIED: [&str; 3] = ["memory.max", "memory.current", ""];
    const VERSION_1: [&str; 3] = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_"];
    let rooms = on_the_way_up(root, "memory", &["/memory"], |folder, version| {
        let files = if version == Version::Unified { UNIFIED } else { VERSION_1 };
        memory_room_in(root, folder, files)
    });
    rooms.into_iter().min_by_key(|room| room.bytes)
}

/// The two versions of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Unified,
}

/// What is read in the cgroups of this process and in all above them: in the one tree of
/// version 2, and in that of a controller of version 1, under the first of some mounts
/// that has it.
fn on_the_way_up<T>(
    root: &Root,
    controller: &str,
    mounts: &[&str],
    read: impl Fn(&str, Version) -> Option<T>,
) -> Vec<T> {
    let membership = root.read("proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (mounts, version): (&[&str], Version) = match controllers {
            "" => (&[""], Version::Unified),
            list if list.split(',').any(|name| name == controller) => (mounts, Version::One),
            _ => continue,
        };
        let in_one = |path: &str| {
            let folders = mounts.iter().map(|mount| format!("sys/fs/cgroup{mount}{path}"));
            folders.into_iter().find_map(|folder| read(&folder, version))
        };
        // Within a container the path may be the machine's, and then only the root is
        // there.
        found.extend(ways_up(path).into_iter().filter_map(in_one));
    }
    found
}

/// The room in one cgroup; its three files and keys are called so.
fn memory_room_in(root: &Root, folder: &str, names: [&str; 3]) -> Option<MemoryRoom> {
    /// Version 1 writes its largest number for no limit, which is near 2⁶³.
    const NO_LIMIT: u64 = 1 << 62;
    let [limit, used, prefix] = names;
    let source = format!("{folder}/{limit}");
    let number = |file: &str| root.read(file).ok()?.parse::<u64>().ok();
    let limit = number(&source).filter(|&bytes| bytes < NO_LIMIT)?;
    let stat = root.read(&format!("{folder}/memory.stat")).unwrap_or_default();
    let of_files = |line: &str| {
        let (key, bytes) = line.split_once(' ')?;
        let key = key.strip_prefix(prefix)?;
        matches!(key, "inactive_file" | "active_file").then(|| bytes.parse::<u64>().ok())?
    };
    let files: u64 = stat.lines().filter_map(of_files).fold(0, u64::saturating_add);
    let used = number(&format!("{folder}/{used}"))?.saturating_sub(files);
    Some(MemoryRoom { bytes: limit.saturating_sub(used), source: format!("/{source}") })
}

/// A path of cgroups and all above it, the root as the empty one.
fn ways_up(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches('/');
    let mut ways = vec![path];
    ways.extend(path.rmatch_indices('/').map(|(at, _)| &path[..at]));
    ways.dedup();
    ways
}

/// `cpu.max`: quota and period in µs, the quota `max` for none.
fn unified(root: &Root, path: &str) -> Option<CpuLimit> {
    let file = format!("sys/fs/cgroup{path}/cpu.max");
    let text = root.read(&file).ok()?;
    let (quota, period) = text.split_once(' ')?;
    let cpus = match quota {
        "max" => None,
        quota => Some(share(quota.parse().ok()?, period.parse().ok()?)?),
    };
    Some(CpuLimit { cpus, source: format!("/{file}") })
}

/// `cpu.cfs_quota_us` and `cpu.cfs_period_us`, the quota negative for none.
fn version_1(root: &Root, path: &str) -> Option<CpuLimit> {
    let folder = ["cpu", "cpu,cpuacct"].map(|mount| format!("sys/fs/cgroup/{mount}{path}"));
    let read = |folder: &String| {
        let number = |file: &str| root.read(&format!("{folder}/{file}")).ok()?.parse::<f64>().ok();
        let (quota, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
        let cpus = if quota < 0.0 { None } else { Some(share(quota, period)?) };
        Some(CpuLimit { cpus, source: format!("/{folder}/cpu.cfs_quota_us") })
    };
    folder.iter().find_map(read)
}

fn share(quota_us: f64, period_us: f64) -> Option<f64> {
    let cpus = quota_us / period_us;
    (cpus.is_finite() && cpus > 0.0).then_some(cpus)
}

// How much the cgroups of this process may read from and write to a device; see
// Documentation/admin-guide/cgroup-v2.rst (`io.max`) and cgroup-v1/blkio-controller.rst.

/// What can be limited: the key of `io.max`, the file of version 1, what it is.
const KINDS: [(&str, &str, &str, Unit); 4] = [
    ("rbps", "read_bps_device", "reading", Unit::BytesPerS),
    ("wbps", "write_bps_device", "writing", Unit::BytesPerS),
    ("riops", "read_iops_device", "reading", Unit::RequestsPerS),
    ("wiops", "write_iops_device", "writing", Unit::RequestsPerS),
];

#[derive(Debug, Clone, Copy)]
enum Unit {
    BytesPerS,
    RequestsPerS,
}

/// A sentence for each limit on the way to the root, of both versions of cgroups:
/// `the cgroup limits reading from 8:0 to 50 MiB/s (/sys/fs/cgroup/a/io.max)`.
pub fn device_limits(root: &Root, (major, minor): (u32, u32)) -> Vec<String> {
    let device = whole_disk(root, &format!("{major}:{minor}"));
    let limits = on_the_way_up(root, "blkio", &["/blkio"], |folder, version| {
        let read = if version == Version::Unified { device_unified } else { device_version_1 };
        Some(read(root, folder, &device))
    });
    limits.into_iter().flatten().collect()
}

/// Limits are of whole disks: that of a partition is the folder above its own.
fn whole_disk(root: &Root, device: &str) -> String {
    let folder = format!("sys/dev/block/{device}");
    let above = root
        .read(&format!("{folder}/partition"))
        .and_then(|_| root.read(&format!("{folder}/../dev")));
    above.map_or_else(|_| device.to_owned(), |above| above.trim().to_owned())
}

/// `8:0 rbps=52428800 wbps=max riops=max wiops=max`.
fn device_unified(root: &Root, folder: &str, device: &str) -> Vec<String> {
    let file = format!("{folder}/io.max");
    let limits = of_device(root, &file, device).unwrap_or_default();
    let limit = |word: &str| {
        let (key, number) = word.split_once('=')?;
        let (.., what, unit) = KINDS.into_iter().find(|kind| kind.0 == key)?;
        Some(sentence(what, device, number.parse().ok()?, unit, &file))
    };
    limits.split_whitespace().filter_map(limit).collect()
}

/// `8:0 52428800`, in a file for each kind.
fn device_version_1(root: &Root, folder: &str, device: &str) -> Vec<String> {
    let limit = |(_, name, what, unit)| {
        let file = format!("{folder}/blkio.throttle.{name}");
        let number = of_device(root, &file, device)?.trim().parse().ok()?;
        Some(sentence(what, device, number, unit, &file))
    };
    KINDS.into_iter().filter_map(limit).collect()
}

/// What a file says of a device, behind its name.
fn of_device(root: &Root, file: &str, device: &str) -> Option<String> {
    let text = root.read(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == device).map(|(_, rest)| rest.to_owned())
}

fn sentence(what: &str, device: &str, number: u64, unit: Unit, file: &str) -> String {
    let toward = if what == "reading" { "from" } else { "to" };
    let limit = match unit {
        Unit::BytesPerS => format!("{}/s", Bytes(number)),
        Unit::RequestsPerS => format!("{number} requests per second"),
    };
    format!("the cgroup limits {what} {toward} the device {device} to {limit} (/{file})")
}

// How many threads and processes cgroups allow: `pids.max` and `pids.current`, which
// are called so in both versions (Documentation/admin-guide/cgroup-v1/pids.rst).

/// A limit on threads and processes, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pids {
    /// The file that limits them.
    pub source: String,
    /// How many there may be.
    pub most: u64,
    /// How many there are.
    pub used: u64,
}

/// The one that leaves least room on the way to the root; `None` for no limit.
pub fn tightest_pids(root: &Root) -> Option<Pids> {
    let limits = on_the_way_up(root, "pids", &["/pids"], |folder, _| {
        let number = |file: &str| root.read(&format!("{folder}/{file}")).ok()?.parse().ok();
        // Without a limit it is `max`, which is no number.
        let (most, used) = (number("pids.max")?, number("pids.current")?);
        Some(Pids { source: format!("/{folder}/pids.max"), most, used })
    });
    limits.into_iter().min_by_key(|pids| pids.most.saturating_sub(pids.used))
}

// How long cgroups have held back what runs in them, because the processor time of a
// period was spent: `cpu.stat` (Documentation/scheduler/sched-bwc.rst).

/// Since each of them was made, over all on the way to the root; `None` where none has such
/// an account.
pub fn throttled(root: &Root) -> Option<Throttled> {
    let all = on_the_way_up(root, "cpu", &["/cpu", "/cpu,cpuacct"], |folder, version| {
        let stat = root.read(&format!("{folder}/cpu.stat")).ok()?;
        let number = |key: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
            line.trim().parse::<u64>().ok()
        };
        let time = match version {
            Version::Unified => number("throttled_usec")?.saturating_mul(1000),
            Version::One => number("throttled_time")?,
        };
        Some(Throttled { periods: number("nr_throttled")?, time: Nanos(time) })
    });
    all.into_iter().reduce(|sum, part| Throttled {
        periods: sum.periods + part.periods,
        time: Nanos(sum.time.0 + part.time.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Machine;

    fn check(files: &[(&str, &str)], expect: Result<(Option<f64>, &str), &str>) {
        let limit = cpu_limit(&Machine::with(files).root());
        match (limit, expect) {
            (Ok(limit), Ok(expect)) => assert_eq!((limit.cpus, limit.source.as_str()), expect),
            (Err(why), Err(expect)) => assert!(why.contains(expect), "{why}"),
            (limit, _) => panic!("{limit:?} from {files:?}"),
        }
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let own = ("proc/self/cgroup", "0::/user.slice/app.scope\n");
        let top = ("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
        let inner = "sys/fs/cgroup/user.slice/app.scope/cpu.max";
        check(
            &[own, top, (inner, "max 100000\n")],
            Ok((Some(1.5), "/sys/fs/cgroup/user.slice/cpu.max")),
        );
        check(&[own, top, (inner, "50000 100000\n")], Ok((Some(0.5), &format!("/{inner}"))));
    }

    #[test]
    fn a_container_sees_its_own_root() {
        let moved = ("proc/self/cgroup", "0::/docker/77ab\n");
        let file = ("sys/fs/cgroup/cpu.max", "max 100000\n");
        check(&[moved, file], Ok((None, "/sys/fs/cgroup/cpu.max")));
    }

    #[test]
    fn version_1_is_read_too() {
        let own = ("proc/self/cgroup", "4:memory:/\n3:cpuacct,cpu:/a\n0::/\n");
        let folder = "sys/fs/cgroup/cpu,cpuacct/a";
        let quota = format!("{folder}/cpu.cfs_quota_us");
        let period = format!("{folder}/cpu.cfs_period_us");
        let with = |us: &str, cpus| {
            check(&[own, (&quota, us), (&period, "100000")], Ok((cpus, &format!("/{quota}"))));
        };
        with("-1", None);
        with("200000", Some(2.0));
    }

    #[test]
    fn the_least_room_for_memory_counts_and_files_are_room() {
        let room = |files: &[(&str, &str)]| {
            memory_room(&Machine::with(files).root()).map(|room| (room.bytes, room.source))
        };
        let own = ("proc/self/cgroup", "0::/a/b\n");
        let [top, inner] = ["sys/fs/cgroup/a", "sys/fs/cgroup/a/b"];
        let file = |folder: &str, name: &str| format!("{folder}/{name}");
        let (max, current) = (file(top, "memory.max"), file(top, "memory.current"));
        let stat = file(top, "memory.stat");
        let limited = [
            own,
            (&max, "1000\n"),
            (&current, "900\n"),
            (&stat, "anon 500\ninactive_file 300\nactive_file 50\n"),
        ];
        assert_eq!(room(&limited), Some((450, format!("/{max}"))));
        let (max, current) = (file(inner, "memory.max"), file(inner, "memory.current"));
        let both = [&limited[..], &[(&max, "100\n"), (&current, "200\n")]].concat();
        assert_eq!(room(&both), Some((0, format!("/{max}"))));
        assert_eq!(room(&[own, (&max, "max\n"), (&current, "200\n")]), None);
        assert_eq!(room(&[own]), None);
        assert_eq!(room(&[]), None);
        let (limit, used) = (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "sys/fs/cgroup/memory/memory.usage_in_bytes",
        );
        let own = ("proc/self/cgroup", "7:memory:/a\n");
        let stat = ("sys/fs/cgroup/memory/memory.stat", "inactive_file 9\ntotal_active_file 40\n");
        let version_1 = room(&[own, (limit, "1000"), (used, "100"), stat]);
        assert_eq!(version_1, Some((940, format!("/{limit}"))));
        assert_eq!(room(&[own, (limit, "9223372036854771712"), (used, "100")]), None);
    }

    #[test]
    fn what_is_odd_is_no_limit() {
        check(&[], Err("/proc/self/cgroup"));
        check(&[("proc/self/cgroup", "::\n0\nx:y:z")], Err("no cpu.max"));
        let own = ("proc/self/cgroup", "0::/");
        for text in ["", "max", "1 0", "-5 100000", "x 100000", "0 0"] {
            check(&[own, ("sys/fs/cgroup/cpu.max", text)], Err("no cpu.max"));
        }
    }

    #[test]
    fn limits_of_both_versions_are_those_of_the_whole_disk() {
        let machine = Machine::with(&[
            ("proc/self/cgroup", "3:cpu,blkio:/b\n0::/a/inner\n"),
            ("sys/dev/block/8:1/partition", "1\n"),
            ("sys/dev/block/dev", "8:0\n"),
            ("sys/fs/cgroup/a/io.max", "9:9 rbps=1 wbps=1\n8:0 rbps=max wbps=52428800 riops=100"),
            ("sys/fs/cgroup/blkio/b/blkio.throttle.read_bps_device", "8:0 1048576\n"),
        ]);
        assert_eq!(
            device_limits(&machine.root(), (8, 1)),
            [
                "the cgroup limits reading from the device 8:0 to 1 MiB/s \
                 (/sys/fs/cgroup/blkio/b/blkio.throttle.read_bps_device)",
                "the cgroup limits writing to the device 8:0 to 50 MiB/s \
                 (/sys/fs/cgroup/a/io.max)",
                "the cgroup limits reading from the device 8:0 to 100 requests per second \
                 (/sys/fs/cgroup/a/io.max)",
            ]
        );
        assert_eq!(device_limits(&machine.root(), (7, 0)), [""; 0], "another device");
        assert_eq!(device_limits(&Machine::with(&[]).root(), (8, 1)), [""; 0]);
    }

    #[test]
    fn the_least_room_for_processes_counts() {
        let found = |own: &str, files: &[(&str, &str)]| {
            let machine = Machine::with(files);
            machine.write("proc/self/cgroup", own);
            tightest_pids(&machine.root()).map(|pids| (pids.source, pids.most, pids.used))
        };
        let files = [
            ("sys/fs/cgroup/a/pids.max", "100"),
            ("sys/fs/cgroup/a/pids.current", "90"),
            ("sys/fs/cgroup/a/b/pids.max", "20"),
            ("sys/fs/cgroup/a/b/pids.current", "5"),
            ("sys/fs/cgroup/pids/c/pids.max", "max"),
            ("sys/fs/cgroup/pids/c/pids.current", "7"),
        ];
        let top = ("/sys/fs/cgroup/a/pids.max".to_owned(), 100, 90);
        assert_eq!(found("0::/a/b", &files), Some(top));
        assert_eq!(found("8:pids:/c\n0::/", &files), None);
        assert_eq!(found("", &files), None);
    }

    #[test]
    fn all_on_the_way_up_hold_back_in_either_unit() {
        let found = |own: &str, files: &[(&str, &str)]| {
            let machine = Machine::with(files);
            machine.write("proc/self/cgroup", own);
            throttled(&machine.root()).map(|found| (found.periods, found.time.0))
        };
        let unified = [
            ("sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 30"),
            ("sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 1\nthrottled_usec 4\nnr_bursts 0"),
            // The root has no limit.
            ("sys/fs/cgroup/cpu.stat", "usage_usec 99"),
        ];
        assert_eq!(found("0::/a/b", &unified), Some((3, 34_000)));
        assert_eq!(found("0::/", &unified), None);
        // One mount under two names is one.
        let stat = "nr_periods 5\nnr_throttled 4\nthrottled_time 77";
        let older = [
            ("sys/fs/cgroup/cpu/c/cpu.stat", stat),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.stat", stat),
        ];
        assert_eq!(found("3:cpu,cpuacct:/c", &older), Some((4, 77)));
        assert_eq!(found("", &older), None);
    }
}
