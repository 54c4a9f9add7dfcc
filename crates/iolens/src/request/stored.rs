//! A plan that comes from a stored run, which anybody may have written.

use iolens_model::plan::{Plan, Schedule};
use iolens_model::units::Bytes;

use super::{known, plan};
use crate::failure::Failure;
use crate::plan_file;
use crate::wishes::Wishes;

/// Checks a stored plan as if it had been typed: its values go through the parsers of their
/// flags, its words are looked up.
pub(crate) fn check_stored(stored: &Plan) -> Result<(), Failure> {
    let text = plan_file::write(&Wishes::of(stored, None));
    let asked = plan_file::parse("plan", &text, &known).map_err(Failure::usage)?;
    let typed = plan(asked, stored.seed, &|_| Ok(()))?.plan;
    check_unstated(stored, &typed)
}

/// Checks what no key of a plan states: how many rounds are thrown away, and the size of a file
/// of the user's.
fn check_unstated(stored: &Plan, typed: &Plan) -> Result<(), Failure> {
    if stored.sizes != typed.sizes {
        return Err(Failure::usage(format!(
            "its sizes are {}, and those of its file or its study {}",
            listed(&stored.sizes),
            listed(&typed.sizes)
        )));
    }
    let fits = match (stored.schedule, typed.schedule) {
        (
            Schedule::Slices { slice, discarded_rounds, rounds },
            Schedule::Slices { slice: s, discarded_rounds: most, rounds: r },
        ) => {
            // Earlier builds threw away more, and never more than they kept.
            (slice, rounds) == (s, r) && discarded_rounds <= most.max(rounds)
        }
        (stored, typed) => stored == typed,
    };
    match fits {
        true => Ok(()),
        false => Err(Failure::usage("its schedule is none that iolens lays out")),
    }
}

/// Sizes in words, as far as a message has room.
fn listed(sizes: &[Bytes]) -> String {
    let words: Vec<String> = sizes.iter().take(8).map(Bytes::to_string).collect();
    match sizes.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}
