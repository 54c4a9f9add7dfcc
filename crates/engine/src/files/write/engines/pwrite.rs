//! `pwrite`: pwrite(2), block by block, at a place that the call names.
//!
//! Path through the kernel: pwrite64(2) → `vfs_write`: as of `write`, without the
//! lock on the position of a descriptor that threads share.
//! Needs: nothing.
//! Compared with: `write`.
//! Does not show: what threads gain from it; here there is one.

use iolens_sys::file;

use crate::files::moved::Call;
use crate::files::write::engines::{Entry, Setup, Writer};
use crate::files::write::plain;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "pwrite",
    summary: "pwrite(2) of each block",
    needs: "nothing",
    since: None,
    path: "buffer → page cache: copied by the kernel (copy_page_from_iter_atomic)",
    is_direct: false,
    ignores_dsync: None,
    has_several_under_way: false,
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Writer + '_>, String> {
    let fd = setup.file;
    let write = move |bytes: &[u8], at| file::write::pwrite(fd, bytes, at);
    plain::open(setup, Call::destination("pwrite"), write)
}
