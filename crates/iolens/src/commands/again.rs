//! The one door of whatever measures a stored plan: `resume`, `confirm`, `explain` and
//! `compare --rerun`. A stored run is data, whoever wrote it: its plan is checked as if it had
//! been typed, and what it does besides measuring takes consent from the command line.

use iolens_model::copy::External;
use iolens_model::file::CacheState;
use iolens_model::host::HostFacts;
use iolens_model::origin::HOST_NAME;
use iolens_model::plan::{Axes, Plan};
use iolens_model::run::RunHeader;
use iolens_model::secret;

use crate::args::{Allow, Permission};
use crate::failure::{Failure, unusable, usage};
use crate::{request, runner};

/// Whether `plan`, which is that of a stored run or made from it, may be measured here.
/// `doing` is the verb of what is about to be done with the run.
pub(crate) fn admit(
    doing: &str,
    header: &RunHeader,
    plan: &Plan,
    host: &HostFacts,
    allow: &Allow,
) -> Result<(), Failure> {
    refuse_imported(doing, header)?;
    refuse_other_machine(doing, header, host)?;
    // Before anything that the plan names is looked at: whether it is there is an answer too.
    refuse_without_consent(doing, header, plan, allow)?;
    request::check_stored(plan).map_err(|why| {
        usage!("cannot {doing} run {}: its plan cannot be measured\n  {}", header.id, why.message)
    })?;
    runner::check_machine(plan, host)
}

/// A run that was imported belongs where it was measured.
fn refuse_imported(doing: &str, header: &RunHeader) -> Result<(), Failure> {
    let Some(origin) = &header.origin else { return Ok(()) };
    Err(usage!(
        "cannot {doing} run {}: it was measured on {} and imported from {}\n  numbers of two \
         machines do not belong into one run: do so where it was measured, or run its plan here \
         (`iolens show {} --json` has the command)",
        header.id,
        origin.host,
        origin.path,
        header.id
    ))
}

/// A database may be of another machine without having been imported. The same boot is the
/// same machine; after another boot, the host name and the CPU model tell.
fn refuse_other_machine(doing: &str, header: &RunHeader, here: &HostFacts) -> Result<(), Failure> {
    let same =
        |(group, name): (&str, &str)| header.host.fact(group, name) == here.fact(group, name);
    if same(("kernel", "boot id")) || (same(HOST_NAME) && same(("cpu", "model"))) {
        return Ok(());
    }
    let of = |host: &HostFacts| {
        format!("{}, {}", host.fact(HOST_NAME.0, HOST_NAME.1), host.fact("cpu", "model"))
    };
    Err(unusable!(
        "cannot {doing} run {}: it was measured on another machine\n  the run: {}\n  here: {}\n  \
         run its plan here instead (`iolens show {} --json` has the command)",
        header.id,
        of(&header.host),
        of(here),
        header.id
    ))
}

fn refuse_without_consent(
    doing: &str,
    header: &RunHeader,
    plan: &Plan,
    allow: &Allow,
) -> Result<(), Failure> {
    let missing: Vec<(Permission, String)> =
        takes(plan).into_iter().filter(|(permission, _)| !allow.allows(*permission)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let deeds: Vec<&str> = missing.iter().map(|(_, deed)| deed.as_str()).collect();
    let mut words: Vec<Permission> = missing.iter().map(|(permission, _)| *permission).collect();
    words.dedup();
    let words: Vec<String> = words.iter().map(Permission::to_string).collect();
    Err(usage!(
        "cannot {doing} run {}: its plan does more than measure: it {}\n  if that is what you \
         want, add --allow {}",
        header.id,
        deeds.join("; it "),
        words.join(",")
    ))
}

/// What a plan does besides measuring, by the permission that it takes.
fn takes(plan: &Plan) -> Vec<(Permission, String)> {
    let (file, dir, evict, cache) = match &plan.axes {
        Axes::File(axes) => (axes.file.as_ref(), axes.dir.as_ref(), axes.evict, &axes.cache[..]),
        Axes::Copy(axes) => (axes.file.as_ref(), axes.dir.as_ref(), axes.evict, &axes.cache[..]),
        Axes::Write(axes) => (None, axes.dir.as_ref(), false, &[][..]),
        Axes::Syscall(axes) => (axes.file.as_ref(), None, false, &[][..]),
        Axes::Net(_) | Axes::Server(_) => (None, None, false, &[][..]),
    };
    let externals = match &plan.axes {
        Axes::Copy(axes) => &axes.external[..],
        Axes::Server(axes) => &axes.external[..],
        _ => &[],
    };
    let drops = plan.file().is_some_and(|axes| !axes.drop_caches.is_empty())
        || cache.contains(&CacheState::Dropped);
    let runs = |program: &External| format!("runs `{}`", secret::redacted(&program.argv).join(" "));
    let mut all: Vec<(Permission, String)> =
        externals.iter().map(|program| (Permission::External, runs(program))).collect();
    let evicted = file.filter(|_| evict && cache.iter().any(|cache| cache.is_cold()));
    let deeds = [
        (Permission::File, file.map(|path| format!("reads {path}"))),
        (Permission::Dir, dir.map(|path| format!("writes files in {path}"))),
        (Permission::Evict, evicted.map(|path| format!("evicts {path} from the page cache"))),
        (Permission::DropCaches, drops.then(|| DROPS.to_owned())),
        (Permission::Sysctl, plan.allow_sysctl().then(|| CHANGES.to_owned())),
    ];
    all.extend(deeds.into_iter().filter_map(|(permission, deed)| Some((permission, deed?))));
    all
}

const DROPS: &str = "drops the page cache of the whole system";
const CHANGES: &str = "changes sysctls of the whole machine";

#[cfg(test)]
#[allow(dead_code, reason = "it is of other tests too")]
#[path = "../../../store/tests/it/sample.rs"]
pub(crate) mod sample;

#[cfg(test)]
mod tests {
    use iolens_model::axes::Study;
    use iolens_model::copy::External;
    use iolens_model::file::DropMode;

    use super::*;
    use crate::axes::Wishes;

    /// The default of a study.
    fn plan(study: &str) -> Plan {
        let study = Study::from_word(study);
        let asked = Wishes { study, quick: true, ..Wishes::default() };
        let plan = request::plan(request::complete(asked).unwrap(), 1, &|_| Ok(())).unwrap().plan;
        assert_eq!(Some(plan.study()), study);
        plan
    }

    fn file(change: impl FnOnce(&mut iolens_model::file::FileAxes)) -> Plan {
        let mut plan = plan("file");
        let Axes::File(axes) = &mut plan.axes else { panic!("{plan:?}") };
        change(axes);
        plan
    }

    fn copy(change: impl FnOnce(&mut iolens_model::copy::CopyAxes)) -> Plan {
        let mut plan = plan("copy");
        let Axes::Copy(axes) = &mut plan.axes else { panic!("{plan:?}") };
        change(axes);
        plan
    }

    fn somewhere() -> Option<String> {
        Some("/somewhere/else".to_owned())
    }

    /// What a plan takes, in the words of `--allow`.
    #[track_caller]
    fn check(plan: Plan, expect: &[Permission]) {
        let words: Vec<Permission> = takes(&plan).into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, expect);
        let header = RunHeader { plan, ..header() };
        let refused = |allow: Vec<Permission>| {
            refuse_without_consent("explain", &header, &header.plan, &Allow { allow }).err()
        };
        assert!(refused(expect.to_vec()).is_none(), "{expect:?}");
        for missing in expect {
            let others = expect.iter().filter(|other| *other != missing).copied().collect();
            let message = refused(others).map(|why| why.message).unwrap_or_default();
            assert!(message.ends_with(&format!("add --allow {missing}")), "{missing}: {message}");
        }
    }

    fn header() -> RunHeader {
        sample::header("0000000a")
    }

    #[test]
    fn each_deed_of_a_plan_takes_its_word() {
        use Permission::{Dir, DropCaches, Evict, External as Program, File, Sysctl};

        let program = || External { name: "x".to_owned(), argv: vec!["touch".to_owned()] };
        for study in ["net", "syscall", "file", "write", "copy", "server"] {
            check(plan(study), &[]);
        }
        check(copy(|axes| axes.external.push(program())), &[Program]);
        let mut server = plan("server");
        let Axes::Server(axes) = &mut server.axes else { panic!("{server:?}") };
        axes.external.push(program());
        check(server, &[Program]);
        check(file(|axes| axes.file = somewhere()), &[File]);
        check(copy(|axes| axes.file = somewhere()), &[File]);
        check(file(|axes| axes.dir = somewhere()), &[Dir]);
        check(copy(|axes| axes.dir = somewhere()), &[Dir]);
        let mut write = plan("write");
        let Axes::Write(axes) = &mut write.axes else { panic!("{write:?}") };
        axes.dir = somewhere();
        check(write, &[Dir]);
        let cold = |evict| (somewhere(), vec![CacheState::Cold], evict);
        check(file(|axes| (axes.file, axes.cache, axes.evict) = cold(true)), &[File, Evict]);
        check(copy(|axes| (axes.file, axes.cache, axes.evict) = cold(true)), &[File, Evict]);
        check(file(|axes| (axes.file, axes.cache, axes.evict) = cold(false)), &[File]);
        check(file(|axes| axes.drop_caches = vec![DropMode::Pages]), &[DropCaches]);
        check(file(|axes| axes.cache = vec![CacheState::Dropped]), &[DropCaches]);
        check(copy(|axes| axes.cache = vec![CacheState::Dropped]), &[DropCaches]);
        let mut net = plan("net");
        let Axes::Net(axes) = &mut net.axes else { panic!("{net:?}") };
        axes.allow_sysctl = true;
        check(net, &[Sysctl]);
        let every = copy(|axes| {
            (axes.file, axes.cache, axes.evict) = cold(true);
            (axes.dir, axes.external) = (somewhere(), vec![program()]);
        });
        check(every, &[Program, File, Dir, Evict]);
    }
}
