//! The machine at the other end.

use std::net::IpAddr;

use iolens_engine::far::Launcher;

use crate::values;

const PEER: &str = "The other machine";

/// How it is reached.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Peer {
    /// Command that starts programs on another machine: 'ssh user@host', 'srun -w node2',
    /// 'kubectl exec -i pod --', 'ip netns exec b'; not passed to a shell
    #[arg(long, value_name = "LAUNCHER", value_parser = values::peer::launcher, help_heading = PEER)]
    pub(crate) peer: Option<Launcher>,
    /// iolens on that machine [default: copied there for the run]
    #[arg(long, value_name = "PATH", requires = "peer", value_parser = values::peer::far_program,
          help_heading = PEER)]
    pub(crate) peer_binary: Option<String>,
    /// Its address for data [default: the one the launcher reached]
    #[arg(long, value_name = "ADDRESS", requires = "peer", help_heading = PEER)]
    pub(crate) peer_address: Option<IpAddr>,
    /// Accept a different build of iolens there
    #[arg(long, requires = "peer_binary", help_heading = PEER)]
    pub(crate) peer_any_build: bool,
}
