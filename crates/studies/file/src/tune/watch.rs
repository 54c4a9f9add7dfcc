//! What happened to the machine while something was measured.

use iolens_model::units::Nanos;
use iolens_sys::proc::Root;

use iolens_harness::cgroup;
use iolens_harness::environment;

/// A tick of the counters of /proc/stat: `USER_HZ`, which is 100 on all Linux.
const TICK_NS: u64 = 10_000_000;

/// Watches from its beginning on.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    before: environment::Before,
    throttled: Option<u64>,
}

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Time that a hypervisor took, over all processors; `None` where it is not told.
    pub stolen: Option<Nanos>,
    /// Whether a quota held this process, or one beside it, back.
    pub was_throttled: bool,
}

impl Watch {
    /// Begins.
    #[must_use]
    pub fn begin() -> Watch {
        let root = Root::real();
        let (before, throttled) = (environment::Before::read(&root), throttled(&root));
        Watch { root, before, throttled }
    }

    /// Ends.
    #[must_use]
    pub fn end(self) -> Seen {
        let now = throttled(&self.root);
        let environment = self.before.after(&self.root);
        let stolen = environment.steal_ticks.value().map(|ticks| Nanos(ticks * TICK_NS));
        Seen { stolen, was_throttled: self.throttled.zip(now).is_some_and(|(a, b)| b > a) }
    }
}

/// How many periods of a quota ended with somebody waiting.
fn throttled(root: &Root) -> Option<u64> {
    let limit = cgroup::cpu_limit(root).ok().filter(|limit| limit.cpus.is_some())?;
    let path = limit.source.trim_start_matches('/').replace("cpu.max", "cpu.stat");
    let text = root.read(&path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_happens_in_no_time() {
        let seen = Watch::begin().end();
        // Half a second of a machine that had none to itself.
        assert!(seen.stolen.is_none_or(|stolen| stolen.0 < 500_000_000), "{seen:?}");
    }

    #[test]
    fn periods_of_a_quota_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/self/cgroup", "0::/a\n");
        put("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
        put("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 7\nnr_throttled 3\n");
        let root = Root::at(folder.path());
        assert_eq!(throttled(&root), Some(3));
        put("sys/fs/cgroup/a/cpu.max", "max 100000\n");
        assert_eq!(throttled(&root), None);
    }
}
