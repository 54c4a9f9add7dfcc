//! Readers of /proc and /sys below a root that the caller names, so that
//! tests can bring a machine of their own.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::usage::cpu_ns_of;

/// The root of a machine's `/proc` and `/sys`; `/` for the real one.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// The machine we run on.
    pub fn real() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A machine laid out below a folder.
    pub fn at(folder: &Path) -> Root {
        Root(folder.to_owned())
    }

    /// Where a file such as `proc/stat` is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The text of a file such as `proc/stat`, without white space at its end.
    ///
    /// Errors: the path and what the system said.
    pub fn read(&self, path: &str) -> Result<String, String> {
        match std::fs::read_to_string(self.0.join(path)) {
            Ok(text) => Ok(text.trim_end().to_owned()),
            Err(e) => Err(format!("cannot read /{path}: {}", crate::errno::Errno::from(e))),
        }
    }

    /// The beginning of a file, at most `bytes` of it: some files of /proc take
    /// long to make as a whole.
    ///
    /// Errors: the path and what the system said.
    pub fn beginning(&self, path: &str, bytes: usize) -> Result<String, String> {
        let cannot = |e| format!("cannot read /{path}: {}", crate::errno::Errno::from(e));
        let mut text = Vec::with_capacity(bytes);
        let file = File::open(self.0.join(path)).map_err(cannot)?;
        file.take(bytes as u64).read_to_end(&mut text).map_err(cannot)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// How long a task such as `thread-self` was ready to run and waited for a CPU, ns; see
    /// [`run_delay_ns`]. `None` also where it has gone.
    pub fn task_delay_ns(&self, task: &str) -> Option<u64> {
        run_delay_ns(&self.read(&format!("proc/{task}/schedstat")).ok()?)
    }

    /// Where a symbolic link leads, such as those of /proc/self/ns; nothing if
    /// there is none or it may not be read.
    pub fn link(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.0.join(path)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// Names in a directory, sorted; empty if there is none.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

/// Ticks of one line of /proc/stat, since boot; see proc_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTicks {
    /// All columns that do not repeat another one.
    pub total: u64,
    /// In user mode, with those of low priority (`nice`).
    pub user: u64,
    /// In the kernel, interrupts left out.
    pub system: u64,
    /// Nobody wanted it, or who did waits for storage (`iowait`).
    pub idle: u64,
    /// In interrupts.
    pub irq: u64,
    /// In softirq.
    pub softirq: u64,
    /// Taken by the hypervisor for somebody else.
    pub steal: u64,
}

/// Reads the line of `cpu` (`cpu` for all, `cpu3` for one) in /proc/stat.
pub fn cpu_ticks(stat: &str, cpu: &str) -> Option<CpuTicks> {
    let line = stat.lines().find(|line| line.split(' ').next() == Some(cpu))?;
    ticks_of(line)
}

/// The ticks of every processor by itself, with its number.
pub fn every_cpu(stat: &str) -> Vec<(u32, CpuTicks)> {
    let of_line = |line: &str| {
        let number = line.strip_prefix("cpu")?.split(' ').next()?.parse().ok()?;
        Some((number, ticks_of(line)?))
    };
    stat.lines().filter_map(of_line).collect()
}

fn ticks_of(line: &str) -> Option<CpuTicks> {
    // user nice system idle iowait irq softirq steal guest guest_nice; the
    // guest columns are contained in user and nice.
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let &[user, nice, system, idle, iowait, irq, softirq, steal] = ticks.first_chunk()?;
    Some(CpuTicks {
        total: ticks[..8].iter().try_fold(0_u64, |sum, ticks| sum.checked_add(*ticks))?,
        // Parts of a sum that fits.
        user: user + nice,
        system,
        idle: idle + iowait,
        irq,
        softirq,
        steal,
    })
}

/// A number behind a word in /proc/stat, such as `procs_running`.
pub fn stat_number(stat: &str, word: &str) -> Option<u64> {
    let line = stat.lines().find(|line| line.split(' ').next() == Some(word))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The `some … total=` microseconds of a file in /proc/pressure.
pub fn pressure_some_us(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

/// The number behind a name in /proc/PID/sched (`name : number`).
pub fn sched_number(sched: &str, name: &str) -> Option<u64> {
    let line = sched
        .lines()
        .find(|line| line.split_once(':').is_some_and(|(before, _)| before.trim_end() == name))?;
    line.split_once(':')?.1.trim().parse().ok()
}

/// The number behind a name in /proc/PID/io (`name: number`), such as
/// `read_bytes`: what the process had storage fetch for it, also with mmap, direct
/// reads and io_uring, whose poll thread is one of the process's.
///
/// Source: proc_pid_io(5); Documentation/filesystems/proc.rst.
pub fn io_number(io: &str, name: &str) -> Option<u64> {
    let line = io.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split_once(':')?.1.trim().parse().ok()
}

/// A counter of /proc/net/netstat or /proc/net/snmp, such as `ListenOverflows` of
/// `TcpExt` or `RetransSegs` of `Tcp`: a line of names, then one of numbers, both
/// behind the group's name. `None` where this kernel does not count it.
///
/// Source: proc_pid_net(5); net/ipv4/proc.c.
pub fn net_counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
    let at = lines.next()?.split(' ').position(|word| word == name)?;
    // `MaxConn` is -1, but nothing that counts is negative.
    lines.next()?.split(' ').nth(at)?.parse().ok()
}

/// The time that a task was ready to run and waited for a CPU, the second
/// number of /proc/PID/schedstat, in ns; `None` where the kernel counts nothing:
/// then all three numbers of the file are 0, and that of a task that reads its
/// own is never so otherwise.
///
/// Source: Documentation/scheduler/sched-stats.rst; fs/proc/base.c,
/// proc_pid_schedstat.
pub fn run_delay_ns(schedstat: &str) -> Option<u64> {
    let mut numbers = schedstat.split_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (on_cpu_ns, delay_ns, turns) = (next()?, next()?, next()?);
    (on_cpu_ns > 0 || turns > 0).then_some(delay_ns)
}

/// What a process that may be another one was charged, from its files in /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charged {
    /// On a CPU, ns.
    pub cpu_ns: u64,
    /// Switches because it waited, `voluntary_ctxt_switches` of status.
    pub voluntary_switches: u64,
    /// Switches because the scheduler took the CPU, `nonvoluntary_ctxt_switches`.
    pub involuntary_switches: u64,
    /// Page faults without I/O, the tenth field of stat.
    pub minor_faults: u64,
    /// Page faults that waited for I/O, the twelfth.
    pub major_faults: u64,
}

/// What a process of one thread was charged; `None` where it has gone, or a file does not
/// tell. One that has ended and was not waited for still tells. Its time is that of its clock:
/// kernels without `CONFIG_SCHED_INFO` have no schedstat.
///
/// Source: proc_pid_stat(5), proc_pid_status(5).
pub fn charged(root: &Root, id: u32) -> Option<Charged> {
    let read = |file: &str| root.read(&format!("proc/{id}/{file}")).ok();
    let (status, stat) = (read("status")?, read("stat")?);
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    // Behind the name comes the third field.
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some(Charged {
        cpu_ns: cpu_ns_of(id).ok()?,
        voluntary_switches: io_number(&status, "voluntary_ctxt_switches")?,
        involuntary_switches: io_number(&status, "nonvoluntary_ctxt_switches")?,
        minor_faults: field(10)?,
        major_faults: field(12)?,
    })
}

/// Whether a process runs, and when it was started, in clock ticks since boot,
/// from its /proc/PID/stat: the third field and the 22nd, proc_pid_stat(5).
/// The second is the program's name, which may hold anything, in parentheses.
pub fn process_start(stat: &str) -> Option<(RunState, u64)> {
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    let state = match fields.next()? {
        "Z" | "X" | "x" => RunState::Ended,
        _ => RunState::Running,
    };
    // The state is the third field, so the start is the 19th behind it.
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Where the stack of a process began when it was executed, and where its arguments begin, which
/// lie above, from its /proc/PID/stat: the fields 28 and 48. `None` also for a process that may not
/// be looked at, of which the kernel says 0.
pub fn stack_ends(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    let start: u64 = fields.nth(25)?.parse().ok()?;
    let arguments: u64 = fields.nth(19)?.parse().ok()?;
    (start > 0 && arguments > 0).then_some((start, arguments))
}

/// Whether a thread was made by io_uring for its work, from its /proc/PID/task/TID/stat: the
/// ninth field are its flags, of which `PF_IO_WORKER` (include/linux/sched.h) is set when it is
/// made. Its name it gives itself, when it first runs.
pub fn is_io_worker(stat: &str) -> Option<bool> {
    const PF_IO_WORKER: u64 = 0x10;
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    let flags: u64 = fields.nth(6)?.parse().ok()?;
    Some(flags & PF_IO_WORKER != 0)
}

/// Whether a process can still do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// It can, or could if it were let.
    Running,
    /// It has ended, and at most waits for its parent to notice.
    Ended,
}

/// A file of /proc that is opened once and read many times.
#[derive(Debug)]
pub struct ProcFile {
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Opens a file such as `/proc/thread-self/sched`, which then stays the
    /// file of the thread that opened it.
    ///
    /// Errors: the path and what the system said.
    pub fn open(path: &str, buffer_bytes: usize) -> Result<ProcFile, String> {
        let file = File::open(path)
            .map_err(|e| format!("cannot open {path}: {}", crate::errno::Errno::from(e)))?;
        Ok(ProcFile { file, buffer: vec![0; buffer_bytes] })
    }

    /// The file's beginning as it is now, up to the size of the buffer.
    /// Allocates nothing. `None` if it cannot be read or is not text.
    pub fn read(&mut self) -> Option<&str> {
        let mut filled = 0;
        while filled < self.buffer.len() {
            match self.file.read_at(&mut self.buffer[filled..], filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(_) => return None,
            }
        }
        std::str::from_utf8(&self.buffer[..filled]).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "cpu  10 1 20 300 4 5 6 7 0 0\ncpu0 5 0 10 150 2 2 3 4 0 0\n\
                        intr 99\nprocs_running 3\n";

    /// As on a kernel without `CONFIG_SCHED_INFO`.
    #[test]
    fn a_process_has_its_time_where_there_is_no_schedstat() {
        let folder = tempfile::tempdir().unwrap();
        let (real, own) = (Root::real(), std::process::id());
        std::fs::create_dir_all(folder.path().join(format!("proc/{own}"))).unwrap();
        for file in ["status", "stat"].map(|file| format!("proc/{own}/{file}")) {
            std::fs::write(folder.path().join(&file), real.read(&file).unwrap()).unwrap();
        }
        let before = cpu_ns_of(own).unwrap();
        let found = charged(&Root::at(folder.path()), own).unwrap();
        assert!(found.cpu_ns >= before && found.minor_faults > 0, "{found:?}");
    }

    #[test]
    fn a_thread_of_io_uring_is_known_before_it_has_its_name() {
        let stat = |name: &str, flags: u32| format!("7 ({name}) S 1 7 7 0 -1 {flags} 0 0 0 0");
        assert_eq!(is_io_worker(&stat("iolens", 0x0040_4050)), Some(true));
        assert_eq!(is_io_worker(&stat("iou-sqp-7) S (x", 0x0040_4040)), Some(false));
        assert_eq!(is_io_worker("7 (iolens) S 1"), None);
    }

    #[test]
    fn stat_lines_are_found_by_their_whole_word() {
        let (user, system, idle) = (11, 20, 304);
        let all = CpuTicks { total: 353, user, system, idle, irq: 5, softirq: 6, steal: 7 };
        assert_eq!(cpu_ticks(STAT, "cpu"), Some(all));
        let each = every_cpu(STAT);
        assert_eq!((each.len(), each[0].0, each[0].1.idle), (1, 0, 152));
        assert_eq!(cpu_ticks(STAT, "cpu0").map(|t| t.softirq), Some(3));
        assert_eq!(cpu_ticks(STAT, "cpu1"), None);
        assert_eq!(cpu_ticks("cpu 1 2", "cpu"), None);
        assert_eq!(stat_number(STAT, "procs_running"), Some(3));
    }

    #[test]
    fn ticks_that_no_sum_can_hold_are_not_read() {
        let much = format!("cpu {0} {0} 0 0 0 0 0 0", u64::MAX);
        assert_eq!((cpu_ticks(&much, "cpu"), every_cpu(&much)), (None, Vec::new()));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(
            text in "((cpu[0-9]?|some|x|Tcp|TcpExt|read_bytes|nr_switches|1)[:)]? ?\
                     ([a-zA-Z=.()]{0,8} ?(0|-?[1-9][0-9]{0,20})? ?){0,24}\n?){0,4}"
        ) {
            let _ = (cpu_ticks(&text, "cpu"), every_cpu(&text), stat_number(&text, "x"));
            let _ = (pressure_some_us(&text), sched_number(&text, "nr_switches"));
            let _ = (io_number(&text, "read_bytes"), net_counter(&text, "Tcp", "x"));
            let _ = (run_delay_ns(&text), process_start(&text), stack_ends(&text));
        }
    }

    #[test]
    fn counters_of_the_network_are_found_by_group_and_name() {
        let text = "Tcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 7\nTcpExt: A ListenDrops\n\
                    TcpExt: 1 2\n";
        assert_eq!(net_counter(text, "Tcp", "RetransSegs"), Some(7));
        assert_eq!(net_counter(text, "TcpExt", "ListenDrops"), Some(2));
        assert_eq!(net_counter(text, "TcpExt", "RetransSegs"), None);
        assert_eq!(net_counter(text, "Udp", "A"), None);
        let real = Root::real().read("proc/net/netstat").unwrap();
        assert!(net_counter(&real, "TcpExt", "ListenOverflows").is_some());
    }

    #[test]
    fn pressure_and_sched_are_read() {
        let pressure = "some avg10=0.03 avg60=0.96 avg300=0.47 total=1979411\nfull total=2\n";
        assert_eq!(pressure_some_us(pressure), Some(1_979_411));
        let sched = "x (1, #threads: 1)\n---\nse.nr_migrations     :        4\n";
        assert_eq!(sched_number(sched, "se.nr_migrations"), Some(4));
        assert_eq!(sched_number(sched, "nr_switches"), None);
    }

    #[test]
    fn bytes_from_storage_are_read() {
        let io = "rchar: 1948\nread_bytes: 4096\ncancelled_write_bytes: 0\n";
        assert_eq!(io_number(io, "read_bytes"), Some(4096));
        assert_eq!(io_number(io, "bytes"), None);
        let own = Root::real().read("proc/self/io").unwrap();
        assert!(io_number(&own, "read_bytes").is_some(), "{own}");
    }

    #[test]
    fn a_run_delay_is_read_where_the_kernel_counts_it() {
        assert_eq!(run_delay_ns("611504 23 1\n"), Some(23));
        assert_eq!(run_delay_ns("611504 0 1\n"), Some(0));
        assert_eq!(run_delay_ns("0 0 0\n"), None);
        assert_eq!(run_delay_ns("1 2"), None);
        assert_eq!(run_delay_ns("1 -2 3"), None);
    }

    #[test]
    fn the_start_of_a_process_is_behind_whatever_it_is_called() {
        let stat = |name: &str, state: &str| {
            let zeros = "0 ".repeat(18);
            process_start(&format!("77 ({name}) {state} {zeros}4711 5 6"))
        };
        assert_eq!(stat("iolens", "S"), Some((RunState::Running, 4711)));
        assert_eq!(stat("a) Z 1 (b", "R"), Some((RunState::Running, 4711)));
        assert_eq!(stat("iolens", "Z"), Some((RunState::Ended, 4711)));
        assert_eq!(process_start("77 (iolens) S 1"), None);
        assert_eq!(process_start(""), None);
        let own = Root::real().read("proc/self/stat").unwrap();
        assert!(matches!(process_start(&own), Some((RunState::Running, 1..))));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_reader_panic(text in "(?s)[ -~\n]{0,60}") {
            let _ = (run_delay_ns(&text), cpu_ticks(&text, "cpu"), sched_number(&text, "x"));
            let _ = (pressure_some_us(&text), stat_number(&text, "procs_running"));
            let _ = process_start(&text);
        }
    }

    #[test]
    fn the_beginning_of_a_file_is_no_more_than_that() {
        let root = Root::real();
        let beginning = root.beginning("proc/self/status", 5).unwrap();
        assert_eq!(beginning, "Name:");
        let missing = root.beginning("proc/self/nothing", 5).unwrap_err();
        assert_eq!(missing, "cannot read /proc/self/nothing: ENOENT (no such file or directory)");
    }

    #[test]
    fn links_are_read_and_not_followed() {
        let root = Root::real();
        assert!(root.link("proc/self/ns/net").unwrap().starts_with("net:["));
        assert_eq!(root.link("proc/self/status"), None);
    }

    #[test]
    fn a_proc_file_is_read_again_and_again() {
        let mut stat = ProcFile::open("/proc/self/stat", 4096).unwrap();
        let first = stat.read().unwrap().split(' ').next().unwrap().to_owned();
        assert_eq!(first, std::process::id().to_string());
        assert!(stat.read().is_some());
        let missing = ProcFile::open("/proc/self/nothing", 1).unwrap_err();
        assert_eq!(missing, "cannot open /proc/self/nothing: ENOENT (no such file or directory)");
    }
}
