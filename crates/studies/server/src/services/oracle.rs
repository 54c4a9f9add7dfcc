//! `oracle:TIME`: sleeps for a known time, and says when it began and ended, so
//! that who measures latency can be compared with it. `slow=TIME/N` makes each
//! N-th request take another time, `stall=TIME@N` the N-th alone; requests are
//! numbered over all threads and processes, in the order in which they are begun.

use std::sync::Arc;

use iolens_model::parse;
use iolens_sys::clock;

use super::{Entry, Service};
use crate::request::Request;
use crate::tally::Tallies;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    id: "oracle",
    form: "oracle:TIME[,slow=TIME/N][,stall=TIME@N]",
    summary: "sleeps, and says when it began and ended (CLOCK_MONOTONIC, ns)",
    parse: |rest| {
        let times = parse(rest)?;
        Ok(Arc::new(move |tallies| Ok(Box::new(Oracle { times, tallies: Arc::clone(tallies) }))))
    },
};

/// How long requests take.
#[derive(Debug, Clone, Copy)]
struct Times {
    usual_ns: u64,
    /// Each so-many-th takes so long.
    slow: Option<Other>,
    /// The so-many-th takes so long.
    stall: Option<Other>,
}

/// A time for requests of a number.
#[derive(Debug, Clone, Copy)]
struct Other {
    ns: u64,
    number: u64,
}

/// How long it sleeps without looking whether the server is to end.
const NAP_NS: u64 = 100_000_000;

fn parse(rest: Option<&str>) -> Result<Times, String> {
    let rest = rest.ok_or("write how long it takes, as in oracle:5ms")?;
    let mut parts = rest.split(',');
    let span = |text: &str| parse::span(text).map(|time| time.0).map_err(|e| e.to_string());
    let usual_ns = span(parts.next().unwrap_or_default())?;
    let mut times = Times { usual_ns, slow: None, stall: None };
    for part in parts {
        let other = |text: &str, between: char| {
            let (time, number) = text.split_once(between)?;
            Some(Other { ns: span(time).ok()?, number: parse::count(number).ok()? })
        };
        if let Some(slow) = part.strip_prefix("slow=").and_then(|text| other(text, '/')) {
            times.slow = Some(slow);
        } else if let Some(stall) = part.strip_prefix("stall=").and_then(|text| other(text, '@')) {
            times.stall = Some(stall);
        } else {
            return Err(format!("`{part}` is neither like slow=20ms/10 nor like stall=1.4s@100"));
        }
    }
    Ok(times)
}

impl Times {
    /// How long the request of a number takes.
    fn of(&self, number: u64) -> u64 {
        match (self.stall, self.slow) {
            (Some(stall), _) if stall.number == number => stall.ns,
            (_, Some(slow)) if number.is_multiple_of(slow.number) => slow.ns,
            _ => self.usual_ns,
        }
    }
}

struct Oracle {
    times: Times,
    tallies: Arc<Tallies>,
}

impl Service for Oracle {
    fn answer(&mut self, _request: Request<'_>, reply: &mut Vec<u8>) -> Result<(), String> {
        let start_ns = clock::monotonic_ns();
        let until_ns = start_ns + self.times.of(self.tallies.next_number());
        let mut end_ns = start_ns;
        while end_ns < until_ns && !self.tallies.is_stopping() {
            clock::sleep_until_ns(until_ns.min(end_ns + NAP_NS));
            end_ns = clock::monotonic_ns();
        }
        reply.extend_from_slice(format!("{start_ns} {end_ns}").as_bytes());
        Ok(())
    }

    fn takes_time(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::tests::replies;

    #[test]
    fn some_take_longer_and_one_stalls() {
        let times = parse(Some("1ms,slow=20ms/10,stall=1.4s@20")).unwrap();
        let of = |number| times.of(number) / 1_000_000;
        assert_eq!([1, 9, 10, 11, 20, 30].map(of), [1, 1, 20, 1, 1400, 20]);
    }

    #[test]
    fn the_record_covers_the_time() {
        let before_ns = clock::monotonic_ns();
        for (index, reply) in replies("oracle:2ms,stall=5ms@2", &["", "1"]).iter().enumerate() {
            let (start, end) = reply.split_once(' ').unwrap();
            let (start, end): (u64, u64) = (start.parse().unwrap(), end.parse().unwrap());
            assert!(start >= before_ns && end - start >= [2_000_000, 5_000_000][index]);
        }
    }
}
