//! `explain`: samples of a run's arms, in words, tables and JSON.

use crate::harness::Place;

const RUN: &str = "run net --methods send,memcpy --sizes 16KiB --threads 1 --network loopback \
                   --quick --passes 2 --rounds 5 --progress none";
const EXPLAIN: &str = "explain last 1 --arms send,memcpy --samples 100";

fn ran() -> Place {
    let place = Place::new();
    let done = place.run(RUN);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    place
}

/// The program of a control that never enters the kernel is user code, with or
/// without the right to sample the kernel.
#[test]
fn a_memcpy_is_user_code() {
    let place = ran();
    let explained = place.json(&format!("{EXPLAIN} --json"));
    let arms = explained["attribution"]["arms"].as_array().unwrap();
    let memcpy = arms.iter().find(|arm| arm["arm"] == "memcpy").unwrap();
    let classes = memcpy["both"]["classes"].as_array().unwrap();
    let user = classes.iter().find(|class| class["class"] == "user").unwrap();
    assert!(user["share"]["value"].as_f64().unwrap() > 0.9, "{user}");
    assert!(explained["attribution"]["trials"].as_u64().unwrap() >= 5);
    let total: f64 = classes.iter().map(|class| class["share"]["value"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
}

/// What was sampled is stored: it is shown again without another run, goes
/// onto the page, and into a file for flame graphs.
#[test]
fn samples_are_kept() {
    let place = ran();
    let first = place.run(EXPLAIN);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stdout.starts_with("explain · run "), "{}", first.stdout);
    assert!(first.stderr.contains("sampled trial 5"), "{}", first.stderr);
    let folded = place.path("stacks.txt");
    let again = place.run(&format!("{EXPLAIN} --folded {}", folded.display()));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(!again.stderr.contains("sampled trial"), "{}", again.stderr);
    assert_eq!(again.stdout, first.stdout);
    let all = place.run(&format!("{EXPLAIN} --verbose"));
    assert!(all.stdout.contains("class of work"), "{}", all.stdout);
    let folded = std::fs::read_to_string(folded).unwrap();
    let is_stack = |line: &str| {
        let (stack, samples) = line.rsplit_once(' ').unwrap();
        (stack.starts_with("send;") || stack.starts_with("memcpy;"))
            && samples.parse::<u64>().is_ok()
    };
    assert!(!folded.is_empty() && folded.lines().all(is_stack), "{folded}");
    // Timed figures know nothing of sampled trials.
    let shown = place.json("show last --json");
    assert!(shown["cells"].as_array().unwrap().iter().all(|cell| cell["n"].as_u64() == Some(2)));
}

#[test]
fn what_cannot_be_explained_is_said() {
    let place = ran();
    let check = |line: &str, code: i32, part: &str| {
        let done = place.run(line);
        assert_eq!(done.code, Some(code), "{line}: {}", done.stderr);
        assert!(done.stderr.contains(part), "{line}: {}", done.stderr);
    };
    check("explain last 7", 2, "has cells 1 to 1");
    check("explain last 1 --arms sendfile", 2, "there is no arm `sendfile`");
    check("explain nosuchrun", 2, "no run");
}
