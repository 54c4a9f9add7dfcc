//! What there is to say of a run between two passes: how precise it is, which condition still
//! keeps it going, and for how long at most.

use iolens_model::plan::{Passes, Plan};
use iolens_model::units::Nanos;
use iolens_stats::analysis::{Analysis, Interval};

/// How precise a run is so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Precision {
    /// Half-width of the widest interval, as a fraction; null before there is one.
    widest: Option<f64>,
    /// That of the baseline against its double, median over cells.
    floor: Option<f64>,
    /// What was asked for.
    target: f64,
    /// The ratios that are wider, the widest first.
    unmet: Vec<String>,
}

impl Precision {
    pub(crate) fn of(analysis: &Analysis, plan: &Plan) -> Precision {
        let arms = analysis.arms();
        let halves = arms.filter_map(|arm| arm.contrast.as_ref()?.half_width());
        Precision {
            widest: halves.reduce(f64::max),
            floor: analysis.self_check.floor_median,
            target: plan.precision,
            unmet: iolens_stats::unmet(analysis, plan),
        }
    }

    /// `widest ±4.1%, noise ±0.9%`.
    fn brief(&self, target: &str) -> String {
        let (widest, floor) = (either_way(self.widest), either_way(self.floor));
        format!("widest {widest}{target}, noise {floor}")
    }
}

/// A run after a pass.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct News {
    pub(crate) precision: Precision,
    /// What the plan asks for.
    pub(crate) passes: Passes,
    /// The pass that is over.
    pub(crate) pass: u32,
    /// Passes of this session, which may have begun in the middle of a run.
    pub(crate) passes_here: u32,
    /// Of this session.
    pub(crate) elapsed: Nanos,
    /// What passes have of the budget of this session.
    pub(crate) budget: Nanos,
    /// The longest pass.
    pub(crate) pass_time: Nanos,
}

impl News {
    /// Passes that are still to come, at most.
    pub(crate) fn passes_left(&self) -> u32 {
        let by_plan = self.passes.maximum.saturating_sub(self.pass);
        let left_ns = self.budget.0.saturating_sub(self.elapsed.0);
        let by_budget = left_ns.checked_div(self.pass_time.0).unwrap_or(u64::MAX);
        by_plan.min(u32::try_from(by_budget).unwrap_or(u32::MAX))
    }

    /// For a bar, which has 80 columns: `widest ±4.1% > 3.0%, noise ±0.9%, at most 35.0 s`.
    pub(crate) fn brief(&self) -> String {
        let Precision { widest, target, .. } = self.precision;
        let is_wide = widest.is_some_and(|widest| widest > target);
        let target = if is_wide { format!(" > {}", percent(target)) } else { String::new() };
        let left = self.left();
        let left = left.strip_suffix(" left").filter(|_| self.passes_left() > 0).unwrap_or(&left);
        format!("{}, {left}", self.precision.brief(&target))
    }

    /// A line: `pass 3 of 12 to 60 · 6.00 s, at most 1.57 min left · widest ±4.1%, noise ±0.9%`,
    /// and what the run goes on for once it has the passes that it needs.
    pub(crate) fn line(&self) -> String {
        let Passes { minimum, maximum } = self.passes;
        let passes = match minimum == maximum {
            true => maximum.to_string(),
            false => format!("{minimum} to {maximum}"),
        };
        let (pass, elapsed, left) = (self.pass, self.elapsed, self.left());
        let (precision, condition) = (self.precision.brief(""), self.condition());
        format!("pass {pass} of {passes} · {elapsed}, {left} · {precision}{condition}")
    }

    /// The condition that is not met yet.
    fn condition(&self) -> String {
        let more = |rest: &[String]| match rest.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        match self.precision.unmet.as_slice() {
            _ if self.pass < self.passes.minimum => String::new(),
            [] if self.precision.widest.is_none() => String::new(),
            [] => format!(" · every ratio within ±{}", percent(self.precision.target)),
            [widest, rest @ ..] => format!(" · not precise enough: {widest}{}", more(rest)),
        }
    }

    fn left(&self) -> String {
        match self.passes_left() {
            0 => "last pass".to_owned(),
            passes => {
                let left = u64::from(passes).saturating_mul(self.pass_time.0);
                format!("at most {} left", Nanos(left))
            }
        }
    }
}

/// `±4.1 %`. After two passes an interval may be hundreds of times its ratio: how many says
/// nothing.
fn either_way(x: Option<f64>) -> String {
    match x {
        Some(x) if !Interval::is_half_usable(x) => "not known yet".to_owned(),
        Some(x) => format!("±{}", percent(x)),
        None => "n/a".to_owned(),
    }
}

fn percent(x: f64) -> String {
    format!("{:.1}%", 100.0 * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After this pass, of passes of 2 s and a budget of 100 s.
    fn news(passes: [u32; 2], pass: u32, elapsed_s: u64, unmet: &[&str]) -> News {
        let seconds = |n: u64| Nanos(n * Nanos::SECOND.0);
        let unmet = unmet.iter().map(|&one| one.to_owned()).collect();
        News {
            precision: Precision { widest: Some(0.041), floor: None, target: 0.03, unmet },
            passes: Passes { minimum: passes[0], maximum: passes[1] },
            pass,
            passes_here: pass,
            elapsed: seconds(elapsed_s),
            budget: seconds(100),
            pass_time: seconds(2),
        }
    }

    #[test]
    fn a_line_says_how_far_a_run_is_and_what_it_goes_on_for() {
        let wide = ["4 KiB, send: ±4.1% > 3%", "64 B, send: ±3.2% > 3%"];
        let precision = "widest ±4.1%, noise n/a";
        let open = format!("{precision} · not precise enough: {}", wide[0]);
        let met = format!("{precision} · every ratio within ±3.0%");
        let lines = [
            (
                news([12, 60], 3, 6, &wide),
                "3 of 12 to 60 · 6.00 s, at most 1.57 min left",
                precision,
            ),
            (news([20, 20], 3, 6, &wide), "3 of 20 · 6.00 s, at most 34.0 s left", precision),
            (
                news([12, 60], 12, 90, &wide),
                "12 of 12 to 60 · 1.50 min, at most 10.0 s left",
                &format!("{open}, and 1 more"),
            ),
            (news([12, 60], 12, 99, &wide[..1]), "12 of 12 to 60 · 1.65 min, last pass", &open),
            (news([12, 60], 60, 50, &[]), "60 of 12 to 60 · 50.0 s, last pass", &met),
        ];
        for (news, how_far, precision) in lines {
            assert_eq!(news.line(), format!("pass {how_far} · {precision}"));
        }
        let mut unusable = news([1, 1], 1, 6, &[]);
        unusable.precision.widest = None;
        let line = "pass 1 of 1 · 6.00 s, last pass · widest n/a, noise n/a";
        assert_eq!(unusable.line(), line, "no ratio is within anything");
    }

    #[test]
    fn a_bar_has_room_for_less() {
        let brief = news([12, 60], 12, 90, &["4 KiB, send: ±4.1% > 3%"]).brief();
        assert_eq!(brief, "widest ±4.1% > 3.0%, noise n/a, at most 10.0 s");
        assert_eq!(news([12, 60], 12, 90, &[]).passes_left(), 5);
        let mut first = news([12, 60], 1, 2, &["4 KiB, send: no interval, 1 trial"]);
        first.precision.widest = None;
        assert_eq!(first.brief(), "widest n/a, noise n/a, at most 1.63 min");
        let endless = News { pass_time: Nanos(0), ..news([12, 60], 12, 0, &[]) };
        assert_eq!(endless.passes_left(), 48);
    }

    #[test]
    fn what_is_wider_than_a_factor_of_ten_has_no_number() {
        let widths = [None, Some(0.0), Some(2.1), Some(2.2), Some(379.5), Some(f64::INFINITY)];
        let unusable = "not known yet";
        let said = ["n/a", "±0.0%", "±210.0%", unusable, unusable, unusable];
        assert_eq!(widths.map(either_way), said);
    }
}
