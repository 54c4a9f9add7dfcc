//! The other end on another machine: a run between two network namespaces that stand for two
//! hosts, through a real sshd; what becomes of it when sshd, a worker or the link goes; launchers.

use std::path::PathBuf;
use std::time::Instant;

use crate::prelude::*;
use crate::process::Running;

pub const FUNCTIONS: Functions = &[
    ("ssh", ssh),
    ("losses", losses),
    ("launchers", launchers),
    ("manifests", manifests),
    ("firewall", firewall),
    ("slow-link", slow_link),
];

/// How long a lost end may keep a run, s.
const LOST_LIMIT: u64 = 150;

/// How long a keeper that hears nothing may stay: a minute, and what it takes to look.
const LEFT_LIMIT: Duration = Duration::from_secs(75);

/// Workers, keepers and shells of ours that are still there, and folders with programs.
const LEFT: &str = "for pid in /proc/[0-9]*; do \
                    tr '\\0' ' ' <$pid/cmdline 2>/dev/null | \
                    grep -E '[i]olens worker|[w]orker --keep|[/]proc/self/exe worker'; \
                    done; ls -d /tmp/iolens.* 2>/dev/null; true";

/// Two hosts; they go with this, as a pid namespace goes with its first process.
struct Hosts<'a> {
    bench: &'a Bench,
    _running: Running,
    /// The first process of the first one.
    first: String,
    /// A process of the second one, as the first one sees it.
    far: String,
    folder: PathBuf,
}

impl Hosts<'_> {
    fn start<'a>(bench: &'a Bench, name: &str) -> Res<Hosts<'a>> {
        let folder = bench.path(name);
        fs::create_dir_all(&folder)?;
        let apart = "unshare --net --mount --pid --fork --mount-proc --kill-child sh -c";
        let job = Job::of(apart).arg(include_str!("remote/hosts.sh")).arg("sh").arg(&folder);
        let mut running = job.start()?;
        running.wait_for("ready", 60)?;
        let first = fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.id()))?;
        let first = first.split_whitespace().next().context("the first host has no process")?;
        let far = fs::read_to_string(folder.join("far.pid"))?.trim().to_owned();
        Ok(Hosts { bench, _running: running, first: first.to_owned(), far, folder })
    }

    /// A command on the first host.
    fn here(&self) -> Job {
        self.bench.at_home(Job::of(format!("nsenter -t {} -n -m -p --", self.first)))
    }

    /// A command on the second host.
    fn there(&self) -> Job {
        self.here().words(format!("nsenter -t {} -n --", self.far))
    }

    /// The tool on the first host.
    fn iolens(&self, words: &str) -> Job {
        self.here().arg(&self.bench.tool).words(words)
    }

    /// A run to the second host by a launcher.
    fn run_by(&self, peer: &str, more: &str) -> Job {
        let run = "run net --methods send_staged,sendmsg_iov --threads 1 --json --progress plain";
        self.iolens(run).arg("--peer").arg(peer).words(more)
    }

    /// The same, over ssh.
    fn run(&self, more: &str) -> Job {
        self.run_by(&format!("ssh -F {} far", self.folder.join("config").display()), more)
    }

    fn slices(&self) -> Res<Value> {
        self.iolens("export last --format json --rows slices").json()
    }

    /// What of ours is left on either: processes of this build, and what was brought there.
    fn left(&self) -> Res<String> {
        Ok(self.here().words("sh -c").arg(LEFT).success()?.stdout())
    }

    /// Nothing may be left.
    fn nothing_left(&self, check: &Check) -> Res {
        check.same("left", self.left()?, "");
        Ok(())
    }
}

fn ssh(bench: &Bench) -> Res {
    let hosts = Hosts::start(bench, "hosts")?;
    for direction in ["tx", "rx"] {
        let more = format!("--sizes 1KiB,64KiB --passes 4 --local-end {direction}");
        let json = hosts.run(&more).minutes(10).json()?;
        bench.ask("a run", &json, &json!(direction));
        bench.ask("slices", &hosts.slices()?, &Value::Null);
        hosts.nothing_left(bench)?;
    }
    Ok(())
}

/// What is taken away in the middle of a run, in words of a shell on the second host.
const LOSSES: [(&str, &str); 3] = [
    ("the sshd of the session", "pkill -KILL -f 'sshd: root'"),
    // Each trial has its own, and between two there is none.
    ("the worker there", "until pkill -KILL -f '/proc/self/exe worker$'; do :; done"),
    ("the link", "ip link del far"),
];

fn losses(bench: &Bench) -> Res {
    for (at, (what, script)) in LOSSES.into_iter().enumerate() {
        let hosts = Hosts::start(bench, &format!("hosts-{at}"))?;
        let mut run = hosts.run("--sizes 1KiB --passes 60 --rounds 60").minutes(10).start()?;
        run.wait_for("committed: pass 2", 120)?;
        hosts.there().words("sh -c").arg(script).run()?;
        let failed = run.wait_for("failed:", LOST_LIMIT)?;
        bench.note(format!("without {what}"), failed.trim());
        let json = run.finish()?.json().unwrap_or_default();
        bench.said("the run", json.word("run/end/stopped_by"));
        let begin = Instant::now();
        while !hosts.left()?.is_empty() && begin.elapsed() <= LEFT_LIMIT {}
        bench.note("seconds later", begin.elapsed().as_secs());
        hosts.nothing_left(bench)?;
    }
    Ok(())
}

/// An address of the link that nobody answers at, as behind a firewall that drops.
const DROPPED: &str = "10.77.0.99";

/// Control comes through, data does not.
fn firewall(bench: &Bench) -> Res {
    let hosts = Hosts::start(bench, "hosts")?;
    let neighbour = format!("ip neigh add {DROPPED} lladdr 02:00:00:00:00:99 dev near");
    hosts.here().words(&neighbour).success()?;
    let more = format!("--sizes 1KiB --passes 1 --peer-address {DROPPED}");
    let done = hosts.run(&more).minutes(3).run()?;
    bench.same("exit code", done.status.code(), Some(4));
    let named = !done.noted("a firewall lets").is_empty();
    bench.judge("it says", named, done.stderr());
    hosts.nothing_left(bench)
}

pub fn strangers(bench: &Bench) -> Res {
    let hosts = Hosts::start(bench, "hosts")?;
    let run = hosts.run("--sizes 1KiB --passes 6 --rounds 200").minutes(10).start()?;
    let stranger = hosts.here().words("python3 -c").arg(include_str!("remote/stranger.py"));
    let made = stranger.arg(&hosts.far).arg("6").success()?.stdout();
    bench.judge("connections of strangers", made.trim() != "0", made);
    bench.ask("a run", &run.finish()?.json()?, &Value::Null);
    bench.ask("slices", &hosts.slices()?, &Value::Null);
    Ok(())
}

/// Launchers that other programs stand in for.
const STAND_INS: [&str; 2] = ["srun", "kubectl"];

/// The commands that docs/clusters.md shows, with programs that take the flags of srun(1) and
/// kubectl(1) and start what they are given in the other namespace.
fn launchers(bench: &Bench) -> Res {
    let hosts = Hosts::start(bench, "hosts")?;
    let guide = fs::read_to_string(crate::root().join("docs/clusters.md"))?;
    let named = guide.split("--peer '").skip(1).filter_map(|rest| rest.split('\'').next());
    let is_stood_in = |peer: &&str| STAND_INS.iter().any(|program| peer.starts_with(program));
    let stood_in: Vec<&str> = named.filter(is_stood_in).collect();
    for program in STAND_INS {
        let shown = stood_in.iter().filter(|peer| peer.starts_with(program)).count();
        bench.within(format!("{program} in the guide"), shown, 1..);
    }
    let others = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{others}", bench.peers.display());
    // The last needs nobody to stand in for it.
    for peer in stood_in.into_iter().chain(["ip netns exec far"]) {
        let job = hosts.run_by(peer, "--sizes 1KiB --passes 2").minutes(3);
        let json = job.env("PATH", &path).env("FAR_PID", &hosts.far).json()?;
        bench.ask("a run", &json, &json!(peer));
        hosts.nothing_left(bench)?;
    }
    Ok(())
}

fn manifests(bench: &Bench) -> Res {
    let manifests = crate::root().join("docs/iolens-pods.yaml");
    let validate = Job::new(bench.peers.join("venv/bin/kubernetes-validate")).arg("--strict");
    let done = validate.arg(&manifests).run()?;
    let said = [done.stdout(), done.stderr()].concat();
    let objects =
        fs::read_to_string(&manifests)?.lines().filter(|line| line.starts_with("kind:")).count();
    bench.within("objects", objects, 1..);
    bench.same("passed", said.matches("passed for resource ").count(), objects);
    bench.judge("kubernetes-validate", done.status.success(), said);
    Ok(())
}

fn slow_link(bench: &Bench) -> Res {
    let hosts = Hosts::start(bench, "hosts")?;
    let slow = "tc qdisc add dev near root tbf rate 8mbit burst 32kbit latency 400ms";
    hosts.here().words(slow).success()?;
    let done = hosts.run("--sizes 1KiB,256KiB --passes 2").minutes(20).success()?;
    bench.note("seconds", done.seconds());
    bench.same("timed out", done.noted("time limit"), "");
    bench.ask("a run", &done.json()?, &Value::Null);
    bench.ask("slices", &hosts.slices()?, &Value::Null);
    hosts.nothing_left(bench)
}
