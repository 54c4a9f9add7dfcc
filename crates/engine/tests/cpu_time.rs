//! What a slice says of CPU time, beside what the kernel says of the worker's process and its
//! children: for every arm of every study. Started as `cpu_time worker FOLDER` this is a worker,
//! which leaves its process's own account in a file of that folder.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/support/skip.rs"]
mod skip;
#[path = "../../../tests/support/small.rs"]
mod small;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use iolens_engine::trial::run;
use iolens_engine::{clock, worker};
use iolens_file::{checksum::Checksum, engines};
use iolens_harness::perf_control::PerfControl;
use iolens_model::arm::{Arm, Role};
use iolens_model::axes::Topology;
use iolens_model::cell::{Setting, SyscallSetting};
use iolens_model::copy::{CopySetting, CopySync};
use iolens_model::external::External;
use iolens_model::file::{CacheState, Consumer, Destination, FileSetting, Pattern, WriteSetting};
use iolens_model::load::{Arrivals, Length};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::server::{LoadLevel, ServerSetting, TrialServers};
use iolens_model::trial::{Slice, SliceKind, Trial, TrialCopies, TrialFile, TrialRegions, Work};
use iolens_model::units::{Bytes, Nanos};
use iolens_net::receivers::RECEIVERS;
use iolens_net::registry::REGISTRY;
use iolens_programs::spawn::Launch;
use iolens_server::models::MODELS;
use iolens_sys::io_uring::{ReadRing, ReadWishes};
use iolens_sys::{pipe, usage};
use iolens_syscall::{CALLS, Entry};

/// What a slice may leave out of the process's CPU time.
const PERCENT_MAX: u64 = 5;

/// The account of a process has the harness around the slice too: what it takes is seen in a
/// trial of few messages, and is the same again but for so much.
const HARNESS_NS: u64 = 1_000_000;

/// And for so much at the edges of each slice.
const EDGES_NS: u64 = 10_000;

/// Long beside that, also where others have the processors.
const WINDOW: Nanos = Nanos(200_000_000);

const FEW: Work = Work::Messages(2);

/// What a busy hypervisor adds passes; what an arm leaves out is left out each time.
const AGAIN: u32 = 8;

const LIMIT: Nanos = Nanos(20_000_000_000);
const BLOCK: Bytes = Bytes(256 << 10);
const REGION_BYTES: u64 = 4 << 20;
const COPIES: u64 = 60;
const PROGRAM: &str = "dd";

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("worker") => {
            worker::become_worker().unwrap();
            let folder = PathBuf::from(arguments.next().unwrap());
            let edges = hear_of_edges(&folder);
            let account = Account { out: std::io::stdout(), folder, begun: None, spent: None };
            worker::serve(std::io::stdin(), account, edges).unwrap();
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

const TESTS: [(&str, fn()); 4] = [
    (NAME, every_arm_shows_the_time_of_its_process),
    (OF_POLLING, behind_a_slice_the_kernels_thread_sleeps),
    (OF_OTHERS, the_kernels_thread_works_in_no_slice_of_another_arm),
    (OF_LONG, a_slice_in_which_a_thread_could_come_and_go_has_its_number),
];

const NAME: &str = "every_arm_shows_the_time_of_its_process";
const OF_POLLING: &str = "behind_a_slice_the_kernels_thread_sleeps";
const OF_OTHERS: &str = "the_kernels_thread_works_in_no_slice_of_another_arm";
const OF_LONG: &str = "a_slice_in_which_a_thread_could_come_and_go_has_its_number";

/// Says what libtest would.
#[expect(clippy::print_stdout, reason = "it stands in for libtest")]
fn say(line: &str) {
    println!("{line}");
}

/// A worker's stdout, and what its process spent. Of an end of connections that is all between
/// its word that everything is ready and its report, hence its slices and the harness around
/// them; of a server and its client what lies between what they say of slices; and where there
/// is one end alone what lies between the edges of its slices ([`hear_of_edges`]): others write
/// back, compare copies and make what calls use up between slices.
struct Account {
    out: std::io::Stdout,
    folder: PathBuf,
    begun: Option<Spent>,
    spent: Option<Spent>,
}

/// CPU time of the process and its children, and of the kernel's threads in it.
#[derive(Clone, Copy, Default)]
struct Spent {
    process_ns: u64,
    kernel_ns: u64,
}

/// On which side of what is accounted for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Before,
    After,
}

impl Spent {
    /// What was spent so far; most of what it takes to look is on the other side.
    fn now(at: At) -> Spent {
        let (own_ns, others) = match at {
            At::After => (Spent::own_ns(), Spent::others()),
            At::Before => {
                let others = Spent::others();
                (Spent::own_ns(), others)
            }
        };
        Spent { process_ns: own_ns + others.process_ns, ..others }
    }

    /// CPU time of the process.
    fn own_ns() -> u64 {
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let tid = task.file_name().to_str().unwrap().parse().unwrap();
            // The sum of the process lags behind where a thread runs that nobody asked.
            let _ = usage::cpu_ns_of_thread(tid);
        }
        let process_ns = usage::process_usage().unwrap().cpu_ns;
        process_ns - if LISTENS.get() { clock::thread_cpu_ns() } else { 0 }
    }

    /// That of its children, and of the kernel's threads.
    fn others() -> Spent {
        let mut spent = Spent { process_ns: usage::children_usage().unwrap().cpu_ns, kernel_ns: 0 };
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            if read("comm").starts_with("iou-") {
                let tid = task.file_name().to_str().unwrap().parse().unwrap();
                spent.kernel_ns += usage::cpu_ns_of_thread(tid).unwrap_or(0);
            }
            let children = read("children");
            let each = children.split_whitespace().map(|id| id.parse().unwrap());
            spent.process_ns += each.filter_map(|id| usage::cpu_ns_of(id).ok()).sum::<u64>();
        }
        spent
    }

    fn since(&self, before: &Spent) -> Spent {
        Spent {
            process_ns: self.process_ns.saturating_sub(before.process_ns),
            kernel_ns: self.kernel_ns.saturating_sub(before.kernel_ns),
        }
    }

    fn plus(&self, other: &Spent) -> Spent {
        Spent {
            process_ns: self.process_ns + other.process_ns,
            kernel_ns: self.kernel_ns + other.kernel_ns,
        }
    }
}

/// What was spent between the edges of slices.
static WITHIN: Mutex<Option<Spent>> = Mutex::new(None);

thread_local! {
    /// Whether it is the thread that hears of edges, which works for no slice.
    static LISTENS: Cell<bool> = const { Cell::new(false) };
}

/// How the kernel's thread that polls for the process was when each slice began.
static STATES: Mutex<String> = Mutex::new(String::new());

const CTL: &str = "ctl";
const ACK: &str = "ack";

/// Has a worker of this folder tell of the edges of its slices, as it tells perf, and wait until
/// it was looked; nothing where the folder has no pipes for it.
fn hear_of_edges(folder: &Path) -> Option<PerfControl> {
    let [ctl, ack] = [CTL, ACK].map(|name| folder.join(name));
    let open = |path: &Path| File::options().read(true).write(true).open(path);
    let (commands, mut answers) = (open(&ctl).ok()?, open(&ack).ok()?);
    std::thread::spawn(move || {
        LISTENS.set(true);
        let mut begun = None;
        for command in BufReader::new(commands).lines() {
            let is_enabled = command.unwrap() == "enable";
            if is_enabled {
                STATES.lock().unwrap().extend(state_of_polling());
                begun = Some(Spent::now(At::Before));
            } else if let Some(begun) = begun.take() {
                let mut within = WITHIN.lock().unwrap();
                let spent = Spent::now(At::After).since(&begun);
                *within = Some(within.unwrap_or_default().plus(&spent));
            }
            answers.write_all(b"ack\n\0").unwrap();
        }
    });
    Some(format!("fifo:{},{}", ctl.display(), ack.display()).parse().unwrap())
}

/// Makes the pipes for it.
fn with_edges(folder: &Path) {
    for name in [CTL, ACK] {
        pipe::make_fifo(&folder.join(name)).unwrap();
    }
}

/// The state of the kernel's thread that polls, as /proc has it.
fn state_of_polling() -> Option<char> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut all = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let stat = all.find(|stat| stat.contains("(iou-sqp-"))?;
    stat.rsplit_once(") ")?.1.chars().next()
}

impl Account {
    fn heard(&mut self, bytes: &[u8]) {
        let is = |message: &str| bytes.starts_with(message.as_bytes());
        if is(r#""ready""#) || is(r#""begun""#) {
            self.begun = Some(Spent::now(At::Before));
        }
        if is(r#"{"counted""#) || is(r#"{"offered""#) || is(r#"{"finished""#) {
            let now = Spent::now(At::After);
            let since = self.begun.map(|begun| now.since(&begun)).unwrap_or_default();
            self.spent = Some(self.spent.unwrap_or_default().plus(&since));
            self.begun = Some(Spent::now(At::Before));
        }
        if is(r#"{"finished""#) || is(r#"{"served""#) || is(r#"{"visited""#) {
            let Spent { process_ns, kernel_ns } =
                WITHIN.lock().unwrap().or(self.spent).unwrap_or_default();
            let file = self.folder.join(std::process::id().to_string());
            let states = STATES.lock().unwrap();
            std::fs::write(file, format!("{process_ns} {kernel_ns} {states}")).unwrap();
        }
    }
}

impl Write for Account {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.heard(bytes);
        self.out.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

fn every_arm_shows_the_time_of_its_process() {
    let place = tempfile::tempdir().unwrap();
    let mut tallies: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    let mut doubtful = Vec::new();
    let mut check = |study: &'static str, id: &str, trial: &Trial| {
        // Where others have the processors a window has little in it beside the harness.
        let found = checked(place.path(), study, id, trial)
            .or_else(|_| checked(place.path(), study, id, &longer(trial)));
        let [judged, all] = tallies.entry(study).or_default();
        match found {
            Ok(Some(is_judged)) => (*judged, *all) = (*judged + u32::from(is_judged), *all + 1),
            Ok(None) => {}
            Err(_) => doubtful.push((study, id.to_owned(), longer(trial))),
        }
    };
    REGISTRY.iter().for_each(|entry| check("net", entry.id, &sending(entry.id)));
    for entry in RECEIVERS {
        let mut trial = sending("send");
        trial.cell.net_mut().expect("a cell of net").receiver = entry.id.into();
        check("receiver", entry.id, &trial);
    }
    CALLS.iter().for_each(|entry| check("syscall", entry.id, &calling(entry)));
    let file = file_in(place.path());
    for entry in engines::READING {
        check("file", entry.id, &reading(entry.id, &file));
    }
    for entry in engines::WRITING {
        check("write", entry.id, &writing(entry.id, &file));
    }
    let engines = engines::COPYING.iter().map(|entry| entry.id);
    engines.chain([PROGRAM]).for_each(|id| check("copy", id, &copying(id, &file, place.path())));
    for entry in MODELS {
        for length in [Length::Long, Length::Short] {
            let id = format!("{} {}", entry.id, length.word());
            check("server", &id, &serving(entry.id, length));
        }
    }
    say(&format!("cpu_time: judged, and measured at all: {tallies:?}"));
    let again = doubtful.iter().map(|(study, id, one)| {
        let check = || checked(place.path(), study, id, one);
        (0..AGAIN).map(|_| check()).find(Result::is_ok).unwrap_or_else(check)
    });
    let wrong: Vec<String> = again.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Calls that only wait for a device have too little to judge.
    for (study, [judged, all]) in tallies {
        assert!(3 * judged > all, "{study}: {judged} of {all} had enough to be judged");
    }
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
    assert_eq!(ring.idle(), Ok(true));
    let (before, begin_ns) = (Spent::others().kernel_ns, clock::monotonic_ns());
    assert!(before > 0, "the kernel has a thread for it");
    let mut spent_ns = 0;
    while clock::monotonic_ns() - begin_ns < QUIET_NS {
        spent_ns = Spent::others().kernel_ns - before;
    }
    assert!(spent_ns < LAST_NS, "{spent_ns} ns more within 5 ms");
}

/// The kernel's thread polls for a millisecond more than there is to do, and the slice of another
/// arm begins within one.
fn the_kernels_thread_works_in_no_slice_of_another_arm() {
    const ROUNDS: u32 = 40;
    let place = tempfile::tempdir().unwrap();
    let mut trial = reading("uring_sqpoll", &file_in(place.path()));
    trial.arms.push(Arm { label: "read".into(), primitive: "read".into(), role: Role::Compared });
    let slice = |arm, round| Slice { arm, round, kind: SliceKind::Measured, work: FEW };
    trial.slices = (0..ROUNDS).flat_map(|round| [slice(0, round), slice(1, round)]).collect();
    with_edges(place.path());
    let outcome = run(&trial, &worker_in(place.path()), None);
    if outcome.status == Status::Skipped {
        return skip::note(OF_OTHERS, &outcome.reason.unwrap_or_default());
    }
    assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.reason);
    let states = accounts(place.path()).states;
    assert_eq!(states.len(), trial.slices.len(), "{states}");
    let asleep = states.chars().skip(1).step_by(2).filter(|state| *state == 'S').count();
    say(&format!("when slices began the thread of uring_sqpoll was {states}"));
    // It says that it will sleep just before it does, and may lose its CPU in between.
    assert!(4 * asleep > 3 * ROUNDS as usize, "asleep in {asleep} of {ROUNDS} slices: {states}");
}

/// A thread of the kernel's that came and went unseen is looked for in long slices: none did.
fn a_slice_in_which_a_thread_could_come_and_go_has_its_number() {
    let place = tempfile::tempdir().unwrap();
    let mut trial = reading("read", &file_in(place.path()));
    trial.slices[0].work = Work::Window(Nanos(5_200_000_000));
    let outcome = run(&trial, &worker_in(place.path()), None);
    assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.reason);
    assert!(outcome.slices[0].tx.task_clock_ns.is_some(), "{:?}", outcome.tx);
}

/// What starts a worker that leaves its account in a folder.
fn worker_in(folder: &Path) -> Launch {
    let arguments = vec!["worker".to_owned(), folder.to_str().unwrap().to_owned()];
    Launch { program: std::env::current_exe().unwrap(), arguments }
}

fn trial(id: &str, setting: Setting, size: Bytes, work: Work) -> Trial {
    let mut trial = small::trial(id, LIMIT);
    (trial.cell.setting, trial.cell.size) = (setting, size);
    trial.slices[0].work = work;
    let cpus = iolens_sys::affinity::thread_cpus().unwrap();
    (trial.tx_cpus, trial.rx_cpus) = (vec![cpus[0]], vec![cpus[cpus.len() - 1]]);
    trial
}

/// The same with five times as much in a slice, or five times as many.
fn longer(trial: &Trial) -> Trial {
    let mut longer = trial.clone();
    match trial.slices[0].work {
        Work::Window(window) => longer.slices[0].work = Work::Window(Nanos(5 * window.0)),
        Work::Messages(_) => longer.slices = trial.slices.repeat(5),
    }
    longer
}

fn sending(id: &str) -> Trial {
    let setting = small::trial(id, LIMIT).cell.setting;
    let mut trial = trial(id, setting, Bytes(16 << 10), Work::Window(WINDOW));
    trial.ring_messages = 16;
    trial
}

/// Calls of which a slice holds so many have several slices.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 200")]
fn calling(entry: &Entry) -> Trial {
    let work = entry.most.map_or(Work::Window(WINDOW), |most| Work::Messages(most.into()));
    let setting = Setting::Syscall(SyscallSetting { in_a_row: None });
    let mut trial = trial(entry.id, setting, Bytes(entry.bytes.max(1).into()), work);
    let guess_ns = f64::from(entry.most.unwrap_or(0)) * entry.guess_ns;
    let slices = (WINDOW.0 as f64 / guess_ns).clamp(1.0, 200.0);
    if entry.most.is_some() {
        trial.slices = trial.slices.repeat(slices.round() as usize);
    }
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
    let (copies, empty) = (folder.join("copies"), folder.join("empty"));
    std::fs::create_dir_all(&copies).unwrap();
    std::fs::write(&empty, "").unwrap();
    let argv = ["dd", "if={src}", "of={dst}", "bs={block}", "status=none"].map(str::to_owned);
    let mut checksum = Checksum::new();
    checksum.take(0, &std::fs::read(folder.join("file")).unwrap()[..]);
    trial.file = Some(file.clone());
    trial.copies = Some(TrialCopies {
        checksum: checksum.value(REGION_BYTES),
        empty: empty.to_str().unwrap().as_bytes().to_vec(),
        folder: copies.to_str().unwrap().as_bytes().to_vec(),
        programs: vec![External { name: PROGRAM.to_owned(), argv: argv.to_vec() }],
    });
    trial
}

/// One connection at a time, which every model can serve.
fn serving(id: &str, length: Length) -> Trial {
    let setting = ServerSetting {
        topology: Topology::Loopback,
        service: "echo".to_owned(),
        length,
        load: LoadLevel::Closed,
        connections: 1,
    };
    let requests = if length == Length::Long { 2000 } else { 400 };
    let mut trial = trial(id, Setting::Server(setting), Bytes(64), Work::Messages(requests));
    trial.slices = trial.slices.repeat(2);
    trial.servers = Some(TrialServers {
        rate: None,
        at_others_rate: Vec::new(),
        arrivals: Arrivals::Fixed,
        seed: 1,
        in_flight: 1,
        dropped: Nanos(0),
        backlog: 16,
        client_threads: 1,
        programs: Vec::new(),
        rest: Nanos(0),
    });
    trial
}

/// What a trial took.
struct Took {
    process_ns: u64,
    kernel_ns: u64,
    shown_ns: u64,
}

/// Runs a trial and compares; whether there was enough to compare, and null where there is no
/// number.
///
/// Errors: what of it does not agree.
fn checked(place: &Path, study: &str, id: &str, trial: &Trial) -> Result<Option<bool>, String> {
    let mut few = trial.clone();
    few.slices.iter_mut().for_each(|slice| slice.work = FEW);
    let all = [&few, trial].map(|trial| took(place, [study, id], trial));
    let [Some(few), Some(took)] = all else { return Ok(None) };
    let harness_ns = few.process_ns.saturating_sub(few.shown_ns);
    let process_ns = took.process_ns.saturating_sub(harness_ns);
    let (kernel_ns, shown_ns) = (took.kernel_ns, took.shown_ns);
    let share = 100.0 * (process_ns as f64 - shown_ns as f64) / process_ns.max(1) as f64;
    say(&format!(
        "cpu_time {study} {id}: shown {shown_ns} ns, threads of the kernel's {kernel_ns} ns, \
         process {process_ns} ns, {share:.1}% left out"
    ));
    let slack_ns = HARNESS_NS + EDGES_NS * (trial.slices.len() as u64 - 1);
    if shown_ns > took.process_ns + slack_ns {
        return Err(format!("{study} {id}: {shown_ns} ns shown of {} ns", took.process_ns));
    }
    let least_ns = (process_ns - process_ns * PERCENT_MAX / 100).saturating_sub(slack_ns);
    if shown_ns < least_ns {
        return Err(format!("{study} {id}: {shown_ns} ns shown of {process_ns} ns"));
    }
    Ok(Some(process_ns > 10 * slack_ns))
}

/// Runs a trial; `None` where there is no number, which says why.
fn took(place: &Path, [study, id]: [&str; 2], trial: &Trial) -> Option<Took> {
    let folder = tempfile::tempdir_in(place).unwrap();
    if trial.cell.is_alone() {
        with_edges(folder.path());
    }
    let outcome = run(trial, &worker_in(folder.path()), None);
    let why = outcome.reason.clone().unwrap_or_default();
    if outcome.status != Status::Ok {
        let is_plain = ["send", "getppid", "read", "write", "read_write"].contains(&id);
        assert!(!is_plain && outcome.status == Status::Skipped, "{study} {id}: {why}");
        let why = why.lines().next().unwrap_or_default();
        skip::note(NAME, &format!("{study} {id}: {why}"));
        return None;
    }
    let accounts = accounts(folder.path());
    let shown_ns = shown(&outcome);
    let ends = [&outcome.tx, &outcome.rx].into_iter().flatten();
    let mut missing = ends.flat_map(|end| &end.not_measured);
    let has_reason = missing.any(|missing| missing.metric == "task_clock_ns");
    assert!(shown_ns.is_some() || has_reason, "{study} {id}: neither a number nor a reason");
    let Spent { process_ns, kernel_ns } = accounts.spent;
    Some(Took { process_ns, kernel_ns, shown_ns: shown_ns? })
}

/// What the workers said.
#[derive(Default)]
struct Accounts {
    spent: Spent,
    states: String,
}

fn accounts(folder: &Path) -> Accounts {
    let mut all = Accounts::default();
    // Named by numbers of processes.
    let files = std::fs::read_dir(folder).unwrap().flatten();
    for file in files.filter(|file| file.file_name().to_str().unwrap().parse::<u32>().is_ok()) {
        let text = std::fs::read_to_string(file.path()).unwrap();
        let mut words = text.split(' ');
        let mut number = || words.next().unwrap().parse().unwrap();
        all.spent = all.spent.plus(&Spent { process_ns: number(), kernel_ns: number() });
        all.states += words.next().unwrap();
    }
    all
}

/// CPU time of both ends over the slices that count; `None` where one is not known.
fn shown(outcome: &TrialOutcome) -> Option<u64> {
    let counted = outcome.slices.iter().filter(|slice| slice.kind == SliceKind::Measured);
    let ends = |slice: &iolens_model::outcome::SliceOutcome| {
        Some(slice.tx.task_clock_ns? + slice.rx.map_or(Some(0), |rx| rx.task_clock_ns)?)
    };
    counted.map(ends).sum()
}
