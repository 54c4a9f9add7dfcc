//! What can be measured on a machine, as plain data: one finding for each thing
//! that decides it, and what remains possible of each study.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

crate::words! {
    /// What a finding is about; also the heading it stands under.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Area {
        /// What the kernel runs on, and what stands between it and us.
        Machine = "machine",
        /// Where threads run, and how fast.
        Processors = "processors",
        /// Events of the kernel and of the PMU.
        Counters = "counters",
        /// Where two ends can stand, and how they can send.
        Network = "network",
        /// What a process may have, and where results go.
        Limits = "limits",
    }
}

/// Whether something stands in the way of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing does.
    Ok,
    /// Some numbers are weaker, or there are fewer of them.
    Limited,
    /// The numbers that need it do not exist here.
    Missing,
}

/// One thing that was looked at. No part is ever empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// Its name, unique within the area.
    pub name: String,
    /// Whether it limits what can be measured.
    pub state: State,
    /// What was found, one clause.
    pub found: String,
    /// The file or the call that says so.
    pub source: String,
    /// Which numbers are missing or weaker; "none" where nothing is.
    pub effect: String,
    /// The command that changes it, or "none: …" with the reason.
    pub remedy: String,
}

/// What is said of an effect or a remedy where nothing is limited.
pub const NONE: &str = "none";

impl Finding {
    /// Something that does not limit anything.
    pub fn ok(area: Area, name: &str, found: impl Into<String>, source: &str) -> Finding {
        Finding {
            area,
            name: name.to_owned(),
            state: State::Ok,
            found: found.into(),
            source: source.to_owned(),
            effect: NONE.to_owned(),
            remedy: format!("{NONE}: nothing is limited"),
        }
    }

    /// The same as something that makes numbers fewer or weaker.
    #[must_use]
    pub fn limits(self, effect: &str, remedy: impl Into<String>) -> Finding {
        let (effect, remedy) = (effect.to_owned(), remedy.into());
        Finding { state: State::Limited, effect, remedy, ..self }
    }

    /// The same as something that makes numbers impossible.
    #[must_use]
    pub fn lacks(self, effect: &str, remedy: impl Into<String>) -> Finding {
        Finding { state: State::Missing, ..self.limits(effect, remedy) }
    }
}

/// What remains possible of one part of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// The study, such as `net`.
    pub study: String,
    /// Which part of it; the study's own name where it is all of it.
    pub part: String,
    /// How much of it is possible here.
    pub state: State,
    /// Whether this build can measure it.
    pub built: bool,
    /// What is possible, one clause.
    pub possible: String,
}

/// A machine, looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Who asked: `root`, or the number of a user.
    pub user: String,
    /// Kernel and what it runs on, in a few words.
    pub machine: String,
    /// Everything that was looked at, by area.
    pub findings: Vec<Finding>,
    /// What remains possible, by study.
    pub studies: Vec<Outlook>,
    /// What is stored already; `None` where nothing is, or it cannot be read.
    pub stored: Option<Extent>,
}

/// How much is stored in one file, and what room it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Runs.
    pub runs: u64,
    /// Size of the file, in bytes.
    pub file_bytes: Bytes,
    /// Size of the log beside it, in bytes.
    pub log_bytes: Bytes,
    /// Pages of the file that hold nothing any more, in bytes.
    pub free_bytes: Bytes,
}

impl Extent {
    /// What it takes in all, in bytes.
    pub fn total(&self) -> Bytes {
        Bytes(self.file_bytes.0 + self.log_bytes.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_its_state_asks_for() {
        let ok = Finding::ok(Area::Limits, "x", "found", "somewhere");
        assert_eq!((ok.state, ok.effect.as_str()), (State::Ok, "none"));
        let limited = ok.clone().limits("fewer", "do this");
        assert_eq!((limited.state, limited.remedy.as_str()), (State::Limited, "do this"));
        assert_eq!(ok.lacks("no y", "none: no way").state, State::Missing);
    }

    #[test]
    fn areas_are_written_as_they_are_shown() {
        for &area in Area::ALL {
            assert_eq!(serde_json::to_value(area).unwrap(), area.word());
        }
    }
}
