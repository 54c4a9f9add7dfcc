//! What a slice says of CPU time, beside what the kernel says of the worker's process: for every
//! arm of the studies whose CPU time is that of threads. Started as `cpu_time worker FOLDER`
//! this is a worker, which leaves its process's own account in a file of that folder.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/support/skip.rs"]
mod skip;
#[path = "../../../tests/support/small.rs"]
mod small;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use iolens_engine::calls::CALLS;
use iolens_engine::files::checksum::Checksum;
use iolens_engine::files::{copy, read, write};
use iolens_engine::receivers::RECEIVERS;
use iolens_engine::registry::REGISTRY;
use iolens_engine::trial::{Launch, run};
use iolens_engine::{clock, worker};
use iolens_model::cell::{Setting, SyscallSetting};
use iolens_model::copy::{CopySetting, CopySync};
use iolens_model::file::{CacheState, Consumer, Destination, FileSetting, Pattern, WriteSetting};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::trial::{SliceKind, Trial, TrialCopies, TrialFile, TrialRegions, Work};
use iolens_model::units::{Bytes, Nanos};
use iolens_sys::io_uring::{ReadRing, ReadWishes};
use iolens_sys::usage;

/// What a slice may leave out of the process's CPU time.
const PERCENT_MAX: u64 = 5;

/// The account of a process has the harness around the slice too: what it takes is seen in a
/// trial of few messages, and is the same again but for so much.
const HARNESS_NS: u64 = 1_000_000;

/// Long beside that, also where others have the processors.
const WINDOW: Nanos = Nanos(200_000_000);

/// What a trial has to do that shows the harness.
const FEW: Work = Work::Messages(2);

const LIMIT: Nanos = Nanos(20_000_000_000);
const BLOCK: Bytes = Bytes(256 << 10);
const REGION_BYTES: u64 = 4 << 20;
const COPIES: u64 = 60;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("worker") => {
            worker::become_worker().unwrap();
            let folder = PathBuf::from(arguments.next().unwrap());
            if arguments.next().is_some() {
                std::thread::spawn(watch);
            }
            let account = Account { out: std::io::stdout(), folder, ready: None };
            worker::serve(std::io::stdin(), account, None).unwrap();
        }
        filter => {
            let filter = filter.filter(|word| !word.starts_with('-')).unwrap_or("");
            for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(filter)) {
                test();
                say(&format!("test {name} ... ok"));
            }
        }
    }
}

const TESTS: [(&str, fn()); 2] = [
    (NAME, every_arm_shows_the_time_of_its_process),
    (OF_POLLING, behind_a_slice_the_kernels_thread_sleeps),
];

const NAME: &str = "every_arm_shows_the_time_of_its_process";
const OF_POLLING: &str = "behind_a_slice_the_kernels_thread_sleeps";

/// Says what libtest would.
#[expect(clippy::print_stdout, reason = "it stands in for libtest")]
fn say(line: &str) {
    println!("{line}");
}

/// A worker's stdout, and the process's CPU time between its word that everything is ready and
/// its report: in a worker with one slice, that slice and the harness around it.
struct Account {
    out: std::io::Stdout,
    folder: PathBuf,
    ready: Option<Spent>,
}

/// CPU time of the process, and of the kernel's threads in it.
#[derive(Clone, Copy)]
struct Spent {
    process_ns: u64,
    kernel_ns: u64,
}

/// CPU time of each of the kernel's threads that was ever seen.
static SEEN: Mutex<BTreeMap<u32, u64>> = Mutex::new(BTreeMap::new());

/// Looks at the kernel's threads all the time: those of a ring end with it.
fn watch() {
    let (_open, never) = mpsc::channel::<()>();
    while never.recv_timeout(Duration::from_millis(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
        Spent::now();
    }
}

impl Spent {
    fn now() -> Spent {
        let mut seen = SEEN.lock().unwrap();
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let tid = task.file_name().to_str().unwrap().parse().unwrap();
            // The sum of the process lags behind where a thread runs that nobody asked.
            let Ok(ns) = usage::cpu_ns_of_thread(tid) else { continue };
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if name.starts_with("iou-") {
                seen.insert(tid, ns);
            }
        }
        let process_ns = usage::process_usage().unwrap().cpu_ns;
        Spent { process_ns, kernel_ns: seen.values().sum() }
    }
}

impl Write for Account {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes == br#""ready""# {
            self.ready = Some(Spent::now());
        }
        if let (true, Some(ready)) = (bytes.starts_with(br#"{"finished""#), self.ready) {
            let now = Spent::now();
            let process_ns = now.process_ns - ready.process_ns;
            let kernel_ns = now.kernel_ns.saturating_sub(ready.kernel_ns);
            let file = self.folder.join(std::process::id().to_string());
            std::fs::write(file, format!("{process_ns} {kernel_ns}")).unwrap();
        }
        self.out.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Whether a process of a study does nothing that takes CPU time besides its slice. What was
/// written is flushed, copies are compared, and what a call uses up is made outside of every
/// slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Besides {
    Nothing,
    Something,
}

fn every_arm_shows_the_time_of_its_process() {
    let place = tempfile::tempdir().unwrap();
    let mut judged = 0;
    let mut wrong = Vec::new();
    let mut check = |study: &str, id: &str, trial: &Trial, besides| {
        // Where others have the processors, a window has little CPU time in it beside the
        // harness: what is right in a longer one was that.
        let found = checked(place.path(), study, id, trial, besides)
            .or_else(|_| checked(place.path(), study, id, &longer(trial), besides));
        match found {
            Ok(is_judged) => judged += u32::from(is_judged),
            Err(what) => wrong.push(what),
        }
    };
    for entry in REGISTRY.iter().filter(|entry| !entry.transport.loses() && !entry.hidden) {
        check("net", entry.id, &sending(entry.id), Besides::Nothing);
    }
    for entry in RECEIVERS {
        let mut trial = sending("send");
        if let Setting::Net(net) = &mut trial.cell.setting {
            net.receiver = entry.id.into();
        }
        check("receiver", entry.id, &trial, Besides::Nothing);
    }
    for entry in CALLS {
        let work = entry.most.map_or(Work::Window(WINDOW), |most| Work::Messages(most.into()));
        let setting = Setting::Syscall(SyscallSetting { in_a_row: None });
        let trial = trial(entry.id, setting, Bytes(entry.bytes.max(1).into()), work);
        let besides = if entry.most.is_some() { Besides::Something } else { Besides::Nothing };
        check("syscall", entry.id, &trial, besides);
    }
    let file = file_in(place.path());
    for entry in read::engines::ENGINES {
        check("file", entry.id, &reading(entry.id, &file), Besides::Nothing);
    }
    for entry in write::engines::ENGINES {
        check("write", entry.id, &writing(entry.id, &file), Besides::Something);
    }
    for entry in copy::engines::ENGINES {
        check("copy", entry.id, &copying(entry.id, &file, place.path()), Besides::Something);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(judged > 20, "{judged} arms were judged");
}

/// A ring whose requests a thread of the kernel's takes: once it is idle that thread spends
/// nothing more, in the slice of another arm.
fn behind_a_slice_the_kernels_thread_sleeps() {
    const QUIET_NS: u64 = 5_000_000;
    // What it takes to fall asleep.
    const LAST_NS: u64 = 500_000;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[7; 4096]).unwrap();
    let wishes = ReadWishes { depth: 1, buffer_bytes: 4096, registered: false, poll_thread: true };
    let mut ring = match ReadRing::open(file.into(), wishes) {
        Ok(ring) => ring,
        Err(why) => return skip::note(OF_POLLING, &format!("{why:?}")),
    };
    for _ in 0..100 {
        ring.push(0, 0, 4096, 0).unwrap();
        ring.enter().unwrap();
        assert_eq!(ring.completed(), Some((0, Ok(4096))));
    }
    ring.idle().unwrap();
    let (before, begin_ns) = (Spent::now().kernel_ns, clock::monotonic_ns());
    assert!(before > 0, "the kernel has a thread for it");
    let mut spent_ns = 0;
    while clock::monotonic_ns() - begin_ns < QUIET_NS {
        spent_ns = Spent::now().kernel_ns - before;
    }
    assert!(spent_ns < LAST_NS, "{spent_ns} ns more within 5 ms");
}

fn trial(id: &str, setting: Setting, size: Bytes, work: Work) -> Trial {
    let mut trial = small::trial(id, LIMIT);
    (trial.cell.setting, trial.cell.size) = (setting, size);
    trial.slices[0].work = work;
    let cpus = iolens_sys::affinity::thread_cpus().unwrap();
    (trial.tx_cpus, trial.rx_cpus) = (vec![cpus[0]], vec![cpus[cpus.len() - 1]]);
    trial
}

fn longer(trial: &Trial) -> Trial {
    let mut longer = trial.clone();
    if let Work::Window(window) = trial.slices[0].work {
        longer.slices[0].work = Work::Window(Nanos(5 * window.0));
    }
    longer
}

fn sending(id: &str) -> Trial {
    let setting = small::trial(id, LIMIT).cell.setting;
    let mut trial = trial(id, setting, Bytes(16 << 10), Work::Window(WINDOW));
    trial.ring_messages = 16;
    trial
}

/// A file of one region, whose bytes are all there.
fn file_in(folder: &Path) -> TrialFile {
    let path = folder.join("file");
    std::fs::write(&path, content()).unwrap();
    let path = path.to_str().unwrap().as_bytes().to_vec();
    TrialFile { path, bytes: Some(REGION_BYTES), seed: 1, regions: None }
}

fn content() -> Vec<u8> {
    (0..REGION_BYTES).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
}

fn reading(id: &str, file: &TrialFile) -> Trial {
    let setting = FileSetting {
        cache: CacheState::Warm,
        pattern: Pattern::Sequential,
        consumer: Consumer::Scan,
        depth: FileSetting::DEPTH,
    };
    let mut trial = trial(id, Setting::File(setting), BLOCK, Work::Window(WINDOW));
    trial.file = Some(file.clone());
    trial
}

fn writing(id: &str, file: &TrialFile) -> Trial {
    let setting = WriteSetting {
        destination: Destination::Existing,
        pattern: Pattern::Sequential,
        depth: FileSetting::DEPTH,
    };
    let mut trial = trial(id, Setting::Write(setting), BLOCK, Work::Window(WINDOW));
    let regions = Some(TrialRegions { bytes: REGION_BYTES, count: 1 });
    trial.file = Some(TrialFile { regions, bytes: None, ..file.clone() });
    trial
}

fn copying(id: &str, file: &TrialFile, folder: &Path) -> Trial {
    let setting = CopySetting { block_bytes: BLOCK, cache: CacheState::Warm, sync: CopySync::None };
    let work = Work::Messages(COPIES);
    let mut trial = trial(id, Setting::Copy(setting), Bytes(REGION_BYTES), work);
    let copies = folder.join("copies");
    std::fs::create_dir_all(&copies).unwrap();
    let mut checksum = Checksum::new();
    checksum.take(0, &std::fs::read(folder.join("file")).unwrap());
    trial.file = Some(file.clone());
    trial.copies = Some(TrialCopies {
        checksum: checksum.value(REGION_BYTES),
        empty: Vec::new(),
        folder: copies.to_str().unwrap().as_bytes().to_vec(),
        programs: Vec::new(),
    });
    trial
}

/// What a trial took.
struct Took {
    process_ns: u64,
    kernel_ns: u64,
    shown_ns: u64,
}

/// Runs a trial and compares; whether there was enough to compare.
///
/// Errors: what of it does not agree.
fn checked(
    place: &Path,
    study: &str,
    id: &str,
    trial: &Trial,
    besides: Besides,
) -> Result<bool, String> {
    let mut few = trial.clone();
    few.slices[0].work = FEW;
    let all = [&few, trial].map(|trial| took(place, [study, id], trial, besides));
    let [Some(few), Some(took)] = all else { return Ok(false) };
    let harness_ns = few.process_ns.saturating_sub(few.shown_ns);
    let process_ns = took.process_ns.saturating_sub(harness_ns);
    let (kernel_ns, shown_ns) = (took.kernel_ns, took.shown_ns);
    let left = match besides {
        Besides::Nothing => {
            let share = 100.0 * (process_ns as f64 - shown_ns as f64) / process_ns.max(1) as f64;
            format!("{share:.1} % left out")
        }
        Besides::Something => "with what is done besides".to_owned(),
    };
    say(&format!(
        "cpu_time {study} {id}: shown {shown_ns} ns, threads of the kernel's {kernel_ns} ns, \
         process {process_ns} ns, {left}"
    ));
    if shown_ns > took.process_ns + HARNESS_NS {
        return Err(format!("{study} {id}: {shown_ns} ns shown of {} ns", took.process_ns));
    }
    // With what is done besides, the kernel's threads alone can be told apart.
    let due_ns = if besides == Besides::Nothing { process_ns } else { kernel_ns };
    let least_ns = (due_ns - due_ns * PERCENT_MAX / 100).saturating_sub(HARNESS_NS);
    if shown_ns < least_ns {
        return Err(format!("{study} {id}: {shown_ns} ns shown of {due_ns} ns"));
    }
    Ok(due_ns > 10 * HARNESS_NS)
}

/// Runs a trial; null where there is no number, which says why.
fn took(place: &Path, [study, id]: [&str; 2], trial: &Trial, besides: Besides) -> Option<Took> {
    let folder = tempfile::tempdir_in(place).unwrap();
    let program = std::env::current_exe().unwrap();
    let mut arguments = vec!["worker".to_owned(), folder.path().to_str().unwrap().to_owned()];
    if besides == Besides::Something {
        arguments.push("watch".to_owned());
    }
    let outcome = run(trial, &Launch { program, arguments }, None);
    let why = outcome.reason.clone().unwrap_or_default();
    if outcome.status != Status::Ok {
        let is_plain = ["send", "getppid", "read", "write", "read_write"].contains(&id);
        assert!(!is_plain && outcome.status == Status::Skipped, "{study} {id}: {why}");
        let why = why.lines().next().unwrap_or_default();
        skip::note(NAME, &format!("{study} {id}: {why}"));
        return None;
    }
    let [process_ns, kernel_ns] = accounts(folder.path());
    let shown_ns = shown(&outcome);
    let ends = [&outcome.tx, &outcome.rx].into_iter().flatten();
    let mut missing = ends.flat_map(|end| &end.not_measured);
    let has_reason = missing.any(|missing| missing.metric == "task_clock_ns");
    assert!(shown_ns.is_some() || has_reason, "{study} {id}: neither a number nor a reason");
    Some(Took { process_ns, kernel_ns, shown_ns: shown_ns? })
}

/// What the workers said that they spent.
fn accounts(folder: &Path) -> [u64; 2] {
    let mut sums = [0; 2];
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let text = std::fs::read_to_string(file.path()).unwrap();
        for (sum, word) in sums.iter_mut().zip(text.split_whitespace()) {
            *sum += word.parse::<u64>().unwrap();
        }
    }
    sums
}

/// CPU time of both ends over the slices that count; null where one is not known.
fn shown(outcome: &TrialOutcome) -> Option<u64> {
    let counted = outcome.slices.iter().filter(|slice| slice.kind == SliceKind::Measured);
    let ends = |slice: &iolens_model::outcome::SliceOutcome| {
        Some(slice.tx.task_clock_ns? + slice.rx.map_or(Some(0), |rx| rx.task_clock_ns)?)
    };
    counted.map(ends).sum()
}
