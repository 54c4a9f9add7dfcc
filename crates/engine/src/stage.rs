//! Where the two ends of a trial stand: which topologies this machine lets us
//! make, asked before a plan is made.

use iolens_model::axes::Topology;

/// Whether a topology can be made here.
///
/// Errors: why not, one clause, and what would change it.
pub fn available(topology: Topology) -> Result<(), String> {
    match topology {
        Topology::Loopback => Ok(()),
        Topology::Veth => Err("this build cannot make network namespaces".to_owned()),
    }
}
