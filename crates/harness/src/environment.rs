//! The machine around a trial: what the hypervisor took, how cgroups held us
//! back, how many tasks wanted a CPU, and how fast a fixed loop ran just before
//! and after.

use iolens_model::outcome::Environment;
use iolens_model::reading::Reading;
use iolens_model::server::Throttled;
use iolens_sys::clock;
use iolens_sys::proc::{Root, cpu_ticks, pressure_some_us, stat_number};

use crate::cgroup;

/// Steps of the fixed loop: about a millisecond, short beside a trial and
/// long beside the clock.
const LOOP_STEPS: u64 = 400_000;

/// The readings before a trial.
#[derive(Debug)]
pub struct Before {
    stat: Result<String, String>,
    pressure: Result<String, String>,
    throttled: Option<Throttled>,
    loop_ns: u64,
}

impl Before {
    /// Reads the machine; to be called just before the workers start.
    pub fn read(root: &Root) -> Before {
        Before {
            loop_ns: fixed_loop_ns(),
            stat: root.read("proc/stat"),
            pressure: root.read("proc/pressure/cpu"),
            throttled: cgroup::throttled(root),
        }
    }

    /// Reads again and subtracts; to be called when the workers have ended.
    pub fn after(self, root: &Root) -> Environment {
        let stat = root.read("proc/stat");
        let pressure = root.read("proc/pressure/cpu");
        let throttled = self.throttled.zip(cgroup::throttled(root));
        let ticks = |pick: fn(&str) -> Option<u64>| between(&self.stat, &stat, "proc/stat", pick);
        Environment {
            cpu_ticks: ticks(|text| Some(cpu_ticks(text, "cpu")?.total)),
            steal_ticks: ticks(|text| Some(cpu_ticks(text, "cpu")?.steal)),
            softirq_ticks: ticks(|text| Some(cpu_ticks(text, "cpu")?.softirq)),
            psi_cpu_some_us: between(
                &self.pressure,
                &pressure,
                "proc/pressure/cpu",
                pressure_some_us,
            ),
            throttled: match throttled {
                Some((before, after)) => Reading::Exact(after.since(before)),
                None => Reading::not_measured("no cgroup has an account of it in cpu.stat"),
            },
            procs_running_before: number(&self.stat),
            procs_running_after: number(&stat),
            loop_before_ns: Reading::Exact(self.loop_ns),
            loop_after_ns: Reading::Exact(fixed_loop_ns()),
        }
    }
}

fn number(stat: &Result<String, String>) -> Reading<u64> {
    let read = |text: &String| {
        stat_number(text, "procs_running").ok_or("no procs_running in /proc/stat".to_owned())
    };
    match stat.as_ref().map_err(Clone::clone).and_then(read) {
        Ok(value) => Reading::Exact(value),
        Err(why) => Reading::not_measured(why),
    }
}

/// The difference of one number in two readings of a file.
fn between(
    before: &Result<String, String>,
    after: &Result<String, String>,
    path: &str,
    pick: fn(&str) -> Option<u64>,
) -> Reading<u64> {
    match (before, after) {
        (Ok(before), Ok(after)) => match (pick(before), pick(after)) {
            (Some(b), Some(a)) => Reading::Exact(a.saturating_sub(b)),
            _ => Reading::not_measured(format!("/{path} does not have it on this kernel")),
        },
        (Err(why), _) | (_, Err(why)) => Reading::not_measured(why.clone()),
    }
}

/// Nanoseconds that a fixed chain of dependent multiplications takes: the
/// CPU's speed at this moment, without memory or kernel.
pub fn fixed_loop_ns() -> u64 {
    let begin = clock::monotonic_ns();
    let mut state = 1u64;
    for _ in 0..LOOP_STEPS {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    std::hint::black_box(state);
    clock::monotonic_ns() - begin
}

#[cfg(test)]
mod tests {
    use iolens_model::units::Nanos;

    use super::*;

    fn machine(stat: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/pressure")).unwrap();
        std::fs::write(dir.path().join("proc/stat"), stat).unwrap();
        dir
    }

    #[test]
    fn differences_are_taken_and_gaps_are_named() {
        let dir = machine("cpu  10 0 0 90 0 0 5 7 0 0\nprocs_running 2\n");
        let root = Root::at(dir.path());
        let before = Before::read(&root);
        std::fs::write(
            dir.path().join("proc/stat"),
            "cpu  20 0 0 95 0 0 6 10 0 0\nprocs_running 4\n",
        )
        .unwrap();
        let environment = before.after(&root);
        assert_eq!(environment.steal_ticks, Reading::Exact(3));
        assert_eq!(environment.softirq_ticks, Reading::Exact(1));
        assert_eq!(environment.cpu_ticks, Reading::Exact(19));
        assert_eq!(environment.procs_running_before, Reading::Exact(2));
        assert_eq!(environment.procs_running_after, Reading::Exact(4));
        assert!(environment.throttled.why().unwrap().contains("cpu.stat"));
        assert!(environment.psi_cpu_some_us.why().unwrap().contains("/proc/pressure/cpu"));
        assert!(environment.loop_before_ns.value().is_some());
    }

    #[test]
    fn what_a_quota_held_back_is_read() {
        let dir = machine("cpu  10 0 0 90 0 0 5 7 0 0\n");
        let (root, folder) = (Root::at(dir.path()), dir.path().join("sys/fs/cgroup/a"));
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(dir.path().join("proc/self/cgroup"), "0::/a\n").unwrap();
        let held = |periods: u64, us: u64| {
            let text = format!("nr_periods 90\nnr_throttled {periods}\nthrottled_usec {us}\n");
            std::fs::write(folder.join("cpu.stat"), text).unwrap();
        };
        held(5, 400_000);
        let before = Before::read(&root);
        held(9, 600_000);
        let throttled = Throttled { periods: 4, time: Nanos(200_000_000) };
        assert_eq!(before.after(&root).throttled, Reading::Exact(throttled));
    }
}
