//! `iolens list plans`: the plans that the program carries.

use serde_json::{Value, json};

use crate::built_in::ALL;

/// Each with what its file begins by saying.
pub(super) fn items() -> Vec<Value> {
    let item =
        |plan: &crate::built_in::BuiltIn| json!({"name": plan.name, "summary": plan.summary()});
    ALL.iter().map(item).collect()
}
