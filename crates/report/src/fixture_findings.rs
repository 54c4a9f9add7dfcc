//! The fixture's run with everything that an analysis may find: crossovers,
//! cost models, a removed copy, late copies, round trips, data paths. Values
//! are set by hand, so that tests can name them.

use std::borrow::Cow;

use iolens_model::arm::Role;
use iolens_model::axes::{Mode, Topology};
use iolens_model::cell::Cell;
use iolens_model::data_path::{
    CallsPerMessage, DataPath, End, Hop, Movement, Mover, PrimitiveFacts,
};
use iolens_model::reading::Histogram;
use iolens_model::run::Run;
use iolens_model::transport::Transport;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, CostModel, Crossover, CrossoverPoint,
    CrossoverShape, Drift, Estimate, Interval, LatencyFigures, PairContrast, Plateau, PlateauAxis,
    RemovedCopy, Unexpected, Verdict, ZerocopyFigures,
};

use crate::fixture;
use crate::fixture::paths::{copy_in, copy_out, gather, hop};

const ZERO: &str = "sendmsg_zerocopy";

/// Two curves of three sizes in mode stream over loopback, and one in mode rr
/// over veth.
pub(crate) fn findings() -> (Run, Analysis) {
    with_findings(fixture::run())
}

/// As [`findings`] with eight sizes and so many thread counts that there are
/// this many cells.
pub(crate) fn many(cells: usize) -> (Run, Analysis) {
    let (run, mut analysis) = with_findings(fixture::large());
    let known = analysis.cells.clone();
    let more = (2u32..).flat_map(|times| known.iter().map(move |cell| (5 * times, cell)));
    for (times, cell) in more.take(cells.saturating_sub(known.len())) {
        let mut cell = cell.clone();
        cell.cell.threads *= times;
        analysis.cells.push(cell);
    }
    (run, analysis)
}

/// Adds the findings to a run and its analysis.
pub(crate) fn with_findings((mut run, mut analysis): (Run, Analysis)) -> (Run, Analysis) {
    if !run.header.plan.primitives.iter().any(|id| id == ZERO) {
        run.header.plan.primitives.push(ZERO.into());
    }
    run.header.plan.net_mut().expect("the fixture is of net").topologies =
        vec![Topology::Loopback, Topology::Veth];
    run.header.plan.net_mut().expect("the fixture is of net").modes = vec![Mode::Stream, Mode::Rr];
    run.header.primitives = primitives();
    analysis.cells.iter_mut().for_each(add_zerocopy);
    add_findings(&mut analysis);
    let one_thread = |cell: &&CellAnalysis| cell.cell.threads == 1;
    let rr: Vec<CellAnalysis> =
        analysis.cells.iter().filter(one_thread).cloned().map(request_response).collect();
    analysis.cells.extend(rr);
    (run, analysis)
}

/// A value with a half-width.
pub(crate) fn estimate(value: f64, half: f64) -> Estimate {
    Estimate { value, interval: Some(interval(value, half)), n: 12 }
}

fn interval(value: f64, half: f64) -> Interval {
    Interval { low: value - half, high: value + half }
}

/// An arm that takes 1.40 times as long as `sendmsg_iov`, all of it copied.
fn add_zerocopy(cell: &mut CellAnalysis) {
    cell.arms.retain(|arm| arm.arm.primitive != ZERO);
    let found = cell.arms.iter().rposition(|arm| arm.arm.role == Role::Compared);
    let copying = cell.arms.iter().find(|arm| arm.arm.label == "sendmsg_iov");
    let (Some(at), Some(copying)) = (found, copying) else { return };
    let mut arm = copying.clone();
    (arm.arm.label, arm.arm.primitive) = (ZERO.into(), ZERO.into());
    arm.zerocopy = Some(ZerocopyFigures {
        sends: 24_000,
        completions: 24_000,
        notifications_per_send: Some(0.25),
        copied_share: Some(1.0),
        enobufs: 3,
    });
    if let Some(contrast) = &mut arm.contrast {
        slower(contrast);
    }
    if let Some(figures) = &mut arm.figures {
        figures.ns_per_message.value *= 1.4;
        figures.ns_per_byte.as_mut().into_iter().for_each(|per| per.value *= 1.4);
    }
    arm.isolated = None;
    cell.arms.insert(at + 1, arm);
    for first in ["send", "send_per_field", "sendmsg_iov"] {
        cell.pairs.retain(|pair| pair.first != first || pair.second != ZERO);
        cell.pairs.push(PairContrast {
            first: first.into(),
            second: ZERO.into(),
            ratio: if first == "send_per_field" { 0.4 } else { 1.4 },
            n: 12,
            simultaneous: Some(if first == "send_per_field" {
                interval(0.4, 0.01)
            } else {
                interval(1.4, 0.04)
            }),
        });
    }
}

fn slower(contrast: &mut Contrast) {
    contrast.ratio /= 1.4;
    let scale = |i: Interval| Interval { low: i.low / 1.4, high: i.high / 1.4 };
    contrast.pointwise = contrast.pointwise.map(scale);
    contrast.pointwise90 = contrast.pointwise90.map(scale);
    contrast.simultaneous = contrast.simultaneous.map(scale);
    contrast.verdict = match contrast.simultaneous {
        Some(i) if i.high < 0.97 => Verdict::Slower,
        Some(i) if i.low > 1.03 => Verdict::Faster,
        _ => Verdict::Inconclusive,
    };
}

fn add_findings(analysis: &mut Analysis) {
    let mut curves: Vec<Cell> = analysis.cells.iter().map(|cell| cell.cell.curve()).collect();
    curves.dedup();
    let sizes: Vec<Bytes> = analysis
        .cells
        .iter()
        .filter(|cell| cell.cell.threads == 1)
        .map(|cell| cell.cell.size)
        .collect();
    analysis.crossovers = curves.iter().flat_map(|curve| crossovers(curve, &sizes)).collect();
    analysis.cost_models = curves.iter().flat_map(cost_models).collect();
    analysis.removed_copies = analysis.cells.iter().map(removed_copy).collect();
    let at = |cells: &[CellAnalysis]| cells.iter().map(|c| c.cell.clone()).next();
    let Some(first) = at(&analysis.cells) else { return };
    analysis.plateaus = vec![Plateau {
        label: "send_staged".into(),
        from: first.clone(),
        axis: PlateauAxis::Threads,
        goodput_bits_per_s: estimate(12.1e9, 0.2e9),
        best_beyond_bits_per_s: estimate(12.2e9, 0.3e9),
    }];
    analysis.unexpected = Some(Unexpected {
        cell: first,
        label: "sendmsg_iov".into(),
        measured_ns: estimate(1364.0, 20.0),
        expected_ns: 1100.0,
        ratio: 1.24,
        simultaneous: Some(interval(1.24, 0.03)),
        candidates: 24,
        beyond_interval: true,
    });
    analysis.drift = Some(Drift {
        per_hour: 0.61,
        interval: interval(0.61, 0.2),
        over_run: 0.041,
        n: 72,
        matters: true,
    });
}

fn crossovers(curve: &Cell, sizes: &[Bytes]) -> Vec<Crossover> {
    let (smallest, largest) = (sizes[0], sizes[sizes.len() - 1]);
    let make = |first: &str, second: &str, ratios: [f64; 3]| {
        let point = |(i, &size): (usize, &Bytes)| {
            let ratio = ratios[i.min(2)];
            let simultaneous = Some(interval(ratio, 0.015));
            CrossoverPoint { size, ratio, simultaneous }
        };
        let crosses = ratios[0] < 1.0 && ratios[2] > 1.0;
        Crossover {
            curve: curve.clone(),
            first: first.into(),
            second: second.into(),
            smallest,
            largest,
            first_ahead_to: Some(if crosses { smallest } else { largest }),
            second_ahead_from: crosses.then(|| sizes[1]),
            shape: match crosses {
                true => CrossoverShape::Crosses,
                false => CrossoverShape::FirstThroughout,
            },
            points: sizes.iter().enumerate().map(point).collect(),
            steps: Vec::new(),
        }
    };
    vec![
        make("send_staged", "sendmsg_iov", [0.89, 1.055, 1.45]),
        make("send_staged", ZERO, [0.64, 0.74, 0.93]),
        make("sendmsg_iov", ZERO, [0.71, 0.71, 0.71]),
    ]
}

fn cost_models(curve: &Cell) -> Vec<CostModel> {
    let parts =
        [("send_staged", 1100.0, 0.2), ("sendmsg_iov", 1230.0, 0.137), (ZERO, 2100.0, 0.19)];
    let model = |(label, fixed, per_byte): (&str, f64, f64)| CostModel {
        curve: curve.clone(),
        label: label.into(),
        fixed_ns: estimate(fixed, 30.0),
        per_byte_ns: estimate(per_byte, 0.002),
        half_size_bytes: estimate(fixed / per_byte, 60.0),
        fixed_is_upper_bound: false,
        worst_residual: 0.04,
        worst_at: Bytes(4096),
        breaks_at: None,
    };
    parts.map(model).to_vec()
}

fn removed_copy(cell: &CellAnalysis) -> RemovedCopy {
    RemovedCopy {
        cell: cell.cell.clone(),
        staged_less_iov_ns_per_byte: estimate(0.062, 0.004),
        memcpy_ns_per_byte: estimate(0.055, 0.001),
        beyond_memcpy_ns_per_byte: Some(interval(0.007, 0.008)),
    }
}

/// The same cell in mode rr over veth, with round trips.
fn request_response(mut cell: CellAnalysis) -> CellAnalysis {
    cell.cell.net_mut().expect("the fixture is of net").topology = Topology::Veth;
    cell.cell.net_mut().expect("the fixture is of net").mode = Mode::Rr;
    for arm in cell.arms.iter_mut().filter(|arm| arm.arm.role != Role::Control) {
        arm.latency = latency(arm);
    }
    cell
}

fn latency(arm: &ArmAnalysis) -> Option<LatencyFigures> {
    let time = arm.figures.as_ref()?.ns_per_message.value + 12_000.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
    let times = |factor: f64| (time * factor) as u64;
    Some(LatencyFigures {
        samples: 1200,
        mean_ns: estimate(time * 1.1, 300.0),
        p50_ns: Some(estimate(time, 200.0)),
        p99_ns: Some(Estimate { interval: None, ..estimate(time * 2.0, 0.0) }),
        p999_ns: None,
        histogram: Histogram { buckets: vec![(times(1.0), 1100), (times(2.0), 100)] },
    })
}

fn primitives() -> Vec<PrimitiveFacts> {
    let sent = |names, movement| hop(names, End::Sender, Mover::Kernel, movement);
    let hand_over = || sent(["send queue", "receive queue", "loopback_xmit"], Movement::Reference);
    let pin = ["fields", "socket buffer", "skb_zerocopy_iter_stream"];
    let late = ["user pages", "receive queue", "skb_copy_ubufs"];
    let zero = [sent(pin, Movement::Reference), sent(late, Movement::LateCopy), copy_out()];
    let staged = vec![gather(), copy_in(), hand_over(), copy_out()];
    let iov = vec![copy_in(), hand_over(), copy_out()];
    vec![
        facts("send_staged", "gather the fields by memcpy, then send(2)", staged),
        facts("send", "send(2) of a message that is contiguous already", iov.clone()),
        facts("sendmsg_iov", "sendmsg(2) with an iovec straight over the fields", iov),
        facts(ZERO, "sendmsg(2) with MSG_ZEROCOPY and an iovec", zero.to_vec()),
    ]
}

fn facts(id: &str, summary: &str, hops: Vec<Hop>) -> PrimitiveFacts {
    let data_path = DataPath { hops: Cow::Owned(hops), calls: CallsPerMessage::Fixed(1) };
    let transport = Transport::Tcp;
    let (family, condition) = crate::fixture::listed(id);
    PrimitiveFacts {
        id: id.into(),
        summary: summary.into(),
        family: family.expect("it has one"),
        condition,
        transport,
        data_path,
    }
}
