//! A plan of the study `net`.

use iolens_engine::{receivers, registry};
use iolens_model::axes::{Iovec, IpVersion, Mode, Topology};
use iolens_model::cell::NetSetting;
use iolens_model::family::Family;
use iolens_model::plan::{Axes, NetAxes, NetworkOptions, Schedule};
use iolens_model::units::Bytes;

use super::{ALL, Available, Chosen, Request, schedule, stands, stated, tuning};
use crate::axes::Wishes;
use crate::failure::Failure;
use crate::values::{Stand, unknown};

/// The baseline of the study, unless another one is named.
pub(super) const BASELINE: &str = "send_staged";

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64, available: Available<'_>) -> Result<Request, Failure> {
    let (mut primitives, baseline) = arms(&asked)?;
    let schedule = schedule(&asked);
    let modes = stated(asked.mode.clone(), "mode")?;
    check_modes(&modes, &schedule)?;
    let mut notes = Vec::new();
    let stands = stated(asked.network.clone(), "network")?;
    let topologies = stands::topologies(&stands, available, &mut notes)?;
    let setting = tuning::Setting {
        primitives: &primitives,
        baseline: &baseline,
        topologies: &topologies,
        modes: &modes,
    };
    let tuning = tuning::axes(&asked, setting, &mut notes)?;
    let sizes = stated(asked.sizes.clone(), "sizes")?;
    if topologies.contains(&Topology::Sink) {
        let named = |id: &String| asked.methods.iter().any(|words| words.contains(id));
        leave_out_of_sink(&mut primitives, &named, &mut notes);
        check_sink(&primitives, &sizes, &modes, &tuning.ip)?;
    }
    let axes = NetAxes {
        topologies,
        modes,
        working_sets: stated(asked.send_memory.clone(), "send_memory")?,
        fields: asked.fields.clone().unwrap_or(vec![NetSetting::FIELDS]),
        iovec: asked.iovec.clone().unwrap_or(vec![Iovec::PerMessage]),
        receivers: receivers(asked.receivers.clone())?,
        congestion: asked.congestion.clone().unwrap_or_else(|| tuning::CONGESTION.to_owned()),
        tuning,
        allow_sysctl: asked.allow_sysctl,
        direction: asked.local_end.unwrap_or_default(),
    };
    let chosen = Chosen { axes: Axes::Net(axes), primitives, baseline, sizes, schedule };
    Ok(Request { plan: chosen.plan(&asked, seed)?, name: asked.name, notes })
}

/// What a plan states of these axes.
pub(super) fn wishes(net: &NetAxes) -> Wishes {
    let stands = net.topologies.iter().map(|&topology| Stand::At(topology)).collect();
    let apart = net.topologies.iter().any(|topology| topology.is_apart());
    Wishes {
        network: Some(stands),
        mode: Some(net.modes.clone()),
        send_memory: Some(net.working_sets.clone()),
        receivers: Some(net.receivers.clone()),
        fields: Some(net.fields.clone()),
        iovec: Some(net.iovec.clone()),
        local_end: apart.then_some(net.direction),
        congestion: Some(net.congestion.clone()),
        allow_sysctl: net.allow_sysctl,
        ..tuning::wishes(&net.tuning)
    }
}

/// The arms and the baseline. The baseline is always measured; a single
/// primitive is its own.
fn arms(asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let listed = selected(&stated(asked.methods.clone(), "methods")?)?;
    if let Some(id) = &asked.baseline {
        known_primitive(id).map_err(Failure::usage)?;
    }
    let baseline = match (&asked.baseline, &listed[..]) {
        (Some(id), _) => id.clone(),
        (None, [single]) => single.clone(),
        (None, _) => BASELINE.to_owned(),
    };
    if registry::find(&baseline).is_some_and(|entry| entry.control) {
        return Err(Failure::usage(format!(
            "`{baseline}` cannot be the baseline: it is a control, which sends nothing\n  \
             name one that sends with --baseline, such as {BASELINE}"
        )));
    }
    let others = listed.into_iter().filter(|id| *id != baseline);
    Ok((std::iter::once(baseline.clone()).chain(others).collect(), baseline))
}

/// The primitives of a list of ids and families, in its order, each once; a
/// family stands for those of it that are shown, `all` for every family.
fn selected(words: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for word in words {
        let of_family = |family| registry::of_family(family).map(|entry| entry.id.to_owned());
        let found: Vec<String> = match Family::find(word) {
            _ if word == ALL => Family::ALL.into_iter().flat_map(of_family).collect(),
            Some(family) => of_family(family).collect(),
            None => {
                known_primitive(word).map_err(Failure::usage)?;
                vec![word.clone()]
            }
        };
        let new: Vec<String> = found.into_iter().filter(|id| !ids.contains(id)).collect();
        ids.extend(new);
    }
    Ok(ids)
}

/// Where all of them are.
const LISTED: &str = "`iolens list methods` shows all of them";

/// The primitive of an id, where a command takes one.
pub(crate) fn one_primitive(id: &str) -> Result<&'static registry::Entry, String> {
    primitive(id, || LISTED.to_owned())
}

fn primitive(
    id: &str,
    advice: impl FnOnce() -> String,
) -> Result<&'static registry::Entry, String> {
    registry::find(id).ok_or_else(|| {
        let shown = registry::REGISTRY.iter().filter(|entry| !entry.hidden);
        let known: Vec<&str> = shown.map(|entry| entry.id).collect();
        unknown("method", id, &known, &advice())
    })
}

/// The same where `--methods` takes it, and families.
fn known_primitive(id: &str) -> Result<&'static registry::Entry, String> {
    primitive(id, families)
}

fn families() -> String {
    let families: Vec<&str> = Family::ALL
        .into_iter()
        .filter(|family| registry::of_family(*family).next().is_some())
        .map(Family::id)
        .collect();
    format!("{LISTED}; --methods takes families too: {}, {ALL}", families.join(", "))
}

/// Whether a word may stand in `primitives`: an id, a family, or all of them.
fn selects(word: &str) -> Result<(), String> {
    if word == ALL || Family::find(word).is_some() {
        return Ok(());
    }
    known_primitive(word).map(|_| ())
}

/// Whether there is such an id under a field.
pub(super) fn known(field: &str, id: &str) -> Result<(), String> {
    match field {
        "receivers" => known_receiver(id).map(|_| ()),
        "methods" => selects(id),
        _ => known_primitive(id).map(|_| ()),
    }
}

/// The receivers, each of which works here.
fn receivers(asked: Option<Vec<String>>) -> Result<Vec<String>, Failure> {
    let ids = asked.unwrap_or_else(|| vec![NetSetting::RECEIVER.to_owned()]);
    for id in &ids {
        let entry = known_receiver(id).map_err(Failure::usage)?;
        entry
            .try_here()
            .map_err(|why| Failure::unusable(format!("cannot receive with {id} here: {why}")))?;
    }
    Ok(ids)
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
    Err(Failure::usage(format!(
        "{way} does not apply to --mode rr, which waits for a response to every request\n  leave \
         {way} out, or use --mode stream"
    )))
}

/// Whether a message of a primitive can be one datagram.
pub(super) fn fits_sink(id: &str) -> bool {
    registry::find(id).is_some_and(|entry| entry.fits(Topology::Sink).is_ok())
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
            return Err(Failure::usage(format!(
                "a message of {size} is too large for --network sink, where each is one UDP \
                 datagram: the largest over {ip} has {} bytes\n  use smaller --sizes, such as \
                 1KiB..64000, or another network",
                largest.0
            )));
        }
    }
    let refused = primitives
        .iter()
        .find_map(|id| Some((id, registry::find(id)?.fits(Topology::Sink).err()?)));
    if let Some((id, why)) = refused {
        let shown = registry::REGISTRY.iter().filter(|entry| entry.datagrams && !entry.hidden);
        let known: Vec<&str> = shown.map(|entry| entry.id).collect();
        return Err(Failure::usage(format!(
            "`{id}` cannot be used with --network sink: {why}\n  use another network, or of \
             --methods: {}",
            known.join(", ")
        )));
    }
    Ok(())
}
