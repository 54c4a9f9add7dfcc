//! The services: what a server does for a request, an entry each in [`SERVICES`]. Every model
//! runs every service.
//!
//! A service is called through a pointer: one indirect call for each request,
//! the same for all models, beside system calls that take hundreds of times as
//! long.

mod oracle;
mod plain;
mod top2;

use std::fmt;
use std::sync::Arc;

use crate::request::Request;
use crate::tally::Tallies;

/// Every service, sorted by id.
pub const SERVICES: &[&Entry] =
    &[&plain::BURN, &plain::ECHO, &oracle::ENTRY, &plain::PAYLOAD, &top2::ENTRY];

/// A service with what stands behind its id.
#[derive(Clone)]
pub struct Spec {
    text: String,
    make: Make,
}

impl Spec {
    /// Reads `payload:512`.
    ///
    /// Errors: what is wrong with it, and what there is.
    pub fn parse(text: &str) -> Result<Spec, String> {
        let (id, rest) = match text.split_once(':') {
            Some((id, rest)) => (id, Some(rest)),
            None => (text, None),
        };
        let Some(entry) = SERVICES.iter().find(|entry| entry.id == id) else {
            let forms: Vec<&str> = SERVICES.iter().map(|entry| entry.form).collect();
            return Err(format!("unknown service `{id}`; choose from: {}", forms.join(", ")));
        };
        let make = (entry.parse)(rest);
        let make = make.map_err(|why| format!("`{text}` is not a service: {why}"))?;
        Ok(Spec { text: text.to_owned(), make })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Makes one for a thread or process.
    ///
    /// Errors: what it needs was refused.
    pub(super) fn make(&self, tallies: &Arc<Tallies>) -> Result<Box<dyn Service>, String> {
        (self.make)(tallies)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spec").field(&self.text).finish()
    }
}

/// What answers requests; each thread or process has its own.
pub(crate) trait Service: Send {
    /// Appends the text of the reply, which has no newline.
    ///
    /// Errors: why there is none; the client is told.
    fn answer(&mut self, request: Request<'_>, reply: &mut Vec<u8>) -> Result<(), String>;

    /// Whether a reply takes so long that it does not wait for others to go out
    /// together.
    fn takes_time(&self) -> bool {
        false
    }
}

/// One service.
#[derive(Debug)]
pub struct Entry {
    /// Its id.
    pub id: &'static str,
    /// How it is written, with what can stand behind the id.
    pub form: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Reads what stands behind `id:`.
    ///
    /// Errors: what is wrong with it.
    parse: fn(Option<&str>) -> Result<Make, String>,
}

/// Makes a service for one thread or process.
type Make = Arc<dyn Fn(&Arc<Tallies>) -> Result<Box<dyn Service>, String> + Send + Sync>;

/// Refuses what stands behind the id of a service that takes nothing.
fn nothing_behind(rest: Option<&str>) -> Result<(), String> {
    match rest {
        None => Ok(()),
        Some(rest) => Err(format!("it takes no value, and `{rest}` follows it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{self, Expected};
    use crate::request::Request;

    /// What a service answers to some requests.
    pub(super) fn replies(spec: &str, requests: &[&str]) -> Vec<String> {
        let tallies = Tallies::new().unwrap();
        let mut service = Spec::parse(spec).unwrap().make(&tallies).unwrap();
        let one = |request: &&str| {
            let mut reply = Vec::new();
            let request = Request::parse(request.as_bytes()).unwrap();
            service.answer(request, &mut reply).unwrap();
            String::from_utf8(reply).unwrap()
        };
        requests.iter().map(one).collect()
    }

    #[test]
    fn what_is_no_service_is_refused_with_what_there_is() {
        let check = |text: &str, expect: &str| {
            let why = Spec::parse(text).map(|spec| spec.text().to_owned()).unwrap_err();
            assert!(why.contains(expect), "{text}: {why}");
        };
        check("ecko", "choose from: burn:MICROSECONDS, echo, oracle:TIME");
        check("echo:3", "it takes no value");
        check("payload", "payload:32");
        check("payload:31", "32");
        check("payload:17MiB", "16 MiB");
        check("burn:x", "whole number");
        check("burn", "burn:");
        check("top2:later", "interval");
        check("top2:cached:0s", "top2:cached:100ms");
        check("oracle:5", "like 250ms");
        check("oracle:5ms,stall=1s", "stall=1.4s@100");
        check("oracle:5ms,slow=1s/0", "slow=");
        check("oracle:5ms,often", "slow=");
    }

    /// What a service of ours replies is right for the clients of ours, `load` and `run server`,
    /// that were told the same words.
    #[test]
    fn every_service_goes_through_every_client() {
        const WORDS: [&str; 7] = [
            "burn:5",
            "echo",
            "oracle:1us",
            "payload:64",
            "top2",
            "top2:cached:1s",
            "top2:interval",
        ];
        for entry in SERVICES {
            let id = |word: &&str| word.split(':').next() == Some(entry.id);
            assert!(WORDS.iter().any(id), "{} is not tried", entry.id);
        }
        for word in WORDS {
            let expected = Expected::of_service(word, b"text").unwrap();
            let texts = replies(word, &["17 text", "18 text"]);
            let lines: Vec<String> =
                (17..).zip(texts).map(|(id, text)| format!("{id} {text}\n")).collect();
            let read = load::replies(lines.iter().map(String::as_bytes), &expected);
            let right: Vec<_> = read.iter().map(|(id, is_right, _)| (*id, *is_right)).collect();
            assert_eq!(right, [(Some(17), true), (Some(18), true)], "{word}: {lines:?}");
        }
    }

    #[test]
    fn entries_are_sorted_and_their_forms_begin_with_their_ids() {
        assert!(SERVICES.is_sorted_by_key(|entry| entry.id));
        for entry in SERVICES {
            assert!(entry.form.starts_with(entry.id) && !entry.summary.is_empty());
        }
    }
}
