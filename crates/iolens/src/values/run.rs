//! Values of one run of the program, and of none of its measurements.

use std::path::PathBuf;

use iolens_model::parse;

use super::{Parsed, lookup};
use crate::args::ProgressKind;

/// A flag without a value.
pub(crate) fn switch(_: &str) -> Parsed<()> {
    Ok(())
}

pub(crate) fn run_name(text: &str) -> Parsed<String> {
    parse::run_name(text).map_err(|e| e.to_string())
}

pub(crate) fn seed(text: &str) -> Parsed<u64> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a seed: write a whole number"))
}

pub(crate) fn path(text: &str) -> Parsed<PathBuf> {
    if text.is_empty() { Err("a path must not be empty".to_owned()) } else { Ok(text.into()) }
}

pub(crate) fn progress(text: &str) -> Parsed<ProgressKind> {
    let word = |kind: ProgressKind| kind.word();
    lookup(text.trim(), "kind of progress", &ProgressKind::ALL, word)
}
