//! Killing a traced program at its deadline, or when its user wants that.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rustix::process::{Signal, pidfd_send_signal};

use super::TraceKill;
use crate::clock::monotonic_ns;
use crate::errno::Errno;
use crate::poll::readable;

/// Who kills a program in time. It is a thread of its own, because wait4(2) knows no time-out, and
/// a signal that ends it may come just before it begins.
#[derive(Debug)]
pub(super) struct Watch {
    killed: Arc<OnceLock<TraceKill>>,
    thread: JoinHandle<()>,
}

impl Watch {
    pub(super) fn over(
        program: OwnedFd,
        deadline_ns: u64,
        cancel: Option<OwnedFd>,
    ) -> Result<Watch, Errno> {
        let killed = Arc::new(OnceLock::new());
        let told = Arc::clone(&killed);
        let watch = move || {
            let cancel = cancel.as_ref().map(AsFd::as_fd);
            let fds: Vec<BorrowedFd<'_>> = [program.as_fd()].into_iter().chain(cancel).collect();
            let why = loop {
                match readable(&fds, deadline_ns.saturating_sub(monotonic_ns())).as_deref() {
                    Err(&Errno::EINTR) => {}
                    Ok([true, ..]) => return,
                    Ok([_, true]) => break TraceKill::Cancelled,
                    Ok(_) | Err(_) => break TraceKill::Overdue,
                }
            };
            let _ = told.set(why);
            let _ = pidfd_send_signal(&program, Signal::KILL);
        };
        let thread = std::thread::Builder::new().name("trace-watch".to_owned()).spawn(watch)?;
        Ok(Watch { killed, thread })
    }

    /// Why it has killed it, or is about to.
    pub(super) fn killed(&self) -> Option<TraceKill> {
        self.killed.get().copied()
    }

    /// Ends with the program, which has ended.
    pub(super) fn end(self) {
        let _ = self.thread.join();
    }
}
