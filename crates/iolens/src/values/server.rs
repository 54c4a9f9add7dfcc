//! The values of a study of servers as users write them.

use iolens_engine::server::services::Spec;
use iolens_model::load::Length;
use iolens_model::parse;
use iolens_model::search::Slo;
use iolens_model::server::LoadLevel;

use super::{List, Parsed, at_most, distinct, list, load, narrow};

/// What a program that copies must be told, or it copies nothing that we know of.
pub(crate) const OF_COPIES: &[&str] = &["{src}", "{dst}"];

/// What a program that serves must be told, or nobody finds it.
pub(crate) const OF_SERVERS: &[&str] = &["{port}"];

/// The first of some placeholders that a program is not told.
pub(crate) fn lacking(argv: &[String], placeholders: &[&'static str]) -> Option<&'static str> {
    let lacks = |key: &&&str| !argv.iter().any(|argument| argument.contains(**key));
    placeholders.iter().find(lacks).copied()
}

/// Services of a server, each as it is written.
pub(crate) fn services(text: &str) -> Parsed<List<String>> {
    let items = super::words(text)?;
    items.0.iter().try_for_each(|item| Spec::parse(item).map(drop))?;
    Ok(items)
}

/// Connections of servers.
pub(crate) fn connections(text: &str) -> Parsed<List<u32>> {
    let items = parse::items(text).map_err(|e| e.to_string())?;
    let all: Vec<u32> = items.into_iter().map(load::connections).collect::<Parsed<_>>()?;
    Ok(List(distinct(all)))
}

/// Whether connections carry many requests.
pub(crate) fn keep_alive(text: &str) -> Parsed<List<Length>> {
    list(text, "value of keep-alive", &[Length::Long, Length::Short], keep_alive_word)
}

pub(crate) fn keep_alive_word(length: Length) -> &'static str {
    match length {
        Length::Long => "yes",
        Length::Short => "no",
    }
}

/// How much is offered to servers.
pub(crate) fn loads(text: &str) -> Parsed<List<LoadLevel>> {
    let items = parse::items(text).map_err(|e| e.to_string())?;
    let all: Vec<LoadLevel> = items.into_iter().map(str::parse).collect::<Parsed<_>>()?;
    Ok(List(distinct(all)))
}

/// Limits of latency.
pub(crate) fn slo(text: &str) -> Parsed<List<Slo>> {
    let items = parse::items(text).map_err(|e| e.to_string())?;
    let all: Vec<Slo> = items.into_iter().map(str::parse).collect::<Parsed<_>>()?;
    Ok(List(distinct(all)))
}

pub(crate) fn in_flight(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "requests in flight on a connection").and_then(narrow)
}
