//! `top2` against folders of our own that look like /proc, and against another
//! reading of the real one while processes with hostile names run.

use std::process::{Child, Command, Stdio};

use super::*;

/// A folder with a process for each of these: id, name, user, kernel and start
/// ticks.
fn machine(processes: &[(u32, &str, u64, u64, u64)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (pid, name, user, kernel, start) in processes {
        put(folder.path(), *pid, name, [*user, *kernel, *start]);
    }
    folder
}

fn put(folder: &Path, pid: u32, name: &str, [user, kernel, start]: [u64; 3]) {
    let text = format!(
        "{pid} ({name}) S 1 {pid} {pid} 0 -1 4194560 9 0 0 0 {user} {kernel} 0 0 \
                        20 0 1 0 {start} 1000 20 18446744073709551615\n"
    );
    std::fs::create_dir_all(folder.join(pid.to_string())).unwrap();
    std::fs::write(folder.join(format!("{pid}/stat")), text).unwrap();
}

fn ask(top2: &mut Top2) -> String {
    let mut reply = Vec::new();
    top2.answer(Request { id: b"1", text: b"" }, &mut reply).unwrap();
    String::from_utf8(reply).unwrap()
}

/// A reply of one process, with hundredths of a second for ticks.
fn told(who: &str, user: u64, kernel: u64) -> String {
    let s = |ticks: u64| format!("{}.{:02} s", ticks / 100, ticks % 100);
    format!("pid {who}: user {}, kernel {}, total {}", s(user), s(kernel), s(user + kernel))
}

fn open(folder: &Path, look: Look) -> Top2 {
    Top2 { ticks_per_second: 100, ..Top2::open(folder, look).unwrap() }
}

fn check(processes: &[(u32, &str, u64, u64, u64)], expect: &[(&str, u64, u64)]) {
    let folder = machine(processes);
    let expect: Vec<String> = expect.iter().map(|(who, u, k)| told(who, *u, *k)).collect();
    assert_eq!(ask(&mut open(folder.path(), Look::Total)), expect.join("; "));
}

#[test]
fn the_two_with_most_ticks_come_first() {
    check(
        &[(5, "a", 1, 2, 0), (60, "b", 30, 40, 0), (700, "c", 90, 0, 0), (8, "d", 10, 10, 0)],
        &[("700 c", 90, 0), ("60 b", 30, 40)],
    );
    check(
        &[(9, "x", 5, 0, 0), (10, "y", 0, 5, 0), (8, "z", 5, 0, 0)],
        &[("8 z", 5, 0), ("9 x", 5, 0)],
    );
    check(&[(3, "only", 0, 0, 0)], &[("3 only", 0, 0)]);
    check(&[], &[]);
    let folder = machine(&[(4, "there", 1234, 56, 0)]);
    assert_eq!(
        ask(&mut open(folder.path(), Look::Total)),
        "pid 4 there: user 12.34 s, kernel 0.56 s, total 12.90 s"
    );
}

#[test]
fn a_name_may_be_anything() {
    check(&[(1, "a) S 1 (b", 7, 8, 0)], &[(r"1 a)\x20S\x201\x20(b", 7, 8)]);
    check(&[(1, "x\ny;z\\", 7, 8, 0)], &[(r"1 x\x0ay\x3bz\x5c", 7, 8)]);
    check(&[(1, "ü", 7, 8, 0)], &[(r"1 \xc3\xbc", 7, 8)]);
    check(&[(1, "", 7, 8, 0)], &[(r"1 \x00", 7, 8)]);
    check(&[(1, ") R 9 9 9 9 9 (", 7, 8, 0)], &[(r"1 )\x20R\x209\x209\x209\x209\x209\x20(", 7, 8)]);
}

#[test]
fn what_vanishes_or_makes_no_sense_is_skipped() {
    let folder = machine(&[(4, "there", 1, 1, 0)]);
    // Seen in the directory, and then there is nothing to open, as of a process
    // that ends between the two.
    std::fs::create_dir(folder.path().join("5")).unwrap();
    std::fs::create_dir(folder.path().join("6")).unwrap();
    std::fs::write(folder.path().join("6/stat"), "6 (cut) S 1").unwrap();
    std::fs::create_dir(folder.path().join("7")).unwrap();
    std::fs::write(folder.path().join("7/stat"), "").unwrap();
    assert_eq!(ask(&mut open(folder.path(), Look::Total)), told("4 there", 1, 1));
    let why = Top2::open(&folder.path().join("nothing"), Look::Total).map(drop).unwrap_err();
    assert!(why.contains("ENOENT"), "{why}");
}

#[test]
fn an_interval_has_the_ticks_since_and_knows_a_pid_that_was_used_again() {
    let processes = [(1, "old", 1000, 1000, 5), (2, "busy", 10, 0, 6), (3, "ended", 900, 0, 7)];
    let folder = machine(&processes);
    let mut top2 = open(folder.path(), Look::Interval);
    put(folder.path(), 1, "old", [1001, 1000, 5]);
    put(folder.path(), 2, "busy", [40, 20, 6]);
    // Another process with the number of one that has ended.
    put(folder.path(), 3, "new", [3, 4, 99]);
    let text = ask(&mut top2);
    let expect = [told("2 busy", 30, 20), told("3 new", 3, 4)];
    let expect = expect.map(|process| format!("{process}, too soon for a share"));
    assert_eq!(text, expect.join("; "));
    // Two seconds ago.
    top2.base_ns = top2.base_ns.saturating_sub(2_000_000_000);
    let text = ask(&mut top2);
    let percent = text.split("; ").next().unwrap().rsplit(", ").next().unwrap();
    let percent: f64 = percent.strip_suffix("% of a CPU").unwrap().parse().unwrap();
    assert!(percent > 0.0 && percent <= 25.1, "{text}");
    // That look is what the next one is compared with.
    assert!(ask(&mut top2).contains("total 0.00 s"));
}

#[test]
fn a_cache_is_read_until_it_is_old() {
    let folder = machine(&[(1, "a", 1, 1, 0)]);
    let mut top2 = open(folder.path(), Look::Cached(u64::MAX));
    assert_eq!(ask(&mut top2), told("1 a", 1, 1));
    put(folder.path(), 1, "a", [2, 2, 0]);
    assert_eq!(ask(&mut top2), told("1 a", 1, 1));
    top2.look = Look::Cached(1);
    assert_eq!(ask(&mut top2), told("1 a", 2, 2));
}

/// A process that runs under a name.
struct Hostile(Child);

impl Hostile {
    fn start(name: &str) -> Hostile {
        let script = r#"printf %s "$0" > /proc/$$/comm; echo; while :; do :; done"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, name]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Its line says that it has its name.
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        Hostile(child)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ticks of every process, read in another way.
fn independent() -> HashMap<u32, u64> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        all.insert(pid, ticks);
    }
    all
}

#[test]
fn it_agrees_with_another_reading_while_hostile_names_run() {
    let names = ["a) R 1 (b", "x\ny", "1 (2) 3", ";; \\"];
    let hostile: Vec<Hostile> = names.iter().map(|name| Hostile::start(name)).collect();
    let mut top2 = Top2::open(Path::new("/proc"), Look::Total).unwrap();
    let before = independent();
    let text = ask(&mut top2);
    let after = independent();
    let chosen: Vec<(u32, u64)> = text
        .split("; ")
        .map(|process| {
            let (who, spent) = process.split_once(": ").unwrap();
            let pid = who.split(' ').nth(1).unwrap().parse().unwrap();
            let total = spent.rsplit_once("total ").unwrap().1.strip_suffix(" s").unwrap();
            let hundredths: u64 = total.replace('.', "").parse().unwrap();
            (pid, hundredths * top2.ticks_per_second / 100)
        })
        .collect();
    // Ticks only grow: the other readings stand around this one.
    for (pid, ticks) in &chosen {
        let least = before.get(pid).copied().unwrap_or(0);
        let most = after.get(pid).copied().unwrap_or(u64::MAX);
        assert!((least..=most).contains(ticks), "{pid}: {ticks} in {least}..={most}");
    }
    let second = chosen[1].1;
    let others = before.iter().filter(|(pid, _)| chosen.iter().all(|(id, _)| id != *pid));
    let larger: Vec<_> = others
        .filter(|(pid, ticks)| {
            // One that ended meanwhile could not be chosen.
            **ticks > second && after.contains_key(pid)
        })
        .collect();
    assert!(larger.is_empty(), "{text}, and {larger:?} had more");
    // Each of the hostile ones is read as what it is.
    for (hostile, name) in hostile.iter().zip(names) {
        let pid = hostile.0.id();
        let process = read(pid, top2.proc.stat(pid).unwrap().unwrap()).unwrap();
        assert_eq!(process.name, Name::of(name.as_bytes()), "{process:?}");
    }
}
