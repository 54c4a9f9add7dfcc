//! A cell: one setting of a study's axes, which all arms of a trial have in
//! common. What every study has stands in [`Cell`]; what one study alone knows
//! stands in its own setting.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ab::AbSetting;
use crate::axes::{Iovec, Mode, Study, Topology, WorkingSet};
use crate::copy::CopySetting;
use crate::file::{CacheState, FileSetting, WriteSetting};
use crate::server::ServerSetting;
use crate::tuning::Tuning;
use crate::units::Bytes;

/// One setting of the axes: what all arms of a trial have in common. The order
/// of the fields is how cells are sorted, so that a table reads as one curve
/// after another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Cell {
    /// The axes of the study.
    pub setting: Setting,
    /// Threads that work at the same time; at least 1. In `net` each has a
    /// connection, and a thread at the other end of it.
    pub threads: u32,
    /// Bytes of one unit of work: of a message at least 1; 0 in studies where
    /// that is no axis, see [`Study::has_sizes`], and where calls move what they move by
    /// themselves.
    pub size: Bytes,
}

/// The axes that one study alone has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Setting {
    /// Messages through sockets.
    Net(NetSetting),
    /// What a crossing into the kernel costs.
    Syscall(SyscallSetting),
    /// Blocks of a file.
    File(FileSetting),
    /// Blocks written to a file.
    Write(WriteSetting),
    /// Whole files, copied.
    Copy(CopySetting),
    /// Requests to a server.
    Server(ServerSetting),
    /// Operations of programs of the user's.
    Ab(AbSetting),
}

/// The axes of `syscall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SyscallSetting {
    /// Calls in a row that a thread's slice is; `None` for as many as fill it.
    pub in_a_row: Option<u64>,
}

impl SyscallSetting {
    /// `10 calls in a row`; `None` where a slice is filled.
    pub fn in_words(self) -> Option<String> {
        let plural = |n| if n == 1 { "1 call".to_owned() } else { format!("{n} calls") };
        self.in_a_row.map(|n| format!("{} in a row", plural(n)))
    }
}

/// The axes of `net`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetSetting {
    /// Where the ends stand.
    pub topology: Topology,
    /// What travels.
    pub mode: Mode,
    /// Size of the memory that is sent from.
    pub working_set: WorkingSet,
    /// Fields per message, each allocated on its own; at least 1.
    pub fields: u32,
    /// When the iovec is built.
    pub iovec: Iovec,
    /// Receiver primitive, the same for all arms.
    pub receiver: String,
    /// What most plans leave alone.
    pub tuning: Tuning,
}

impl NetSetting {
    /// Fields of a message, where a plan states nothing.
    pub const FIELDS: u32 = 8;

    /// The receiver, where a plan states nothing.
    pub const RECEIVER: &'static str = "recv";

    /// The first value of every other axis: what the cells of a topology are
    /// made from.
    pub(crate) fn blank(topology: Topology) -> NetSetting {
        NetSetting {
            topology,
            mode: Mode::Stream,
            working_set: WorkingSet::Hot,
            fields: NetSetting::FIELDS,
            iovec: Iovec::PerMessage,
            receiver: String::new(),
            tuning: Tuning::DEFAULT.within(topology),
        }
    }

    /// `8 fields`.
    pub fn fields_in_words(&self) -> String {
        format!("{} field{}", self.fields, if self.fields == 1 { "" } else { "s" })
    }

    /// `iovec prepared`.
    pub fn iovec_in_words(&self) -> String {
        format!("iovec {}", self.iovec)
    }

    /// `received with recv`; `None` where nobody receives.
    pub fn receiver_in_words(&self) -> Option<String> {
        let is_named = self.topology.has_receiver() && !self.receiver.is_empty();
        is_named.then(|| format!("received with {}", self.receiver))
    }

    /// What is not as it is where a plan states nothing, in words.
    fn unusual(&self) -> Vec<String> {
        let fields = (self.fields != NetSetting::FIELDS).then(|| self.fields_in_words());
        let iovec = (self.iovec != Iovec::PerMessage).then(|| self.iovec_in_words());
        let receiver = self.receiver_in_words().filter(|_| self.receiver != NetSetting::RECEIVER);
        [fields, iovec, receiver].into_iter().flatten().chain(self.tuning.unusual()).collect()
    }
}

/// The study of an enum with a variant for each, and what it holds of one; `None` of others.
macro_rules! of_studies {
    ($owner:ident.$field:ident: $of:ident {
        $($name:ident($it:ident) $study:ident: $held:ty = $take:expr;)+
    }) => {
        impl $owner {
            /// The study it is of.
            pub fn study(&self) -> Study {
                match &self.$field { $($of::$study(_) => Study::$study,)+ }
            }

            $(
                /// Its axes in this study; `None` in others.
                pub fn $name(&self) -> Option<$held> {
                    match &self.$field { $of::$study($it) => Some($take), _ => None }
                }
            )+
        }
    };
}

pub(crate) use of_studies;

of_studies! { Cell.setting: Setting {
    net(it) Net: &NetSetting = it;
    syscall(it) Syscall: SyscallSetting = *it;
    file(it) File: FileSetting = *it;
    write(it) Write: WriteSetting = *it;
    copy(it) Copy: CopySetting = *it;
    server(it) Server: &ServerSetting = it;
    ab(it) Ab: &AbSetting = it;
} }

impl Cell {
    /// The axes of `net`, to be changed.
    pub fn net_mut(&mut self) -> Option<&mut NetSetting> {
        match &mut self.setting {
            Setting::Net(net) => Some(net),
            _ => None,
        }
    }

    /// What of the file that is read is in the page cache when a slice begins; `None`
    /// in studies that read none.
    pub fn cache(&self) -> Option<CacheState> {
        match self.setting {
            Setting::File(file) => Some(file.cache),
            Setting::Copy(copy) => Some(copy.cache),
            _ => None,
        }
    }

    /// Whether the work of its slices is done by one process alone.
    pub fn is_alone(&self) -> bool {
        self.topology().is_none()
    }

    /// Threads that work at the same time, over all its processes.
    pub fn workers(&self) -> u32 {
        let ends = if self.is_alone() { 1 } else { 2 };
        self.threads.saturating_mul(ends)
    }

    /// The same cell with something else of `net`.
    pub fn with_net(&self, change: impl FnOnce(&mut NetSetting)) -> Cell {
        let mut cell = self.clone();
        if let Some(net) = cell.net_mut() {
            change(net);
        }
        cell
    }

    /// Where the ends stand; `None` in studies without a network.
    pub fn topology(&self) -> Option<Topology> {
        match &self.setting {
            Setting::Net(net) => Some(net.topology),
            Setting::Server(server) => Some(server.topology),
            _ => None,
        }
    }

    /// Whether anybody receives what the arms send.
    pub fn has_receiver(&self) -> bool {
        self.topology().is_some_and(Topology::has_receiver)
    }

    /// Whether the receiving end asks for each message, and holds the clock.
    pub fn is_rr(&self) -> bool {
        self.net().is_some_and(|net| net.mode == Mode::Rr)
    }

    /// How large the memory is that is worked on; `None` in studies where that
    /// is no axis.
    pub fn working_set(&self) -> Option<WorkingSet> {
        self.net().map(|net| net.working_set)
    }

    /// Receiver primitive; `None` in studies without one.
    pub fn receiver(&self) -> Option<&str> {
        self.net().map(|net| net.receiver.as_str())
    }

    /// Bytes that one receiving call is asked for; 0 where nobody receives.
    pub fn receive_size(&self) -> Bytes {
        self.net().and_then(|net| net.tuning.receive_size_bytes).unwrap_or_default()
    }

    /// The setting without the size: cells that share it form one curve.
    pub fn curve(&self) -> Cell {
        Cell { size: Bytes(0), ..self.clone() }
    }

    /// Its size; `None` where it has none.
    pub fn own_size(&self) -> Option<Bytes> {
        (self.study().has_sizes() || self.size.0 > 0).then_some(self.size)
    }

    /// `4 threads`.
    pub fn threads_in_words(&self) -> String {
        // A model makes of them what it makes of them: threads, processes, shards.
        let word = if self.server().is_some() { "worker" } else { "thread" };
        format!("{} {word}{}", self.threads, if self.threads == 1 { "" } else { "s" })
    }

    /// `64 KiB × 4 threads`; without the size in studies that have none.
    pub fn size_and_threads(&self) -> String {
        match self.own_size() {
            Some(size) => format!("{size} × {}", self.threads_in_words()),
            None => self.threads_in_words(),
        }
    }

    /// What every title says of the study's axes: `loopback`, `stream`, `hot`.
    pub fn words(&self) -> Vec<String> {
        match &self.setting {
            Setting::Net(NetSetting { topology, mode, working_set, .. }) => {
                vec![topology.to_string(), mode.to_string(), working_set.to_string()]
            }
            Setting::Syscall(_) => Vec::new(),
            Setting::File(FileSetting { cache, pattern, consumer, .. }) => {
                vec![cache.to_string(), pattern.to_string(), format!("consumer {consumer}")]
            }
            Setting::Write(WriteSetting { destination, pattern, .. }) => {
                vec![destination.to_string(), pattern.to_string()]
            }
            Setting::Copy(copy) => vec![copy.block_in_words(), copy.cache.to_string()],
            Setting::Server(server) => vec![
                server.connections_in_words(),
                server.service.clone(),
                server.length_in_words(),
                server.load_in_words(),
                server.topology.to_string(),
            ],
            Setting::Ab(ab) => ab.words(),
        }
    }

    /// What is not as it is where a plan states nothing, in words.
    pub fn unusual(&self) -> Vec<String> {
        match &self.setting {
            Setting::Net(net) => net.unusual(),
            Setting::Syscall(syscall) => syscall.in_words().into_iter().collect(),
            Setting::File(file) => {
                let is_unusual = file.depth != FileSetting::DEPTH;
                is_unusual.then(|| file.depth_in_words()).into_iter().collect()
            }
            Setting::Write(write) => write.unusual().into_iter().collect(),
            Setting::Copy(copy) => copy.sync_in_words().into_iter().collect(),
            Setting::Server(_) | Setting::Ab(_) => Vec::new(),
        }
    }
}

/// `64 KiB × 4 threads, loopback, stream, hot`, and whatever is not as it is
/// where a plan states nothing.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.size_and_threads())?;
        self.words().iter().chain(&self.unusual()).try_for_each(|word| write!(f, ", {word}"))
    }
}

/// A cell as it is written: flat, with the size under the name that its study
/// has for it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Net {
        #[serde(flatten)]
        setting: NetSetting,
        threads: u32,
        message_bytes: Bytes,
    },
    // Before what has less: the first that fits is taken.
    Copy {
        study: Study,
        #[serde(flatten)]
        setting: CopySetting,
        threads: u32,
        file_bytes: Bytes,
    },
    File {
        study: Study,
        #[serde(flatten)]
        setting: FileSetting,
        threads: u32,
        block_bytes: Bytes,
    },
    Write {
        study: Study,
        #[serde(flatten)]
        setting: WriteSetting,
        threads: u32,
        block_bytes: Bytes,
    },
    Server {
        study: Study,
        #[serde(flatten)]
        setting: ServerSetting,
        threads: u32,
    },
    Ab {
        study: Study,
        #[serde(flatten)]
        setting: AbSetting,
    },
    Syscall {
        study: Study,
        in_a_row: Option<u64>,
        threads: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        block_bytes: Option<Bytes>,
    },
}

impl From<Stored> for Cell {
    fn from(stored: Stored) -> Cell {
        match stored {
            Stored::Net { setting, threads, message_bytes } => {
                Cell { setting: Setting::Net(setting), threads, size: message_bytes }
            }
            Stored::File { setting, threads, block_bytes, .. } => {
                Cell { setting: Setting::File(setting), threads, size: block_bytes }
            }
            Stored::Write { setting, threads, block_bytes, .. } => {
                Cell { setting: Setting::Write(setting), threads, size: block_bytes }
            }
            Stored::Copy { setting, threads, file_bytes, .. } => {
                Cell { setting: Setting::Copy(setting), threads, size: file_bytes }
            }
            Stored::Server { setting, threads, .. } => {
                Cell { setting: Setting::Server(setting), threads, size: Bytes(0) }
            }
            Stored::Ab { setting, .. } => {
                Cell { setting: Setting::Ab(setting), threads: 1, size: Bytes(0) }
            }
            Stored::Syscall { in_a_row, threads, block_bytes, .. } => {
                let setting = Setting::Syscall(SyscallSetting { in_a_row });
                Cell { setting, threads, size: block_bytes.unwrap_or_default() }
            }
        }
    }
}

impl From<Cell> for Stored {
    fn from(Cell { setting, threads, size }: Cell) -> Stored {
        match setting {
            Setting::Net(setting) => Stored::Net { setting, threads, message_bytes: size },
            Setting::File(setting) => {
                Stored::File { study: Study::File, setting, threads, block_bytes: size }
            }
            Setting::Write(setting) => {
                Stored::Write { study: Study::Write, setting, threads, block_bytes: size }
            }
            Setting::Copy(setting) => {
                Stored::Copy { study: Study::Copy, setting, threads, file_bytes: size }
            }
            Setting::Server(setting) => Stored::Server { study: Study::Server, setting, threads },
            Setting::Ab(setting) => Stored::Ab { study: Study::Ab, setting },
            Setting::Syscall(SyscallSetting { in_a_row }) => {
                let block_bytes = Some(size).filter(|size| size.0 > 0);
                Stored::Syscall { study: Study::Syscall, in_a_row, threads, block_bytes }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::CopySync;

    #[test]
    fn a_cell_of_net_is_written_flat() {
        let text = r#"{"topology":"veth","mode":"rr","working_set":"cold","fields":3,
            "iovec":"prebuilt","receiver":"recv_trunc","tuning":{"ip":"ipv4","mtu_bytes":1500,
            "socket_buffer_bytes":524288,"receive_size_bytes":131072,"reap_batch":null,"uring_depth":1,
            "uring_batch":1,"ring_flags":"single_issuer+defer_taskrun",
            "busy_poll_us":null},"threads":4,
            "message_bytes":65536}"#;
        let cell: Cell = serde_json::from_str(text).unwrap();
        assert_eq!((cell.threads, cell.size), (4, Bytes(65536)));
        assert_eq!(cell.net().unwrap().tuning, Tuning::DEFAULT.within(Topology::Veth));
        assert_eq!(
            cell.to_string(),
            "64 KiB × 4 threads, veth, rr, cold, 3 fields, iovec prebuilt, received with recv_trunc"
        );
        let read: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&cell).unwrap(), read);
    }

    #[test]
    fn a_cell_that_writes_is_no_cell_that_reads() {
        use crate::file::{Destination, Pattern};
        for (destination, depth) in [(Destination::Existing, 1), (Destination::New, 8)] {
            let setting = WriteSetting { destination, pattern: Pattern::Random, depth };
            let cell = Cell { setting: Setting::Write(setting), threads: 1, size: Bytes(512) };
            let written = serde_json::to_string(&cell).unwrap();
            assert_eq!(serde_json::from_str::<Cell>(&written).unwrap(), cell, "{written}");
            let unusual = if depth == 1 { "" } else { ", depth 8" };
            let words = format!("512 B × 1 thread, {destination}, random{unusual}");
            assert_eq!(cell.to_string(), words);
        }
    }

    #[test]
    fn the_size_of_a_copy_is_that_of_the_file() {
        let copy = CopySetting {
            block_bytes: Bytes(4096),
            cache: CacheState::Warm,
            sync: CopySync::Fsync,
        };
        let cell = Cell { setting: Setting::Copy(copy), threads: 2, size: Bytes(1 << 20) };
        assert_eq!(
            cell.to_string(),
            "1 MiB × 2 threads, blocks of 4 KiB, warm, fsync within the time"
        );
        let written = serde_json::to_value(&cell).unwrap();
        assert_eq!(
            (&written["file_bytes"], &written["block_bytes"]),
            (&(1 << 20).into(), &4096.into())
        );
        assert_eq!(serde_json::from_value::<Cell>(written).unwrap(), cell);
    }

    #[test]
    fn a_cell_without_a_size_says_none() {
        for (in_a_row, words) in [(None, "2 threads"), (Some(1), "2 threads, 1 call in a row")] {
            let setting = Setting::Syscall(SyscallSetting { in_a_row });
            let cell = Cell { setting, threads: 2, size: Bytes(0) };
            assert_eq!(cell.to_string(), words);
            let written = serde_json::to_string(&cell).unwrap();
            assert!(!written.contains("bytes"), "{written}");
            assert_eq!(serde_json::from_str::<Cell>(&written).unwrap(), cell);
            let sized = Cell { size: Bytes(4096), ..cell };
            assert_eq!(sized.to_string(), format!("4 KiB × {words}"));
            let written = serde_json::to_string(&sized).unwrap();
            assert_eq!(serde_json::from_str::<Cell>(&written).unwrap(), sized, "{written}");
        }
    }
}
