//! A plan: everything that is decided before the first trial. It is stored
//! with the run, and nothing in it changes once data exist.

use serde::{Deserialize, Serialize};

use crate::ab::AbAxes;
use crate::axes::{
    Counting, Direction, Iovec, Mode, Study, Topology, WorkingSet, crossed, product, several,
};
pub use crate::call::SyscallAxes;
use crate::cell::{Cell, NetSetting, Setting, SyscallSetting, of_studies};
use crate::copy::CopyAxes;
use crate::external::External;
use crate::file::{FileAxes, WriteAxes};
use crate::server::ServerAxes;
pub use crate::tuning::{NetworkOptions, SocketOptions};
use crate::tuning::{Tuning, TuningAxes};
use crate::units::{Bytes, Nanos};

/// What is measured, how, and when it is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is studied, and the axes that it alone has.
    #[serde(flatten)]
    pub axes: Axes,
    /// Arms, as registry ids, the baseline among them.
    pub primitives: Vec<String>,
    /// The arm that the others are compared with.
    pub baseline: String,
    /// Sizes of a unit of work: of messages; empty in studies without sizes, and where calls
    /// move what they move by themselves.
    pub sizes: Vec<Bytes>,
    /// Threads, or pairs of them.
    pub threads: Vec<u32>,
    /// How a trial is laid out.
    pub schedule: Schedule,
    /// How often every cell is visited.
    pub passes: Passes,
    /// Wall time after which no new pass begins that would end later.
    pub budget: Nanos,
    /// Half-width of the ratio at which a contrast is precise enough, as a
    /// fraction (0.03 is ±3 %).
    pub precision: f64,
    /// Smallest difference that matters, as a fraction.
    pub delta: f64,
    /// A first look: sentences say "Indicative".
    pub quick: bool,
    /// One arm per process pair in every trial.
    pub isolate: bool,
    /// Seed of every random order in the run.
    pub seed: u64,
    /// Processors to use; `None` for all that iolens may run on.
    pub cpus: Option<Vec<u32>>,
    /// What is read around slices.
    pub probes: Probes,
}

/// A study with the axes that it alone has. Written flat into the plan, with
/// the study's word under `study`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "study", rename_all = "snake_case")]
pub enum Axes {
    /// Messages through sockets.
    Net(NetAxes),
    /// What a crossing into the kernel costs.
    Syscall(SyscallAxes),
    /// Blocks of a file.
    File(FileAxes),
    /// Blocks written to a file.
    Write(WriteAxes),
    /// Whole files, copied.
    Copy(CopyAxes),
    /// Requests to a server.
    Server(ServerAxes),
    /// Operations of programs of the user's.
    Ab(AbAxes),
}

/// The axes of `net`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetAxes {
    /// Where the ends stand.
    pub topologies: Vec<Topology>,
    /// What travels.
    pub modes: Vec<Mode>,
    /// Sizes of the memory that is sent from.
    pub working_sets: Vec<WorkingSet>,
    /// Numbers of fields per message.
    pub fields: Vec<u32>,
    /// When the iovec is built.
    pub iovec: Vec<Iovec>,
    /// Receivers, as registry ids.
    pub receivers: Vec<String>,
    /// `TCP_CONGESTION` of every socket.
    pub congestion: String,
    /// What most plans leave alone.
    pub tuning: TuningAxes,
    /// Whether sysctls of the whole machine may be changed for the time of the
    /// run, where a receiver needs it.
    pub allow_sysctl: bool,
    /// Which end is here, where the other one is on another machine.
    pub direction: Direction,
    /// Programs of the user's that send, as arms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<External>,
    /// Whether these speak the loop protocol; each runs once in a slice otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external_loop: bool,
}

/// How the slices of a trial are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Arms alternate in slices of fixed work: what this tool is for.
    Slices {
        /// How long a slice is meant to last with one thread pair.
        slice: Nanos,
        /// Rounds thrown away at the start of each trial.
        discarded_rounds: u32,
        /// Rounds that count.
        rounds: u32,
    },
    /// One arm after another, each for a fixed time: the classic way.
    Window {
        /// How long each arm sends.
        window: Nanos,
    },
    /// One arm after another, each for a fixed number of messages.
    Messages {
        /// Messages of each arm, over all its threads.
        messages: u64,
    },
}

impl Schedule {
    /// Whether arms alternate in slices.
    pub fn is_sliced(&self) -> bool {
        matches!(self, Schedule::Slices { .. })
    }
}

/// How often every cell is visited, one trial each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passes {
    /// Stopping for precision is considered from here on.
    pub minimum: u32,
    /// The run ends here.
    pub maximum: u32,
}

/// What is read around slices besides the kernel's own accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// When events of perf_event_open(2) are open.
    pub counting: Counting,
    /// Whether the kernel's software events are counted too, which makes each
    /// context switch dearer.
    pub software: bool,
    /// Whether tracepoints are counted too, of which each passage costs.
    pub tracepoints: bool,
}

of_studies! { Plan.axes: Axes {
    net(it) Net: &NetAxes = it;
    syscall(it) Syscall: &SyscallAxes = it;
    file(it) File: &FileAxes = it;
    write(it) Write: &WriteAxes = it;
    copy(it) Copy: &CopyAxes = it;
    server(it) Server: &ServerAxes = it;
    ab(it) Ab: &AbAxes = it;
} }

impl Plan {
    /// Programs of the user's that stand beside the arms of ours and do the same: they send, read
    /// or make calls.
    pub fn programs(&self) -> &[External] {
        match &self.axes {
            Axes::Net(net) => &net.external,
            Axes::File(file) => &file.external,
            Axes::Syscall(syscall) => &syscall.external,
            _ => &[],
        }
    }

    /// Whether these speak the loop protocol. Each runs once in a slice otherwise.
    pub fn programs_loop(&self) -> bool {
        self.net().is_none_or(|net| net.external_loop)
    }

    /// Those of them that run once in a slice.
    pub fn whole_programs(&self) -> &[External] {
        if self.programs_loop() { &[] } else { self.programs() }
    }

    /// Whether an arm is one of these programs.
    pub fn is_program(&self, id: &str) -> bool {
        self.programs().iter().any(|program| program.name == id)
    }

    /// Its arms but for these programs.
    pub fn methods(&self) -> Vec<String> {
        self.primitives.iter().filter(|id| !self.is_program(id)).cloned().collect()
    }

    /// The axes of `net`, to be changed.
    pub fn net_mut(&mut self) -> Option<&mut NetAxes> {
        match &mut self.axes {
            Axes::Net(net) => Some(net),
            _ => None,
        }
    }

    /// Whether gates hold its numbers against what the machine's building blocks cost. Those of
    /// `ab` are of programs whose work nobody here knows.
    pub fn needs_calibration(&self) -> bool {
        self.ab().is_none()
    }

    /// Where ends stand in this plan; empty in studies without a network.
    pub fn topologies(&self) -> &[Topology] {
        match &self.axes {
            Axes::Net(net) => &net.topologies,
            Axes::Server(server) => &server.topologies,
            _ => &[],
        }
    }

    /// Receivers of this plan; empty in studies without any.
    pub fn receivers(&self) -> &[String] {
        self.net().map_or(&[], |net| &net.receivers)
    }

    /// Whether sysctls of the whole machine may be changed.
    pub fn allow_sysctl(&self) -> bool {
        self.net().is_some_and(|net| net.allow_sysctl)
    }

    /// Cells that a plan has at most: with trials of a tenth of a second, one pass over as many
    /// takes more than a day.
    pub const CELLS_MAX: usize = 1_000_000;

    /// Whether [`Plan::cells`] can be made: whoever wrote a plan of few bytes could fill all
    /// memory with its cells.
    ///
    /// Errors: its axes make too many, in words.
    pub fn check_cells(&self) -> Result<(), String> {
        let axes = match &self.axes {
            Axes::Net(net) => net.lengths(),
            Axes::Syscall(axes) => vec![axes.in_a_row.len()],
            Axes::File(axes) => axes.lengths().to_vec(),
            Axes::Write(axes) => axes.lengths().to_vec(),
            Axes::Copy(axes) => axes.lengths().to_vec(),
            Axes::Server(axes) => axes.lengths().to_vec(),
            Axes::Ab(axes) => vec![axes.values()],
        };
        let all = axes.into_iter().chain([self.threads.len(), self.sizes.len()]);
        match product(all) {
            Some(cells) if cells <= Plan::CELLS_MAX => Ok(()),
            _ => Err(format!(
                "its axes make more than {} cells (of ab: values of parameters)",
                Plan::CELLS_MAX
            )),
        }
    }

    /// Every cell of the plan, in the order of its axes. [`Plan::check_cells`] says whether they
    /// are too many.
    pub fn cells(&self) -> Vec<Cell> {
        let settings: Vec<Setting> = match &self.axes {
            Axes::Net(net) => net.settings().into_iter().map(Setting::Net).collect(),
            Axes::Syscall(axes) => {
                let setting = |&in_a_row| Setting::Syscall(SyscallSetting { in_a_row });
                axes.in_a_row.iter().map(setting).collect()
            }
            Axes::File(axes) => axes.settings().into_iter().map(Setting::File).collect(),
            Axes::Write(axes) => axes.settings().into_iter().map(Setting::Write).collect(),
            Axes::Copy(axes) => axes.settings().into_iter().map(Setting::Copy).collect(),
            Axes::Server(axes) => axes.settings().into_iter().map(Setting::Server).collect(),
            Axes::Ab(axes) => axes.settings().into_iter().map(Setting::Ab).collect(),
        };
        let cell = |setting| Cell { setting, threads: 0, size: Bytes(0) };
        let cells = settings.into_iter().map(cell).collect();
        let cells = crossed(cells, &self.threads, |cell: &mut Cell, &threads| {
            cell.threads = threads;
        });
        let has_sizes = self.study().has_sizes() || !self.sizes.is_empty();
        let mut cells = match has_sizes {
            true => crossed(cells, &self.sizes, |cell, &size| cell.size = size),
            false => cells,
        };
        cells.retain(|cell| {
            let fills = cell.syscall().is_none_or(|setting| setting.in_a_row.is_none());
            let is_first = self.sizes.first().is_none_or(|first| *first == cell.size);
            fills || is_first && self.threads.first() == Some(&cell.threads)
        });
        cells
    }

    /// What tells a cell from others of the plan besides its size and threads,
    /// in words: its values on the axes that have more than one.
    pub fn told_apart(&self, cell: &Cell) -> Vec<String> {
        match (&self.axes, &cell.setting) {
            (Axes::Net(axes), Setting::Net(net)) => axes.told_apart(net),
            (Axes::File(axes), Setting::File(file)) => axes.told_apart(file),
            (Axes::Write(axes), Setting::Write(write)) => axes.told_apart(write),
            (Axes::Copy(axes), Setting::Copy(copy)) => axes.told_apart(copy),
            (Axes::Server(axes), Setting::Server(server)) => axes.told_apart(server),
            (Axes::Ab(axes), Setting::Ab(ab)) => axes.told_apart(ab),
            _ => cell.unusual(),
        }
    }

    /// What is to be said of a cell besides its topology, mode, working set,
    /// fields and receiver: the same on the further axes, and what is not as it
    /// is where a plan states nothing.
    pub fn told_further(&self, cell: &Cell) -> Vec<String> {
        match (&self.axes, &cell.setting) {
            (Axes::Net(axes), Setting::Net(net)) => axes.told_further(net, &cell.unusual()),
            _ => cell.unusual(),
        }
    }
}

impl Plan {
    /// Whether each arm of a cell is measured by itself.
    pub fn measures_alone(&self, cell: &Cell) -> bool {
        let servers = self.server().zip(cell.server());
        self.isolate || servers.is_some_and(|(axes, setting)| axes.measures_alone(setting))
    }
}

// The settings that the axes of `net` make, each of them alone, and what tells them apart.

impl NetAxes {
    /// Every setting, in the order of the axes.
    fn settings(&self) -> Vec<NetSetting> {
        let of_topology = |&topology: &Topology| {
            let all = vec![NetSetting::blank(topology)];
            let all = crossed(all, &self.modes, |one, &mode| one.mode = mode);
            let all = crossed(all, &self.working_sets, |one, &set| one.working_set = set);
            let all = crossed(all, &self.fields, |one, &fields| one.fields = fields);
            let all = crossed(all, &self.iovec, |one, &iovec| one.iovec = iovec);
            // Where nobody receives, it does not matter how.
            let receivers = match topology.has_receiver() {
                true => &self.receivers[..],
                false => &self.receivers[..self.receivers.len().min(1)],
            };
            let all = crossed(all, receivers, |one, id| one.receiver.clone_from(id));
            crossed(all, &self.tuning.within(topology), |one, &tuning| one.tuning = tuning)
        };
        self.topologies.iter().flat_map(of_topology).collect()
    }

    /// How many values each axis has.
    fn lengths(&self) -> Vec<usize> {
        let own = [self.topologies.len(), self.modes.len(), self.working_sets.len()];
        let further = [self.fields.len(), self.iovec.len(), self.receivers.len()];
        [&own[..], &further, &self.tuning.lengths()].concat()
    }

    /// The same with one setting alone, which has to be one of these axes.
    pub fn at(&self, net: &NetSetting) -> NetAxes {
        NetAxes {
            topologies: vec![net.topology],
            modes: vec![net.mode],
            working_sets: vec![net.working_set],
            fields: vec![net.fields],
            iovec: vec![net.iovec],
            receivers: vec![net.receiver.clone()],
            congestion: self.congestion.clone(),
            tuning: self.tuning.at(net.tuning),
            allow_sysctl: self.allow_sysctl,
            direction: self.direction,
            external: self.external.clone(),
            external_loop: self.external_loop,
        }
    }

    /// The socket settings of a trial.
    pub fn socket_options(&self, tuning: &Tuning) -> SocketOptions {
        let receive_bytes = tuning.receive_size_bytes.or(Tuning::DEFAULT.receive_size_bytes);
        SocketOptions {
            congestion: self.congestion.clone(),
            buffer_bytes: tuning.socket_buffer_bytes,
            nodelay: true,
            receive_bytes: receive_bytes.unwrap_or_default(),
        }
    }

    fn told_apart(&self, net: &NetSetting) -> Vec<String> {
        let rows = [
            (self.topologies.len(), Some(net.topology.to_string())),
            (self.modes.len(), Some(net.mode.to_string())),
            (self.working_sets.len(), Some(net.working_set.to_string())),
            (self.fields.len(), Some(net.fields_in_words())),
            (self.receivers.len(), net.receiver_in_words()),
        ];
        several(rows.into_iter().chain(self.further(net)))
    }

    fn told_further(&self, net: &NetSetting, unusual: &[String]) -> Vec<String> {
        let said = |(values, word): (usize, Option<String>)| {
            word.filter(|word| values > 1 || unusual.contains(word))
        };
        self.further(net).into_iter().filter_map(said).collect()
    }

    /// The axes that most plans leave alone: how many values the plan has, and
    /// that of the cell in words.
    fn further(&self, net: &NetSetting) -> Vec<(usize, Option<String>)> {
        let tuning = self.tuning.lengths().into_iter().zip(net.tuning.words());
        [(self.iovec.len(), Some(net.iovec_in_words()))].into_iter().chain(tuning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{Direction, Iovec, Mode, WorkingSet};
    use crate::tuning::{RingDepth, TuningAxes};
    use crate::units::Bytes;

    const PLAN: &str = r#"{"study": "net", "primitives": ["send_staged", "send", "memcpy"],
        "baseline": "send_staged", "sizes": [64, 4096], "threads": [1, 2],
        "topologies": ["loopback", "sink"], "modes": ["stream"], "working_sets": ["hot"],
        "fields": [8], "iovec": ["per-message"], "receivers": ["recv"],
        "schedule": {"slices": {"slice": 2000000, "discarded_rounds": 3, "rounds": 10}},
        "passes": {"minimum": 12, "maximum": 60}, "budget": 600000000000, "precision": 0.03,
        "delta": 0.03, "quick": false, "isolate": false, "seed": 18446744073709551615,
        "cpus": [0, 1],
        "congestion": "reno",
        "tuning": {"ip": ["ipv4"], "mtu_bytes": [1500], "socket_buffer_bytes": [524288],
            "receive_size_bytes": [131072], "reap_batch": [null], "uring_depth": [null],
            "uring_batch": [1], "ring_flags": ["single_issuer+defer_taskrun"],
            "busy_poll_us": [null]},
        "probes": {"counting": "on", "software": false, "tracepoints": false},
        "allow_sysctl": false, "direction": "tx"}"#;

    #[test]
    fn a_plan_of_net_is_written_as_it_is_read() {
        let plan: Plan = serde_json::from_str(PLAN).unwrap();
        assert_eq!((plan.study(), plan.seed), (Study::Net, u64::MAX));
        assert_eq!(plan.cells().len(), 8);
        let read: serde_json::Value = serde_json::from_str(PLAN).unwrap();
        assert_eq!(serde_json::to_value(&plan).unwrap(), read);
    }

    #[test]
    fn cells_that_fill_the_memory_are_counted_without_being_made() {
        let plan: Plan = serde_json::from_str(PLAN).unwrap();
        let of = |sizes: usize, threads: usize| Plan {
            sizes: vec![Bytes(64); sizes],
            threads: vec![1; threads],
            ..plan.clone()
        };
        assert_eq!(of(500, 1000).check_cells(), Ok(()), "over two topologies");
        let refused = of(500, 1001).check_cells().unwrap_err();
        assert!(refused.contains("more than 1000000 cells"), "{refused}");
        // None are left, once all others were made.
        assert!(of(0, 500_001).check_cells().is_err());
        let mut long = of(10_000, 10_000);
        long.net_mut().unwrap().fields = vec![8; 10_000];
        long.net_mut().unwrap().tuning.uring_batch = vec![1; 100_000_000];
        assert!(long.check_cells().is_err(), "more than there are numbers");
    }

    #[test]
    fn a_plan_that_lacks_an_axis_of_its_study_is_none() {
        for missing in ["\"topologies\": [\"loopback\", \"sink\"],", "\"study\": \"net\","] {
            let error = serde_json::from_str::<Plan>(&PLAN.replacen(missing, "", 1)).unwrap_err();
            let key = missing.split('"').nth(1).unwrap();
            assert!(error.to_string().contains(&format!("missing field `{key}`")), "{error}");
        }
    }

    #[test]
    fn each_setting_of_a_plan_can_be_had_alone() {
        let net = NetAxes {
            topologies: Topology::ALL.to_vec(),
            modes: vec![Mode::Stream],
            working_sets: vec![WorkingSet::Hot],
            fields: vec![1, 8],
            iovec: vec![Iovec::PerMessage],
            receivers: vec!["recv".to_owned(), "recvmsg_iov".to_owned()],
            congestion: "reno".to_owned(),
            tuning: TuningAxes {
                mtu_bytes: vec![Some(1500), Some(9000)],
                receive_size_bytes: vec![Some(Bytes(4096)), Some(Bytes(65536))],
                uring_depth: vec![RingDepth::Batch, RingDepth::Sends(4)],
                uring_batch: vec![1, 2],
                ..TuningAxes::default()
            },
            allow_sysctl: false,
            direction: Direction::Rx,
            external: Vec::new(),
            external_loop: false,
        };
        let settings = net.settings();
        assert_eq!(settings.len(), 32 + 64 + 8 + 32);
        for setting in settings {
            assert_eq!(net.at(&setting).settings(), [setting]);
        }
    }
}
