//! The other programs that acceptance compares with, uses or stands in for: one table.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::check::Res;
use crate::process::{Job, own_user};

/// Needed by who changes the machine. It cannot be installed.
const ROOT: &str = "root";

struct Peer {
    name: &'static str,
    /// Words of a shell that print its version, and fail where it is not there.
    version: &'static str,
    from: Source,
}

/// Where it comes from.
enum Source {
    /// A package of the distribution, which root installs.
    Apt(&'static str),
    /// Words of a shell that fetch and build it in the directory of peers, with the root of this
    /// workspace in `$ROOT`.
    Built(&'static str),
    /// A program of our own with its flags, which is written to the directory of peers.
    StandIn(&'static str),
}

use Source::{Apt, Built, StandIn};

const PEERS: &[Peer] = &[
    peer("bash", "bash --version", Apt("bash")),
    peer("bindfs", "bindfs --version", Apt("bindfs")),
    peer("c++", "c++ --version", Apt("g++")),
    peer(
        "cargo-fuzz",
        "rustup run nightly cargo fuzz --version",
        Built(
            "rustup toolchain install nightly --profile minimal; cargo install --locked cargo-fuzz",
        ),
    ),
    peer(
        "echo-in-c",
        "test -x echo-epoll_lt && test -x echo-uring && echo built",
        Built(
            "for model in epoll_lt uring; do gcc -O2 -Wall -Wextra -Werror -o echo-$model \
             $ROOT/witness/echo/$model.c; done",
        ),
    ),
    peer("fallocate", "fallocate --version", Apt("util-linux")),
    peer("fio", "fio --version", Apt("fio")),
    peer("gcc", "gcc --version", Apt("gcc")),
    peer(
        "google-benchmark",
        "echo '#include <benchmark/benchmark.h>' | c++ -E -x c++ - >/dev/null && echo found",
        Apt("libbenchmark-dev"),
    ),
    peer(
        "google-benchmark-copy",
        "test -x copy && echo built",
        Built("c++ -O2 -std=c++17 $ROOT/witness/gbench/copy.cc -lbenchmark -lpthread -o copy"),
    ),
    peer("ip", "ip -V", Apt("iproute2")),
    peer("iperf3", "iperf3 --version", Apt("iperf3")),
    peer("kubectl", "test -x kubectl && echo stand-in", StandIn(LAUNCHER)),
    peer(
        "kubernetes-validate",
        "venv/bin/kubernetes-validate --version",
        Built(
            "python3 -m venv venv || { apt-get update && apt-get install -y python3-venv && \
             python3 -m venv venv; } && venv/bin/pip install --quiet kubernetes-validate",
        ),
    ),
    // examples/send-zerocopy.c of the source package, from where apt has liburing-dev.
    peer(
        "liburing-send-zerocopy",
        "test -x source/examples/send-zerocopy && ls liburing_*.dsc",
        Built(include_str!("network/liburing.sh")),
    ),
    peer("make", "make --version", Apt("make")),
    peer("mkfs.btrfs", "mkfs.btrfs --version", Apt("btrfs-progs")),
    peer("mkfs.ext4", "mkfs.ext4 -V 2>&1", Apt("e2fsprogs")),
    peer("mkfs.xfs", "mkfs.xfs -V", Apt("xfsprogs")),
    peer("nginx", "nginx -v 2>&1", Apt("nginx-light")),
    peer("nsenter", "nsenter --version", Apt("util-linux")),
    peer("perf", "perf --version", Apt("linux-perf")),
    peer("prlimit", "prlimit --version", Apt("util-linux")),
    peer("python3", "python3 --version", Apt("python3")),
    peer("setcap", "command -v setcap", Apt("libcap2-bin")),
    peer("setpriv", "setpriv --version", Apt("util-linux")),
    peer("srun", "test -x srun && echo stand-in", StandIn(LAUNCHER)),
    peer("ssh", "ssh -V 2>&1", Apt("openssh-client")),
    peer("sshd", "command -v sshd >/dev/null && sshd -V 2>&1 | grep SSH", Apt("openssh-server")),
    peer("taskset", "taskset --version", Apt("util-linux")),
    peer("tc", "tc -V", Apt("iproute2")),
    peer("time", "env time --version 2>&1", Apt("time")),
    peer("unshare", "unshare --version", Apt("util-linux")),
    // It calls asking for its version a failure.
    peer("wrk", "wrk -v | grep wrk", Apt("wrk")),
];

const LAUNCHER: &str = include_str!("remote/launchers.py");

const fn peer(name: &'static str, version: &'static str, from: Source) -> Peer {
    Peer { name, version, from }
}

/// Makes sure that a line has what it needs; in words, the versions.
pub fn provide(needs: &[&str], directory: &Path) -> Res<String> {
    let mut versions = Vec::new();
    for name in needs {
        if *name == ROOT {
            if own_user()? != 0 {
                return Err("it changes the machine, which needs root".to_owned());
            }
            continue;
        }
        let peer = PEERS.iter().find(|peer| peer.name == *name);
        let peer = peer.ok_or_else(|| format!("{name} is not in the table of peers"))?;
        let version = match peer.version(directory) {
            Some(version) => version,
            None => {
                peer.install(directory)?;
                let version = peer.version(directory);
                version.ok_or_else(|| format!("{name} was installed, and is not there"))?
            }
        };
        versions.push(if version.contains(name) { version } else { format!("{name} {version}") });
    }
    Ok(if versions.is_empty() { "no peers".to_owned() } else { versions.join(", ") })
}

impl Peer {
    /// The first line that it prints of itself; `None` where it is not there.
    fn version(&self, directory: &Path) -> Option<String> {
        let said = shell(self.version, directory).success().ok()?.stdout();
        said.lines().next().map(str::to_owned)
    }

    fn install(&self, directory: &Path) -> Res {
        match self.from {
            Apt(package) if own_user()? != 0 => {
                Err(format!("{} is missing: `apt-get install {package}` as root", self.name))
            }
            Apt(package) => {
                let apt = |words: &str| {
                    Job::of("apt-get").words(words).env("DEBIAN_FRONTEND", "noninteractive")
                };
                apt("update").run()?;
                apt("install -y --no-install-recommends").arg(package).success().map(drop)
            }
            Built(script) => shell(&format!("set -e\n{script}"), directory).success().map(drop),
            StandIn(program) => {
                let path = directory.join(self.name);
                let runs = std::fs::Permissions::from_mode(0o755);
                let written = std::fs::write(&path, program);
                let made = written.and_then(|()| std::fs::set_permissions(&path, runs));
                made.map_err(|e| format!("cannot write {}: {e}", path.display()))
            }
        }
        .map_err(|why| format!("{} cannot be had: {why}", self.name))
    }
}

fn shell(script: &str, directory: &Path) -> Job {
    Job::shell(script).directory(directory).env("ROOT", crate::root())
}

/// The table, with what is here of it.
pub fn listed(directory: &Path) -> String {
    let row = |peer: &Peer| {
        let from = match peer.from {
            Apt(package) => format!("apt-get install {package}"),
            Built(script) => script.lines().next().unwrap_or_default().to_owned(),
            StandIn(_) => "a program of ours stands in".to_owned(),
        };
        let version = peer.version(directory).unwrap_or_else(|| "not here".to_owned());
        format!("{}: {version} ({from})", peer.name)
    };
    PEERS.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lines_need_is_in_the_table_which_has_nothing_else() {
        assert!(PEERS.is_sorted_by(|a, b| a.name < b.name));
        let needed: Vec<&str> = crate::lines().flat_map(|(_, line)| line.needs).copied().collect();
        let is_there = |name: &&str| *name == ROOT || PEERS.iter().any(|peer| peer.name == *name);
        assert!(needed.iter().all(is_there), "{needed:?}");
        let unused = PEERS.iter().find(|peer| !needed.contains(&peer.name));
        assert!(unused.is_none_or(|peer| panic!("nobody needs {}", peer.name)));
    }

    #[test]
    fn a_peer_is_built_once_and_one_that_cannot_be_had_is_named() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let built = peer("x", "cat made", Built("echo 1.0 >>made"));
        assert_eq!(built.version(directory.path()), None);
        assert_eq!(built.install(directory.path()), Ok(()));
        assert_eq!(built.version(directory.path()).as_deref(), Some("1.0"));
        let lost = peer("lost", "false", Built("exit 3")).install(directory.path());
        assert!(lost.is_err_and(|why| why.contains("lost cannot be had")));
        assert!(provide(&["nobody's"], directory.path()).is_err());
    }
}
