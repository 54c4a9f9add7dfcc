//! Replies as they come out of a stream: in any pieces, checked on the way, and
//! never kept whole. A connection that waits has a state of a few dozen bytes
//! and no buffer.
//!
//! A reply is one line, `ID TEXT\n`; the protocol is described in
//! `docs/server-protocol.md`. In HTTP it is a response with a `Content-Length`.

use std::ops::Range;

use memchr::{memchr, memmem};

/// As much of a text that came in pieces as is kept, to be shown: two processes with names that
/// are all escapes.
const HEAD_BYTES_MAX: usize = 1 << 10;

/// The header of an HTTP response may be so long.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// An id is at most 20 digits long.
const ID_DIGITS_MAX: u64 = 20;

/// What replies are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// A line with the request's id.
    Id,
    /// The request's text, unchanged.
    Text(Vec<u8>),
    /// A line of so many bytes with its newline, the text of which is all `x`.
    Fill(u64),
    /// The word `burned`.
    Burned,
    /// Processes, each with its id, name and CPU time.
    Processes,
    /// The same, each with its share of a processor's time behind.
    Shares,
    /// When the service began and ended, in ns.
    Record,
    /// An HTTP response that says 2xx or 3xx, as long as it says that it is.
    Http,
}

impl Expected {
    /// What a service is expected to reply to a request with `text`.
    ///
    /// Errors: the words there are.
    pub fn of_service(word: &str, text: &[u8]) -> Result<Expected, String> {
        let (name, parameter) = word.split_once(':').unwrap_or((word, ""));
        match (name, parameter) {
            ("echo", "") => Ok(Expected::Text(text.to_vec())),
            ("burn", _) => Ok(Expected::Burned),
            ("top2", "interval") => Ok(Expected::Shares),
            ("top2", _) => Ok(Expected::Processes),
            ("oracle", _) => Ok(Expected::Record),
            ("payload", bytes) => match bytes.parse() {
                Ok(bytes) if bytes >= 32 => Ok(Expected::Fill(bytes)),
                _ => Err(format!("`{word}`: a payload is a whole number of bytes from 32 on")),
            },
            _ => Err(format!(
                "unknown service `{word}`; choose from: echo, payload:N, burn:µs, top2, \
                 top2:interval, oracle"
            )),
        }
    }

    /// What of a reply is checked, in words.
    pub fn checked(&self) -> &'static str {
        match self {
            Expected::Id => "the id of every reply (--service says what else to check)",
            Expected::Text(_) | Expected::Burned => "the id and the text of every reply",
            Expected::Fill(_) => "the id, the length and every byte of every reply",
            Expected::Processes | Expected::Shares | Expected::Record => {
                "the id and the form of every reply"
            }
            Expected::Http => "the status and the length of every response",
        }
    }

    /// Whether a part of a text that begins `at` bytes into it can be right.
    fn part_is_right(&self, at: u64, part: &[u8]) -> bool {
        match self {
            Expected::Text(text) => is_at(text, at, part),
            Expected::Burned => is_at(b"burned", at, part),
            // Without a branch per byte the loop takes many bytes at a time.
            Expected::Fill(_) => part.iter().fold(0, |all, byte| all | (byte ^ b'x')) == 0,
            Expected::Id
            | Expected::Processes
            | Expected::Shares
            | Expected::Record
            | Expected::Http => true,
        }
    }

    /// Whether a text is right as a whole, whose parts were. `line_bytes` counts
    /// the newline, `text` is what is kept of it, however it came.
    fn whole_is_right(&self, line_bytes: u64, text_bytes: u64, text: &[u8]) -> bool {
        let is_kept = text.len() as u64 == text_bytes;
        match self {
            Expected::Text(expected) => text_bytes == expected.len() as u64,
            Expected::Burned => text_bytes == b"burned".len() as u64,
            Expected::Fill(bytes) => line_bytes == *bytes,
            Expected::Processes => is_kept && are_processes(text, is_process),
            Expected::Shares => is_kept && are_processes(text, is_share),
            Expected::Record => is_kept && is_record(text),
            Expected::Id => !text.starts_with(b"error "),
            Expected::Http => true,
        }
    }
}

/// Whether `part` stands `at` bytes into `text`.
fn is_at(text: &[u8], at: u64, part: &[u8]) -> bool {
    let rest = usize::try_from(at).ok().and_then(|at| text.get(at..));
    rest.is_some_and(|rest| rest.starts_with(part))
}

/// Whether a text is of one process or two.
fn are_processes(text: &[u8], is_one: fn(&str) -> bool) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let processes: Vec<&str> = text.split(';').map(str::trim).collect();
    processes.len() <= 2 && processes.into_iter().all(is_one)
}

/// `pid 12 name: user 0.03 s, kernel 0.04 s, total 0.07 s`.
fn is_process(process: &str) -> bool {
    let is_seconds = |label: &str, part: Option<&str>| {
        let part = part.and_then(|part| part.strip_prefix(label)?.strip_suffix(" s"));
        part.is_some_and(|seconds| seconds.parse::<f64>().is_ok_and(|n| n >= 0.0))
    };
    let Some((who, spent)) = process.split_once(": ") else { return false };
    let mut words = who.split(' ');
    let mut parts = spent.split(", ");
    words.next() == Some("pid")
        && words.next().is_some_and(|pid| pid.parse::<u32>().is_ok())
        && words.next().is_some_and(|name| !name.is_empty())
        && words.next().is_none()
        && ["user ", "kernel ", "total "].iter().all(|label| is_seconds(label, parts.next()))
        && parts.next().is_none()
}

/// The same and `, 22.2% of a CPU`, or why there is no share.
fn is_share(process: &str) -> bool {
    process.rsplit_once(", ").is_some_and(|(process, share)| {
        let percent = share.strip_suffix("% of a CPU").and_then(|share| share.parse::<f64>().ok());
        let is_known = percent.is_some_and(|share| share >= 0.0);
        (is_known || share == "too soon for a share") && is_process(process)
    })
}

/// `START END`, in ns.
fn is_record(text: &[u8]) -> bool {
    record(text).is_some()
}

/// When an oracle's service began and ended, in ns on `CLOCK_MONOTONIC`.
pub fn record(text: &[u8]) -> Option<(u64, u64)> {
    let (begin, end) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    let (begin_ns, end_ns) = (begin.parse().ok()?, end.trim_end().parse().ok()?);
    (begin_ns <= end_ns).then_some((begin_ns, end_ns))
}

/// Where the text of a reply is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    /// In the piece that was just read.
    Piece(Range<usize>),
    /// In [`Partial::head`], as far as it is kept.
    Head,
}

/// A reply that has come whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// `None` where it has none that is a number; HTTP has none at all.
    pub(crate) id: Option<u64>,
    /// Whether it is what was expected.
    pub(crate) is_right: bool,
    pub(crate) text: Text,
}

/// The part of a reply that has come.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    /// Bytes of it so far; in HTTP, of its body to come.
    bytes: u64,
    /// Where its text begins; 0 while its id has not ended.
    text_at: u64,
    id: u64,
    is_wrong: bool,
    in_body: bool,
    head: Vec<u8>,
}

impl Partial {
    /// What is kept of a reply's text that came in pieces.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Takes a reply, or a part of one, from the beginning of a piece of the
    /// stream: how many bytes that was, and the reply if it is whole.
    pub(crate) fn take(&mut self, piece: &[u8], expected: &Expected) -> (usize, Option<Reply>) {
        if *expected == Expected::Http {
            return self.take_response(piece);
        }
        let end = memchr(b'\n', piece);
        let line = &piece[..end.unwrap_or(piece.len())];
        if self.bytes == 0 {
            // As nothing else does, this frees what a line in pieces needed.
            self.head = Vec::new();
            if let Some(end) = end {
                return (end + 1, Some(whole(line, expected)));
            }
        }
        self.take_part(line, expected);
        let Some(end) = end else { return (piece.len(), None) };
        let has_id = !self.is_wrong || self.text_at > 0;
        let text_bytes = match self.text_at {
            0 => 0,
            at => self.bytes - at,
        };
        let is_right = !self.is_wrong
            && expected.whole_is_right(self.bytes + 1, text_bytes, &self.head)
            && self.bytes > 0;
        let reply = Reply { id: has_id.then_some(self.id), is_right, text: Text::Head };
        let head = std::mem::take(&mut self.head);
        *self = Partial { head, ..Partial::default() };
        (end + 1, Some(reply))
    }

    /// Some bytes of a line, without its end.
    fn take_part(&mut self, mut part: &[u8], expected: &Expected) {
        while self.text_at == 0
            && let Some((&byte, rest)) = part.split_first()
        {
            self.bytes += 1;
            part = rest;
            match byte {
                b'0'..=b'9' if self.bytes <= ID_DIGITS_MAX => {
                    let digit = u64::from(byte - b'0');
                    let id = self.id.checked_mul(10).and_then(|id| id.checked_add(digit));
                    self.is_wrong |= id.is_none();
                    self.id = id.unwrap_or(0);
                }
                b' ' if self.bytes > 1 && !self.is_wrong => self.text_at = self.bytes,
                _ => self.is_wrong = true,
            }
        }
        if self.text_at > 0 {
            self.is_wrong |= !expected.part_is_right(self.bytes - self.text_at, part);
        }
        self.bytes += part.len() as u64;
        let room = HEAD_BYTES_MAX - self.head.len().min(HEAD_BYTES_MAX);
        self.head.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// As [`Self::take`], for HTTP.
    fn take_response(&mut self, piece: &[u8]) -> (usize, Option<Reply>) {
        if !self.in_body {
            // Most headers come whole, and nothing of them is kept.
            let before = self.head.len();
            if before == 0
                && let Some(end) = memmem::find(piece, b"\r\n\r\n")
            {
                return self.begin_body(&piece[..end], end + 4, piece.len());
            }
            self.head.extend_from_slice(&piece[..piece.len().min(HEADER_BYTES_MAX)]);
            let from = before.saturating_sub(3);
            if let Some(end) = memmem::find(&self.head[from..], b"\r\n\r\n") {
                let header = std::mem::take(&mut self.head);
                let used = from + end + 4 - before;
                return self.begin_body(&header[..from + end], used, piece.len());
            }
            if self.head.len() >= HEADER_BYTES_MAX {
                return (piece.len(), Some(self.end_response(true)));
            }
            return (piece.len(), None);
        }
        let body = self.bytes.min(piece.len() as u64);
        self.bytes -= body;
        let used = usize::try_from(body).unwrap_or(piece.len());
        (used, (self.bytes == 0).then(|| self.end_response(false)))
    }

    /// The header ends `used` bytes into a piece of `of` bytes.
    fn begin_body(&mut self, header: &[u8], used: usize, of: usize) -> (usize, Option<Reply>) {
        let Some(bytes) = content_length(header) else {
            return (of, Some(self.end_response(true)));
        };
        self.is_wrong = !matches!(header.get(9), Some(b'2' | b'3'));
        let there = bytes.min((of - used) as u64);
        self.bytes = bytes - there;
        self.in_body = true;
        let used = used + usize::try_from(there).unwrap_or(0);
        (used, (self.bytes == 0).then(|| self.end_response(false)))
    }

    fn end_response(&mut self, breaks_off: bool) -> Reply {
        let is_right = !self.is_wrong && !breaks_off;
        *self = Partial::default();
        Reply { id: None, is_right, text: Text::Head }
    }
}

/// A reply by itself: its id, whether it is what was expected, and as much of its text as
/// was kept.
pub type Read = (Option<u64>, bool, Vec<u8>);

/// The replies in a stream that comes in these pieces, each that came whole.
pub fn replies<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, expected: &Expected) -> Vec<Read> {
    read_all(pieces, expected).0
}

/// As [`replies`], and what is left.
fn read_all<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    expected: &Expected,
) -> (Vec<Read>, Partial) {
    let (mut partial, mut replies) = (Partial::default(), Vec::new());
    for mut piece in pieces {
        while !piece.is_empty() {
            let (used, reply) = partial.take(piece, expected);
            assert!(used > 0, "it always takes something");
            replies.extend(reply.map(|reply| {
                let text = match reply.text {
                    Text::Piece(range) => &piece[range],
                    Text::Head => partial.head(),
                };
                (reply.id, reply.is_right, text.to_vec())
            }));
            piece = &piece[used..];
        }
    }
    (replies, partial)
}

/// As much of a text as is kept of one that comes in pieces.
fn kept(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD_BYTES_MAX)]
}

/// A line that came in one piece.
fn whole(line: &[u8], expected: &Expected) -> Reply {
    let digits = memchr(b' ', line).unwrap_or(line.len());
    let at = (digits + 1).min(line.len());
    let text = &line[at..];
    let id = number(&line[..digits]);
    let (line_bytes, text_bytes) = (line.len() as u64 + 1, text.len() as u64);
    let is_right = id.is_some()
        && expected.part_is_right(0, text)
        && expected.whole_is_right(line_bytes, text_bytes, kept(text));
    Reply { id, is_right, text: Text::Piece(at..line.len()) }
}

/// A whole number of digits and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() as u64 > ID_DIGITS_MAX {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// How long the body of a response is that has this header; `None` where it does
/// not say so.
fn content_length(header: &[u8]) -> Option<u64> {
    if !header.starts_with(b"HTTP/1.") {
        return None;
    }
    const NAME: &[u8] = b"content-length:";
    header.split(|&byte| byte == b'\n').find_map(|line| {
        let name = line.get(..NAME.len())?;
        let value = name.eq_ignore_ascii_case(NAME).then(|| line[NAME.len()..].trim_ascii())?;
        number(value)
    })
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
