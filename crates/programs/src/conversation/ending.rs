//! How processes that speak the loop protocol end: the end of their input, SIGTERM, SIGKILL.

use iolens_sys::clock;

use super::{Conversation, read_into};
use crate::fault::ProgramFault;
use crate::files::ProgramLimits;
use crate::program::LOOK_NS;
use crate::protocol::{self, LineFault, LineKind, Lines, quoted};

/// How long the end of a process holds up that of the next, ns.
const TURN_NS: u64 = 1_000_000_000;

/// How long all of them have from when the user, or the budget, wants an end, ns.
const PARTING_NS: u64 = 250_000_000;

/// Ends processes whose slices are done, one after another, so that their memory is given back in
/// this order. What came of each, in their order.
pub fn finish(
    conversations: Vec<Conversation>,
    limits: &ProgramLimits,
    interrupted: &dyn Fn() -> bool,
) -> Vec<Result<(), ProgramFault>> {
    let mut all: Vec<(Conversation, bool)> =
        conversations.into_iter().map(|one| (one, false)).collect();
    let deadline_ns = clock::monotonic_ns().saturating_add(limits.end_ns);
    for (one, by_itself) in &mut all {
        one.close_inputs();
        if !interrupted() {
            let turn_ends_ns = clock::monotonic_ns().saturating_add(TURN_NS).min(deadline_ns);
            *by_itself = one.ends_by(turn_ends_ns, interrupted);
        }
    }
    for (one, by_itself) in all.iter_mut().filter(|(_, by_itself)| !by_itself) {
        if !interrupted() {
            *by_itself = one.ends_by(deadline_ns, interrupted);
        }
    }
    let mut late: Vec<&mut (Conversation, bool)> =
        all.iter_mut().filter(|(_, by_itself)| !by_itself).collect();
    if interrupted() {
        let deadline_ns = clock::monotonic_ns().saturating_add(PARTING_NS);
        for (one, by_itself) in &mut late {
            *by_itself = one.ends_by(deadline_ns, &|| false);
        }
    } else {
        late.iter().for_each(|(one, _)| one.terminate());
        let deadline_ns = clock::monotonic_ns().saturating_add(limits.term_ns);
        for (one, _) in &mut late {
            one.ends_by(deadline_ns, interrupted);
        }
    }
    // Side by side, as nothing is measured any more; each is waited for as it is dropped.
    late.iter().filter(|(_, by_itself)| !by_itself).for_each(|(one, _)| one.kill());
    let of_one = |(one, by_itself): (Conversation, bool)| match by_itself {
        true => one.end(),
        false if interrupted() => Err(ProgramFault::Interrupted),
        false => Err(ProgramFault::StaysOn { limit_ns: limits.end_ns }),
    };
    all.into_iter().map(of_one).collect()
}

impl Conversation {
    /// Tells it that there is nothing more to do.
    pub fn close_inputs(&mut self) {
        self.inputs = [None, None];
        self.is_open = [true, true];
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// Ends it, unless it has ended.
    fn kill(&self) {
        self.process.kill();
    }

    /// Whether it ends by then; what it still prints is let go.
    pub fn ends_by(&mut self, deadline_ns: u64, interrupted: &dyn Fn() -> bool) -> bool {
        loop {
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            let Ok((readable, ended)) = self.listens(left_ns.min(LOOK_NS)) else { return false };
            if readable[self.channel.other() as usize] {
                self.pass_over();
            }
            if readable[self.channel as usize] {
                self.hear_the_rest();
            }
            if ended && readable == [false; 2] {
                return true;
            }
            if left_ns == 0 || interrupted() {
                return ended;
            }
        }
    }

    /// Reads what comes behind the last answer: one answer more shows that each slice had the
    /// answer of the one before it.
    fn hear_the_rest(&mut self) {
        let at = self.channel as usize;
        self.is_open[at] = read_into(&mut self.lines, &self.outputs[at]).unwrap_or(false);
        loop {
            match self.lines.next() {
                Ok(Some(line)) if protocol::kind(line) == LineKind::Answer => {
                    self.late.get_or_insert(LineFault::Twice(quoted(line)));
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                // What it says as it ends is its own business.
                Err(_) => self.lines = Lines::new(),
            }
        }
    }

    /// How one ended that has.
    pub fn end(self) -> Result<(), ProgramFault> {
        if let Some(fault) = &self.late {
            return Err(ProgramFault::said("behind its last slice", fault));
        }
        match self.process.wait() {
            Ok(ended) if ended.status == 0 => Ok(()),
            Ok(_) => Err(ProgramFault::BadExit(format!(
                "must exit with status 0 at the end of its input, and it {}",
                self.process.obituary()
            ))),
            Err(errno) => Err(ProgramFault::System(format!("cannot wait for it: {errno}"))),
        }
    }
}
