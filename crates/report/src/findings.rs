//! What follows from an analysis, as facts: numbers, intervals and names, and no sentence. The
//! screen words them, JSON carries them.

use iolens_model::arm::Role;
use iolens_model::axes::Topology;
use iolens_model::cell::Cell;
use iolens_model::file::PROGRAM_READ_BYTES;
use iolens_model::outcome::Status;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::run::Run;
use iolens_model::transport::{CONNECTIONS, NODELAY, NODELAY_OFF, OUR_SEND_BUFFER, SEND_BUFFER};
use iolens_model::units::Bytes;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, Crossover, CrossoverShape, Estimate, Interval,
    Quantity,
};
use iolens_stats::remark::{Remark, Warning};
use serde::Serialize;

use crate::arms;
use crate::crossing::crossing;
use crate::groups::distinct;
use crate::standing::{Candidate, Standing, conditional, standing};
pub(crate) use crate::studies::files::findings::{
    Caching, Flush, Limit, Limiting, Reach, caching, flush, limits, ranked,
};
use crate::studies::server::counters;
use crate::studies::server::views::{View, is_bounded, views, views_of};
use crate::words;

/// A fact about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// Which method is ahead in a setting.
    Ranking(Ranking),
    /// Where one method passes another along the sizes.
    Crossover(Passing),
    /// What the kernel made of sends that ask it not to copy.
    ZeroCopy(ZeroCopy),
    /// Rare slices that are much slower: the ratio by totals is another than the typical one.
    Stalls(Stalls),
    /// What is counted of servers for a request, beside what a request costs.
    GoesWithCost(GoesWithCost),
    /// The fastest method of a file beside what bounds it.
    Limit(Limit),
    /// What the page cache is worth.
    Caching(Caching),
    /// What a flush of the device took.
    Flush(Flush),
    /// The baseline against its hidden copy.
    SelfCheck(SelfChecked),
    /// More threads than processors, which take turns.
    Crowded {
        /// Thread counts that are.
        threads: Vec<u32>,
        /// Processors that an end has.
        cpus: u32,
    },
    /// Both ends have one processor between them.
    SharedCpu {
        /// Its number.
        cpu: u32,
    },
    /// The machine changed its speed while the run lasted.
    Drift {
        /// Of the time of a unit of work, from start to end, as a fraction.
        over_run: f64,
    },
    /// Trials resemble those before them; intervals are widened by this factor.
    Neighbours {
        /// Correlation of a trial with the one before it.
        correlation: f64,
        /// By which intervals are wider, as a factor.
        widened: f64,
    },
    /// The run measured the crossovers of another one again.
    Confirms {
        /// The id of that run.
        run: String,
    },
    /// Methods ran one after another, not in turns.
    Sequential,
    /// What is sent is dropped by a device, and received by nobody.
    Dropped,
    /// Programs of the user's whose sockets leave `TCP_NODELAY` off, which all others set.
    HeldBack {
        /// Their names.
        methods: Vec<String>,
    },
    /// Programs of the user's whose send buffers are at least twice or at most half as large as
    /// those of all others.
    SendBuffers(SendBuffers),
    /// Programs of the user's that do not make one connection for each thread.
    Connections {
        /// Which, and how many they make.
        senders: Vec<SenderConnections>,
    },
    /// Programs of the user's whose system calls do not read a block for each block.
    ReadByCalls {
        /// Which, and how many bytes they read.
        readers: Vec<ReadByCalls>,
    },
    /// What a check noticed in a setting and let pass.
    Remark {
        /// The setting.
        setting: Cell,
        /// Of which arm, and what.
        remark: Remark,
    },
    /// What holds of the whole run.
    Warning {
        /// What it is.
        warning: Warning,
    },
}

/// Which method is ahead in a setting, among those that can do any job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranking {
    /// The setting.
    pub setting: Cell,
    /// Whether these servers make a process or a thread for each connection, where those that do
    /// were offered a rate of their own; `None` elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_per_connection: Option<bool>,
    /// By what.
    pub quantity: Quantity,
    /// Who is ahead.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Methods that are left out since they cannot do any job.
    pub restricted: Vec<String>,
}

/// Who is ahead.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Ahead of every other by more than noise.
    Fastest {
        /// The method.
        method: String,
        /// Against the baseline; `None` for the baseline.
        against: Option<Against>,
    },
    /// Shown to differ by less than the threshold, and none is ahead of them.
    Same {
        /// These.
        methods: Vec<String>,
    },
    /// Any of these may be ahead.
    Undecided {
        /// These, the one with the best value first; last those that were measured and cannot be
        /// ranked.
        methods: Vec<String>,
        /// About how many trials more would decide it; `None` where trials alone do not, or more
        /// is open than how these stand against the baseline.
        more_trials: Option<u32>,
    },
    /// One trial has no interval.
    NoInterval {
        /// The one with the best value.
        lowest: String,
    },
    /// Compared with nothing.
    Alone {
        /// The method.
        method: String,
    },
    /// Nothing can be compared.
    Nothing {
        /// Why, as it was told.
        reason: String,
    },
}

/// A method's rate over the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Against {
    /// The ratio: above 1 faster, or cheaper.
    pub ratio: f64,
    /// 95 %, all comparisons together.
    pub interval: Option<Interval>,
    /// Trials.
    pub n: u32,
}

impl Against {
    fn of(contrast: &Contrast) -> Against {
        Against { ratio: contrast.ratio, interval: contrast.simultaneous, n: contrast.n }
    }
}

/// Where one method passes another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Passing {
    /// The curve; its size is 0.
    pub curve: Cell,
    /// Ahead at the smaller sizes.
    pub from: String,
    /// Ahead at the larger ones.
    pub to: String,
    /// The largest size at which the first is ahead.
    pub above: Bytes,
    /// The smallest at which the second is.
    pub below: Bytes,
    /// The size at which both are equally fast, bytes, from fresh trials.
    pub at_bytes: Option<Estimate>,
}

/// Sends that ask the kernel not to copy, in a setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZeroCopy {
    /// The setting.
    pub setting: Cell,
    /// The method.
    pub method: String,
    /// The share of them that the kernel copied after all, 0 to 1.
    pub copied_share: Option<f64>,
    /// Whether too many were, so that nothing is shown of zero-copy.
    pub is_copied: bool,
    /// Against the baseline.
    pub against: Option<Against>,
}

/// A method whose totals say something else than its typical slice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stalls {
    /// The setting.
    pub setting: Cell,
    /// The method.
    pub method: String,
    /// Its rate over the baseline's in the typical slice.
    pub typical: f64,
    /// The same by total times.
    pub with_stalls: f64,
}

/// A counter of servers whose models have more of it the more, or the less, a request costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoesWithCost {
    /// The setting.
    pub setting: Cell,
    /// Whether the models make a process or a thread for each connection; `None` where models of
    /// both kinds are compared.
    pub one_per_connection: Option<bool>,
    /// Its name, as perf stat has it.
    pub counter: &'static str,
    /// Spearman's rank correlation, −1 to 1.
    pub rank_correlation: f64,
    /// Models.
    pub models: usize,
}

/// The baseline against its hidden copies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfChecked {
    /// The baseline.
    pub baseline: String,
    /// Copies that count.
    pub checks: u32,
    /// Those that were called faster or slower.
    pub judged: u32,
    /// The farthest of them, as a factor from 1, at least 1.
    pub farthest: Option<f64>,
    /// What the intervals of all of them span.
    pub span: Option<Interval>,
}

/// Everything, in the order in which it is read.
pub(crate) fn all(run: &Run, analysis: &Analysis) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    out.extend(rankings(run, &ranked(run, analysis)).into_iter().map(Finding::Ranking));
    for view in views(run, analysis) {
        let quick = run.header.plan.quick;
        out.extend(throughput(&view, analysis.delta, quick).map(Finding::Ranking));
        out.extend(going_with_cost(&view).map(Finding::GoesWithCost));
    }
    out.extend(crossovers(analysis).into_iter().map(Finding::Crossover));
    out.extend(zero_copies(analysis).into_iter().map(Finding::ZeroCopy));
    out.extend(stalls(analysis).into_iter().map(Finding::Stalls));
    if crate::words::is_of_files(&run.header.plan) {
        out.extend(limits(run, analysis).into_iter().map(Finding::Limit));
        out.extend(caching(run, analysis).into_iter().map(Finding::Caching));
        out.extend(flush(run).map(Finding::Flush));
    }
    out.extend(cautions(run, analysis));
    out.push(Finding::SelfCheck(self_check(run, analysis)));
    let warnings = analysis.warnings.iter();
    out.extend(warnings.map(|warning| Finding::Warning { warning: warning.clone() }));
    out.extend(analysis.cells.iter().flat_map(|cell| {
        let one = |remark: &Remark| Finding::Remark {
            setting: cell.cell.clone(),
            remark: remark.clone(),
        };
        cell.remarks.iter().map(one).collect::<Vec<_>>()
    }));
    out
}

/// Who is ahead in each setting, by what the study compares; of servers among those that had one
/// rate.
pub(crate) fn rankings(run: &Run, analysis: &Analysis) -> Vec<Ranking> {
    let (delta, quick) = (analysis.delta, run.header.plan.quick);
    let cells = analysis.cells.iter();
    match run.header.plan.server() {
        Some(_) => {
            let views = cells.flat_map(|cell| views_of(run, analysis, cell));
            views.map(|view| cheapest(&view, delta, quick)).collect()
        }
        None => cells.map(|cell| ranking(cell, delta, quick)).collect(),
    }
}

/// Which server takes least CPU time for a request.
pub(crate) fn cheapest(view: &View, delta: f64, quick: bool) -> Ranking {
    let one_per_connection = view.one_per_connection();
    Ranking { one_per_connection, ..ranking(&view.cell.by_cpu(), delta, quick) }
}

/// Which server answers most requests in a closed loop, where one whose client was the limit may
/// be it; `None` where the baseline's was.
pub(crate) fn throughput(view: &View, delta: f64, quick: bool) -> Option<Ranking> {
    let is_known = |arm: &ArmAnalysis| arm.arm.role == Role::Baseline && !is_bounded(arm);
    let has_baseline = view.cell.arms.iter().any(is_known);
    (!view.is_open && has_baseline).then(|| ranking(&view.cell, delta, quick))
}

fn going_with_cost(view: &View) -> impl Iterator<Item = GoesWithCost> {
    counters::going_with_cost(view).into_iter().map(|(counter, rank_correlation, models)| {
        GoesWithCost {
            setting: view.cell.cell.clone(),
            one_per_connection: view.one_per_connection(),
            counter,
            rank_correlation,
            models,
        }
    })
}

/// Who is ahead in a setting.
pub(crate) fn ranking(cell: &CellAnalysis, delta: f64, quick: bool) -> Ranking {
    let restricted = conditional(cell).iter().map(|one| one.label.to_owned()).collect();
    let outcome = outcome(&standing(cell, delta, quick));
    Ranking {
        setting: cell.cell.clone(),
        one_per_connection: None,
        quantity: cell.compared,
        outcome,
        restricted,
    }
}

fn outcome(standing: &Standing<'_>) -> Outcome {
    let names = |best: &Candidate<'_>, others: &[Candidate<'_>]| {
        std::iter::once(best).chain(others).map(|one| one.label.to_owned()).collect::<Vec<_>>()
    };
    match standing {
        Standing::Cheapest { best, .. } => Outcome::Fastest {
            method: best.label.to_owned(),
            against: best.contrast.map(Against::of),
        },
        Standing::Tie { best, others } => {
            let mut methods = names(best, others);
            methods.sort_unstable();
            Outcome::Same { methods }
        }
        Standing::Unseparated { best, others } => {
            let more_trials = more_trials(&[&[*best], others.as_slice()].concat());
            Outcome::Undecided { methods: names(best, others), more_trials }
        }
        Standing::NoInterval(best) => Outcome::NoInterval { lowest: best.label.to_owned() },
        Standing::Alone(only) => Outcome::Alone { method: only.label.to_owned() },
        Standing::Nothing(reason) => Outcome::Nothing { reason: reason.clone() },
    }
}

/// About how many trials more would decide between these, where the question is how each of them
/// stands against the baseline: how many a pair of others takes is not known.
fn more_trials(open: &[Candidate<'_>]) -> Option<u32> {
    let has_baseline = open.iter().any(|one| one.contrast.is_none());
    let contrasts = open.iter().filter_map(|one| one.contrast);
    let needed = contrasts.map(|c| Some(c.trials_needed?.saturating_sub(c.n).max(1)));
    needed.collect::<Option<Vec<u32>>>()?.into_iter().max().filter(|_| has_baseline)
}

/// Where one method passes another, where the run shows it.
pub(crate) fn crossovers(analysis: &Analysis) -> Vec<Passing> {
    let crosses = analysis.crossovers.iter().filter(|c| c.shape == CrossoverShape::Crosses);
    crosses.filter_map(|crossover| passing(analysis, crossover)).collect()
}

fn passing(analysis: &Analysis, crossover: &Crossover) -> Option<Passing> {
    Some(Passing {
        curve: crossover.curve.clone(),
        from: crossover.first.clone(),
        to: crossover.second.clone(),
        above: crossover.first_ahead_to?,
        below: crossover.second_ahead_from?,
        at_bytes: crossing(analysis, crossover).and_then(|found| found.at_bytes),
    })
}

/// Sends without a copy, in each setting that has some.
pub(crate) fn zero_copies(analysis: &Analysis) -> Vec<ZeroCopy> {
    let one = |(cell, arm): (&CellAnalysis, &ArmAnalysis)| {
        let zerocopy = arm.zerocopy?;
        let ranked = arm.contrast.as_ref().filter(|contrast| contrast.verdict.is_ranked());
        Some(ZeroCopy {
            setting: cell.cell.clone(),
            method: arm.arm.label.clone(),
            copied_share: zerocopy.copied_share,
            is_copied: zerocopy.is_copied(),
            against: ranked.map(Against::of),
        })
    };
    usable_arms(analysis).filter_map(one).collect()
}

/// The arms that have usable numbers, each with its cell.
fn usable_arms(analysis: &Analysis) -> impl Iterator<Item = (&CellAnalysis, &ArmAnalysis)> {
    arms::in_cells(analysis).filter(|(_, arm)| arm.status == Status::Ok)
}

/// Methods with rare slices that are much slower, or whose baseline has them.
pub(crate) fn stalls(analysis: &Analysis) -> Vec<Stalls> {
    let one = |(cell, arm): (&CellAnalysis, &ArmAnalysis)| {
        let contrast = arm.contrast.as_ref().filter(|contrast| contrast.tail)?;
        Some(Stalls {
            setting: cell.cell.clone(),
            method: arm.arm.label.clone(),
            typical: contrast.ratio,
            with_stalls: contrast.total_ratio.value,
        })
    };
    let is_ranked = |arm: &ArmAnalysis| arm.arm.role == Role::Compared && arm.is_ranked();
    let compared = arms::in_cells(analysis).filter(|(_, arm)| is_ranked(arm));
    compared.filter_map(one).collect()
}

/// How far hidden copies of the baseline are from it.
pub(crate) fn self_check(run: &Run, analysis: &Analysis) -> SelfChecked {
    let checks = analysis.cells.iter().flat_map(|cell| &cell.checks);
    let contrasts: Vec<&Contrast> = checks.filter_map(|check| check.contrast.as_ref()).collect();
    let from_one = |ratio: f64| ratio.max(1.0 / ratio);
    let usable = contrasts.iter().filter_map(|contrast| contrast.simultaneous);
    let usable: Vec<Interval> = usable.filter(Interval::is_usable).collect();
    let span = usable
        .iter()
        .copied()
        .reduce(|a, b| Interval { low: a.low.min(b.low), high: a.high.max(b.high) });
    SelfChecked {
        baseline: run.header.plan.baseline.clone(),
        checks: analysis.self_check.counted,
        judged: analysis.self_check.judged,
        farthest: contrasts.iter().map(|c| from_one(c.ratio)).reduce(f64::max),
        span: span.filter(|_| usable.len() == contrasts.len()),
    }
}

/// Thread counts of these settings that are more than the processors of an end.
fn crowded(run: &Run, analysis: &Analysis) -> Option<Finding> {
    let (mut threads, cpus) = words::crowded(run)?;
    threads.retain(|own| analysis.cells.iter().any(|cell| cell.cell.threads == *own));
    (!threads.is_empty()).then_some(Finding::Crowded { threads, cpus })
}

/// Without which a decision could go wrong, the worst first.
pub(crate) fn cautions(run: &Run, analysis: &Analysis) -> Vec<Finding> {
    let plan = &run.header.plan;
    let other = run.header.confirms.clone();
    let mut out = Vec::from_iter(other.map(|run| Finding::Confirms { run }));
    let cpus = plan.cpus.as_ref().unwrap_or(&run.header.host.cpus);
    let is_apart = |t: &Topology| t.has_receiver() && !t.is_apart();
    if let ([cpu], true) = (cpus.as_slice(), plan.topologies().iter().any(is_apart)) {
        out.push(Finding::SharedCpu { cpu: *cpu });
    }
    if matches!(plan.schedule, Schedule::Window { .. } | Schedule::Messages { .. }) {
        out.push(Finding::Sequential);
    }
    out.extend(crowded(run, analysis));
    if plan.topologies().contains(&Topology::Sink) {
        out.push(Finding::Dropped);
    }
    out.extend(program_cautions(plan, analysis));
    let drift = analysis.drift.filter(|drift| drift.matters);
    out.extend(drift.map(|drift| Finding::Drift { over_run: drift.over_run }));
    out.extend(neighbours(analysis));
    out
}

fn neighbours(analysis: &Analysis) -> Option<Finding> {
    analysis.warnings.iter().find_map(|warning| match *warning {
        Warning::Neighbours { correlation, widened, .. } => {
            Some(Finding::Neighbours { correlation, widened })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;

// What programs of the user's do otherwise than the methods beside them.

/// Send buffers of programs, at least twice or at most half as large as those of all others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SendBuffers {
    /// Whose.
    pub methods: Vec<String>,
    /// The largest of theirs.
    pub theirs_bytes: u64,
    /// Those of all others.
    pub ours_bytes: u64,
}

/// What a program reads for each block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadByCalls {
    /// Its name.
    pub method: String,
    /// Bytes that its system calls read.
    pub bytes: f64,
    /// Bytes of a block, which it was told.
    pub block_bytes: u64,
}

/// The connections of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SenderConnections {
    /// Its name.
    pub method: String,
    /// How many it made.
    pub made: u64,
    /// Threads that it was told to have.
    pub threads: u32,
}

/// What programs do otherwise than all others, which may be why they are faster or slower.
fn program_cautions(plan: &Plan, analysis: &Analysis) -> Vec<Finding> {
    let names: Vec<&str> = plan.programs().iter().map(|program| &*program.name).collect();
    let facts = || {
        let all = analysis.told.arm_facts.iter();
        all.filter(|fact| names.contains(&&*fact.arm))
    };
    let held_back = facts().filter(|fact| fact.name == NODELAY && fact.value == NODELAY_OFF);
    let methods = distinct(held_back.map(|fact| fact.arm.clone()));
    let connections = facts().filter(|fact| fact.name == CONNECTIONS).filter_map(|fact| {
        let (method, threads) = (fact.arm.clone(), fact.cell.threads);
        Some(SenderConnections { method, made: fact.value.parse().ok()?, threads })
    });
    let connections = distinct(connections);
    let held_back = (!methods.is_empty()).then_some(Finding::HeldBack { methods });
    let number_of = |arm: &str, name: &str| {
        let own = facts().filter(|fact| fact.arm == arm && fact.name == name);
        own.filter_map(|fact| fact.value.parse::<u64>().ok()).max()
    };
    let buffers = names.iter().filter_map(|&name| {
        let (own, ours) = (number_of(name, SEND_BUFFER)?, number_of(name, OUR_SEND_BUFFER)?);
        (own >= 2 * ours || ours >= 2 * own).then(|| (name.to_owned(), own, ours))
    });
    let buffers: Vec<(String, u64, u64)> = buffers.collect();
    let largest = buffers.iter().map(|&(_, own, ours)| (own, ours)).max();
    let buffers = largest.map(|(theirs_bytes, ours_bytes)| {
        Finding::SendBuffers(SendBuffers {
            methods: buffers.into_iter().map(|(name, ..)| name).collect(),
            theirs_bytes,
            ours_bytes,
        })
    });
    let read = facts().filter(|fact| fact.name == PROGRAM_READ_BYTES).filter_map(|fact| {
        let (bytes, block_bytes): (f64, _) = (fact.value.parse().ok()?, fact.cell.size.0);
        let is_told = (bytes / block_bytes as f64 - 1.0).abs() <= READ_MORE_OR_LESS;
        (!is_told).then(|| ReadByCalls { method: fact.arm.clone(), bytes, block_bytes })
    });
    let readers: Vec<ReadByCalls> = first_of_each(read);
    let read = (!readers.is_empty()).then_some(Finding::ReadByCalls { readers });
    let senders = connections;
    let shared = (!senders.is_empty()).then_some(Finding::Connections { senders });
    [shared, held_back, buffers, read].into_iter().flatten().collect()
}

/// By so much of a block a program may read more or less: it reads what it is asked, too.
const READ_MORE_OR_LESS: f64 = 0.02;

/// One of each program: that with the smallest block.
fn first_of_each(read: impl Iterator<Item = ReadByCalls>) -> Vec<ReadByCalls> {
    let mut all: Vec<ReadByCalls> = read.collect();
    all.sort_by(|a, b| (&a.method, a.block_bytes).cmp(&(&b.method, b.block_bytes)));
    all.dedup_by(|later, first| later.method == first.method);
    all
}
