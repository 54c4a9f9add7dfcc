//! What reading around the page cache asks for: lengths, offsets and addresses that
//! are multiples of something.

use iolens_model::units::Bytes;
use iolens_sys::file::about::Alignment;
use iolens_sys::pages::PAGE_BYTES;

use super::drive::Setup;

/// What is taken where statx(2) does not say: no disk has larger blocks, and a file
/// system with larger ones says so.
const OFFSET_BYTES: u32 = 4096;

/// What offsets and lengths of direct reads of a file are multiples of, in bytes.
///
/// Errors: the blocks are none, or the buffers cannot be as the file system wants
/// them.
pub(crate) fn offset_alignment(setup: &Setup<'_>) -> Result<u32, String> {
    let (subject, block_bytes) = (setup.subject, setup.part.block_bytes);
    let (memory, offset) = match subject.about().direct {
        Some(Alignment { memory, offset, .. }) => (memory, offset),
        None => (1, OFFSET_BYTES),
    };
    if memory as usize > PAGE_BYTES {
        return Err(format!(
            "direct reads from {} want buffers aligned to {}, and these are to pages of {}",
            subject.file_system(),
            Bytes(memory.into()),
            Bytes(PAGE_BYTES as u64)
        ));
    }
    if !block_bytes.is_multiple_of(offset.into()) {
        return Err(format!(
            "direct reads from {} are of multiples of {}, and these blocks are not",
            subject.file_system(),
            Bytes(offset.into())
        ));
    }
    Ok(offset)
}

/// Bytes to ask for so that `bytes` are read: the last block of a file ends within
/// the unit that the device reads, and the read at the file's end.
#[inline]
pub(crate) fn rounded_up(bytes: usize, alignment: u32) -> usize {
    bytes.next_multiple_of(alignment as usize)
}
