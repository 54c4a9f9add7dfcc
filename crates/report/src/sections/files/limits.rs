//! How close the fastest comes to what bounds it.

use iolens_document::{Fact, Node};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::setting;
use crate::bounds::{NO_BOUND, disturbed};
use crate::findings::{self, Limit, Limiting, Reach};
use crate::number::percent;
use crate::rates::rate;
use crate::words;

/// A fact for each curve.
pub(super) fn nodes(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let mut facts: Vec<Fact> = Vec::new();
    let all = findings::limits(run, analysis);
    for own in all.chunk_by(|a, b| (&a.setting, &a.method) == (&b.setting, &b.method)) {
        let Some(first) = own.first() else { continue };
        let bounds: Vec<String> = own.iter().map(|limit| bound(run, limit)).collect();
        let said = format!(
            "{} at {}, {}: {}",
            first.method,
            first.setting.size,
            rate(first.bytes_per_s.value),
            bounds.join("; ")
        );
        facts.push(Fact::new(words::curve(&run.header, &first.setting.curve()), said));
    }
    Node::facts(facts).into_iter().collect()
}

fn bound(run: &Run, limit: &Limit) -> String {
    let share = |of: f64| percent(limit.bytes_per_s.value / of);
    match &limit.bound {
        Limiting::BestCold { setting: at, method, .. }
            if *at == limit.setting && *method == limit.method =>
        {
            "the best cold rate here, the best evidence of what the device delivers".to_owned()
        }
        Limiting::BestCold { setting: at, method, bytes_per_s } => format!(
            "{} of the best cold rate here ({}, {method} at {})",
            share(*bytes_per_s),
            rate(*bytes_per_s),
            setting(run, at)
        ),
        Limiting::Memory { name, bytes_per_s, spread } => {
            let mark = spread.map_or_else(String::new, disturbed);
            let name = format!("the {name} ({}{mark})", rate(*bytes_per_s));
            match limit.reach {
                Reach::Below => format!("{} of {name}{}", share(*bytes_per_s), copied(run)),
                Reach::At => format!("as fast as {name}"),
                Reach::AboveCopy => {
                    format!("faster than {name}, which writes as much to memory besides")
                }
                Reach::Above => format!("faster than {name}, which {NO_BOUND}"),
            }
        }
    }
}

/// What a copy of a file does besides.
fn copied(run: &Run) -> &'static str {
    match run.header.plan.copy() {
        Some(_) => "; copying a file also allocates every page of the new one",
        None => "",
    }
}
