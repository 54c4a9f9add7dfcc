//! The studies of `iolens run`, an entry each: what the command line says of a study, what its
//! arms may be, and the way from wishes to its axes and back. This is the only list of them here.

mod files;
pub(crate) mod net;
pub(crate) mod server;
mod syscall;
pub(crate) mod tuning;
mod wished;

pub(crate) use self::wished::stated;

use iolens_model::axes::{Study, Topology};
use iolens_model::plan::{Axes, Plan, Schedule};
use iolens_model::units::{Bytes, Nanos};

use crate::axes::Wishes;
use crate::failure::Failure;

/// How long a slice is meant to last, and rounds that are thrown away, where a study has no others;
/// docs/journal has the measurements.
pub(crate) const SLICE: Nanos = Nanos(2_000_000);
const DISCARDED_ROUNDS: u32 = 3;

/// Whether a topology can be made here, or why not.
pub(crate) type Available<'a> = &'a dyn Fn(Topology) -> Result<(), String>;

/// A study.
pub(crate) struct StudySpec {
    pub(crate) study: Study,
    /// What it measures, beside the other studies.
    pub(crate) summary: &'static str,
    /// What its command does.
    pub(crate) about: &'static str,
    /// Command lines to begin with.
    pub(crate) examples: &'static str,
    /// Where else to look.
    pub(crate) footer: Option<&'static str>,
    /// Its plan of `--quick`.
    pub(crate) quick: &'static str,
    /// What can be an arm, from the registries.
    pub(crate) arms: fn() -> ArmChoice,
    /// Words of textbooks, each with what it is called here.
    pub(crate) textbook: &'static [(&'static str, &'static str)],
    /// Programs of the user's as arms; `None` where none can be.
    pub(crate) programs: Option<Programs>,
    /// How long a slice is meant to last, and rounds that are thrown away first.
    pub(crate) slices: (Nanos, u32),
    /// Fits the default to what was asked for, and refuses what does not go together.
    pub(crate) fit: fn(&Wishes, &mut Wishes) -> Result<(), Failure>,
    /// Sizes of what is asked for; none where they are no axis.
    pub(crate) sizes: fn(&Wishes) -> Result<Vec<Bytes>, Failure>,
    /// Its axes, of the arms those that they fit, and what the user ought to know.
    pub(crate) axes: fn(Draft<'_>) -> Result<Axes, Failure>,
    /// The wishes that lead to the axes of a plan of this study.
    pub(crate) wishes: fn(&Plan) -> Wishes,
    /// What is laid out once the rest of the plan stands, which has a budget or has not.
    pub(crate) lay_out: fn(&mut Plan, bool, &mut Vec<String>),
}

/// In the order in which they are shown.
pub(crate) static ALL: [&StudySpec; 6] =
    [&net::NET, &files::FILE, &files::WRITE, &files::COPY, &syscall::SYSCALL, &server::SERVER];

impl StudySpec {
    /// The entry of a study; `None` of `ab`, which has a command of its own.
    pub(crate) fn of(study: Study) -> Option<&'static StudySpec> {
        ALL.into_iter().find(|spec| spec.study == study)
    }
}

/// A plan on its way: what is known of it when the axes of its study are made.
pub(crate) struct Draft<'a> {
    pub(crate) asked: &'a Wishes,
    pub(crate) schedule: &'a Schedule,
    pub(crate) available: Available<'a>,
    pub(crate) baseline: &'a str,
    pub(crate) arms: &'a mut Vec<String>,
    pub(crate) notes: &'a mut Vec<String>,
}

/// Programs of the user's as arms of a study.
pub(crate) struct Programs {
    /// Placeholders that their commands must have.
    pub(crate) told: fn(&Wishes) -> &'static [&'static str],
    /// Whether a plan file may name one among the methods, too.
    pub(crate) are_listed: bool,
}

/// What can be an arm of a study.
pub(crate) struct ArmChoice {
    /// What messages call one.
    pub(crate) what: &'static str,
    /// The baseline, unless another one is named.
    pub(crate) baseline: &'static str,
    /// The ids that are shown.
    pub(crate) ids: Vec<&'static str>,
    /// An id, shown or not.
    pub(crate) find: fn(&str) -> Option<&'static str>,
    /// The ids that a word stands for which is none.
    pub(crate) group: fn(&str) -> Option<Vec<&'static str>>,
    /// Why an arm measures nothing that others could be compared with.
    pub(crate) control: fn(&str) -> Option<&'static str>,
    /// Whether such an arm may be measured by itself.
    pub(crate) is_alone: bool,
    /// What the others do.
    pub(crate) does: &'static str,
    /// Where all of them are, and what else is taken.
    pub(crate) advice: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_of_run_has_an_entry() {
        assert_eq!(ALL.map(|spec| spec.study).as_slice(), Study::OF_RUN);
    }
}
