//! The two workers of a trial, or the one of a trial that has no other end.

use std::os::fd::OwnedFd;

use iolens_model::axes::{Direction, Topology};
use iolens_model::outcome::Environment;
use iolens_model::trial::Trial;
use iolens_sys::signal::Interrupts;
use iolens_sys::{clock, unix};

use super::Trouble;
use super::workers::{Workers, token};
use crate::far::Far;
use crate::far::wire::NOT_NAMED;
use crate::stage::sink;
use crate::worker::link;
use crate::worker::protocol::{EndReport, FromWorker, Peer, Side, StageStep, Task, ToWorker};
use iolens_programs::spawn::Launch;

/// The workers of a trial, the sending one first, or alone where nobody receives.
pub(crate) struct Pair<'a> {
    workers: Workers<'a>,
}

const TX: usize = 0;
const RX: usize = 1;

/// Room for what is on its way from one end to the other.
const BUFFER_BYTES: usize = 64 << 10;

impl<'a> Pair<'a> {
    /// Starts the workers of a trial and checks that they speak our protocol.
    pub(crate) fn start(
        trial: &Trial,
        launch: &Launch,
        far: Option<&'a mut Far>,
        interrupts: Option<&'a Interrupts>,
    ) -> Result<Pair<'a>, Trouble> {
        let mut workers = Workers::none(far, interrupts);
        let sides = if trial.cell.is_alone() { &[Side::Tx][..] } else { &[Side::Tx, Side::Rx] };
        let there = trial.hosts.as_ref().map(|hosts| match hosts.direction {
            Direction::Tx => Side::Rx,
            Direction::Rx => Side::Tx,
        });
        if trial.hosts.is_none() && trial.cell.topology().is_some_and(Topology::is_apart) {
            return Err(Trouble::failed(NOT_NAMED));
        }
        let mut sockets = sockets(trial)?;
        for &side in sides {
            let name = if trial.cell.net().is_some() { side.word() } else { "measuring" };
            match there == Some(side) {
                true => workers.start_there(name, side)?,
                false => workers.start(name, side, launch, sockets.pop())?,
            }
        }
        workers.greet()?;
        Ok(Pair { workers })
    }

    /// Ends the worker on another machine, if there is one; that machine around the trial.
    pub(crate) fn end_there(&mut self) -> Option<Environment> {
        self.workers.end_there()
    }

    /// Takes the trial from its preparation to the reports of the sending end
    /// and of the receiving one, where there is one.
    pub(crate) fn conduct(
        &mut self,
        trial: &Trial,
    ) -> Result<(EndReport, Option<EndReport>), Trouble> {
        let deadline_ns = clock::monotonic_ns() + trial.trial_limit.0;
        match trial.cell.topology() {
            None | Some(Topology::Loopback | Topology::Host) => {}
            Some(Topology::Veth) => {
                self.workers.stage_veth([TX, RX], trial.network, deadline_ns)?;
            }
            Some(Topology::Sink) => self.stage_sink(trial, deadline_ns)?,
        }
        let token = token();
        let prepare = |side, peer| {
            ToWorker::Prepare(Box::new(Task { side, trial: trial.clone(), peer, token }))
        };
        let peer = if trial.cell.is_alone() {
            None
        } else {
            self.workers.say(RX, prepare(Side::Rx, None));
            match self.workers.answer(deadline_ns)? {
                (RX, FromWorker::Listening { peer }) => Some(reached(trial, peer)),
                (index, _) => return Err(self.workers.out_of_turn(index)),
            }
        };
        self.workers.say(TX, prepare(Side::Tx, peer));
        for _ in 0..self.workers.len() {
            match self.workers.answer(deadline_ns)? {
                (_, FromWorker::Ready) => {}
                (index, _) => return Err(self.workers.out_of_turn(index)),
            }
        }
        for index in (0..self.workers.len()).rev() {
            self.workers.say(index, ToWorker::Run);
        }
        let mut reports = [None, None];
        for _ in 0..self.workers.len() {
            match self.workers.answer(deadline_ns)? {
                (index, FromWorker::Finished { report }) => reports[index] = Some(*report),
                (index, _) => return Err(self.workers.out_of_turn(index)),
            }
        }
        match reports {
            [Some(tx), rx] if rx.is_none() == trial.cell.is_alone() => Ok((tx, rx)),
            _ => Err(Trouble::failed("a worker reported twice")),
        }
    }

    /// Puts both workers into one network namespace, with a device in it that
    /// drops what is sent.
    fn stage_sink(&mut self, trial: &Trial, deadline_ns: u64) -> Result<(), Trouble> {
        let network = trial.network;
        let pid = self.workers.pid(TX)?;
        let user_namespace =
            self.workers.stage(TX, StageStep::Enter { beside: None }, deadline_ns)?;
        let queues = sink::queues(trial);
        self.workers.stage(TX, StageStep::Sink { network, queues }, deadline_ns)?;
        self.workers.stage(RX, StageStep::Join { pid, user_namespace }, deadline_ns)?;
        Ok(())
    }
}

/// What the ends of a trial inherit: a socket each to the other one, where one of them hands
/// lanes over; no others can reach it.
fn sockets(trial: &Trial) -> Result<Vec<OwnedFd>, Trouble> {
    if !link::is_handed_over(trial) {
        return Ok(Vec::new());
    }
    let (near, far) = unix::pair(BUFFER_BYTES, link::stall_limit(trial))
        .map_err(|error| Trouble::failed(error.to_string()))?;
    Ok(vec![near, far])
}

/// The receiving end as the sending one reaches it, where that is on another machine: it may
/// listen at an address that means nothing there.
fn reached(trial: &Trial, mut peer: Peer) -> Peer {
    if let Some(hosts) = trial.hosts {
        peer.tcp.set_ip(hosts.rx);
        // No program of the user's sends to or from another machine.
        peer.mptcp.iter_mut().for_each(|address| address.set_ip(hosts.rx));
    }
    peer
}
