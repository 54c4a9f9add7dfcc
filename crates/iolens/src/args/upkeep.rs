//! Upkeep: `iolens import`, `rm` and `gc` of the database, `completions` and `man` of the shell.

use std::path::PathBuf;

use clap::ValueEnum;
use iolens_model::origin;
use iolens_model::parse;
use iolens_model::units::Nanos;

use crate::args::ResultArgs;

const IMPORT_AFTER: &str = "\
A FILE is a database of iolens, or what `iolens export RUN --format json --rows all` wrote. It is
only read. Runs are known by their ids: one that is here already is not imported again.

Exit code: 4 if a file or a run of one was refused

iolens import node1.db node2.db
iolens import --host rack7-left results.db";

#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT_AFTER)]
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

const COMPLETIONS_EXAMPLE: &str = "\
iolens completions bash > ~/.local/share/bash-completion/completions/iolens
iolens completions zsh > ~/.zfunc/_iolens       with ~/.zfunc in fpath, before compinit
iolens completions fish > ~/.config/fish/completions/iolens.fish";

const MAN_EXAMPLE: &str = "\
iolens man ~/.local/share/man/man1
man iolens-run";

#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLE)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Shells that completions are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// GNU bash
    Bash,
    /// The Z shell
    Zsh,
    /// The friendly interactive shell
    Fish,
}

#[derive(Debug, clap::Args)]
#[command(after_help = MAN_EXAMPLE)]
pub(crate) struct Man {
    /// Folder for the pages, one for each command; made where there is none
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Replace pages that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
}
