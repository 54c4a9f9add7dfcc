//! The study `net`.

use iolens_model::axes::{Direction, Iovec, IpVersion, Mode, Study, Topology};
use iolens_model::cell::NetSetting;
use iolens_model::family::Family;
use iolens_model::plan::{Axes, NetAxes, NetworkOptions, Schedule};
use iolens_model::tuning::TuningAxes;
use iolens_model::units::Bytes;
use iolens_net::entry::Entry;
use iolens_net::{receivers, registry};

use super::wished::{self, AsWished, at, axes_and_wishes, check_turns, stated, topologies};
use super::{ArmChoice, DISCARDED_ROUNDS, Draft, Programs, SLICE, StudySpec, tuning};
use crate::axes::Wishes;
use crate::failure::{Failure, unusable, usage};
use crate::values::server::OF_SENDERS;
use crate::values::{Stand, unknown};

pub(super) static NET: StudySpec = StudySpec {
    study: Study::Net,
    summary: "Send a message over a socket: copy, iovec, zero-copy, io_uring",
    about: "Compare ways to send a message over a socket",
    examples: "\
Examples:
  iolens run net --quick
  iolens run net --sizes 4KiB..1MiB --threads 1,2,4
  iolens run net --methods classic,io_uring --network loopback
  iolens run net --peer 'ssh user@host'",
    footer: None,
    quick: "quick",
    arms: || ArmChoice {
        what: "method",
        baseline: "send_staged",
        ids: shown_methods(),
        find: |id| registry::find(id).map(|entry| entry.id),
        group: |word| Family::find(word).map(of_family),
        control: |id| {
            let entry = registry::find(id).filter(|entry| entry.control);
            entry.map(|_| "is a control, which sends nothing")
        },
        is_alone: false,
        does: "sends",
        advice: families(),
    },
    textbook: &[
        ("two-copy", "send_staged"),
        ("one-copy", "sendmsg_iov"),
        ("zero-copy", "sendmsg_zerocopy"),
        ("a1", "send_staged"),
        ("a2", "sendmsg_iov"),
        ("a3", "sendmsg_zerocopy"),
    ],
    programs: Some(Programs { told: |_| OF_SENDERS, are_listed: false }),
    slices: (SLICE, DISCARDED_ROUNDS),
    fit,
    sizes: wished::sizes,
    axes,
    wishes: |plan| plan.net().map(wishes).unwrap_or_default(),
    lay_out: |_, _, _| (),
};

/// Those that are shown, by family.
fn shown_methods() -> Vec<&'static str> {
    Family::ALL.iter().copied().flat_map(of_family).collect()
}

fn of_family(family: Family) -> Vec<&'static str> {
    registry::of_family(family).map(|entry| entry.id).collect()
}

/// Where all of them are.
const LISTED: &str = "`iolens list methods` shows all of them";

fn families() -> String {
    let filled = Family::ALL.iter().copied().filter(|&family| !of_family(family).is_empty());
    let words: Vec<&str> = filled.map(Family::word).collect();
    format!("{LISTED}; --methods takes families too: {}, all", words.join(", "))
}

/// The method of an id, where a command takes one.
pub(crate) fn known_method(id: &str) -> Result<&'static Entry, String> {
    registry::find(id).ok_or_else(|| unknown("method", id, &shown_methods(), LISTED))
}

/// The axes of these wishes; of the arms, those that a sink cannot take stay at home.
fn axes(draft: Draft<'_>) -> Result<Axes, Failure> {
    let Draft { asked, schedule, available, baseline, arms: primitives, notes } = draft;
    let modes = stated(&asked.mode, "mode")?;
    check_modes(&modes, schedule)?;
    let topologies = topologies(asked, available, notes)?;
    check_programs(asked, &topologies, &modes, schedule)?;
    let (topologies_of, modes_of) = (&topologies[..], &modes[..]);
    let setting =
        tuning::Setting { primitives, baseline, topologies: topologies_of, modes: modes_of };
    let tuning = tuning::axes(asked, setting, notes)?;
    if topologies.contains(&Topology::Sink) {
        let named = |id: &String| asked.methods.iter().any(|words| words.contains(id));
        leave_out_of_sink(primitives, &named, notes);
        check_sink(primitives, &stated(&asked.sizes, "sizes")?, &modes, &tuning.ip)?;
    }
    let axes = NetAxes::asked_for(asked, (topologies, tuning))?;
    check_receivers(&axes.receivers).map(|()| Axes::Net(axes))
}

axes_and_wishes! {
    NetAxes {
        modes: must mode;
        working_sets: must send_memory;
        fields: may fields vec![NetSetting::FIELDS];
        iovec: may iovec vec![Iovec::PerMessage];
        receivers: may receivers vec![NetSetting::RECEIVER.to_owned()];
        congestion: may congestion tuning::CONGESTION.to_owned();
        allow_sysctl: same allow_sysctl;
        direction: may local_end Direction::default();
        external: same external;
        external_loop: same external_loop;
    } given topologies: Vec<Topology>, tuning: TuningAxes
}

/// What a plan states of these axes.
fn wishes(net: &NetAxes) -> Wishes {
    let apart = net.topologies.iter().any(|topology| topology.is_apart());
    let own = net.stated();
    let local_end = own.local_end.filter(|_| apart);
    let network = at(&net.topologies);
    Wishes { network, local_end, ..own.or(tuning::wishes(&net.tuning)) }
}

/// Refuses receivers that do not work here.
fn check_receivers(ids: &[String]) -> Result<(), Failure> {
    for id in ids {
        let entry = known_receiver(id).map_err(Failure::usage)?;
        entry.try_here().map_err(|why| unusable!("cannot receive with {id} here: {why}"))?;
    }
    Ok(())
}

pub(crate) fn known_receiver(id: &str) -> Result<&'static receivers::Entry, String> {
    receivers::find(id).ok_or_else(|| {
        let known: Vec<&str> = receivers::RECEIVERS.iter().map(|entry| entry.id).collect();
        unknown("receiver", id, &known, "`iolens list receivers` shows all of them")
    })
}

fn check_modes(modes: &[Mode], schedule: &Schedule) -> Result<(), Failure> {
    let way = match schedule {
        Schedule::Window { .. } => "--sequential-time",
        Schedule::Messages { .. } => "--sequential-messages",
        Schedule::Slices { .. } => return Ok(()),
    };
    if !modes.contains(&Mode::Rr) {
        return Ok(());
    }
    Err(usage!(
        "{way} does not apply to --mode rr, which waits for a response to every request\n  leave \
         {way} out, or use --mode stream"
    ))
}

/// Refuses programs of the user's where they could not be measured as what they are.
fn check_programs(
    asked: &Wishes,
    topologies: &[Topology],
    modes: &[Mode],
    schedule: &Schedule,
) -> Result<(), Failure> {
    let Some(program) = asked.external.first() else {
        return match asked.external_loop {
            false => Ok(()),
            true => Err(Failure::usage(
                "--loop says how programs of yours are asked, and there is none\n  name one with \
                 --external, or leave it out",
            )),
        };
    };
    let receivers = asked.receivers.as_deref().unwrap_or_default();
    let refused = |option: &str, why: &str, advice: &str| {
        Err(usage!("--external {} does not apply to {option}: {why}\n  {advice}", program.name))
    };
    check_turns(asked, schedule)?;
    if modes.contains(&Mode::Rr) {
        return refused("--mode rr", "nobody asks a program for messages", "use --mode stream");
    }
    if topologies.iter().any(|topology| !matches!(topology, Topology::Loopback | Topology::Veth)) {
        let why = "its bytes are counted where they arrive, on this machine";
        return refused("--network sink and peer", why, "use --network loopback or veth");
    }
    if receivers.iter().any(|id| id != NetSetting::RECEIVER) {
        let why = format!("its bytes are received with {}", NetSetting::RECEIVER);
        return refused("--receivers", &why, "leave it out");
    }
    Ok(())
}

/// Whether a message of a primitive can be one datagram.
pub(crate) fn fits_sink(id: &str) -> bool {
    registry::find(id).is_some_and(|entry| entry.fits(Topology::Sink).is_ok())
}

/// Leaves default sizes out that a sink cannot take; one that was asked for is refused
/// ([`check_sink`]).
fn fit(asked: &Wishes, default: &mut Wishes) -> Result<(), Failure> {
    if asked.network.as_ref().is_some_and(|at| at.contains(&Stand::At(Topology::Sink))) {
        let largest = [IpVersion::V4, IpVersion::V6]
            .map(|ip| NetworkOptions { ip, ..NetworkOptions::default() }.datagram_max());
        let fits = |size: &Bytes| largest.iter().all(|largest| size <= largest);
        default.sizes.iter_mut().for_each(|sizes| sizes.retain(fits));
    }
    Ok(())
}

/// What a family brought along that a sink cannot take stays at home, and is
/// said; what was named is refused ([`check_sink`]).
fn leave_out_of_sink(
    primitives: &mut Vec<String>,
    named: &dyn Fn(&String) -> bool,
    notes: &mut Vec<String>,
) {
    let out = |id: &String| !fits_sink(id) && !named(id);
    let left_out: Vec<String> = primitives.iter().filter(|id| out(id)).cloned().collect();
    primitives.retain(|id| !out(id));
    if !left_out.is_empty() {
        notes.push(format!(
            "left out with --network sink, where a message is one UDP datagram: {}",
            left_out.join(", ")
        ));
    }
}

/// What a device that drops everything cannot show: whatever takes an answer,
/// and whatever is more than one datagram per message.
fn check_sink(
    primitives: &[String],
    sizes: &[Bytes],
    modes: &[Mode],
    versions: &[IpVersion],
) -> Result<(), Failure> {
    if modes.contains(&Mode::Rr) {
        return Err(Failure::usage(
            "--mode rr does not apply to --network sink, which drops every request\n  use --mode \
             stream, or another network",
        ));
    }
    for &ip in versions {
        let largest = NetworkOptions { ip, ..NetworkOptions::default() }.datagram_max();
        if let Some(size) = sizes.iter().find(|&&size| size > largest) {
            return Err(usage!(
                "a message of {size} is too large for --network sink, where each is one UDP \
                 datagram: the largest over {ip} has {} bytes\n  use smaller --sizes, such as \
                 1KiB..64000, or another network",
                largest.0
            ));
        }
    }
    let refused = primitives
        .iter()
        .find_map(|id| Some((id, registry::find(id)?.fits(Topology::Sink).err()?)));
    if let Some((id, why)) = refused {
        let shown = registry::REGISTRY.iter().filter(|entry| entry.datagrams && !entry.hidden);
        let known: Vec<&str> = shown.map(|entry| entry.id).collect();
        return Err(usage!(
            "`{id}` cannot be used with --network sink: {why}\n  use another network, or one of \
             these as --methods: {}",
            known.join(", ")
        ));
    }
    Ok(())
}
