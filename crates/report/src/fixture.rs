//! A made-up run with its analysis, rich enough to show every case a report
//! has to tell: for tests and for the example page. Its arithmetic only has
//! to look like the real one's; nothing is concluded from it.

use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::axes::{Cell, Iovec, Mode, Study, Topology, WorkingSet};
use iolens_model::host::{Calibration, Fact, HostFacts};
use iolens_model::outcome::{
    Counts, EndFacts, Environment, PmuCounts, SliceOutcome, Status, TrialOutcome,
};
use iolens_model::plan::{NetworkOptions, Passes, Plan, Schedule, SocketOptions};
use iolens_model::reading::{NotMeasured, Reading};
use iolens_model::run::{Run, RunEnd, RunHeader, StoppedBy};
use iolens_model::trial::SliceKind;
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate, Figures, Interval, PairContrast,
    Rejected, SelfCheck, Verdict,
};

/// Three sizes, 1 and 4 threads, twelve passes.
pub(crate) fn run() -> (Run, Analysis) {
    build(&[64, 4096, 262_144], 12)
}

/// The default plan's sizes.
pub(crate) fn large() -> (Run, Analysis) {
    let sizes: Vec<u64> = (3..=10).map(|k| 1 << (2 * k)).collect();
    build(&sizes, 12)
}

/// As [`run`], five passes, `--quick`.
pub(crate) fn quick() -> (Run, Analysis) {
    let (mut run, analysis) = build(&[64, 4096, 262_144], 5);
    run.header.plan.quick = true;
    run.header.plan.passes = Passes { minimum: 5, maximum: 5 };
    (run, analysis)
}

/// As [`run`], one pass of fixed windows.
pub(crate) fn classic() -> (Run, Analysis) {
    let (mut run, analysis) = build(&[64, 4096, 262_144], 1);
    run.header.plan.schedule = Schedule::Window { window: Nanos(10 * Nanos::SECOND.0) };
    run.header.plan.passes = Passes { minimum: 1, maximum: 1 };
    (run, analysis)
}

/// Arm, role, fixed ns per message, ns per byte, copies at the sender.
const ARMS: [(&str, &str, Role, f64, f64, f64); 6] = [
    ("send_staged", "send_staged", Role::Baseline, 1100.0, 0.200, 2.0),
    ("send", "send", Role::Compared, 1040.0, 0.140, 1.0),
    ("send_per_field", "send_per_field", Role::Compared, 6400.0, 0.146, 1.0),
    ("sendmsg_iov", "sendmsg_iov", Role::Compared, 1230.0, 0.137, 1.0),
    ("send_staged (A/A)", "send_staged", Role::SelfCheck, 1100.0, 0.200, 2.0),
    ("memcpy", "memcpy", Role::Control, 22.0, 0.055, 1.0),
];

const WHY_FAILED: &str =
    "2 trials failed while its slice ran: recv: ECONNRESET (connection reset by peer)";

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

fn build(sizes: &[u64], passes: u32) -> (Run, Analysis) {
    let plan = plan(sizes, passes);
    let mut noise = Noise(7);
    let mut trials = Vec::new();
    let mut cells = Vec::new();
    for (position, cell) in (0..).zip(plan.cells()) {
        let values: Vec<Vec<f64>> = (0..passes).map(|_| times(&cell, &mut noise)).collect();
        for (pass, row) in (1..).zip(&values) {
            trials.push(trial(&cell, pass, position, row));
        }
        cells.push(cell_analysis(&cell, &values));
    }
    trials.sort_by_key(|trial| (trial.pass, trial.position));
    let isolated =
        Contrast { reason: "from isolated trials".into(), ..contrast(&spread(1.31, 0.02)) };
    if let Some(arm) = cells.last_mut().and_then(|cell| cell.arms.get_mut(3)) {
        arm.isolated = Some(isolated);
    }
    let analysis = Analysis {
        crossovers: Vec::new(),
        cost_models: Vec::new(),
        removed_copies: Vec::new(),
        extremes: Vec::new(),
        plateaus: Vec::new(),
        unexpected: None,
        drift: None,
        passes,
        delta: plan.delta,
        contrasts: u32::try_from(cells.len() * 3).unwrap_or(0),
        self_check: self_check(&cells),
        cells,
        rejected: rejected(),
        warnings: vec!["steal was 4.1 % of busy time (median over trials)".into()],
    };
    (Run { header: header(plan), trials }, analysis)
}

/// Time per message of each arm in one trial, ns.
fn times(cell: &Cell, noise: &mut Noise) -> Vec<f64> {
    let bytes = cell.message_bytes.0 as f64;
    let speed_up = 1.0 + 0.4 * f64::from(cell.threads - 1);
    let mood = (0.06 * noise.normal()).exp();
    let sd = if cell.threads == 4 { 0.028 } else { 0.012 };
    ARMS.iter()
        .map(|(label, _, _, fixed, per_byte, _)| {
            let wide = *label == "sendmsg_iov" && cell.threads == 4 && cell.message_bytes.0 == 4096;
            let own = if wide { 0.16 } else { sd };
            (fixed + per_byte * bytes) * mood / speed_up * (own * noise.normal()).exp()
        })
        .collect()
}

fn fails(cell: &Cell, label: &str) -> bool {
    cell.threads == 4 && cell.message_bytes.0 == 262_144 && label == "send_per_field"
}

fn cell_analysis(cell: &Cell, values: &[Vec<f64>]) -> CellAnalysis {
    let n = u32::try_from(values.len()).unwrap_or(0);
    let mut arms = Vec::new();
    for (i, (label, primitive, role, _, _, copies)) in ARMS.iter().enumerate() {
        let arm = Arm { label: (*label).into(), primitive: (*primitive).into(), role: *role };
        let failed = fails(cell, label);
        let own: Vec<f64> = values.iter().map(|row| row[i]).collect();
        let ln: Vec<f64> = values.iter().map(|row| (row[0] / row[i]).ln()).collect();
        let compared = matches!(role, Role::Compared | Role::SelfCheck) && !failed;
        arms.push(ArmAnalysis {
            zerocopy: None,
            latency: None,
            arm,
            status: if failed { Status::Failed } else { Status::Ok },
            reason: failed.then(|| WHY_FAILED.into()),
            figures: (!failed).then(|| figures(cell, &own, *role)),
            contrast: compared.then(|| contrast(&ln)),
            isolated: None,
            copies_sender: Some(*copies),
            copies_end_to_end: Some(if *role == Role::Control { *copies } else { copies + 1.0 }),
        });
    }
    let notes = match cell.message_bytes.0 {
        262_144 => vec!["the rings of one arm do not fit the L2 cache".into()],
        _ => Vec::new(),
    };
    let pairs = pairs(cell, values);
    CellAnalysis { cell: cell.clone(), trials_used: n, trials_started: n + 1, arms, pairs, notes }
}

fn pairs(cell: &Cell, values: &[Vec<f64>]) -> Vec<PairContrast> {
    let compared: Vec<usize> = (0..ARMS.len())
        .filter(|&i| ARMS[i].2 == Role::Compared && !fails(cell, ARMS[i].0))
        .collect();
    let mut pairs = Vec::new();
    for (at, &first) in compared.iter().enumerate() {
        for &second in &compared[at + 1..] {
            let ln: Vec<f64> = values.iter().map(|row| (row[second] / row[first]).ln()).collect();
            let measured = contrast(&ln);
            pairs.push(PairContrast {
                first: ARMS[first].0.into(),
                second: ARMS[second].0.into(),
                ratio: measured.ratio,
                n: measured.n,
                simultaneous: measured.simultaneous,
            });
        }
    }
    pairs
}

fn figures(cell: &Cell, ns: &[f64], role: Role) -> Figures {
    let bytes = cell.message_bytes.0 as f64;
    let map = |f: &dyn Fn(f64) -> f64| estimate(&ns.iter().map(|v| f(*v)).collect::<Vec<_>>());
    let control = role == Role::Control;
    let goodput = |v: f64| 8e9 * bytes / v;
    Figures {
        cycles_per_byte: None,
        tx_cycles_per_byte: None,
        rx_cycles_per_byte: None,
        l1d_misses_per_kib: None,
        llc_misses_per_kib: None,
        llc_references_per_kib: None,
        softirq_ns_per_byte: None,
        goodput_bits_per_s: (!control).then(|| map(&goodput)),
        ns_per_message: map(&|v| v),
        ns_per_byte: map(&|v| v / bytes),
        tx_cpu_ns_per_byte: Some(map(&|v| 0.97 * v / bytes)),
        rx_cpu_ns_per_byte: (!control).then(|| map(&|v| 0.61 * v / bytes)),
        tx_calls_per_message: map(&|_| 1.0),
        context_switches_per_message: Some(map(&|v| 0.02 * v / 1000.0)),
        trial_values: ns.iter().map(|v| if control { *v } else { goodput(*v) }).collect(),
    }
}

fn moments(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()))
}

fn estimate(values: &[f64]) -> Estimate {
    let (mean, sd) = moments(values);
    let half = |sd: f64| 2.2 * sd / (values.len() as f64).sqrt();
    Estimate {
        value: mean,
        interval: sd.map(|sd| Interval { low: mean - half(sd), high: mean + half(sd) }),
        n: u32::try_from(values.len()).unwrap_or(0),
    }
}

/// ln ratios around a value, for a contrast made by hand.
fn spread(ratio: f64, sd: f64) -> Vec<f64> {
    (0..12).map(|i| ratio.ln() + sd * (f64::from(i) - 5.5) / 3.6).collect()
}

fn contrast(ln: &[f64]) -> Contrast {
    let (mean, sd) = moments(ln);
    let half = |t: f64| {
        sd.map(|sd| t * sd / (ln.len() as f64).sqrt())
            .map(|h| Interval { low: (mean - h).exp(), high: (mean + h).exp() })
    };
    let (pointwise, pointwise90, simultaneous) = (half(2.2), half(1.8), half(3.3));
    let verdict = match (pointwise, pointwise90, simultaneous) {
        (_, Some(i), _) if i.low > 1.0 / 1.03 && i.high < 1.03 => Verdict::Equivalent,
        (_, _, Some(i)) if i.low > 1.03 => Verdict::Faster,
        (_, _, Some(i)) if i.high < 1.0 / 1.03 => Verdict::Slower,
        (Some(i), _, _) if !i.contains(1.0) => Verdict::Small,
        _ => Verdict::Inconclusive,
    };
    let open = verdict == Verdict::Inconclusive;
    Contrast {
        ratio: mean.exp(),
        n: u32::try_from(ln.len()).unwrap_or(0),
        sd_ln: sd,
        pointwise,
        pointwise90,
        simultaneous,
        total_ratio: Estimate { value: mean.exp(), interval: pointwise, n: 12 },
        tail: false,
        verdict,
        reason: match sd {
            Some(_) => "simultaneous 95 % interval against δ = 3 %".into(),
            None => "one trial has no interval".into(),
        },
        trials_needed: (open && sd.is_some()).then_some(61),
    }
}

fn self_check(cells: &[CellAnalysis]) -> SelfCheck {
    let contrasts = || cells.iter().filter_map(|cell| cell.arms[4].contrast.as_ref());
    let mut widths: Vec<f64> = contrasts().filter_map(Contrast::half_width).collect();
    widths.sort_by(f64::total_cmp);
    let out = |c: &&Contrast| c.pointwise.is_some_and(|i| !i.contains(1.0));
    SelfCheck {
        cells: u32::try_from(widths.len()).unwrap_or(0),
        excluding_one: u32::try_from(contrasts().filter(out).count()).unwrap_or(0),
        bound: 2,
        floor_median: widths.get(widths.len() / 2).copied(),
        floor_widest: widths.last().copied(),
        judged: 0,
    }
}

fn rejected() -> Vec<Rejected> {
    let cell = "256 KiB × 4 threads, loopback, stream, hot";
    let failed = |pass| Rejected {
        pass,
        cell: cell.into(),
        arm: Some("send_per_field".into()),
        status: Status::Failed,
        reason: "recv: ECONNRESET (connection reset by peer)".into(),
    };
    let gate = Rejected {
        pass: 5,
        cell: cell.into(),
        arm: None,
        status: Status::Invalid,
        reason: "3 migrations of pinned threads; pinned means none".into(),
    };
    vec![failed(1), failed(2), gate]
}

fn trial(cell: &Cell, pass: u32, position: u32, ns: &[f64]) -> TrialOutcome {
    let arms = ARMS.iter().map(|(label, primitive, role, _, _, copies)| ArmOutcome {
        arm: Arm { label: (*label).into(), primitive: (*primitive).into(), role: *role },
        status: if fails(cell, label) { Status::Failed } else { Status::Ok },
        reason: fails(cell, label).then(|| WHY_FAILED.into()),
        copies_sender: Some(*copies),
        copies_end_to_end: Some(if *role == Role::Control { *copies } else { copies + 1.0 }),
        latency: None,
    });
    let mut slices = Vec::new();
    for round in 0..3u32 {
        for (arm, ns) in ns.iter().enumerate() {
            let kind = if round == 0 { SliceKind::Discarded } else { SliceKind::Measured };
            if !fails(cell, ARMS[arm].0) {
                let seq = u32::try_from(slices.len()).unwrap_or(0);
                slices.push(slice(cell, seq, round, kind, arm, *ns));
            }
        }
    }
    TrialOutcome {
        pass,
        position,
        isolated: false,
        cell: cell.clone(),
        started_unix_ns: 1_790_000_000_000_000_000
            + u64::from(pass * 100 + position) * 1_000_000_000,
        duration_ns: 1_310_000_000,
        status: Status::Ok,
        reason: None,
        arms: arms.collect(),
        slices,
        environment: Environment::unknown("/proc/pressure is not there"),
        tx: Some(end(cell)),
        rx: Some(end(cell)),
    }
}

fn slice(cell: &Cell, seq: u32, round: u32, kind: SliceKind, arm: usize, ns: f64) -> SliceOutcome {
    let messages = 1000;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
    let time_ns = (ns * 1000.0) as u64;
    let tx = Counts {
        messages,
        bytes: messages * cell.message_bytes.0,
        calls: messages,
        time_ns,
        task_clock_ns: Some(time_ns * 97 / 100),
        voluntary_switches: Some(3),
        involuntary_switches: Some(1),
        migrations: Some(0),
        minor_faults: Some(0),
        major_faults: Some(0),
        retransmits: Some(0),
        softirq_ticks: None,
        zerocopy: None,
        pmu: PmuCounts::default(),
    };
    let rx = Counts { retransmits: None, task_clock_ns: Some(time_ns * 61 / 100), ..tx };
    let control = ARMS[arm].2 == Role::Control;
    SliceOutcome { seq, round, kind, arm, all_active_ns: time_ns, tx, rx: (!control).then_some(rx) }
}

fn end(cell: &Cell) -> EndFacts {
    let no_pmu = |metric: &str| NotMeasured {
        metric: metric.into(),
        why: "no PMU in this guest (event_source has software, msr, tracepoint)".into(),
    };
    EndFacts {
        build: "iolens 0.1.0 (8161c3e)".into(),
        message_bytes: cell.message_bytes.0,
        threads: cell.threads,
        thread_cpus: vec![vec![0]],
        congestion: Some("reno".into()),
        send_buffer_bytes: Some(425_984),
        receive_buffer_bytes: Some(425_984),
        nodelay: Some(true),
        mss_bytes: Some(65_483),
        mtu_bytes: None,
        packet_taps: Some(0),
        ring_bytes: Some(65_536),
        bracket_ns: 8_100_000,
        not_measured: vec![no_pmu("cycles_user"), no_pmu("cycles_kernel"), no_pmu("llc_misses")],
    }
}

fn plan(sizes: &[u64], passes: u32) -> Plan {
    Plan {
        study: Study::Net,
        primitives: ["send_staged", "send", "send_per_field", "sendmsg_iov"]
            .map(String::from)
            .to_vec(),
        baseline: "send_staged".into(),
        sizes: sizes.iter().map(|&size| Bytes(size)).collect(),
        threads: vec![1, 4],
        topologies: vec![Topology::Loopback],
        modes: vec![Mode::Stream],
        working_sets: vec![WorkingSet::Hot],
        fields: 8,
        iovec: Iovec::PerMessage,
        receiver: "recv".into(),
        schedule: Schedule::Slices { slice: Nanos(5_000_000), discarded_rounds: 5, rounds: 40 },
        passes: Passes { minimum: passes, maximum: 60 },
        budget: Nanos(600 * Nanos::SECOND.0),
        precision: 0.03,
        delta: 0.03,
        quick: false,
        isolate: false,
        seed: 20_260_101,
        cpus: None,
        socket: SocketOptions {
            congestion: "reno".into(),
            buffer_bytes: Bytes(212_992),
            nodelay: true,
            receive_bytes: Bytes(262_144),
        },
        network: NetworkOptions::default(),
    }
}

fn header(plan: Plan) -> RunHeader {
    let fact = |group: &str, name: &str, value: &str| Fact {
        group: group.into(),
        name: name.into(),
        value: Reading::Exact(value.into()),
    };
    let unknown = |group: &str, name: &str, why: &str| Fact {
        group: group.into(),
        name: name.into(),
        value: Reading::not_measured(why),
    };
    RunHeader {
        primitives: Vec::new(),
        id: "4f1c09ab".into(),
        name: Some("before <script>alert(1)</script> & after".into()),
        started_unix_ns: 1_790_000_000_000_000_000,
        build: "iolens 0.1.0 (8161c3e)".into(),
        command: ["iolens", "run", "net", "--name", "before & after"].map(String::from).to_vec(),
        plan,
        host: HostFacts {
            cpus: vec![0, 1],
            l1d: Reading::Exact(Bytes(32 << 10)),
            l2: Reading::Exact(Bytes(1 << 20)),
            llc: Reading::Exact(Bytes(36 << 20)),
            memory: Reading::Exact(Bytes(8 << 30)),
            descriptors_max: Reading::Exact(1024),
            facts: vec![
                fact("cpu", "model", "Example Server Processor 8480 @ 2.60GHz"),
                fact("cpu", "online", "0-1"),
                unknown("cpu", "frequency", "no cpufreq in this guest"),
                fact("cpu", "mitigations", "spectre_v2: Enhanced IBRS"),
                fact("system", "os", "Debian GNU/Linux 13 (trixie)"),
                fact("system", "kernel", "6.12.43 #1 SMP PREEMPT_DYNAMIC"),
                fact("system", "hypervisor", "kvm"),
                fact("network", "net.core.wmem_max", "212992"),
                fact("network", "net.ipv4.tcp_congestion_control", "cubic"),
                unknown("counters", "cycles", "no PMU in this guest"),
            ],
        },
        calibration: Calibration {
            empty_call_ns: 112.0,
            clock_read_ns: 27.4,
            loop_ns: 1_000_000,
            harness_message_ns: 2.1,
            harness_slice_ns: 840.0,
            receipt_round_trip_ns: Some(22_000.0),
            memcpy_hot_bytes_per_s: 18.2e9,
            memcpy_cold_bytes_per_s: 7.9e9,
            memcpy_hot_all_bytes_per_s: 31.0e9,
            memcpy_cold_all_bytes_per_s: 12.4e9,
            threads: 2,
            duration_ns: 900_000_000,
        },
        end: Some(RunEnd {
            finished_unix_ns: 1_790_000_140_000_000_000,
            stopped_by: StoppedBy::Budget,
            unmet: vec!["4 KiB × 4 threads, sendmsg_iov: ±9.1 % > 3 %".into()],
        }),
    }
}
