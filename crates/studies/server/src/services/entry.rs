//! What the list of services is made of, and what answers requests.

use std::sync::Arc;

use crate::request::Request;
use crate::tally::Tallies;

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
    pub(super) parse: fn(Option<&str>) -> Result<Make, String>,
}

/// Makes a service for one thread or process.
pub(super) type Make = Arc<dyn Fn(&Arc<Tallies>) -> Result<Box<dyn Service>, String> + Send + Sync>;

/// Refuses what stands behind the id of a service that takes nothing.
pub(super) fn nothing_behind(rest: Option<&str>) -> Result<(), String> {
    match rest {
        None => Ok(()),
        Some(rest) => Err(format!("nothing stands behind it, and there is `{rest}`")),
    }
}
