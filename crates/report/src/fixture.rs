//! A made-up run with its analysis, rich enough to show every case a report
//! has to tell: for tests and for the example page. Its arithmetic only has
//! to look like the real one's; nothing is concluded from it.

use std::sync::Arc;

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::{Mode, Topology};
use iolens_model::cell::Cell;
use iolens_model::family::{Condition, Family};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::plan::{Passes, Schedule};
use iolens_model::reading::Reading;
use iolens_model::run::{Run, RunHeader};
use iolens_model::units::Nanos;
use iolens_stats::Check;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, GroupCheck, PairContrast, Quantity, Rejected,
    SelfCheck, Told,
};
use iolens_stats::remark::{Excess, Remark, RemarkKind, Warning};

// Paths, because an example includes this file from another directory.
#[path = "fixture/alone.rs"]
pub(crate) mod alone;
#[path = "fixture/derived.rs"]
mod derived;
#[path = "fixture/measured.rs"]
mod measured;
#[path = "fixture/paths.rs"]
pub(crate) mod paths;
#[path = "fixture/profiles.rs"]
mod profiles;
#[path = "fixture/setting.rs"]
mod setting;
#[path = "fixture/trials.rs"]
mod trials;

/// Three sizes, 1 and 4 threads, twelve passes, loopback.
pub(crate) fn run() -> (Run, Analysis) {
    build(&Shape::small(12))
}

/// As [`run`] with the default plan's sizes.
pub(crate) fn large() -> (Run, Analysis) {
    build(&Shape { sizes: &SIZES, ..Shape::small(12) })
}

/// As [`run`], five passes, `--quick`.
pub(crate) fn quick() -> (Run, Analysis) {
    let (mut run, analysis) = build(&Shape::small(5));
    run.header.plan.quick = true;
    run.header.plan.passes = Passes { minimum: 5, maximum: 5 };
    (run, analysis)
}

/// As [`run`], one pass of fixed windows.
pub(crate) fn classic() -> (Run, Analysis) {
    let (mut run, analysis) = build(&Shape::small(1));
    run.header.plan.schedule = Schedule::Window { window: Nanos(10 * Nanos::SECOND.0) };
    run.header.plan.passes = Passes { minimum: 1, maximum: 1 };
    (run, analysis)
}

/// Everything there is: veth, five arms with a zero-copy one that the kernel
/// copied, eight sizes, four thread counts, both modes, a PMU, an arm that
/// failed and one that was skipped, crossovers, cost models, extremes, and
/// samples of one cell.
pub(crate) fn whole() -> (Run, Analysis) {
    let (mut run, analysis) = build(&Shape::whole_run());
    run.profiles = profiles::of(&analysis.cells[2].cell);
    (run, analysis)
}

/// As [`whole`] with one size and thread count.
pub(crate) fn one_size() -> (Run, Analysis) {
    build(&Shape { sizes: &[4096], threads: &[1], ..Shape::whole_run() })
}

/// As [`whole`] on a machine without a PMU.
pub(crate) fn without_pmu() -> (Run, Analysis) {
    build(&Shape { pmu: false, ..Shape::whole_run() })
}

/// Arms of every family, one of them with more than a figure can show: veth,
/// eight sizes, two thread counts, both modes.
pub(crate) fn families() -> (Run, Analysis) {
    build(&Shape { arms: &FAMILIES, threads: &[1, 4], pmu: false, ..Shape::whole_run() })
}

/// The same run a second time, on another kernel.
pub(crate) fn again(run: &mut Run) {
    run.header.id = "77aa0011".into();
    run.header.name = None;
    let facts = run.header.host.facts.iter_mut();
    for fact in facts.filter(|fact| fact.name == "kernel") {
        fact.value = Reading::Exact("6.13.1 #1 SMP PREEMPT_DYNAMIC".into());
    }
}

const SIZES: [u64; 8] = [64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1 << 20];

/// What is run.
#[derive(Clone, Copy)]
struct Shape {
    sizes: &'static [u64],
    threads: &'static [u32],
    modes: &'static [Mode],
    topology: Topology,
    arms: &'static [ArmSpec],
    passes: u32,
    pmu: bool,
}

impl Shape {
    fn small(passes: u32) -> Shape {
        Shape {
            sizes: &[64, 4096, 262_144],
            threads: &[1, 4],
            modes: &[Mode::Stream],
            topology: Topology::Loopback,
            arms: &PLAIN,
            passes,
            pmu: false,
        }
    }

    fn whole_run() -> Shape {
        Shape {
            sizes: &SIZES,
            threads: &[1, 2, 4, 8],
            modes: &[Mode::Stream, Mode::Rr],
            topology: Topology::Veth,
            arms: &ALL,
            passes: 12,
            pmu: true,
        }
    }

    /// Whether what is derived from whole curves is there.
    fn whole(&self) -> bool {
        self.topology == Topology::Veth
    }
}

/// An arm and what it costs.
#[derive(Clone, Copy)]
struct ArmSpec {
    label: &'static str,
    primitive: &'static str,
    role: Role,
    fixed_ns: f64,
    per_byte_ns: f64,
    copies_sender: f64,
}

const fn arm(label: &'static str, role: Role, cost: [f64; 2], copies_sender: f64) -> ArmSpec {
    let [fixed_ns, per_byte_ns] = cost;
    ArmSpec { label, primitive: label, role, fixed_ns, per_byte_ns, copies_sender }
}

const STAGED: ArmSpec = arm("send_staged", Role::Baseline, [1100.0, 0.200], 2.0);
const SEND: ArmSpec = arm("send", Role::Compared, [1040.0, 0.140], 1.0);
const PER_FIELD: ArmSpec = arm("send_per_field", Role::Compared, [6400.0, 0.146], 1.0);
const IOV: ArmSpec = arm("sendmsg_iov", Role::Compared, [1230.0, 0.137], 1.0);
const ZEROCOPY: ArmSpec = arm("sendmsg_zerocopy", Role::Compared, [3900.0, 0.151], 1.0);
const SELF_CHECK: ArmSpec = ArmSpec { label: "send_staged (A/A)", role: Role::SelfCheck, ..STAGED };
const MEMCPY: ArmSpec = arm("memcpy", Role::Control, [22.0, 0.055], 1.0);

const FAMILIES: [ArmSpec; 19] = [
    STAGED,
    IOV,
    ZEROCOPY,
    SEND,
    PER_FIELD,
    arm("write", Role::Compared, [1050.0, 0.142], 1.0),
    arm("writev", Role::Compared, [1240.0, 0.139], 1.0),
    arm("sendfile", Role::Compared, [1300.0, 0.080], 0.0),
    arm("sendfile_file", Role::Compared, [1320.0, 0.076], 0.0),
    arm("splice", Role::Compared, [2100.0, 0.085], 0.0),
    arm("uring_send", Role::Compared, [1150.0, 0.141], 1.0),
    arm("uring_send_zc", Role::Compared, [2000.0, 0.180], 1.0),
    arm("uring_send_zc_fixed", Role::Compared, [1900.0, 0.178], 1.0),
    arm("uring_sendmsg", Role::Compared, [1350.0, 0.140], 1.0),
    arm("uring_sendmsg_zc", Role::Compared, [2900.0, 0.181], 1.0),
    arm("uring_later", Role::Compared, [1000.0, 0.120], 1.0),
    SELF_CHECK,
    MEMCPY,
    ArmSpec { label: "null", role: Role::Control, ..MEMCPY },
];

/// What a primitive is listed with and what it needs, as the engine has it.
pub(crate) fn listed(primitive: &str) -> (Option<Family>, Option<Condition>) {
    let family = match primitive {
        "send_staged" | "sendmsg_iov" | "sendmsg_zerocopy" => Family::Classic,
        "sendfile" | "sendfile_file" | "splice" => Family::PageMoving,
        "memcpy" => Family::Controls,
        id if id.starts_with("uring") => Family::IoUring,
        _ => Family::Plain,
    };
    let condition = match primitive {
        "send" | "write" | "uring_send" | "uring_send_zc" | "uring_send_zc_fixed" => {
            Some(Condition::Contiguous)
        }
        "sendfile" | "sendfile_file" => Some(Condition::InFile),
        "splice" => Some(Condition::Unchanged),
        _ => None,
    };
    (Some(family), condition)
}

const PLAIN: [ArmSpec; 6] = [STAGED, SEND, PER_FIELD, IOV, SELF_CHECK, MEMCPY];
const ALL: [ArmSpec; 7] = [STAGED, SEND, PER_FIELD, IOV, ZEROCOPY, SELF_CHECK, MEMCPY];

/// The arms that a plan names.
fn compared(arms: &[ArmSpec]) -> impl Iterator<Item = &ArmSpec> {
    arms.iter().filter(|arm| matches!(arm.role, Role::Baseline | Role::Compared))
}

impl ArmSpec {
    fn arm(&self) -> Arm {
        Arm { label: self.label.into(), primitive: self.primitive.into(), role: self.role }
    }

    fn copies_end_to_end(&self) -> f64 {
        if self.role == Role::Control { self.copies_sender } else { self.copies_sender + 1.0 }
    }

    /// Why the arm has no numbers in a cell.
    fn trouble(&self, cell: &Cell) -> Option<(Status, &'static str)> {
        match (self.label, cell.threads, cell.size.0) {
            ("send_per_field", 4, 262_144) => Some((
                Status::Failed,
                "2 trials failed while its slice ran: recv: ECONNRESET (connection reset by peer)",
            )),
            ("sendmsg_zerocopy", 8, 1_048_576) => Some((
                Status::Skipped,
                "message needs 8388608 bytes of locked memory, RLIMIT_MEMLOCK is 8388608, \
                 optmem_max is 131072",
            )),
            _ => None,
        }
    }
}

/// A small generator: the fixture must be the same on every machine.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A run of another study, of twelve passes; `trial` makes each visit of a cell from a
/// trial of this fixture.
pub(crate) fn of_trials(
    header: RunHeader,
    trial: impl Fn(&TrialOutcome, &Cell, u32) -> TrialOutcome,
) -> (Run, Analysis) {
    let like = TrialOutcome {
        duration_ns: 60_000_000_000,
        status: Status::Ok,
        reason: None,
        isolated: false,
        ..run().0.trials[0].clone()
    };
    let cells = header.plan.cells();
    let visits = (1..=12).flat_map(|pass| cells.iter().map(move |cell| (pass, cell)));
    let trials = visits.map(|(pass, cell)| trial(&like, cell, pass)).collect();
    let run = Run { header, trials, profiles: Vec::new(), searches: Vec::new() };
    let analysis = iolens_stats::analyse(&run);
    (run, analysis)
}

fn build(shape: &Shape) -> (Run, Analysis) {
    let plan = setting::plan(shape);
    let mut noise = Noise(7);
    let mut trials = Vec::new();
    let mut cells = Vec::new();
    for (position, cell) in (0..).zip(plan.cells()) {
        let values: Vec<Vec<f64>> =
            (0..shape.passes).map(|_| times(shape, &cell, &mut noise)).collect();
        for (pass, row) in (1..).zip(&values) {
            trials.push(trials::trial(shape, &cell, (pass, position), row));
        }
        cells.push(cell_analysis(shape, &cell, &values));
    }
    trials.sort_by_key(|trial| (trial.pass, trial.position));
    isolate(&mut cells);
    let compared = compared(shape.arms).count();
    let analysis = Analysis {
        crossovers: Vec::new(),
        crossings: Vec::new(),
        cost_models: Vec::new(),
        removed_copies: Vec::new(),
        extremes: Vec::new(),
        plateaus: Vec::new(),
        read_plateaus: Vec::new(),
        unexpected: None,
        drift: None,
        neighbours: None,
        passes: shape.passes,
        delta: plan.delta,
        contrasts: u32::try_from(cells.len() * (compared - 1)).unwrap_or(0),
        self_check: self_check(&cells),
        cells,
        rejected: rejected(shape),
        warnings: vec![Warning::FewPasses { complete: shape.passes, minimum: 20 }],
        told: Arc::new(Told::of(&trials)),
        kinds: Arc::default(),
    };
    let analysis = if shape.whole() { derived::with(shape, analysis) } else { analysis };
    (
        Run {
            header: setting::header(shape, plan),
            trials,
            profiles: Vec::new(),
            searches: Vec::new(),
        },
        analysis,
    )
}

/// The last cell was measured with isolated trials too.
fn isolate(cells: &mut [CellAnalysis]) {
    let values = measured::contrast(&measured::spread(1.31, 0.02));
    let isolated = values;
    let arms = cells.last_mut().map(|cell| &mut cell.arms);
    let arm = arms.and_then(|arms| arms.iter_mut().find(|arm| arm.arm.label == IOV.label));
    if let Some(arm) = arm {
        arm.isolated = Some(isolated);
    }
}

/// Time per message of each arm in one trial, ns.
fn times(shape: &Shape, cell: &Cell, noise: &mut Noise) -> Vec<f64> {
    let bytes = cell.size.0 as f64;
    let speed_up = speed_up(cell);
    let mood = (0.06 * noise.normal()).exp();
    let sd = if cell.threads == 4 { 0.028 } else { 0.012 };
    let trip = if cell.is_rr() { 9000.0 } else { 0.0 };
    let time = |arm: &ArmSpec| {
        let wide = arm.label == IOV.label && cell.threads == 4 && cell.size.0 == 4096;
        let own = if wide { 0.16 } else { sd };
        (arm.fixed_ns + trip + arm.per_byte_ns * bytes) * mood / speed_up
            * (own * noise.normal()).exp()
    };
    shape.arms.iter().map(time).collect()
}

/// How much faster the threads of a cell are than one.
fn speed_up(cell: &Cell) -> f64 {
    1.0 + 0.4 * f64::from(cell.threads.min(4) - 1)
}

/// The time of one message of one thread: the round trip in mode `rr`.
fn of_one_thread(cell: &Cell, ns: f64) -> f64 {
    ns * f64::from(cell.threads)
}

fn cell_analysis(shape: &Shape, cell: &Cell, values: &[Vec<f64>]) -> CellAnalysis {
    let n = u32::try_from(values.len()).unwrap_or(0);
    let analyse = |(i, arm)| arm_analysis(shape, cell, arm, values, i);
    let arms: Vec<ArmAnalysis> = shape.arms.iter().enumerate().map(analyse).collect();
    let remarks = match cell.size.0 {
        262_144 => {
            let (what, ratio, trials, of) = (Excess::Rings, 2.0, n, n);
            let kind = RemarkKind::Excess { what, ratio, trials, of };
            vec![Remark { arm: Some(shape.arms[0].label.to_owned()), kind }]
        }
        _ => Vec::new(),
    };
    let pairs = pairs(shape, cell, values);
    let copy = arms.iter().find(|arm| arm.arm.role == Role::SelfCheck);
    let checks = copy.map(|copy| GroupCheck {
        arms: Vec::new(),
        contrast: copy.contrast.clone(),
        cpu_contrast: None,
    });
    CellAnalysis {
        checks: checks.into_iter().collect(),
        cell: cell.clone(),
        trials_used: n,
        trials_started: n + 1,
        arms,
        compared: Quantity::Time,
        pairs,
        cpu_pairs: Vec::new(),
        remarks,
    }
}

fn arm_analysis(
    shape: &Shape,
    cell: &Cell,
    arm: &ArmSpec,
    values: &[Vec<f64>],
    i: usize,
) -> ArmAnalysis {
    let trouble = arm.trouble(cell);
    let own: Vec<f64> = values.iter().map(|row| row[i]).collect();
    let ln: Vec<f64> = values.iter().map(|row| (row[0] / row[i]).ln()).collect();
    let usable = trouble.is_none();
    let contrasted = matches!(arm.role, Role::Compared | Role::SelfCheck) && usable;
    let trips = || own.iter().map(|ns| of_one_thread(cell, *ns)).collect::<Vec<_>>();
    let answers = cell.is_rr() && arm.role != Role::Control && usable;
    let (family, condition) = listed(arm.primitive);
    ArmAnalysis {
        arm: arm.arm(),
        family,
        condition,
        status: trouble.map_or(Status::Ok, |(status, _)| status),
        reason: trouble.map(|(_, why)| why.into()),
        check: None,
        figures: usable.then(|| measured::figures(shape, cell, &own, arm.role)),
        contrast: contrasted.then(|| measured::contrast(&ln)),
        cpu_contrast: None,
        isolated: None,
        unequal: None,
        copies_sender: Some(arm.copies_sender),
        copies_end_to_end: Some(arm.copies_end_to_end()),
        zerocopy: measured::zerocopy(arm, shape.passes).filter(|_| usable),
        mapped_share: None,
        multishot: None,
        latency: answers.then(|| measured::latency(&trips())),
        server: None,
    }
}

fn pairs(shape: &Shape, cell: &Cell, values: &[Vec<f64>]) -> Vec<PairContrast> {
    let usable = |arm: &ArmSpec| arm.role == Role::Compared && arm.trouble(cell).is_none();
    let compared: Vec<usize> = (0..shape.arms.len()).filter(|&i| usable(&shape.arms[i])).collect();
    let mut pairs = Vec::new();
    for (at, &first) in compared.iter().enumerate() {
        for &second in &compared[at + 1..] {
            let ln: Vec<f64> = values.iter().map(|row| (row[second] / row[first]).ln()).collect();
            let measured = measured::contrast(&ln);
            pairs.push(PairContrast {
                first: shape.arms[first].label.into(),
                second: shape.arms[second].label.into(),
                ratio: measured.ratio,
                n: measured.n,
                simultaneous: measured.simultaneous,
            });
        }
    }
    pairs
}

fn self_check(cells: &[CellAnalysis]) -> SelfCheck {
    let checks = || cells.iter().flat_map(|cell| &cell.arms);
    let contrasts = || {
        let copies = checks().filter(|arm| arm.arm.role == Role::SelfCheck);
        copies.filter_map(|arm| arm.contrast.as_ref())
    };
    let mut widths: Vec<f64> = contrasts().filter_map(Contrast::half_width).collect();
    widths.sort_by(f64::total_cmp);
    let out = |c: &&Contrast| c.pointwise.is_some_and(|i| !i.contains(1.0));
    SelfCheck {
        checks: u32::try_from(widths.len()).unwrap_or(0),
        counted: u32::try_from(widths.len()).unwrap_or(0),
        excluding_one: u32::try_from(contrasts().filter(out).count()).unwrap_or(0),
        bound: 2.max(u32::try_from(widths.len() / 7).unwrap_or(0)),
        floor_median: widths.get(widths.len() / 2).copied(),
        floor_widest: widths.last().copied(),
        judged: 0,
    }
}

fn rejected(shape: &Shape) -> Vec<Rejected> {
    let cell = format!("256 KiB × 4 threads, {}, stream, hot", shape.topology);
    let failed = |pass| Rejected {
        pass,
        cell: cell.clone(),
        arm: Some("send_per_field".into()),
        status: Status::Failed,
        check: None,
        reason: "recv: ECONNRESET (connection reset by peer)".into(),
    };
    let gate = Rejected {
        pass: 5,
        cell: cell.clone(),
        arm: None,
        status: Status::Invalid,
        check: Some(Check::Migrations),
        reason: "3 migrations of pinned threads; pinned means none".into(),
    };
    vec![failed(1), failed(2), gate]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_run_has_every_case() {
        let (run, analysis) = whole();
        assert_eq!(run.header.primitives.len(), ALL.len() - 1);
        assert_eq!(analysis.cells.len(), 8 * 4 * 2);
        let arms = || analysis.arms();
        assert!(arms().any(|arm| arm.shown_label() == "sendmsg_zerocopy (copied)"));
        assert!(arms().any(|arm| arm.status == Status::Skipped));
        assert!(arms().any(|arm| arm.latency.as_ref().is_some_and(|l| l.p99_ns.is_some())));
        assert!(!analysis.crossovers.is_empty() && analysis.extremes.len() == 8);
        let cycles = |analysis: &Analysis| {
            let figures = |cell: &CellAnalysis| cell.arms[0].figures.clone();
            analysis.cells.iter().filter_map(figures).any(|f| f.cycles_per_byte.is_some())
        };
        assert!(cycles(&analysis) && !cycles(&without_pmu().1));
    }
}
