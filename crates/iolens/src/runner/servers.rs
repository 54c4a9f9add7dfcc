//! What trials of servers have besides: who works where, phases of an open loop, and the
//! rates that are offered in them.

use iolens_engine::layout::Placement;
use iolens_engine::server::models::{self, Makes};
use iolens_model::arm::Arm;
use iolens_model::plan::{Plan, Schedule};
use iolens_model::server::{LoadLevel, ServerAxes, ServerSetting, TrialServers};
use iolens_model::trial::{Slice, SliceKind, Work};
use iolens_model::units::Nanos;

/// A request and its reply before anything was measured, ns: each wakes somebody.
pub(super) const GUESS_NS: f64 = 20_000.0;

/// Rounds of a probe: slices are long.
pub(super) const PROBE_ROUNDS: u32 = 2;

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
    let keeps =
        |arm: &Arm| models::find(&arm.primitive).is_some_and(|entry| entry.makes != Makes::Nothing);
    if arms.any(keeps) { Kind::Keeps } else { Kind::Shares }
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

/// Whether a model can be measured in a cell.
///
/// Errors: why not.
pub(super) fn allowed(arm: &Arm, setting: &ServerSetting) -> Result<(), String> {
    models::find(&arm.primitive).map_or(Ok(()), |entry| entry.allow(setting))
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

/// The schedule of a trial: at a rate one phase of each arm, of which the first part is
/// thrown away.
pub(super) fn schedule(axes: &ServerAxes, setting: &ServerSetting, plan: Schedule) -> Schedule {
    match setting.is_open_loop() {
        true => Schedule::Slices { slice: axes.phase, discarded_rounds: 0, rounds: 1 },
        false => plan,
    }
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
    use iolens_model::axes::Topology;
    use iolens_model::load::Length;

    use super::*;

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
