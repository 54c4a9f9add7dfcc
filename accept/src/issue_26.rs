//! Issue 26: nobody gets in, nothing is lost.

use super::{Line, hostile};

pub(crate) const LINES: &[Line] = &[Line {
    issue: 26,
    id: "a",
    promise: "an ordinary user plants plans with programs, ids that are paths, links, lock files \
                  that are none, old and damaged runs, and calls every socket: no command of root's \
                  takes a second longer, and nothing changes but root's own runs",
    check: hostile::check,
}];
