//! `explain`: samples of a run's arms, in words, tables and JSON.

use crate::harness::{Place, list};

const RUN: &str = "run net --methods send,memcpy --sizes 16KiB --threads 1 --network loopback \
                   --quick --passes 2 --rounds 5 --progress none";
const EXPLAIN: &str = "explain last 1 --arms send,memcpy --samples 100";

fn ran() -> Place {
    let place = Place::new();
    place.run(RUN).ended(0);
    place
}

/// The program of a control that never enters the kernel is user code, with or
/// without the right to sample the kernel.
#[test]
fn a_memcpy_is_user_code() {
    let place = ran();
    let explained = place.json(&format!("{EXPLAIN} --json"));
    let arms = list(&explained["attribution"]["arms"]);
    let memcpy = arms.iter().find(|arm| arm["arm"] == "memcpy").unwrap();
    let classes = list(&memcpy["both"]["classes"]);
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
    let first = place.run(EXPLAIN).ended(0);
    assert!(first.stdout.starts_with("explain · run "), "{}", first.stdout);
    first.says("sampled trial 5");
    let again = place.run(&format!("{EXPLAIN} --folded PLACE/stacks.txt")).ended(0);
    assert!(!again.stderr.contains("sampled trial"), "{}", again.stderr);
    assert_eq!(again.stdout, first.stdout);
    place.run(&format!("{EXPLAIN} --verbose")).prints("class of work");
    let folded = place.read("stacks.txt");
    let is_stack = |line: &str| {
        let (stack, samples) = line.rsplit_once(' ').unwrap();
        (stack.starts_with("send;") || stack.starts_with("memcpy;"))
            && samples.parse::<u64>().is_ok()
    };
    assert!(!folded.is_empty() && folded.lines().all(is_stack), "{folded}");
    // Timed figures know nothing of sampled trials.
    let shown = place.json("show last --json");
    assert!(list(&shown["cells"]).iter().all(|cell| cell["n"].as_u64() == Some(2)));
}

/// What a program does is no work of the thread that waits for it.
#[test]
fn programs_are_not_sampled() {
    let place = Place::new();
    place.make_folder("copies");
    let copy = "run copy --engines read_write,cp --file-sizes 64KiB --block-size 4KiB --dir \
                PLACE/copies --quick --passes 2 --rounds 3 --progress none";
    place.run(copy).ended(0);
    let refusal = "is a program, and iolens samples only its own methods";
    place.fail_each(
        2,
        [("explain last 1 --arms cp", refusal), ("explain last 1 --arms read_write,cp", refusal)],
    );
}

#[test]
fn what_cannot_be_explained_is_said() {
    let place = ran();
    place.fail_each(
        2,
        [
            ("explain last 7", "has settings 1 to 1"),
            ("explain last 1 --arms sendfile", "there is no arm `sendfile`"),
            ("explain nosuchrun", "no run"),
        ],
    );
}
