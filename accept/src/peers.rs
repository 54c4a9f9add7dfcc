//! The other programs that acceptance compares with, uses or stands in for: the table in
//! `peers.toml`.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Deserialize;

use crate::prelude::*;
use crate::process::own_user;

/// Needed by who changes the machine. It cannot be installed.
const ROOT: &str = "root";

#[derive(Deserialize)]
struct Peer {
    version: String,
    #[serde(flatten)]
    from: Source,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Apt(String),
    Built(String),
    StandIn(String),
}

/// All of them by their names.
fn table() -> Res<BTreeMap<String, Peer>> {
    toml::from_str(include_str!("peers.toml")).context("the table of peers")
}

/// Makes sure that a line has what it needs; in words, the versions.
pub fn provide(needs: &[String], directory: &Path) -> Res<String> {
    let (table, mut versions) = (table()?, Vec::new());
    for name in needs {
        if name == ROOT {
            if own_user()? != 0 {
                bail!("it changes the machine, which needs root");
            }
            continue;
        }
        let peer = table.get(name);
        let peer = peer.with_context(|| format!("{name} is not in the table of peers"))?;
        if peer.version(directory).is_none() {
            peer.install(name, directory).with_context(|| format!("{name} cannot be had"))?;
        }
        let version = peer.version(directory);
        let version = version.with_context(|| format!("{name} was installed, and is not there"))?;
        versions.push(if version.contains(name) { version } else { format!("{name} {version}") });
    }
    Ok(if versions.is_empty() { "no peers".to_owned() } else { versions.join(", ") })
}

impl Peer {
    /// The first line that it prints of itself; `None` where it is not there.
    fn version(&self, directory: &Path) -> Option<String> {
        let said = shell(&self.version, directory).success().ok()?.stdout();
        said.lines().next().map(str::to_owned)
    }

    fn install(&self, name: &str, directory: &Path) -> Res {
        match &self.from {
            Source::Apt(package) if own_user()? != 0 => {
                bail!("it is missing: `apt-get install {package}` as root")
            }
            Source::Apt(package) => {
                let apt = |words: &str| {
                    Job::of("apt-get").words(words).env("DEBIAN_FRONTEND", "noninteractive")
                };
                apt("update").run()?;
                apt("install -y --no-install-recommends").arg(package).success().map(drop)
            }
            Source::Built(script) => {
                shell(&format!("set -e\n{script}"), directory).success().map(drop)
            }
            Source::StandIn(program) => {
                let path = directory.join(name);
                fs::copy(crate::root().join(program), &path)?;
                Ok(fs::set_permissions(&path, Permissions::from_mode(0o755))?)
            }
        }
    }
}

fn shell(script: &str, directory: &Path) -> Job {
    Job::shell(script).directory(directory).env("ROOT", crate::root())
}

/// The table, with what is here of it.
pub fn listed(directory: &Path) -> Res<String> {
    let row = |(name, peer): (String, Peer)| {
        let from = match &peer.from {
            Source::Apt(package) => format!("apt-get install {package}"),
            Source::Built(script) => script.lines().next().unwrap_or_default().to_owned(),
            Source::StandIn(_) => "a program of ours stands in".to_owned(),
        };
        let version = peer.version(directory).unwrap_or_else(|| "not here".to_owned());
        format!("{name}: {version} ({from})")
    };
    Ok(table()?.into_iter().map(row).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lines_need_is_in_the_table_which_has_nothing_else() {
        let table = table().expect("it reads");
        let needed: Vec<String> = crate::lines().into_iter().flat_map(|line| line.needs).collect();
        let is_there = |name: &String| name == ROOT || table.contains_key(name);
        assert!(needed.iter().all(is_there), "{needed:?}");
        let unused = table.keys().find(|name| !needed.contains(name));
        assert_eq!(unused, None, "nobody needs it");
        for peer in table.values() {
            assert!(!matches!(&peer.from, Source::StandIn(p) if !crate::root().join(p).exists()));
        }
    }

    #[test]
    fn a_peer_is_built_once_and_one_that_cannot_be_had_is_named() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let peer = |version: &str, script: &str| Peer {
            version: version.to_owned(),
            from: Source::Built(script.to_owned()),
        };
        let built = peer("cat made", "echo 1.0 >>made");
        assert_eq!(built.version(directory.path()), None);
        assert!(built.install("x", directory.path()).is_ok());
        assert_eq!(built.version(directory.path()).as_deref(), Some("1.0"));
        assert!(peer("false", "exit 3").install("lost", directory.path()).is_err());
        assert!(provide(&["nobody's".to_owned()], directory.path()).is_err());
    }
}
