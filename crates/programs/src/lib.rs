//! Programs of the user's: which file is one, the fresh copy that each process runs, how a process
//! is started, spoken with in the loop protocol, and ended; and how workers of ours are started.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod charged;
mod conversation;
mod fault;
mod files;
mod program;
pub mod protocol;
pub mod spawn;

pub use charged::{Account, Charged};
pub use charged::{TreeCharged, TreeSpent};
pub use conversation::{
    Answered, Around, BeforeSlice, Beside, Children, Conversation, Reading, Request, finish,
};
pub use fault::ProgramFault;
pub use files::{ProgramFile, ProgramFileError, facts, hex, sha256_of};
pub use files::{ProgramLimits, ProgramPlace, UserProgram};
pub use files::{describe_end, find_program, may_start};
pub use program::{Prepared, Process, Seed, environment};
