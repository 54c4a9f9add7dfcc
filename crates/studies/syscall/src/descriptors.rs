//! Descriptors: opened, closed, copied. What is opened in a slice is closed after
//! it, and what is closed in a slice was opened before it, outside the clock.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::call::CallKind;
use iolens_sys::calls;
use iolens_sys::errno::Errno;

use super::entry::{Call, Entry, MOST, OfFile, Open, Setup, call, repeated};
use super::files::Named;
use super::transfers::file_to_read;
use iolens_sys::tcp::SetupError;

/// An entry of one call that makes or takes a descriptor.
const fn one_descriptor(
    id: &'static str,
    summary: &'static str,
    guess_ns: f64,
    open: Open,
) -> Entry {
    let (most, descriptors, of_file) = (Some(MOST), MOST + 1, OfFile::Reads);
    Entry { most, descriptors, of_file, ..call(id, CallKind::Descriptors, summary, guess_ns, open) }
}

/// The registry entry.
pub(super) static OPEN: Entry = one_descriptor(
    "open",
    "openat(2) for reading, relative to an open directory; closed after the slice",
    1_500.0,
    |setup| Ok(repeated(&OPEN, Made::new(setup, opener(setup)?))),
);

/// The registry entry.
pub(super) static CLOSE: Entry = one_descriptor(
    "close",
    "close(2) of a file's only descriptor; opened before the slice",
    500.0,
    |setup| Ok(repeated(&CLOSE, Closed(Made::new(setup, opener(setup)?)))),
);

/// The registry entry.
pub(super) static OPEN_CLOSE: Entry = Entry {
    calls: 2,
    most: None,
    descriptors: 2,
    ..one_descriptor(
        "open_close",
        "openat(2) for reading, relative to an open directory, and close(2)",
        2_000.0,
        |setup| {
            let open = opener(setup)?;
            Ok(repeated(&OPEN_CLOSE, move || open().and_then(calls::close)))
        },
    )
};

/// The registry entry.
pub(super) static DUP: Entry = one_descriptor(
    "dup",
    "dup(2) of an open file's descriptor; closed after the slice",
    300.0,
    |setup| {
        let file = file_to_read(setup, 1)?;
        Ok(repeated(&DUP, Made::new(setup, move || calls::dup(file.as_fd()))))
    },
);

/// Opens the same name each time.
fn opener(
    setup: &Setup<'_>,
) -> Result<impl Fn() -> Result<OwnedFd, Errno> + Send + use<>, SetupError> {
    let Named { directory, name } = Named::open(setup)?;
    Ok(move || calls::open(directory.as_fd(), &name))
}

/// Makes descriptors, and closes them when the next slice is prepared.
struct Made<F> {
    made: Vec<OwnedFd>,
    make: F,
    most: usize,
}

impl<F> Made<F> {
    fn new(setup: &Setup<'_>, make: F) -> Made<F> {
        Made { made: Vec::with_capacity(setup.most), make, most: setup.most }
    }
}

impl<F: Fn() -> Result<OwnedFd, Errno> + Send> Call for Made<F> {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        if self.made.len() == self.most {
            return Err(Errno::ENOBUFS);
        }
        self.made.push((self.make)()?);
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        self.made.drain(..).try_for_each(calls::close)
    }
}

/// Closes descriptors that were made before the slice.
struct Closed<F>(Made<F>);

impl<F: Fn() -> Result<OwnedFd, Errno> + Send> Call for Closed<F> {
    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        calls::close(self.0.made.pop().ok_or(Errno::ENOBUFS)?)
    }

    fn prepare(&mut self) -> Result<(), Errno> {
        while self.0.made.len() < self.0.most {
            self.0.call()?;
        }
        Ok(())
    }
}
