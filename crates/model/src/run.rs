//! A run: a plan, the machine it ran on, every trial, and every phase of a search.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ab::{AbProgramFacts, AbSetting};
use crate::arm::Arm;
use crate::axes::Direction;
use crate::call::CallFacts;
use crate::cell::Cell;
use crate::command_line;
use crate::data_path::{PrimitiveFacts, ReceiverFacts};
pub use crate::doctor::Extent;
use crate::doctor::Finding;
use crate::file::{EngineFacts, FileFacts};
use crate::host::{Calibration, HostFacts};
use crate::origin::{Origin, Sighting};
use crate::outcome::{Environment, SliceOutcome, TrialOutcome};
use crate::plan::{Axes, Plan};
use crate::profile::ProfileTrial;
use crate::reading::Histogram;
use crate::reading::Status;
use crate::server::{OfferedSlice, ServerArm};
use crate::units::Nanos;

/// What is known of a run besides its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Eight hexadecimal digits.
    pub id: String,
    /// The user's name for it.
    pub name: Option<String>,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// Version and commit of iolens.
    pub build: String,
    /// The run whose crossovers this one looks at anew, at sizes inside their bands; `None` for
    /// a run that stands for itself.
    pub confirms: Option<String>,
    /// The command line, for "how to reproduce".
    pub command: Vec<String>,
    /// What was asked.
    pub plan: Plan,
    /// The plan's primitives, in its order.
    pub primitives: Vec<PrimitiveFacts>,
    /// The plan's receivers, in its order.
    pub receivers: Vec<ReceiverFacts>,
    /// The plan's calls, in its order; empty in other studies than `syscall`.
    pub calls: Vec<CallFacts>,
    /// The plan's engines, in its order; empty in other studies than `file`.
    pub engines: Vec<EngineFacts>,
    /// The programs of the user's, in the order of `AbAxes::commands`; empty in other studies
    /// than `ab`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<AbProgramFacts>,
    /// The file that is read; `None` in other studies than `file`.
    pub file: Option<FileFacts>,
    /// The machine.
    pub host: HostFacts,
    /// The other machine; `None` where there is none.
    pub far: Option<FarFacts>,
    /// What its building blocks cost; `None` in `ab`, where nothing is held against that.
    pub calibration: Option<Calibration>,
    /// How the run ended; `None` while it runs, or if it was killed.
    pub end: Option<RunEnd>,
    /// Where it came from; `None` for a run that was measured into the database that has it.
    pub origin: Option<Origin>,
}

impl RunHeader {
    /// What is no longer as it was when the run was measured, of what an interval covers: one
    /// machine, one boot, one kernel, one build.
    pub fn changes(&self, build: &str, host: &HostFacts) -> Vec<Change> {
        changes((&self.build, &self.host), (build, host))
    }
}

/// What differs between a build on a machine then and now.
fn changes(then: (&str, &HostFacts), now: (&str, &HostFacts)) -> Vec<Change> {
    let cpus =
        |host: &HostFacts| host.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let change = |part, then, now| Change { part, then, now };
    let fact = |part, group: &str, name: &str| {
        change(part, then.1.fact(group, name), now.1.fact(group, name))
    };
    let all = [
        change(Part::Build, then.0.to_owned(), now.0.to_owned()),
        fact(Part::Kernel, "kernel", "release"),
        fact(Part::CpuModel, "cpu", "model"),
        change(Part::Cpus, cpus(then.1), cpus(now.1)),
        fact(Part::Boot, "kernel", "boot id"),
    ];
    all.into_iter().filter(|change| change.then != change.now).collect()
}

impl RunHeader {
    /// The same without secrets, to be shown: whoever wrote the file may have
    /// stored them, and programs need theirs.
    pub fn without_secrets(&self) -> RunHeader {
        let mut shown = self.clone();
        shown.command = command_line::redacted(&shown.command);
        if let Some(far) = &mut shown.far {
            far.launcher = command_line::redacted(std::slice::from_ref(&far.launcher)).concat();
        }
        let programs = match &mut shown.plan.axes {
            Axes::Net(axes) => &mut axes.external[..],
            Axes::File(axes) => &mut axes.external[..],
            Axes::Syscall(axes) => &mut axes.external[..],
            Axes::Copy(axes) => &mut axes.external[..],
            Axes::Server(axes) => &mut axes.external[..],
            Axes::Ab(axes) => &mut axes.programs[..],
            _ => &mut [],
        };
        let programs = programs.iter_mut().map(|program| &mut program.argv);
        let engines = shown.engines.iter_mut().filter_map(|engine| engine.program.as_mut());
        for words in programs.chain(engines) {
            *words = command_line::redacted(words);
        }
        if let Axes::Ab(axes) = &mut shown.plan.axes {
            let benches = axes.benches.iter_mut().flat_map(|bench| &mut bench.commands);
            benches.for_each(|words| *words = command_line::redacted(words));
        }
        shown
    }

    /// What is known of a program of `ab` in a setting, by its place in the plan; `None` where
    /// nothing is stored of it.
    pub fn ab_program(&self, setting: &AbSetting, program: usize) -> Option<&AbProgramFacts> {
        let axes = self.plan.ab()?;
        let before = match axes.bench(setting) {
            Some(of) => axes.benches.iter().take_while(|bench| bench.name != of.name).count(),
            None => 0,
        };
        self.programs.get(before * axes.programs.len() + program)
    }
}

/// The machine at the other end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FarFacts {
    /// What started programs there, as it was typed.
    pub launcher: String,
    /// Version and commit of the iolens there.
    pub build: String,
    /// Which end was on this machine.
    pub direction: Direction,
    /// The address of this machine, as the other one reaches it.
    pub near_address: IpAddr,
    /// The address of the other machine, as this one reaches it.
    pub address: IpAddr,
    /// What the machine is.
    pub host: HostFacts,
    /// What `doctor` found there.
    pub findings: Vec<Finding>,
    /// What `doctor` found here.
    pub near_findings: Vec<Finding>,
}

impl FarFacts {
    /// What is no longer as it was at the other end, of what an interval covers: that of a run,
    /// and the addresses that data goes between.
    pub fn changes(&self, now: &FarFacts) -> Vec<Change> {
        let way = |far: &FarFacts| format!("{} to {}", far.near_address, far.address);
        let way = Change { part: Part::Way, then: way(self), now: way(now) };
        let way = Some(way).filter(|way| way.then != way.now);
        let machine = changes((&self.build, &self.host), (&now.build, &now.host));
        machine.into_iter().chain(way).collect()
    }
}

/// Something that an interval does not reach beyond, then and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What has changed.
    pub part: Part,
    /// When the run was measured.
    pub then: String,
    /// Now.
    pub now: String,
}

crate::words! {
    /// What an interval does not reach beyond.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Part {
        /// The build of iolens.
        Build = "build",
        /// The kernel's release.
        Kernel = "kernel",
        /// The model of the processor.
        CpuModel = "CPU model",
        /// The processors that iolens may run on.
        Cpus = "set of usable CPUs",
        /// The boot.
        Boot = "boot",
        /// The way to another machine.
        Way = "way between the machines",
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When, nanoseconds since 1970 (UTC).
    pub finished_unix_ns: u64,
    /// Which rule ended it.
    pub stopped_by: StoppedBy,
    /// The stop conditions that were not met, in words, widest first.
    pub unmet: Vec<String>,
    /// Time that it was interrupted for and then resumed, ns.
    #[serde(default, skip_serializing_if = "nothing")]
    pub paused_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn nothing(ns: &u64) -> bool {
    *ns == 0
}

impl RunEnd {
    /// How long a run took that was started then, ns, without its pauses.
    pub fn took_ns(&self, started_unix_ns: u64) -> u64 {
        self.finished_unix_ns.saturating_sub(started_unix_ns).saturating_sub(self.paused_ns)
    }
}

crate::words! {
    /// The rule that ended a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StoppedBy {
        /// Every contrast was within the target on two passes.
        Precision = "precision",
        /// The plan's number of passes was done.
        Passes = "passes",
        /// The next pass would have ended after the budget.
        Budget = "budget",
        /// More passes no longer made the intervals narrower.
        Stalled = "stalled",
        /// The user.
        Interrupted = "interrupted",
        /// No cell could be measured.
        NothingUsable = "nothing usable",
        /// The other machine was lost, and not found again.
        Lost = "the other machine was lost",
    }
}

impl StoppedBy {
    /// Whether it ended in the middle of a pass.
    pub fn is_cut_short(self) -> bool {
        matches!(self, StoppedBy::Interrupted | StoppedBy::Lost)
    }
}

/// A run with its trials, in the order in which they ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What is known besides.
    pub header: RunHeader,
    /// Every trial, failed ones too.
    pub trials: Vec<TrialOutcome>,
    /// Sampled trials, which `explain` has added; no part of its figures.
    pub profiles: Vec<ProfileTrial>,
    /// Phases of searches, in the order in which they ran; no part of its contrasts.
    pub searches: Vec<SearchPhase>,
}

impl RunHeader {
    /// The label of the machine that measured the run: what it was given when it was imported,
    /// else the host name. `None` where that could not be read.
    pub fn host_label(&self) -> Option<&str> {
        let given = self.origin.as_ref().map(|origin| origin.host.as_str());
        given.or_else(|| self.host.name())
    }

    /// How long it took, ns, without its pauses; `None` until it has ended.
    pub fn took_ns(&self) -> Option<u64> {
        Some(self.end.as_ref()?.took_ns(self.started_unix_ns))
    }

    /// The machine, and when it was seen.
    pub fn sighting(&self) -> Sighting<'_> {
        let last = self.end.as_ref().map_or(self.started_unix_ns, |end| end.finished_unix_ns);
        Sighting { host: &self.host, first_unix_ns: self.started_unix_ns, last_unix_ns: last }
    }
}

// A search for the highest rate that a server keeps: what is asked, and what each step found.

/// A phase of a search: one model alone, asked at one rate for some time, or in a closed
/// loop for as much as it takes. Stored raw: whether it kept a limit is computed when it
/// is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchPhase {
    /// Its place among the phases of the run, from 1.
    pub number: u32,
    /// The setting of the axes; its load is `searched`, or `closed`.
    pub cell: Cell,
    /// The model.
    pub arm: Arm,
    /// The step of its rate from what the closed loop took; `None` for that loop.
    pub step: Option<i32>,
    /// Requests per second that were offered; `None` for the closed loop.
    pub rate: Option<f64>,
    /// How long they were, what does not count included.
    pub phase: Nanos,
    /// Time at the beginning that does not count.
    pub dropped: Nanos,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// From the start of its processes to their end.
    pub duration_ns: u64,
    /// How it ended.
    pub status: Status,
    /// Why, for every status but `ok`.
    pub reason: Option<String>,
    /// Times from when requests were due; `None` where none was measured.
    pub latency: Option<Histogram>,
    /// What came of it besides; `None` where it did not come to its end.
    pub server: Option<Box<ServerArm>>,
    /// The counts of both ends, likewise.
    pub slice: Option<SliceOutcome>,
    /// The machine meanwhile.
    pub environment: Environment,
}

impl SearchPhase {
    /// What the client saw; `None` where the phase did not come to its end.
    pub fn offered(&self) -> Option<&OfferedSlice> {
        self.server.as_ref()?.offered.last()
    }

    /// Right replies per second while requests were due; `None` where none could come.
    pub fn achieved(&self) -> Option<f64> {
        let offered = self.offered().filter(|offered| offered.window.0 > 0)?;
        Some(offered.replies_in_window as f64 / offered.window.as_seconds())
    }
}
