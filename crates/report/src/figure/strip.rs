//! The values of single trials behind a number, as a picture of a few
//! millimetres beside it.

use std::fmt::Write as _;

use iolens_model::units::three_digits;

const WIDTH: f64 = 92.0;
const HEIGHT: f64 = 18.0;
/// Trials that are drawn at most; a run has no more passes.
const TRIALS_MAX: usize = 60;

/// Inline SVG of the values in the order of their trials, the lowest at the
/// bottom, the highest at the top; empty under two values.
///
/// The title says how many there are and what share of the middle value lies
/// between the lowest and the highest, so no unit is needed. Its stroke colour
/// comes from the page, class `strip`.
#[must_use]
pub fn inline(values: &[f64]) -> String {
    let values: Vec<f64> =
        values.iter().copied().filter(|value| value.is_finite()).take(TRIALS_MAX).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.len() < 2 {
        return String::new();
    }
    let span = if high > low { high - low } else { 1.0 };
    let pitch = (WIDTH - 4.0) / (values.len() as f64 - 1.0);
    let mut path = String::new();
    for (i, value) in values.iter().enumerate() {
        let x = 2.0 + pitch * i as f64;
        let y = HEIGHT - 4.0 - (HEIGHT - 8.0) * (value - low) / span;
        // Writing to a String cannot fail. A stroke of no length is a dot.
        let _ = write!(path, "M{x:.1} {y:.1}h.01");
    }
    let spread = three_digits(100.0 * 2.0 * (high - low) / (high + low));
    let title = format!("{} trials in their order, spread {spread}% of the value", values.len());
    format!(
        r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{title}" class="strip"><title>{title}</title><path d="{path}" stroke-width="3" stroke-linecap="round" fill="none"/></svg>"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_has_a_dot_for_each_of_up_to_sixty_trials() {
        let dots =
            |n: u32| inline(&(0..n).map(f64::from).collect::<Vec<_>>()).matches("h.01").count();
        assert_eq!((dots(12), dots(60), dots(90)), (12, 60, 60));
        assert!(inline(&[1.0]).is_empty() && inline(&[]).is_empty());
        assert!(!inline(&[2.0, 2.0, f64::NAN]).contains("NaN"));
        assert!(inline(&[9.0, 11.0]).contains("2 trials in their order, spread 20.0%"));
    }
}
