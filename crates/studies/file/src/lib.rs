//! Files: reading, writing and copying them. The engines are lists like that of
//! the primitives; `job` runs what a user asks for by hand in a worker process,
//! because a mapped file that shrinks ends the process that reads it.

#![forbid(unsafe_code)]

pub mod arm;
pub mod checksum;
pub mod copy;
pub mod destination;
pub mod drop_caches;
pub mod engines;
pub mod examine;
pub mod failure;
mod file_path;
pub mod job;
pub mod leftover;
pub mod material;
pub mod moved;
pub mod part;
pub mod prepared;
pub mod read;
pub mod residency;
#[cfg(test)]
#[allow(dead_code, reason = "other crates use the rest")]
#[path = "../../../../tests/support/scripted.rs"]
mod scripted;
pub mod size;
#[cfg(test)]
#[path = "../../../../tests/support/skip.rs"]
mod skip;
#[cfg(test)]
#[path = "../../../../tests/support/small.rs"]
mod small;
pub mod subject;
pub mod test_file;
pub mod tune;
pub mod ways;
pub mod write;

use iolens_model::trial::Trial;

use crate::arm::{Ground, ReadGround};
use crate::write::ground::Destined;

/// Opens the file of a trial; `None` in studies without one, and where calls open it themselves.
///
/// Errors: as [`Subject::open`](subject::Subject::open).
pub fn open(trial: &Trial) -> Result<Option<Box<dyn Ground>>, String> {
    let is_opened = trial.cell.syscall().is_none();
    let Some(file) = trial.file.as_ref().filter(|_| is_opened) else { return Ok(None) };
    Ok(Some(match trial.cell.write() {
        Some(setting) => Box::new(Destined::open(file, setting, trial.pass)?),
        None => Box::new(ReadGround::open(file)?),
    }))
}
