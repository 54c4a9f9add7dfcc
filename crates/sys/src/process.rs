//! What ties a worker to the process that started it, and who we are.

use rustix::process::Signal;

use crate::errno::Errno;

/// Asks the kernel to kill this process when the thread that started it ends
/// (`PR_SET_PDEATHSIG`). The starting thread must therefore be a main thread.
///
/// Errors: none in practice; passed on if there is one.
pub fn die_with_parent() -> Result<(), Errno> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Effective user id; 0 is root.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// This process's id.
pub fn id() -> u32 {
    std::process::id()
}

/// Soft and hard limit of open descriptors; `u64::MAX` for unlimited.
pub fn descriptor_limits() -> (u64, u64) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Bytes this user may lock in memory; `u64::MAX` for unlimited.
pub fn memlock_limit_bytes() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    limit.current.unwrap_or(u64::MAX)
}

/// How large a file this process may make; `u64::MAX` for unlimited.
pub fn file_size_limit_bytes() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    limit.current.unwrap_or(u64::MAX)
}

/// Whether locked memory of this process is not limited: `CAP_IPC_LOCK` in the
/// machine's own user namespace, which is where the kernel asks for it.
pub fn may_lock_any_memory() -> bool {
    use rustix::thread::CapabilitySet;
    has_machine_rights(CapabilitySet::IPC_LOCK)
}

/// Threads and processes that the user of this process may have (`RLIMIT_NPROC`, soft);
/// `None` where it does not apply: root's are not limited, nor those of who has
/// `CAP_SYS_RESOURCE` or `CAP_SYS_ADMIN` (`copy_process`, kernel/fork.c).
pub fn task_limit() -> Option<u64> {
    use rustix::thread::CapabilitySet;
    let exempt = CapabilitySet::SYS_RESOURCE.union(CapabilitySet::SYS_ADMIN);
    if has_machine_rights(CapabilitySet::empty()) && user_id() == 0 || has_machine_rights(exempt) {
        return None;
    }
    rustix::process::getrlimit(rustix::process::Resource::Nproc).current
}

/// Real user id; 0 is root.
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Whether this process has any of some capabilities in the machine's own user namespace;
/// of none, whether it is in that one.
fn has_machine_rights(any: rustix::thread::CapabilitySet) -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let effective = rustix::thread::capabilities(None).map(|sets| sets.effective);
    is_machines_uid_map(&map)
        && (any.is_empty() || effective.is_ok_and(|effective| effective.intersects(any)))
}

/// Whether a /proc/PID/uid_map is that of the machine's own user namespace,
/// which maps all ids to themselves (user_namespaces(7)). The kernel asks for
/// most rights in that one, whatever a process may do in another.
pub fn is_machines_uid_map(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Raises the soft limit of open descriptors to the hard one.
///
/// Errors: passed on from setrlimit(2).
pub fn raise_descriptor_limit() -> Result<(), Errno> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let hard = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?)
}

/// Ticks of a second in /proc/PID/stat (`USER_HZ`).
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Id of the calling thread.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Lets timers of the calling thread expire as close to their time as they can
/// (`PR_SET_TIMERSLACK` of 1 ns), instead of up to 50 µs later.
///
/// Errors: none on Linux since 2.6.28; passed on if there is one.
pub fn sharpen_timers() -> Result<(), Errno> {
    Ok(rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN))?)
}

/// The host name, from uname(2).
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Kernel name, release, version and machine, from uname(2).
pub fn uname() -> [String; 4] {
    let u = rustix::system::uname();
    [u.sysname(), u.release(), u.version(), u.machine()].map(|s| s.to_string_lossy().into_owned())
}
