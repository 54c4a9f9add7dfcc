//! `iolens doctor` as a user meets it: on any machine it says something of
//! everything, and leaves nothing behind.

use crate::harness::{Place, entries, list};

#[test]
fn the_doctor_reads_in_eighty_columns_and_changes_nothing() {
    let place = Place::new();
    let done = place.run("doctor");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
    for heading in ["machine", "processors", "counters", "network", "limits"] {
        done.prints(format!("\n\n{heading}\n"));
    }
    let wide: Vec<&str> = done.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    // What has no blank is not folded: the path of this binary, for one.
    assert!(wide.iter().all(|line| line.trim().split(' ').count() <= 2), "{wide:?}");
    done.prints("net veth").prints("net attribution");
    let left = entries(place.folder.path());
    assert_eq!(left, 0, "nothing is left behind");
}

#[test]
fn every_finding_has_all_its_parts_for_programs_too() {
    let place = Place::new();
    let json = place.json("doctor --json");
    let findings = list(&json["findings"]);
    assert!(findings.len() > 20, "{json:#}");
    for finding in findings {
        for key in ["area", "name", "state", "found", "source", "effect", "remedy"] {
            let part = finding[key].as_str().unwrap_or_default();
            assert!(!part.trim().is_empty(), "{key} of {finding:#}");
        }
        let is_ok = finding["state"] == "ok";
        assert_eq!(is_ok, finding["effect"] == "none", "{finding:#}");
    }
    let studies = list(&json["studies"]);
    for study in ["net", "file", "syscall", "server"] {
        assert!(studies.iter().any(|outlook| outlook["study"] == study), "{study}");
    }
}

#[test]
fn what_the_doctor_says_of_veth_is_what_the_list_says() {
    let place = Place::new();
    let listed = place.listed("networks");
    let veth = listed.iter().find(|t| t["name"] == "veth");
    let diagnosis = place.json("doctor --json");
    let finding = list(&diagnosis["findings"]).iter();
    let pair = finding.clone().find(|finding| finding["name"] == "veth pair").unwrap();
    assert_eq!(veth.unwrap()["available"] == true, pair["state"] == "ok", "{pair:#}");
}

#[test]
fn a_place_that_does_not_exist_is_no_reason_to_make_one() {
    let place = Place::new();
    place
        .run("doctor --json --db PLACE/x/y.db")
        .ended(0)
        .prints(place.folder.path().display().to_string());
    assert!(!place.path("x").exists());
}

#[test]
fn an_unknown_flag_is_a_mistake() {
    Place::new().run("doctor --cure").ended(2);
}
