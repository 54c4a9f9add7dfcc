//! Databases, files and processes of somebody who means harm: what they say is data.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};

use iolens_harness::host::{Root, read};
use iolens_model::copy::{CopyAxes, CopySync};
use iolens_model::external::External;
use iolens_model::file::CacheState;
use iolens_model::host::HostFacts;
use iolens_model::plan::{Axes, Passes, Plan, Schedule};
use iolens_model::run::RunHeader;
use iolens_model::units::{Bytes, Nanos};

use crate::harness::{Place, started_by};
use crate::sample;

const ID: &str = "ab000001";

/// A run that copies with a program of its own, which leaves a mark when it is started.
fn with_a_program(place: &Place, host: HostFacts) -> RunHeader {
    let mark = place.path("ran");
    let touch = "/usr/bin/touch".to_owned();
    let argv = [touch, mark.display().to_string(), "{src}".to_owned(), "{dst}".to_owned()];
    let axes = CopyAxes {
        block: vec![Bytes(4096)],
        cache: vec![CacheState::Warm],
        sync: vec![CopySync::None],
        file: None,
        dir: None,
        evict: false,
        external: vec![External { name: "x".to_owned(), argv: argv.into() }],
    };
    let known = sample::header(ID);
    let plan = Plan {
        axes: Axes::Copy(axes),
        primitives: vec!["read_write".to_owned(), "x".to_owned()],
        baseline: "read_write".to_owned(),
        sizes: vec![Bytes(4096)],
        passes: Passes { minimum: 1, maximum: 1 },
        quick: true,
        ..known.plan
    };
    RunHeader { plan, host, ..known }
}

fn here() -> HostFacts {
    read(&Root::real()).unwrap()
}

/// A database with this run.
fn database(place: &Place, name: &str, header: &RunHeader) -> String {
    place.with_runs_in(name, std::slice::from_ref(header));
    place.path(name).display().to_string()
}

/// A run of this machine.
fn own() -> RunHeader {
    RunHeader { host: here(), ..sample::header(ID) }
}

/// Runs a line that must be refused with these words, and starts no program of the plan.
#[track_caller]
fn refused(place: &Place, line: &str, part: &str) {
    let done = place.run(line);
    assert!(matches!(done.code, Some(2 | 4)), "{line}: {:?} {}", done.code, done.stderr);
    done.says(part);
    assert!(!place.path("ran").exists(), "{line} ran a program of the stored plan");
}

#[test]
fn a_program_of_a_stored_plan_is_not_run_without_consent() {
    let place = Place::new();
    let own = database(&place, "own.db", &with_a_program(&place, here()));
    for line in
        [format!("compare {ID} --rerun TOOL --db {own}"), format!("confirm {ID} --db {own}")]
    {
        refused(&place, &line, "--allow external");
    }
    refused(&place, &format!("explain {ID} --arms x --db {own}"), "`x`: it is a program");
    let measured = place
        .run(&format!("compare {ID} --rerun TOOL --db {own} --allow external --progress none"));
    assert!(place.path("ran").exists(), "with consent it is run: {}", measured.stderr);
}

#[test]
fn a_run_of_another_machine_is_measured_nowhere_else() {
    let place = Place::new();
    let foreign = RunHeader {
        host: HostFacts { facts: Vec::new(), ..here() },
        ..with_a_program(&place, here())
    };
    let foreign = database(&place, "foreign.db", &foreign);
    let rerun = format!("compare {ID} --rerun TOOL --allow external");
    refused(&place, &format!("{rerun} --db {foreign}"), "another machine");
    refused(&place, &format!("explain {ID} --db {foreign} --allow external"), "another machine");
    refused(&place, &format!("confirm {ID} --db {foreign} --allow external"), "another machine");

    place.run(&format!("import {foreign} --host stranger")).ended(0);
    refused(&place, &rerun, "it was measured on stranger");
}

#[test]
fn a_stored_plan_is_checked_like_a_typed_one() {
    let place = Place::new();
    let header = own();
    let zero_size = Plan { sizes: vec![Bytes(0)], ..header.plan.clone() };
    let zero_threads = Plan { threads: vec![0], ..header.plan.clone() };
    let unknown = Plan { primitives: vec!["nosuch".to_owned()], ..header.plan.clone() };
    // What no flag states, and is lost where a plan is written down as flags.
    let discarded =
        Schedule::Slices { slice: Nanos(5_000_000), discarded_rounds: u32::MAX, rounds: 40 };
    let discards = Plan { schedule: discarded, ..header.plan.clone() };
    let file = place.path("file");
    place.write("file", [7; 5000]);
    let copies = |sizes: Vec<Bytes>| {
        let mut plan = with_a_program(&place, here()).plan;
        let Axes::Copy(axes) = &mut plan.axes else { panic!("{plan:?}") };
        (axes.file, axes.external) = (Some(file.display().to_string()), Vec::new());
        Plan { sizes, primitives: vec!["read_write".to_owned()], ..plan }
    };
    let (empty, none) = (copies(vec![Bytes(0)]), copies(Vec::new()));
    for (name, plan) in [
        ("a", zero_size),
        ("b", zero_threads),
        ("c", unknown),
        ("d", discards),
        ("e", empty),
        ("f", none),
    ] {
        let db = database(&place, name, &RunHeader { plan, ..header.clone() });
        for line in [
            format!("compare {ID} --rerun TOOL --allow file --db {db}"),
            format!("confirm {ID} --allow file --db {db}"),
            format!("resume {ID} --allow file --db {db}"),
        ] {
            refused(&place, &line, "its plan cannot be measured");
        }
        assert!(!place.run(&format!("explain {ID} --db {db}")).stderr.contains("panicked"));
    }
    let sizes = copies(vec![Bytes(5000)]);
    let db = database(&place, "g", &RunHeader { plan: sizes, ..header.clone() });
    let rerun = format!("compare {ID} --rerun TOOL --allow file --progress none --db {db}");
    let done = place.run(&rerun);
    assert!(!done.stderr.contains("cannot be measured"), "{}", done.stderr);
}

/// `explain` too, which measures one cell alone.
#[test]
fn a_stored_plan_that_is_too_large_for_this_machine_is_measured_by_nobody() {
    let place = Place::new();
    let header = own();
    let no_cpu = Plan { cpus: Some(vec![4095]), ..header.plan.clone() };
    let large = vec![Bytes(64), Bytes(4096), Bytes(1 << 30)];
    let large = Plan { sizes: large, threads: vec![1, 512], ..header.plan.clone() };
    for (name, plan, part) in
        [("a", no_cpu, "cannot use CPU 4095"), ("b", large, "do not fit in memory")]
    {
        let db = database(&place, name, &RunHeader { plan, ..header.clone() });
        for line in [
            format!("explain {ID} 1 --db {db}"),
            format!("confirm {ID} --db {db}"),
            format!("resume {ID} --db {db}"),
            format!("compare {ID} --rerun TOOL --db {db}"),
        ] {
            refused(&place, &line, part);
        }
    }
}

#[test]
fn a_file_that_a_stored_plan_names_is_not_looked_at_without_consent() {
    let place = Place::new();
    let names = |name: &str| {
        let mut header = with_a_program(&place, here());
        let Axes::Copy(axes) = &mut header.plan.axes else { panic!("{header:?}") };
        axes.file = Some(place.path("secret").display().to_string());
        axes.external.clear();
        header.plan.primitives.pop();
        database(&place, name, &header)
    };
    let said = |db: &str| {
        let line = format!("confirm {ID} --db {db}");
        refused(&place, &line, "--allow file");
        place.run(&line).stderr
    };
    let missing = said(&names("missing.db"));
    place.write("secret", "secret");
    assert_eq!(said(&names("there.db")), missing, "whether it is there is an answer too");
}

#[test]
fn an_id_that_is_a_path_names_no_page() {
    let place = Place::new();
    let db = database(&place, "foreign.db", &own());
    let victim = place.path("victim");
    place.write("victim.html", "precious");
    let edited = rusqlite::Connection::open(&db).unwrap();
    edited.execute("UPDATE run SET id = ?", [victim.display().to_string()]).unwrap();
    for line in [
        format!("report last --db {db}"),
        format!("show last --db {db}"),
        format!("explain last --db {db}"),
    ] {
        refused(&place, &line, "its id is not one");
    }
    place.run(&format!("runs --db {db}")).prints("damaged");
    place.run(&format!("rm last --yes --db {db}")).ended(0);
    assert_eq!(place.read("victim.html"), "precious");
}

#[test]
fn a_damaged_run_takes_no_other_with_it() {
    let place = Place::new();
    let confirming =
        RunHeader { id: "ab000002".to_owned(), confirms: Some(ID.to_owned()), ..own() };
    place.with_runs_in("results.db", &[own(), confirming]);
    let path = place.path("results.db");
    let edited = rusqlite::Connection::open(&path).unwrap();
    edited.execute("UPDATE run SET name = CAST(x'ff' AS TEXT) WHERE run = 2", []).unwrap();
    for line in ["show", "report", "export --format csv"] {
        let done = place.run(&format!("{line} {ID} --db PLACE/results.db")).ended(0);
        let says = done.stderr.contains("run ab000002, which confirms run ab000001, is left out");
        assert_eq!(says, !line.starts_with("export"), "{line}: {}", done.stderr);
    }
    place.run("import PLACE/results.db --host stranger").ended(4);
    assert_eq!(place.runs(), 1);
    // By what the list calls it.
    edited.execute("UPDATE run SET id = CAST(x'1b5b324aff' AS TEXT) WHERE run = 2", []).unwrap();
    let runs = place.json("runs --json --db PLACE/results.db");
    let id = runs[1]["id"].as_str().unwrap();
    assert_eq!(id, "\u{fffd}[2J\u{fffd}");
    place.run(&format!("rm {id} --yes --db PLACE/results.db")).ended(0);
    place.run(&format!("rm {ID} --yes --db PLACE/results.db")).ended(0);
}

#[test]
fn a_file_beside_a_page_is_the_users_and_an_interrupted_page_is_the_old_one() {
    let place = Place::new();
    let db = database(&place, "results.db", &own());
    place.write("p.html.new", "precious");
    let line = format!("report last -o PLACE/p.html --db {db}");
    place.run(&line).ended(0);
    place.run(&format!("{line} --overwrite")).ended(0);
    assert_eq!(place.read("p.html.new"), "precious");

    // A limit on the size of files, beyond which a process is killed as it writes.
    place.write("p.html", "old");
    place.make_folder("small");
    let command = place.command(&format!("{line} --overwrite"));
    let words = ["sh", "-c", "ulimit -f 66; exec \"$@\"", "sh"];
    let killed = started_by(&words, &command).output().unwrap();
    assert_eq!(killed.status.code(), None, "{}", String::from_utf8_lossy(&killed.stderr));
    assert_eq!(place.read("p.html"), "old");
}

#[test]
fn a_planted_link_is_not_where_a_page_goes() {
    let place = Place::new();
    let db = database(&place, "results.db", &own());
    let (target, reports) = (place.path("target"), place.make_folder("reports"));
    place.write("target", "precious");
    let page = reports.join(format!("{ID}.html"));
    std::os::unix::fs::symlink(&target, &page).unwrap();
    place.run(&format!("report last --db {db}")).ended(0);
    assert_eq!(place.read("target"), "precious");
    assert!(page.symlink_metadata().unwrap().is_file(), "the page replaced the link");

    std::fs::remove_dir_all(&reports).unwrap();
    let elsewhere = place.make_folder("elsewhere");
    let there = format!("elsewhere/{ID}.html");
    place.write(&there, "precious");
    std::os::unix::fs::symlink(&elsewhere, &reports).unwrap();
    refused(&place, &format!("report last --db {db}"), "cannot write");
    place.run(&format!("rm last --yes --db {db}"));
    assert_eq!(place.read(&there), "precious");
}

#[test]
fn what_stands_in_the_place_of_the_lock_stops_nothing_but_runs() {
    let place = Place::new();
    let db = database(&place, "results.db", &own());
    let lock = place.path("iolens.lock");
    let made = std::process::Command::new("mkfifo").arg(&lock).status().unwrap();
    assert!(made.success());
    let held = std::fs::File::options().read(true).write(true).open(&lock).unwrap();
    held.lock().unwrap();
    place.run(&format!("runs --db {db}")).ended(0);
    refused(&place, &format!("rm last --yes --db {db}"), "it is not a regular file");
}

#[test]
fn what_a_lock_file_or_a_database_says_is_no_command_to_the_terminal() {
    let place = Place::new();
    let db = database(&place, "results.db", &own());
    let lock = place.path("iolens.lock");
    place.write("iolens.lock", "\x1b]0;owned\x07\x1b[2J");
    let held = std::fs::File::options().read(true).write(true).open(&lock).unwrap();
    held.lock().unwrap();
    let busy = place.run(&format!("rm last --yes --db {db}")).stderr;
    assert!(busy.contains("owned") && !busy.contains('\x1b'), "{busy:?}");
    drop(held);
    let edited = rusqlite::Connection::open(&db).unwrap();
    edited
        .execute(
            "UPDATE run_end SET run_end_json = json_set(run_end_json, '$.stopped_by', ?)",
            ["\x1b]0;owned\x07"],
        )
        .unwrap();
    for line in ["runs", "show last", "report last", "export last"] {
        let done = place.run(&format!("{line} --db {db}"));
        let said = done.stdout + &done.stderr;
        assert!(!said.contains('\x1b') && !said.contains('\x07'), "{line}: {said:?}");
    }
}

#[test]
fn a_path_is_no_command_to_the_terminal() {
    let place = Place::new();
    let folder = place.make_folder("ev\x1b]0;owned\x07\u{9b}2J");
    let db = database(&place, "ev\x1b]0;owned\x07\u{9b}2J/results.db", &own());
    let page = folder.join("page.html").display().to_string();
    let figures = folder.join("figures").display().to_string();
    for line in [
        &["report", "last"][..],
        &["report", "last", "-o", &page],
        &["report", "last", "--figures", &figures],
        &["gc", "--dry-run"],
        &["gc", "--yes"],
        &["show", "last"],
        &["rm", "last", "--yes"],
    ] {
        let done = place.command("").args(line).args(["--db", &db]).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{line:?}: {said:?}");
        let commands = |letter: char| letter.is_control() && letter != '\n';
        assert!(!said.contains(commands), "{line:?}: {said:?}");
    }
}

/// Connects to every socket of a name that the kernel chose (autobind, unix(7)), says nothing and
/// stays, until it is told to stop.
fn silent_caller(stop: &std::sync::atomic::AtomicBool) -> Vec<UnixStream> {
    let mut held = Vec::new();
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let listed = std::fs::read_to_string("/proc/net/unix").unwrap();
        let names = listed.lines().filter_map(|line| line.rsplit_once('@').map(|(_, name)| name));
        for name in names.filter(|name| name.len() == 5) {
            let address = SocketAddr::from_abstract_name(name).unwrap();
            held.extend(UnixStream::connect_addr(&address));
        }
    }
    held
}

#[test]
fn who_connects_to_every_nameless_socket_fails_no_trial() {
    let place = Place::new();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| silent_caller(&stop));
        let run = place.run(
            "run net --methods send,unix_stream,pipe --baseline send --sizes 1KiB --threads 1 \
             --network loopback --rounds 2 --slice 5ms --passes 2 --json",
        );
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        run
    });
    run.assert_code(0);
    let arms = place.exported("cells");
    assert!(!arms.is_empty() && arms.iter().all(|row| row["status"] == "ok"), "{arms:?}");
}
