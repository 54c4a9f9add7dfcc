//! `iolens completions` and `iolens man`: what a shell and man(1) know of the
//! command line.

use std::path::PathBuf;

use clap::ValueEnum;

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
