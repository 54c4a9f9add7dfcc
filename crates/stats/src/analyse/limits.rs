//! What bounded the load on a server in most of its trials, and which comparisons that
//! leaves without a verdict.

use super::draft::Draft;
use crate::analysis::Limits;
use crate::gates::{Flag, Limit};
use crate::interval::count;
use crate::quantity::Quantity;
use crate::reason::VerdictReason;
use crate::remark::Limited;

/// The limits of an arm: those that held in more than half of its used trials.
pub(super) fn of(draft: &Draft<'_>) -> Limits {
    let found = |limit: Limit| {
        let flags = draft.used.iter().flat_map(|(_, arm)| &arm.flags);
        let found: Vec<f64> = flags.filter_map(|flag| value(flag, limit)).collect();
        let is_rule = found.len() * 2 > draft.used.len();
        is_rule.then(|| limited(limit, &found, draft.used.len()))
    };
    Limits {
        client_busy: found(Limit::ClientBusy),
        client_late: found(Limit::ClientLate),
        rate_not_kept: found(Limit::RateNotKept),
    }
}

/// Why an arm gets no verdict on a quantity against the baseline; `None` where nothing
/// keeps it from one.
///
/// What keeps the baseline from being ranked, with which all are compared, keeps them too.
pub(super) fn unranked(
    quantity: Quantity,
    arm: &Limits,
    baseline: &Limits,
) -> Option<VerdictReason> {
    let reason = |limited, of_baseline| VerdictReason::Limited { limited, of_baseline };
    let own = arm.against(quantity).map(|limited| reason(limited, false));
    own.or_else(|| Some(reason(baseline.against(quantity)?, true)))
}

fn value(flag: &Flag, wanted: Limit) -> Option<f64> {
    match flag {
        Flag::Limit { limit, value } if *limit == wanted => Some(*value),
        _ => None,
    }
}

/// A limit with the worst of its values.
pub(super) fn limited(limit: Limit, values: &[f64], of: usize) -> Limited {
    let most = values.iter().copied().max_by(f64::total_cmp).unwrap_or(f64::NAN);
    let least = values.iter().copied().min_by(f64::total_cmp).unwrap_or(f64::NAN);
    let (trials, of) = (count(values.len()), count(of));
    match limit {
        Limit::ClientBusy => Limited::ClientBusy { busy_share: most, trials, of },
        Limit::ClientLate => Limited::ClientLate { late_p99_ns: most, trials, of },
        Limit::RateNotKept => Limited::RateNotKept { answered_share: least, trials, of },
    }
}
