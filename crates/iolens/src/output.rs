//! The one place that prints: results on stdout, everything else on stderr.

#![expect(clippy::print_stderr, reason = "this is the one place")]

use std::io::{self, IsTerminal, Write};

/// Prints a result. A reader that has gone, as in `iolens runs | head -1`, is
/// not an error.
pub(crate) fn result(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { stdout.write_all(b"\n") });
}

/// Prints progress or advice.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints why a command failed.
pub(crate) fn error(text: &str) {
    eprintln!("iolens: {text}");
}

/// Whether results go to a terminal that may be coloured.
pub(crate) fn stdout_takes_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !refused
}

/// Whether progress goes to a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}
