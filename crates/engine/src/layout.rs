//! How a trial is laid out before it runs: which arms meet in it, on which
//! processors, with rings of which size, in which order of slices.

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::WorkingSet;
use iolens_model::cell::{Cell, Setting};
use iolens_model::host::HostFacts;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::server::ServerSetting;
use iolens_model::trial::{Slice, SliceKind, Work};
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::ring::room;
use rand::Rng;
use rand::seq::SliceRandom;

use iolens_file::copy::copiers;
use iolens_file::engines;
use iolens_net::registry;
use iolens_server::models::{self, Makes};

/// Most compared arms that share a trial with the baseline and its double.
const ARMS_PER_TRIAL: usize = 6;

/// Connections from which on each server is measured with the baseline alone.
const CONNECTIONS_MANY: u32 = 1024;

/// Caches to assume where the kernel does not tell: small enough to be true
/// of L2, large enough to be beyond any last-level cache but the largest.
const L2_ASSUMED: Bytes = Bytes(256 << 10);
const LLC_ASSUMED: Bytes = Bytes(64 << 20);

/// Connections that idle this long get an untimed burst before their slice:
/// half of TCP's smallest retransmission timeout, after which the congestion
/// window would start again (`TCP_RTO_MIN`, net/ipv4/tcp_input.c).
const IDLE_MAX: Nanos = Nanos(100_000_000);

/// Before a window that counts, the same work goes on for this long, or for as
/// long as the window if that is shorter: a slow link's queues fill, a token
/// bucket's credit is spent.
const LEAD: Nanos = Nanos::SECOND;

/// The time before a window that is not counted.
pub fn lead(window: Nanos) -> Nanos {
    window.min(LEAD)
}

/// Work of that burst, in bytes, at least four messages per thread.
const BURST_BYTES: u64 = 512 << 10;

/// The arms of a cell in groups that are measured together, each with the
/// baseline and its hidden double.
pub fn arm_groups(plan: &Plan, cell: &Cell) -> Vec<Vec<Arm>> {
    let arm = |id: &str, role| Arm { label: id.to_owned(), primitive: id.to_owned(), role };
    let others: Vec<Arm> = plan
        .primitives
        .iter()
        .filter(|id| **id != plan.baseline)
        .filter_map(|id| Some(arm(id, role(plan, cell, id)?)))
        .collect();
    let group = |others: &[Arm]| {
        let mut arms = vec![arm(&plan.baseline, Role::Baseline)];
        arms.extend_from_slice(others);
        if plan.schedule.is_sliced() {
            let label = format!("{} (A/A)", plan.baseline);
            arms.push(Arm { label, ..arm(&plan.baseline, Role::SelfCheck) });
        }
        arms
    };
    if others.is_empty() {
        return vec![group(&[])];
    }
    match cell.server() {
        Some(setting) if plan.measures_alone(cell) => {
            standing_alone(&plan.baseline, &others, setting).iter().map(|o| group(o)).collect()
        }
        Some(setting) => standing_together(&others, setting).iter().map(|o| group(o)).collect(),
        None => others.chunks(ARMS_PER_TRIAL).map(group).collect(),
    }
}

/// Arms of the largest trial of a plan of files, whose cells all have as many.
pub fn most_arms(plan: &Plan) -> usize {
    let groups = |cell: &Cell| arm_groups(plan, cell).iter().map(Vec::len).max();
    plan.cells().first().and_then(groups).unwrap_or(1)
}

/// Servers that may stand ready at the same time beside the baseline: of those that keep
/// a process or a thread for each connection one alone, and where there are very many
/// connections one of any kind. The others are divided evenly.
fn standing_together(others: &[Arm], setting: &ServerSetting) -> Vec<Vec<Arm>> {
    let keeps = |arm: &Arm| {
        let makes = models::find(&arm.primitive).map(|entry| entry.makes);
        makes.is_none_or(|makes| makes != Makes::Nothing)
    };
    let alone = |arm: &Arm| setting.connections >= CONNECTIONS_MANY || keeps(arm);
    let (alone, together): (Vec<Arm>, Vec<Arm>) = others.iter().cloned().partition(alone);
    let groups = together.len().div_ceil(ARMS_PER_TRIAL).max(1);
    let each = together.len().div_ceil(groups).max(1);
    let together = together.chunks(each).map(<[Arm]>::to_vec);
    together.chain(alone.into_iter().map(|arm| vec![arm])).collect()
}

/// Servers that are each measured by themselves: all share one baseline, but for those
/// that are offered the rate of another kind, which have one at theirs.
fn standing_alone(baseline: &str, others: &[Arm], setting: &ServerSetting) -> Vec<Vec<Arm>> {
    if !setting.is_open_loop() || models::keeps(baseline) {
        return vec![others.to_vec()];
    }
    let (keep, share): (Vec<Arm>, Vec<Arm>) =
        others.iter().cloned().partition(|arm| models::keeps(&arm.primitive));
    [share, keep].into_iter().filter(|group| !group.is_empty()).collect()
}

/// The part of an arm; `None` where this build does not know it.
fn role(plan: &Plan, cell: &Cell, id: &str) -> Option<Role> {
    let baseline = &plan.baseline;
    match cell.setting {
        // That a program is asked costs more than a few calls.
        Setting::Syscall(setting) if setting.in_a_row.is_some() && plan.is_program(id) => None,
        _ if plan.is_program(id) => Some(Role::against(id == baseline, false)),
        Setting::Net(_) => registry::find(id).map(|entry| entry.role(baseline)),
        Setting::Syscall(_) => iolens_syscall::find(id).map(|entry| entry.role(baseline)),
        Setting::File(file) => {
            engines::that_reads(id).map(|entry| entry.role(baseline, file.consumer))
        }
        Setting::Write(_) => engines::that_writes(id).map(|entry| entry.role(baseline)),
        Setting::Copy(_) => copiers::role(id, baseline, plan.copy()?),
        Setting::Server(_) => {
            let is_program = plan.server()?.external.iter().any(|external| external.name == id);
            let is_known = models::find(id).is_some() || is_program;
            is_known.then(|| Role::against(id == baseline, false))
        }
        Setting::Ab(_) => Some(Role::against(id == baseline, false)),
    }
}

/// The processors of the two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Of the sending end.
    pub tx_cpus: Vec<u32>,
    /// Of the receiving end.
    pub rx_cpus: Vec<u32>,
}

/// Gives each end its own half of the CPUs, core by core, and both the same one if there is only
/// one; one end alone has all. Threads of two ends on one core would slow each other, with other
/// cores idle: at most one core has CPUs of both, and either end uses it last.
pub fn placement(cores: &[Vec<u32>], is_alone: bool) -> Placement {
    let all: Vec<(usize, u32)> = cores
        .iter()
        .enumerate()
        .flat_map(|(core, cpus)| cpus.iter().map(move |&cpu| (core, cpu)))
        .collect();
    let (tx, rx) = match all.len() {
        0 | 1 => (&*all, &*all),
        _ if is_alone => (&*all, &*all),
        cpus => all.split_at(cpus / 2),
    };
    Placement { tx_cpus: spread(tx), rx_cpus: spread(rx) }
}

/// CPUs of cores, one of each core before the second of any; a core of which others have a part
/// comes last.
fn spread(all: &[(usize, u32)]) -> Vec<u32> {
    let mut cores: Vec<Vec<u32>> = all
        .chunk_by(|a, b| a.0 == b.0)
        .map(|own| own.iter().map(|(_, cpu)| *cpu).collect())
        .collect();
    cores.sort_by_key(|core| std::cmp::Reverse(core.len()));
    let most = cores.first().map_or(0, Vec::len);
    (0..most).flat_map(|nth| cores.iter().filter_map(move |core| core.get(nth))).copied().collect()
}

/// Messages in the ring of each thread that give the cell the working set it
/// asks for; none in studies without messages. Hot rings take a quarter of L2
/// at most: the staging buffer and the kernel's own buffers want room too.
pub fn ring_messages(cell: &Cell, host: &HostFacts) -> u32 {
    const HOT_MESSAGES_MAX: u64 = 64;
    // With one message a zero-copy sender would stand still until the kernel
    // has released it: no program that can choose has a single buffer. Nor has
    // one that keeps more sends under way no buffers besides theirs.
    let Some(net) = cell.net() else { return 0 };
    let least = 2 * u64::from(net.tuning.ring_depth());
    let one_message_each = cell.size.0.saturating_mul(u64::from(cell.threads));
    let messages = match net.working_set {
        WorkingSet::Hot => {
            let l2 = host.l2.value().copied().unwrap_or(L2_ASSUMED).0;
            (l2 / 4 / one_message_each).min(HOT_MESSAGES_MAX).max(least)
        }
        WorkingSet::Cold => {
            let llc = host.llc.value().copied().unwrap_or(LLC_ASSUMED).0;
            (2 * llc).div_ceil(one_message_each).max(least)
        }
    };
    u32::try_from(messages).unwrap_or(u32::MAX)
}

/// Memory that one arm's rings, iovecs and staging buffers take over all
/// threads: every field is an allocation of its own with its overhead.
pub fn ring_memory(cell: &Cell, ring_messages: u32) -> Bytes {
    const POINTERS_BYTES: u64 = 32;
    const ALLOCATION_BYTES_MIN: u64 = 32;
    let Some(net) = cell.net() else { return Bytes(0) };
    let fields = u64::from(net.fields).min(cell.size.0);
    let field_bytes = room(cell.size.0.div_ceil(fields)) + 16;
    let field = field_bytes.max(ALLOCATION_BYTES_MIN) + POINTERS_BYTES;
    let ring = field.saturating_mul(fields).saturating_mul(u64::from(ring_messages));
    Bytes((ring + cell.size.0).saturating_mul(u64::from(cell.threads)))
}

/// How long a slice is meant to last: longer when its threads, of both ends
/// together, have to share processors, so that each still runs for as long.
pub fn slice_target(slice: Nanos, threads: u32, cpus: usize) -> Nanos {
    let wanted = u64::from(threads);
    let available = u64::try_from(cpus.max(1)).unwrap_or(u64::MAX);
    Nanos(slice.0 * wanted.div_ceil(available).max(1))
}

/// The slices of a trial in a fresh random order. `work` is the number of
/// messages per slice of each arm, `round` how long one slice of every arm
/// takes, about.
pub fn slices(
    schedule: &Schedule,
    cell: &Cell,
    work: &[u64],
    round: Nanos,
    rng: &mut impl Rng,
) -> Vec<Slice> {
    let (rounds, discarded, once) = match *schedule {
        Schedule::Slices { discarded_rounds, rounds, .. } => {
            (discarded_rounds.saturating_add(rounds), discarded_rounds, None)
        }
        Schedule::Window { window } => (1, 0, Some(Work::Window(window))),
        Schedule::Messages { messages } => (1, 0, Some(Work::Messages(messages))),
    };
    let burst = (BURST_BYTES / cell.size.0.max(1)).max(4 * u64::from(cell.threads));
    // With one arm nothing idles; with many, each waits for all others. A
    // single long slice wants its connection and its memory warm too. Where
    // there is no connection, none idles.
    let connected = cell.net().is_some() && work.len() > 1 && round > IDLE_MAX;
    let idles = once.is_some() || connected;
    let mut order: Vec<usize> = (0..work.len()).collect();
    let mut slices = Vec::new();
    for round in 0..rounds {
        order.shuffle(rng);
        for &arm in &order {
            if idles {
                let work = match once {
                    Some(Work::Window(window)) => Work::Window(lead(window)),
                    _ => Work::Messages(burst.min(work[arm])),
                };
                slices.push(Slice { arm, round, kind: SliceKind::Warm, work });
            }
            let kind = if round < discarded { SliceKind::Discarded } else { SliceKind::Measured };
            let work = once.unwrap_or(Work::Messages(work[arm]));
            slices.push(Slice { arm, round, kind, work });
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use iolens_model::cell::{NetSetting, Setting};
    use iolens_model::server::LoadLevel;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn cell(bytes: u64, threads: u32) -> Cell {
        Cell {
            setting: Setting::Net(NetSetting {
                topology: iolens_model::axes::Topology::Loopback,
                mode: iolens_model::axes::Mode::Stream,
                working_set: WorkingSet::Hot,
                fields: 8,
                iovec: iolens_model::axes::Iovec::PerMessage,
                receiver: "recv".into(),
                tuning: iolens_model::tuning::Tuning::DEFAULT,
            }),
            threads,
            size: Bytes(bytes),
        }
    }

    #[test]
    fn every_arm_has_one_slice_in_every_round() {
        let schedule = Schedule::Slices { slice: Nanos(5_000_000), discarded_rounds: 2, rounds: 7 };
        let work = [10, 20, 30];
        let seeded = |seed| {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            slices(&schedule, &cell(64, 1), &work, Nanos(15_000_000), &mut rng)
        };
        let all = seeded(1);
        assert_eq!(all.len(), 27);
        for round in 0..9u32 {
            let mut met: Vec<usize> =
                all.iter().filter(|s| s.round == round).map(|s| s.arm).collect();
            met.sort_unstable();
            assert_eq!(met, [0, 1, 2]);
        }
        assert_eq!(all.iter().filter(|s| s.kind == SliceKind::Discarded).count(), 6);
        assert!(all.iter().all(|s| s.work == Work::Messages(work[s.arm])));
        assert_eq!(all, seeded(1), "the seed decides the order");
        assert_ne!(all, seeded(2));
    }

    #[test]
    fn servers_that_are_measured_alone_share_a_baseline_at_each_rate() {
        let arm = |id: &&str| Arm {
            label: (*id).to_owned(),
            primitive: (*id).to_owned(),
            role: Role::Compared,
        };
        let others: Vec<Arm> = ["fork", "poll", "thread_per_connection"].iter().map(arm).collect();
        let labels = |baseline: &str, load| {
            let setting = ServerSetting {
                topology: iolens_model::axes::Topology::Loopback,
                service: "top2".into(),
                length: iolens_model::load::Length::Short,
                load,
                connections: 16,
            };
            let groups = standing_alone(baseline, &others, &setting);
            let labels = |group: &Vec<Arm>| -> Vec<String> {
                group.iter().map(|arm| arm.label.clone()).collect()
            };
            groups.iter().map(labels).collect::<Vec<_>>()
        };
        let (closed, open) = (LoadLevel::Closed, LoadLevel::Percent(50));
        assert_eq!(labels("epoll_lt", closed), [["fork", "poll", "thread_per_connection"]]);
        let apart = labels("epoll_lt", open);
        assert_eq!(apart, [vec!["poll"], vec!["fork", "thread_per_connection"]]);
        // Every group is of the baseline's kind.
        assert_eq!(labels("prefork", open).len(), 1);
    }

    #[test]
    fn connections_that_idle_get_a_burst() {
        let schedule =
            Schedule::Slices { slice: Nanos(40_000_000), discarded_rounds: 0, rounds: 1 };
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let all = slices(&schedule, &cell(64, 8), &[100; 4], Nanos(160_000_000), &mut rng);
        let kinds: Vec<SliceKind> = all.iter().map(|s| s.kind).collect();
        assert_eq!(kinds, [SliceKind::Warm, SliceKind::Measured].repeat(4));
    }

    #[test]
    fn ends_do_not_share_processors() {
        let halves = |cores: &[&[u32]]| {
            let cores: Vec<Vec<u32>> = cores.iter().map(|core| core.to_vec()).collect();
            let Placement { tx_cpus, rx_cpus } = placement(&cores, false);
            (tx_cpus, rx_cpus)
        };
        let plain: [&[u32]; 5] = [&[0], &[1], &[2], &[3], &[4]];
        assert_eq!(halves(&plain), (vec![0, 1], vec![2, 3, 4]));
        assert_eq!(halves(&[&[7]]), (vec![7], vec![7]));
        assert_eq!(halves(&[&[0, 1]]), (vec![0], vec![1]));
        let two_threads: [&[u32]; 4] = [&[0, 4], &[1, 5], &[2, 6], &[3, 7]];
        assert_eq!(halves(&two_threads), (vec![0, 1, 4, 5], vec![2, 3, 6, 7]));
        // Both halves have as many: one core is shared, and used last.
        assert_eq!(halves(&[&[0, 3], &[1, 4], &[2, 5]]), (vec![0, 1, 3], vec![2, 4, 5]));
        let alone = placement(&[vec![0, 1], vec![2, 3]], true);
        assert_eq!(alone.tx_cpus, [0, 2, 1, 3]);
        assert_eq!(slice_target(Nanos(5), 8, 2), Nanos(20));
        assert_eq!(slice_target(Nanos(5), 2, 2), Nanos(5));
        assert_eq!(slice_target(Nanos(5), 2, 64), Nanos(5));
    }
}
