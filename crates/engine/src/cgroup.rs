//! How much processor time the cgroups of this process allow; see cgroups(7),
//! Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.

use iolens_sys::proc::Root;

/// Processor time that may be used: the tightest limit on the way to the root.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CpuLimit {
    /// Processors' worth of time; null for no limit.
    pub(crate) cpus: Option<f64>,
    /// The file that says so.
    pub(crate) source: String,
}

impl CpuLimit {
    /// `1.50 CPUs`, or `none`.
    pub(crate) fn words(&self) -> String {
        self.cpus.map_or_else(|| "none".to_owned(), |cpus| format!("{cpus:.2} CPUs"))
    }

    /// What is written to the file for no limit.
    pub(crate) fn no_limit(&self) -> &'static str {
        if self.source.ends_with("cpu.max") { "max" } else { "-1" }
    }
}

/// Reads the limit of both versions of cgroups.
///
/// Errors: no file of either could be read; which was looked for.
pub(crate) fn cpu_limit(root: &Root) -> Result<CpuLimit, String> {
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

#[cfg(test)]
mod tests {
    use crate::scripted::Machine;

    use super::*;

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
    fn what_is_odd_is_no_limit() {
        check(&[], Err("/proc/self/cgroup"));
        check(&[("proc/self/cgroup", "::\n0\nx:y:z")], Err("no cpu.max"));
        let own = ("proc/self/cgroup", "0::/");
        for text in ["", "max", "1 0", "-5 100000", "x 100000", "0 0"] {
            check(&[own, ("sys/fs/cgroup/cpu.max", text)], Err("no cpu.max"));
        }
    }
}
