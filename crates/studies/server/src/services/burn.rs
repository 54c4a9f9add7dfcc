//! `burn:µs`: so much CPU time of the thread that answers. What a model does with
//! work that keeps a processor busy.

use std::sync::Arc;

use iolens_sys::clock;

use super::entry::{Entry, Service};
use crate::request::Request;
use crate::tally::Tallies;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "burn",
    form: "burn:MICROSECONDS",
    summary: "so much CPU time, and the word `burned`: 1 to 10000000",
    parse: |rest| {
        let cpu_ns = parse(rest)?;
        Ok(Arc::new(move |tallies| Ok(Box::new(Burn { cpu_ns, tallies: Arc::clone(tallies) }))))
    },
};

const MAX_US: u64 = 10_000_000;

fn parse(rest: Option<&str>) -> Result<u64, String> {
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
}
