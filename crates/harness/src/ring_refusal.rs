//! Why there is no ring that sends or receives, in words, and what to do about it.

use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{OpenError, REGISTERED_MAX};
use iolens_sys::pages::page_bytes;
use iolens_sys::proc::Root;
use iolens_sys::{clock, process};

use iolens_sys::tcp::SetupError;

/// Says who may have rings: 1 denies them to those without `CAP_SYS_ADMIN`, 2 to
/// all. Below /proc.
pub const SYSCTL: &str = "proc/sys/kernel/io_uring_disabled";

/// What would allow them.
pub const SYSCTL_REMEDY: &str = "sudo sysctl kernel.io_uring_disabled=0";

/// How long registering is tried again for which there is no memory to lock:
/// that of a process that has ended comes back a while later
/// (`io_ring_exit_work`, io_uring/io_uring.c).
const PATIENCE_NS: u64 = 1_000_000_000;

/// Registers buffers of a ring, with patience for memory.
///
/// Errors: of `register`, in the end.
pub fn patiently<T>(mut register: impl FnMut() -> Result<T, OpenError>) -> Result<T, OpenError> {
    let end_ns = clock::monotonic_ns() + PATIENCE_NS;
    loop {
        match register() {
            Err(OpenError::Register { errno: Errno::ENOMEM, .. })
                if clock::monotonic_ns() < end_ns =>
            {
                std::thread::yield_now();
            }
            done => return done,
        }
    }
}

/// Whether the sysctl is why a ring was refused with `errno`, and its level.
pub fn denied_by_sysctl(errno: Errno, root: &Root) -> Option<String> {
    let level = root.read(SYSCTL).unwrap_or_default();
    (errno == Errno::EPERM && matches!(level.as_str(), "1" | "2")).then_some(level)
}

/// Why an arm that needs a ring cannot be opened.
pub fn setup_error(why: OpenError) -> SetupError {
    explain(why, &Root::real(), process::memlock_limit_bytes())
}

/// The same on a machine that shows itself in `root`.
fn explain(why: OpenError, root: &Root, memlock_bytes: u64) -> SetupError {
    let error = |tried: String, errno| SetupError { tried, errno };
    match why {
        OpenError::Setup(errno) => match denied_by_sysctl(errno, root) {
            Some(level) => error(
                format!(
                    "set up an io_uring (kernel.io_uring_disabled is {level}; {SYSCTL_REMEDY} \
                     allows it)"
                ),
                errno,
            ),
            None => error(format!("set up an io_uring{}", without_sysctl(errno)), errno),
        },
        OpenError::Flags(flags) => error(
            format!("set up an io_uring with {flags}, which Linux has from {} on", flags.since()),
            Errno::EOPNOTSUPP,
        ),
        OpenError::Memory(errno) => error("have memory for the buffers".to_owned(), errno),
        OpenError::Probe(errno) => {
            error("ask what io_uring can do here (IORING_REGISTER_PROBE)".to_owned(), errno)
        }
        OpenError::Opcode(opcode) => error(
            format!("send with {}, which Linux has from {} on", opcode.name(), opcode.since()),
            Errno::EOPNOTSUPP,
        ),
        OpenError::TooMany(buffers) => error(
            format!(
                "register {buffers} buffers, one for each message of the ring: the kernel takes \
                 {REGISTERED_MAX}, so larger messages or a hot working set are possible"
            ),
            Errno::EOPNOTSUPP,
        ),
        OpenError::BufferRing { buffers, errno } => {
            error(format!("provide a ring of {buffers} buffers (IORING_REGISTER_PBUF_RING)"), errno)
        }
        OpenError::Register { buffers, buffer_bytes, errno } => {
            error(registering(buffers, buffer_bytes, memlock_bytes), errno)
        }
    }
}

fn without_sysctl(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM | Errno::EACCES => {
            " (a seccomp filter or a security module forbids it; containers allow it with \
             `--security-opt seccomp=unconfined`)"
        }
        Errno::ENOSYS => " (this kernel has none, or a seccomp filter says so)",
        Errno::ENOMEM => " (before Linux 5.12 its memory counts against RLIMIT_MEMLOCK)",
        _ => "",
    }
}

/// `register 64 buffers of 64 KiB, which locks up to 4.25 MiB (RLIMIT_MEMLOCK
/// is 8 MiB)`.
fn registering(buffers: usize, buffer_bytes: usize, memlock_bytes: u64) -> String {
    // Every page that a buffer touches, and it may begin and end anywhere in one.
    let page_bytes = page_bytes();
    let pages = buffer_bytes.div_ceil(page_bytes) + 1;
    let locked = Bytes((pages * page_bytes).saturating_mul(buffers) as u64);
    let limit = match memlock_bytes {
        u64::MAX => "unlimited".to_owned(),
        bytes => Bytes(bytes).to_string(),
    };
    let each = Bytes(buffer_bytes as u64);
    format!(
        "register {buffers} buffers of {each}, which locks up to {locked} (RLIMIT_MEMLOCK is \
         {limit})"
    )
}

#[cfg(test)]
mod tests {
    use iolens_sys::io_uring::{Opcode, SetupFlags};

    use super::*;
    use crate::scripted::Machine;

    fn said(why: OpenError, files: &[(&str, &str)]) -> String {
        explain(why, &Machine::with(files).root(), 8 << 20).to_string()
    }

    #[test]
    fn a_refusal_says_why_and_what_to_do() {
        let setup = OpenError::Setup;
        assert_eq!(
            said(setup(Errno::EPERM), &[(SYSCTL, "2")]),
            "cannot set up an io_uring (kernel.io_uring_disabled is 2; sudo sysctl \
             kernel.io_uring_disabled=0 allows it): EPERM (operation not permitted)"
        );
        let filtered = said(setup(Errno::EPERM), &[(SYSCTL, "0")]);
        assert!(filtered.contains("seccomp=unconfined"), "{filtered}");
        assert_eq!(said(setup(Errno::EPERM), &[]), filtered, "a kernel without the sysctl");
        let none = said(setup(Errno::ENOSYS), &[]);
        assert!(none.ends_with("ENOSYS (function not implemented)"), "{none}");
        assert!(said(setup(Errno::ENOMEM), &[]).contains("RLIMIT_MEMLOCK"));
        assert_eq!(
            said(OpenError::Probe(Errno::EINVAL), &[]),
            "cannot ask what io_uring can do here (IORING_REGISTER_PROBE): EINVAL (invalid \
             argument)"
        );
    }

    #[test]
    fn what_an_old_kernel_lacks_has_its_version() {
        let said = |why| said(why, &[]);
        assert!(said(OpenError::Flags(SetupFlags::ONE_THREAD)).contains("from 6.1 on: EOPNOTSUPP"));
        assert_eq!(
            said(OpenError::Opcode(Opcode::SendZcFixed)),
            "cannot send with IORING_OP_SEND_ZC, which Linux has from 6.0 on: EOPNOTSUPP \
             (operation not supported)"
        );
    }

    #[test]
    fn registered_buffers_have_their_arithmetic() {
        let register =
            OpenError::Register { buffers: 64, buffer_bytes: 64 << 10, errno: Errno::ENOMEM };
        assert_eq!(
            said(register, &[]),
            "cannot register 64 buffers of 64 KiB, which locks up to 4.25 MiB (RLIMIT_MEMLOCK is \
             8 MiB): ENOMEM (cannot allocate memory)"
        );
        assert_eq!(
            said(OpenError::TooMany(20_000), &[]),
            "cannot register 20000 buffers, one for each message of the ring: the kernel takes \
             16384, so larger messages or a hot working set are possible: EOPNOTSUPP (operation \
             not supported)"
        );
    }
}
