//! The other end behind a launcher. Here that is a program of this machine which starts what is
//! named behind it, as `env` does: what travels between the two is the same.

use std::os::unix::fs::PermissionsExt;

use crate::harness::{Finished, Place, children, entries, finished, is_alive, send_signal};

/// Two arms and a size, to this machine as if it were another one.
const SMALL: &str = "run net --progress plain --json --passes 1 --rounds 2 --threads 1 \
                     --methods send_staged,sendmsg_iov --sizes 1KiB --fields 2 \
                     --peer-address 127.0.0.1";

/// A launcher that is a shell's words; what it is to start is `"$@"`.
fn scripted(place: &Place, words: &str) -> String {
    let path = place.path("launcher");
    place.write("launcher", format!("#!/bin/sh\n{words}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn run_with(place: &Place, launcher: &str) -> Finished {
    place.run(&format!("{SMALL} --peer {launcher} --peer-binary TOOL"))
}

/// What it says when nothing can come of it.
fn refusal(place: &Place, launcher: &str) -> String {
    let done = run_with(place, launcher).ended(4);
    done.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn both_ends_are_measured_and_known() {
    let place = Place::new();
    let launcher = scripted(&place, "echo Welcome to this machine; echo; exec \"$@\"");
    for direction in ["tx", "rx"] {
        let done = run_with(&place, &format!("{launcher} --local-end {direction}"));
        done.assert_ended();
        let far = &done.json()["run"]["far"];
        assert_eq!(far["direction"], direction);
        assert_eq!(
            (far["address"].as_str(), far["launcher"].as_str()),
            (Some("127.0.0.1"), Some(&*launcher))
        );
        assert!(far["host"]["facts"].as_array().is_some_and(|facts| facts.len() > 10));
        for found in ["findings", "near_findings"] {
            assert!(far[found].as_array().is_some_and(|found| found.len() > 10), "{found}");
        }
        let db = place.path("data/iolens/iolens.db");
        let store = iolens_store::Store::open(&db).unwrap();
        let run = store.load(&store.find("last").unwrap()).unwrap();
        let trial = run.trials.iter().find(|trial| trial.pass == 1).unwrap();
        assert!(trial.tx.is_some() && trial.rx.is_some(), "{:?}", trial.reason);
        for end in [&trial.tx, &trial.rx].into_iter().flatten() {
            assert_eq!(end.flows.len(), trial.arms.len());
            assert!(end.flows.iter().all(|flows| flows.cpus.len() == 1), "{:?}", end.flows);
        }
        let usable = &run.header.host.cpus;
        for flows in &trial.rx.as_ref().unwrap().flows {
            // Both are this machine, where the CPU that takes in is whichever sends, or answers:
            // it need not be the same at the end as when the thread followed it.
            assert!(flows.incoming_cpus[0].is_some(), "{flows:?}");
            assert!(usable.contains(&flows.cpus[0]), "{flows:?}");
        }
        let there = trial.far_environment.as_ref().unwrap();
        assert!(there.loop_after_ns.value().is_some_and(|&ns| ns > 0));
    }
}

#[test]
fn a_program_that_is_not_there_is_brought_and_leaves_nothing() {
    let place = Place::new();
    let brought = place.make_folder("brought");
    let launcher = scripted(&place, &format!("TMPDIR={} exec \"$@\"", brought.display()));
    let done = place.run(&format!("{SMALL} --peer {launcher}"));
    done.assert_ended();
    assert_eq!(done.json()["run"]["far"]["build"], done.json()["run"]["build"]);
    assert_eq!(entries(&brought), 0);
}

#[test]
fn a_launcher_that_gets_nowhere_is_named_with_what_it_said() {
    let place = Place::new();
    let said = refusal(&place, "/nowhere/ssh");
    assert!(said.contains("cannot start the launcher `/nowhere/ssh`: ENOENT"), "{said}");
    let launcher = scripted(&place, "echo 'h: Permission denied (publickey).' >&2; exit 255");
    let said = refusal(&place, &launcher);
    assert!(
        said.contains(
            "exited with status 255: h: Permission denied (publickey). (it has no terminal to ask"
        ),
        "{said}"
    );
    let launcher = scripted(&place, "exec \"$@\" </dev/null");
    let said = refusal(&place, &launcher);
    assert!(said.contains("exited with status 0, and said nothing"), "{said}");
}

#[test]
fn what_stands_in_the_way_at_the_other_end_is_named() {
    let place = Place::new();
    let launcher = scripted(&place, "exec \"$@\"");
    place
        .run(&format!("{SMALL} --peer {launcher} --peer-binary /nowhere/iolens"))
        .says("there is no program `/nowhere/iolens` behind");
    let with_terminal = scripted(&place, "\"$@\" | sed -u 's/$/\\r/'");
    let said = refusal(&place, &with_terminal);
    assert!(said.contains("has a terminal in its way"), "{said}");
    let other = place.path("other");
    let hello = r#"{"hello":{"protocol":99,"build":"0.0.9"}}"#;
    let script = format!(
        "#!/bin/sh\nprintf '\\{:03o}\\0\\0\\0\\0\\0\\0\\0{hello}'; cat >/dev/null",
        hello.len()
    );
    std::fs::write(&other, script).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o700)).unwrap();
    let launcher = scripted(&place, "exec \"$@\"");
    let line = format!("{SMALL} --peer {launcher} --peer-binary {}", other.display());
    place.run(&line).says("(build 0.0.9) speaks protocol 99");
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let place = Place::new();
    for (line, expect) in [
        ("run net --network peer", "no other machine is named: add --peer"),
        ("run net --peer env --network loopback", "--peer has no effect"),
        ("run net --peer-any-build --peer env", "--peer-binary"),
    ] {
        let done = place.run(line);
        done.says(expect);
        assert!(matches!(done.code, Some(2 | 4)), "{line}: {:?}", done.code);
    }
}

/// The keeper is lost, as with a connection that breaks: its trial fails with the reason, it is
/// found again, and the run goes on.
#[test]
fn an_other_end_that_is_lost_fails_a_trial_and_not_the_run() {
    let place = Place::new();
    let pid = place.path("pid");
    let launcher = scripted(&place, &format!("echo $$ >{}; exec \"$@\"", pid.display()));
    let line = format!("{SMALL} --peer {launcher} --peer-binary TOOL --passes 12 --rounds 40");
    let mut run = place.start(&line.replace("--passes 1 --rounds 2", ""));
    run.wait_for("committed: pass 1");
    let keeper: u32 = place.read("pid").trim().parse().unwrap();
    let workers = loop {
        let workers = children(keeper);
        if !workers.is_empty() {
            break workers;
        }
        std::thread::yield_now();
    };
    send_signal(keeper, "KILL");
    let failed = run.wait_for("failed:");
    assert!(failed.contains("was killed by signal 9"), "{failed}");
    run.wait_for("ok, ");
    run.interrupted();
    let keeper: u32 = place.read("pid").trim().parse().unwrap();
    assert!(!workers.into_iter().chain([keeper]).any(is_alive));
}

/// What cannot be found again ends the run, with what was measured until then; with the other end
/// named once more it goes on.
#[test]
fn an_other_end_that_stays_lost_ends_the_run() {
    let place = Place::new();
    let (pid, gone) = (place.path("pid"), place.path("gone"));
    let words = format!(
        "test -e {gone} && exit 3; echo $$ >{pid}; exec \"$@\"",
        gone = gone.display(),
        pid = pid.display()
    );
    let launcher = scripted(&place, &words);
    let line = format!("{SMALL} --peer {launcher} --peer-binary TOOL --passes 12 --rounds 40");
    let mut run = place.start(&line.replace("--passes 1 --rounds 2", ""));
    run.wait_for("committed: pass 1");
    std::fs::write(&gone, "").unwrap();
    let keeper = place.read("pid").trim().parse().unwrap();
    send_signal(keeper, "KILL");
    let done = run.finish();
    done.assert_ended();
    let end = &done.json()["run"]["end"];
    assert_eq!(end["stopped_by"], "lost", "{}", done.stderr);

    place
        .run("resume last")
        .says("no other machine is named: add --peer")
        .says("the run reached it with `");
    std::fs::remove_file(&gone).unwrap();
    let again = format!("resume last --progress plain --peer {launcher} --peer-binary TOOL");
    place
        .run(&format!("{again} --peer-address 127.0.0.2"))
        .says("has another way between the machines");
    let mut run = place.start(&format!("{again} --peer-address 127.0.0.1"));
    run.wait_for("committed: pass");
    run.interrupted();
}

/// What is stored, shown and sent has no secret of the launcher's, which was started with it.
#[test]
fn a_secret_of_the_launcher_is_used_and_stored_nowhere() {
    const SECRET: &str = "HushHush";
    let place = Place::new();
    let heard = place.path("heard");
    let words = format!("echo \"$1\" >{}; shift; exec \"$@\"", heard.display());
    let launcher = format!("{} --token={SECRET}", scripted(&place, &words));
    let mut command = place.command(&format!("{SMALL} --peer-binary TOOL"));
    command.arg("--peer").arg(&launcher);
    let done = finished(command.output().unwrap());
    done.assert_ended();
    assert_eq!(place.read("heard").trim(), format!("--token={SECRET}"));
    let far = &done.json()["run"]["far"];
    assert!(far["launcher"].as_str().unwrap().ends_with(" '--token=***'"), "{far}");
    let export = place.run("export last --format json").stdout;
    for text in [&done.stdout, &done.stderr, &export] {
        assert!(!text.contains(SECRET), "{text}");
    }
    let stored = place.path("data/iolens");
    let files: Vec<_> =
        std::fs::read_dir(&stored).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.iter().any(|path| path.extension().is_some_and(|end| end == "db")));
    for path in files.iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{}", path.display());
    }
}
