//! How processes that speak the loop protocol end: the end of their input, SIGTERM, SIGKILL.

use iolens_sys::clock;

use crate::conversation::Conversation;
use crate::fault::ProgramFault;
use crate::setup::ProgramLimits;

/// Ends processes whose slices are done. What came of each, in their order.
pub fn finish(
    conversations: Vec<Conversation>,
    limits: &ProgramLimits,
    interrupted: &dyn Fn() -> bool,
) -> Vec<Result<(), ProgramFault>> {
    let mut all: Vec<(Conversation, bool)> =
        conversations.into_iter().map(|one| (one, false)).collect();
    all.iter_mut().for_each(|(one, _)| one.close_inputs());
    let deadline_ns = clock::monotonic_ns().saturating_add(limits.end_ns);
    for (one, by_itself) in &mut all {
        *by_itself = one.ends_by(deadline_ns, interrupted);
    }
    let mut late: Vec<&mut Conversation> =
        all.iter_mut().filter(|(_, by_itself)| !by_itself).map(|(one, _)| one).collect();
    if !interrupted() {
        late.iter().for_each(|one| one.terminate());
        let deadline_ns = clock::monotonic_ns().saturating_add(limits.term_ns);
        for one in &mut late {
            one.ends_by(deadline_ns, interrupted);
        }
    }
    let of_one = |(one, by_itself): (Conversation, bool)| match by_itself {
        true => one.end(),
        false if interrupted() => Err(ProgramFault::Interrupted),
        // It is killed as it is dropped.
        false => Err(ProgramFault::StaysOn { limit_ns: limits.end_ns }),
    };
    all.into_iter().map(of_one).collect()
}
