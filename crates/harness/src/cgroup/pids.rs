//! How many threads and processes cgroups allow: `pids.max` and `pids.current`, which
//! are called so in both versions (Documentation/admin-guide/cgroup-v1/pids.rst).

use iolens_sys::proc::Root;

use super::on_the_way_up;

/// A limit on threads and processes, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pids {
    /// The file that limits them.
    pub source: String,
    pub most: u64,
    pub used: u64,
}

/// The one that leaves least room on the way to the root; `None` for no limit.
pub fn tightest(root: &Root) -> Option<Pids> {
    let limits = on_the_way_up(root, "pids", &["/pids"], |folder, _| {
        let number = |file: &str| root.read(&format!("{folder}/{file}")).ok()?.parse().ok();
        // Without a limit it is `max`, which is no number.
        let (most, used) = (number("pids.max")?, number("pids.current")?);
        Some(Pids { source: format!("/{folder}/pids.max"), most, used })
    });
    limits.into_iter().min_by_key(|pids| pids.most.saturating_sub(pids.used))
}

#[cfg(test)]
mod tests {
    use crate::scripted::Machine;

    use super::*;

    #[test]
    fn the_least_room_for_processes_counts() {
        let found = |own: &str, files: &[(&str, &str)]| {
            let machine = Machine::with(files);
            machine.write("proc/self/cgroup", own);
            tightest(&machine.root()).map(|pids| (pids.source, pids.most, pids.used))
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
}
