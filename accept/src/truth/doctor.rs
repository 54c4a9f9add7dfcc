//! What the doctor claims, compared with what really happens: as root and as
//! an ordinary user, and once more after the command that it advises.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::bench::names;
use crate::prelude::*;
use crate::process::{Finished, own_user};

/// A user of no rights on every system.
const NOBODY: u32 = 65534;

/// The same questions without any code of ours.
const SECOND_OPINION: &str = include_str!("doctor.py");

pub fn check(bench: &Bench) -> Res {
    let own = own_user()?;
    let users = if own == 0 { vec![0, NOBODY] } else { vec![own] };
    for id in users {
        let user = User::new(bench, id)?;
        bench.note("as user", id);
        let claims = user.examine(bench)?;
        if own == 0 && id != 0 {
            bench.part("advice", user.follow(&claims));
        }
    }
    Ok(())
}

/// A user with a copy of the tool and a home, which is the bench's own.
struct User {
    id: u32,
    bench: Bench,
}

impl User {
    fn new(bench: &Bench, id: u32) -> Res<User> {
        let room = format!("doctor-{id}");
        let mut own = bench.room(&format!("{room}/home"))?;
        own.tool = own.path("../iolens");
        let user = User { id, bench: own };
        let may = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let made = may(&user.bench.path(""), 0o777)
            .and_then(|()| fs::copy(&bench.tool, &user.bench.tool))
            .and_then(|_| may(&user.bench.tool, 0o755));
        made.map_err(|e| format!("cannot prepare {room}: {e}"))?;
        Ok(user)
    }

    /// A program of this user, with a home and a data directory of its own.
    fn run(&self, program: impl AsRef<Path>, words: &str) -> Res<Finished> {
        let id = self.id;
        let setpriv = match own_user()? == id {
            true => "setpriv --".to_owned(),
            false => format!("setpriv --reuid={id} --regid={id} --clear-groups --"),
        };
        let job = Job::of(&setpriv).arg(program.as_ref()).words(words);
        // Programs of the system: those of root's own path may be root's alone.
        let job = job.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        let home = self.bench.path("");
        let job = job.directory(&home).env("HOME", &home).env("XDG_DATA_HOME", home.join("data"));
        job.minutes(1).run()
    }

    fn doctor(&self) -> Res<Finished> {
        self.run(&self.bench.tool, "doctor --json")?.success()
    }

    /// What the doctor claims, held against what is so.
    fn examine(&self, check: &Check) -> Res<Value> {
        let seen = || {
            let all = [names("/sys/class/net"), names(self.bench.path(""))].concat();
            all.into_iter().collect::<BTreeSet<String>>()
        };
        let before = seen();
        let doctor = self.doctor()?;
        check.same("left", &seen() - &before, BTreeSet::new());
        let claims = doctor.json()?;
        check.note("findings", claims.list("findings").len());
        check.within("seconds", doctor.seconds(), ..=2.0);
        for (name, possible) in self.truth()? {
            let state = state(&claims, &name);
            let words = format!("said to be {state:?}, possible when tried: {possible}");
            check.judge(&name, !state.is_empty() && (state == "ok") == possible, words);
        }
        Ok(claims)
    }

    /// Names of findings, and whether nothing was in the way when tried.
    fn truth(&self) -> Res<Vec<(String, bool)>> {
        self.bench.write("../opinion.py", SECOND_OPINION)?;
        let opinion = self.run("python3", "../opinion.py")?.success()?.json()?;
        let said = opinion.as_object().ok_or("the second opinion is no object")?;
        let mut truth: Vec<(String, bool)> =
            said.iter().map(|(name, errno)| (name.clone(), *errno == 0)).collect();
        let listed = self.run(&self.bench.tool, "list networks --json")?.success()?.json()?;
        let here = listed.names("networks", |network| network["available"] == true);
        // With the rights this user has.
        let flags = if self.id == 0 { "--net true" } else { "--user --map-root-user --net true" };
        let limit = self.run("prlimit", "--nofile --output HARD --noheadings")?.success()?.stdout();
        let descriptors = limit.trim() == "unlimited"
            || limit.trim().parse::<u64>().map_err(|_| format!("prlimit said {limit}"))? >= 10_064;
        truth.extend([
            ("PMU".to_owned(), has_core_pmu()),
            ("veth pair".to_owned(), here.contains(&"veth")),
            ("namespaces".to_owned(), self.run("unshare", flags)?.status.success()),
            ("descriptors".to_owned(), descriptors),
        ]);
        Ok(truth)
    }

    /// Does what is advised for the kernel's events to this user's copy of the tool, and asks
    /// again.
    fn follow(&self, claims: &Value) -> Res<String> {
        let mut closed = vec!["kernel events", "kernel sampling", "kernel symbols"];
        closed.retain(|name| state(claims, name) != "ok");
        let Some(first) = closed.first() else {
            return Ok("nothing to do: the kernel is open to everybody".to_owned());
        };
        let advice = claims
            .find("findings", "name", first)
            .word("remedy")
            .split(';')
            .next()
            .unwrap_or_default();
        let Some(command) = advice.strip_prefix("sudo setcap ") else {
            return Err(format!("{first}: the first advice is no setcap: {advice}"));
        };
        Job::of("setcap").words(command).success()?;
        let claims = self.doctor()?.json()?;
        closed.retain(|name| state(&claims, name) != "ok");
        match closed.is_empty() {
            true => Ok(format!("`setcap {command}` gave what it promised")),
            false => Err(format!("`setcap {command}` did not give {}", closed.join(", "))),
        }
    }
}

fn state<'a>(claims: &'a Value, name: &str) -> &'a str {
    claims.find("findings", "name", name).word("state")
}

/// PMUs of cores: `cpu`, or those that name their processors.
fn has_core_pmu() -> bool {
    let sources = Path::new("/sys/bus/event_source/devices");
    names(sources).iter().any(|name| name == "cpu" || sources.join(name).join("cpus").exists())
}
