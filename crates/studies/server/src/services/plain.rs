//! Services that ask the system for nothing: `burn`, `echo` and `payload`.

use std::sync::Arc;

use iolens_model::parse;
use iolens_model::units::Bytes;
use iolens_sys::clock;

use super::{Entry, Service, nothing_behind};
use crate::request::Request;
use crate::tally::Tallies;

/// So much CPU time of the thread that answers: what a model does with work that keeps a
/// processor busy.
pub(super) static BURN: Entry = Entry {
    id: "burn",
    form: "burn:MICROSECONDS",
    summary: "so much CPU time, and the word `burned`: 1 to 10000000",
    parse: |rest| {
        let cpu_ns = cpu_time(rest)?;
        Ok(Arc::new(move |tallies| Ok(Box::new(Burn { cpu_ns, tallies: Arc::clone(tallies) }))))
    },
};

const MAX_US: u64 = 10_000_000;

fn cpu_time(rest: Option<&str>) -> Result<u64, String> {
    let rest = rest.ok_or("write how many microseconds, as in burn:200")?;
    match rest.parse::<u64>() {
        Ok(us @ 1..=MAX_US) => Ok(us * 1000),
        _ => Err(format!("write a whole number of microseconds from 1 to {MAX_US}")),
    }
}

struct Burn {
    cpu_ns: u64,
    tallies: Arc<Tallies>,
}

impl Service for Burn {
    fn answer(&mut self, _request: Request<'_>, reply: &mut Vec<u8>) -> Result<(), String> {
        let until_ns = clock::thread_cpu_ns() + self.cpu_ns;
        while clock::thread_cpu_ns() < until_ns && !self.tallies.is_stopping() {
            std::hint::spin_loop();
        }
        reply.extend_from_slice(b"burned");
        Ok(())
    }

    fn takes_time(&self) -> bool {
        true
    }
}

/// What a request costs when the service costs nothing.
pub(super) static ECHO: Entry = Entry {
    id: "echo",
    form: "echo",
    summary: "the text of the request, unchanged",
    parse: |rest| {
        nothing_behind(rest)?;
        Ok(Arc::new(|_| Ok(Box::new(Echo))))
    },
};

struct Echo;

impl Service for Echo {
    #[inline]
    fn answer(&mut self, request: Request<'_>, reply: &mut Vec<u8>) -> Result<(), String> {
        reply.extend_from_slice(request.text);
        Ok(())
    }
}

/// What the bytes of a reply cost, its id and its newline among them.
pub(super) static PAYLOAD: Entry = Entry {
    id: "payload",
    form: "payload:BYTES",
    summary: "a line of so many bytes, its newline among them: 32 to 16MiB",
    parse: |rest| {
        let line_bytes = payload_bytes(rest)?;
        Ok(Arc::new(move |_| Ok(Box::new(Payload { line_bytes }))))
    },
};

/// The largest id, a space, and some more.
const MIN: u64 = 32;
const MAX: Bytes = Bytes(16 * Bytes::MIB);

fn payload_bytes(rest: Option<&str>) -> Result<usize, String> {
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
    use iolens_sys::clock;

    use crate::services::tests::replies;

    #[test]
    fn so_much_cpu_time_is_gone() {
        let before_ns = clock::thread_cpu_ns();
        assert_eq!(replies("burn:500", &["1", "2"]), ["burned", "burned"]);
        assert!(clock::thread_cpu_ns() - before_ns >= 1_000_000);
    }

    #[test]
    fn a_text_comes_back_as_it_was() {
        let requests = ["1 a  b\tc ", "2", "", "3 ", "4 1 2"];
        assert_eq!(replies("echo", &requests), ["a  b\tc ", "", "", "", "1 2"]);
    }

    #[test]
    fn the_line_is_as_long_as_it_was_to_be() {
        let replies = replies("payload:1KiB", &["", "7", "18446744073709551615 text"]);
        assert_eq!(replies.iter().map(String::len).collect::<Vec<_>>(), [1022, 1021, 1002]);
        assert!(replies.iter().all(|reply| reply.bytes().all(|byte| byte == b'x')));
    }
}
