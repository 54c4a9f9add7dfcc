//! `writev`: writev(2) of each block in up to eight pieces, as a program writes that
//! puts a record together from parts.
//!
//! Path through the kernel: writev(2) → `vfs_writev` → `import_iovec` → as of
//! `write`, one copy for each piece.
//! Needs: nothing.
//! Compared with: `write`, whose block lies in one piece.
//! Does not show: the gathering that it saves the program.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use iolens_sys::errno::Errno;
use iolens_sys::file;

use crate::files::moved::Call;
use crate::files::write::engines::Entry;
use crate::files::write::plain;

/// Pieces of a block, as a message has fields.
const PIECES: usize = 8;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "writev",
    summary: "writev(2) of each block in up to eight pieces",
    needs: "nothing",
    since: None,
    path: "pieces of a buffer → page cache: copied by the kernel, one after the other",
    is_direct: false,
    ignores_dsync: None,
    has_depth: false,
    is_dsync: false,
    is_durable: false,
    needs_size: false,
    by_hand: None,
    open: plain::open::<Writev>,
    lane: plain::lane::<Writev>,
};

struct Writev;

impl plain::Call for Writev {
    const NAME: Call = Call::destination("writev");
    const MOVES: bool = true;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], _at: u64, block: usize) -> Result<usize, Errno> {
        let piece_bytes = block.div_ceil(PIECES).max(1);
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let mut used = 0;
        for (piece, bytes) in pieces.iter_mut().zip(bytes.chunks(piece_bytes)) {
            *piece = IoSlice::new(bytes);
            used += 1;
        }
        file::write::writev(fd, &pieces[..used])
    }
}
