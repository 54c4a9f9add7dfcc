//! The axes that most plans leave alone: their values, and what cannot be.

use iolens_model::axes::{IpVersion, Mode, Study, Topology};
use iolens_model::tuning::{ChangedAxis, Concern, Tuning, TuningAxes};
use iolens_model::with_tuning_fields;
use iolens_net::entry::Entry;
use iolens_net::registry;

use crate::axes::{self, Wishes};
use crate::failure::{Failure, usage};

/// Of every socket unless another one is asked for: it does not pace, and every
/// user may have it.
pub(crate) const CONGESTION: &str = "reno";

/// Smallest MTU that IPv6 goes over: RFC 8200, section 5.
const IPV6_MTU_MIN: u32 = 1280;

/// What of a plan decides which of these axes mean anything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) primitives: &'a [String],
    pub(super) baseline: &'a str,
    pub(super) topologies: &'a [Topology],
    pub(super) modes: &'a [Mode],
}

macro_rules! between_wishes_and_axes {
    ($($field:ident)+) => {
        fn asked_for(asked: &Wishes) -> TuningAxes {
            let usual = TuningAxes::default();
            TuningAxes {
                $($field: asked.$field.clone().unwrap_or(usual.$field),)+
            }
        }

        /// What a plan states of these axes.
        pub(super) fn wishes(axes: &TuningAxes) -> Wishes {
            Wishes { $($field: Some(axes.$field.clone()),)+ ..Wishes::default() }
        }
    };
}

with_tuning_fields!(between_wishes_and_axes);

/// The axes. What nothing in the plan makes use of is refused or, where it does no harm, said.
pub(super) fn axes(
    asked: &Wishes,
    setting: Setting<'_>,
    notes: &mut Vec<String>,
) -> Result<TuningAxes, Failure> {
    let axes = asked_for(asked);
    check_mtu(&axes)?;
    for changed in axes.changed() {
        let flag = flag(changed.field);
        match changed.concern {
            Concern::Every => {}
            Concern::Veth if setting.topologies.contains(&Topology::Veth) => {}
            Concern::Veth => notes.push(format!("{flag} has no effect without --network veth")),
            Concern::Receiver if setting.topologies.iter().any(|one| one.has_receiver()) => {}
            Concern::Receiver => notes
                .push(format!("{flag} has no effect with --network sink, which has no receiver")),
            Concern::Polled if setting.topologies.iter().any(|one| one.can_be_polled()) => {}
            Concern::Polled => notes
                .push(format!("{flag} has no effect without --network veth or another machine")),
            Concern::Completions => {
                let what = "reads completions with calls of its own";
                concerned(&changed, what, Entry::reads_completions, setting, notes)?;
            }
            Concern::Rings => {
                concerned(&changed, "sends through a ring", Entry::uses_a_ring, setting, notes)?;
            }
        }
    }
    let usual = Tuning::DEFAULT;
    if axes.uring_batch != [usual.uring_batch] || axes.uring_depth != [usual.uring_depth] {
        check_rings(&axes, setting)?;
    }
    Ok(axes)
}

/// What the study calls a field.
fn flag(field: &str) -> String {
    let flag = axes::find(field).and_then(|axis| axis.flag(Study::Net));
    format!("--{}", flag.unwrap_or(field))
}

fn check_mtu(axes: &TuningAxes) -> Result<(), Failure> {
    let too_small = axes.mtu_bytes.iter().flatten().find(|&&mtu| mtu < IPV6_MTU_MIN);
    match too_small.filter(|_| axes.ip.contains(&IpVersion::V6)) {
        Some(mtu) => Err(usage!(
            "an MTU of {mtu} is too small for IPv6\n  the smallest is {IPV6_MTU_MIN} (RFC 8200)"
        )),
        None => Ok(()),
    }
}

/// Refuses an axis that concerns no arm, and says which arms it concerns where
/// others have several cells of the same.
fn concerned(
    changed: &ChangedAxis,
    what: &str,
    is_concerned: fn(&Entry) -> bool,
    setting: Setting<'_>,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let flag = flag(changed.field);
    let is_one = |id: &&String| registry::find(id).is_some_and(is_concerned);
    let (own, others): (Vec<&String>, Vec<&String>) = setting.primitives.iter().partition(is_one);
    if own.is_empty() {
        let known: Vec<&str> = registry::REGISTRY
            .iter()
            .filter(|entry| is_concerned(entry) && !entry.hidden)
            .map(|entry| entry.id)
            .collect();
        return Err(usage!(
            "{flag} has no effect here: no method {what}\n  leave it out, or add one of these to \
             --methods: {}",
            known.join(", ")
        ));
    }
    if changed.values > 1 && others.iter().any(|id| **id != setting.baseline) {
        let own: Vec<&str> = own.into_iter().map(String::as_str).collect();
        notes.push(format!(
            "{flag} concerns {} alone: the other methods do the same in each of its settings",
            own.join(", ")
        ));
    }
    Ok(())
}

/// Which batches can be under way on what.
fn check_rings(axes: &TuningAxes, setting: Setting<'_>) -> Result<(), Failure> {
    if setting.modes.contains(&Mode::Rr) {
        return Err(Failure::usage(
            "--uring-batch does not apply to --mode rr, where each request has one message for an \
             answer\n  use --mode stream",
        ));
    }
    let pairs = axes.uring_batch.iter().flat_map(|&uring_batch| {
        let depths = axes.uring_depth.iter();
        depths.map(move |&uring_depth| Tuning { uring_depth, uring_batch, ..Tuning::DEFAULT })
    });
    let stream = setting.topologies.iter().find(|topology| topology.has_receiver());
    for tuning in pairs {
        let (depth, batch) = (tuning.ring_depth(), tuning.uring_batch);
        if depth < batch {
            return Err(usage!(
                "--uring-depth {depth} is less than --uring-batch {batch}, which one call submits\n  \
                 use {batch} or more, or leave it out"
            ));
        }
        if let Some(topology) = stream.filter(|_| depth != batch) {
            return Err(usage!(
                "on TCP ({topology}), --uring-depth must equal --uring-batch, because linked sends \
                 complete as one\n  drop --uring-depth, or use --network sink"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::request::tests::{planned, request};

    const RINGS: &str = "--methods send_staged,uring_send";

    #[test]
    fn each_value_of_an_axis_makes_a_cell() {
        let cells = |line: &str| {
            let line = format!("--sizes 1KiB --threads 1 --network loopback {line}");
            let plan = planned(&line).unwrap();
            plan.cells().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let plain = "1 KiB × 1 thread, loopback, stream, hot";
        let expected = |further: &[&str]| -> Vec<String> {
            further.iter().map(|word| format!("{plain}{word}")).collect()
        };
        let arms = "--methods send_staged,sendmsg_zerocopy";
        assert_eq!(cells(arms), expected(&[""]));
        let fields = cells(&format!("{arms} --fields 1,2,8,64"));
        assert_eq!(fields, expected(&[", 1 field", ", 2 fields", "", ", 64 fields"]));
        assert_eq!(cells(&format!("{arms} --ip ipv4,ipv6")), expected(&["", ", ipv6"]));
        let reap = cells(&format!("{arms} --reap-batch needed,1"));
        assert_eq!(reap, expected(&["", ", reap batch 1"]));
        let sizes = cells(&format!("{arms} --socket-buffer 64KiB --recv-size 4KiB,128KiB"));
        let buffer = ", socket buffer 64 KiB";
        let first = format!("{buffer}, receive size 4 KiB");
        assert_eq!(sizes, expected(&[&first, buffer]));
        let rings = cells(&format!("{RINGS} --uring-batch 1,4"));
        assert_eq!(rings, expected(&["", ", io_uring batch 4"]));
    }

    #[test]
    fn what_does_not_apply_makes_no_cells() {
        let mtus = "--sizes 1KiB --threads 1 --mtu 1500,9000";
        let loopback = request(&format!("{mtus} --network loopback")).unwrap();
        assert_eq!((loopback.plan.cells().len(), loopback.notes.len()), (1, 1));
        let sink = "--sizes 1KiB --threads 1 --methods send --network sink";
        let sink = request(&format!("{sink} --recv-size 4KiB,64KiB")).unwrap();
        assert_eq!(sink.plan.cells().len(), 1);
        assert_eq!(
            sink.notes,
            ["--recv-size has no effect with --network sink, which has no receiver"]
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        let check = |line: &str, expect: &str| {
            let error = planned(line).unwrap_err();
            assert!(error.contains(expect), "{line}: {error}");
        };
        let none = "--methods send_staged,send";
        check(&format!("{none} --uring-batch 4"), "no method sends through a ring\n  leave it out");
        check(&format!("{none} --uring-depth 4"), "--uring-depth has no effect here");
        check(&format!("{RINGS} --reap-batch 4"), "no method reads completions");
        check(&format!("{RINGS} --uring-batch 4 --mode stream,rr"), "does not apply to --mode rr");
        check(&format!("{RINGS} --uring-batch 4 --uring-depth 2"), "is less than --uring-batch 4");
        check(&format!("{RINGS} --uring-depth 4"), "linked sends complete as one");
        check("--ip ipv4,ipv6 --mtu 1000,1500", "an MTU of 1000 is too small for IPv6");
        let sink = "--methods uring_send --network sink --sizes 1KiB --threads 1";
        let deep = planned(&format!("{sink} --uring-batch 1,4 --uring-depth 4,16")).unwrap();
        assert_eq!(deep.cells().len(), 4);
    }

    #[test]
    fn arms_that_an_axis_does_not_concern_are_said() {
        let notes = |line: &str| request(&format!("--network loopback {line}")).unwrap().notes;
        let others = notes("--methods send_staged,uring_send,send --uring-batch 1,4");
        assert!(others[0].starts_with("--uring-batch concerns uring_send alone"), "{others:?}");
        assert!(notes(&format!("{RINGS} --uring-batch 1,4")).is_empty());
    }
}
