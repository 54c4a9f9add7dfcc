//! `--allow`: consent for a stored plan. What stands in a database is data, whoever wrote it.

use std::fmt;

use clap::ValueEnum;

/// What a stored plan may do besides measuring.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Allow {
    /// Let a stored plan do more than measure: external (run the programs that it names), file
    /// (read the file that it names), dir (write in the folder that it names), evict,
    /// drop-caches, sysctl
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true)]
    pub(crate) allow: Vec<Permission>,
}

impl Allow {
    pub(crate) fn allows(&self, what: Permission) -> bool {
        self.allow.contains(&what)
    }
}

/// One thing that takes consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Permission {
    External,
    File,
    Dir,
    Evict,
    DropCaches,
    Sysctl,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}
