//! What reads bytes that somebody else wrote, as functions of these bytes.

#![forbid(unsafe_code)]

pub mod hostile;
pub mod kernel;
pub mod lock;
