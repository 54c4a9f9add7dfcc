//! Copying a file: the ways to do it ([`engine`]), the loop around them
//! ([`drive`]), and one file copied by hand ([`by_hand`]). In the study `copy` programs
//! are arms beside them ([`copiers`]); `site` is where a trial copies, `arm` and
//! `program` are what it does there, and [`prepared`] makes the files.

pub(crate) mod arm;
pub mod by_hand;
pub mod copiers;
pub mod drive;
pub mod engine;
pub mod prepared;
mod program;
pub mod site;
#[cfg(test)]
mod tests;

use iolens_model::cell::Cell;

use self::arm::Engine;
use self::program::Process;
use self::site::Site;
use iolens_harness::op::{Sender, Trouble};

/// Bytes of the copies of one slice that are there at once. Rings of some engines lock as much, and
/// RLIMIT_MEMLOCK is 8 MiB for most users.
pub const COPIES_BYTES: u64 = 4 << 20;

/// A thread's end of an arm that copies in the way of this id.
///
/// Errors: why it cannot copy this file in blocks of this size.
pub fn open<'s>(
    site: &'s Site<'_>,
    id: &str,
    cell: &Cell,
    thread: usize,
) -> Result<Box<dyn Sender + 's>, Trouble> {
    if let Some(entry) = crate::engines::that_copies(id) {
        return Ok(Box::new(Engine::new(site, entry, cell, thread)?));
    }
    let given = site.programs.iter().find(|program| program.name == id);
    let program = given.ok_or_else(|| Trouble::failed(format!("this build has no `{id}`")))?;
    Ok(Box::new(Process::new(site, program)?))
}
