//! Bands from points with a known order, and what holds for any points.

use iolens_model::units::Bytes;
use proptest::prelude::*;

use super::*;
use crate::analyse;
use crate::fixture::{self, ArmTime, time};

const DELTA: f64 = 0.03;

/// A point at each power of four with this ratio and half-width of ln.
fn points(values: &[(f64, f64)]) -> Vec<CrossoverPoint> {
    let mut size = 16;
    let point = |&(ratio, half): &(f64, f64)| {
        size *= 4;
        let interval = Interval { low: ratio * (-half).exp(), high: ratio * half.exp() };
        CrossoverPoint { size: Bytes(size), ratio, simultaneous: Some(interval) }
    };
    values.iter().map(point).collect()
}

fn crossover(points: Vec<CrossoverPoint>, delta: f64) -> Crossover {
    let curve = fixture::plan(&["base"]).cells()[0].curve();
    of_points(&curve, ["a", "b"], points, delta).expect("two points")
}

/// `<` the first is ahead, `>` the second, `~` neither.
fn of_order(order: &str) -> Crossover {
    let value = |ahead| match ahead {
        '<' => (0.8, 0.01),
        '>' => (1.25, 0.01),
        _ => (1.0, 0.02),
    };
    crossover(points(&order.chars().map(value).collect::<Vec<_>>()), DELTA)
}

#[test]
fn the_order_along_the_sizes_gives_band_and_shape() {
    use CrossoverShape as S;
    let check = |order: &str, shape, names: [&str; 2], to: Option<u64>, from: Option<u64>| {
        let found = of_order(order);
        assert_eq!(found.shape, shape, "{order}");
        assert_eq!([found.first.as_str(), found.second.as_str()], names, "{order}");
        let band = (found.first_ahead_to, found.second_ahead_from);
        assert_eq!(band, (to.map(Bytes), from.map(Bytes)), "{order}");
    };
    let (ab, ba) = (["a", "b"], ["b", "a"]);
    check("<<~>>", S::Crosses, ab, Some(256), Some(4096));
    check("<>", S::Crosses, ab, Some(64), Some(256));
    // The first is ahead again after a hole: the band begins there.
    check("<~<~>", S::Crosses, ab, Some(1024), Some(16384));
    // A tie or noise at an end does not take the crossing away.
    check("<>~", S::Crosses, ab, Some(64), Some(256));
    check("~<>", S::Crosses, ab, Some(256), Some(1024));
    check("~<~>", S::Crosses, ab, Some(256), Some(4096));
    // The other one may be ahead at the small sizes.
    check("><", S::Crosses, ba, Some(64), Some(256));
    check(">>~<", S::Crosses, ba, Some(256), Some(4096));
    check("~>~<~", S::Crosses, ba, Some(256), Some(4096));
    check("~<", S::UnknownThenSecond, ba, None, Some(256));
    check(">~", S::FirstThenUnknown, ba, Some(64), None);
    check("<<<", S::FirstThroughout, ab, Some(1024), None);
    check(">>>", S::SecondThroughout, ab, None, Some(64));
    check("<<~", S::FirstThenUnknown, ab, Some(256), None);
    check("~~>", S::UnknownThenSecond, ab, None, Some(1024));
    check("~~~", S::NeitherAnywhere, ab, None, None);
    check("<><>", S::Mixed, ab, Some(64), Some(4096));
    check("<~<", S::Mixed, ab, Some(64), None);
}

#[test]
fn what_crosses_once_can_be_confirmed_whatever_the_shape() {
    for (order, from, to) in
        [("<>~", 64, 256), ("~<>", 256, 1024), ("~<~>", 256, 4096), (">>~<", 256, 4096)]
    {
        assert_eq!(of_order(order).band(), Some([Bytes(from), Bytes(to)]), "{order}");
    }
    for order in ["<><>", "<~<", "~~~", "<<<"] {
        assert_eq!(of_order(order).band(), None, "{order}");
    }
}

#[test]
fn the_ratios_belong_to_the_order_of_the_names() {
    let (one, other) = (of_order("<>"), of_order("><"));
    for (a, b) in one.points.iter().zip(&other.points) {
        assert!((a.ratio / b.ratio - 1.0).abs() < 1e-12, "{a:?} {b:?}");
    }
}

#[test]
fn a_band_needs_two_sizes_and_intervals() {
    let curve = fixture::plan(&["base"]).cells()[0].curve();
    assert_eq!(of_points(&curve, ["a", "b"], points(&[(0.5, 0.01)]), DELTA), None);
    let mut bare = points(&[(0.5, 0.01), (2.0, 0.01)]);
    bare.iter_mut().for_each(|point| point.simultaneous = None);
    let found = crossover(bare, DELTA);
    assert_eq!(found.shape, CrossoverShape::NeitherAnywhere);
    assert_eq!(found.steps, []);
}

/// Half-widths of 1 % each: three times √2 % is 4.24 %.
#[test]
fn jumps_beyond_three_times_the_noise_are_steps() {
    let steps = |jump: f64| crossover(points(&[(1.0, 0.01), (jump.exp(), 0.01)]), DELTA).steps;
    assert_eq!(steps(0.042), []);
    assert_eq!(steps(0.043), [(Bytes(64), Bytes(256))]);
    assert_eq!(steps(-0.043), [(Bytes(64), Bytes(256))]);
}

/// Times per message of the classic three at each size: the iovec wins from
/// 4 KiB on, zero-copy nowhere; `send` has no partner but the baseline.
fn classic(baseline: &'static str) -> Vec<Crossover> {
    let labels = ["send_staged", "sendmsg_iov", "sendmsg_zerocopy", "send"];
    let mut plan = fixture::sized(&labels, &[4096, 256]);
    plan.baseline = baseline.to_owned();
    let run = fixture::run_of(plan, 6, |pass, _, cell| -> Vec<ArmTime> {
        let small = cell.size.0 == 256;
        let mood = 1.0 + 0.001 * f64::from(pass);
        let times =
            if small { [400.0, 500.0, 900.0, 400.0] } else { [900.0, 700.0, 2000.0, 650.0] };
        let arm = |((i, label), ns): ((u32, &'static str), f64)| {
            let role = if label == baseline { Role::Baseline } else { Role::Compared };
            let stray = 1.0 + 0.0005 * f64::from((pass * (i + 2)) % 5);
            ArmTime { role, ..time(label, ns * mood * stray) }
        };
        (0..).zip(labels).zip(times).map(arm).collect()
    });
    analyse(&run).crossovers
}

#[test]
fn pairs_are_those_named_and_the_baseline_with_the_rest() {
    let names = |found: &[Crossover]| -> Vec<(String, String)> {
        found.iter().map(|c| (c.first.clone(), c.second.clone())).collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let named = [
        pair("send_staged", "sendmsg_iov"),
        pair("send_staged", "sendmsg_zerocopy"),
        pair("sendmsg_iov", "sendmsg_zerocopy"),
    ];
    let staged = classic("send_staged");
    assert_eq!(names(&staged), [&named[..], &[pair("send_staged", "send")]].concat());
    let iov = classic("sendmsg_iov");
    assert_eq!(names(&iov), [&named[..], &[pair("sendmsg_iov", "send")]].concat());
    // Whatever is the baseline, the answer is the same, down to the ratios.
    for (a, b) in staged.iter().zip(&iov).take(3) {
        assert_eq!((a.shape, a.first_ahead_to), (b.shape, b.first_ahead_to));
        assert_eq!((a.smallest, a.largest), (Bytes(256), Bytes(4096)));
        for (a, b) in a.points.iter().zip(&b.points) {
            assert!((a.ratio / b.ratio - 1.0).abs() < 1e-6, "{a:?} {b:?}");
        }
    }
    assert_eq!(staged[0].shape, CrossoverShape::Crosses);
    assert_eq!(
        (staged[0].first_ahead_to, staged[0].second_ahead_from),
        (Some(Bytes(256)), Some(Bytes(4096)))
    );
    assert_eq!(staged[1].shape, CrossoverShape::FirstThroughout);
    assert_eq!(staged[2].shape, CrossoverShape::FirstThroughout);
    let ratio = staged[2].points[0].ratio;
    assert!((ratio * 900.0 / 500.0 - 1.0).abs() < 0.01, "{ratio}");
}

/// Ratios on both sides of 1 with intervals of any width.
fn any_points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.7..1.4f64, 0.0..0.2f64), 2..9)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::with_cases(1000)
    })]

    /// Read from the large sizes with the arms swapped, a curve says the same.
    #[test]
    fn the_mirror_image_has_the_mirrored_band(values in any_points()) {
        let mirrored: Vec<(f64, f64)> =
            values.iter().rev().map(|&(ratio, half)| (1.0 / ratio, half)).collect();
        let (one, other) = (crossover(points(&values), DELTA), crossover(points(&mirrored), DELTA));
        let expect = match one.shape {
            CrossoverShape::FirstThroughout => CrossoverShape::SecondThroughout,
            CrossoverShape::SecondThroughout => CrossoverShape::FirstThroughout,
            CrossoverShape::FirstThenUnknown => CrossoverShape::UnknownThenSecond,
            CrossoverShape::UnknownThenSecond => CrossoverShape::FirstThenUnknown,
            same => same,
        };
        prop_assert_eq!(other.shape, expect);
        let place = |found: &Crossover, size: Option<Bytes>| {
            size.map(|size| found.points.iter().position(|point| point.size == size).unwrap())
        };
        let last = values.len() - 1;
        let mirror = |index: Option<usize>| index.map(|index| last - index);
        let ends = |found: &Crossover| {
            [place(found, found.first_ahead_to), place(found, found.second_ahead_from)]
        };
        let [to, from] = ends(&other);
        prop_assert_eq!(ends(&one), [mirror(from), mirror(to)]);
        prop_assert_eq!(one.steps.len(), other.steps.len());
    }

    /// A larger δ only ever takes from what is claimed.
    #[test]
    fn a_larger_delta_claims_less(
        values in any_points(), delta in 0.0..0.2f64, more in 0.0..0.2f64,
    ) {
        let (one, less) =
            (crossover(points(&values), delta), crossover(points(&values), delta + more));
        if one.shape == CrossoverShape::Crosses && less.shape == CrossoverShape::Crosses {
            prop_assert_eq!(&one.first, &less.first);
            prop_assert!(less.first_ahead_to <= one.first_ahead_to);
            prop_assert!(less.second_ahead_from >= one.second_ahead_from);
        }
        if one.shape == CrossoverShape::NeitherAnywhere {
            prop_assert_eq!(less.shape, CrossoverShape::NeitherAnywhere);
        }
    }

    /// An end of a band is where one is ahead by more than δ, and between the ends of a
    /// crossing nobody is.
    #[test]
    fn an_overlap_is_never_an_end_of_a_band(values in any_points()) {
        let found = crossover(points(&values), DELTA);
        let crosses = found.shape == CrossoverShape::Crosses;
        let (to, from) = (found.first_ahead_to, found.second_ahead_from);
        for point in &found.points {
            let interval = point.simultaneous.unwrap();
            let (above, below) = (interval.low > 1.0 + DELTA, interval.high < 1.0 / (1.0 + DELTA));
            if to.is_some_and(|to| point.size == to || (!crosses && point.size < to)) {
                prop_assert!(below);
            }
            if from.is_some_and(|from| point.size == from || (!crosses && point.size > from)) {
                prop_assert!(above);
            }
            let band = to.zip(from).filter(|_| crosses);
            if band.is_some_and(|(to, from)| to < point.size && point.size < from) {
                prop_assert!(!above && !below);
            }
        }
    }
}
