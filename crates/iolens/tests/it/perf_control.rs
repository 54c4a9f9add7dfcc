//! `--perf-control`: perf is told of the slices that count, of each of them
//! and of nothing else.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;

use crate::harness::{Finished, Place};

const RUN: &str = "run net --methods send --sizes 1KiB --threads 2 --network loopback \
                   --quick --passes 2 --rounds 3 --progress none";

/// The run, with both pipes.
fn run(place: &Place) -> Finished {
    let [ctl, ack] = ["ctl", "ack"].map(|name| place.path(name).display().to_string());
    place.run(&format!("{RUN} --perf-control fifo:{ctl},{ack}"))
}

/// A named pipe, open as perf has it: to be read and to be written.
fn pipe(place: &Place, name: &str) -> File {
    let path = place.path(name);
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success(), "mkfifo {}", path.display());
    open(&path)
}

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

#[test]
fn perf_counts_the_slices_that_count() {
    let place = Place::new();
    let (ctl, mut ack) = (pipe(&place, "ctl"), pipe(&place, "ack"));
    let mut end = open(&place.path("ctl"));
    let perf = std::thread::spawn(move || {
        let mut heard = Vec::new();
        for line in BufReader::new(ctl).lines() {
            let line = line.unwrap();
            if line == "end of test" {
                break;
            }
            heard.push(line);
            ack.write_all(b"ack\n\0").unwrap();
        }
        heard
    });
    let done = run(&place);
    end.write_all(b"end of test\n").unwrap();
    let heard = perf.join().unwrap();
    done.assert_code(0);
    let rows = place.rows("slices", ["kind"]);
    let measured = rows.iter().filter(|[kind]| kind == "measured").count();
    assert!(measured > 0, "{rows:?}");
    assert_eq!(heard, ["enable", "disable"].repeat(measured));
}

#[test]
fn pipes_that_nobody_reads_are_a_mistake_that_is_told_at_once() {
    let place = Place::new();
    run(&place).ended(2).says("cannot open perf's control pipe");
    drop((pipe(&place, "ctl"), pipe(&place, "ack")));
    run(&place).ended(2).says("start perf with --control first");
}
