//! What writing around the page cache asks for: offsets and lengths that are multiples
//! of something.

use std::os::fd::BorrowedFd;

use iolens_model::units::Bytes;
use iolens_sys::file;
use iolens_sys::file::about::about;
use iolens_sys::pages::PAGE_BYTES;

/// What offsets and lengths of direct writes to a file are multiples of, in bytes; it
/// does for direct reads too. Where statx(2) does not say it is a page: no disk has
/// larger blocks, and a file system with larger ones says so.
///
/// Errors: blocks of `block_bytes` are none.
pub(crate) fn alignment(file: BorrowedFd<'_>, block_bytes: u64) -> Result<usize, String> {
    let about =
        about(file).map_err(|errno| format!("cannot ask what O_DIRECT takes (statx): {errno}"))?;
    let align = about.direct.map_or(PAGE_BYTES, |align| align.write_offset as usize);
    if block_bytes.is_multiple_of(align as u64) {
        return Ok(align);
    }
    let on = file::file_system(file).unwrap_or_else(|_| "this file system".to_owned());
    Err(format!(
        "direct writes to {on} are multiples of {}, which a block of {} is not",
        Bytes(align as u64),
        Bytes(block_bytes)
    ))
}
