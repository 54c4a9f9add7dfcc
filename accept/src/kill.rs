//! SIGKILL at random moments: what was committed is there, and what is not
//! meant to stay is gone once the tool has started again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::{Bench, Judged, Outcome, results};

const KILLS: u32 = 10;

/// Workers notice the end of their parent by a signal; a process that is still
/// there this long after the next start is left.
const GRACE: Duration = Duration::from_secs(2);

/// Marks every process of one run through its environment.
const MARK: &str = "IOLENS_ACCEPT_MARK";

/// Repeats a failure: the seed of the moments.
const SEED_VARIABLE: &str = "IOLENS_ACCEPT_SEED";

pub(crate) fn check(bench: &Bench) -> Judged {
    check_over(bench, "loopback")
}

pub(crate) fn check_veth(bench: &Bench) -> Judged {
    check_over(bench, "veth")
}

fn check_over(bench: &Bench, topology: &str) -> Judged {
    let seed = seed()?;
    let mut random = Random(seed);
    let mut evidence = format!("seed {seed} ({SEED_VARIABLE})");
    let mut sound = true;
    for kill in 1..=KILLS {
        let delay = Duration::from_millis(300 + random.below(5700));
        let round = kill_once(bench, topology, kill, delay)?;
        sound &= round.is_sound();
        evidence += &format!(
            "\n{kill}: after {:.1} s {} trials were reported, {} are there, {} processes, {} network namespaces or devices and {} files left",
            delay.as_secs_f64(),
            round.reported,
            round.stored,
            round.processes.len(),
            round.networks.len(),
            round.files.len(),
        );
        for left in round.processes.iter().chain(&round.networks).chain(&round.files) {
            evidence += &format!(" [{left}]");
        }
    }
    Ok(if sound { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// What one kill left.
struct Round {
    /// Trials the tool had said were committed.
    reported: u64,
    /// Trials in the file afterwards.
    stored: u64,
    processes: Vec<String>,
    /// Network namespaces that processes stand in, and devices in ours.
    networks: Vec<String>,
    files: Vec<String>,
}

impl Round {
    /// One trial more than reported may have been committed.
    fn is_sound(&self) -> bool {
        (self.reported..=self.reported + 1).contains(&self.stored)
            && self.processes.is_empty()
            && self.networks.is_empty()
            && self.files.is_empty()
    }
}

fn kill_once(bench: &Bench, topology: &str, kill: u32, delay: Duration) -> Result<Round, String> {
    let name = format!("kill-{topology}-{kill}");
    let home = bench.scratch.path().join(&name);
    let mark = format!("{}-{kill}", std::process::id());
    let shared_before = shared_files()?;
    let networks_before = networks();
    let args = "run net --methods send_staged,sendmsg_iov --sizes 64,4KiB --threads 1 \
                --passes 5000 --budget 60s --progress plain --db results.db";
    let args = args.split_whitespace().chain(["--network", topology]);
    let args: Vec<&str> = args.collect();
    let mut running = bench.iolens(&name, &args)?.env(MARK, &mark).start()?;
    std::thread::sleep(delay);
    if !running.is_running() {
        let ended = running.finish()?.success()?;
        return Err(format!("the run ended by itself after {:?}", ended.elapsed));
    }
    let killed = running.kill()?;
    let is_commit = |(_, line): &&(Duration, String)| line.contains("committed: pass");
    let reported = killed.stderr_lines().iter().filter(is_commit).count() as u64;

    // The next start, which also looks for what the last one left.
    let stored = match home.join("results.db").exists() {
        false => 0,
        true => {
            let runs = bench.iolens_json(&name, &["runs", "--db", "results.db", "--json"], 1)?;
            results::trials_of_last_run(&runs.json).unwrap_or(0)
        }
    };
    let begin = Instant::now();
    let mut processes = marked_processes(&mark);
    while !processes.is_empty() && begin.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(20));
        processes = marked_processes(&mark);
    }
    let mut left = networks();
    while !left.is_subset(&networks_before) && begin.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(20));
        left = networks();
    }
    let networks = left.difference(&networks_before).cloned().collect();
    let shared: BTreeSet<String> = shared_files()?.difference(&shared_before).cloned().collect();
    let mut files: Vec<String> = shared.into_iter().collect();
    files.extend(strangers(&home)?);
    Ok(Round { reported, stored, processes, networks, files })
}

/// Processes whose environment bears the mark, as pid and command line.
fn marked_processes(mark: &str) -> Vec<String> {
    let entry = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_marked = |directory: &Path| {
        let environment = fs::read(directory.join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes())
    };
    let words = |directory: &Path| {
        let line = fs::read(directory.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    let marked = entries.map(|entry| entry.path()).filter(|directory| is_marked(directory));
    marked.map(|directory| format!("{} {}", directory.display(), words(&directory))).collect()
}

/// Network namespaces that some process stands in, and the devices of ours. A
/// namespace without a name, a process or an open descriptor does not exist.
fn networks() -> BTreeSet<String> {
    let entries = |directory: &str| fs::read_dir(directory).into_iter().flatten().flatten();
    let namespace = |entry: fs::DirEntry| fs::read_link(entry.path().join("ns/net")).ok();
    let namespaces = entries("/proc").filter_map(namespace);
    let devices = entries("/sys/class/net").map(|entry| entry.path());
    namespaces.chain(devices).map(|path| path.display().to_string()).collect()
}

/// Files of ours in places that all programs share.
fn shared_files() -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for directory in ["/tmp", "/run", "/run/lock", "/dev/shm", "/run/netns"] {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains("iolens") && !name.contains("accept") {
                found.insert(format!("{directory}/{name}"));
            }
        }
    }
    Ok(found)
}

/// What a run left in the directory it was given besides its results.
fn strangers(home: &Path) -> Result<Vec<String>, String> {
    let list = |directory: &Path| {
        let entries =
            fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        Ok::<_, String>(entries.flatten().map(|entry| entry.path()).collect::<Vec<_>>())
    };
    let is_known = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ["results.db", "results.db-wal", "results.db-shm", "tmp"].contains(&name.as_str())
    };
    let mut paths = list(home)?;
    paths.retain(|path| !is_known(path));
    paths.extend(list(&home.join("tmp"))?);
    Ok(paths.iter().map(|path| path.display().to_string()).collect())
}

fn seed() -> Result<u64, String> {
    match std::env::var(SEED_VARIABLE) {
        Ok(text) => text.parse().map_err(|_| format!("{SEED_VARIABLE}=`{text}` is no number")),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
            Ok(now.map_or(0, |now| u64::from(now.subsec_nanos())))
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough for moments.
struct Random(u64);

impl Random {
    /// A number below `bound`, which is small: the bias does not matter.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random(0);
        assert_eq!(random.below(u64::MAX), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.below(u64::MAX), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn a_lost_or_invented_trial_is_unsound() {
        let round = |reported, stored| {
            Round {
                reported,
                stored,
                processes: Vec::new(),
                networks: Vec::new(),
                files: Vec::new(),
            }
            .is_sound()
        };
        assert!(round(3, 3) && round(3, 4));
        assert!(!round(3, 2) && !round(3, 5));
    }

    #[test]
    fn processes_are_found_by_their_mark() {
        let mark = format!("test-{}", std::process::id());
        let mut child = std::process::Command::new("cat")
            .env(MARK, &mark)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat runs");
        // Between fork and exec the child still has our environment.
        let begin = Instant::now();
        while marked_processes(&mark).is_empty() && begin.elapsed() < Duration::from_secs(20) {}
        assert_eq!(marked_processes(&mark).len(), 1);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert!(marked_processes(&mark).is_empty());
    }
}
