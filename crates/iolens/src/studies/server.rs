//! The study `server`.

use iolens_engine::layout::arm_groups;
use iolens_model::axes::{Study, Topology};
use iolens_model::load::{Arrivals, Length};
use iolens_model::plan::{Axes, Plan};
use iolens_model::server::{ServerAxes, ServerSetting};
use iolens_model::units::Nanos;
use iolens_server::limits::Limits;
use iolens_server::models::{self, MODELS};

use super::wished::{AsWished, at, axes_and_wishes, topologies};
use super::{ArmChoice, Draft, Programs, StudySpec};
use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::runner::budget_with;
use crate::values::server::OF_SERVERS;
use crate::values::unknown;

pub(super) static SERVER: StudySpec = StudySpec {
    study: Study::Server,
    summary: "Answer requests: threads, processes, epoll, io_uring",
    about: "Compare server models: what a request costs, and how fast it is answered",
    examples: "\
Examples:
  iolens run server --quick
  iolens run server --connections 1000 --load closed,50%,80%
  iolens run server --slo 'p99<2ms' --knee
  iolens run server --external mine='./server {port}'",
    footer: Some(
        "Client and server share this machine. Between two machines: iolens serve there, iolens \
         load here.",
    ),
    quick: "server-quick",
    arms: || ArmChoice {
        what: "model",
        baseline: "epoll_lt",
        ids: ids(),
        find: |id| models::find(id).map(|entry| entry.id),
        group: |_| None,
        control: |_| None,
        is_alone: true,
        does: "does",
        advice: format!("{LISTED}; --models takes all of them too, and --external adds a program"),
    },
    textbook: &[("single", "iterative"), ("threaded", "thread_per_connection")],
    programs: Some(Programs { told: |_| OF_SERVERS, are_listed: true }),
    slices: (SLICE, DISCARDED_ROUNDS),
    fit: |_, _| Ok(()),
    sizes: |_| Ok(Vec::new()),
    axes,
    wishes: |plan| {
        let own = plan.server();
        own.map_or_else(Wishes::default, |axes| Wishes {
            network: at(&axes.topologies),
            ..axes.stated()
        })
    },
    lay_out,
};

fn ids() -> Vec<&'static str> {
    MODELS.iter().map(|entry| entry.id).collect()
}

/// Where all of them are.
const LISTED: &str = "`iolens list models` shows all of them";

/// The model of an id, where a command takes one.
pub(crate) fn known_model(id: &str) -> Result<&'static models::Entry, String> {
    models::find(id).ok_or_else(|| unknown("model", id, &ids(), LISTED))
}

/// Rounds of slices that are thrown away: connections and memory are warm after one.
const DISCARDED_ROUNDS: u32 = 1;

/// How long a slice is meant to last where a plan says nothing.
const SLICE: Nanos = Nanos(100_000_000);

/// Connections that may wait to be taken; the kernel has a limit of its own.
const BACKLOG: u32 = 65_535;

axes_and_wishes! {
    ServerAxes {
        services: must service;
        lengths: may keep_alive vec![Length::Long];
        loads: must load;
        connections: must connections;
        arrivals: may arrivals Arrivals::Poisson;
        in_flight: may in_flight 1;
        phase: must step_time;
        backlog: may backlog BACKLOG;
        client_threads: same client_threads;
        server_cpus: same server_cpus;
        client_cpus: same client_cpus;
        external: same external;
        slo: list slo;
        knee: same knee;
    } given topologies: Vec<Topology>, alone_services: Vec<String>, alone_connections: Vec<u32>
}

/// The axes of these wishes.
fn axes(Draft { asked, available, notes, .. }: Draft<'_>) -> Result<Axes, Failure> {
    let topologies = topologies(asked, available, notes)?;
    let axes = ServerAxes::asked_for(asked, (topologies, Vec::new(), Vec::new()))?;
    check(&axes).map(|()| Axes::Server(axes))
}

/// Gives searches the time that they take where no budget is stated, beside that of passes, and
/// sets servers apart that are to be measured by themselves.
fn lay_out(plan: &mut Plan, is_without_budget: bool, notes: &mut Vec<String>) {
    if is_without_budget {
        let searches = iolens_stats::search::cells(plan).len() * plan.primitives.len();
        plan.budget = budget_with(plan, searches);
    }
    set_apart(plan, &Limits::here(), notes);
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
fn check(axes: &ServerAxes) -> Result<(), Failure> {
    if axes.topologies.contains(&Topology::Sink) {
        return Err(Failure::usage(
            "run server cannot use --network sink, which drops every reply\n  use --network veth or \
             loopback",
        ));
    }
    if axes.topologies.contains(&Topology::Host) {
        return Err(Failure::usage(
            "run server cannot use --network peer: client and server share this machine\n  use \
             iolens serve there and iolens load here",
        ));
    }
    if axes.in_flight > 1 && axes.lengths.contains(&Length::Short) {
        return Err(usage!(
            "--in-flight {} does not apply to --keep-alive no, where a connection carries one \
             request\n  leave --in-flight out, or use --keep-alive yes",
            axes.in_flight
        ));
    }
    let (server, client) = (axes.server_cpus.as_ref(), axes.client_cpus.as_ref());
    if server.is_some() != client.is_some() {
        return Err(Failure::usage(
            "--server-cpus and --client-cpus go together: name both, or neither",
        ));
    }
    let shared = server.zip(client).and_then(|(s, c)| s.iter().find(|cpu| c.contains(cpu)));
    match shared {
        Some(cpu) => Err(usage!(
            "CPU {cpu} is in both --server-cpus and --client-cpus\n  give each end its own CPUs"
        )),
        None => Ok(()),
    }
}
