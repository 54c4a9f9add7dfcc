//! Where the copies happen, how many there are and who makes them; which one
//! the iovec removes, and what it costs beside a plain `memcpy`.

use std::cmp::Reverse;

use iolens_model::data_path::{DataPath, End, Hop, Movement, Mover, ReceiverFacts};
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, Estimate, Interval, RemovedCopy};

use super::{Outcome, measured};
use crate::arms::{self, CLASSIC, Shares};
use crate::number::list;
use crate::words;

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    let receiver = arms::receiver(run);
    let mut ids: Vec<&str> =
        CLASSIC.into_iter().filter(|id| arms::path(run, id, receiver).is_some()).collect();
    if ids.is_empty() {
        ids = run.header.primitives.iter().map(|facts| facts.id.as_str()).collect();
    }
    let mut sentences: Vec<String> = ids
        .iter()
        .filter_map(|id| {
            let shares = Shares::of(arms::received_with(analysis, receiver), id);
            Some(sentence(id, &arms::path(run, id, receiver)?, shares))
        })
        .collect();
    if sentences.is_empty() {
        return Outcome::not_decidable(
            "The run does not say which way the bytes of its primitives take, so their copies \
             cannot be located; a run by a current build does.",
        );
    }
    sentences.extend(receivers(run, analysis));
    sentences.extend(without_receiver(run));
    sentences.push(removed(run, analysis));
    sentences.extend(iovec_itself(run, analysis));
    sentences.push(
        "Which hops copy is declared by each primitive, with the kernel’s function that does it; \
         the share that was copied late is measured, as the kernel reports it."
            .to_owned(),
    );
    let evidence = analysis.removed_copies.iter().map(|copy| line(run, copy)).collect();
    Outcome::Answered { sentences, evidence }
}

/// What is true of one topology only, where there are others in the run too.
fn without_receiver(run: &Run) -> Option<String> {
    let topologies = run.header.plan.topologies();
    let both = [true, false].map(|has| topologies.iter().any(|t| t.has_receiver() == has));
    let text = "On sink a path ends at the device: nobody copies for a receiver, and end to end \
                is what was copied at the sender.";
    (both == [true; 2]).then(|| text.to_owned())
}

/// One primitive: how often each byte is copied, and by whom.
fn sentence(id: &str, path: &DataPath, shares: Shares) -> String {
    let count = match shares.copies(path) {
        None => "its copies depend on what the kernel does, which was not measured".into(),
        Some(copies) => totals(copies),
    };
    let copies: Vec<String> = path.hops.iter().filter_map(|hop| made_by(hop, shares)).collect();
    match copies.as_slice() {
        [] => format!("{id}: no CPU copies a byte."),
        copies => format!("{id}: {count}: {}.", list(copies)),
    }
}

/// `2 copies of each byte at the sender, 3 end to end`.
fn totals([sender, all]: [(f64, f64); 2]) -> String {
    let sender = arms::copies_range(sender);
    let noun = if sender == "1" { "copy" } else { "copies" };
    let all = arms::copies_range(all);
    format!("{sender} {noun} of each byte at the sender, {all} end to end")
}

/// What each receiver does with the bytes, where there is another one than the
/// one that always copies.
fn receivers(run: &Run, analysis: &Analysis) -> Vec<String> {
    let known = &run.header.receivers;
    if known.iter().all(|receiver| receiver.id == "recv") {
        return Vec::new();
    }
    let sentence = |receiver: &ReceiverFacts| {
        let shares = Shares::received(arms::received_with(analysis, &receiver.id));
        let copies: Vec<String> =
            receiver.hops.iter().filter_map(|hop| made_by(hop, shares)).collect();
        let dropped = receiver.hops.iter().any(|hop| hop.movement == Movement::Discarded);
        let what = match (copies.is_empty(), dropped) {
            (false, _) => list(&copies),
            (true, true) => "no receive copy, and no program has the bytes".to_owned(),
            (true, false) => "no receive copy".to_owned(),
        };
        format!("Received with {}: {what}.", receiver.id)
    };
    known.iter().map(sentence).collect()
}

/// `the kernel from user memory to socket buffer (skb_copy_to_page_nocache)`;
/// nothing where only a reference moves.
fn made_by(hop: &Hop, shares: Shares) -> Option<String> {
    let who = match (hop.mover, hop.end) {
        (Mover::User, _) => "user code",
        (Mover::Kernel, End::Sender) => "the kernel",
        (Mover::Kernel, End::Receiver) => "the kernel for the receiver",
        (Mover::Device, _) => return None,
    };
    let when = match hop.movement {
        Movement::Reference | Movement::Discarded => return None,
        Movement::Copy => String::new(),
        Movement::LateCopy => shares.late.map_or_else(
            || ", late, share not measured".to_owned(),
            |share| format!(", late, {} of completions", arms::share(share)),
        ),
        Movement::Mapped => shares.mapped.map_or_else(
            || ", as far as pages did not map, share not measured".to_owned(),
            |share| format!(", as far as pages did not map: {} mapped", arms::share(share)),
        ),
    };
    Some(format!("{who} from {} to {} ({}{when})", hop.from, hop.to, hop.function))
}

/// What the copy costs that the iovec removes, where it shows best: at the
/// largest size with the fewest threads.
fn removed(run: &Run, analysis: &Analysis) -> String {
    let best = |copy: &&RemovedCopy| (copy.cell.size, Reverse(copy.cell.threads));
    let Some(copy) = analysis.removed_copies.iter().max_by_key(best) else {
        return "What the copy costs that an iovec removes cannot be told here: that takes \
                send_staged, sendmsg_iov and memcpy in one cell."
            .to_owned();
    };
    let gather = arms::path(run, "send_staged", arms::receiver(run)).and_then(|path| {
        let hop = path.hops.iter().find(|hop| hop.mover == Mover::User)?;
        Some(format!(", from {} to {}", hop.from, hop.to))
    });
    let difference = &copy.staged_less_iov_ns_per_byte;
    let doubt = match difference.interval {
        Some(i) if i.contains(0.0) => "; the interval includes 0, so no saving is certain there",
        Some(i) if i.high < 0.0 => "; so there the iovec costs more than the copy it removes",
        _ => "",
    };
    format!(
        "The iovec removes the copy by user code{}: at {}, send_staged less sendmsg_iov is {}, \
         and a memcpy of the same bytes alone takes {}{doubt}.",
        gather.unwrap_or_default(),
        words::subject(&run.header, &copy.cell),
        measured(difference, "ns per byte"),
        measured(&copy.memcpy_ns_per_byte, "ns per byte"),
    )
}

/// What the iovec costs beyond the copy it saves, where that copy is smallest:
/// at the smallest size with the fewest threads.
fn iovec_itself(run: &Run, analysis: &Analysis) -> Option<String> {
    let smallest = |copy: &&RemovedCopy| (copy.cell.size, copy.cell.threads);
    let copy = analysis.removed_copies.iter().min_by_key(smallest)?;
    let bytes = copy.cell.size.0 as f64;
    let saved = &copy.staged_less_iov_ns_per_byte;
    let per_message = Estimate {
        value: -saved.value * bytes,
        interval: saved.interval.map(|i| Interval { low: -i.high * bytes, high: -i.low * bytes }),
        n: saved.n,
    };
    let meaning = match per_message.interval {
        Some(i) if i.low > 0.0 => {
            "that is what handing over an iovec costs beyond the small copy it saves there"
        }
        Some(i) if i.high < 0.0 => "so even there the iovec costs less than the copy",
        _ => "so its cost and the small copy it saves there are not told apart",
    };
    Some(format!(
        "The iovec itself: at {}, sendmsg_iov less send_staged is {}; {meaning}.",
        words::subject(&run.header, &copy.cell),
        measured(&per_message, "ns per message")
    ))
}

fn line(run: &Run, copy: &RemovedCopy) -> String {
    format!(
        "{}: send_staged less sendmsg_iov {}; memcpy {}",
        words::subject(&run.header, &copy.cell),
        measured(&copy.staged_less_iov_ns_per_byte, "ns per byte"),
        measured(&copy.memcpy_ns_per_byte, "ns per byte")
    )
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Topology;

    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn data_paths_and_the_removed_copy_answer_it() {
        let (run, analysis) = findings();
        let Outcome::Answered { sentences, evidence } = outcome(&run, &analysis) else {
            panic!("decidable")
        };
        assert_eq!(
            sentences[0],
            "send_staged: 2 copies of each byte at the sender, 3 end to end: user code from \
             fields to staging buffer (memcpy), the kernel from user memory to socket buffer \
             (skb_copy_to_page_nocache) and the kernel for the receiver from socket buffer to \
             receiver's buffer (skb_copy_datagram_iter)."
        );
        assert!(sentences[2].contains("late, 100 % of completions"), "{}", sentences[2]);
        assert!(sentences[3].contains("0.0620 ns per byte (95 % interval 0.0580 to 0.0660"));
        assert_eq!(evidence.len(), analysis.removed_copies.len());
    }

    #[test]
    fn a_path_that_ends_at_a_device_is_told_from_the_others() {
        let (mut run, _) = findings();
        assert_eq!(without_receiver(&run), None);
        run.header.plan.net_mut().unwrap().topologies = vec![Topology::Veth, Topology::Sink];
        assert!(without_receiver(&run).is_some_and(|text| text.starts_with("On sink")));
        // Then the paths themselves are those into the device.
        run.header.plan.net_mut().unwrap().topologies = vec![Topology::Sink];
        assert_eq!(without_receiver(&run), None);
    }

    #[test]
    fn without_data_paths_nothing_is_said() {
        let (mut run, analysis) = findings();
        run.header.primitives.clear();
        assert!(matches!(outcome(&run, &analysis), Outcome::NotDecidable { .. }));
    }
}
