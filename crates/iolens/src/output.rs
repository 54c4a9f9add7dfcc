//! The one place that prints: results on stdout, everything else on stderr.

#![expect(clippy::print_stderr, reason = "this is the one place")]

use std::io::{self, BufRead, IsTerminal, Write};

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

/// Whether somebody is there to be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether somebody sits at a terminal for what is asked, answered and printed alike.
pub(crate) fn can_show_a_menu() -> bool {
    can_ask() && io::stdout().is_terminal()
}

/// Asks who sits at the terminal; anything but a yes is a no.
pub(crate) fn ask(question: &str) -> bool {
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut line = String::new();
    let answered = io::stdin().lock().read_line(&mut line);
    answered.is_ok() && is_yes(&line)
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_a_yes_is_one() {
        assert!(["y\n", "Y", " yes \n", "YES"].into_iter().all(is_yes));
        assert!(["", "\n", "n\n", "yess", "yn"].into_iter().all(|line| !is_yes(line)));
    }
}
