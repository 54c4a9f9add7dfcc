//! `iolens rm` and `iolens gc`: upkeep of the database.

use iolens_model::parse;
use iolens_model::units::Nanos;

use crate::args::ResultArgs;

const GC_EXAMPLE: &str = "\
Without flags nothing is lost: runs that were cut short before their first trial go, and
room that is free in the file is given back. --keep and --older-than remove runs; given
together, only those that both name.

iolens gc --dry-run
iolens gc --older-than 90d --keep 20";

#[derive(Debug, clap::Args)]
pub(crate) struct Rm {
    /// Ids, beginnings of them, names, or `last`
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) consent: Consent,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = GC_EXAMPLE)]
pub(crate) struct Gc {
    /// Remove all runs of this machine but the latest N; imported runs stay
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub(crate) keep: Option<u64>,
    /// Remove runs that began longer ago, as in 30d
    #[arg(long, value_name = "AGE", value_parser = parse::age)]
    pub(crate) older_than: Option<Nanos>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

/// What is asked before runs are removed.
#[derive(Debug, clap::Args)]
pub(crate) struct Consent {
    /// Remove runs without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Wait for a run that measures instead of giving up
    #[arg(long)]
    pub(crate) wait: bool,
}
