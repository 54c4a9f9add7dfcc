//! A trial: one cell, all its arms, one fresh set of worker processes. Both
//! ends get it whole before it starts.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::arm::{Arm, Role};
use crate::axes::{Counting, Direction};
use crate::cell::Cell;
use crate::external::External;
use crate::plan::Probes;
use crate::server::TrialServers;
use crate::tuning::{NetworkOptions, SocketOptions};
use crate::units::Nanos;

/// What one trial does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Pass, from 1; 0 is the calibration of slice work.
    pub pass: u32,
    /// Position in the pass, from 0.
    pub position: u32,
    /// Whether this is one arm of an isolated comparison.
    pub isolated: bool,
    /// The setting of the axes.
    pub cell: Cell,
    /// Arms; a slice names one by its index here.
    pub arms: Vec<Arm>,
    /// Slices in the order in which they run.
    pub slices: Vec<Slice>,
    /// Socket settings.
    pub socket: SocketOptions,
    /// The network between the ends.
    pub network: NetworkOptions,
    /// Where its ends are; `None` where both are on one machine.
    pub hosts: Option<TrialHosts>,
    /// What is read around slices.
    pub probes: Probes,
    /// The file that is read, or written; `None` in other studies than `file` and `write`.
    pub file: Option<TrialFile>,
    /// Where files are copied; `None` in other studies than `copy`.
    pub copies: Option<TrialCopies>,
    /// Programs of the user's, by the names of their arms; copies and servers have their own.
    pub programs: Vec<External>,
    /// Whether these speak the loop protocol. Each runs once in a slice otherwise.
    pub programs_loop: bool,
    /// What is offered to the servers; `None` in other studies than `server`.
    pub servers: Option<TrialServers>,
    /// Processors of the sending end; thread i runs on entry i mod length.
    pub tx_cpus: Vec<u32>,
    /// Processors of the receiving end.
    pub rx_cpus: Vec<u32>,
    /// Messages in the ring of one arm and thread; at least 1.
    pub ring_messages: u32,
    /// Whether the stacks of its threads are sampled, all the time but in the
    /// slices of the A/A arm; a trial that is answers no question of time.
    pub sampling: Option<Sampling>,
    /// How long one blocking call may wait before the trial counts as hung.
    pub stall_limit: Nanos,
    /// How long the whole trial may take.
    pub trial_limit: Nanos,
}

impl Trial {
    /// The arms in the order of their first slices, which is random: whatever
    /// is made one after another is made in this order, so that no arm always
    /// has the first place in memory.
    pub fn arms_as_they_run(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.arms.len());
        for arm in self.slices.iter().map(|slice| slice.arm).chain(0..self.arms.len()) {
            if !order.contains(&arm) {
                order.push(arm);
            }
        }
        order
    }

    /// The program that an arm is.
    pub fn program(&self, arm: usize) -> Option<&External> {
        let name = &self.arms.get(arm)?.primitive;
        self.programs.iter().find(|program| program.name == *name)
    }

    /// The same of one that runs once in each slice.
    pub fn whole_program(&self, arm: usize) -> Option<&External> {
        self.program(arm).filter(|_| !self.programs_loop)
    }

    /// Whether events of perf_event_open(2) are open in the slices of an arm.
    pub fn counts(&self, arm: usize) -> bool {
        match self.probes.counting {
            Counting::On => true,
            Counting::Off => false,
            Counting::Alternate => self.arms[arm].role != Role::SelfCheck,
        }
    }

    /// Whether stacks are sampled in the slices of an arm.
    pub fn samples(&self, arm: usize) -> bool {
        self.sampling.is_some() && self.arms[arm].role != Role::SelfCheck
    }

    /// Whether a slice has a time before it that is not counted.
    pub fn has_lead(&self) -> bool {
        self.slices.iter().any(Slice::is_lead)
    }
}

impl Slice {
    /// Whether this is the time before a window.
    pub fn is_lead(&self) -> bool {
        self.kind == SliceKind::Warm && matches!(self.work, Work::Window(_))
    }
}

/// The ends of a trial on two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialHosts {
    /// Which end is here.
    pub direction: Direction,
    /// The address of the sending end, towards the other one.
    pub tx: IpAddr,
    /// The address of the receiving end.
    pub rx: IpAddr,
}

/// The file of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialFile {
    /// Its path, as bytes: JSON has text only.
    pub path: Vec<u8>,
    /// Its size when the run looked at it; `None` where trials change it.
    pub bytes: Option<u64>,
    /// What a random order of blocks follows from.
    pub seed: u64,
    /// The regions that arms write to; `None` where the file is only read.
    pub regions: Option<TrialRegions>,
}

/// The file that is written, in regions: each arm has one of its own, so that none
/// finds what another one has left. A new file has one, for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialRegions {
    /// Bytes of a region, a multiple of the largest folio.
    pub bytes: u64,
    /// Regions of the file, at least one.
    pub count: u32,
}

/// The files of a trial that copies. Paths are bytes: JSON has text only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialCopies {
    /// The hash of its bytes, which every copy must have.
    pub checksum: u64,
    /// An empty file, whose copies tell what starting a program takes.
    pub empty: Vec<u8>,
    /// The folder of ours where copies are made.
    pub folder: Vec<u8>,
    /// Programs that are arms, by their names.
    pub programs: Vec<External>,
}

/// A stretch of work of one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Index into the trial's arms.
    pub arm: usize,
    /// Round, from 0; slices of one round are compared with each other.
    pub round: u32,
    /// Whether it counts.
    pub kind: SliceKind,
    /// How much is done.
    pub work: Work,
}

/// Whether a slice counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceKind {
    /// Wakes up a connection that idled longer than its retransmission
    /// timeout, or is the time before a window; not stored.
    Warm,
    /// Of the rounds thrown away at the start; stored, never used.
    Discarded,
    /// Counts.
    Measured,
}

/// How much work a slice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// This many messages, or calls, over all threads; at least 1.
    Messages(u64),
    /// As many as fit in this time. In mode `stream` the sender's shutdown
    /// ends a slice that counts, so the arm's connections serve for one such
    /// slice only, their last.
    Window(Nanos),
}

/// How a trial is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// CPU time of a thread from one sample to the next.
    pub period: Nanos,
}
