//! Upkeep: `iolens import`, `rm` and `gc` of the database, `completions` and `man` of the shell.

use std::path::PathBuf;

use clap::ValueEnum;
use iolens_model::origin;
use iolens_model::parse;
use iolens_model::units::Nanos;

use crate::args::ResultArgs;

const IMPORT_AFTER: &str = "\
A FILE is an iolens database, or the output of `iolens export RUN --format json --rows all`. It is
never changed. A run whose ID is here already is not imported again.

Exit codes: 0 done · 4 a file, or a run in one, was refused

iolens import node1.db node2.db
iolens import --host rack7-left results.db";

#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT_AFTER)]
pub(crate) struct Import {
    /// Databases, or runs exported with --rows all
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Name of the machine that measured the runs [default: the stored host name, else the file's
    /// name]
    #[arg(long, value_name = "NAME", value_parser = origin::label)]
    pub(crate) host: Option<String>,
    /// Print what would be imported; change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Wait while a run is measuring, instead of failing
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

const GC_EXAMPLE: &str = "\
Without flags no result is lost: runs that were interrupted before their first trial are deleted,
and free space in the file goes back to the file system. --keep and --older-than delete runs;
together they delete only runs that both select.

iolens gc --dry-run
iolens gc --older-than 90d --keep 20";

#[derive(Debug, clap::Args)]
pub(crate) struct Rm {
    /// Run IDs, starts of IDs, names, or `last`
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
    /// Delete all but the latest N runs of this machine; keep imported runs
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub(crate) keep: Option<u64>,
    /// Delete runs older than this, such as 30d
    #[arg(long, value_name = "AGE", value_parser = parse::age)]
    pub(crate) older_than: Option<Nanos>,
    /// Print what would be deleted; change nothing
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
    /// Delete without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Wait while a run is measuring, instead of failing
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
    /// Folder for the pages, one per command; created if missing
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Replace pages that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
}
