//! From wishes to the axes of a study and back: what studies share.

use iolens_model::axes::Topology;
use iolens_model::plan::Schedule;
use iolens_model::units::Bytes;

use super::Available;
use crate::axes::Wishes;
use crate::failure::{Failure, unusable, usage};
use crate::values::{Stand, a_block};

/// What the study's default states; a test reads that it states all of it.
pub(crate) fn stated<T: Clone>(value: &Option<T>, key: &str) -> Result<T, Failure> {
    value.clone().ok_or_else(|| usage!("the plan states no `{key}`"))
}

/// Sizes as they are stated.
pub(super) fn sizes(asked: &Wishes) -> Result<Vec<Bytes>, Failure> {
    stated(&asked.sizes, "sizes")
}

/// Sizes that are blocks of a file.
pub(super) fn blocks(asked: &Wishes) -> Result<Vec<Bytes>, Failure> {
    let sizes = sizes(asked)?;
    sizes.iter().try_for_each(|&size| a_block(size).map(drop)).map_err(Failure::usage)?;
    Ok(sizes)
}

/// The topologies that are asked for; `auto` is decided here, and said.
pub(super) fn topologies(
    asked: &Wishes,
    available: Available<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Topology>, Failure> {
    let mut topologies = Vec::new();
    for stand in stated(&asked.network, "network")? {
        let topology = match stand {
            Stand::At(topology) => {
                available(topology)
                    .map_err(|why| unusable!("cannot use --network {topology}: {why}"))?;
                topology
            }
            Stand::Auto => match available(Topology::Veth) {
                Ok(()) => Topology::Veth,
                Err(why) => {
                    notes.push(format!("on loopback, because veth cannot be used: {why}"));
                    Topology::Loopback
                }
            },
        };
        if !topologies.contains(&topology) {
            topologies.push(topology);
        }
    }
    Ok(topologies)
}

/// What a plan states of its topologies.
pub(super) fn at(topologies: &[Topology]) -> Option<Vec<Stand>> {
    Some(topologies.iter().map(|&topology| Stand::At(topology)).collect())
}

/// Refuses programs of the user's where arms do not take turns.
pub(super) fn check_turns(asked: &Wishes, schedule: &Schedule) -> Result<(), Failure> {
    match asked.external.first().filter(|_| !schedule.is_sliced()) {
        None => Ok(()),
        Some(program) => Err(usage!(
            "--external {} does not apply to --sequential-time and --sequential-messages: programs \
             take turns\n  leave them out",
            program.name
        )),
    }
}

/// Axes of a study, and the wishes that lead to them.
pub(super) trait AsWished: Sized {
    /// What wishes alone do not say.
    type Given;

    fn asked_for(asked: &Wishes, given: Self::Given) -> Result<Self, Failure>;

    /// What a plan states of these axes.
    fn stated(&self) -> Wishes;
}

/// From each wish to its axis and back. A wish that `must` be stated is by the study's default
/// plan; one that `may` be has a value without; one that is the `same` is taken as it is, and a
/// `list` may be empty.
macro_rules! axes_and_wishes {
    ($axes:ident { $($field:ident: $how:ident $wish:ident $($default:expr)?;)+ }
     $(given $($given:ident: $type:ty),+)?) => {
        impl crate::studies::wished::AsWished for $axes {
            type Given = ($($($type,)+)?);

            fn asked_for(asked: &Wishes, given: Self::Given) -> Result<$axes, Failure> {
                let ($($($given,)+)?) = given;
                Ok($axes {
                    $($field: axes_and_wishes!(@axis $how asked $wish $($default)?),)+
                    $($($given,)+)?
                })
            }

            fn stated(&self) -> Wishes {
                Wishes {
                    $($wish: axes_and_wishes!(@wish $how self $field),)+
                    ..Wishes::default()
                }
            }
        }
    };
    (@axis must $asked:ident $wish:ident) => {
        crate::studies::wished::stated(&$asked.$wish, stringify!($wish))?
    };
    (@axis may $asked:ident $wish:ident $default:expr) => {
        $asked.$wish.clone().unwrap_or_else(|| $default)
    };
    (@axis same $asked:ident $wish:ident) => { $asked.$wish.clone() };
    (@axis list $asked:ident $wish:ident) => { $asked.$wish.clone().unwrap_or_default() };
    (@wish same $axes:ident $field:ident) => { $axes.$field.clone() };
    (@wish list $axes:ident $field:ident) => {
        Some($axes.$field.clone()).filter(|list| !list.is_empty())
    };
    (@wish $how:ident $axes:ident $field:ident) => { Some($axes.$field.clone()) };
}

pub(super) use axes_and_wishes;
