//! Issue 9: the commands that docs/clusters.md shows, with programs that take the flags of srun(1)
//! and kubectl(1) and start what they are given in the other namespace; and its manifests, against
//! the schemas that Kubernetes publishes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::hosts::Hosts;
use super::process::{Job, install, need};
use super::{Bench, Judged, Outcome};

const STAND_IN: &str = include_str!("launchers.py");

const NAMES: [&str; 2] = ["srun", "kubectl"];

const GUIDE: &str = "docs/clusters.md";

const MANIFESTS: &str = "docs/iolens-pods.yaml";

/// Needs nobody to stand in for it.
const NAMESPACE: &str = "ip netns exec far";

pub(crate) fn check(bench: &Bench) -> Judged {
    let hosts = Hosts::start(bench, "hosts-launchers")?;
    let programs = hosts.folder.join("programs");
    fs::create_dir_all(&programs).map_err(|e| format!("cannot create {programs:?}: {e}"))?;
    for name in NAMES {
        let path = programs.join(name);
        let write = fs::write(&path, format!("#!/usr/bin/env python3\n{STAND_IN}"));
        let runs = fs::Permissions::from_mode(0o755);
        write.and_then(|()| fs::set_permissions(&path, runs)).map_err(|e| e.to_string())?;
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let (mut evidence, mut passes) = (Vec::new(), true);
    let peers = peers()?;
    for peer in peers.iter().map(String::as_str).chain([NAMESPACE]) {
        let job = hosts.run_by(bench, peer, &["--sizes", "1KiB", "--passes", "2"])?;
        let job = job.env("PATH", &path).env("FAR_PID", &hosts.far);
        let done = job.limit_minutes(3).run()?.success()?;
        let json: Value = serde_json::from_str(&done.stdout()).map_err(|e| e.to_string())?;
        let cells = json["cells"].as_array().map_or(0, Vec::len);
        let left = hosts.left(bench)?;
        passes &= cells > 0 && left.is_empty() && json["run"]["far"]["launcher"] == peer;
        evidence.push(format!("`{peer}`: {cells} rows; left: {left:?}"));
    }
    passes &= NAMES.iter().all(|name| peers.iter().any(|peer| peer.starts_with(name)));
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// What the guide names behind --peer, of launchers that are stood in for.
fn peers() -> Result<Vec<String>, String> {
    let guide = crate::root().join(GUIDE);
    let text = fs::read_to_string(&guide).map_err(|e| format!("{}: {e}", guide.display()))?;
    let named = text.split("--peer '").skip(1).filter_map(|rest| rest.split('\'').next());
    let stood_in = |peer: &&str| NAMES.iter().any(|name| peer.starts_with(name));
    Ok(named.filter(stood_in).map(str::to_owned).collect())
}

pub(crate) fn manifests(bench: &Bench) -> Judged {
    need("python3", "python3")?;
    let home = bench.home("manifests")?.join("venv");
    let (folder, manifests) = (home.display().to_string(), crate::root().join(MANIFESTS));
    let venv = || Job::new("python3").args(&["-m", "venv", &folder]).limit_minutes(2).run();
    if !venv()?.status.success() {
        install("python3-venv")?;
        venv()?.success()?;
    }
    let words = ["install", "--quiet", "kubernetes-validate"];
    Job::new(home.join("bin/pip")).args(&words).limit_minutes(3).run()?.success()?;
    let validate = ["--strict", &manifests.display().to_string()];
    let done = Job::new(home.join("bin/kubernetes-validate")).args(&validate).run()?;
    let said = [done.stdout(), done.stderr()].concat();
    let passed: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once("passed for resource "))
        .map(|(_, r)| r)
        .collect();
    let objects = fs::read_to_string(&manifests).map_err(|e| e.to_string())?;
    let objects = objects.lines().filter(|line| line.starts_with("kind:")).count();
    let evidence = passed.join("; ");
    let passes = done.status.success() && passed.len() == objects && objects > 0;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(said) })
}
