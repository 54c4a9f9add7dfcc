//! Why calls were not counted, and what to do.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use iolens_programs::ProgramFault;
use iolens_sys::errno::Errno;
use iolens_sys::proc::Root;
use iolens_sys::tracing::TraceError;

/// Why the calls of a program were not counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallsError {
    /// It may not be traced.
    #[error(
        "cannot count its system calls: PTRACE_SEIZE: {errno}: {why}\n  \
         --no-calls leaves them out"
    )]
    Refused {
        /// What the kernel said.
        errno: Errno,
        /// The reason, as far as it can be seen.
        why: TraceRefusal,
    },
    /// It was not started, or ptrace(2) failed on the way.
    #[error("cannot count its system calls: {0}")]
    Trace(TraceError),
    /// What comes before its run failed.
    #[error("cannot count its system calls: {0}")]
    NotReady(ProgramFault),
    /// No pipe to it.
    #[error("cannot count its system calls: pipe: {0}")]
    Pipe(Errno),
    /// It has ended.
    #[error("it ended {step} while its system calls were counted: {}", Ending(*.status))]
    Ended {
        /// When.
        step: CallsStep,
        /// As wait(2) gives it.
        status: i32,
    },
    /// It took too long and was killed.
    #[error(
        "it was killed {step}: counting its system calls took longer than {} s",
        .limit.as_secs_f64()
    )]
    Overdue {
        /// When.
        step: CallsStep,
        /// How long it might take.
        limit: Duration,
    },
    /// It has printed by a call that was not told of, or not as one that prints.
    #[error("its answers came by no call that was seen while its system calls were counted")]
    Unseen,
    /// The user wanted an end.
    #[error("interrupted while its system calls were counted")]
    Interrupted,
    /// It has closed its output, and went on.
    #[error("it closed its standard output {step} while its system calls were counted")]
    Closed {
        /// When.
        step: CallsStep,
    },
    /// It has said that it failed.
    #[error("it says {step}, while its system calls were counted: {line}")]
    Said {
        /// When.
        step: CallsStep,
        /// The line.
        line: String,
    },
}

impl From<TraceError> for CallsError {
    fn from(error: TraceError) -> CallsError {
        match error {
            TraceError::Seize(errno) => {
                CallsError::Refused { errno, why: TraceRefusal::found(&Root::real()) }
            }
            other => CallsError::Trace(other),
        }
    }
}

impl From<ProgramFault> for CallsError {
    fn from(fault: ProgramFault) -> CallsError {
        match fault {
            ProgramFault::Interrupted => CallsError::Interrupted,
            other => CallsError::NotReady(other),
        }
    }
}

/// What a program was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsStep {
    /// To say `ready`.
    SetUp,
    /// To do so many operations.
    Slice(u64),
    /// To run from start to end.
    Run,
}

/// `in a slice of 20 operations`.
impl fmt::Display for CallsStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallsStep::SetUp => f.write_str("before it said `ready`"),
            CallsStep::Slice(1) => f.write_str("in a slice of 1 operation"),
            CallsStep::Slice(operations) => write!(f, "in a slice of {operations} operations"),
            CallsStep::Run => f.write_str("in a run"),
        }
    }
}

/// Why a process may not trace its own child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceRefusal {
    /// kernel.yama.ptrace_scope has this value: from 2 on it takes CAP_SYS_PTRACE, at 3 nobody
    /// may (Documentation/admin-guide/LSM/Yama.rst).
    Yama(u8),
    /// iolens is traced by this process, and so is all that it starts: a task has one tracer.
    Traced(u32),
    /// Something else: a filter of system calls, a security module, a kernel without ptrace(2).
    Unknown,
}

impl TraceRefusal {
    /// The reason that can be seen under this root.
    pub fn found(root: &Root) -> TraceRefusal {
        let status = root.read("proc/self/status").unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        if let Some(tracer @ 1..) = tracer.and_then(|id| id.trim().parse().ok()) {
            return TraceRefusal::Traced(tracer);
        }
        let scope = root.read("proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
        match scope.trim().parse() {
            Ok(scope @ 2..) => TraceRefusal::Yama(scope),
            _ => TraceRefusal::Unknown,
        }
    }
}

impl fmt::Display for TraceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceRefusal::Yama(3) => f.write_str(
                "kernel.yama.ptrace_scope is 3, which cannot be lowered before the next boot",
            ),
            TraceRefusal::Yama(scope) => write!(
                f,
                "kernel.yama.ptrace_scope is {scope}: run as root, or \
                 `sysctl kernel.yama.ptrace_scope=1`"
            ),
            TraceRefusal::Traced(tracer) => {
                write!(f, "process {tracer} traces iolens: run it without strace or a debugger")
            }
            TraceRefusal::Unknown => f.write_str(
                "a filter of system calls or a security module refuses it; in a container, \
                 `--cap-add=SYS_PTRACE`",
            ),
        }
    }
}

/// How a process has ended: `exit status 3`, `signal 9`.
struct Ending(i32);

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = ExitStatus::from_raw(self.0);
        match (status.code(), status.signal()) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => write!(f, "{status}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_reason_and_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let found = || TraceRefusal::found(&Root::at(folder.path()));
        assert_eq!(found(), TraceRefusal::Unknown);
        write("proc/sys/kernel/yama/ptrace_scope", "1\n");
        assert_eq!(found(), TraceRefusal::Unknown, "one's own children may be traced");
        write("proc/sys/kernel/yama/ptrace_scope", "2\n");
        assert_eq!(found(), TraceRefusal::Yama(2));
        write("proc/self/status", "Name:\tiolens\nTracerPid:\t0\n");
        assert_eq!(found(), TraceRefusal::Yama(2));
        write("proc/self/status", "Name:\tiolens\nTracerPid:\t42\n");
        assert_eq!(found(), TraceRefusal::Traced(42));
        let error = CallsError::Refused { errno: Errno::EPERM, why: TraceRefusal::Yama(2) };
        assert_eq!(
            error.to_string(),
            "cannot count its system calls: PTRACE_SEIZE: EPERM (operation not permitted): \
             kernel.yama.ptrace_scope is 2: run as root, or \
             `sysctl kernel.yama.ptrace_scope=1`\n  --no-calls leaves them out"
        );
    }

    #[test]
    fn an_end_is_said_with_its_status_and_its_step() {
        let ended = |status, step| CallsError::Ended { step, status }.to_string();
        let exited = ended(3 << 8, CallsStep::Slice(20));
        assert!(exited.starts_with("it ended in a slice of 20 operations while"), "{exited}");
        assert!(exited.ends_with("exit status 3"), "{exited}");
        assert!(ended(9, CallsStep::SetUp).ends_with(": signal 9"));
    }
}
