//! `iolens import`: runs of other databases and machines.

use std::path::PathBuf;

use iolens_model::origin;

use crate::args::ResultArgs;

const AFTER: &str = "\
A FILE is a database of iolens, or what `iolens export RUN --format json --rows all` wrote. It is
only read. Runs are known by their ids: one that is here already is not imported again.

Exit code: 4 if a file or a run of one was refused

iolens import node1.db node2.db
iolens import --host rack7-left results.db";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Import {
    /// Databases and runs exported whole
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Label of the machine that measured the runs [default: its host name as stored with
    /// them, else the name of the file]
    #[arg(long, value_name = "NAME", value_parser = origin::label)]
    pub(crate) host: Option<String>,
    /// Say what would be imported, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Wait for a run that measures instead of giving up
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}
