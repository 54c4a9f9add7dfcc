//! The kernel here, and the one that something needs.

use iolens_model::kernel::KernelVersion;
use iolens_sys::process;

/// Why something does not work here, with the kernel that it needs where this
/// one is older.
#[must_use]
pub fn with_version(why: String, since: Option<KernelVersion>) -> String {
    let [_, release, ..] = process::uname();
    match (since, KernelVersion::of_release(&release)) {
        (Some(since), Some(here)) if here < since => {
            format!("{why}; it needs Linux {since}, and this is {here}")
        }
        _ => why,
    }
}
