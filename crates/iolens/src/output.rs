//! The one place that prints: results on stdout, everything else on stderr.
//!
//! What goes to a terminal fits it: no escape sequences where `NO_COLOR` or `TERM` say
//! so, no letters but ASCII where the locale has no others. A file or a pipe gets UTF-8,
//! whatever the locale is: who reads it is not known.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::OnceLock;

use iolens_report::text::{ESCAPES, Style, hanging, is_obeyed};

use crate::failure::{Failure, unusable};
use crate::places;

mod ascii;

/// Why a result could not be written; the first time.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints a result, which may quote a database or a path: control characters go, but for line
/// ends, colours, and links to files. A reader that has gone, as in `iolens runs | head -1`, is
/// not an error; for anything else, such as a full disk, see [`nothing_lost`].
pub(crate) fn result(text: &str) {
    print(&harmless(text, stdout_takes_colour()));
}

/// Prints rows for programs, byte for byte; a terminal gets them as [`result`] prints.
pub(crate) fn rows(text: &str) {
    match io::stdout().is_terminal() {
        true => result(text),
        false => print(text),
    }
}

fn print(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut stdout = io::stdout().lock();
    let text = for_reader(text, stdout.is_terminal());
    let newline: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(newline));
    written_to_stdout(written.and_then(|()| stdout.flush()));
}

/// Keeps the first error of writing to stdout; a reader that has gone is none.
pub(crate) fn written_to_stdout(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // The first error says why; what follows from it is no news.
        let _ = LOST.set(error);
    }
}

/// Errors: a part of the results could not be written to stdout.
pub(crate) fn nothing_lost() -> Result<(), Failure> {
    match LOST.get() {
        Some(error) => Err(unusable!(
            "cannot write the result to stdout: {error}\n  make room where it goes, or send it \
             elsewhere; what is stored stays, and `iolens show` prints it again"
        )),
        None => Ok(()),
    }
}

/// Prints progress or advice. It may quote a file, a database or another process, and a
/// terminal would obey what control characters say.
pub(crate) fn note(text: &str) {
    let shown = |letter: char| if is_harmless(letter) { letter } else { '\u{fffd}' };
    styled_note(&text.chars().map(shown).collect::<String>());
}

/// Prints sentences, a line each, as [`note`] does; those that a terminal has no room for break at
/// blanks. Nothing in them is to be typed.
pub(crate) fn sentences(text: &str) {
    match iolens_engine::terminal::columns(io::stderr()) {
        None => note(text),
        Some(width) => text.lines().for_each(|line| note(&hanging(line, width, 2))),
    }
}

/// Prints what ought to be known, a note each.
pub(crate) fn notes<T: std::fmt::Display>(notes: impl IntoIterator<Item = T>) {
    notes.into_iter().for_each(|text| note(&format!("note: {text}")));
}

/// Text without what a terminal would obey, but for colours and links of ours where it takes them.
fn harmless(text: &str, takes_colour: bool) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let own = colour(rest).or_else(|| link(rest)).filter(|_| takes_colour).unwrap_or(0);
        let (taken, others) = rest.split_at(own.max(letter.len_utf8()));
        if own > 0 || is_harmless(letter) {
            kept.push_str(taken);
        }
        rest = others;
    }
    Cow::Owned(kept)
}

/// Bytes of a colour of ours that a text begins with, or of its end: `ESC [ NUMBER m`.
fn colour(text: &str) -> Option<usize> {
    let number = text.strip_prefix("\x1b[")?.split_once('m')?.0;
    ESCAPES.contains(&number).then_some("\x1b[m".len() + number.len())
}

/// Bytes of the beginning or the end of a link to a file that a text begins with (OSC 8):
/// `ESC ] 8 ; ; file://PATH ESC \`, and the same without a path.
fn link(text: &str) -> Option<usize> {
    const BEGIN: &str = "\x1b]8;;";
    const END: &str = "\x1b\\";
    let (address, _) = text.strip_prefix(BEGIN)?.split_once(END)?;
    let is_own = address.is_empty() || address.starts_with("file://");
    let is_plain = !address.contains(is_obeyed);
    (is_own && is_plain).then_some(BEGIN.len() + address.len() + END.len())
}

fn is_harmless(letter: char) -> bool {
    !is_obeyed(letter) || matches!(letter, '\n' | '\t')
}

/// Prints advice with colours of ours in it.
pub(crate) fn styled_note(text: &str) {
    let mut stderr = io::stderr().lock();
    let text = harmless(text, true);
    let text = for_reader(&text, stderr.is_terminal());
    // There is no other place to say that this one takes nothing.
    let _ = writeln!(stderr, "{text}");
}

/// Prints why a command failed.
pub(crate) fn error(text: &str) {
    note(&format!("iolens: {text}"));
}

/// Text as whoever reads it can show it.
fn for_reader(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal && !is_utf8(|name| std::env::var(name).ok()) {
        Cow::Owned(ascii::written(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// Text as the terminal behind stderr can show it.
pub(crate) fn for_terminal(text: &str) -> Cow<'_, str> {
    for_reader(text, true)
}

/// Whether the locale of these variables writes UTF-8; the first one that is set decides,
/// and without one it is the `C` locale's ASCII (locale(7)). `IOLENS_ASCII=1` overrides it.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    if variable("IOLENS_ASCII").is_some_and(|value| value == "1") {
        return false;
    }
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
    let codeset = locale.split_once('.').map_or("", |(_, codeset)| codeset);
    let codeset = codeset.split('@').next().unwrap_or_default().to_ascii_lowercase();
    matches!(&*codeset, "utf-8" | "utf8")
}

/// Whether results go to a terminal that may be coloured.
pub(crate) fn stdout_takes_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && takes_escapes() && !refused
}

/// What the parser of the command line colours with. Left to itself it colours a terminal
/// of `TERM=dumb` too where `CI` is set (anstream's `auto`).
pub(crate) fn parser_colour() -> clap::ColorChoice {
    if takes_escapes() { clap::ColorChoice::Auto } else { clap::ColorChoice::Never }
}

/// Columns that results have: those of the terminal, or what is read well.
pub(crate) fn stdout_columns() -> usize {
    const COLUMNS: usize = 100;
    iolens_engine::terminal::columns(io::stdout()).unwrap_or(COLUMNS)
}

/// Whether progress goes to a terminal on which a line can be drawn again.
pub(crate) fn stderr_redraws() -> bool {
    io::stderr().is_terminal() && takes_escapes()
}

/// Whether the terminal knows escape sequences, as far as `TERM` tells.
fn takes_escapes() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
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
    let question = for_terminal(question);
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut line = String::new();
    let answered = io::stdin().lock().read_line(&mut line);
    answered.is_ok() && is_yes(&line)
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// How text goes to stdout here.
pub(crate) fn style() -> Style {
    Style {
        colour: stdout_takes_colour(),
        width: stdout_columns(),
        database: places::named_by_user(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_commands_no_terminal() {
        for kept in [
            "plain é\n\ttext",
            "\x1b[31mred\x1b[0m\x1b[1mbold\x1b[0m",
            "",
            "\x1b]8;;file:///a%20b.html\x1b\\report\x1b]8;;\x1b\\",
        ] {
            assert_eq!(harmless(kept, true), kept);
        }
        for (text, expect) in [
            ("\x1b[2Jx", "[2Jx"),
            ("\x1b[1;", "[1;"),
            ("\x1b", ""),
            ("a\rb\x07c\x00d\x7fe", "abcde"),
            ("\u{9b}2J\u{85}", "2J"),
            ("\x1b]0;title\x07", "]0;title"),
            ("\x1b[31mred\x1b[1Aup", "\x1b[31mred[1Aup"),
            ("\x1b[8mhidden\x1b[1;31m", "[8mhidden[1;31m"),
            ("a\u{202e}b", "ab"),
            ("\x1b]8;;http://x/\x1b\\y", "]8;;http://x/\\y"),
            ("\x1b]8;;file://\x1b[2J\x1b\\y", "]8;;file://[2J\\y"),
            ("\x1b]8;;file://x", "]8;;file://x"),
        ] {
            assert_eq!(harmless(text, true), expect, "{text:?}");
        }
        assert_eq!(harmless("\x1b[31mred\x1b[0m", false), "[31mred[0m");
    }

    #[test]
    fn only_a_yes_is_one() {
        assert!(["y\n", "Y", " yes \n", "YES"].into_iter().all(is_yes));
        assert!(["", "\n", "n\n", "yess", "yn"].into_iter().all(|line| !is_yes(line)));
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        let check = |set: &[(&str, &str)], expect: bool| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(is_utf8(variable), expect, "{set:?}");
        };
        check(&[], false);
        check(&[("LANG", "C")], false);
        check(&[("LANG", "C.UTF-8")], true);
        check(&[("LANG", "C.UTF-8"), ("IOLENS_ASCII", "1")], false);
        check(&[("LANG", "de_DE.utf8")], true);
        check(&[("LANG", "de_DE@euro")], false);
        check(&[("LANG", "de_DE.UTF-8@euro")], true);
        check(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")], false);
        check(&[("LANG", "en_US.UTF-8"), ("LC_ALL", ""), ("LC_CTYPE", "POSIX")], false);
        check(&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8")], true);
        check(&[("LANG", "en_US.ISO-8859-1")], false);
    }
}
