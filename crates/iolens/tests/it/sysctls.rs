//! `--allow-sysctl`: what a run changes on the whole machine, and who puts it
//! back. One test changes the sysctl, so that no two fight over it; the place of
//! the journal is the test's own, so that no other test's start puts it back.

use std::sync::{Mutex, PoisonError};

use crate::harness::{Finished, Place, finished, is_root, list};
use crate::skip;

const NAME: &str = "net.core.high_order_alloc_disable";
const FILE: &str = "/proc/sys/net/core/high_order_alloc_disable";

const RUN: &str = "run net --methods send,sendmsg_iov --sizes 1MiB --threads 1 --network \
                   loopback --receivers tcp_zerocopy_receive --progress plain";

fn value() -> String {
    std::fs::read_to_string(FILE).unwrap().trim().to_owned()
}

/// Puts the sysctl back if the test fails.
struct Before(String);

impl Drop for Before {
    fn drop(&mut self) {
        let _ = std::fs::write(FILE, &self.0);
    }
}

/// Whether the sysctl can be changed here, and is what most machines have.
fn may_change() -> Result<Before, String> {
    let opened = std::fs::OpenOptions::new().write(true).open(FILE);
    opened.map_err(|e| format!("{NAME} may not be changed: {e}"))?;
    match value().as_str() {
        "0" => Ok(Before("0".to_owned())),
        value => Err(format!("{NAME} is {value} already")),
    }
}

#[test]
fn a_sysctl_is_changed_with_consent_and_put_back_whatever_happens() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let _before = match may_change() {
        Ok(before) => before,
        Err(why) => {
            return skip::note(
                "sysctls::a_sysctl_is_changed_with_consent_and_put_back_whatever_happens",
                &why,
            );
        }
    };
    let place = Place::new();
    without_consent_or_need_nothing_is_changed(&place);
    a_run_says_what_it_has_changed(&place);
    an_interrupted_run_puts_it_back(&place);
    after_a_killed_run_the_next_start_puts_it_back(&place);
}

fn without_consent_or_need_nothing_is_changed(place: &Place) {
    let no_need = RUN.replace("tcp_zerocopy_receive", "recv,recvmsg_iov --allow-sysctl");
    for line in [RUN, &no_need] {
        let mut run = place.start(line);
        run.wait_for("committed: ");
        assert_eq!(value(), "0", "{line}");
        assert!(!place.path("iolens.journal").exists());
        run.interrupted();
        assert!(!place.run("show last").stdout.contains(NAME) || line == RUN);
    }
}

fn a_run_says_what_it_has_changed(place: &Place) {
    place.fails(
        &format!("{RUN} --allow-sysctl --quick --passes 2 --rounds 3"),
        0,
        &format!("note: {NAME}=1 on the whole machine"),
    );
    assert_eq!(value(), "0");
    assert!(!place.path("iolens.journal").exists());
    let show = place.run("show last").stdout.replace("\n  ", " ");
    assert!(show.contains(&format!("of the bytes with {NAME}=1")), "{show}");
    assert!(show.contains(&format!("easured with {NAME}=1, which iolens set")), "{show}");
    let json = place.json("show last --json");
    let changed = &json["run"]["host"]["changed"][0];
    assert_eq!((&changed["name"], &changed["before"]), (&NAME.into(), &"0".into()));
}

fn an_interrupted_run_puts_it_back(place: &Place) {
    let mut run = place.start(&format!("{RUN} --allow-sysctl"));
    run.wait_for("committed: ");
    assert_eq!(value(), "1");
    run.interrupted();
    assert_eq!(value(), "0");
    assert!(!place.path("iolens.journal").exists());
}

fn after_a_killed_run_the_next_start_puts_it_back(place: &Place) {
    let finding = || {
        let doctor = place.json("doctor --json");
        let mut all = list(&doctor["findings"]).iter();
        let found = all.find(|finding| finding["name"] == "changed sysctls");
        found.cloned().unwrap()
    };
    let mut run = place.start(&format!("{RUN} --allow-sysctl"));
    run.wait_for("committed: ");
    // Others that start leave it alone while the run goes on.
    assert_eq!(place.run("runs").stderr, "");
    assert_eq!((value().as_str(), &finding()["state"]), ("1", &"ok".into()));
    run.killed();
    assert_eq!(value(), "1");
    let found = finding();
    assert_eq!(found["state"], "limited", "{found}");
    assert!(found["remedy"].as_str().unwrap().contains(&format!("sudo sysctl {NAME}=0")));
    place.run("runs").says(format!("note: {NAME} is 0 again"));
    assert_eq!((value().as_str(), place.path("iolens.journal").exists()), ("0", false));
    assert_eq!(place.run("runs").stderr, "", "it is said once");
}

/// The binary on a machine whose /proc/sys is read-only, as in a container.
fn run_contained(place: &Place, line: &str) -> Finished {
    let script = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys";
    finished(place.in_a_mount_namespace(script, line).output().unwrap())
}

/// What one test sets, another one would find set already.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn who_may_not_change_sysctls_is_told_before_the_start() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let line = format!("{RUN} --allow-sysctl");
    let (done, errnos) = match is_root() {
        true => (run_contained(&place, &line), &["EROFS", "ENOENT"][..]),
        false => (place.run(&line), &["EACCES", "ENOENT"][..]),
    };
    if done.code == Some(77) || done.stderr.contains("unshare") {
        return skip::note(
            "sysctls::who_may_not_change_sysctls_is_told_before_the_start",
            &format!("needs a mount namespace: {}", done.stderr.trim()),
        );
    }
    done.assert_code(4);
    let said = format!("cannot set {NAME} to 1, which --allow-sysctl asks for: ");
    let rest = done.stderr.split_once(&said).unwrap_or_else(|| panic!("{}", done.stderr)).1;
    assert!(errnos.iter().any(|errno| rest.starts_with(errno)), "{rest}");
    assert!(rest.contains("leave --allow-sysctl out"), "{rest}");
    assert!(!place.path("data").exists(), "nothing was begun");
}
