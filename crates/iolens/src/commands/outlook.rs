//! What a run will do, said before it does it: how many cells and trials, how
//! long, and how wide the intervals will be if the machine is in the mood of
//! an earlier run.

use std::fmt::Write;
use std::path::Path;

use iolens_model::host::HostFacts;
use iolens_model::plan::Plan;
use iolens_model::run::RunHeader;
use iolens_model::units::Bytes;
use iolens_stats::Forecast;
use iolens_store::Store;
use serde_json::json;

use crate::failure::Failure;
use crate::runner::{FirstLook, Searches};
use crate::stored::summed_in;
use crate::values;

/// The latest runs like the one to come that are read for one to expect from.
const RUNS_MAX: usize = 3;

/// What an earlier run lets expect; nothing where there is none that is like
/// the one to come.
pub(crate) struct Expected(Option<(String, Forecast)>);

impl Expected {
    /// Of the latest run with this CPU model and this way to lay out trials.
    /// What cannot be read is no reason not to measure.
    pub(crate) fn of(store: &Store, plan: &Plan, host: &HostFacts) -> Expected {
        let model = host.fact("cpu", "model");
        let ids = store.run_ids().unwrap_or_default();
        let is_alike = |header: RunHeader| {
            header.host.fact("cpu", "model") == model
                && header.plan.study() == plan.study()
                && header.plan.schedule == plan.schedule
                && header.plan.isolate == plan.isolate
        };
        let forecast = |id: String| {
            let (_, analysis) = summed_in(store, &id).ok()?;
            Forecast::of(&analysis).map(|forecast| (id, forecast))
        };
        // Runs of another kind are told by their headers, whose trials need not be read.
        let alike = ids.into_iter().rev().filter(|id| store.header(id).is_ok_and(is_alike));
        Expected(alike.take(RUNS_MAX).find_map(forecast))
    }

    /// The same from a database that is not to be made.
    pub(crate) fn read(database: &Path, plan: &Plan, host: &HostFacts) -> Expected {
        match Store::open_read_only(database) {
            Ok(store) => Expected::of(&store, plan, host),
            Err(_) => Expected(None),
        }
    }

    fn half_width(&self, passes: u32) -> Option<f64> {
        self.0.as_ref()?.1.half_width(passes)
    }

    /// One line, for a run of this plan.
    pub(crate) fn line(&self, plan: &Plan, look: &FirstLook) -> String {
        let passes = passes_in_budget(plan, look).min(plan.passes.maximum);
        match (&self.0, self.half_width(passes)) {
            (Some((id, forecast)), Some(half)) => format!(
                "expected precision: about ±{:.1}% after {}, from the median spread of {} \
                 comparisons in run {id} on this CPU model ({:.1}%)",
                100.0 * half,
                in_words(passes),
                forecast.contrasts,
                100.0 * forecast.sd_ln,
            ),
            _ => "expected precision: unknown until pass 3 (no earlier run of this kind on this \
                  CPU model tells it)"
                .to_owned(),
        }
    }
}

/// Settings, trials and time, a line each.
pub(crate) fn before(plan: &Plan, look: &FirstLook) -> String {
    let (least, most) = (plan.passes.minimum, plan.passes.maximum);
    let fits = passes_in_budget(plan, look);
    let passes = if fits < least {
        format!("the budget of {} is for about {} of {least}", plan.budget, in_words(fits))
    } else {
        let passes = match least == most {
            true => in_words(least),
            false => format!("{least} to {}", in_words(most)),
        };
        format!("{passes}, at least {} trials", look.trials * least as usize)
    };
    let time = if fits >= least && look.shortest < look.longest {
        // Few runs of many contrasts get all of them that narrow.
        format!(
            "; {} if every ratio is within ±{} after {least} passes",
            look.shortest,
            values::written_fraction(plan.precision)
        )
    } else {
        String::new()
    };
    let mut text = skipped(look);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{} setting{}, {} trials a pass ({}); {passes}\n\
         {}expected time: about {}{time}",
        look.cells,
        if look.cells == 1 { "" } else { "s" },
        look.trials,
        look.pass,
        look.searches.map_or_else(String::new, |searches| searched(plan, &searches)),
        look.longest,
    );
    text
}

/// `1 pass`, or `12 passes`.
fn in_words(passes: u32) -> String {
    format!("{passes} pass{}", if passes == 1 { "" } else { "es" })
}

/// A line for each arm that is left out of some cells, and why.
fn skipped(look: &FirstLook) -> String {
    let mut text = String::new();
    for (label, why, cells) in &look.refused {
        let all = look.cells;
        let _ = writeln!(text, "skipped in {cells} of {all} settings: `{label}`: {why}");
    }
    text
}

/// What searches take and have, a line.
fn searched(plan: &Plan, look: &Searches) -> String {
    let Searches { searches, phases, time, share } = look;
    let cut = match time > share {
        true => {
            ", too little for all: they are cut short\n  raise --budget, or ask for fewer models"
        }
        false => "",
    };
    format!(
        "{searches} {}, about {phases} phases in {time}, after the passes; {share} of the budget \
         of {} is for them alone{cut}\n",
        if *searches == 1 { "search" } else { "searches" },
        plan.budget,
    )
}

/// Whole passes that fit the budget, about; at least one is always done.
fn passes_in_budget(plan: &Plan, look: &FirstLook) -> u32 {
    let share = look.searches.map_or(0, |searches| searches.share.0);
    let budget = plan.budget.0.saturating_sub(share);
    let passes = budget.checked_div(look.pass.0).unwrap_or(u64::MAX);
    u32::try_from(passes).unwrap_or(u32::MAX).max(1)
}

/// As above with every cell and arm by name, for `--dry-run`.
pub(crate) fn dry_run(
    plan: &Plan,
    look: &FirstLook,
    expected: &Expected,
    calibration: Bytes,
    as_json: bool,
) -> Result<String, Failure> {
    let cells: Vec<String> = plan.cells().iter().map(ToString::to_string).collect();
    let passes = passes_in_budget(plan, look).min(plan.passes.maximum);
    if as_json {
        let value = json!({
            "cells": cells,
            "arms": look.arms,
            "trials_per_pass": look.trials,
            "passes_min": plan.passes.minimum,
            "passes_max": plan.passes.maximum,
            "pass_ns": look.pass,
            "run_ns": look.longest,
            "run_min_ns": look.shortest,
            "expected_half_width": expected.half_width(passes),
            "calibration_memory_bytes": calibration,
            "skipped": look.refused.iter().map(|(arm, why, cells)| json!({
                "arm": arm, "reason": why, "cells": cells,
            })).collect::<Vec<_>>(),
            "searches": look.searches.map(|searches| json!({
                "searches": searches.searches,
                "phases": searches.phases,
                "time_ns": searches.time,
                "share_ns": searches.share,
            })),
        });
        return serde_json::to_string_pretty(&value).map_err(Failure::usage);
    }
    let mut text = String::from("arms:\n");
    // Writing to a string cannot fail.
    look.arms.iter().for_each(|arm| _ = writeln!(text, "  {arm}"));
    text.push_str("settings:\n");
    cells.iter().for_each(|cell| _ = writeln!(text, "  {cell}"));
    let _ = write!(
        text,
        "{}\n{}\ncalibration: up to {calibration} of memory, given back before the first trial",
        before(plan, look),
        expected.line(plan, look)
    );
    Ok(text)
}
