//! What a search of the study `server` is for: a limit of latency that a model still keeps, or
//! the rate from which on its latency climbs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::axes::axis;
use crate::parse;
use crate::units::Nanos;

axis! {
    /// A percentile of latency that a limit may be set for.
    Percentile {
        /// Half of the requests take no longer.
        P50 = "p50",
        /// Nine in ten.
        P90 = "p90",
        /// 99 in a hundred.
        P99 = "p99",
        /// 999 in a thousand.
        P999 = "p99.9",
    }
}

impl Percentile {
    /// The share of requests that take no longer, 0 to 1.
    pub fn share(self) -> f64 {
        match self {
            Percentile::P50 => 0.5,
            Percentile::P90 => 0.9,
            Percentile::P99 => 0.99,
            Percentile::P999 => 0.999,
        }
    }
}

/// A service level objective: a percentile of the time from when a request was due to its
/// reply is to stay below a limit. Written `p99<2ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slo {
    /// Which one.
    pub percentile: Percentile,
    /// What it is to stay below.
    pub limit: Nanos,
}

impl FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Slo, String> {
        let refused = || {
            let words: Vec<&str> = Percentile::ALL.iter().map(|p| p.word()).collect();
            format!(
                "`{text}` is not a latency limit: write a percentile ({}), < and a time, like \
                 'p99<2ms', in quotes",
                words.join(", ")
            )
        };
        let (percentile, limit) = text.split_once('<').ok_or_else(refused)?;
        let percentile = Percentile::from_word(percentile.trim()).ok_or_else(refused)?;
        let limit = parse::span(limit).map_err(|_| refused())?;
        Ok(Slo { percentile, limit })
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}", self.percentile, self.limit.written())
    }
}

parse::stored_as_text!(Slo);

/// What a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The highest rate at which the limit is kept.
    Slo(Slo),
    /// The rate beyond which latency climbs.
    Knee,
}

/// `p99 < 2 ms`, or `knee`.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Slo(Slo { percentile, limit }) => {
                // With a space between number and unit, as everywhere in text.
                let written = limit.written();
                let digits = written.find(char::is_alphabetic).unwrap_or(written.len());
                let (number, unit) = written.split_at(digits);
                write!(f, "{percentile} < {number} {}", unit.replace("us", "µs"))
            }
            Goal::Knee => f.write_str("knee"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_it_is_read() {
        for (text, words) in
            [("p99<2ms", "p99 < 2 ms"), ("p50<150us", "p50 < 150 µs"), ("p99.9<1s", "p99.9 < 1 s")]
        {
            let slo: Slo = text.parse().unwrap();
            assert_eq!(slo.to_string(), text);
            assert_eq!(Goal::Slo(slo).to_string(), words);
            let stored = serde_json::to_string(&slo).unwrap();
            assert_eq!(serde_json::from_str::<Slo>(&stored).unwrap(), slo);
        }
        assert_eq!(" p99 < 1.5ms".parse::<Slo>().unwrap().limit, Nanos(1_500_000));
        for text in ["", "p99", "p98<2ms", "p99<2", "p99>2ms", "<2ms", "p99<0ms"] {
            assert!(text.parse::<Slo>().unwrap_err().contains("'p99<2ms'"), "{text}");
        }
    }
}
