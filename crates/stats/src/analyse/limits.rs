//! What bounded the load on a server in most of its trials, and which comparisons that
//! leaves without a verdict.

use super::cell::Draft;
use crate::analysis::Limits;
use crate::gates::{Flag, Limit};
use crate::interval::count;
use crate::quantity::Quantity;
use crate::wording::{percent, trials};

/// The limits of an arm: those that held in more than half of its used trials.
pub(super) fn of(draft: &Draft<'_>) -> Limits {
    let words = |limit: Limit| {
        let flags = draft.used.iter().flat_map(|(_, arm)| &arm.flags);
        let found: Vec<f64> = flags.filter_map(|flag| value(flag, limit)).collect();
        let is_rule = found.len() * 2 > draft.used.len();
        is_rule.then(|| in_words(limit, &found, draft.used.len()))
    };
    Limits {
        client_busy: words(Limit::ClientBusy),
        client_late: words(Limit::ClientLate),
        rate_not_kept: words(Limit::RateNotKept),
    }
}

/// Why an arm gets no verdict on a quantity against the baseline; null where nothing
/// keeps it from one.
///
/// What keeps the baseline from being ranked, with which all are compared, keeps them too.
pub(super) fn unranked(quantity: Quantity, arm: &Limits, baseline: &Limits) -> Option<String> {
    let own = arm.against(quantity).map(str::to_owned);
    own.or_else(|| Some(format!("the baseline's load: {}", baseline.against(quantity)?)))
}

fn value(flag: &Flag, wanted: Limit) -> Option<f64> {
    match flag {
        Flag::Limit { limit, value } if *limit == wanted => Some(*value),
        _ => None,
    }
}

/// A limit with the worst of its values.
pub(super) fn in_words(limit: Limit, values: &[f64], of: usize) -> String {
    let worst = match limit {
        Limit::ClientBusy | Limit::ClientLate => values.iter().copied().max_by(f64::total_cmp),
        Limit::RateNotKept => values.iter().copied().min_by(f64::total_cmp),
    };
    let worst = worst.unwrap_or(f64::NAN);
    let found = format!("in {} of {}", values.len(), trials(count(of)));
    match limit {
        Limit::ClientBusy => format!(
            "client-limited: a thread of the client worked for up to {} of its time, {found}; the \
             rate is a lower bound",
            percent(worst)
        ),
        Limit::ClientLate => format!(
            "the client took up one request in a hundred {:.2} ms late or more, {found}; times from \
             due are its own",
            worst / 1e6
        ),
        Limit::RateNotKept => format!(
            "the offered rate was not kept: {} of the requests were answered in its time at worst, \
             {found}",
            percent(worst)
        ),
    }
}
