//! The axes that most plans leave alone: their values, and what cannot be.

use iolens_engine::registry::{self, Entry};
use iolens_model::axes::{IpVersion, Mode, Topology};
use iolens_model::plan::{BatchAxes, NetworkAxes, SocketAxes};
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;

use crate::axes::Wishes;
use crate::failure::Failure;
use crate::values::List;

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

fn listed<T>(asked: Option<List<T>>, default: T) -> Vec<T> {
    asked.map_or_else(|| vec![default], |List(values)| values)
}

/// The networks. What the topologies make no use of is said.
pub(super) fn network(
    asked: &Wishes,
    topologies: &[Topology],
    notes: &mut Vec<String>,
) -> Result<NetworkAxes, Failure> {
    let default = NetworkAxes::default();
    let network = NetworkAxes {
        ip: asked.ip.clone().map_or(default.ip, |list| list.0),
        mtu_bytes: asked.mtu.clone().map_or(default.mtu_bytes.clone(), |list| list.0),
    };
    let too_small = network.mtu_bytes.iter().find(|&&mtu| mtu < IPV6_MTU_MIN);
    if let Some(mtu) = too_small.filter(|_| network.ip.contains(&IpVersion::V6)) {
        return Err(Failure::usage(format!(
            "an MTU of {mtu} is too small for IPv6\n  the smallest is {IPV6_MTU_MIN} (RFC 8200)"
        )));
    }
    if !topologies.contains(&Topology::Veth) && network.mtu_bytes != default.mtu_bytes {
        notes.push("--mtu has no effect without --network veth".to_owned());
    }
    Ok(network)
}

/// The socket settings.
pub(super) fn socket(
    asked: &Wishes,
    topologies: &[Topology],
    notes: &mut Vec<String>,
) -> SocketAxes {
    let default = Tuning::DEFAULT.receive_size.unwrap_or(Bytes(1));
    let receive_bytes = listed(asked.recv_size.clone(), default);
    if !topologies.iter().any(|topology| topology.has_receiver()) && receive_bytes != [default] {
        notes.push(
            "--recv-size has no effect with --network sink, which has no receiver".to_owned(),
        );
    }
    SocketAxes {
        congestion: asked.congestion.clone().unwrap_or_else(|| CONGESTION.to_owned()),
        buffer_bytes: listed(asked.socket_buffer.clone(), Tuning::DEFAULT.socket_buffer),
        nodelay: true,
        receive_bytes,
    }
}

/// The batches, which concern few arms.
pub(super) fn batches(
    asked: &Wishes,
    setting: Setting<'_>,
    notes: &mut Vec<String>,
) -> Result<BatchAxes, Failure> {
    let Tuning { reap_batch, uring_batch, .. } = Tuning::DEFAULT;
    let batches = BatchAxes {
        reap_batch: listed(asked.reap_batch.clone(), reap_batch),
        uring_batch: listed(asked.uring_batch.clone(), uring_batch),
        uring_depth: asked.uring_depth.clone().map_or(Vec::new(), |list| list.0),
    };
    let default = BatchAxes::default();
    if batches.reap_batch != default.reap_batch {
        let what = "reads completions with calls of its own";
        let cells = batches.reap_batch.len();
        concerned("--reap-batch", cells, what, Entry::reads_completions, setting, notes)?;
    }
    if batches.uring_batch != default.uring_batch
        || ![&[][..], &[1]].contains(&&batches.uring_depth[..])
    {
        let flag = if asked.uring_batch.is_some() { "--uring-batch" } else { "--uring-depth" };
        let cells = batches.uring_batch.len() * batches.uring_depth.len().max(1);
        concerned(flag, cells, "sends through a ring", Entry::uses_a_ring, setting, notes)?;
        check_rings(&batches, setting)?;
    }
    Ok(batches)
}

/// Refuses an axis that concerns no arm, and says which arms it concerns where
/// others have several cells of the same.
fn concerned(
    flag: &str,
    cells: usize,
    what: &str,
    is_concerned: fn(&Entry) -> bool,
    setting: Setting<'_>,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let is_one = |id: &&String| registry::find(id).is_some_and(is_concerned);
    let (own, others): (Vec<&String>, Vec<&String>) = setting.primitives.iter().partition(is_one);
    if own.is_empty() {
        let known: Vec<&str> = registry::REGISTRY
            .iter()
            .filter(|entry| is_concerned(entry) && !entry.hidden)
            .map(|entry| entry.id)
            .collect();
        return Err(Failure::usage(format!(
            "{flag} has no effect here: no arm {what}\n  leave it out, or add of --methods: {}",
            known.join(", ")
        )));
    }
    if cells > 1 && others.iter().any(|id| **id != setting.baseline) {
        let own: Vec<&str> = own.into_iter().map(String::as_str).collect();
        notes.push(format!(
            "{flag} concerns {} alone: the other arms do the same in each of its cells",
            own.join(", ")
        ));
    }
    Ok(())
}

/// Which batches can be under way on what.
fn check_rings(batches: &BatchAxes, setting: Setting<'_>) -> Result<(), Failure> {
    if setting.modes.contains(&Mode::Rr) {
        return Err(Failure::usage(
            "--uring-batch does not apply to --mode rr, where each request has one message for an \
             answer\n  use --mode stream",
        ));
    }
    let pairs = batches.uring_batch.iter().flat_map(|&batch| {
        let depths = &batches.uring_depth;
        depths.iter().map(move |&depth| (depth, batch))
    });
    let stream = setting.topologies.iter().find(|topology| topology.has_receiver());
    for (depth, batch) in pairs {
        if depth < batch {
            return Err(Failure::usage(format!(
                "--uring-depth {depth} is less than --uring-batch {batch}, which one call submits\n  \
                 use {batch} or more, or leave it out"
            )));
        }
        if let Some(topology) = stream.filter(|_| depth != batch) {
            return Err(Failure::usage(format!(
                "on TCP ({topology}), --uring-depth must equal --uring-batch, because linked sends \
                 complete as one\n  drop --uring-depth, or use --network sink"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{planned, request};

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
        check(&format!("{none} --uring-batch 4"), "no arm sends through a ring\n  leave it out");
        check(&format!("{none} --uring-depth 4"), "--uring-depth has no effect here");
        check(&format!("{RINGS} --reap-batch 4"), "no arm reads completions");
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
