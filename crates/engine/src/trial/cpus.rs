//! What every processor of the machine does, from /proc/stat: of everybody, and not of
//! our processes alone.

use iolens_model::server::CpuTime;
use iolens_sys::proc::{self, Root};

/// Ticks of every processor since boot.
#[derive(Debug, Clone, Default)]
pub(super) struct Ticks(Vec<CpuTime>);

impl Ticks {
    /// As they are now; empty where they cannot be read.
    pub(super) fn read(root: &Root) -> Ticks {
        let time = |(cpu, ticks): (u32, proc::CpuTicks)| {
            let proc::CpuTicks { user, system, irq, softirq, steal, idle, total: _ } = ticks;
            CpuTime { cpu, user, system, irq, softirq, steal, idle }
        };
        let stat = root.read("proc/stat").unwrap_or_default();
        Ticks(proc::every_cpu(&stat).into_iter().map(time).collect())
    }

    /// What passed from an earlier reading to this one, of processors that both have: one
    /// may go offline.
    pub(super) fn since(&self, earlier: &Ticks) -> Vec<CpuTime> {
        let passed = |now: &CpuTime| {
            let before = earlier.0.iter().find(|time| time.cpu == now.cpu)?;
            // The kernel lets what a processor idled go back by a tick at times.
            Some(each(now, before, u64::saturating_sub))
        };
        self.0.iter().filter_map(passed).collect()
    }
}

/// Adds a part to a sum.
pub(super) fn add(sum: &mut Vec<CpuTime>, part: &[CpuTime]) {
    for time in part {
        match sum.iter_mut().find(|known| known.cpu == time.cpu) {
            Some(known) => *known = each(known, time, |a, b| a + b),
            None => sum.push(*time),
        }
    }
}

/// Each kind of two times of a processor, brought together.
fn each(a: &CpuTime, b: &CpuTime, both: fn(u64, u64) -> u64) -> CpuTime {
    CpuTime {
        cpu: a.cpu,
        user: both(a.user, b.user),
        system: both(a.system, b.system),
        irq: both(a.irq, b.irq),
        softirq: both(a.softirq, b.softirq),
        steal: both(a.steal, b.steal),
        idle: both(a.idle, b.idle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_is_told_by_processor_and_kind() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join("proc/stat"), text).unwrap();
            Ticks::read(&Root::at(folder.path()))
        };
        let before =
            read("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 1 1 9 1 1 1 1 0 0\ncpu2 0 0 0 5 0 0 0 0\n");
        // The second one has gone meanwhile, a third has come, and the first idled backwards.
        let now =
            read("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 2 3 4 8 1 6 7 8 0 0\ncpu3 1 1 1 1 1 1 1 1\n");
        let passed = now.since(&before);
        let expect = CpuTime { cpu: 0, user: 3, system: 3, irq: 5, softirq: 6, steal: 7, idle: 0 };
        assert_eq!(passed, [expect]);
        let mut sum = passed.clone();
        add(&mut sum, &passed);
        add(&mut sum, &[CpuTime { cpu: 3, user: 1, ..CpuTime::default() }]);
        assert_eq!((sum[0].user, sum[0].steal, sum[1].user), (6, 14, 1));
    }
}
