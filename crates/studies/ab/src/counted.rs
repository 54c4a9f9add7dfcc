//! The trial that counts the system calls of one program, which no clock sees.

use iolens_programs::{Seed, environment};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use iolens_model::ab::AbMode;
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::launch::Program;
use iolens_sys::proc::Root;

use crate::calls::{CountedCalls, call_tracepoints, count_calls_of_command, count_calls_of_loop};
use crate::calls_error::CallsError;
use crate::setup::AbSetup;

/// How long such a trial may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Operations of the smaller slice at most: ptrace(2) makes each call a hundred times as long.
const OPERATIONS_MAX: u64 = 1000;

/// Part of a timed slice that the smaller one is.
const OPERATIONS_SHARE: u64 = 20;

/// Counts the calls of one of the programs, by its number in the setup; `operations` are those of
/// a timed slice.
///
/// Errors: why they were not counted.
pub fn count_calls(
    setup: &AbSetup,
    program: usize,
    operations: u64,
    interrupted: &dyn Fn() -> bool,
) -> Result<CountedCalls, CallsError> {
    let mut traced = traced(setup, program).map_err(CallsError::Pipe)?;
    let tracepoints = call_tracepoints(&Root::real());
    match setup.mode {
        AbMode::Loop => {
            let operations = (operations / OPERATIONS_SHARE).clamp(1, OPERATIONS_MAX);
            count_calls_of_loop(&mut traced, operations, LIMIT, tracepoints, interrupted)
        }
        AbMode::Command => {
            let input = setup.input.as_deref().unwrap_or("/dev/null");
            let input = File::open(input).map_err(|e| CallsError::Pipe(e.into()))?;
            let output = file::in_memory("iolens-output").map_err(CallsError::Pipe)?;
            let files = [input.as_fd(), output.as_fd()];
            count_calls_of_command(&mut traced, files, LIMIT, tracepoints, interrupted)
                .map(|(counted, _)| counted)
        }
    }
}

/// The program, from where it lies: where its code is changes no count.
fn traced(setup: &AbSetup, program: usize) -> Result<Program, Errno> {
    let program = setup.programs.get(program).ok_or(Errno::EINVAL)?;
    let argv: Vec<Vec<u8>> = program.argv.iter().map(|word| word.clone().into()).collect();
    let errors = file::in_memory("iolens-errors")?;
    let seed = Seed::of(0).to_string();
    let environment = environment(&seed, setup.mode == AbMode::Loop);
    Program::with(program.file.path.as_ref(), &argv, errors, &environment)
}
