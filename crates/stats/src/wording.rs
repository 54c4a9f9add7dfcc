//! Numbers and cells in the sentences of an analysis.

use iolens_model::cell::Cell;
use iolens_model::plan::Plan;

/// A fraction as a percentage to one decimal, whole where it is: `3 %`,
/// `4.1 %`.
pub(crate) fn percent(fraction: f64) -> String {
    let tenths = (fraction * 1000.0).round();
    if tenths % 10.0 == 0.0 {
        format!("{:.0}%", tenths / 10.0)
    } else {
        format!("{:.1}%", tenths / 10.0)
    }
}

/// A fraction above a bound, both as percentages, with as many decimals as
/// keep them apart: `4.1 %`, `3.004 %` where the bound is 3 %.
pub(crate) fn percent_above(fraction: f64, bound: f64) -> String {
    let short = percent(fraction);
    if short != percent(bound) {
        return short;
    }
    let percentages = (2..=6).map(|decimals| format!("{:.decimals$}%", fraction * 100.0));
    let bounds = (2..=6).map(|decimals| format!("{:.decimals$}%", bound * 100.0));
    percentages.zip(bounds).find(|(a, b)| a != b).map_or(short, |(a, _)| a)
}

/// `1 trial`, `12 trials`.
pub(crate) fn trials(n: u32) -> String {
    if n == 1 { "1 trial".to_owned() } else { format!("{n} trials") }
}

/// The cell by what sets it apart in this plan: `64 KiB × 4 threads`, and
/// those of the other axes that have more than one value.
pub(crate) fn cell_in(plan: &Plan, cell: &Cell) -> String {
    std::iter::once(cell.size_and_threads())
        .chain(plan.told_apart(cell))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_at_most_one_decimal() {
        let check = |fraction, expect: &str| assert_eq!(percent(fraction), expect);
        check(0.03, "3%");
        check(0.0409, "4.1%");
        check(0.0, "0%");
        check(1.25, "125%");
    }

    #[test]
    fn what_is_above_a_bound_never_prints_as_the_bound() {
        let check = |fraction, expect: &str| assert_eq!(percent_above(fraction, 0.03), expect);
        check(0.041, "4.1%");
        check(0.0302, "3.02%");
        check(0.030_04, "3.004%");
    }
}
