//! What `tune` needs besides readings and copyings by hand: what is known of a file
//! before it is timed, memory as a bound, programs of others, and what happened to
//! the machine meanwhile.

pub mod cure;
pub mod facts;
pub mod limit;
pub mod program;
pub mod watch;
