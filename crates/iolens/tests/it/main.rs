//! The tool as a user meets it: every test starts the binary in a folder of
//! its own, with a lock and a database of its own.

#![expect(clippy::disallowed_methods, reason = "limits on how long a test waits")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ab;
mod ask;
mod audit;
mod axes;
mod calls;
mod compare;
mod confirm;
mod copy_run;
mod counters;
mod database;
mod doctor;
mod explain;
mod far;
mod faults;
mod file_faults;
mod file_read;
mod file_run;
mod file_write;
mod harness;
mod history;
mod hostile;
mod import;
mod limits;
mod load;
mod looped;
mod main_job;
mod menu;
mod mistakes;
mod net;
mod pinned;
mod plans;
mod pty;
mod resume;
#[path = "../../../store/tests/it/sample.rs"]
mod sample;
mod senders;
mod serve;
mod server_run;
#[path = "../../../../tests/support/skip.rs"]
mod skip;
mod storage;
mod strange;
mod sysctls;
mod terminal;
mod tune;
mod upkeep;
mod write_run;
