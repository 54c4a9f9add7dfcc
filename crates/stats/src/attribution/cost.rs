//! What sampling cost: the sampled baseline against its unsampled double.

use iolens_model::profile::ProfileTrial;

use super::SamplingCost;
use crate::estimate::Estimate;
use crate::interval::{Moments, around};
use crate::student::quantile;

/// Of trials that ended well, on the logarithm, as contrasts of timed trials;
/// `None` where no trial has both.
pub(super) fn of(trials: &[&ProfileTrial]) -> Option<SamplingCost> {
    let arm = &trials.iter().find_map(|trial| trial.unsampled.as_ref())?.arm;
    let logs: Vec<f64> = trials.iter().filter_map(|trial| log_ratio(trial, arm)).collect();
    let moments = Moments::of(&logs)?;
    let half = moments.half_width(quantile(moments.n.saturating_sub(1), 0.975)?);
    let interval = half.map(|half| around(moments.mean, half));
    let ratio = Estimate { value: moments.mean.exp(), interval, n: moments.n };
    Some(SamplingCost { arm: arm.clone(), ratio })
}

fn log_ratio(trial: &ProfileTrial, arm: &str) -> Option<f64> {
    let unsampled = trial.unsampled.as_ref().filter(|unsampled| unsampled.arm == arm)?;
    let sampled = &trial.ends.iter().find(|end| end.sends && end.arm == arm)?.counts;
    let log = |time_ns: u64, messages: u64| {
        (time_ns > 0 && messages > 0).then(|| (time_ns as f64 / messages as f64).ln())
    };
    Some(log(sampled.time_ns, sampled.messages)? - log(unsampled.time_ns, unsampled.messages)?)
}
