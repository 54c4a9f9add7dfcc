//! Issue 9: a run between two network namespaces that stand for two hosts, through a real sshd;
//! what becomes of it when sshd, a worker or the link goes; and strangers at the port for data.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::{Job, Running, need};
use super::{Bench, Judged, Outcome};

/// Makes both and stays.
const SCRIPT: &str = include_str!("hosts.sh");

/// Connects without being asked.
const STRANGER: &str = include_str!("stranger.py");

/// How long a lost end may keep a run.
const LOST_LIMIT: Duration = Duration::from_secs(150);

const ARMS: &str = "send_staged,sendmsg_iov";

/// Two hosts; they go with this.
pub(crate) struct Hosts {
    running: Option<Running>,
    /// The first process of the first one.
    first: u32,
    /// A process of the second one, as the first one sees it.
    pub(crate) far: String,
    pub(crate) folder: PathBuf,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // The pid namespace goes with its first process.
        let _ = self.running.take().map(Running::kill);
    }
}

impl Hosts {
    pub(crate) fn start(bench: &Bench, name: &str) -> Result<Hosts, String> {
        for (program, package) in [
            ("sshd", "openssh-server"),
            ("ssh", "openssh-client"),
            ("ip", "iproute2"),
            ("nsenter", "util-linux"),
            ("python3", "python3"),
        ] {
            need(program, package)?;
        }
        let folder = bench.home(name)?.join("hosts");
        fs::create_dir_all(&folder).map_err(|e| format!("cannot create {folder:?}: {e}"))?;
        let path = folder.display().to_string();
        let apart = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
        let running = Job::new("unshare")
            .args(&apart)
            .args(&["sh", "-c", SCRIPT, "sh", &path])
            .limit_minutes(30)
            .start()?;
        running.wait_for_line("ready", Duration::from_secs(60))?;
        let children = format!("/proc/{0}/task/{0}/children", running.id());
        let first = fs::read_to_string(&children).map_err(|e| format!("{children}: {e}"))?;
        let first = first.split_whitespace().next().and_then(|pid| pid.parse().ok());
        let first = first.ok_or("the first host has no process")?;
        let far = fs::read_to_string(folder.join("far.pid")).map_err(|e| e.to_string())?;
        Ok(Hosts { running: Some(running), first, far: far.trim().to_owned(), folder })
    }

    /// A command on the first host.
    pub(crate) fn here(&self, bench: &Bench, args: &[&str]) -> Result<Job, String> {
        let first = self.first.to_string();
        let job = Job::new("nsenter").args(&["-t", &first, "-n", "-m", "-p", "--"]).args(args);
        bench.at_home("hosts", job)
    }

    /// A command on the second host.
    fn there(&self, bench: &Bench, args: &[&str]) -> Result<Job, String> {
        let inside = ["nsenter", "-t", &self.far, "-n", "--"];
        self.here(bench, &[&inside[..], args].concat())
    }

    fn peer(&self) -> String {
        format!("ssh -F {} far", self.folder.join("config").display())
    }

    /// A run to the second host, over ssh.
    pub(crate) fn run(&self, bench: &Bench, more: &[&str]) -> Result<Job, String> {
        self.run_by(bench, &self.peer(), more)
    }

    /// A run to the second host by a launcher.
    pub(crate) fn run_by(&self, bench: &Bench, peer: &str, more: &[&str]) -> Result<Job, String> {
        let tool = bench.tool.display().to_string();
        let args = [
            &tool,
            "run",
            "net",
            "--peer",
            peer,
            "--methods",
            ARMS,
            "--threads",
            "1",
            "--json",
            "--progress",
            "plain",
        ];
        self.here(bench, &[&args[..], more].concat())
    }

    /// What is left in the end, and when that was.
    fn left_at_last(&self, bench: &Bench) -> Result<(Vec<String>, Duration), String> {
        let begin = Instant::now();
        loop {
            let left = self.left(bench)?;
            if left.is_empty() || begin.elapsed() > LEFT_LIMIT {
                return Ok((left, begin.elapsed()));
            }
        }
    }

    /// What of ours is left on either: processes of this build, and what was brought there.
    pub(crate) fn left(&self, bench: &Bench) -> Result<Vec<String>, String> {
        let found = self.here(bench, &["sh", "-c", LEFT])?.run()?.success()?;
        Ok(found.stdout().lines().map(str::to_owned).collect())
    }
}

/// How long a keeper that hears nothing may stay: a minute, and what it takes to look.
const LEFT_LIMIT: Duration = Duration::from_secs(75);

/// Workers, keepers and shells of ours that are still there, and folders with programs.
const LEFT: &str = "for pid in /proc/[0-9]*; do \
                    tr '\\0' ' ' <$pid/cmdline 2>/dev/null | grep -E '[i]olens worker|[w]orker --keep'; \
                    done; ls -d /tmp/iolens.* 2>/dev/null; true";

/// `2 trials ok, counted at both ends`.
pub(crate) fn whole(bench: &Bench) -> Judged {
    let hosts = Hosts::start(bench, "hosts-whole")?;
    let (mut evidence, mut passes) = (Vec::new(), true);
    for direction in ["tx", "rx"] {
        let more = ["--sizes", "1KiB,64KiB", "--passes", "4", "--local-end", direction];
        let done = hosts.run(bench, &more)?.limit_minutes(10).run()?.success()?;
        let json: Value = serde_json::from_str(&done.stdout()).map_err(|e| e.to_string())?;
        let far = &json["run"]["far"];
        let cells = json["cells"].as_array().map_or(0, Vec::len);
        let counted = both_counted(&hosts, bench)?;
        let left = hosts.left(bench)?;
        passes &= far["direction"] == direction && cells > 0 && counted.0 > 0 && counted.1 == 0;
        passes &= left.is_empty();
        evidence.push(format!(
            "{direction}: {cells} rows by `{}` to {}, {} slices with calls and CPU time of both \
             ends, {} without; left: {left:?}",
            far["launcher"].as_str().unwrap_or("?"),
            far["address"].as_str().unwrap_or("?"),
            counted.0,
            counted.1,
        ));
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Slices of the last run that have counts of both ends, and that have not.
fn both_counted(hosts: &Hosts, bench: &Bench) -> Result<(usize, usize), String> {
    let tool = bench.tool.display().to_string();
    let args = [&tool, "export", "last", "--format", "json", "--rows", "slices"];
    let done = hosts.here(bench, &args)?.limit_minutes(2).run()?.success()?;
    let slices = measured_slices(&done.stdout())?;
    let is_counted = |slice: &&Value| {
        let has = |name: &str| slice[name].as_u64().is_some_and(|value| value > 0);
        ["tx_calls", "rx_calls", "tx_cpu_ns", "rx_cpu_ns"].into_iter().all(has)
    };
    let counted = slices.iter().filter(is_counted).count();
    Ok((counted, slices.len() - counted))
}

/// Of exported slices those that count.
pub(crate) fn measured_slices(json: &str) -> Result<Vec<Value>, String> {
    let json: Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let slices = json["slices"].as_array().into_iter().flatten();
    Ok(slices.filter(|slice| slice["kind"] == "measured").cloned().collect())
}

/// What is taken away in the middle of a run, in words of a shell, on which host, and what the
/// trial has to say of it.
const LOSSES: [(&str, bool, &str); 3] = [
    ("the sshd of the session", true, "pkill -KILL -f 'sshd: root'"),
    // Each trial has its own, and between two there is none.
    ("the worker there", true, "until pkill -KILL -f '/proc/self/exe worker$'; do :; done"),
    ("the link", true, "ip link del far"),
];

pub(crate) fn losses(bench: &Bench) -> Judged {
    let (mut evidence, mut passes) = (Vec::new(), true);
    for (at, (what, there, words)) in LOSSES.into_iter().enumerate() {
        let hosts = Hosts::start(bench, &format!("hosts-loss-{at}"))?;
        let run = hosts.run(bench, &["--sizes", "1KiB", "--passes", "60", "--rounds", "60"])?;
        let run = run.limit_minutes(10).start()?;
        run.wait_for_note("committed: pass 2", Duration::from_secs(120))?;
        let took_away = ["sh", "-c", words];
        let job =
            if there { hosts.there(bench, &took_away)? } else { hosts.here(bench, &took_away)? };
        job.run()?;
        let failed = run.wait_for_note("failed:", LOST_LIMIT)?;
        let done = run.finish()?;
        let json: Value = serde_json::from_str(&done.stdout()).unwrap_or(Value::Null);
        let ended = json["run"]["end"]["stopped_by"].as_str().unwrap_or("?").to_owned();
        let (left, after) = hosts.left_at_last(bench)?;
        passes &= left.is_empty() && ended != "?";
        let reason = failed.split_once("failed:").map_or("", |(_, why)| why).trim();
        evidence.push(format!(
            "without {what}: {reason}; the run: {ended}; left {after:.0?} later: {left:?}"
        ));
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// An address of the link that nobody answers at, as behind a firewall that drops.
const DROPPED: &str = "10.77.0.99";

/// Control comes through, data does not.
pub(crate) fn firewall(bench: &Bench) -> Judged {
    let hosts = Hosts::start(bench, "hosts-firewall")?;
    let nobody = ["lladdr", "02:00:00:00:00:99", "dev", "near"];
    let neighbour = [&["ip", "neigh", "add", DROPPED][..], &nobody].concat();
    hosts.here(bench, &neighbour)?.run()?.success()?;
    let more = ["--sizes", "1KiB", "--passes", "1", "--peer-address", DROPPED];
    let done = hosts.run(bench, &more)?.limit_minutes(3).run()?;
    let said = done.stderr();
    let named = said.lines().find(|line| line.contains("a firewall lets")).unwrap_or("").trim();
    let left = hosts.left(bench)?;
    let evidence =
        format!("{:.1} s, {}: {named}; left: {left:?}", done.elapsed.as_secs_f64(), done.status);
    let passes = done.status.code() == Some(4) && !named.is_empty() && left.is_empty();
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(format!("{evidence}\n{said}")) })
}

pub(crate) fn strangers(bench: &Bench) -> Judged {
    let hosts = Hosts::start(bench, "hosts-strangers")?;
    let run = hosts.run(bench, &["--sizes", "1KiB", "--passes", "6", "--rounds", "200"])?;
    let run = run.limit_minutes(10).start()?;
    let far = hosts.far.clone();
    let stranger = hosts.here(bench, &["python3", "-c", STRANGER, &far, "6"])?.start()?;
    let made = stranger.finish()?.success()?.stdout();
    let answer: Value = serde_json::from_str(&run.finish()?.stdout()).map_err(|e| e.to_string())?;
    let rejected = answer["rejected"].as_array().into_iter().flatten();
    let said: BTreeSet<&str> = rejected.filter_map(|trial| trial["reason"].as_str()).collect();
    let said: Vec<&str> = said.into_iter().filter(|reason| reason.contains("not ours")).collect();
    let tool = bench.tool.display().to_string();
    let args = [&tool, "export", "last", "--format", "json", "--rows", "slices"];
    let done = hosts.here(bench, &args)?.limit_minutes(2).run()?.success()?;
    let slices = measured_slices(&done.stdout())?;
    let of = |slice: &Value, name: &str| slice[name].as_u64().unwrap_or(0);
    let wrong = slices.iter().filter(|slice| {
        of(slice, "tx_bytes") != of(slice, "rx_bytes")
            || of(slice, "tx_bytes") != of(slice, "tx_messages") * 1024
    });
    let wrong = wrong.count();
    let evidence = format!(
        "{} connections of strangers; {} slices, {wrong} with other bytes than were sent; it says: \
         {}",
        made.trim(),
        slices.len(),
        said.join("; ")
    );
    let passes = wrong == 0 && !slices.is_empty() && !said.is_empty() && made.trim() != "0";
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}
