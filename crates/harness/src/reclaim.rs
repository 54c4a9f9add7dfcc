//! Whether the kernel takes memory back before anybody needs it: DAMON, told by
//! an administrator to page out what was not used for a while. A file that is
//! only read by read(2) looks unused to it, and leaves the page cache.
//!
//! Source: Documentation/admin-guide/mm/damon/usage.rst and reclaim.rst.

use iolens_sys::proc::Root;

/// What DAMON does with memory that nobody uses.
#[derive(Debug, Clone, PartialEq)]
pub enum Reclaim {
    /// Nothing.
    Off,
    /// Takes it back when it was not used for so long, in seconds, as far as that is told.
    On {
        /// Seconds; `None` where that is not told.
        idle_s: Option<f64>,
    },
    /// Who is not root may not know.
    NotTold,
}

/// The folder of what is set up by hand, and the switch of the ready-made module.
pub const KDAMONDS: &str = "sys/kernel/mm/damon/admin/kdamonds";
const MODULE: &str = "sys/module/damon_reclaim/parameters";

impl Reclaim {
    /// What sysfs says of it.
    pub fn read(root: &Root) -> Reclaim {
        let daemons = folders(root, KDAMONDS);
        let daemons = daemons.iter().map(|daemon| by_daemon(root, daemon));
        daemons.fold(by_module(root), Reclaim::and)
    }

    /// What two say together: what is known to be on is on.
    fn and(self, other: Reclaim) -> Reclaim {
        match (self, other) {
            (on @ Reclaim::On { .. }, _) | (_, on @ Reclaim::On { .. }) => on,
            (Reclaim::Off, Reclaim::Off) => Reclaim::Off,
            _ => Reclaim::NotTold,
        }
    }

    /// In words, as in "proactive reclaim: …".
    pub fn words(&self) -> String {
        match self {
            Reclaim::Off => "off".to_owned(),
            Reclaim::On { idle_s: Some(s) } => {
                format!("DAMON pages out memory unused for {s:.0} s")
            }
            Reclaim::On { idle_s: None } => "DAMON pages out unused memory".to_owned(),
            Reclaim::NotTold => "only root can see it".to_owned(),
        }
    }
}

/// What a switch with this value `means`; off with another one, and where there is none.
fn switched(root: &Root, path: &str, on: &str, means: impl FnOnce() -> Reclaim) -> Reclaim {
    match root.read(path) {
        Ok(state) if state.trim() == on => means(),
        Err(_) if exists(root, path) => Reclaim::NotTold,
        Ok(_) | Err(_) => Reclaim::Off,
    }
}

fn exists(root: &Root, path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folder, name)| root.names(folder).iter().any(|n| n == name))
}

fn by_module(root: &Root) -> Reclaim {
    switched(root, &format!("{MODULE}/enabled"), "Y", || Reclaim::On {
        idle_s: number(root, &format!("{MODULE}/min_age")).map(|us| us / 1e6),
    })
}

fn by_daemon(root: &Root, daemon: &str) -> Reclaim {
    switched(root, &format!("{daemon}/state"), "on", || {
        let mut all = Reclaim::Off;
        for context in folders(root, &format!("{daemon}/contexts")) {
            for scheme in folders(root, &format!("{context}/schemes")) {
                all = all.and(by_scheme(root, &context, &scheme));
            }
        }
        all
    })
}

fn by_scheme(root: &Root, context: &str, scheme: &str) -> Reclaim {
    switched(root, &format!("{scheme}/action"), "pageout", || Reclaim::On {
        idle_s: idle_s(root, context, scheme),
    })
}

/// How long memory is idle before a scheme takes it, in seconds: its age counts
/// aggregation intervals.
fn idle_s(root: &Root, context: &str, scheme: &str) -> Option<f64> {
    let age = number(root, &format!("{scheme}/access_pattern/age/min"))?;
    let us = number(root, &format!("{context}/monitoring_attrs/intervals/aggr_us"))?;
    Some(age * us / 1e6)
}

fn number(root: &Root, path: &str) -> Option<f64> {
    root.read(path).ok()?.trim().parse().ok()
}

/// The numbered folders in one: beside them stands how many there are.
fn folders(root: &Root, folder: &str) -> Vec<String> {
    let numbered = root.names(folder).into_iter().filter(|name| name.parse::<u32>().is_ok());
    numbered.map(|name| format!("{folder}/{name}")).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    const ONE: &str = "sys/kernel/mm/damon/admin/kdamonds/0";

    fn daemon(folder: &Path, state: &str, action: &str) {
        let context = format!("{ONE}/contexts/0");
        let files = [
            (format!("{ONE}/state"), state),
            (format!("{context}/monitoring_attrs/intervals/aggr_us"), "5000000\n"),
            (format!("{context}/schemes/nr_schemes"), "1\n"),
            (format!("{context}/schemes/0/action"), action),
            (format!("{context}/schemes/0/access_pattern/age/min"), "12\n"),
        ];
        write(folder, &files.each_ref().map(|(name, text)| (name.as_str(), *text)));
    }

    #[test]
    fn a_daemon_that_pages_out_is_found_with_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert_eq!(Reclaim::read(&root), Reclaim::Off);
        for (state, action, idle) in [
            ("on\n", "pageout\n", Reclaim::On { idle_s: Some(60.0) }),
            ("off\n", "pageout\n", Reclaim::Off),
            ("on\n", "stat\n", Reclaim::Off),
        ] {
            daemon(folder.path(), state, action);
            assert_eq!(Reclaim::read(&root), idle, "{state} {action}");
        }
        let words = Reclaim::On { idle_s: Some(60.0) }.words();
        assert_eq!(words, "DAMON pages out memory unused for 60 s");
    }

    #[test]
    fn the_module_is_found_too() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("sys/module/damon_reclaim/parameters/enabled", "Y\n")]);
        let root = Root::at(folder.path());
        assert_eq!(Reclaim::read(&root), Reclaim::On { idle_s: None });
        write(folder.path(), &[("sys/module/damon_reclaim/parameters/min_age", "120000000\n")]);
        assert_eq!(Reclaim::read(&root), Reclaim::On { idle_s: Some(120.0) });
    }

    #[test]
    fn what_may_not_be_read_is_not_taken_for_off() {
        let folder = tempfile::tempdir().unwrap();
        // A folder in the place of the file: there, and not to be read.
        std::fs::create_dir_all(folder.path().join(ONE).join("state")).unwrap();
        assert_eq!(Reclaim::read(&Root::at(folder.path())), Reclaim::NotTold);
    }
}
