//! Tests of system calls that are seen by ptrace(2) or by tracepoints: the same by each, and the
//! numbers of the tracepoints, also where tracefs is not mounted: root mounts it in a mount
//! namespace that ends with the command.

use std::process::Command;

/// Each of these tests with each of the means; who includes this file has a `By` for each.
macro_rules! by_each {
    ($($test:ident)*) => {
        mod by_ptrace {
            $(#[test] fn $test() { super::$test(&super::By::ptrace(), stringify!($test)); })*
        }
        mod by_tracepoints {
            $(#[test] fn $test() { super::$test(&super::By::tracepoints(), stringify!($test)); })*
        }
    };
}

const SCRIPT: &str = "events=/sys/kernel/tracing/events/raw_syscalls; \
     [ -e $events ] || mount -t tracefs nodev /sys/kernel/tracing || exit; \
     cat $events/sys_enter/id $events/sys_exit/id";

/// Of `sys_enter` and of `sys_exit`; `None` where this user cannot have them, or the kernel has
/// none.
pub(crate) fn numbers() -> Option<[u64; 2]> {
    let said = Command::new("unshare").args(["-m", "sh", "-c", SCRIPT]).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let mut numbers = said.lines().map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}
