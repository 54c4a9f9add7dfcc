//! `iolens ab`: programs of the user's, compared.

use std::process::ExitCode;

use crate::args::Ab;
use crate::commands::run::random;
use crate::failure::Failure;
use crate::request;

pub(crate) fn ab(args: &Ab, typed: &[String]) -> Result<ExitCode, Failure> {
    let plan = request::ab::plan(args, random() >> 16)?;
    todo!("{plan:?} {typed:?}")
}
