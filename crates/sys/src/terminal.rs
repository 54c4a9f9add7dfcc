//! What a terminal is like.

/// Columns of the terminal that stdout is; null where it is none, or does not say.
///
/// Source: `TIOCGWINSZ`, ioctl_tty(2).
#[must_use]
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}
