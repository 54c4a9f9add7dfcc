//! A plan of the study `server`.

use iolens_engine::layout::arm_groups;
use iolens_engine::server::limits::Limits;
use iolens_engine::server::models::{self, MODELS};
use iolens_model::axes::Topology;
use iolens_model::load::{Arrivals, Length};
use iolens_model::plan::{Axes, Plan, Schedule};
use iolens_model::server::{ServerAxes, ServerSetting};
use iolens_model::units::Nanos;

use super::common::{arms_with_programs, check_external};
use super::{Available, Chosen, Request, stated, topologies};
use crate::built_in;
use crate::failure::Failure;
use crate::runner::budget_with;
use crate::values::server::OF_SERVERS;
use crate::values::unknown;
use crate::wishes::Wishes;

/// The baseline of the study, unless another one is named.
const BASELINE: &str = "epoll_lt";

/// Rounds of slices that are thrown away: connections and memory are warm after one.
const DISCARDED_ROUNDS: u32 = 1;

/// How long a slice is meant to last, and how many count, where a plan says nothing.
const SLICE: Nanos = Nanos(100_000_000);
const ROUNDS: u32 = 10;

/// Connections that may wait to be taken; the kernel has a limit of its own.
const BACKLOG: u32 = 65_535;

/// The plan of these wishes.
pub(super) fn plan(asked: Wishes, seed: u64, available: Available<'_>) -> Result<Request, Failure> {
    let (primitives, baseline) = arms(&asked)?;
    let mut notes = Vec::new();
    let stands = stated(asked.topologies.clone(), "topologies")?.0;
    let axes = ServerAxes {
        topologies: topologies(&stands, available, &mut notes)?,
        services: stated(asked.services.clone(), "services")?.0,
        lengths: asked.length.clone().map_or(vec![Length::Long], |lengths| lengths.0),
        loads: stated(asked.load.clone(), "load")?.0,
        connections: stated(asked.connections.clone(), "connections")?.0,
        arrivals: asked.arrivals.unwrap_or(Arrivals::Poisson),
        in_flight: asked.in_flight.unwrap_or(1),
        phase: stated(asked.phase, "phase")?,
        backlog: asked.backlog.unwrap_or(BACKLOG),
        client_threads: asked.client_threads,
        server_cpus: asked.server_cpus.clone().map(|cpus| cpus.0),
        client_cpus: asked.client_cpus.clone().map(|cpus| cpus.0),
        external: asked.external.clone(),
        alone_services: Vec::new(),
        alone_connections: Vec::new(),
        slo: asked.slo.clone().map_or_else(Vec::new, |slo| slo.0),
        knee: asked.knee,
    };
    check(&asked, &axes)?;
    let schedule = Schedule::Slices {
        slice: asked.slice.unwrap_or(SLICE),
        discarded_rounds: DISCARDED_ROUNDS,
        rounds: asked.rounds.unwrap_or(ROUNDS),
    };
    let axes = Axes::Server(axes);
    let chosen = Chosen { axes, primitives, baseline, sizes: Vec::new(), schedule };
    let mut plan = with_budget(chosen, &asked, seed)?;
    set_apart(&mut plan, &Limits::here(), &mut notes);
    Ok(Request { plan, name: asked.name, notes })
}

/// The plan; where no budget is stated, passes have that of the study's default, and
/// searches what they take besides.
fn with_budget(chosen: Chosen, asked: &Wishes, seed: u64) -> Result<Plan, Failure> {
    if asked.budget.is_some() {
        return chosen.plan(asked, seed);
    }
    let default = if asked.quick { built_in::SERVER_QUICK } else { built_in::SERVER };
    let default = super::built_in(default)?;
    let plan = chosen.plan(&Wishes { budget: default.budget, ..asked.clone() }, seed)?;
    let searches = iolens_stats::search::cells(&plan).len() * plan.primitives.len();
    Ok(Plan { budget: budget_with(&plan, searches), ..plan })
}

/// Has servers that may not stand beside each other in a trial measured each by itself,
/// and says of which cells that is so, and why.
fn set_apart(plan: &mut Plan, limits: &Limits, notes: &mut Vec<String>) {
    let isolated = plan.isolate;
    let others = plan.primitives.iter().find(|id| models::keeps(id)).cloned();
    // With one connection there is one process or thread of each.
    let many = |setting: &ServerSetting| setting.connections > 1;
    let (mut services, mut crowds) = (Vec::new(), Vec::new());
    for cell in plan.cells() {
        let Some(setting) = cell.server() else { continue };
        let reads_all = setting.service.starts_with("top2");
        if reads_all && many(setting) && others.is_some() && !services.contains(&setting.service) {
            services.push(setting.service.clone());
        }
        let together = arm_groups(plan, &cell).iter().map(Vec::len).max().unwrap_or(0) as u64;
        let one = limits.alone(1, setting.connections);
        let why = limits.alone(together, setting.connections).filter(|_| one.is_none());
        let why = why.filter(|_| setting.length == Length::Long);
        if let Some(why) = why
            && !crowds.iter().any(|(connections, _)| *connections == setting.connections)
        {
            crowds.push((setting.connections, why));
        }
    }
    let Axes::Server(axes) = &mut plan.axes else { return };
    if !isolated {
        for service in &services {
            notes.push(format!(
                "with {service} every server is measured by itself: it reads all of /proc, and \
                 would find the processes and threads of `{}` there",
                others.as_deref().unwrap_or_default()
            ));
        }
        for (_, why) in &crowds {
            notes.push(format!("every server is measured by itself: {why}"));
        }
    }
    axes.alone_services = services;
    axes.alone_connections = crowds.into_iter().map(|(connections, _)| connections).collect();
    let most = axes.connections.iter().copied().max().unwrap_or(0);
    let on_host = axes.topologies.contains(&Topology::Loopback);
    notes.extend(limits.beyond_backlog(most, axes.backlog).filter(|_| on_host));
}

/// Refuses what does not go together.
fn check(asked: &Wishes, axes: &ServerAxes) -> Result<(), Failure> {
    if asked.is_classic() {
        return Err(Failure::usage(
            "--window and --messages are not of the study server: --slice is how long requests are \
             offered to one server at a time, and --phase the same at a rate\n  leave them out",
        ));
    }
    if axes.topologies.contains(&Topology::Sink) {
        return Err(Failure::usage(
            "the topology sink drops all that is sent, and a server answers\n  take --topologies \
             veth or loopback",
        ));
    }
    if axes.topologies.contains(&Topology::Host) {
        return Err(Failure::usage(
            "the study server has both of its ends on this machine\n  take --topologies veth or \
             loopback; `iolens serve` and `iolens load` work between two",
        ));
    }
    if axes.in_flight > 1 && axes.lengths.contains(&Length::Short) {
        return Err(Failure::usage(format!(
            "--in-flight {} and short connections do not go together: each carries one request\n  \
             leave --in-flight out, or take --length long",
            axes.in_flight
        )));
    }
    check_external(&axes.external, |id| models::find(id).is_some(), OF_SERVERS)?;
    let (server, client) = (axes.server_cpus.as_ref(), axes.client_cpus.as_ref());
    if server.is_some() != client.is_some() {
        return Err(Failure::usage(
            "--server-cpus and --client-cpus go together: name both, or neither",
        ));
    }
    let shared = server.zip(client).and_then(|(s, c)| s.iter().find(|cpu| c.contains(cpu)));
    match shared {
        Some(cpu) => Err(Failure::usage(format!(
            "CPU {cpu} is in --server-cpus and in --client-cpus: each would wait for the other, and \
             neither cost could be told\n  name different ones"
        ))),
        None => Ok(()),
    }
}

/// The models and programs, and the baseline.
fn arms(asked: &Wishes) -> Result<(Vec<String>, String), Failure> {
    let all: Vec<&str> = MODELS.iter().map(|entry| entry.id).collect();
    let known = |id: &str| match asked.external.iter().any(|external| external.name == id) {
        true => Ok(id.to_owned()),
        false => model(id, OF_A_PLAN).map(|entry| entry.id.to_owned()),
    };
    arms_with_programs(asked, &all, known, BASELINE)
}

/// What else a plan takes for a model.
const OF_A_PLAN: &str = "; --primitives takes all of them too, and --external adds a program";

/// The model of an id, where a command takes one.
pub(crate) fn known_model(id: &str) -> Result<&'static models::Entry, String> {
    model(id, "")
}

fn model(id: &str, more: &str) -> Result<&'static models::Entry, String> {
    models::find(id).ok_or_else(|| {
        let known: Vec<&str> = MODELS.iter().map(|entry| entry.id).collect();
        let hint = format!("`iolens list models` shows all of them{more}");
        unknown("model", id, &known, &hint)
    })
}

/// Whether there may be such an id under a key of a plan: one that is no model may stand
/// under `external`, which is known when all of the plan is.
pub(super) fn known(_: &str, _: &str) -> Result<(), String> {
    Ok(())
}
