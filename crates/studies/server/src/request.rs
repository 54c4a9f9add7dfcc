//! The requests of the protocol, as a server reads them; `docs/server-protocol.md`
//! describes both directions.

/// Bytes of a request at most, its newline not counted.
pub const REQUEST_MAX: usize = 64 << 10;

/// Digits of the largest id, 2⁶⁴ − 1.
const ID_DIGITS_MAX: usize = 20;

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// Its id as it was written: digits, or nothing.
    pub(crate) id: &'a [u8],
    /// What stands behind the id and one space.
    pub(crate) text: &'a [u8],
}

/// A line that is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotANumber;

impl<'a> Request<'a> {
    /// Reads a line, which has no newline.
    #[inline]
    pub(crate) fn parse(line: &'a [u8]) -> Result<Request<'a>, NotANumber> {
        let id = id(line);
        let is_number = id.len() <= ID_DIGITS_MAX
            && id.iter().all(u8::is_ascii_digit)
            // Most are far shorter than what could be too large.
            && (id.len() < ID_DIGITS_MAX || std::str::from_utf8(id).is_ok_and(fits));
        let text = line.get(id.len() + 1..).unwrap_or_default();
        if is_number { Ok(Request { id, text }) } else { Err(NotANumber) }
    }
}

fn fits(digits: &str) -> bool {
    digits.parse::<u64>().is_ok()
}

/// What stands where a line's id should.
fn id(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b' ').next().unwrap_or_default()
}

/// The id of a line that goes on for too long, if it is one; nothing else.
pub(crate) fn id_of_beginning(line: &[u8]) -> &[u8] {
    match Request::parse(line) {
        Ok(request) => request.id,
        Err(NotANumber) => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Option<(&str, &str)>) {
        let expect = expect.map(|(id, text)| (id.as_bytes(), text.as_bytes()));
        let read = Request::parse(line.as_bytes()).ok();
        assert_eq!(read.map(|request| (request.id, request.text)), expect, "{line}");
    }

    #[test]
    fn an_id_is_a_number_or_nothing_and_the_rest_is_text() {
        check("", Some(("", "")));
        check("7", Some(("7", "")));
        check("7 ", Some(("7", "")));
        check("7 a b", Some(("7", "a b")));
        check("7  a", Some(("7", " a")));
        check(" a", Some(("", "a")));
        check("007 a", Some(("007", "a")));
        check("18446744073709551615 a", Some(("18446744073709551615", "a")));
    }

    #[test]
    fn anything_else_is_no_request() {
        for line in ["x", "-1", "+1 a", "1.0", "1x a", "GET / HTTP/1.1", "7\r", "٣"] {
            check(line, None);
        }
        check("18446744073709551616", None);
        check("000000000000000000001", None);
    }

    #[test]
    fn a_beginning_without_an_end_may_have_an_id() {
        assert_eq!(id_of_beginning(b"12 abc"), b"12");
        assert_eq!(id_of_beginning(b"abc"), b"");
    }
}
