//! What a failed system call said: the number, its name and its text.

use std::fmt;

/// The error number of a failed system call, from errno(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Interrupted by a signal before anything moved.
    pub const EINTR: Errno = Errno(libc::EINTR);
    /// Would block; on a blocking socket: the time limit passed.
    pub const EAGAIN: Errno = Errno(libc::EAGAIN);
    /// The peer closed and cannot read what was sent.
    pub const EPIPE: Errno = Errno(libc::EPIPE);
    /// The peer reset the connection.
    pub const ECONNRESET: Errno = Errno(libc::ECONNRESET);
    /// The message is too long for one call.
    pub const EMSGSIZE: Errno = Errno(libc::EMSGSIZE);
    /// A stream ended where more bytes were due.
    pub const ENODATA: Errno = Errno(libc::ENODATA);
    /// Nobody listens there.
    pub const ECONNREFUSED: Errno = Errno(libc::ECONNREFUSED);
    /// The peer ended a connection before it was taken.
    pub const ECONNABORTED: Errno = Errno(libc::ECONNABORTED);
    /// The connection has ended.
    pub const ENOTCONN: Errno = Errno(libc::ENOTCONN);
    /// The kernel may not take more memory for this.
    pub const ENOBUFS: Errno = Errno(libc::ENOBUFS);
    /// There is no memory for this, or none that may be locked.
    pub const ENOMEM: Errno = Errno(libc::ENOMEM);
    /// It was ended before it was done.
    pub const ECANCELED: Errno = Errno(libc::ECANCELED);
    /// It is in use.
    pub const EBUSY: Errno = Errno(libc::EBUSY);
    /// This process may not have more descriptors.
    pub const EMFILE: Errno = Errno(libc::EMFILE);
    /// The machine may not have more descriptors.
    pub const ENFILE: Errno = Errno(libc::ENFILE);
    /// There is no such descriptor.
    pub const EBADF: Errno = Errno(libc::EBADF);
    /// This kernel has no such call.
    pub const ENOSYS: Errno = Errno(libc::ENOSYS);
    /// The caller may not do this.
    pub const EPERM: Errno = Errno(libc::EPERM);
    /// This kernel or protocol has no such option.
    pub const ENOPROTOOPT: Errno = Errno(libc::ENOPROTOOPT);
    /// What came is not what was to come.
    pub const EBADMSG: Errno = Errno(libc::EBADMSG);
    /// The caller may not open this.
    pub const EACCES: Errno = Errno(libc::EACCES);
    /// There is no such file.
    pub const ENOENT: Errno = Errno(libc::ENOENT);
    /// It is mounted read-only.
    pub const EROFS: Errno = Errno(libc::EROFS);
    /// There is no such process.
    pub const ESRCH: Errno = Errno(libc::ESRCH);
    /// There is no such device.
    pub const ENODEV: Errno = Errno(libc::ENODEV);
    /// The system could not do it, and says no more.
    pub const EIO: Errno = Errno(libc::EIO);
    /// There is no memory at this address, or nothing behind it.
    pub const EFAULT: Errno = Errno(libc::EFAULT);
    /// The arguments make no sense, or the kernel lacks the facility.
    pub const EINVAL: Errno = Errno(libc::EINVAL);
    /// The kernel lacks the facility.
    pub const EOPNOTSUPP: Errno = Errno(libc::EOPNOTSUPP);
    /// Somebody has this address already.
    pub const EADDRINUSE: Errno = Errno(libc::EADDRINUSE);
    /// This machine has no such address.
    pub const EADDRNOTAVAIL: Errno = Errno(libc::EADDRNOTAVAIL);
    /// It was begun and has not ended.
    pub const EINPROGRESS: Errno = Errno(libc::EINPROGRESS);
    /// This kernel has no sockets of this kind.
    pub const EAFNOSUPPORT: Errno = Errno(libc::EAFNOSUPPORT);
    /// There is no route there.
    pub const ENETUNREACH: Errno = Errno(libc::ENETUNREACH);
    /// There is a route there, and nobody at its end answers, or a router refuses.
    pub const EHOSTUNREACH: Errno = Errno(libc::EHOSTUNREACH);
    /// A limit on the number of things is reached.
    pub const ENOSPC: Errno = Errno(libc::ENOSPC);
    /// Nobody has the other end open.
    pub const ENXIO: Errno = Errno(libc::ENXIO);
    /// It takes too long.
    pub const ETIMEDOUT: Errno = Errno(libc::ETIMEDOUT);
    /// The name is taken.
    pub const EEXIST: Errno = Errno(libc::EEXIST);
    /// It would go from one file system to another.
    pub const EXDEV: Errno = Errno(libc::EXDEV);
    /// It is a directory.
    pub const EISDIR: Errno = Errno(libc::EISDIR);
    /// It is no directory.
    pub const ENOTDIR: Errno = Errno(libc::ENOTDIR);
    /// A symbolic link is not followed, or there are too many.
    pub const ELOOP: Errno = Errno(libc::ELOOP);
    /// The name is too long.
    pub const ENAMETOOLONG: Errno = Errno(libc::ENAMETOOLONG);
    /// A file may not be so large.
    pub const EFBIG: Errno = Errno(libc::EFBIG);
    /// The user may not have more of the device.
    pub const EDQUOT: Errno = Errno(libc::EDQUOT);
    /// It does not know this request.
    pub const ENOTTY: Errno = Errno(libc::ENOTTY);
    /// It is a program that runs.
    pub const ETXTBSY: Errno = Errno(libc::ETXTBSY);

    /// The error number itself.
    pub fn raw(self) -> i32 {
        self.0
    }

    /// From an error number.
    pub fn from_raw(raw: i32) -> Errno {
        Errno(raw)
    }

    /// The calling thread's errno, just after a call that failed.
    pub fn last() -> Errno {
        Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Errno {
        Errno(errno.raw_os_error())
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl std::error::Error for Errno {}

/// `EPIPE (broken pipe)`.
impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
        match name(self.0) {
            Some(name) => write!(f, "{name} ({text})"),
            None => write!(f, "errno {} ({text})", self.0),
        }
    }
}

/// The symbolic name of an error number that one of our calls can return.
fn name(raw: i32) -> Option<&'static str> {
    macro_rules! names {
        ($($name:ident)+) => {
            match raw { $(libc::$name => Some(stringify!($name)),)+ _ => None }
        };
    }
    names!(
        EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY
        EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY EFBIG ENOSPC ESPIPE EROFS
        EPIPE ENODATA ENOTSOCK ENAMETOOLONG ENOSYS ELOOP EMSGSIZE EPROTOTYPE ENOPROTOOPT
        EPROTONOSUPPORT
        EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ECONNABORTED
        ECONNRESET ENOBUFS EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED EHOSTUNREACH EALREADY
        EINPROGRESS EDQUOT EBADMSG EUSERS ECANCELED ETXTBSY
    )
}

#[cfg(test)]
mod tests {
    use super::Errno;

    #[test]
    fn an_error_prints_its_name_and_text() {
        assert_eq!(Errno::EPIPE.to_string(), "EPIPE (broken pipe)");
        assert_eq!(Errno::from_raw(4095).to_string(), "errno 4095 (unknown error 4095)");
    }
}
