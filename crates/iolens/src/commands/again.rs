//! The one door of whatever measures a stored plan: `resume`, `confirm`, `explain` and
//! `compare --rerun`. A stored run is data, whoever wrote it: its plan is checked as if it had
//! been typed, and what it does besides measuring takes consent from the command line.

use iolens_model::file::CacheState;
use iolens_model::host::HostFacts;
use iolens_model::origin::HOST_NAME;
use iolens_model::plan::{Axes, Plan};
use iolens_model::run::RunHeader;

use crate::args::{Allow, Permission};
use crate::failure::Failure;
use crate::request;

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
    request::check_stored(plan).map_err(|why| {
        Failure::usage(format!(
            "cannot {doing} run {}: its plan cannot be measured\n  {}",
            header.id, why.message
        ))
    })?;
    refuse_without_consent(doing, header, plan, allow)
}

/// A run that was imported belongs where it was measured.
fn refuse_imported(doing: &str, header: &RunHeader) -> Result<(), Failure> {
    let Some(origin) = &header.origin else { return Ok(()) };
    Err(Failure::usage(format!(
        "cannot {doing} run {}: it was measured on {} and imported from {}\n  numbers of two \
         machines do not belong into one run: do so where it was measured, or run its plan here \
         (`iolens show {} --json` has the command)",
        header.id, origin.host, origin.path, header.id
    )))
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
    Err(Failure::unusable(format!(
        "cannot {doing} run {}: it was measured on another machine\n  the run: {}\n  here: {}\n  \
         run its plan here instead (`iolens show {} --json` has the command)",
        header.id,
        of(&header.host),
        of(here),
        header.id
    )))
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
    Err(Failure::usage(format!(
        "cannot {doing} run {}: its plan does more than measure: it {}\n  if that is what you \
         want, add --allow {}",
        header.id,
        deeds.join("; it "),
        words.join(",")
    )))
}

/// What a plan does besides measuring, by the permission that it takes.
fn takes(plan: &Plan) -> Vec<(Permission, String)> {
    let (file, dir, evict, cache) = match &plan.axes {
        Axes::File(axes) => (axes.file.as_ref(), axes.dir.as_ref(), axes.evict, &axes.cache[..]),
        Axes::Copy(axes) => (axes.file.as_ref(), axes.dir.as_ref(), axes.evict, &axes.cache[..]),
        Axes::Write(axes) => (None, axes.dir.as_ref(), false, &[][..]),
        Axes::Net(_) | Axes::Syscall(_) | Axes::Server(_) => (None, None, false, &[][..]),
    };
    let externals = match &plan.axes {
        Axes::Copy(axes) => &axes.external[..],
        Axes::Server(axes) => &axes.external[..],
        _ => &[],
    };
    let drops = plan.file().is_some_and(|axes| !axes.drop_caches.is_empty())
        || cache.contains(&CacheState::Dropped);
    let mut all: Vec<(Permission, String)> = externals
        .iter()
        .map(|program| (Permission::External, format!("runs `{}`", program.argv.join(" "))))
        .collect();
    all.extend(file.map(|path| (Permission::File, format!("reads {path}"))));
    all.extend(dir.map(|path| (Permission::Dir, format!("writes files in {path}"))));
    let evicted = file.filter(|_| evict && cache.iter().any(|cache| cache.is_cold()));
    all.extend(
        evicted.map(|path| (Permission::Evict, format!("evicts {path} from the page cache"))),
    );
    let dropped = drops.then(|| "drops the page cache of the whole system".to_owned());
    all.extend(dropped.map(|deed| (Permission::DropCaches, deed)));
    let changed = plan.allow_sysctl().then(|| "changes sysctls of the whole machine".to_owned());
    all.extend(changed.map(|deed| (Permission::Sysctl, deed)));
    all
}
