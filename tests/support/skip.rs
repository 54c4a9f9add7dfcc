//! Skips that are seen: a test that cannot run here says so by name, and the
//! list of those names is compared with the one expected of the environment.
//!
//! libtest hides the output of tests that pass, so the convention is a file: if
//! the variable `IOLENS_SKIP_LOG` names one, a line `<crate>::<test>: <reason>`
//! is appended to it, and `cargo xtask test` (or `test-unprivileged`) compares
//! it with `tests/expected/root.txt` (or `unprivileged.txt`). A skip that is
//! not listed fails, so a skip cannot hide a broken test; a listed one that no
//! longer skips is reported. Plain `cargo test` prints the same line and passes.
//!
//! A test includes this file, because a crate for twenty lines would be a new
//! edge in everybody's graph:
//! ```text
//! #[path = "../../../../tests/support/skip.rs"]
//! mod skip;
//!
//! #[test]
//! fn a_cold_read_comes_from_the_device() {
//!     if !may_drop_caches() {
//!         return skip::note("cold::a_cold_read_comes_from_the_device", "needs CAP_SYS_ADMIN");
//!     }
//! ```
//! The name is the test's path as `cargo test` prints it.

use std::io::Write;

/// Says that the test `name` of this crate does not run here, and why.
pub(crate) fn note(name: &str, reason: &str) {
    let line = format!("{}::{name}: {reason}\n", env!("CARGO_PKG_NAME"));
    // Not `eprint!`, which libtest would capture.
    write!(std::io::stderr(), "SKIP {line}").expect("stderr is open");
    let Some(path) = std::env::var_os("IOLENS_SKIP_LOG") else {
        return;
    };
    // One write of less than a page to a file opened for appending: lines of
    // tests that run at the same time do not mix.
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("the file named by IOLENS_SKIP_LOG can be appended to");
}
