//! Plain data of iolens: what is asked ([`plan`]), what one trial does
//! ([`trial`]), what came of it ([`outcome`]), and the words and units they
//! share. No I/O and no policy: every other crate may depend on this one, and
//! this one depends on none of them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ab;
pub mod arm;
pub mod axes;
pub mod call;
pub mod cell;
pub mod command_line;
pub mod copy;
pub mod data_path;
pub mod doctor;
pub mod external;
pub mod family;
pub mod file;
pub mod host;
pub mod load;
pub mod metrics;
pub mod origin;
pub mod outcome;
pub mod parse;
pub mod plan;
pub mod profile;
pub mod reading;
pub mod run;
pub mod server;
pub mod slo;
pub mod transfer;
pub mod transport;
pub mod trial;
pub mod tune;
pub mod tuning;
pub mod units;
