//! Two stored runs against each other.

use crate::harness::{Place, list};
use crate::skip;
use crate::storage::in_tmpfs;

/// A run of a second or so that tells halves from wholes and nothing finer.
const TINY: &str = "run net --methods send,sendmsg_iov --threads 1 --network loopback \
                    --rounds 5 --passes 3 --threshold 90% --precision 50% --progress none --json";

fn measured(place: &Place, further: &str) -> String {
    let run = place.json(&format!("{TINY} {further}"));
    run["run"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn two_runs_are_compared_in_every_form() {
    let place = Place::new();
    let a = measured(&place, "--sizes 1KiB --baseline send");
    let b = measured(&place, "--sizes 1KiB,4KiB --baseline send");
    let json = place.json(&format!("compare {a} last --json"));
    assert_eq!((&json["a"]["id"], &json["b"]["id"]), (&a.as_str().into(), &b.as_str().into()));
    // One cell in common: two arms, a copy of the baseline among them, and the baseline.
    assert_eq!(json["contrasts"], 2);
    assert_eq!(list(&json["changes"]).len(), 3, "{json}");
    assert_eq!(json["missing"][0]["cell"]["message_bytes"], 4096);
    let differs = |name: &str| {
        let inputs = list(&json["inputs"]).iter();
        inputs.clone().any(|input| input["group"] == "plan" && input["name"] == name)
    };
    assert!(differs("sizes") && !differs("delta") && !differs("seed"), "{json}");

    let text = place.run(&format!("compare {a} {b}"));
    assert!(text.stdout.starts_with("compare · A: "), "{}", text.stdout);
    text.prints("settings that only B has: 4 KiB");
    place.run(&format!("compare {a} {b} --verbose")).prints("INPUTS THAT DIFFER");
    place
        .run(&format!("compare {a} {b} --markdown --absolute"))
        .prints("| plan: sizes | ")
        .prints("<details>");

    place.run(&format!("compare {a} {a}")).ended(0).prints("0% [0, 0]").prints("the same trials");

    place.run(&format!("compare {a} ffffffff")).ended(2);
}

/// The other build is this one, which it does not know.
#[test]
fn two_builds_measure_a_plan_in_turn() {
    let place = Place::new();
    let first = measured(&place, "--sizes 1KiB --baseline send");
    let done = place.run(&format!("compare {first} --rerun TOOL --progress none --json"));
    done.says("from fresh copies of the programs");
    done.says("linking the same source again");
    let json: serde_json::Value = done.json();
    let ids = ["a", "b"].map(|side| json[side]["id"].as_str().unwrap().to_owned());
    assert!(ids[0] != ids[1] && !ids.contains(&first), "{ids:?}");
    let changes = list(&json["changes"]);
    assert!(changes.iter().all(|change| change["own"]["interleaved"] == true), "{json}");
    assert!(changes.iter().any(|change| change["own"]["pointwise"].is_object()), "{json}");
    assert_eq!(list(&json["inputs"]).len(), 0, "one plan, one machine: {json}");
    let runs = place.json("runs --json");
    let runs = list(&runs);
    assert_eq!(runs.len(), 3);
    let trials = |id: &str| runs.iter().find(|run| run["id"] == id).unwrap()["trials"].clone();
    assert_eq!(trials(&ids[0]), trials(&ids[1]));
    // Looked at later they are the same two runs.
    place
        .run(&format!("compare {} {}", ids[0], ids[1]))
        .prints("took turns")
        .prints("relinking alone can change");
}

/// The other program's own folder takes its copies; that of the first takes none, so they are
/// made beside the database.
#[test]
fn copies_of_programs_are_made_where_they_may_be_started() {
    const TEST: &str = "compare::copies_of_programs_are_made_where_they_may_be_started";
    let place = Place::new();
    let first = measured(&place, "--sizes 1KiB --baseline send");
    let other = place.path("iolens");
    std::fs::copy(place.command("").get_program(), &other).unwrap();
    let script = format!(
        "cd $DIR/small && cp $TOOL iolens && mkdir tmp && mount -t tmpfs -o size=1g,noexec none tmp \
         && mount -o remount,ro $DIR/small || {{ echo refused; exit; }}; cd $DIR; \
         TMPDIR=$DIR/small/tmp $DIR/small/iolens compare {first} --rerun {} --progress none --json \
         --db $DIR/data/iolens/iolens.db >/dev/null; echo code $?; \
         ls -A small/tmp; ls -A . data/iolens | grep partial",
        other.display()
    );
    let Some(done) = in_tmpfs(TEST, &place, "1g", &script) else { return };
    if done.stdout == "refused\n" {
        return skip::note(TEST, "a user namespace may not mount a tmpfs noexec here");
    }
    assert_eq!(place.runs(), 3, "{}", done.stderr);
    let arms = place.exported("arms");
    assert!(arms.iter().all(|arm| arm["status"] != "failed"), "{arms:?}");
    assert!(done.stdout.starts_with("code "), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout.lines().count(), 1, "nothing is left: {}", done.stdout);
}

#[test]
fn what_is_no_other_build_is_refused_before_anything_is_measured() {
    let place = Place::new();
    let first = measured(&place, "--sizes 1KiB --baseline send");
    for program in ["/bin/true", "/bin/cat", "/nowhere/iolens", "/etc/passwd"] {
        place.fails(&format!("compare {first} --rerun {program}"), 2, program);
    }
    let why = "No such file or directory";
    place.fails(&format!("compare {first} --rerun /nowhere/iolens"), 2, why);
    place.fails(&format!("compare {first} last --rerun /bin/true"), 2, "cannot be used with");
    assert_eq!(place.runs(), 1);
}

#[test]
fn runs_of_two_databases_are_compared() {
    let place = Place::new();
    let a = measured(&place, "--sizes 1KiB --baseline send");
    let elsewhere = place.path("other.db").display().to_string();
    let b = measured(&place, &format!("--sizes 1KiB --baseline send --db {elsewhere}"));
    let json = place.json("compare last last --db-b PLACE/other.db --json");
    assert_eq!((&json["a"]["id"], &json["b"]["id"]), (&a.as_str().into(), &b.as_str().into()));
    place.run("compare last last --db-b /nowhere/x.db").ended(4);
}
