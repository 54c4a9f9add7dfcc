//! What the doctor claims, compared with what really happens: as root and as
//! an ordinary user, and once more after the command that it advises.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::prelude::*;
use crate::process::{Finished, own_user};
use crate::process::{User, users};

/// The same questions without any code of ours.
const SECOND_OPINION: &str = include_str!("doctor.py");

pub fn check(bench: &Bench) -> Res {
    let own = own_user()?;
    for user in users(bench)? {
        let id = user.id;
        bench.note("as user", id);
        let claims = user.doctor()?.json()?;
        user.examine(&claims)?;
        if own == 0 && id != 0 {
            bench.part("advice", user.follow(&claims));
        }
    }
    Ok(())
}

impl User {
    /// What the doctor says, in time and without leaving anything.
    fn doctor(&self) -> Res<Finished> {
        let seen = || {
            let all = [names("/sys/class/net"), names(self.bench.path(""))].concat();
            all.into_iter().collect::<BTreeSet<String>>()
        };
        let before = seen();
        let doctor = self.job(&self.bench.tool, "doctor --json").success()?;
        self.bench.same("left", &seen() - &before, BTreeSet::new());
        self.bench.within("seconds", doctor.seconds(), ..=2.0);
        Ok(doctor)
    }

    /// Holds what the doctor claims against whether anything is in the way when it is tried.
    fn examine(&self, claims: &Value) -> Res {
        self.bench.write("../opinion.py", SECOND_OPINION)?;
        let opinion = self.job("python3", "../opinion.py").json()?;
        let opinion = opinion.as_object().context("the second opinion is no object")?;
        let tried = opinion.iter().map(|(name, errno)| (&**name, *errno == 0));
        let listed = self.job(&self.bench.tool, "list networks --json").json()?;
        let here = listed.names("networks", |network| network["available"] == true);
        // With the rights this user has.
        let flags = if self.id == 0 { "--net true" } else { "--user --map-root-user --net true" };
        let limit = self.job("prlimit", "--nofile --output HARD --noheadings").success()?.stdout();
        let descriptors = limit.trim() == "unlimited" || limit.trim().parse::<u64>()? >= 10_064;
        let tried = tried.chain([
            ("PMU", has_core_pmu()),
            ("veth pair", here.contains(&"veth")),
            ("namespaces", self.job("unshare", flags).run()?.status.success()),
            ("descriptors", descriptors),
        ]);
        self.bench.ask("claims", claims, &json!(tried.collect::<BTreeMap<_, _>>()));
        Ok(())
    }

    /// Does what is advised for the kernel's events to this user's copy of the tool, and asks
    /// again.
    fn follow(&self, claims: &Value) -> Res<String> {
        let closed = |claims: &Value| query([claims, &Value::Null], CLOSED);
        let before = closed(claims)?;
        let Some(first) = before.first() else {
            self.bench.missing("the kernel is open to everybody: there is no advice");
            return Ok("none".to_owned());
        };
        let advice = first.word("remedy").split(';').next().unwrap_or_default();
        let command = advice.strip_prefix("sudo setcap ");
        let command = command.with_context(|| format!("the first advice is no setcap: {first}"))?;
        Job::of("setcap").words(command).success()?;
        let left = closed(&self.doctor()?.json()?)?;
        ensure!(left.is_empty(), "`setcap {command}` did not give {left:?}");
        Ok(format!("`setcap {command}` gave what it promised"))
    }
}

/// What of the kernel is closed to a user.
const CLOSED: &str = r#"("kernel events", "kernel sampling", "kernel symbols") as $name
                        | .findings[] | select(.name == $name) | select(.state != "ok")"#;

/// PMUs of cores: `cpu`, or those that name their processors.
fn has_core_pmu() -> bool {
    let sources = Path::new("/sys/bus/event_source/devices");
    names(sources).iter().any(|name| name == "cpu" || sources.join(name).join("cpus").exists())
}
