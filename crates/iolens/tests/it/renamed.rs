//! Flags, keys and values that were renamed, and flags of another study: each is answered with
//! what to write instead.

use crate::harness::Place;
use crate::mistakes::refused;

#[test]
fn old_flags_are_answered_with_the_new_ones() {
    for (line, expect) in [
        ("run net --primitives send", "--primitives is now --methods"),
        ("run server --primitives all", "--primitives is now --models"),
        ("run net --topologies=host", "--topologies is now --network"),
        ("run file --sizes 1KiB", "--sizes is now --block-sizes"),
        ("run copy --sizes 1KiB", "--sizes is now --file-sizes"),
        ("run copy --evict", "--evict is now --allow-evict"),
        ("run net --window 3s", "--window is now --sequential-time"),
        ("run classic-48 --delta 1%", "--delta is now --threshold\n  iolens run net --help"),
        ("run net --resume last", "run --resume is now: iolens resume RUN"),
        ("run --resume last", "run --resume is now: iolens resume last"),
        ("net send send --listen :0 --size 1 --working-set hot", "is now --send-memory"),
        ("tune read /dev/null --evict", "--evict is now --allow-evict"),
        ("file read /dev/null --block-size 1 --depth 2", "--depth is now --queue-depth"),
        ("ask --size 1KiB --primitives all", "--primitives is now --methods"),
        ("list primitives", "`list primitives` is now `list methods`"),
        ("run net --iovec prepared", "`prepared` is now `prebuilt`"),
        ("run net --network host", "`host` is now `peer`"),
        ("run server --keep-alive short", "`short` is now `no`"),
        ("run syscall --bursts fill", "`fill` is now `full`"),
    ] {
        refused(line, 2, expect);
    }
}

#[test]
fn a_flag_of_another_study_says_whose_it_is() {
    for (line, expect) in [
        ("run net --connections 5", "run net has no --connections; it belongs to run server"),
        ("run classic-48 --load closed", "run net has no --load; it belongs to run server"),
        ("run server-models --methods all", "--methods is --models in run server"),
        ("run file --peer env", "run file has no --peer; it belongs to run net"),
        ("run --quick net", "name the study first"),
    ] {
        refused(line, 2, expect);
    }
}

#[test]
fn the_help_of_a_plan_is_that_of_its_study() {
    let place = Place::new();
    let of = |line: &str| place.run(line).stdout;
    assert_eq!(of("run classic-48 --help"), of("run net --help"));
    assert_eq!(of("run copy-vs-dd -h"), of("run copy -h"));
    assert_ne!(of("run copy -h"), of("run copy --help"));
    place.write("mine.toml", "study = \"server\"\n");
    let mine = format!("run {} --help", place.path("mine.toml").display());
    assert_eq!(of(&mine), of("run server --help"));
}

#[test]
fn words_of_textbooks_are_noted() {
    let done =
        Place::new().run("run net --methods two-copy,zero-copy --threads 1..3 --dry-run").ended(0);
    done.says("two-copy is called send_staged here");
    done.prints("3 threads");
}
