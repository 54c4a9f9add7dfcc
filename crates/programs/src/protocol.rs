//! The loop protocol, version 1, without its pipes: what the lines of a program say.
//!
//! A program prints `ready` when it is set up. From then on it reads a line with a number, does so
//! many operations and prints `ok`; at the end of its input it ends.

use std::fmt::Write;

use thiserror::Error;

/// A line has at most so many bytes, its end among them.
pub const LINE_BYTES_MAX: usize = 1024;

/// What a program may print of its own in a slice.
pub const STRAY_BYTES_MAX: u64 = 64 << 10;

/// The only version there is.
const VERSION: &str = "1";

/// What a program says of itself when it is set up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ready {
    /// The word for an operation.
    pub unit: Option<String>,
    /// Bytes that an operation moves.
    pub bytes: Option<u64>,
    /// Whether it is to be told of a slice before the clock runs.
    pub prepares: bool,
}

/// What a program says when it is done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// What it timed itself.
    pub own_ns: Option<u64>,
    /// What came out, in hexadecimal.
    pub sum: Option<String>,
    /// Words that look like a time and are none of the protocol: `ms=3`.
    pub passed_over: Option<String>,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineFault {
    /// No newline within 1024 bytes.
    #[error(
        "`{0}` is the beginning of a line of more than 1024 bytes: end each line by a newline, and \
         print data of your own to stderr"
    )]
    TooLong(String),
    /// `ready v=` of another version.
    #[error("`{0}` wants another version of the loop protocol: this iolens speaks v=1")]
    Version(String),
    /// A key without its value.
    #[error("`{line}` is not a line of the loop protocol: {what}")]
    Malformed {
        /// The line.
        line: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The program says that something is wrong.
    #[error("it says `{0}`")]
    Told(String),
    /// An answer behind an answer.
    #[error(
        "it answered a request twice, the second time by `{0}`: print one `ok` for each line read"
    )]
    Twice(String),
    /// Something that nobody has asked for.
    #[error(
        "`{0}` came before it was asked: from `ready` on, print something only between a request \
         and its `ok`"
    )]
    Early(String),
    /// An answer that does not begin its line.
    #[error("`{0}` has something before its `ok`: begin a line for `ok`")]
    Glued(String),
    /// More of its own than fits.
    #[error(
        "it printed more than 64 KiB besides its answer, the last of it `{0}`: print to stderr"
    )]
    TooMuch(String),
}

/// What a line is while an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// `ok`, whatever stands behind it.
    Answer,
    /// `error`.
    Error,
    /// Ends in `ok`, with something stuck to it.
    Glued,
    /// The program's own.
    Stray,
}

/// What a line is, by its first word. Allocates nothing.
pub fn kind(line: &[u8]) -> LineKind {
    match first_word(line) {
        b"ok" => LineKind::Answer,
        b"error" => LineKind::Error,
        word if word.len() == line.len() && line.ends_with(b"ok") => LineKind::Glued,
        _ => LineKind::Stray,
    }
}

fn first_word(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b' ').next().unwrap_or_default()
}

/// What a line says of a program that sets itself up; `None` for one that is passed over.
pub fn ready(line: &[u8]) -> Result<Option<Ready>, LineFault> {
    match first_word(line) {
        b"ready" => {}
        b"error" => return Err(told(line)),
        b"ok" => return Err(LineFault::Early(quoted(line))),
        _ => return Ok(None),
    }
    let malformed = |what| LineFault::Malformed { line: quoted(line), what };
    let mut ready = Ready::default();
    for (key, value) in pairs(line) {
        match (key, value) {
            ("v", Some(VERSION)) => {}
            ("v", _) => return Err(LineFault::Version(quoted(line))),
            ("unit", Some(unit)) if !unit.is_empty() => ready.unit = Some(unit.to_owned()),
            ("unit", _) => return Err(malformed("`unit=` wants a word")),
            ("bytes", value) => {
                let bytes = value.and_then(|value| value.parse().ok());
                ready.bytes = Some(bytes.ok_or_else(|| malformed("`bytes=` wants a number"))?);
            }
            ("prepare", None) => ready.prepares = true,
            _ => {}
        }
    }
    Ok(Some(ready))
}

/// What an answer says.
pub fn answer(line: &[u8]) -> Result<Answer, LineFault> {
    let malformed = |what| LineFault::Malformed { line: quoted(line), what };
    match kind(line) {
        LineKind::Answer => {}
        LineKind::Error => return Err(told(line)),
        LineKind::Glued => return Err(LineFault::Glued(quoted(line))),
        LineKind::Stray => return Err(malformed("an answer begins with `ok`")),
    }
    let mut answer = Answer::default();
    for (key, value) in pairs(line) {
        match key {
            "ns" => {
                let ns = value.and_then(|value| value.parse().ok());
                answer.own_ns =
                    Some(ns.ok_or_else(|| malformed("`ns=` wants a whole number of nanoseconds"))?);
            }
            "sum" => {
                let is_hex = |sum: &&str| sum.bytes().all(|byte| byte.is_ascii_hexdigit());
                let sum = value.filter(|sum| !sum.is_empty()).filter(is_hex);
                let sum = sum.ok_or_else(|| malformed("`sum=` wants hexadecimal digits"))?;
                answer.sum = Some(sum.to_ascii_lowercase());
            }
            "ms" | "us" | "µs" | "s" | "time" => {
                let word = format!("{key}={}", value.unwrap_or_default());
                answer.passed_over.get_or_insert_with(|| quoted(word.as_bytes()));
            }
            _ => {}
        }
    }
    Ok(answer)
}

/// What is wrong with something that nobody has asked for, which follows an answer or comes
/// before any request.
pub fn unasked(bytes: &[u8], has_answered: bool) -> LineFault {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match (kind(line), has_answered) {
        (LineKind::Error, _) => told(line),
        (LineKind::Answer, true) => LineFault::Twice(quoted(line)),
        _ => LineFault::Early(quoted(line)),
    }
}

fn told(line: &[u8]) -> LineFault {
    LineFault::Told(quoted(line))
}

/// The words behind the first one. One that is not text says nothing.
fn pairs(line: &[u8]) -> impl Iterator<Item = (&str, Option<&str>)> {
    let words = line.split(|&byte| byte == b' ').skip(1);
    let words = words.filter_map(|word| std::str::from_utf8(word).ok());
    words.filter(|word| !word.is_empty()).map(|word| match word.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (word, None),
    })
}

/// A line as it is shown: in one line, and not too long.
pub fn quoted(line: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(line);
    let mut shown = String::new();
    for c in text.chars().take(SHOWN) {
        match c.is_control() {
            true => write!(shown, "{}", c.escape_default()).expect("a string takes all"),
            false => shown.push(c),
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// What was read and not yet looked at. Allocates nothing once it is there.
#[derive(Debug)]
pub(crate) struct Lines {
    bytes: Box<[u8]>,
    /// What was looked at already.
    begin: usize,
    end: usize,
}

impl Lines {
    /// Room for several lines.
    pub(crate) fn new() -> Lines {
        Lines { bytes: vec![0; 4 * LINE_BYTES_MAX].into(), begin: 0, end: 0 }
    }

    /// Room to read into, which is never empty while every line is taken.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        &mut self.bytes[self.end..]
    }

    /// So many bytes were read into it.
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.bytes.len());
    }

    /// The next line, without its end; `None` where it is not there in whole.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, LineFault> {
        let rest = &self.bytes[self.begin..self.end];
        let length = rest.iter().take(LINE_BYTES_MAX).position(|&byte| byte == b'\n');
        match length {
            Some(length) => {
                self.begin += length + 1;
                let line = &rest[..length];
                Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
            }
            None if rest.len() >= LINE_BYTES_MAX => Err(LineFault::TooLong(quoted(rest))),
            None => Ok(None),
        }
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_program_says_what_it_is() {
        let check =
            |line: &str, expect: Ready| assert_eq!(ready(line.as_bytes()), Ok(Some(expect)));
        check("ready", Ready::default());
        check("ready v=1 later=x", Ready::default());
        let unit = Some("row".to_owned());
        let all = Ready { unit, bytes: Some(4096), prepares: true };
        check("ready v=1 unit=row bytes=4096 prepare", all);
        for other in ["", "loading", "readyy", " ready"] {
            assert_eq!(ready(other.as_bytes()), Ok(None));
        }
    }

    #[test]
    fn a_program_that_is_not_set_up_is_told_why() {
        let check = |line: &str, expect: &str| {
            let why = ready(line.as_bytes()).unwrap_err().to_string();
            assert!(why.contains(&format!("`{line}`")) && why.contains(expect), "{why}");
        };
        check("ready v=2", "another version");
        check("ready v", "another version");
        check("ready bytes=many", "wants a number");
        check("ready unit=", "wants a word");
        check("error no data", "it says");
        check("ok", "before it was asked");
    }

    #[test]
    fn an_answer_has_what_the_program_counted() {
        let check = |line: &str, own_ns: Option<u64>, sum: Option<&str>| {
            let expect = Answer { own_ns, sum: sum.map(str::to_owned), passed_over: None };
            assert_eq!(answer(line.as_bytes()), Ok(expect), "{line}");
        };
        check("ok", None, None);
        check("ok ns=12 sum=aB0", Some(12), Some("ab0"));
        check("ok  later=x ns=0", Some(0), None);
        let told = answer("ok ms=3 time=4".as_bytes()).unwrap();
        assert_eq!((told.own_ns, told.passed_over.as_deref()), (None, Some("ms=3")));
        for bad in ["ok ns=", "ok ns=-1", "ok ns=1.5", "ok sum=", "ok sum=xyz", "okay", "done"] {
            let why = answer(bad.as_bytes()).unwrap_err().to_string();
            assert!(why.contains(&format!("`{bad}`")), "{why}");
        }
    }

    #[test]
    fn lines_are_told_apart() {
        let check = |line: &[u8], expect| assert_eq!(kind(line), expect);
        check(b"ok", LineKind::Answer);
        check(b"ok ns=1", LineKind::Answer);
        check(b"error why", LineKind::Error);
        check(b"50%ok", LineKind::Glued);
        check(b"all is ok", LineKind::Stray);
        check(b"", LineKind::Stray);
        check(b"\xff\x00", LineKind::Stray);
    }

    #[test]
    fn what_nobody_asked_for_is_quoted() {
        let check = |bytes: &[u8], answered, expect| {
            assert_eq!(unasked(bytes, answered), expect);
        };
        check(b"ok\nmore", true, LineFault::Twice("ok".into()));
        check(b"ok\r\n", false, LineFault::Early("ok".into()));
        check(b"statistics: ", true, LineFault::Early("statistics: ".into()));
        check(b"error late\n", true, LineFault::Told("error late".into()));
    }

    /// All lines of a text that comes in pieces of so many bytes.
    fn lines_of(text: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, LineFault> {
        let (mut lines, mut all) = (Lines::new(), Vec::new());
        for piece in text.chunks(piece) {
            let mut piece = piece;
            while !piece.is_empty() {
                let room = lines.room();
                let taken = piece.len().min(room.len());
                room[..taken].copy_from_slice(&piece[..taken]);
                piece = &piece[taken..];
                lines.filled(taken);
                while let Some(line) = lines.next()? {
                    all.push(line.to_vec());
                }
            }
        }
        Ok(all)
    }

    #[test]
    fn a_line_has_a_limit() {
        let longest = [vec![b'a'; LINE_BYTES_MAX - 1], vec![b'\n']].concat();
        assert_eq!(lines_of(&longest, 100), Ok(vec![vec![b'a'; LINE_BYTES_MAX - 1]]));
        let why = lines_of(&[b'a'; LINE_BYTES_MAX], 100).unwrap_err().to_string();
        assert!(why.starts_with("`aaaa") && why.contains("1024 bytes"), "{why}");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>, piece in 1usize..2000) {
            for line in lines_of(&bytes, piece).unwrap_or_default() {
                let _ = (ready(&line), answer(&line), kind(&line));
                let (_, shown) = (unasked(&line, true), quoted(&line));
                prop_assert!(!shown.contains('\n') && shown.chars().count() <= 81 * 10);
            }
        }

        #[test]
        fn lines_are_the_same_in_pieces_of_any_size(
            text in "([a-z ]{0,12}\r?\n){0,400}", piece in 1usize..6000,
        ) {
            let whole: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(lines_of(text.as_bytes(), piece), Ok(whole));
        }

        #[test]
        fn answers_of_any_words_are_read_or_refused(words in "(ok|ready|error)[ -~]{0,60}") {
            let _ = (ready(words.as_bytes()), answer(words.as_bytes()));
        }
    }
}
