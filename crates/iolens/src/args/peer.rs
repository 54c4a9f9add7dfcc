//! The machine at the other end.

use std::net::IpAddr;

use iolens_engine::far::Launcher;

use crate::values;

const PEER: &str = "The other machine";

/// How it is reached.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Peer {
    /// Of net: measure to another machine, where this starts programs: 'ssh user@host',
    /// 'srun -w node2', 'kubectl exec -i pod --', 'ip netns exec b'; no shell of this machine
    #[arg(long, value_name = "LAUNCHER", value_parser = values::peer::launcher, help_heading = PEER)]
    pub(crate) peer: Option<Launcher>,
    /// The iolens there: a path, or a name in its PATH [default: this one is copied there for the
    /// run]
    #[arg(long, value_name = "PATH", requires = "peer", value_parser = values::peer::far_program,
          help_heading = PEER)]
    pub(crate) peer_binary: Option<String>,
    /// Its address for data [default: where the launcher reached it, or the only one it has]
    #[arg(long, value_name = "ADDRESS", requires = "peer", help_heading = PEER)]
    pub(crate) peer_address: Option<IpAddr>,
    /// Take an iolens of another build there
    #[arg(long, requires = "peer_binary", help_heading = PEER)]
    pub(crate) any_build: bool,
}
