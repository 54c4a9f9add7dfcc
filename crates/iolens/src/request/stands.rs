//! Where the ends stand.

use iolens_model::axes::Topology;

use super::Available;
use crate::failure::Failure;
use crate::values::Stand;

/// The topologies that are asked for; `auto` is decided here, and said.
pub(super) fn topologies(
    stands: &[Stand],
    available: Available<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Topology>, Failure> {
    let mut topologies = Vec::new();
    for stand in stands {
        let topology = match *stand {
            Stand::At(topology) => {
                available(topology).map_err(|why| {
                    Failure::unusable(format!("cannot use --network {topology}: {why}"))
                })?;
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
