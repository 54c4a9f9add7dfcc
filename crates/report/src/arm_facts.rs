//! What arms found or arranged when they were opened, such as the size of a
//! pipe: the same in most trials, and told where it is not.

use iolens_model::cell::Cell;
use iolens_model::outcome::TrialOutcome;
use iolens_stats::analysis::Told;
use serde_json::{Map, Value};

use crate::groups::{distinct, grouped};

/// A fact of an arm with every value that it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact<'a> {
    /// Label of the arm.
    pub(crate) arm: &'a str,
    /// What it is, with its unit.
    pub(crate) name: &'a str,
    /// Its values, each once, in the order in which they came.
    pub(crate) values: Vec<&'a str>,
}

/// The facts of all trials, or of those of one cell.
pub(crate) fn of<'a>(told: &'a Told, cell: Option<&Cell>) -> Vec<Fact<'a>> {
    let wanted = told.arm_facts.iter().filter(|fact| cell.is_none_or(|cell| fact.cell == *cell));
    let named = wanted.map(|fact| ((&*fact.arm, &*fact.name), fact.value.as_str()));
    let fact = |((arm, name), values)| Fact { arm, name, values: distinct(values) };
    grouped(named).into_iter().map(fact).collect()
}

/// The facts of one arm in one trial, by name; `None` where it has none.
pub(crate) fn object(trial: &TrialOutcome, arm: usize) -> Value {
    let facts = trial.arm_facts().filter(|fact| fact.arm == arm);
    let facts: Map<String, Value> =
        facts.map(|fact| (fact.name.clone(), Value::from(fact.value.as_str()))).collect();
    if facts.is_empty() { Value::Null } else { Value::Object(facts) }
}

#[cfg(test)]
mod tests {
    use iolens_model::outcome::ArmFact;

    use super::*;
    use crate::fixture;

    #[test]
    fn values_that_differ_between_trials_all_stand() {
        let (mut run, analysis) = fixture::run();
        assert_eq!(of(&analysis.told, None), []);
        for (index, value) in ["65536", "1048576", "65536"].into_iter().enumerate() {
            let name = "pipe_bytes".to_owned();
            let fact = ArmFact { arm: 1, name, value: value.to_owned() };
            let end = run.trials[index].tx.as_mut().expect("the end answered");
            end.arm_facts.push(fact);
        }
        let label = &run.trials[0].arms[1].arm.label;
        let values = vec!["65536", "1048576"];
        let told = Told::of(&run.trials);
        assert_eq!(of(&told, None), [Fact { arm: label, name: "pipe_bytes", values }]);
        assert_eq!(of(&told, Some(&run.trials[0].cell)).len(), 1);
        assert_eq!(object(&run.trials[1], 1)["pipe_bytes"], "1048576");
        assert!(object(&run.trials[1], 0).is_null());
    }
}
