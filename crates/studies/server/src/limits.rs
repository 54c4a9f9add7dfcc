//! What this machine's limits allow a server and its client in a run that compares them,
//! computed before anything is started: descriptors of both ends, ports, threads and
//! processes, the sets of select(2). What only overflows for a while, as a queue of new
//! connections does, is counted when it happens and stops nobody.

use std::net::SocketAddr;

use iolens_model::axes::Topology;
use iolens_model::load::Length;
use iolens_model::server::Mishap;
use iolens_model::server::ServerSetting;
use iolens_sys::proc::Root;
use iolens_sys::{process, sysctl};

use super::models::{Entry, Makes, Workers};
use crate::load::{ClientLimits, Settings};
use iolens_harness::cgroup;

/// Descriptors of a server that are no connections, at least: standard input, output and
/// error, the listening socket and its copy, three events, and eight in reserve.
const SERVER_DESCRIPTORS: u64 = 16;

/// Descriptors of a process of ours that are no connections, about.
const OTHER_DESCRIPTORS: u64 = 64;

/// Threads and processes of a run besides those for connections: the coordinator, a
/// worker for each end, and what they start.
const OTHER_TASKS: u64 = 16;

/// Parts of a process's memory besides stacks, about.
const OTHER_MAPPINGS: u64 = 256;

/// Parts of memory that a thread takes: its stack, and the guard below it.
const MAPPINGS_OF_THREAD: u64 = 2;

/// The limits of this machine, for this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    client: ClientLimits,
    /// `RLIMIT_NOFILE`, hard.
    descriptors: u64,
    /// On threads and processes.
    tasks: Vec<TaskLimit>,
    /// `vm.max_map_count`; `None` where it cannot be read.
    mappings: Option<u64>,
    /// `net.core.somaxconn`; `None` where it cannot be read.
    backlog: Option<u64>,
}

/// How many threads and processes there may be, and are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TaskLimit {
    name: String,
    most: u64,
    used: u64,
}

impl TaskLimit {
    fn room(&self) -> u64 {
        self.most.saturating_sub(self.used)
    }

    /// `kernel.threads-max is 1000, and 900 are in use`.
    fn words(&self) -> String {
        format!("{} is {}, and {} are in use", self.name, self.most, self.used)
    }
}

impl Limits {
    /// As they are now.
    pub fn here() -> Limits {
        Limits::of(&Root::real(), process::descriptor_limits().1, process::task_limit())
    }

    /// Those of a machine, where this process may have so many descriptors, and this user
    /// so many threads and processes.
    fn of(root: &Root, descriptors: u64, of_user: Option<u64>) -> Limits {
        let number = |name: &str| sysctl::read(root, name).ok()?.parse::<u64>().ok();
        let all = all_tasks(root);
        let of_kernel = |name: &str| {
            let (most, used) = (number(name)?, all?);
            Some(TaskLimit { name: name.to_owned(), most, used })
        };
        let of_user = of_user.map(|most| TaskLimit {
            name: "RLIMIT_NPROC".to_owned(),
            most,
            used: tasks_of_user(root, process::user_id()),
        });
        let of_group = cgroup::tightest_pids(root).map(|pids| TaskLimit {
            name: pids.source,
            most: pids.most,
            used: pids.used,
        });
        let of_kernel = ["kernel.threads-max", "kernel.pid_max"].map(of_kernel);
        Limits {
            client: ClientLimits::here(root).with_descriptors(descriptors),
            descriptors,
            tasks: of_user
                .into_iter()
                .chain(of_group)
                .chain(of_kernel.into_iter().flatten())
                .collect(),
            mappings: number("vm.max_map_count"),
            backlog: number("net.core.somaxconn"),
        }
    }

    /// Whether a model, or a program where it is none, and its client can have the
    /// connections of a cell.
    ///
    /// Errors: which limit does not allow it, with the arithmetic, in one line.
    pub fn allow(&self, entry: Option<&Entry>, setting: &ServerSetting) -> Result<(), String> {
        self.allow_client(setting)?;
        let Some(entry) = entry else { return Ok(()) };
        self.allow_sets(entry, setting)?;
        match entry.makes {
            Makes::Nothing => Ok(()),
            Makes::Process => self.allow_tasks("processes", setting),
            Makes::Thread => {
                self.allow_tasks("threads", setting)?;
                self.allow_stacks(setting)
            }
        }
    }

    fn allow_client(&self, setting: &ServerSetting) -> Result<(), String> {
        let is_apart = setting.topology == Topology::Veth;
        let client = if is_apart { self.client.in_own_namespace() } else { self.client.clone() };
        // Any address that is of the loopback device, or is not.
        let ip = if is_apart { [192, 0, 2, 1] } else { [127, 0, 0, 1] };
        let address = SocketAddr::from((ip, 1));
        let settings =
            Settings { connections: setting.connections, ..Settings::closed_loop(address) };
        let sources = client.sources(&settings);
        let why = client.allow(&Settings { sources, ..settings });
        why.map_err(|why| why.lines().next().unwrap_or_default().to_owned())
    }

    /// What a call that waits can name, whatever the process may have.
    fn allow_sets(&self, entry: &Entry, setting: &ServerSetting) -> Result<(), String> {
        let Some(end) = entry.descriptors_end else { return Ok(()) };
        let connections = u64::from(setting.connections);
        let needed = connections + SERVER_DESCRIPTORS;
        if needed <= end as u64 {
            return Ok(());
        }
        Err(format!(
            "{connections} connections need {needed} descriptors at least, and the sets of \
             select(2) end at {end} (FD_SETSIZE): use `select_large`"
        ))
    }

    fn allow_tasks(&self, what: &str, setting: &ServerSetting) -> Result<(), String> {
        let needed = u64::from(setting.connections) + OTHER_TASKS;
        match self.nearest().filter(|limit| limit.room() < needed) {
            None => Ok(()),
            Some(limit) => Err(format!(
                "{} connections need as many {what} at a time, and {OTHER_TASKS} others: {}",
                setting.connections,
                limit.words()
            )),
        }
    }

    fn allow_stacks(&self, setting: &ServerSetting) -> Result<(), String> {
        let threads = u64::from(setting.connections);
        let needed = threads * MAPPINGS_OF_THREAD + OTHER_MAPPINGS;
        match self.mappings.filter(|&most| most < needed) {
            None => Ok(()),
            Some(most) => Err(format!(
                "the stacks of {threads} threads, each with a guard, are {needed} mappings of \
                 memory, and vm.max_map_count is {most}"
            )),
        }
    }

    /// The limit on threads and processes that leaves least room.
    fn nearest(&self) -> Option<&TaskLimit> {
        self.tasks.iter().min_by_key(|limit| limit.room())
    }

    /// Why servers that stand beside each other cannot be in a trial with so many long
    /// connections to each: its client has those to all of them.
    pub fn alone(&self, servers: u64, connections: u32) -> Option<String> {
        let needed = servers * u64::from(connections) + OTHER_DESCRIPTORS;
        (needed > self.descriptors).then(|| {
            format!(
                "{connections} connections to each of {servers} servers are {needed} descriptors \
                 with {OTHER_DESCRIPTORS} others, and RLIMIT_NOFILE allows {}",
                self.descriptors
            )
        })
    }

    /// Of connections that come at once, those beyond what may wait to be taken are
    /// dropped, and come again after a second; `None` where none are.
    pub fn beyond_backlog(&self, connections: u32, wanted: u32) -> Option<String> {
        let waiting = self.backlog?.min(u64::from(wanted));
        (waiting < u64::from(connections)).then(|| {
            format!(
                "of {connections} connections that come at once {waiting} may wait to be accepted \
                 (net.core.somaxconn is {}): the others are dropped, counted, and tried again \
                 after a second; --network veth has room",
                self.backlog.unwrap_or_default()
            )
        })
    }

    /// What a server has met that is a limit of the machine and no matter of a client's,
    /// with the one that is nearest; `None` where it has met none.
    pub fn met(&self, mishaps: &[(Mishap, u64)]) -> Option<String> {
        let is_limit = |mishap: &Mishap| {
            matches!(mishap, Mishap::NoDescriptor | Mishap::NoTask | Mishap::BeyondSelect)
        };
        let (mishap, count) = mishaps.iter().find(|(mishap, _)| is_limit(mishap))?;
        let nearest = match mishap {
            Mishap::NoTask => self.nearest().map(|limit| format!("; {}", limit.words())),
            Mishap::NoDescriptor => Some(format!("; RLIMIT_NOFILE is {}", self.descriptors)),
            _ => None,
        };
        Some(format!("{count} {}{}", mishap.text(), nearest.unwrap_or_default()))
    }
}

impl Entry {
    /// Threads and processes that it serves with, at least and at most, for so many
    /// workers and these connections.
    pub fn tasks(&self, workers: u32, setting: &ServerSetting) -> (u64, Option<u64>) {
        let stay = match setting.length {
            Length::Long => u64::from(setting.connections),
            Length::Short => 0,
        };
        let workers = u64::from(workers);
        match (self.makes, self.workers) {
            (Makes::Thread, _) => (stay, None),
            // The one that forks them, and those that wait.
            (Makes::Process, Workers::Processes) => (1 + workers.max(stay), None),
            (Makes::Process, _) => (1 + stay, None),
            (Makes::Nothing, Workers::Shards) => (workers, Some(workers)),
            // The one that waits for all connections.
            (Makes::Nothing, Workers::Threads) => (1 + workers, Some(1 + workers)),
            // A thread of it shows with its first request.
            (Makes::Nothing, Workers::Runtime) => (1, Some(workers)),
            (Makes::Nothing, Workers::None | Workers::Processes) => (1, Some(1)),
        }
    }

    /// How many of them are there before anything is asked.
    pub fn tasks_at_rest(&self, workers: u32, setting: &ServerSetting) -> u64 {
        match self.workers {
            Workers::Runtime => 0,
            _ => self.tasks(workers, setting).0,
        }
    }
}

/// Threads of all processes: the second number of the fourth field of /proc/loadavg.
fn all_tasks(root: &Root) -> Option<u64> {
    let text = root.read("proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Threads of all processes of a user, as far as they can be seen.
fn tasks_of_user(root: &Root, user: u32) -> u64 {
    let of_process = |name: &String| {
        let status = root.read(&format!("proc/{name}/status")).ok()?;
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        (field("Uid:")? == u64::from(user)).then(|| field("Threads:")).flatten()
    };
    let names = root.names("proc");
    let processes = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    processes.filter_map(of_process).sum()
}

#[cfg(test)]
mod tests {
    use iolens_model::server::LoadLevel;

    use super::*;
    use crate::models;
    use crate::scripted::Machine;

    const FILES: &[(&str, &str)] = &[
        ("proc/loadavg", "0.1 0.2 0.3 2/400 999"),
        ("proc/sys/kernel/threads-max", "10000"),
        ("proc/sys/kernel/pid_max", "32768"),
        ("proc/sys/vm/max_map_count", "65530"),
        ("proc/sys/net/core/somaxconn", "4096"),
        ("proc/sys/net/ipv4/ip_local_port_range", "32768 60999"),
    ];

    fn limits(more: &[(&str, &str)], of_user: Option<u64>) -> Limits {
        Limits::of(&Machine::with(&[FILES, more].concat()).root(), 20_000, of_user)
    }

    fn setting(topology: Topology, connections: u32) -> ServerSetting {
        ServerSetting {
            topology,
            service: "echo".into(),
            length: Length::Long,
            load: LoadLevel::Closed,
            connections,
        }
    }

    /// What is said of a model with so many connections over loopback.
    fn said(limits: &Limits, model: &str, connections: u32) -> String {
        let allowed = limits.allow(models::find(model), &setting(Topology::Loopback, connections));
        allowed.err().unwrap_or_default()
    }

    #[test]
    fn the_sets_of_select_end_where_they_end() {
        let limits = limits(&[], None);
        assert_eq!(said(&limits, "select", 1008), "");
        let why = said(&limits, "select", 1009);
        assert!(why.contains("need 1025 descriptors") && why.contains("end at 1024 (FD_SETSIZE)"));
        assert!(why.contains("`select_large`"), "{why}");
        for model in ["select_large", "poll", "epoll_et"] {
            assert_eq!(said(&limits, model, 10_000), "", "{model}");
        }
    }

    #[test]
    fn the_nearest_limit_on_threads_and_processes_is_named() {
        let free = limits(&[], None);
        assert_eq!(said(&free, "thread_per_connection", 9584), "");
        let why = said(&free, "fork", 9585);
        assert!(why.contains("as many processes at a time"), "{why}");
        assert!(why.ends_with("kernel.threads-max is 10000, and 400 are in use"), "{why}");
        assert_eq!(said(&free, "epoll_lt", 9585), "");
        let group = [
            ("proc/self/cgroup", "0::/a"),
            ("sys/fs/cgroup/a/pids.max", "200"),
            ("sys/fs/cgroup/a/pids.current", "50"),
        ];
        let grouped = limits(&group, None);
        assert_eq!(said(&grouped, "prefork", 134), "");
        let why = said(&grouped, "prefork", 135);
        assert!(why.ends_with("/sys/fs/cgroup/a/pids.max is 200, and 50 are in use"), "{why}");
        let user = process::user_id();
        let status = |user: u32| format!("Name:\tx\nUid:\t{user}\t7\t7\t7\nThreads:\t30\n");
        let (own, other) = (status(user), status(user + 1));
        let processes = [("proc/12/status", own.as_str()), ("proc/13/status", &other)];
        let limited = limits(&processes, Some(100));
        let why = said(&limited, "thread_per_connection", 55);
        assert!(why.ends_with("RLIMIT_NPROC is 100, and 30 are in use"), "{why}");
        assert_eq!(said(&limited, "thread_per_connection", 54), "");
        let mapped = limits(&[("proc/sys/vm/max_map_count", "2255")], None);
        assert!(said(&mapped, "thread_per_connection", 1000).contains("vm.max_map_count is 2255"));
        assert_eq!(said(&mapped, "fork", 1000), "");
    }

    #[test]
    fn descriptors_and_ports_of_the_client_are_those_of_all_models() {
        let limits = limits(&[], None);
        let why = said(&limits, "epoll_lt", 19_999);
        assert!(why.contains("need 20064 descriptors") && why.contains("RLIMIT_NOFILE"), "{why}");
        assert!(!why.contains('\n'), "{why}");
        let client = limits.client.clone().with_descriptors(u64::MAX);
        let unlimited = Limits { client, ..limits };
        // Over loopback the client has as many addresses as it needs, over veth one.
        assert_eq!(said(&unlimited, "epoll_lt", 60_000), "");
        let apart = |connections| unlimited.allow(None, &setting(Topology::Veth, connections));
        assert_eq!(apart(60_000), Ok(()));
        assert!(apart(64_513).unwrap_err().contains("64512 ports (1024 to 65535"));
    }

    #[test]
    fn what_does_not_stop_a_model_is_told_all_the_same() {
        let limits = limits(&[], None);
        assert_eq!(limits.alone(3, 6645), None);
        assert!(limits.alone(3, 6646).unwrap().contains("20002 descriptors"));
        assert_eq!(limits.beyond_backlog(4096, 65_535), None);
        assert!(limits.beyond_backlog(10_000, 65_535).unwrap().contains("4096 may wait"));
        assert!(limits.beyond_backlog(200, 128).unwrap().contains("128 may wait"));
        assert_eq!(limits.met(&[(Mishap::Reset, 3), (Mishap::CutOff, 1)]), None);
        let met = limits.met(&[(Mishap::Reset, 3), (Mishap::NoTask, 7)]).unwrap();
        assert!(met.starts_with("7 connections closed for lack of a thread"), "{met}");
        assert!(met.ends_with("kernel.threads-max is 10000, and 400 are in use"), "{met}");
    }

    #[test]
    fn a_model_has_the_threads_and_processes_that_it_makes() {
        let tasks = |model: &str, length| {
            let setting = ServerSetting { length, ..setting(Topology::Loopback, 16) };
            models::find(model).unwrap().tasks(2, &setting)
        };
        assert_eq!(tasks("epoll_lt", Length::Long), (1, Some(1)));
        assert_eq!(tasks("epoll_reuseport", Length::Short), (2, Some(2)));
        assert_eq!(tasks("thread_pool", Length::Long), (3, Some(3)));
        assert_eq!(tasks("tokio", Length::Long), (1, Some(2)));
        assert_eq!(tasks("thread_per_connection", Length::Long), (16, None));
        assert_eq!(tasks("thread_per_connection", Length::Short), (0, None));
        assert_eq!(tasks("prefork", Length::Short), (3, None));
        assert_eq!(tasks("prefork", Length::Long), (17, None));
        assert_eq!(tasks("fork", Length::Short), (1, None));
    }
}
