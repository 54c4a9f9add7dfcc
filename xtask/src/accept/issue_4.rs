//! Issue 4: where the time goes.

use super::{Line, doctor};

pub(crate) const LINES: &[Line] = &[Line {
    issue: 4,
    id: "d",
    promise: "`doctor` is right on this machine as root and as an ordinary user: each claim that \
              can be tried again is so, and the command it advises first has its effect",
    check: doctor::check,
}];
