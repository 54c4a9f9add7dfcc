//! The words of remarks.

use iolens_model::host::SysctlChange;
use iolens_stats::remark::Event;

use super::*;

const INTERVAL: Interval = Interval { low: 1.01, high: 1.05 };

fn change() -> SysctlChange {
    let (name, before, value) = ("net.core.x".into(), "0".into(), "1".into());
    SysctlChange { name, before, value }
}

/// A remark of each kind.
pub(crate) fn kinds() -> Vec<RemarkKind> {
    let (trials, of) = (3, 12);
    let busy = Limited::ClientBusy { busy_share: 0.97, trials, of };
    let slices =
        UnequalSlices { arm_ns: 5.2e5, baseline_ns: 5.02e6, overhead_ns: 2e4, bias: 0.0345 };
    let (interval, changed) = (INTERVAL, vec![change()]);
    vec![
        RemarkKind::SelfCheckOff { interval, beside: vec!["a".into(), "b".into()] },
        RemarkKind::NotUsed { passes: 2, check: None, reason: "it broke".into() },
        RemarkKind::Events { what: Event::Retransmits, count: 14, lasted_ns: None, trials, of },
        RemarkKind::Events {
            what: Event::Throttled,
            count: 6,
            lasted_ns: Some(310_000_000),
            trials,
            of,
        },
        RemarkKind::Share { what: Share::Lost, share: 0.25, trials, of },
        RemarkKind::Excess { what: Excess::Rings, ratio: 2.0, trials, of },
        RemarkKind::Limited(busy),
        RemarkKind::Limited(Limited::ClientLate { late_p99_ns: 1.4e6, trials, of }),
        RemarkKind::Limited(Limited::RateNotKept { answered_share: 0.9, trials, of }),
        RemarkKind::UnequalSlices(slices),
        RemarkKind::Copied { share: 1.0, tapped: true },
        RemarkKind::Mapped {
            receiver: "recv".into(),
            share: 0.01,
            changed,
            why: Some(Unmapped::BlocksOfPages { high_order_alloc_disable: None }),
        },
        RemarkKind::SharingMatters {
            shared_ratio: 1.03,
            shared: INTERVAL,
            isolated_ratio: 2.0,
            isolated: Interval { low: 1.9, high: 2.1 },
        },
    ]
}

/// A warning of each kind.
pub(crate) fn warnings() -> Vec<Warning> {
    let (whose, reason) = (Some(Whose::Server), Some("no sched file".to_owned()));
    let (still, partly) = (vec!["cycles_kernel"], vec!["llc_misses"]);
    let circumstances = [
        Circumstance::PacketTap,
        Circumstance::CacheUnknown,
        Circumstance::DeviceUnknown,
        Circumstance::DirtyUnknown,
        Circumstance::Dirty { left_bytes: 2 << 20, background_bytes: 1 << 20 },
        Circumstance::SocketBuffer {
            option: "SO_SNDBUF",
            granted_bytes: 212_992,
            asked_bytes: 1 << 20,
        },
        Circumstance::MigrationsNotMeasured { whose, reason },
        Circumstance::CountersNotUsed { still, partly },
    ];
    let curve = crate::fixture::run().1.cells[0].cell.curve();
    let mut all = vec![
        Warning::IncompletePass { pass: 3, cells_missing: 2, cells: 6 },
        Warning::FewPasses { complete: 1, minimum: 12 },
        Warning::OutsideThePlan { trials: 2 },
        Warning::Changed { change: change() },
        Warning::CountersClosed,
        Warning::SelfChecksExclude { excluding: 4, counted: 6, bound: 1 },
        Warning::SelfChecksDiffer { judged: 1, counted: 6 },
        Warning::FlatThroughput {
            arm: "send".into(),
            least_bits_per_s: 8e9,
            most_bits_per_s: 8.74e9,
            curve,
        },
        Warning::SteadySwitching {
            arm: "send".into(),
            least_per_s: 3990.0,
            most_per_s: 4010.0,
            cells: 4,
            rates_apart: 8.0,
        },
        Warning::Neighbours { contrasts: 12, passes: 40, correlation: 0.21, widened: 1.3 },
    ];
    all.extend(circumstances.map(Warning::Circumstance));
    all
}

#[test]
fn remarks_in_words() {
    let all = kinds().into_iter().map(|one| kind(&one));
    insta::assert_snapshot!(all.joined("\n"));
}

#[test]
fn warnings_in_words() {
    let all = warnings().into_iter().map(|one| warning(&one));
    insta::assert_snapshot!(all.joined("\n"));
}

#[test]
fn reasons_in_words() {
    let delta = 0.03;
    let noise = Some(Noise { half_width: Some(0.030_04) });
    let unusable = Unusable {
        status: iolens_model::outcome::Status::Skipped,
        check: None,
        reason: "no such thing here".into(),
    };
    let wide = Interval { low: 1.5, high: 1e9 };
    let in_b = VerdictReason::Unusable(unusable.clone());
    let (interval, bound) = (INTERVAL, 1.03);
    let open = VerdictReason::Open {
        interval: Some(Interval { low: 0.9, high: 1.1 }),
        delta,
        trials: 12,
        trials_needed: Some(170),
        in_each_run: false,
        noise: None,
    };
    let all = [
        VerdictReason::Unusable(unusable.clone()),
        VerdictReason::BaselineUnusable(unusable),
        VerdictReason::NeverTogether,
        VerdictReason::NoRatio,
        VerdictReason::InRuns { a: None, b: Some(Box::new(in_b)) },
        VerdictReason::NoSpread { trials: 1 },
        VerdictReason::Within { pointwise90: INTERVAL, delta, self_check_half_width: None },
        VerdictReason::Beyond { interval, bound, is_above: true },
        VerdictReason::Beyond { interval: wide, bound, is_above: true },
        VerdictReason::CopyDiffers { interval, bound, is_above: true },
        VerdictReason::MayBeSmall { interval, delta, noise },
        open,
    ];
    let all = all.iter().map(reason);
    insta::assert_snapshot!(all.joined("\n"));
}
