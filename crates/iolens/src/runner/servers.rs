//! What trials of servers have besides: who works where, phases of an open loop, and the
//! rates that are offered in them.

use std::sync::LazyLock;

use iolens_engine::layout::Placement;
use iolens_harness::host::Root;
use iolens_model::arm::Arm;
use iolens_model::cell::Cell;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::server::{LoadLevel, ServerAxes, ServerSetting, TrialServers};
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_model::units::Nanos;
use iolens_server::limits::Limits;
use iolens_server::models::{self, Makes};

/// The time of a request and its reply before anything was measured, ns: each wakes
/// somebody, `top2` looks at every process, and `burn` says how long it takes.
pub(super) fn guess_ns(arm: &Arm, setting: &ServerSetting) -> f64 {
    const WAKES_NS: f64 = 20_000.0;
    const PROCESS_NS: f64 = 15_000.0;
    if let Some(us) = setting.service.strip_prefix("burn:") {
        return WAKES_NS + us.parse().map_or(0.0, |us: f64| us * 1e3);
    }
    if !setting.service.starts_with("top2") {
        return WAKES_NS;
    }
    let names = Root::real().names("proc");
    let processes = names.iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit())).count();
    let forks = models::find(&arm.primitive).is_some_and(|entry| entry.makes == Makes::Process);
    let own = if forks { f64::from(setting.connections) } else { 0.0 };
    WAKES_NS + (processes as f64 + own) * PROCESS_NS
}

/// Slices of patience for one of a server: where the first of all requests waits for ten
/// thousand others it is long already.
pub(super) const SLICES_OF_PATIENCE: u64 = 4;

/// Rounds of a probe with slices of this share of their length, those thrown away first: whole
/// ones are long, and after those that were not everything was used once.
pub(super) fn probe_rounds(share: u64) -> [u32; 2] {
    if share > 1 { [1, 1] } else { [0, 1] }
}

/// Share of a phase at its beginning that does not count.
const DROPPED_SHARE: u64 = 4;

/// The two kinds of models whose rates are common: those that keep a process or a thread
/// for each connection, and the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Keeps,
    Shares,
}

/// The kind of the models of a group: that of any that is not the baseline, which is
/// measured beside both.
pub(super) fn kind<'a>(mut arms: impl Iterator<Item = &'a Arm>) -> Kind {
    if arms.any(|arm| models::keeps(&arm.primitive)) { Kind::Keeps } else { Kind::Shares }
}

/// Requests per second that each kind is offered; null until all were probed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rates {
    keeps: Option<f64>,
    shares: Option<f64>,
}

impl Rates {
    pub(super) fn of(self, kind: Kind) -> Option<f64> {
        match kind {
            Kind::Keeps => self.keeps,
            Kind::Shares => self.shares,
        }
    }

    /// Takes over a rate.
    pub(super) fn set(&mut self, kind: Kind, rate: f64) {
        match kind {
            Kind::Keeps => self.keeps = Some(rate),
            Kind::Shares => self.shares = Some(rate),
        }
    }

    /// The rate of a kind from the time of a request of each of its models in a closed
    /// loop, the baseline among them, ns: the share of what the slowest takes.
    pub(super) fn learn(
        &mut self,
        kind: Kind,
        setting: &ServerSetting,
        request_ns: impl Iterator<Item = f64>,
    ) {
        let LoadLevel::Percent(share) = setting.load else { return };
        let slowest_ns = request_ns.fold(0.0, f64::max);
        if slowest_ns > 0.0 {
            self.set(kind, f64::from(share) / 100.0 * 1e9 / slowest_ns);
        }
    }
}

/// Whether a model, or a program of the user's, can be measured in a cell: by its design,
/// and by the limits of this machine.
///
/// Errors: why not, with the arithmetic.
pub(super) fn allowed(arm: &Arm, setting: &ServerSetting) -> Result<(), String> {
    // Once: what is allowed in a cell must not change while others are counted.
    static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::here);
    let entry = models::find(&arm.primitive);
    entry.map_or(Ok(()), |entry| entry.allow(setting))?;
    LIMITS.allow(entry, setting)
}

/// The processors of servers and client, where the plan names them.
pub(super) fn placement(plan: &Plan, halves: Placement) -> Placement {
    let named =
        plan.server().and_then(|axes| axes.server_cpus.clone().zip(axes.client_cpus.clone()));
    match named {
        Some((tx_cpus, rx_cpus)) => Placement { tx_cpus, rx_cpus },
        None => halves,
    }
}

/// What making and reading a process or a thread for a connection takes at most, ns.
const EACH_NS: u64 = 2_000_000;

/// Time that a trial may take besides its slices, and one of its calls: where models keep
/// a process or a thread for each connection those are made, and read around each slice.
pub(super) fn patience<'a>(
    cell: &Cell,
    slices: usize,
    arms: impl Iterator<Item = &'a Arm>,
) -> [u64; 2] {
    let Some(setting) = cell.server().filter(|_| kind(arms) == Kind::Keeps) else { return [0; 2] };
    let once = u64::from(setting.connections) * EACH_NS;
    [once, once.saturating_mul(2 + slices as u64)]
}

/// The schedule of a trial: at a rate one phase of each arm, of which the first part is
/// thrown away.
pub(super) fn schedule(axes: &ServerAxes, setting: &ServerSetting, plan: Schedule) -> Schedule {
    match setting.is_open_loop() {
        true => Schedule::Slices { slice: axes.phase, discarded_rounds: 0, rounds: 1 },
        false => plan,
    }
}

/// Makes phases of the slices of a trial that count, at the rate of a kind of models.
pub(super) fn at_a_rate(trial: &mut Trial, rates: Rates, of: Kind, phase: Nanos) {
    let Some(servers) = &mut trial.servers else { return };
    servers.rate = rates.of(of);
    let arms = trial.arms.iter().enumerate();
    let others = arms.filter(|(_, arm)| kind(std::iter::once(*arm)) != of);
    servers.at_others_rate = others.map(|(index, _)| index).collect();
    as_phases(&mut trial.slices, phase);
}

/// Makes phases of the slices that count.
pub(super) fn as_phases(slices: &mut [Slice], phase: Nanos) {
    for slice in slices.iter_mut().filter(|slice| slice.kind != SliceKind::Warm) {
        slice.work = Work::Window(phase);
    }
}

/// How long processors are watched while nothing is asked, at most.
const REST_MAX: Nanos = Nanos(100_000_000);

/// What the workers of a trial are told, its rate left out. Processors are watched before
/// the trials that are kept, for a slice each time.
pub(super) fn of_trial(
    axes: &ServerAxes,
    setting: &ServerSetting,
    placement: &Placement,
    slice: Option<Nanos>,
    seed: u64,
) -> TrialServers {
    let cpus = u32::try_from(placement.rx_cpus.len()).unwrap_or(u32::MAX).max(1);
    TrialServers {
        rate: None,
        at_others_rate: Vec::new(),
        arrivals: axes.arrivals,
        seed,
        in_flight: axes.in_flight,
        dropped: Nanos(axes.phase.0 / DROPPED_SHARE),
        backlog: axes.backlog,
        client_threads: axes.client_threads.unwrap_or(cpus).min(setting.connections),
        programs: axes.external.clone(),
        rest: slice.map_or(Nanos(0), |slice| slice.min(REST_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::arm::Role;
    use iolens_model::axes::Topology;
    use iolens_model::load::Length;

    use super::*;

    #[test]
    fn a_service_that_takes_long_is_not_tried_as_one_that_does_not() {
        let guess = |service: &str| {
            let setting = ServerSetting {
                topology: Topology::Loopback,
                service: service.to_owned(),
                length: Length::Long,
                load: LoadLevel::Closed,
                connections: 1,
            };
            let arm = Arm {
                label: "x".to_owned(),
                primitive: "epoll_lt".to_owned(),
                role: Role::Baseline,
            };
            guess_ns(&arm, &setting)
        };
        assert!((guess("burn:4000") - guess("echo") - 4e6).abs() < 1.0);
    }

    #[test]
    fn each_kind_is_offered_a_share_of_what_its_slowest_takes() {
        let setting = ServerSetting {
            topology: Topology::Loopback,
            service: "echo".into(),
            length: Length::Long,
            load: LoadLevel::Percent(50),
            connections: 16,
        };
        let mut rates = Rates::default();
        rates.learn(Kind::Shares, &setting, [10_000.0, 20_000.0].into_iter());
        rates.learn(Kind::Keeps, &setting, [100_000.0].into_iter());
        assert_eq!(rates.of(Kind::Shares), Some(25_000.0));
        assert_eq!(rates.of(Kind::Keeps), Some(5_000.0));
        let closed = ServerSetting { load: LoadLevel::Closed, ..setting };
        let mut rates = Rates::default();
        rates.learn(Kind::Shares, &closed, [10_000.0].into_iter());
        assert_eq!(rates.of(Kind::Shares), None);
    }
}
