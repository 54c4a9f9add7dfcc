//! What can be known to fail before anything is measured, and how long the
//! rest will take.

use iolens_harness::host;
use iolens_model::axes::Study;
use iolens_model::host::HostFacts;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::units::{Bytes, Nanos};
use iolens_net::{receivers, registry};

use super::cells::{CellState, Group, GroupArm};
use super::searches;
use crate::failure::{Failure, unusable, usage};

/// Descriptors a worker needs besides its connections.
const DESCRIPTORS_BESIDES: u64 = 64;

/// What a plan will do, before it does it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FirstLook {
    pub(crate) cells: usize,
    /// The arms of every cell, the hidden one too.
    pub(crate) arms: Vec<String>,
    /// Trials of one pass.
    pub(crate) trials: usize,
    /// Time of one pass, about.
    pub(crate) pass: Nanos,
    /// Time of a run that ends as soon as the plan allows, about.
    pub(crate) shortest: Nanos,
    /// Time of a run that goes on to its last pass or to the end of its
    /// budget, about.
    pub(crate) longest: Nanos,
    /// Arms that this machine does not allow in some cells: which, why, in how many.
    pub(crate) refused: Vec<(String, String, usize)>,
    /// What is searched for behind the passes; null where nothing is.
    pub(crate) searches: Option<searches::Outlook>,
}

/// Counts cells, trials and time.
pub(crate) fn first_look(plan: &Plan, host: &HostFacts) -> FirstLook {
    let cells: Vec<CellState> = cells(plan, host).collect();
    let arms = |cell: &CellState| cell.groups.iter().map(|group| group.arms.len()).sum::<usize>();
    let both_ways = both_ways(plan, &cells).map(|index| &cells[index]);
    let compared = plan.primitives.len();
    let trials = |cell: &CellState| match plan.measures_alone(&cell.cell) {
        true => arms(cell),
        false => cell.groups.len(),
    };
    let visits = cells.iter().map(|cell| cell.visit(plan).0).fold(0, u64::saturating_add);
    let pass = visits.saturating_add(both_ways.map_or(0, |cell| cell.visit_isolated(plan).0));
    let mut labels: Vec<String> = Vec::new();
    for arm in cells.iter().take(1).flat_map(|cell| &cell.groups).flat_map(|group| &group.arms) {
        if !labels.contains(&arm.arm.label) {
            labels.push(arm.arm.label.clone());
        }
    }
    let searches = searches::outlook(plan, searches::places(plan, host, &cells).len());
    let of_passes = Plan { budget: budget_of_passes(plan, searches.as_ref()), ..plan.clone() };
    let beside = searches.map_or(0, |searches| searches.time.0);
    let whole = |passes| {
        let time = passes_time(&of_passes, pass, passes).0.saturating_add(beside);
        Nanos(time.min(plan.budget.0.max(pass)))
    };
    FirstLook {
        cells: cells.len(),
        arms: labels,
        trials: cells.iter().map(trials).sum::<usize>() + both_ways.map_or(0, |_| compared),
        pass: Nanos(pass),
        shortest: whole(plan.passes.minimum),
        longest: whole(plan.passes.maximum),
        refused: refused(&cells),
        searches,
    }
}

/// The arms that are left out, each once for a reason.
fn refused(cells: &[CellState]) -> Vec<(String, String, usize)> {
    let mut all: Vec<(String, String, usize)> = Vec::new();
    for cell in cells {
        let mut here: Vec<(&str, &str)> = cell.refused().collect();
        // The double of the baseline, and a baseline of several groups.
        here.sort_unstable();
        here.dedup();
        for (label, why) in here {
            match all.iter_mut().find(|(known, reason, _)| known == label && reason == why) {
                Some((_, _, count)) => *count += 1,
                None => all.push((label.to_owned(), why.to_owned(), 1)),
            }
        }
    }
    all
}

/// What searches leave of the budget.
fn budget_of_passes(plan: &Plan, searches: Option<&searches::Outlook>) -> Nanos {
    Nanos(plan.budget.0.saturating_sub(searches.map_or(0, |searches| searches.share.0)))
}

/// What passes take, within the budget; one is always done.
fn passes_time(plan: &Plan, pass_ns: u64, passes: u32) -> Nanos {
    Nanos(pass_ns.saturating_mul(u64::from(passes)).min(plan.budget.0.max(pass_ns)))
}

fn cells(plan: &Plan, host: &HostFacts) -> impl Iterator<Item = CellState> {
    plan.cells().into_iter().map(move |cell| CellState::new(plan, cell, host))
}

/// The cell that every default run measures both ways, shared and isolated:
/// in the middle of the first curve, of servers the first one that is shared.
pub(crate) fn both_ways(plan: &Plan, cells: &[CellState]) -> Option<usize> {
    let sliced = plan.schedule.is_sliced() && plan.primitives.len() > 1;
    // A first look at thirty calls has no time for each of them twice.
    let quick = plan.quick && matches!(plan.study(), Study::Syscall | Study::Server);
    let middle = plan.sizes.len() / 2;
    let is_shared = |cell: &CellState| !plan.measures_alone(&cell.cell);
    let found = cells.iter().enumerate().skip(middle).find(|(_, cell)| is_shared(cell));
    found.map(|(index, _)| index).filter(|_| sliced && !quick)
}

/// Refuses what cannot work on this machine.
pub(crate) fn check(plan: &Plan, host: &HostFacts) -> Result<(), Failure> {
    check_machine(plan, host)?;
    check_budget(plan, host)?;
    plan.net().map_or(Ok(()), |net| check_congestion(&net.congestion))
}

/// Refuses a plan for which this machine is too small.
pub(crate) fn check_machine(plan: &Plan, host: &HostFacts) -> Result<(), Failure> {
    check_cpus(plan.cpus.as_deref().unwrap_or_default(), &host.cpus)?;
    check_descriptors(plan, host)?;
    check_memory(plan, host)
}

/// Refuses a congestion control that sockets here cannot use.
pub(crate) fn check_congestion(name: &str) -> Result<(), Failure> {
    host::try_congestion(name).map_err(|errno| {
        usage!(
            "cannot use the congestion control `{name}`: {errno}\n  \
             net.ipv4.tcp_available_congestion_control lists what there is"
        )
    })
}

/// Refuses processors that are asked for and not usable.
pub(crate) fn check_cpus(asked: &[u32], usable: &[u32]) -> Result<(), Failure> {
    match asked.iter().find(|cpu| !usable.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let usable: Vec<String> = usable.iter().map(u32::to_string).collect();
            Err(usage!("cannot use CPU {cpu}: iolens may run on {} only", usable.join(",")))
        }
    }
}

fn check_budget(plan: &Plan, host: &HostFacts) -> Result<(), Failure> {
    let look = first_look(plan, host);
    let budget = budget_of_passes(plan, look.searches.as_ref());
    // How long a number of messages takes is not known yet.
    if look.pass <= budget || matches!(plan.schedule, Schedule::Messages { .. }) {
        return Ok(());
    }
    let left = match look.searches {
        Some(_) => format!(", of which {budget} are left beside the searches,"),
        None => String::new(),
    };
    Err(usage!(
        "a budget of {}{left} is shorter than one pass over {} settings, which takes about {}\n  \
         raise --budget, or ask for fewer of them",
        plan.budget,
        look.cells,
        look.pass
    ))
}

fn check_descriptors(plan: &Plan, host: &HostFacts) -> Result<(), Failure> {
    let available = host::descriptors_hard_max();
    let connections = |cell: &CellState| {
        if cell.cell.server().is_some() {
            // A model that cannot have them is left out of the cell.
            return 0;
        }
        // One per arm, and what it opens itself; the signals of leads and files
        // of /proc besides. An event that gets no descriptor is not counted, and
        // says so. Without a receiver, messages go over a socket beside it.
        let sockets = if cell.cell.has_receiver() { 1 } else { 2 };
        let receiver = cell.cell.receiver().and_then(receivers::find);
        let of_receiver = receiver.map_or(0, |entry| entry.descriptors);
        let of_arm = |arm: &GroupArm| {
            if cell.cell.syscall().is_some() {
                let entry = iolens_syscall::find(&arm.arm.primitive);
                // Each thread may have to do the work of all.
                let many = entry.and_then(|entry| entry.most).map_or(1, |_| cell.cell.threads);
                return entry.map_or(0, |entry| u64::from(entry.descriptors) * u64::from(many));
            }
            let entry = registry::find(&arm.arm.primitive);
            let of_sender = entry.map_or(0, |entry| entry.descriptors);
            sockets + u64::from(of_sender.max(of_receiver))
        };
        let of_group = |group: &Group| group.arms.iter().map(of_arm).sum::<u64>();
        let arms = cell.groups.iter().map(of_group).max().unwrap_or(0);
        (arms + 10) * u64::from(cell.cell.threads)
    };
    let needed =
        cells(plan, host).map(|cell| connections(&cell)).max().unwrap_or(0) + DESCRIPTORS_BESIDES;
    if needed <= available {
        return Ok(());
    }
    Err(unusable!(
        "the largest setting needs {needed} open files per process: the hard limit is \
         {available}\n  raise it (ulimit -Hn), or use fewer --threads or --methods"
    ))
}

fn check_memory(plan: &Plan, host: &HostFacts) -> Result<(), Failure> {
    // The rest is for the kernel's buffers and for all others.
    let half =
        host.memory.value().map(|&memory| (Bytes(memory.0 / 2), format!("half of {memory}")));
    let rooms = host::memory_room(&host::Root::real()).into_iter();
    let rooms = rooms.map(|(bytes, source)| (bytes, format!("{bytes}, {source}")));
    let least = half.into_iter().chain(rooms).min_by_key(|(bytes, _)| *bytes);
    let largest = cells(plan, host).max_by_key(|cell| cell.memory());
    let (Some(cell), Some((room, words))) = (largest, least) else { return Ok(()) };
    let needed = cell.memory();
    if needed <= room {
        return Ok(());
    }
    Err(unusable!(
        "the messages of {} do not fit in memory: {} need {needed}, more than {words}\n  use \
         smaller --sizes, fewer --threads or fewer --methods",
        cell.cell,
        cell.memory_words()
    ))
}
