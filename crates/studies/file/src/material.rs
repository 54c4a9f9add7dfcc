//! The files that the trials of a run need: made, or looked at, before the first of
//! them.

use std::path::Path;

use iolens_model::file::FileFacts;
use iolens_model::host::HostFacts;
use iolens_model::plan::{Axes, Plan};
use iolens_model::trial::Trial;

use super::copy::prepared::Prepared as Copied;
use super::prepared::Prepared as Read;
use super::write::destinations::Destinations;

/// Files of a run. They are there as long as this is.
#[derive(Debug)]
pub enum Material {
    /// One that is read.
    Read(Read),
    /// Those that are written.
    Written(Destinations),
    /// Those that are copied, and the folder of their copies.
    Copied(Copied),
}

impl Material {
    /// Makes what a plan needs whose trials have so many arms at most; `None` for one that needs
    /// no file. `stop` is asked while files are written.
    ///
    /// Errors: what was tried and what the system said, or that it was stopped.
    pub fn of(
        plan: &Plan,
        arms: usize,
        host: &HostFacts,
        stop: impl Fn() -> bool,
    ) -> Result<Option<Material>, String> {
        Ok(match &plan.axes {
            Axes::Net(_) | Axes::Server(_) | Axes::Ab(_) => None,
            Axes::Syscall(axes) => {
                let file = axes.file.as_ref();
                file.map(|file| Read::theirs(Path::new(file)).map(Material::Read)).transpose()?
            }
            Axes::File(axes) => Some(Material::Read(Read::of(axes, host, plan.seed, stop)?)),
            Axes::Write(axes) => {
                Some(Material::Written(Destinations::make(plan, axes, arms, host, &stop)?))
            }
            Axes::Copy(axes) => Some(Material::Copied(Copied::of(axes, plan, stop)?)),
        })
    }

    /// What a run keeps of them.
    pub fn facts(&self) -> &FileFacts {
        match self {
            Material::Read(file) => file.facts(),
            Material::Written(files) => files.facts(),
            Material::Copied(files) => files.facts(),
        }
    }

    /// A trial with the files that it needs.
    pub fn given_to(&self, trial: Trial, seed: u64) -> Trial {
        match self {
            Material::Read(file) => Trial { file: Some(file.of_trial(seed)), ..trial },
            Material::Written(files) => files.given_to(trial, seed),
            Material::Copied(files) => files.given_to(trial, seed),
        }
    }
}
