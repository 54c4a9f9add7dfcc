//! `echo`: the text of the request, unchanged. What a request costs when the
//! service costs nothing.

use std::sync::Arc;

use super::entry::{Entry, Service, nothing_behind};
use crate::request::Request;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
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

#[cfg(test)]
mod tests {
    use crate::services::tests::replies;

    #[test]
    fn a_text_comes_back_as_it_was() {
        let requests = ["1 a  b\tc ", "2", "", "3 ", "4 1 2"];
        assert_eq!(replies("echo", &requests), ["a  b\tc ", "", "", "", "1 2"]);
    }
}
