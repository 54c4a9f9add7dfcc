//! How long cgroups have held back what runs in them, because the processor time of a
//! period was spent: `cpu.stat` (Documentation/scheduler/sched-bwc.rst).

use iolens_model::server::Throttled;
use iolens_model::units::Nanos;
use iolens_sys::proc::Root;

use super::{Version, on_the_way_up};

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
    use crate::scripted::Machine;

    use super::*;

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
