//! `payload:N`: a line of N bytes, its id and its newline among them. What the
//! bytes of a reply cost.

use std::sync::Arc;

use iolens_model::parse;
use iolens_model::units::Bytes;

use super::entry::{Entry, Service};
use crate::request::Request;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "payload",
    form: "payload:BYTES",
    summary: "a line of so many bytes, its newline among them: 32 to 16MiB",
    parse: |rest| {
        let line_bytes = parse(rest)?;
        Ok(Arc::new(move |_| Ok(Box::new(Payload { line_bytes }))))
    },
};

/// The largest id, a space, and some more.
const MIN: u64 = 32;
const MAX: Bytes = Bytes(16 * Bytes::MIB);

fn parse(rest: Option<&str>) -> Result<usize, String> {
    let rest = rest.ok_or("write how many bytes, as in payload:32")?;
    let bytes = parse::size(rest).map_err(|e| e.to_string())?;
    match usize::try_from(bytes.0) {
        Ok(line_bytes) if bytes >= Bytes(MIN) && bytes <= MAX => Ok(line_bytes),
        _ => Err(format!("a line has {MIN} bytes to {MAX}")),
    }
}

struct Payload {
    line_bytes: usize,
}

impl Service for Payload {
    #[inline]
    fn answer(&mut self, request: Request<'_>, reply: &mut Vec<u8>) -> Result<(), String> {
        // Behind the id stands a space, at the end a newline.
        let text_bytes = self.line_bytes - request.id.len() - 2;
        reply.resize(reply.len() + text_bytes, b'x');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::services::tests::replies;

    #[test]
    fn the_line_is_as_long_as_it_was_to_be() {
        let replies = replies("payload:1KiB", &["", "7", "18446744073709551615 text"]);
        assert_eq!(replies.iter().map(String::len).collect::<Vec<_>>(), [1022, 1021, 1002]);
        assert!(replies.iter().all(|reply| reply.bytes().all(|byte| byte == b'x')));
    }
}
