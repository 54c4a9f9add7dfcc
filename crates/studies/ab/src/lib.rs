//! The study `ab`: two or more programs of the user's, judged like the methods of our own. Fresh
//! processes take turns in short slices, and nothing is claimed without an interval.

#![forbid(unsafe_code)]

pub mod call_changes;
pub mod calls;
pub mod calls_error;
