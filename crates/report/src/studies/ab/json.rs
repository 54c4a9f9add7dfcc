//! For programs.

use iolens_model::ab::AbCommand;
use iolens_model::run::Run;
use iolens_stats::ab::{AbAnalysis, AbArmFigures, AbCell, AbContrast};
use iolens_stats::analysis::Interval;
use serde_json::{Value, json};

use super::words::Said;
use super::{calls, links};

/// Names the form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "iolens-ab/1";

/// The result of a run. Changes are fractions: 0.049 is 4.9 % more.
pub fn json(run: &Run, analysis: &AbAnalysis) -> String {
    let said = Said::of(run);
    let header = &run.header;
    let programs = header.plan.ab().map(|axes| {
        let facts = |nth: usize| header.programs.get(nth);
        let program = |(nth, command): (usize, AbCommand<'_>)| {
            let mut program = json!({
                "name": command.program,
                "command": iolens_model::command_line::redacted(command.argv),
                "path": facts(nth).map(|facts| &facts.path),
                "sha256": facts(nth).map(|facts| &facts.sha256),
                "links": facts(nth).map(|facts| &facts.links),
            });
            if let Some(bench) = command.bench {
                program["bench"] = bench.into();
            }
            program
        };
        axes.commands().into_iter().enumerate().map(program).collect::<Vec<_>>()
    });
    let end = header.end.as_ref();
    let took = header.took_ns();
    let mut result = json!({
        "schema": SCHEMA,
        "run": header.id,
        "build": header.build,
        "mode": header.plan.ab().map(|axes| axes.mode.word()),
        "threshold": header.plan.delta,
        "seconds": took.map(|ns| ns as f64 / 1e9),
        "stopped_by": end.map(|end| end.stopped_by.word()),
        "programs": programs,
        "settings": analysis.cells.iter().map(|cell| setting(&said, cell)).collect::<Value>(),
    });
    if let Some(throttled) = analysis.throttled {
        result["throttled"] = json!(throttled);
    }
    format!("{result:#}")
}

fn setting(said: &Said<'_>, cell: &AbCell) -> Value {
    let contrasts = cell.judgement.contrasts.iter().map(|one| contrast(said, one));
    let copies = cell.judgement.copies.iter().map(|copies| {
        json!({
            "arm": said.name(copies.arm),
            "quantity": copies.quantity.word(),
            "change": copies.change,
            "interval": copies.pointwise.map(pair),
            "differ": copies.differ,
        })
    });
    let missing = cell.judgement.missing.iter().map(|missing| {
        json!({
            "arm": said.name(missing.arm),
            "quantity": missing.quantity.word(),
            "why": missing.why,
        })
    });
    json!({
        "values": cell.setting.values.iter().cloned().collect::<Value>(),
        "times_are_own": cell.is_own_time,
        "arms": cell.arms.iter().map(arm).collect::<Value>(),
        "contrasts": contrasts.collect::<Value>(),
        "copies": copies.collect::<Value>(),
        "missing": missing.collect::<Value>(),
    })
}

fn arm(arm: &AbArmFigures) -> Value {
    json!({
        "name": arm.name,
        "trials": arm.trials,
        "failed": arm.failed,
        "failure": arm.failure,
        "links": arm.links,
        "operations_per_slice": arm.operations,
        "time_ns_per_operation": arm.op_time_ns,
        "cpu_ns_per_operation": arm.op_cpu_ns,
        "user_share": arm.user_share,
        "faults_per_operation": arm.op_faults,
        "asking_ns_per_slice": arm.asking_ns,
        "fixed_share_of_slice": arm.fixed_share,
        "idle_share": arm.idle_share,
        "stray_lines_per_slice": arm.stray_lines,
        "stderr_bytes_per_slice": arm.stderr_bytes,
        "calls": arm.calls.iter().map(calls::json).collect::<Value>(),
        "calls_by": arm.calls_by,
        "calls_missing": arm.calls_missing,
    })
}

fn contrast(said: &Said<'_>, contrast: &AbContrast) -> Value {
    json!({
        "arm": said.name(contrast.arm),
        "baseline": said.name(0),
        "quantity": contrast.quantity.word(),
        "units": contrast.units,
        "change": contrast.change,
        "interval": contrast.pointwise.map(pair),
        "simultaneous": contrast.simultaneous.map(pair),
        "verdict": contrast.verdict.word(),
        "reason": contrast.reason,
        "layout_allowance": contrast.layout_allowance,
        "links": links::json(contrast),
        "power": {
            "now": contrast.power.now,
            "at_budget": contrast.power.at_budget,
            "probability": 0.9,
        },
    })
}

pub(super) fn pair(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}
