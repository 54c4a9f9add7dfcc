//! What the doctor claims, compared with what really happens: as root and as
//! an ordinary user, and once more after the command that it advises.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::process::{Finished, Job, need};
use super::{Bench, Judged, Outcome};

/// A user of no rights on every system.
const NOBODY: u32 = 65534;

/// The longest that the doctor may take.
const LIMIT: Duration = Duration::from_secs(2);

/// The same questions without any code of ours.
const SECOND_OPINION: &str = include_str!("doctor.py");

pub(crate) fn check(bench: &Bench) -> Judged {
    for (program, package) in [("python3", "python3"), ("setpriv", "util-linux")] {
        if let Err(missing) = need(program, package) {
            return Ok(Outcome::Skip(missing));
        }
    }
    let own = super::process::own_user()?;
    let users = if own == 0 { vec![0, NOBODY] } else { vec![own] };
    let (mut evidence, mut wrong) = (Vec::new(), Vec::new());
    for user in users {
        let patient = Patient::new(bench, user)?;
        let examined = patient.examine()?;
        evidence.push(examined.evidence());
        wrong.extend(examined.wrong());
        if own == 0 && user != 0 {
            match patient.cured(&examined)? {
                Ok(how) => evidence.push(how),
                Err(why) => wrong.push(why),
            }
        }
    }
    if wrong.is_empty() {
        return Ok(Outcome::Pass(evidence.join("\n")));
    }
    Ok(Outcome::Fail(format!("{}\n{}", wrong.join("\n"), evidence.join("\n"))))
}

/// A user with a copy of the tool and a home.
struct Patient {
    user: u32,
    tool: PathBuf,
    home: PathBuf,
}

/// What the doctor said of one, and what is so.
struct Examined {
    user: u32,
    took: Duration,
    claims: Value,
    /// Names of findings, and whether nothing was in the way when tried.
    truth: Vec<(String, bool)>,
    left: Vec<String>,
}

impl Patient {
    fn new(bench: &Bench, user: u32) -> Result<Patient, String> {
        let place = bench.scratch.path().join(format!("doctor-{user}"));
        let patient = Patient { user, tool: place.join("iolens"), home: place.join("home") };
        let made = fs::create_dir_all(&patient.home)
            .and_then(|()| fs::set_permissions(&patient.home, fs::Permissions::from_mode(0o777)))
            .and_then(|()| fs::copy(&bench.tool, &patient.tool))
            .and_then(|_| fs::set_permissions(&patient.tool, fs::Permissions::from_mode(0o755)));
        made.map_err(|e| format!("cannot prepare {}: {e}", place.display()))?;
        Ok(patient)
    }

    /// A program of this user, with a home and a data directory of its own.
    fn run(&self, program: &str, args: &[&str]) -> Result<Finished, String> {
        let id = self.user.to_string();
        let (reuid, regid) = (format!("--reuid={id}"), format!("--regid={id}"));
        let mut words = vec!["--clear-groups", "--", program];
        if super::process::own_user()? != self.user {
            words.splice(0..0, [reuid.as_str(), regid.as_str()]);
        } else {
            words.remove(0);
        }
        words.extend(args);
        let job = Job::new("setpriv").args(&words).directory(&self.home);
        // Programs of the system: those of root's own path may be root's alone.
        let job = job.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        job.env("HOME", &self.home).env("XDG_DATA_HOME", self.home.join("data")).run()
    }

    fn json(&self, program: &str, args: &[&str]) -> Result<(Value, Duration), String> {
        let finished = self.run(program, args)?.success()?;
        let json = serde_json::from_str(&finished.stdout());
        let json = json.map_err(|e| format!("`{program}` printed no JSON: {e}"))?;
        Ok((json, finished.elapsed))
    }

    fn examine(&self) -> Result<Examined, String> {
        let tool = self.tool.display().to_string();
        let before = devices();
        let (claims, took) = self.json(&tool, &["doctor", "--json"])?;
        let mut left: Vec<String> =
            devices().into_iter().filter(|device| !before.contains(device)).collect();
        left.extend(names(&self.home));
        let script = self.tool.with_file_name("opinion.py");
        fs::write(&script, SECOND_OPINION).map_err(|e| format!("cannot write {script:?}: {e}"))?;
        let (opinion, _) = self.json("python3", &[&script.display().to_string()])?;
        let said = opinion.as_object().ok_or("the second opinion is no object")?;
        let mut truth: Vec<(String, bool)> =
            said.iter().map(|(name, errno)| (name.clone(), errno == 0)).collect();
        truth.push(("PMU".to_owned(), has_core_pmu()));
        let (listed, _) = self.json(&tool, &["list", "networks", "--json"])?;
        let topologies = listed["networks"].as_array().into_iter().flatten();
        let mut veth = topologies.filter(|topology| topology["name"] == "veth");
        let veth = veth.next().is_some_and(|topology| topology["available"] == true);
        truth.push(("veth pair".to_owned(), veth));
        truth.push(("namespaces".to_owned(), self.makes_namespaces()?));
        truth.push(("descriptors".to_owned(), self.descriptors()? >= 10_064));
        Ok(Examined { user: self.user, took, claims, truth, left })
    }

    /// unshare(1) with the rights this user has.
    fn makes_namespaces(&self) -> Result<bool, String> {
        let flags: &[&str] =
            if self.user == 0 { &["--net"] } else { &["--user", "--map-root-user", "--net"] };
        let args: Vec<&str> = flags.iter().copied().chain(["true"]).collect();
        Ok(self.run("unshare", &args)?.status.success())
    }

    fn descriptors(&self) -> Result<u64, String> {
        let said = self.run("sh", &["-c", "ulimit -Hn"])?.success()?.stdout();
        if said.trim() == "unlimited" {
            return Ok(u64::MAX);
        }
        said.trim().parse().map_err(|_| format!("`ulimit -Hn` said `{}`", said.trim()))
    }

    /// Does what is advised for the kernel's events to this user's copy of the
    /// tool, and asks again. The inner error is a claim that proved wrong.
    fn cured(&self, before: &Examined) -> Result<Result<String, String>, String> {
        const CURED: [&str; 3] = ["kernel events", "kernel sampling", "kernel symbols"];
        let ill: Vec<&str> =
            CURED.into_iter().filter(|name| before.state(name) != Some("ok")).collect();
        let Some(first) = ill.first() else {
            return Ok(Ok("nothing to cure: the kernel is open to everybody".to_owned()));
        };
        let remedy = before.part(first, "remedy").unwrap_or_default();
        let command = remedy.split(';').next().unwrap_or_default();
        let Some(command) = command.strip_prefix("sudo setcap ") else {
            return Ok(Err(format!("{first}: the first advice is no setcap: {remedy}")));
        };
        need("setcap", "libcap2-bin")?;
        let args: Vec<&str> = command.split(' ').collect();
        Job::new("setcap").args(&args).run()?.success()?;
        let (claims, _) = self.json(&self.tool.display().to_string(), &["doctor", "--json"])?;
        let after = Examined { claims, ..before.empty() };
        let still: Vec<&str> =
            ill.iter().copied().filter(|name| after.state(name) != Some("ok")).collect();
        Ok(match still.is_empty() {
            true => Ok(format!("`setcap {command}` gave {}", ill.join(", "))),
            false => Err(format!("`setcap {command}` did not give {}", still.join(", "))),
        })
    }
}

impl Examined {
    fn empty(&self) -> Examined {
        Examined {
            user: self.user,
            took: self.took,
            claims: Value::Null,
            truth: Vec::new(),
            left: Vec::new(),
        }
    }

    fn part(&self, name: &str, part: &str) -> Option<&str> {
        let findings = self.claims["findings"].as_array()?;
        findings.iter().find(|finding| finding["name"] == name)?[part].as_str()
    }

    fn state(&self, name: &str) -> Option<&str> {
        self.part(name, "state")
    }

    fn evidence(&self) -> String {
        let findings = self.claims["findings"].as_array().map_or(0, Vec::len);
        let ok = self.truth.iter().filter(|(_, so)| *so).count();
        format!(
            "uid {}: {findings} findings in {:.2} s; {} claims tried again, {ok} of these possible",
            self.user,
            self.took.as_secs_f64(),
            self.truth.len(),
        )
    }

    /// Claims that are not so, and promises not kept.
    fn wrong(&self) -> Vec<String> {
        let user = self.user;
        let mut wrong = Vec::new();
        for (name, so) in &self.truth {
            match self.state(name) {
                None => wrong.push(format!("uid {user}: nothing is said of {name}")),
                Some(state) if (state == "ok") != *so => {
                    wrong.push(format!("uid {user}: {name} is said to be {state}, tried: {so}"));
                }
                Some(_) => {}
            }
        }
        if self.took > LIMIT {
            wrong.push(format!("uid {user}: it took {:.1} s", self.took.as_secs_f64()));
        }
        if !self.left.is_empty() {
            wrong.push(format!("uid {user}: it left {}", self.left.join(", ")));
        }
        wrong
    }
}

/// PMUs of cores: `cpu`, or those that name their processors.
fn has_core_pmu() -> bool {
    let sources = Path::new("/sys/bus/event_source/devices");
    names(sources).iter().any(|name| name == "cpu" || sources.join(name).join("cpus").exists())
}

fn devices() -> Vec<String> {
    names(Path::new("/sys/class/net"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
