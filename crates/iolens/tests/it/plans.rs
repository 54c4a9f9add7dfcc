//! Plan files and what is said before a run: read, printed, answered.

use crate::harness::{Place, list};
use crate::sample;

/// A plan that any build can measure, in an instant.
const SMALL: &str = "methods = [\"send\", \"sendmsg_iov\"]\nsizes = \"1KiB\"\nthreads = 1\n\
                     network = \"loopback\"\nquick = true\npasses = 1\nrounds = 3\nseed = 7\n";

fn with_plan(text: &str) -> (Place, String) {
    let place = Place::new();
    let path = place.write("plan.toml", text);
    (place, path)
}

#[test]
fn a_plan_file_is_measured_and_flags_go_before_it() {
    let (place, file) = with_plan(SMALL);
    let done = place.run(&format!("run {file} --sizes 2KiB --name mine --progress none")).ended(0);
    done.says("1 setting, 4 trials a pass").says("expected time").says("unknown until pass 3");
    let runs = place.json("runs --json");
    assert_eq!((&runs[0]["name"], runs[0]["cells"].as_u64()), (&"mine".into(), Some(1)));
    assert!(place.run("show last").stdout.contains("2 KiB"));
}

#[test]
fn a_printed_plan_is_a_plan_file_for_the_same_plan() {
    let (place, file) = with_plan(SMALL);
    let printed = place.printed_plan(&format!("run {file} --threshold 2% --name x"));
    assert!(printed.contains("sizes = [\"1KiB\"]\n") && printed.contains("threshold = \"2%\"\n"));
    let json = |file: &str| place.json(&format!("run {file} --threshold 2% --print-plan --json"));
    assert_eq!(json(&file), json("PLACE/printed.toml"));
    assert_eq!(json(&file)["seed"], 7);
    assert!(!place.path("data").exists(), "nothing is measured");
}

#[test]
fn a_dry_run_names_the_cells_and_arms_and_measures_nothing() {
    let (place, file) = with_plan(SMALL);
    let shown = place.run(&format!("run {file} --threads 1,2 --dry-run")).stdout;
    for part in ["send_staged (A/A)", "sendmsg_iov", "1 KiB × 2 threads", "expected time: about"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = place.json(&format!("run {file} --dry-run --json"));
    assert_eq!(list(&json["cells"]).len(), 1);
    assert!(json["expected_half_width"].is_null());
    assert!(!place.path("data").exists(), "nothing is measured");
}

/// Where no budget is stated it grows by what searches take; a stated one is shared.
#[test]
fn a_dry_run_says_what_searches_take_and_have() {
    let place = Place::new();
    let of = |more: &str| {
        let what = "run server --quick --models epoll_lt,poll --network loopback --dry-run";
        place.json(&format!("{what} --json {more}"))["searches"].clone()
    };
    assert!(of("").is_null());
    let open = of("--slo p99<2ms --knee");
    assert_eq!(open["searches"], 2);
    let ns = |look: &serde_json::Value, key: &str| look[key].as_u64().unwrap();
    assert!(ns(&open, "share_ns") > ns(&open, "time_ns"), "{open}");
    let short = of("--slo p99<2ms --knee --budget 20s");
    assert_eq!(ns(&short, "share_ns"), 15_000_000_000);
    place
        .run("run server --quick --slo p99<2ms --budget 20s --dry-run")
        .prints("they are cut short")
        .prints("raise --budget");
}

#[test]
fn the_width_is_expected_from_an_earlier_run_on_this_machine() {
    let (place, file) = with_plan(SMALL);
    place.run(&format!("run {file} --passes 5 --progress none")).ended(0);
    // Others that came after it are no reason not to find it.
    place.with_runs(&["aa000001", "bb000002", "cc000003"].map(sample::header));
    let json = place.json(&format!("run {file} --passes 20 --dry-run --json"));
    let wide = json["expected_half_width"].as_f64().unwrap();
    let json = place.json(&format!("run {file} --passes 5 --dry-run --json"));
    assert!(wide > 0.0 && wide < json["expected_half_width"].as_f64().unwrap());
    let other = place.json(&format!("run {file} --passes 5 --rounds 4 --dry-run --json"));
    assert!(other["expected_half_width"].is_null(), "other trials, other spread");
    place
        .run(&format!("run {file} --dry-run --passes 5"))
        .prints("% after 5 passes, from the median spread of 3 comparisons");
}

#[test]
fn a_mistake_in_a_plan_file_is_found_for_the_user() {
    let check = |text: &str, place_and_message: &str| {
        let (place, file) = with_plan(text);
        let done = place.run(&format!("run {file}")).ended(2);
        let expect = format!("iolens: {file}:{place_and_message}");
        assert!(done.stderr.starts_with(&expect), "{}", done.stderr);
        assert!(!place.path("data").exists());
    };
    check("threads = 1\n\nsize = 4", "3:1: unknown key `size`, did you mean `sizes`?");
    check("methods = [\"sendd\"]", "1:12: unknown method `sendd`, did you mean `send`?");
    check("sizes = \"64kB\"", "1:9: sizes: `64kB` is not a size");
    check("sizes = [1", "1:");
}
